import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from http_daemon import serve_command, serving
from support import conformance, node_server, test_server, write_config

HERE = Path(__file__).parent
FOUND_WANTING = {"FAILURE", "WARNING"}
SERVED = {
    "2026-07-28": [
        "tools-list", "server-stateless", "dns-rebinding-protection", "http-header-validation",
        "caching", "resources-list", "prompts-list", "sep-2164-resource-not-found",
        "server-sse-multiple-streams", "input-required-result-unsupported-methods",
    ],
    "2025-11-25": [
        "server-initialize", "ping", "tools-list", "dns-rebinding-protection",
        "server-session-lifecycle", "resources-list", "prompts-list", "server-sse-multiple-streams",
    ],
}  # fmt: skip
pytestmark = pytest.mark.timeout(300)

Statuses = dict[tuple[str, str], set[str]]
"""By scenario and check, the statuses it had; a check may come more than once."""


@pytest.fixture(scope="module")
def toolfold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real `toolfold serve`."""
    directory = tmp_path_factory.mktemp("serve")
    servers = {"null": test_server("null"), "everything": everything()}
    config = write_config(directory / "mcp.json", servers)
    with serving(serve_command(config), home=directory / "home") as served:
        yield served.url


def everything() -> dict[str, object]:
    command, *arguments = node_server("everything", "stdio")
    return {"command": command, "args": arguments}


@pytest.fixture(scope="module")
def fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the suite's tools on the same stack."""
    home = tmp_path_factory.mktemp("fixture")
    with serving([sys.executable, str(HERE / "fixture.py")], home=home) as served:
        yield served.url


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_our_http_passes_what_the_protocol_asks_of_servers(
    revision: str, fixture: str, tmp_path: Path
) -> None:
    examine(fixture, tmp_path, "--requirements", revision)

    assert_as_expected(f"fixture {revision}", statuses(tmp_path))


@pytest.mark.parametrize("revision", SERVED)
def test_toolfold_serve_passes_the_scenarios_that_apply(
    revision: str, toolfold: str, tmp_path: Path
) -> None:
    for scenario in SERVED[revision]:
        examine(toolfold, tmp_path, "--scenario", scenario, "--spec-version", revision)

    found = statuses(tmp_path)
    assert {scenario for scenario, _ in found} == set(SERVED[revision])
    assert_as_expected(f"serve {revision}", found)


def examine(url: str, results: Path, *selection: str) -> None:
    command = conformance("server", "--url", url, *selection, "-o", str(results))
    done = subprocess.run(command, capture_output=True, text=True, cwd=results)
    assert done.returncode in {0, 1}, done.stdout + done.stderr


def statuses(results: Path) -> Statuses:
    found: Statuses = {}
    for path in results.glob("server-*/checks.json"):
        scenario = re.sub(r"^server-|-\d{4}-\d\d-\d\dT.*$", "", path.parent.name)
        for check in json.loads(path.read_text()):
            found.setdefault((scenario, check["id"]), set()).add(check["status"])
    assert found
    return found


def assert_as_expected(section: str, found: Statuses) -> None:
    expected = baseline(section)
    wanting = {name for name, status in found.items() if status & FOUND_WANTING}
    unexpected = {
        f"{scenario}:{check}"
        for scenario, check in wanting
        if not {scenario, f"{scenario}:{check}"} & expected
    }
    still = {scenario for scenario, _ in wanting} | {":".join(name) for name in wanting}
    assert unexpected == set(), "found wanting, and not in the baseline"
    assert expected - still == set(), "in the baseline, and found wanting no more"


def baseline(section: str) -> set[str]:
    """Return the entries of a section of `server-baseline.yml`; each must have its reason."""
    sections = re.split(
        r"^(\w.*):$", (HERE / "server-baseline.yml").read_text(), flags=re.MULTILINE
    )
    lines = sections[sections.index(section) + 1].split("\n")
    entries = [line.strip() for line in lines if line.strip()]
    assert all(re.fullmatch(r"- [\w:-]+ # .+", entry) for entry in entries), entries
    return {entry.split()[1] for entry in entries}
