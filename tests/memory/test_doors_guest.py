"""`import memory` in guest code."""

import json
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from support import MakeApp, Running, test_server

from toolfold.app import running_app, running_shared
from toolfold.config.config import Config, load_config
from toolfold.sandbox.cpython.kernel import missing_walls

needs_walls = pytest.mark.skipif(missing_walls() is not None, reason=str(missing_walls()))
IN_BOTH = pytest.mark.parametrize("sandbox", ["monty", pytest.param("cpython", marks=needs_walls)])

NAMED = """
import memory

name = memory.store("Staging runs on port 5433", ["db", "staging"], memory_type="fact")
again = await memory.store(content="Staging runs on port 5433", tags="db")
assert name == again
found = memory.search("which port", 3)
best = found.memories[0]
print(best.hash == name, best.preview, best.tags, found.total, found.query)
note = memory.get(name)
print(note.content, note.type, note.version, note.links)
print(memory.update(name, metadata={"by": "Ada"}), memory.get(hash=name).metadata)
for page in memory.search_iter("port", page_size=1):
    print(len(page.memories))
print(memory.delete(name), memory.restore(name), memory.forget(memory_id=name))
print(memory.health().status, memory.health().count)
"""


@IN_BOTH
async def test_verbs_are_called_as_functions_and_give_named_tuples(
    running: MakeApp, sandbox: str
) -> None:
    async with running({}, sandbox=sandbox) as app:
        result = await app.run(NAMED)

    assert result.error is None
    first, second, third, *rest = result.output.splitlines()
    assert first == "True Staging runs on port 5433 ('db', 'staging') 1 which port"
    assert second == "Staging runs on port 5433 fact 1 ()"
    assert third.endswith("{'by': 'Ada'}")
    assert rest == ["1", "True True True", "ok 0"]


READY = "import memory\nmemory.search('x')\nmemory.health().ready"
LOOKS = """
import graph, memory

found = memory.search("notes", 3)
best = found.memories[0]
print(found, [best], best.preview, best[1] == best.preview, found.total)
memories, total, query = found
print(memory.get(best.hash), total, query)
print(graph.create_entity("Ada", "person", ["wrote notes"]).entity_type)
print(graph.search_graph("Ada", 1), graph.neighbors("Ada", 2), graph.open_nodes(["Ada"]))
"""


@needs_walls
async def test_results_look_the_same_in_both_interpreters(running: MakeApp) -> None:
    shown = []
    for sandbox in ("monty", "cpython"):
        async with running({}, sandbox=sandbox) as app:
            await app.run("import memory\nmemory.store('Notes on the engine', created=0)")
            with anyio.fail_after(100):  # until notes are found by their meaning too
                while (await app.run(READY)).text != "true":
                    pass
            result = await app.run(LOOKS)
        assert (result.error, result.tier) == (None, sandbox)
        shown.append(result.output)

    assert shown[0] == shown[1]
    assert shown[0].startswith("CompactSearchResult(memories=(CompactMemory(hash='")


GATHER = """
import asyncio, memory

names = await asyncio.gather(*[memory.store(f"Fact {n} of many", tags="many") for n in range(50)])
print(len(set(names)), memory.search_by_tag("many").total)
"""


@IN_BOTH
async def test_fifty_notes_are_stored_at_once(running: MakeApp, sandbox: str) -> None:
    async with running({}, sandbox=sandbox) as app:
        result = await app.run(GATHER)

    assert (result.error, result.output) == (None, "50 50\n")


ERRORS = """
import memory

for work in (lambda: memory.get("00000000"), lambda: memory.store("  "), lambda: memory.list(-1)):
    try:
        work()
    except RuntimeError as error:
        print(error)
print(memory.health().count)
"""


@IN_BOTH
async def test_failures_are_caught_as_runtime_errors(running: MakeApp, sandbox: str) -> None:
    async with running({}, sandbox=sandbox) as app:
        result = await app.run(ERRORS)

    assert result.error is None
    missing, empty, negative, count = result.output.splitlines()
    assert "00000000" in missing
    assert "nothing to remember" in empty
    assert "from 0 to 1,000, not -1" in negative
    assert count == "0"


@IN_BOTH
async def test_the_last_value_is_shown_as_json_with_names(running: MakeApp, sandbox: str) -> None:
    async with running({}, sandbox=sandbox) as app:
        await app.run("import memory\nmemory.store('a fox', tags='t', created=0)")
        shown = await app.run("import memory\nmemory.search('fox')")

    found = json.loads(shown.text)
    assert found.keys() == {"memories", "total", "query"}
    assert found["memories"][0].keys() == {
        "hash",
        "preview",
        "tags",
        "created",
        "score",
        "superseded",
    }
    assert (found["memories"][0]["preview"], found["memories"][0]["tags"]) == ("a fox", ["t"])


async def test_its_verbs_are_found_and_described_like_tools(running: MakeApp) -> None:
    async with running({}) as app:
        found = await app.run("import tools\ntools.search('remember a note for later')")
        described = await app.run("import tools\nprint(tools.describe('memory.search'))")

    assert "memory.store" in found.text
    assert "def search(query: str, limit: int" in described.output
    assert "class CompactSearchResult(NamedTuple):" in described.output


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ("memory.search('fox', colour='red')", "colour"),
        ("memory.serch('fox')", "serch"),
        ("memory.search(5)", "takes str"),
        ("memory.store()", "content"),
    ],
)
async def test_a_mistake_is_found_before_anything_ran(
    running: MakeApp, call: str, named: str
) -> None:
    async with running({}) as app:
        refused = await app.run(f"import memory\nmemory.store('stored first')\n{call}")
        after = await app.run("import memory\nmemory.health().count")

    assert not refused.success
    assert named in refused.text
    assert "stored first" not in refused.text
    assert after.text == "0"


async def test_memory_gives_way_to_a_server_that_is_called_so(running: MakeApp) -> None:
    async with running({"memory": test_server("null")}) as app:
        ours = await app.run("toolfold.memory.store('ours')\ntoolfold.memory.list().total")
        theirs = await app.run("memory.put(value=7)")

    assert ours.text == "1"
    assert json.loads(theirs.text)["value"] == 7


@pytest.fixture
def config_in(tmp_path: Path, home: Path) -> Callable[[str], Config]:
    """Return what reads the configuration as it is in a project."""

    def load(name: str) -> Config:
        project = tmp_path / name
        (project / ".git").mkdir(parents=True)
        environ = {"PATH": "", "HOME": str(tmp_path), "TOOLFOLD_HOME": str(home)}
        return load_config(cwd=project, environ=environ)

    return load


async def test_two_projects_do_not_see_each_other(config_in: Callable[[str], Config]) -> None:
    one, two = config_in("one"), config_in("two")
    list_all = "import memory\n[each.preview for each in memory.list().memories]"
    async with running_shared(one) as shared:
        async with running_app(one, shared) as first, running_app(two, shared) as second:
            await Running(first).run("import memory\nmemory.store('of one')")
            await Running(second).run("import memory\nmemory.store('of two')")
            seen = [await Running(app).run(list_all) for app in (first, second)]

    assert [json.loads(each.text) for each in seen] == [["of one"], ["of two"]]
