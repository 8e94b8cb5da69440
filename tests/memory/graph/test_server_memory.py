"""Ours beside the real server-memory: whatever is asked, the answers are the same."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

import anyio.from_thread
import pytest
from graphs import CALLS, GOOD_CALLS, real_server, running_graph
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolfold.memory.graph.tools import RESOURCE, TOOLS, call, call_as_json

SURFACE = json.loads((files("toolfold.relay") / "surfaces" / "graph.json").read_text("utf-8"))
READING = ("read_graph", "search_nodes", "open_nodes")
LONG = [pytest.mark.soak, pytest.mark.timeout(3600)]


class Pair:
    """The real server and ours, both empty at the beginning of each story."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.file = directory / "real.jsonl"
        self.real = stack.enter_context(real_server(self.file))
        self._portal = stack.enter_context(anyio.from_thread.start_blocking_portal())
        self._opened = stack.enter_context(ExitStack())
        self._directory = directory
        self._stories = count()

    def begin(self) -> None:
        self.file.unlink(missing_ok=True)
        self._opened.close()
        opening = running_graph(self._directory / f"story{next(self._stories)}")
        self.graph = self._opened.enter_context(self._portal.wrap_async_context_manager(opening))

    def run(self, verb: Callable[..., Any], *arguments: Any) -> Any:
        return self._portal.call(verb, *arguments)

    def ask(self, tool: str, arguments: Any) -> None:
        """Put the same to both."""
        answer = self.run(call, self.graph, tool, arguments)
        real = self.real.call(tool, arguments)
        if tool in READING:
            assert json.loads(self.run(call_as_json, self.graph, tool, arguments)) == real
        assert answer.is_error == real.get("isError", False)
        assert [{"type": "text", "text": answer.text}] == real["content"]
        assert answer.structured == real.get("structuredContent")

    def export(self) -> str:
        exported: str = self.run(self.graph.export_jsonl)
        return exported


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with ExitStack() as stack:
        yield Pair(tmp_path_factory.mktemp("pair"), stack)


def stories(calls: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(calls, min_size=1, max_size=25)


def relaxed(examples: int) -> settings:
    return settings(
        max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )


@pytest.mark.parametrize("examples", [60, pytest.param(3000, marks=LONG)])
def test_any_calls_have_the_answers_of_the_real_server(pair: Pair, examples: int) -> None:
    @relaxed(examples)
    @given(stories(CALLS))
    def check(story: list[tuple[str, Any]]) -> None:
        pair.begin()
        for tool, arguments in story:
            pair.ask(tool, arguments)
        pair.ask("read_graph", {})

    check()


@pytest.mark.parametrize("examples", [25, pytest.param(1000, marks=LONG)])
def test_the_real_server_reads_our_export_as_the_same_graph(pair: Pair, examples: int) -> None:
    @relaxed(examples)
    @given(stories(GOOD_CALLS))
    def check(story: list[tuple[str, Any]]) -> None:
        pair.begin()
        for tool, arguments in story:
            pair.run(call, pair.graph, tool, arguments)

        pair.file.write_bytes(pair.export().encode())

        pair.ask("read_graph", {})

    check()


@pytest.mark.parametrize("examples", [25, pytest.param(1000, marks=LONG)])
def test_a_file_of_the_real_server_is_imported_and_exported_as_it_was(
    pair: Pair, examples: int
) -> None:
    @relaxed(examples)
    @given(stories(GOOD_CALLS))
    def check(story: list[tuple[str, Any]]) -> None:
        pair.begin()
        pair.real.call("create_entities", {"entities": []})
        for tool, arguments in story:
            pair.real.call(tool, arguments)
        kept = pair.file.read_bytes().decode()

        report = pair.run(pair.graph.import_jsonl, kept)

        assert report.faults == ()
        assert pair.export() == kept
        pair.ask("read_graph", {})

    check()


def test_texts_of_many_observations_and_of_none_are_laid_out_alike(pair: Pair) -> None:
    pair.begin()
    entities = [
        {"name": f"n{number}", "entityType": "t", "observations": ["o"] * number}
        for number in range(4)
    ]
    pair.ask("create_entities", {"entities": entities})
    pair.ask("create_relations", {"relations": []})
    pair.ask("add_observations", {"observations": [{"entityName": "n0", "contents": []}]})
    pair.ask("add_observations", {"observations": []})
    pair.ask("search_nodes", {"query": "nothing has this"})
    pair.ask("search_nodes", {"query": "N2"})


def test_results_as_json_are_those_of_the_real_server(pair: Pair) -> None:
    pair.begin()
    told = {"name": 'quote " and \\ and \ud83d', "entityType": "line\nbreak", "observations": ["ß"]}
    for tool, arguments in [
        ("create_entities", {"entities": [told]}),
        ("add_observations", {"observations": [{"entityName": "nobody\ud83d", "contents": []}]}),
        ("delete_entities", {"entityNames": ["nobody"]}),
        ("read_graph", None),
        ("search_nodes", {}),
        ("no_tool", {}),
    ]:
        ours = pair.run(call_as_json, pair.graph, tool, arguments)
        assert "\n" not in ours
        assert json.loads(ours) == pair.real.call(tool, arguments or {})


def test_arguments_may_be_left_out_where_none_are_needed(pair: Pair) -> None:
    pair.begin()
    for tool in ("read_graph", "search_nodes"):
        ours = pair.run(call, pair.graph, tool, None)
        real = pair.real.ask("tools/call", {"name": tool})["result"]
        assert [ours.text] == [part["text"] for part in real["content"]]


def test_the_tools_that_we_list_are_those_of_the_real_server(pair: Pair) -> None:
    assert pair.real.ask("tools/list")["result"] == {"tools": SURFACE["tools"]}


def test_the_resources_that_we_list_are_those_of_the_real_server(pair: Pair) -> None:
    assert pair.real.ask("resources/list")["result"] == {"resources": SURFACE["resources"]}
    templates = pair.real.ask("resources/templates/list")["result"]
    assert templates == {"resourceTemplates": SURFACE["resourceTemplates"]}


def test_our_greeting_is_that_of_the_real_server(pair: Pair) -> None:
    assert pair.real.greeting["serverInfo"] == SURFACE["serverInfo"]
    assert pair.real.greeting["capabilities"] == SURFACE["capabilities"]


def test_every_tool_that_we_list_is_answered() -> None:
    assert [tool["name"] for tool in SURFACE["tools"]] == list(TOOLS)
    assert [resource["uri"] for resource in SURFACE["resources"]] == [RESOURCE]
