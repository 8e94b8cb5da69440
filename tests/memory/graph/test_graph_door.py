"""`toolfold mcp --tools graph` in the place of the real server, as clients start it."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from graphs import (
    CALLS,
    McpProcess,
    real_server,
    related,
    told,
    toolfold_graph,
    toolfold_home,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

LONG = [pytest.mark.soak, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with toolfold_home(tmp_path_factory.mktemp("home")) as environ:
        yield environ


def empty(server: McpProcess) -> None:
    graph = server.call("read_graph", {})["structuredContent"]
    names = [each["name"] for each in graph["entities"]]
    server.call("delete_entities", {"entityNames": names})
    server.call("delete_relations", {"relations": graph["relations"]})


def has_halves(value: Any) -> bool:
    """Tell whether a value holds what no UTF-8 can be made of."""
    if isinstance(value, str):
        return any(0xD800 <= ord(char) < 0xE000 for char in value)
    parts = value.values() if isinstance(value, dict) else value
    return isinstance(value, dict | list | tuple) and any(map(has_halves, parts))


@pytest.mark.parametrize("examples", [10, pytest.param(500, marks=LONG)])
def test_any_calls_have_the_answers_of_the_real_server(
    environ: dict[str, str], tmp_path: Path, examples: int
) -> None:
    with real_server(tmp_path / "m.jsonl") as real, toolfold_graph(environ) as ours:

        @settings(
            max_examples=examples,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        )
        @given(st.lists(CALLS.filter(lambda each: not has_halves(each)), max_size=15))
        def check(story: list[tuple[str, Any]]) -> None:
            empty(real)
            empty(ours)
            for tool, arguments in [*story, ("read_graph", {})]:
                expected = real.call(tool, arguments)
                answer = ours.call(tool, arguments)
                assert answer["content"] == expected["content"]
                assert answer.get("structuredContent") == expected.get("structuredContent")
                assert answer.get("isError", False) == expected.get("isError", False)

        check()


def test_what_is_listed_is_what_the_real_server_lists(
    environ: dict[str, str], tmp_path: Path
) -> None:
    with real_server(tmp_path / "m.jsonl") as real, toolfold_graph(environ) as ours:
        for method in ("tools/list", "resources/list", "resources/templates/list"):
            assert ours.ask(method)["result"] == real.ask(method)["result"]


def test_the_resource_is_the_graph_as_the_real_server_shows_it(
    environ: dict[str, str], tmp_path: Path
) -> None:
    with real_server(tmp_path / "m.jsonl") as real, toolfold_graph(environ, "shown") as ours:
        for server in (real, ours):
            server.call("create_entities", {"entities": [told("Ada", "person", "ß")]})
            server.call("create_relations", {"relations": [related("Ada", "knows", "Bob")]})

        uri = {"uri": "memory://knowledge-graph"}
        assert (
            ours.ask("resources/read", uri)["result"] == real.ask("resources/read", uri)["result"]
        )


def test_fifty_calls_that_a_client_sends_at_once_are_all_kept(environ: dict[str, str]) -> None:
    calls = [("create_entities", {"entities": [told(f"n{number}")]}) for number in range(50)]
    with toolfold_graph(environ, "pipelined") as ours:
        answers = ours.pipeline(calls)

        assert all(len(each["structuredContent"]["entities"]) == 1 for each in answers)
        graph = ours.call("read_graph", {})["structuredContent"]
    assert {each["name"] for each in graph["entities"]} == {f"n{number}" for number in range(50)}


@pytest.mark.parametrize(("clients", "count"), [(2, 50), (4, 25)])
async def test_all_that_several_clients_write_at_once_is_kept(
    environ: dict[str, str], clients: int, count: int
) -> None:
    namespace = f"clients {clients}"

    def write(server: McpProcess, name: str) -> None:
        for number in range(count):
            entities = [told(f"{name} {number}")]
            server.call("create_entities", {"entities": entities})

    with ExitStack() as stack:
        servers = [stack.enter_context(toolfold_graph(environ, namespace)) for _ in range(clients)]
        async with anyio.create_task_group() as tasks:
            for number, server in enumerate(servers):
                tasks.start_soon(anyio.to_thread.run_sync, write, server, f"client {number}")
        graph = servers[0].call("read_graph", {})["structuredContent"]

    names = [each["name"] for each in graph["entities"]]
    assert sorted(names) == sorted(
        f"client {client} {number}" for client in range(clients) for number in range(count)
    )
