"""Memory out into a file and in from one: complete, stable, and no harm in doing it twice."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import World, running_world

from toolfold.errors import BadInput, NotFound, StoreError
from toolfold.memory.transfer.records import MAX_LINE_BYTES


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running_world(tmp_path / "data") as world:
        yield world


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[World]:
    async with running_world(tmp_path / "other", namespace="elsewhere") as world:
        yield world


async def fill(world: World, folder: Path) -> None:
    """Remember one of everything."""
    memory = world.memory
    await memory.store("plain")
    first = await memory.store(
        "first \u2028 words",
        tags=["b", "a"],
        memory_type="decision",
        metadata={"z": 1, "a": [None, 1.5]},
        source="a test",
        thread="talk",
        position=3,
        quality=0.25,
        created=1_600_000_000.125,
    )
    world.clock.now += 10
    second = await memory.update(first, "second words", tags=["c"])
    world.clock.now += 10
    await memory.store("newer", supersedes=[await memory.store("older")], associated=[second])
    await memory.delete(await memory.store("gone"))
    await world.events.record_event("deploy", "to production", "success", 12.5, "s1", {"n": 1})
    await world.graph.create_entities(
        [{"name": "Ada", "entityType": "person", "observations": ["likes\ntea", "codes"]}]
    )
    await world.graph.create_relations([{"from": "Ada", "to": "Acme", "relationType": "at"}])
    folder.mkdir(exist_ok=True)
    (folder / "guide.md").write_text("# Guide\n\nHow to do it.\n\n# More\n\nAnd more.\n")
    await world.documents.ingest(str(folder), tags="docs")


def counts(found: Any) -> dict[str, tuple[int, int, int]]:
    return {each.what: tuple(each[1:]) for each in found.changes}


async def test_everything_comes_back_as_it_was(world: World, other: World, tmp_path: Path) -> None:
    await fill(world, tmp_path / "files")
    content = await world.exported()

    found = await other.take(content)

    assert counts(found) == {
        "notes": (7, 0, 0),
        "versions": (1, 0, 0),
        "events": (1, 0, 0),
        "documents": (1, 0, 0),
        "entities": (1, 0, 0),
        "relations": (1, 0, 0),
    }
    assert await other.exported() == content
    [hit] = (await other.memory.search("second words", limit=1)).memories
    [before, now] = await other.memory.history(hit.hash)
    assert (before.content, now.content, now.tags) == ("first \u2028 words", "second words", ("c",))
    assert (now.created, now.thread, now.position) == (1_600_000_000.125, "talk", 3)
    assert (await other.memory.get((await older(content))[:8])).until is not None
    [event] = (await other.events.recall_events()).events
    assert (event.event_type, event.duration_ms) == ("deploy", 12.5)
    assert (await other.documents.ingest(str(tmp_path / "files"))).unchanged == 1


async def older(content: bytes) -> str:
    lines = [json.loads(line) for line in content.split(b"\n") if line]
    [found] = [line["hash"] for line in lines if line.get("content") == "older"]
    return str(found)


async def test_what_a_consolidation_archived_stays_archived(world: World, other: World) -> None:
    name = await world.memory.store("an old thought")
    await world.memory.delete(name)
    content = (await world.exported()).replace(b'"archived":false', b'"archived":true')

    await other.take(content)

    assert await other.exported() == content
    assert (await other.memory.list()).total == 0
    assert (await other.memory.get(name)).content == "an old thought"


async def test_what_is_imported_is_found_by_words_and_by_meaning(
    world: World, other: World
) -> None:
    await world.memory.store("the quick brown fox", tags="animals")
    await other.take(await world.exported())

    await other.memory.until_ready()

    [hit] = (await other.memory.search("brown fox", explain=True)).memories
    assert "meaning" in hit.why  # type: ignore[union-attr]
    assert (await other.memory.search_by_tag("animals")).total == 1


async def test_the_same_memory_makes_the_same_bytes(world: World, tmp_path: Path) -> None:
    await fill(world, tmp_path / "files")

    assert await world.exported("one") == await world.exported("two")


async def test_importing_twice_changes_nothing(world: World, other: World, tmp_path: Path) -> None:
    await fill(world, tmp_path / "files")
    content = await world.exported()
    await other.take(content)
    before = other.rows()
    other.clock.now += 1000

    found = await other.take(content)

    assert other.rows() == before
    assert all(each.added == each.updated == 0 for each in found.changes)
    assert not found.faults


async def test_importing_into_itself_changes_nothing(world: World, tmp_path: Path) -> None:
    await fill(world, tmp_path / "files")
    before = world.rows()

    found = await world.take(await world.exported())

    assert world.rows() == before
    assert all(each.added == each.updated == 0 for each in found.changes)


async def test_a_dry_run_says_what_would_happen_and_changes_nothing(
    world: World, other: World, tmp_path: Path
) -> None:
    await fill(world, tmp_path / "files")
    content = await world.exported()
    before = other.rows()

    rehearsed = await other.take(content, dry_run=True)

    assert other.rows() == before
    assert rehearsed.changes == (await other.take(content)).changes
    assert "Nothing was changed" in repr(rehearsed)


async def test_a_note_that_was_changed_there_is_brought_forward_here(
    world: World, other: World
) -> None:
    name = await world.memory.store("port is 8080", tags="net")
    await other.take(await world.exported())
    await other.memory.update(name, tags=["net", "mine"])
    world.clock.now += 100
    await world.memory.update(name, "port is 9090")

    found = await other.take(await world.exported())

    assert counts(found)["notes"] == (0, 1, 0)
    note = await other.memory.get(name)
    assert (note.content, set(note.tags)) == ("port is 9090", {"net", "mine"})
    assert (await other.memory.list()).total == 1
    assert counts(await other.take(await world.exported()))["notes"] == (0, 0, 1)


async def test_what_a_note_said_once_may_be_what_another_says_now(
    world: World, other: World
) -> None:
    first = await world.memory.store("the port is 80")
    world.clock.now += 10
    await world.memory.update(first, "the port is 81")
    world.clock.now += 10
    await world.memory.store("the port is 80")
    content = await world.exported()

    await other.take(content)

    assert await other.exported() == content
    assert (await other.memory.list()).total == 2


async def test_a_note_that_was_changed_on_both_sides_stays_one(world: World, other: World) -> None:
    name = await world.memory.store("the port is 80")
    await other.take(await world.exported())
    for number in range(3):
        other.clock.now += 10
        await other.memory.update(name, tags=[f"mine{number}"])
        world.clock.now += 100
        await world.memory.update(name, f"the port is 9{number}")
        found = await other.take(await world.exported())
        assert counts(found)["notes"] == (0, 1, 0)

    assert (await other.memory.list()).total == 1
    assert (await other.memory.get(name)).content == "the port is 92"


async def test_a_note_that_was_changed_here_since_stays(world: World, other: World) -> None:
    name = await world.memory.store("port is 8080")
    content = await world.exported()
    await other.take(content)
    other.clock.now += 100
    await other.memory.update(name, "port is 9090")

    found = await other.take(content)

    assert counts(found)["notes"] == (0, 0, 1)
    assert (await other.memory.get(name)).content == "port is 9090"


async def test_an_import_neither_deletes_nor_restores_what_is_here(
    world: World, other: World
) -> None:
    name = await world.memory.store("a passing thought")
    early = await world.exported()
    await other.take(early)
    world.clock.now += 100
    await world.memory.delete(name)
    late = await world.exported()

    assert counts(await other.take(late))["notes"] == (0, 0, 1)
    assert (await other.memory.list()).total == 1
    await other.memory.delete(name)
    assert counts(await other.take(early))["notes"] == (0, 0, 1)
    assert (await other.memory.list()).total == 0


async def test_bad_lines_are_named_by_number_and_the_rest_are_taken(
    world: World, other: World
) -> None:
    for text in ("one", "two"):
        await world.memory.store(text)
    await world.events.record_event("x")
    head, one, two, event, end = (await world.exported()).decode().split("\n")[:5]
    lines = [
        *(head, one, "not json", "[]", '{"type":"riddle"}'),
        *(two.replace('"two"', '"three"'), '{"type":"note","content":"x"}'),
        *(event.replace('"at":', '"at":"x","_":'), '{"type":"entity","name":3}'),
        *('{"type":"entity","name":"Ada","entityType":"person","observations":[]}', event, end),
    ]

    found = await other.take("\n".join(lines))

    assert counts(found) == {
        "notes": (1, 0, 0),
        "events": (1, 0, 0),
        "entities": (1, 0, 0),
    }
    assert sorted(fault.line for fault in found.faults) == [0, 3, 4, 5, 6, 7, 8, 9]
    assert "hash" in next(fault.reason for fault in found.faults if fault.line == 6)
    assert "line 3" in repr(found)


async def test_a_file_that_was_cut_is_taken_as_far_as_it_goes_and_said_to_be_cut(
    world: World, other: World
) -> None:
    for number in range(20):
        await world.memory.store(f"note {number}")
    content = await world.exported()

    found = await other.take(content[: len(content) // 2])

    assert 0 < counts(found)["notes"][0] < 20
    assert "is truncated" in repr(found)


async def test_a_line_of_any_length_is_bounded(world: World) -> None:
    head = '{"format":"toolfold-memory","version":1}\n'
    long = '{"type":"note","content":"' + "x" * MAX_LINE_BYTES + '"}\n'

    found = await world.take(head + long + '{"type":"end","lines":1}')

    assert [fault.line for fault in found.faults] == [2]
    assert "longer than" in found.faults[0].reason


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"hello", "not recognized"),
        (b'{"a": 1}', "another kind"),
        (b'{"format":"toolfold-memory","version":2}', "newer"),
        (b'{"format":"toolfold-memory","version":"x"}', "newer"),
        (b"\x89PNG\r\n", "not recognized"),
        (b"SQLite format 3\0" + bytes(100), "cannot be read|damaged|another kind"),
    ],
)
async def test_a_file_of_another_kind_is_refused(world: World, content: bytes, word: str) -> None:
    with pytest.raises((BadInput, StoreError), match=word):
        await world.take(content)


async def test_our_own_database_is_not_taken_for_an_export(world: World) -> None:
    with pytest.raises(BadInput, match="another kind"):
        await world.transfer.import_file(str(world.directory / "memory.db"))


async def test_no_file_is_no_import(world: World) -> None:
    with pytest.raises(NotFound):
        await world.transfer.import_file(str(world.directory / "none"))
    with pytest.raises(BadInput, match="whole path"):
        await world.transfer.import_file("export.jsonl")


async def test_server_memory_goes_in_and_comes_out_again(world: World, other: World) -> None:
    lines = [
        '{"type":"entity","name":"Ada","entityType":"person","observations":["codes","é"]}',
        '{"type":"relation","from":"Ada","to":"Acme","relationType":"works at"}',
    ]
    text = "\n".join([lines[0], "nonsense", lines[1]])

    found = await world.take(text)

    assert (found.source, [fault.line for fault in found.faults]) == ("server-memory", [2])
    assert counts(found) == {"entities": (1, 0, 0), "relations": (1, 0, 0)}
    path = world.directory / "graph.jsonl"
    out = await world.transfer.export_file(str(path), "server-memory")
    assert path.read_text() == "\n".join(lines) + "\n"
    assert out.counts == {"entities": 1, "relations": 1}
    again = await world.take(text)
    assert counts(again) == {"entities": (0, 0, 1), "relations": (0, 0, 1)}


async def test_a_dry_run_of_a_graph_counts_what_is_new(world: World) -> None:
    entity = '{"type":"entity","name":"Ada","entityType":"p","observations":%s}'
    relation = '{"type":"relation","from":"Ada","to":"Acme","relationType":"at"}'
    await world.take("\n".join([entity % '["a"]', relation]))
    more = "\n".join([entity % '["a","b"]', (entity % "[]").replace("Ada", "Eve"), relation])

    rehearsed = await world.take(more, dry_run=True)

    assert rehearsed.changes == (await world.take(more)).changes
    assert counts(rehearsed)["observations"] == (1, 0, 0)


async def test_an_export_never_takes_the_place_of_a_database(world: World) -> None:
    before = (world.directory / "memory.db").read_bytes()
    with pytest.raises(BadInput, match="database"):
        await world.transfer.export_file(str(world.directory / "memory.db"))
    with pytest.raises(BadInput, match="folder"):
        await world.transfer.export_file(str(world.directory))
    with pytest.raises(BadInput, match="format"):
        await world.transfer.export_file(str(world.directory / "x"), "xml")  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="cannot be written"):
        await world.transfer.export_file(str(world.directory / "none" / "x"))
    assert (world.directory / "memory.db").read_bytes() == before


async def test_only_the_user_can_read_an_export_and_nothing_else_is_left(world: World) -> None:
    await world.memory.store("a secret")
    await world.exported()

    assert (world.directory / "export.jsonl").stat().st_mode & 0o777 == 0o600
    assert not list(world.directory.glob(".export*"))


async def test_progress_is_told_up_to_the_end(world: World, other: World) -> None:
    await world.memory.store_batch([f"note {number}" for number in range(600)])
    size = len(await world.exported())
    told: list[tuple[int, int, str]] = []

    await other.transfer.import_file(
        str(world.directory / "export.jsonl"), progress=lambda *news: told.append(news)
    )

    assert len(told) >= 2
    assert {news[1:] for news in told} == {(size, "toolfold")}
    assert [news[0] for news in told] == sorted(news[0] for news in told)


words = st.text('abc äß漢\n\u2028"\\', min_size=1, max_size=12).filter(str.strip)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
deeds = st.lists(
    st.one_of(
        st.tuples(
            st.just("store"),
            st.fixed_dictionaries(
                {
                    "content": words,
                    "tags": st.lists(st.sampled_from(["x", "y", "ö"]), max_size=2),
                    "metadata": st.dictionaries(words, values, max_size=2),
                    "created": st.floats(0, 2e9),
                    "quality": st.floats(0, 1),
                },
            ),
        ),
        st.tuples(st.just("place"), st.tuples(words, words, st.integers(-(2**40), 2**40))),
        st.tuples(st.just("update"), st.tuples(st.integers(0, 9), words)),
        st.tuples(st.just("delete"), st.integers(0, 9)),
        st.tuples(st.just("restore"), st.integers(0, 9)),
        st.tuples(st.just("supersede"), st.tuples(words, st.integers(0, 9))),
        st.tuples(st.just("event"), st.tuples(words, st.floats(0, 1e6) | st.none())),
        st.tuples(st.just("entity"), st.tuples(words, st.lists(words, max_size=2))),
    ),
    max_size=14,
)


async def do(world: World, deed: str, given: Any, names: list[str]) -> None:
    memory = world.memory
    if deed == "store":
        names.append(await memory.store(**given))
    elif deed == "place":
        names.append(await memory.store(given[0], thread=given[1], position=given[2]))
    elif deed == "update":
        names.append(await memory.update(names[given[0] % len(names)], given[1]))
    elif deed in ("delete", "restore"):
        await getattr(memory, deed)(names[given % len(names)])
    elif deed == "supersede":
        names.append(await memory.store(given[0], supersedes=names[given[1] % len(names)]))
    elif deed == "event":
        await world.events.record_event(given[0], duration_ms=given[1])
    else:
        entity = {"name": given[0], "entityType": "t", "observations": given[1]}
        await world.graph.create_entities([entity])


@settings(max_examples=20, deadline=None)
@given(deeds)
def test_export_import_export_is_the_same_whatever_happened(given: list[tuple[str, Any]]) -> None:
    async def run() -> None:
        with TemporaryDirectory() as directory:
            async with (
                running_world(Path(directory) / "one") as world,
                running_world(Path(directory) / "two", namespace="n2") as other,
            ):
                names = [await world.memory.store("the first")]
                for deed, values in given:
                    world.clock.now += 1
                    try:
                        await do(world, deed, values, names)
                    except (BadInput, NotFound):
                        continue
                content = await world.exported()
                found = await other.take(content)
                assert found.fault_count == 0, repr(found)
                assert await other.exported() == content
                before = other.rows()
                await other.take(content)
                assert other.rows() == before

    anyio.run(run)
