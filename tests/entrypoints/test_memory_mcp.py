"""`toolfold mcp --tools memory`: memory alone, for clients that want nothing else."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api.memory_home import MemoryHome, memory_home
from relay.peer import LEGACY, MODERN, Peer, text_of
from support import MakeConfig

from toolfold import __version__
from toolfold.app import running_stores
from toolfold.entrypoints.mcp.manifest_writer import collect_first_answers
from toolfold.entrypoints.mcp.memory import make_memory_server, memory_tools
from toolfold.relay.surface import SURFACES, surface_answers


@pytest.fixture(scope="module")
def memory_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryHome]:
    with memory_home(tmp_path_factory.mktemp("c")) as home:
        yield home
        for peer in home.peers:
            peer.close()


@pytest.fixture(
    params=[(way, era) for way in ("relay", "--no-daemon") for era in (LEGACY, MODERN)],
    ids=" ".join,
)
def client(request: pytest.FixtureRequest, memory_user: MemoryHome) -> Peer:
    """A client of memory, in each way and by each protocol, in a project without notes."""
    way, era = request.param
    options = ["--no-daemon"] if way == "--no-daemon" else []
    project = memory_user.directory(re.sub(r"\W", "_", request.node.name)[-60:])
    peer = memory_user.connect("--tools", "memory", *options, era=era, cwd=project)
    if era == LEGACY:
        peer.initialize()
    return peer


def call(client: Peer, tool: str, **arguments: Any) -> tuple[str, bool]:
    """Call a tool; return what the model reads, and whether that is an error."""
    answer = client.ask("tools/call", {"name": tool, "arguments": arguments})
    return text_of(answer), bool(answer["result"].get("isError"))


def test_notes_are_kept_by_tools_that_answer_in_text(client: Peer) -> None:
    [tools] = [client.ask("tools/list")["result"]["tools"]]
    name, _ = call(client, "memory_store", content="Staging runs on port 5433", tags="db,staging")
    found, _ = call(client, "memory_search", query="which port", limit=1)
    whole, _ = call(client, "memory_get", hash=name)
    batch, _ = call(client, "memory_store_batch", notes=["a", {"content": "b", "tags": ["t"]}])
    told = [
        call(client, "memory_delete_by_tag", tags=["t"]),
        call(client, "memory_delete", hash=name),
        call(client, "memory_restore", hash=name),
        call(client, "memory_recall", query="last year"),
    ]
    health, _ = call(client, "memory_health")

    assert tools == memory_tools()
    assert re.fullmatch(r"[0-9a-f]{8}", name)
    assert re.fullmatch(r"[0-9a-f]{8}\n[0-9a-f]{8}", batch)
    assert found.splitlines()[0] == "1 of 1 note for 'which port':"
    assert found.splitlines()[1].startswith(name)
    assert whole.endswith("\n\nStaging runs on port 5433")
    assert told[:3] == [("1", False), ("yes", False), ("yes", False)]
    assert told[3][0].startswith("No notes for 'last year (")
    assert health.startswith("Memory ok: 2 notes in sqlite")


def test_failures_are_told_to_the_model_and_the_server_lives(client: Peer) -> None:
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("memory_get", {"hash": "00000000"}, "00000000"),
        ("memory_store", {"content": ""}, "nothing to remember"),
        ("memory_store", {}, "missing a required argument: 'content'"),
        ("memory_store", {"content": "x", "colour": "red"}, "'colour'"),
        ("memory_search", {"query": "x", "limit": "five"}, "`limit` is a whole number"),
        ("memory_search", {"query": ["x"]}, "A query is text, not list"),
        ("memory_purge", {"hashes": "00000000"}, "There is no tool 'memory_purge'; there are"),
        ("execute_code", {"code": "1"}, "There is no tool 'execute_code'"),
        ("memory_ingest", {"path": "x", "progress": 1}, "'progress'"),
    ]
    for tool, arguments, words in wrong:
        text, is_error = call(client, tool, **arguments)
        assert is_error, tool
        assert words in text

    assert call(client, "memory_list") == ("No notes.", False)


def test_projects_do_not_see_each_others_notes(memory_user: MemoryHome) -> None:
    one = memory_user.connect("--tools", "memory", cwd=memory_user.directory("one"))
    two = memory_user.connect("--tools", "memory", cwd=memory_user.directory("two"))
    named = memory_user.connect(
        "--tools", "memory", "--namespace", "team", cwd=memory_user.directory("two")
    )
    call(one, "memory_store", content="of one")
    call(named, "memory_store", content="of the team")

    assert call(two, "memory_list") == ("No notes.", False)
    assert call(one, "memory_list")[0].endswith("of one")
    assert call(named, "memory_list")[0].endswith("of the team")


@pytest.mark.parametrize("kind", SURFACES)
async def test_the_first_answers_of_a_relay_are_those_of_the_server(
    kind: str, make_config: MakeConfig
) -> None:
    config = make_config({}, tools=kind)
    async with running_stores(config) as stores:
        rehearsed = await collect_first_answers(lambda: make_memory_server(stores, config))

    assert surface_answers(__version__, kind) == rehearsed


def test_the_first_answers_do_not_wait_for_a_daemon(tmp_path: Path) -> None:
    with memory_home(tmp_path) as home:
        (home.home / "state").write_text("in the way of the daemon's log")
        peer = home.connect("--tools", "memory")
        listed = peer.ask("tools/list")["result"]["tools"]
        peer.close()

    assert listed == memory_tools()
