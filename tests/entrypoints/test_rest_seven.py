"""The REST API in front of seven real catalogues: 504 tools, and what is built in."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from http_daemon import Serving, serve_command, serving
from support import catalogue, test_server, write_config

from toolfold.tokens import count_tokens

SEVEN = [
    "github", "slack", "notion", "salesforce", "google-workspace", "atlassian", "playwright",
]  # fmt: skip
BUILT_IN = {
    "skills", "memory", "events", "graph", "documents", "consolidation", "workspace",
}  # fmt: skip
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_headers_conformance,response_schema_conformance,negative_data_rejection,"
    "unsupported_method,allow_header_conformance,use_after_free"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("seven")
    servers = {name: test_server("replay", catalogue(name)) for name in SEVEN}
    # Tools that destroy are called here, and over HTTP nobody can be asked about them.
    settings = ("--set", "connect_timeout_s=120", "--set", "approvals=never")
    command = serve_command(write_config(folder / "mcp.json", servers), *settings)
    with serving(command, home=folder / "home") as started:
        # All at once they may take longer to start than one request waits.
        with httpx2.Client(base_url=started.root, timeout=60) as client:
            while client.get("/tools/discover").json()["total_tools"] < 504:
                pass
        yield started


@pytest.fixture
def http(served: Serving) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=served.root, timeout=60) as client:
        yield client


def every_tool(http: httpx2.Client, **filters: Any) -> list[dict[str, Any]]:
    """Return what `/tools/list` gives in all its pages."""
    found: list[dict[str, Any]] = []
    offset: int | None = 0
    while offset is not None:
        page = http.get("/tools/list", params={"offset": offset, "limit": 200, **filters}).json()
        found += page["tools"]
        offset = page["next_offset"]
    assert len(found) == page["total"]
    return found


def test_the_default_page_of_discovery_takes_at_most_500_tokens(http: httpx2.Client) -> None:
    answer = http.get("/tools/discover")
    categories = answer.json()["categories"]

    assert count_tokens(answer.text) <= 500
    assert categories.keys() == {name.replace("-", "_") for name in SEVEN} | BUILT_IN
    assert sum(each["count"] for each in categories.values()) == answer.json()["total_tools"]
    assert sum(each["count"] for name, each in categories.items() if name not in BUILT_IN) == 504
    assert all(each["description"] and each["tools"] for each in categories.values())


def test_the_pages_of_discovery_show_every_tool_once(http: httpx2.Client) -> None:
    shown: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = http.get("/tools/discover", params={"limit": 60, "offset": offset}).json()
        shown += [tool["name"] for each in page["categories"].values() for tool in each["tools"]]
        offset = page["next_offset"]

    assert len(shown) == len(set(shown)) == page["total_tools"]
    assert sorted(shown) == sorted(tool["name"] for tool in every_tool(http))


def test_a_category_lists_its_own_tools_and_a_query_the_best_first(http: httpx2.Client) -> None:
    github = every_tool(http, category="github")
    events = every_tool(http, category="events")
    best = http.get("/tools/list", params={"query": "github.create_issue", "limit": 1}).json()
    nowhere = http.get("/tools/list", params={"category": "gitlab"})

    assert len(github) == 117
    assert {tool["category"] for tool in github} == {"github"}
    assert {tool["name"] for tool in events} == {
        "memory.record_event", "memory.recall_events", "memory.get_event",
    }  # fmt: skip
    assert best["tools"][0]["name"] == "github.create_issue"
    assert nowhere.status_code == 404
    assert nowhere.json()["error"]["code"] == "not_found"
    assert "google_workspace" in nowhere.json()["error"]["message"]


@pytest.mark.parametrize("every", [20, pytest.param(1, marks=pytest.mark.soak)])
def test_every_tool_is_described_and_its_example_is_a_call_that_arrives(
    every: int, http: httpx2.Client
) -> None:
    tools = [tool for tool in every_tool(http) if tool["category"] not in BUILT_IN]
    assert len(tools) == 504
    for number, tool in enumerate(tools):
        described = http.get(f"/tools/{tool['name']}").json()
        assert described["category"] == tool["category"]
        required = {each["name"] for each in described["parameters"] if each["required"]}
        assert described["example"]["arguments"].keys() == required, tool["name"]
        if number % every == 0:
            answer = http.post(f"/tools/{tool['name']}/execute", json=described["example"])
            assert answer.status_code == 200, answer.text
            result = answer.json()["result"]
            # Of a tool that says it returns text, the answer is text.
            read = json.loads(result) if isinstance(result, str) else result
            assert read["arguments"] == described["example"]["arguments"]


def test_parameters_are_told_with_type_default_and_whether_they_are_required(
    http: httpx2.Client,
) -> None:
    recall = http.get("/tools/memory.recall").json()
    named = {each["name"]: each for each in recall["parameters"]}
    issue = http.get("/tools/mcp__github__create_issue").json()

    assert (named["query"]["type"], named["query"]["required"]) == ("string", True)
    assert (named["limit"]["type"], named["limit"]["default"]) == ("integer", 5)
    assert named["tags"]["type"] == "string or array of string"
    assert named["tag_match"]["type"] == "one of any, all"
    assert recall["returns"] == "CompactSearchResult"
    assert recall["read_only"] is True
    assert issue["call"] == "github.create_issue(owner, repo, title, body=…)"


# Each text has a few characters of its own, so that it is worth its tokens.
TEXT = "' '.join(f'{i:05d} is paid' for i in range(11_000))"
SUMMARY = f"""
import github, notion

text = {TEXT}
issue = github.create_issue(owner="acme", repo="shop", title="Orders", body=text)
page = notion.api_retrieve_a_page(page_id=text)
lines = issue["arguments"]["body"].split(" is paid")
print(f"issue: {{len(lines)}} orders, the last {{lines[-2].strip()}}")
print(f"page: {{len(str(page)):,}} characters")
"""


def test_two_results_of_50_000_tokens_cost_the_model_at_most_2_000(http: httpx2.Client) -> None:
    """The model finds both tools, reads about them, sends code, and reads what it printed."""
    read = [
        http.get("/tools/discover").text,
        http.get("/tools/list", params={"query": "open an issue", "limit": 5}).text,
        http.get("/tools/list", params={"query": "retrieve a page of notion", "limit": 5}).text,
        http.get("/tools/github.create_issue").text,
        http.get("/tools/notion.api_retrieve_a_page").text,
    ]
    run = http.post("/execute", json={"code": SUMMARY}).json()
    calls = http.get(f"/runs/{run['run_id']}").json()["calls"]
    text = eval(TEXT)

    assert run["success"], run["text"]
    assert "issue: 11001 orders, the last 10999" in run["text"]
    assert [call["outcome"] for call in calls] == ["ok", "ok"]
    assert all(call["answer"]["size_bytes"] > len(text) for call in calls)
    assert count_tokens(text) >= 50_000
    spent = sum(map(count_tokens, [*read, SUMMARY, run["text"]]))
    assert spent <= 2_000, spent


@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", ["short", pytest.param("long", marks=pytest.mark.soak)])
def test_no_request_makes_the_door_fail_or_answer_what_it_did_not_say(
    case: str, served: Serving, tmp_path: Path
) -> None:
    amounts = {
        "short": ["--phases", "examples,fuzzing", "-n", "1"],
        "long": ["--phases", "examples,coverage,fuzzing", "-n", "20"],
    }
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{served.root}/openapi.json"]
    command += [*amounts[case], "--checks", CHECKS, "--seed", "7", "--no-color"]
    command += ["--continue-on-failure", "--suppress-health-check", "all"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    generated, passed = map(int, re.findall(r"(\d+) generated, (\d+) passed", done.stdout)[0])
    assert generated == passed >= 38


def test_the_description_names_every_route_that_there_is(http: httpx2.Client) -> None:
    described = http.get("/openapi.json").json()
    wanted = {
        "GET /tools/discover", "GET /tools/list", "GET /tools/{name}",
        "POST /tools/{name}/execute", "POST /execute", "GET /health", "GET /metrics",
        "GET /health/live", "GET /health/ready",
        "GET /memory/recall", "POST /memory/notes", "POST /events", "GET /events",
        "POST /graph/entities", "GET /graph/search", "POST /consolidation", "GET /runs",
    }  # fmt: skip
    there = {
        f"{method.upper()} {path}"
        for path, methods in described["paths"].items()
        for method in methods
    }

    assert wanted <= there
    assert json.dumps(described).count('"operationId"') == len(there)
