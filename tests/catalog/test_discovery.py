"""A search finds the tool that a model has in mind, and says which words led nowhere."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import SHARED_DATA

from toolfold.catalog.discovery import ToolIndex
from toolfold.catalog.names import function_names, module_names
from toolfold.catalog.tool import ListedTool, Tool

CATALOGUES = sorted((SHARED_DATA / "catalogue").glob("*.json"))


def tool(server: str, name: str, description: str = "", **properties: object) -> Tool:
    listed = ListedTool(
        name=name,
        description=description,
        input_schema={"type": "object", "properties": properties},  # type: ignore[dict-item]
    )
    module, function = module_names([server])[server], function_names([name])[name]
    return Tool(server=server, module=module, function=function, listed=listed)


TOOLS = [
    tool("github", "create_issue", "Open a new issue in a repository."),
    tool("github", "createIssueComment", "Comment on an issue: create issue comments."),
    tool("github", "list_issues", "List the issues of a repository", state={"enum": ["stale"]}),
    tool("gitlab", "create_issue", "Create an issue in a project."),
    tool("mail", "send", "Send a message", recipient={"description": "An address of a person"}),
    tool("time", "get_current_time", "Tell what time it is somewhere"),
]


def paths(query: str, *, limit: int = 10, server: str | None = None) -> list[str]:
    return [hit.path for hit in ToolIndex(TOOLS).search(query, limit=limit, server=server).hits]


@pytest.mark.parametrize(
    "query", ["github.create_issue", "mcp__github__create_issue", "github create issue"]
)
def test_a_tool_that_is_named_with_its_server_comes_first(query: str) -> None:
    assert paths(query)[0] == "github.create_issue"


@pytest.mark.parametrize("query", ["create_issue", "createIssue", "Create Issue"])
def test_all_tools_of_that_name_come_first(query: str) -> None:
    assert set(paths(query)[:2]) == {"github.create_issue", "gitlab.create_issue"}


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("listing issue", "github.list_issues"),
        ("stale ones", "github.list_issues"),
        ("recipients", "mail.send"),
        ("addresses", "mail.send"),
        ("comments", "github.create_issue_comment"),
        ("what time is it", "time_mcp.get_current_time"),
    ],
)
def test_words_are_found_in_names_descriptions_parameters_and_values(query: str, path: str) -> None:
    assert paths(query)[0] == path


def test_words_that_no_tool_contains_are_named() -> None:
    result = ToolIndex(TOOLS).search("create a quokka issue for the Wombat", limit=3)

    assert result.unmatched == ("quokka", "wombat")
    assert len(result.hits) == 3


def test_a_query_that_matches_nothing_has_no_hits() -> None:
    result = ToolIndex(TOOLS).search("quokka", limit=3)

    assert (result.hits, result.unmatched) == ((), ("quokka",))


def test_a_query_in_another_script_is_unmatched_as_a_whole() -> None:
    assert ToolIndex(TOOLS).search("搜索 ", limit=3).unmatched == ("搜索",)


@pytest.mark.parametrize("server", ["time", "time_mcp"])
def test_a_server_is_searched_alone_under_either_name(server: str) -> None:
    assert paths("create issue", server=server) == []
    assert paths("time", server=server) == ["time_mcp.get_current_time"]


def test_a_blank_query_lists_the_tools_in_order() -> None:
    assert paths(" ", limit=2) == ["github.create_issue", "github.create_issue_comment"]


def test_an_empty_index_finds_nothing() -> None:
    assert ToolIndex([]).search("issue", limit=5).hits == ()


@given(st.permutations(TOOLS), st.sampled_from(["issue", "create", "a message in time", ""]))
def test_the_order_of_the_tools_does_not_matter(tools: list[Tool], query: str) -> None:
    assert ToolIndex(tools).search(query, limit=9) == ToolIndex(TOOLS).search(query, limit=9)


@given(st.text(), st.integers(min_value=0, max_value=4))
def test_any_query_gives_at_most_the_limit(query: str, limit: int) -> None:
    hits = ToolIndex(TOOLS).search(query, limit=limit).hits

    assert len(hits) == len({hit.path for hit in hits}) <= limit


@pytest.mark.skipif(not CATALOGUES, reason="The recorded catalogues are not on this machine.")
def test_every_real_tool_is_found_by_its_name_and_by_its_description() -> None:
    recorded = [json.loads(path.read_text()) for path in CATALOGUES]
    tools = [
        tool(catalogue["server"], each["name"], each.get("description") or "")
        for catalogue in recorded
        for each in catalogue["tools"]
    ]
    index = ToolIndex(tools)

    for each in tools:
        assert index.search(each.path, limit=1).hits == (each,)
    described = [each for each in tools if each.listed.description]
    found = [each in index.search(each.listed.description, limit=5).hits for each in described]
    assert sum(found) > 0.95 * len(found)
