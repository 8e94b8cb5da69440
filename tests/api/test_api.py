"""Every function of `toolfold.api`, through the daemon and without it."""

import asyncio
import inspect
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from api.memory_home import MemoryHome

from toolfold import api
from toolfold.errors import BadInput, NotFound
from toolfold.memory.models import CompactMemory, CompactSearchResult, ExplainedMemory, Note
from toolfold.memory.service import Memory
from toolfold.memory.verbs import VERBS

VERB_NAMES = [verb.name for verb in VERBS.values() if verb.service == "notes"]


def until_ready() -> None:
    """Wait until notes are found by their meaning too."""
    deadline = time.monotonic() + 90
    while not api.health().ready:
        api.search("anything")  # which has the vectors loaded
        assert time.monotonic() < deadline, api.health()


@pytest.mark.parametrize("name", VERB_NAMES)
def test_a_function_takes_what_the_verb_of_the_service_takes(name: str) -> None:
    ours = inspect.signature(getattr(api, name)).parameters.values()
    theirs = [*inspect.signature(getattr(Memory, name)).parameters.values()][1:]

    assert [(each.name, each.kind, each.default) for each in ours] == [
        (each.name, each.kind, each.default) for each in theirs
    ]


def test_every_verb_of_notes_is_a_function_and_public() -> None:
    assert set(VERB_NAMES) <= set(api.__all__)
    assert all(getattr(api, name).__doc__ for name in VERB_NAMES)


def test_which_functions_are_asked_again_is_what_the_verbs_say() -> None:
    for name in VERB_NAMES:
        if name != "search_iter":
            source = inspect.getsource(getattr(api, name))
            assert ("may_repeat=True" in source) == VERBS[f"memory.{name}"].may_repeat, name


def test_a_note_is_stored_found_and_shown_whole(memory: None) -> None:
    moment = datetime(2026, 3, 1, 12, 0, tzinfo=timezone(timedelta(hours=2)))
    first = api.store("Staging runs on port 5433", ["db", "staging"], "fact")
    second = api.store(
        "The cluster moves in May",
        tags="plan,db",
        memory_type="decision",
        metadata=MappingProxyType({"by": "Ada", "votes": [1, 2.5, None, True]}),
        source="minutes.md",
        thread="meeting",
        position=3,
        quality=0.9,
        created=moment,
        associated=first,
    )
    found = api.search("port staging", limit=1)
    note = api.get(second)

    assert isinstance(found, CompactSearchResult)
    assert found.query == "port staging"
    [memory_found] = found.memories
    assert isinstance(memory_found, CompactMemory)
    assert memory_found[:3] == (first, "Staging runs on port 5433", ("db", "staging"))
    assert abs(memory_found.created - time.time()) < 60
    assert 0 < memory_found.score <= 1
    assert isinstance(note, Note)
    assert note.hash.startswith(second)
    assert (note.content, note.type) == ("The cluster moves in May", "decision")
    assert (note.tags, note.source) == (("plan", "db"), "minutes.md")
    assert note.metadata == {"by": "Ada", "votes": [1, 2.5, None, True]}
    assert (note.thread, note.position, note.quality) == ("meeting", 3, 0.9)
    assert note.created == moment.timestamp()
    assert [(link.kind, link.hash[:8]) for link in note.links] == [("associated", first)]


def test_the_same_content_again_is_the_same_note(memory: None) -> None:
    assert api.store("once", "a") == api.store("once", "b") == api.remember("once")
    assert api.list().total == 1
    assert set(api.get(api.store("once")).tags) == {"a", "b"}


def test_total_counts_all_that_match(memory: None) -> None:
    hashes = api.store_batch(
        [f"Fact {number} about foxes" for number in range(40)] + [{"content": "a", "tags": ["x"]}]
    )
    found = api.search("foxes", limit=3)
    listed = api.list(2, 5)

    assert len(hashes) == 41
    assert (len(found.memories), found.total >= 40) == (3, True)
    assert (len(listed.memories), listed.total) == (2, 41)
    assert api.list(tags="x").total == 1
    assert repr(found).startswith(f"3 of {found.total} notes for 'foxes':\n")


def local(year: int) -> datetime:
    """Return the beginning of a year, as clocks here show it."""
    return datetime(year, 1, 1)  # noqa: DTZ001


def test_searches_take_filters_and_explain_themselves(memory: None) -> None:
    old = api.store(
        "foxes in winter", ["fox", "cold"], "fact", created=datetime(2020, 1, 1, tzinfo=UTC)
    )
    new = api.store("foxes in summer", ["fox"], "note", created=datetime(2024, 6, 1, tzinfo=UTC))

    def hashes(found: CompactSearchResult) -> set[str]:
        return {each.hash for each in found.memories}

    assert hashes(api.search("foxes", tags=["fox", "cold"], tag_match="all")) == {old}
    assert hashes(api.search("foxes", memory_type="note")) == {new}
    assert hashes(api.search("foxes", after=local(2023))) == {new}
    assert hashes(api.search("foxes", before="2023-01-01")) == {old}
    assert hashes(api.search("foxes", before=local(2023).timestamp())) == {old}
    assert hashes(api.search_by_tag({"fox", "cold"}, "all")) == {old}
    assert hashes(api.search_by_tag("fox")) == {old, new}
    assert api.search("foxes", min_score=1.0).total == 0
    [first, *_] = api.search("foxes", explain=True).memories
    assert isinstance(first, ExplainedMemory)
    assert "words" in first.why


def test_several_queries_are_answered_in_their_order(memory: None) -> None:
    api.store_batch(["the port is 5433", "the cat is grey"])

    port, cat, nothing = api.search_batch(("port", "cat", ""), limit=1)

    assert [found.memories[0].preview for found in (port, cat)] == [
        "the port is 5433",
        "the cat is grey",
    ]
    assert nothing.total == 2


def test_time_in_words_is_honoured(memory: None) -> None:
    today = api.store("we chose postgres")
    api.store("we chose sqlite", created=datetime.now(UTC) - timedelta(days=400))

    found = api.recall("what did we choose today", k=5)

    assert [each.hash for each in found.memories] == [today]
    assert found.query.startswith("what did we choose today (")


def test_pages_come_as_they_are_asked_for_and_are_stable_under_writes(memory: None) -> None:
    api.store_batch([f"Fact {number} about foxes" for number in range(30)])
    pages = api.search_iter("", page_size=10)
    seen = [each.hash for each in next(pages).memories]

    api.store("written meanwhile")
    rest = list(pages)

    seen += [each.hash for page in rest for each in page.memories]
    assert (len(rest), len(seen), len(set(seen))) == (2, 30, 30)
    assert [page.total for page in rest] == [30, 30]
    assert api.list().total == 31


def test_pages_may_be_left_half_way(memory: None) -> None:
    api.store_batch([f"Fact {number} about foxes" for number in range(30)])
    for _ in range(12):
        pages = api.search_iter("foxes", page_size=1)
        assert next(pages).total >= 30
        del pages

    assert api.search("foxes").total >= 30


def test_a_note_is_changed_and_keeps_its_past(memory: None) -> None:
    before = api.store("port 5433", "db", metadata={"a": 1, "b": 2})
    after = api.update(before, "port 5434", tags=["db", "new"], metadata={"a": None})
    versions = api.history(after)

    assert before != after
    assert api.get(before) == api.get(after)
    assert [note.content for note in versions] == ["port 5433", "port 5434"]
    assert [note.version for note in versions] == [1, 2]
    assert versions[-1].metadata == {"b": 2}
    assert versions[-1].tags == ("db", "new")


def test_notes_are_deleted_restored_and_erased(memory: None) -> None:
    one, two, three, four = api.store_batch(
        ["one", "two", {"content": "three", "tags": "t"}, {"content": "four", "tags": "t"}]
    )

    assert (api.delete(one), api.delete(one), api.forget(two)) == (True, False, True)
    assert (api.restore(one), api.restore(one)) == (True, False)
    assert api.delete_batch([one, two]) == 1
    assert api.delete_by_tag("t") == 2
    assert api.health().count == 0
    assert api.purge([one, three]) == 2
    assert (api.restore(one), api.restore(four)) == (False, True)
    assert [each.hash for each in api.list().memories] == [four]


def test_what_supersedes_a_note_takes_its_place(memory: None) -> None:
    old = api.store("the port is 5433")
    new = api.store("the port is 5434", supersedes=[old])

    found = {each.hash: each.superseded for each in api.list().memories}
    assert found[new] == ""
    assert found[old].startswith(f"by {new} on ")
    assert api.reinstate(old)
    assert not any(each.superseded for each in api.list().memories)


def test_health_says_how_the_memory_is(memory: None) -> None:
    api.update(api.store("one"), "two")
    until_ready()

    assert api.health() == ("ok", 1, "sqlite", True)
    assert repr(api.health()) == "Memory ok: 1 note in sqlite, ready."


def test_notes_are_found_by_meaning_alone(memory: None) -> None:
    wanted = api.store("The physician prescribed antibiotics for the infection")
    api.store_batch([f"Invoice {number} was paid late" for number in range(20)])
    until_ready()

    assert api.search("doctor gave medicine", limit=1).memories[0].hash == wanted


def test_failures_are_raised_by_their_class(memory: None) -> None:
    kept = api.store("kept")
    wrong: list[tuple[type[Exception], str, Any]] = [
        (NotFound, "get", ("00000000",)),
        (NotFound, "update", ("00000000", "other")),
        (NotFound, "history", ("ffffffff",)),
        (BadInput, "get", ("not a hash!",)),
        (BadInput, "store", ("",)),
        (BadInput, "store_batch", (["fine", {"content": "x", "tagz": []}],)),
        (BadInput, "search", ("x", -1)),
        (BadInput, "search_by_tag", ([],)),
        (BadInput, "delete_by_tag", ("",)),
        (BadInput, "list", (5, -1)),
        (BadInput, "search_batch", ("one text",)),
    ]
    for kind, name, arguments in wrong:
        with pytest.raises(kind):
            getattr(api, name)(*arguments)
    with pytest.raises(BadInput):
        next(api.search_iter("x", page_size=0))
    with pytest.raises(BadInput, match="'any' or by 'all'"):
        api.search("x", tag_match="most")  # type: ignore[arg-type]

    assert [each.hash for each in api.list().memories] == [kept]


def cyclic() -> Any:
    knot: list[Any] = []
    knot.append(knot)
    return knot


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "values",
    [
        {"content": b"bytes"},
        {"content": object()},
        {"content": 5},
        {"content": "x", "metadata": {"a": object()}},
        {"content": "x", "metadata": {"a": b"bytes"}},
        {"content": "x", "metadata": {(1, 2): 3}},
        {"content": "x", "metadata": {"a": cyclic()}},
        {"content": "x", "metadata": {"a": nested(900)}},
        {"content": "x", "metadata": {"a": nested(100_000)}},
        {"content": "x", "metadata": {"a": 10**5000}},
        {"content": "x", "metadata": {"a": float("nan")}},
        {"content": "x", "metadata": [1]},
        {"content": "x", "created": datetime.min},  # noqa: DTZ901
        {"content": "x", "created": "yesterday"},
        {"content": "x", "quality": float("inf")},
        {"content": "x", "tags": iter(["a"])},
    ],
    ids=lambda values: "-".join(values),
)
def test_what_no_note_can_hold_is_refused_by_name(memory: None, values: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as raised:
        api.store(**values)

    assert 10 < len(str(raised.value)) < 500
    assert api.list().total == 0


def test_it_works_inside_a_running_event_loop(memory: None) -> None:
    async def main() -> str:
        await asyncio.sleep(0)
        name = api.store("from within a loop")
        await asyncio.sleep(0)
        return api.search("loop").memories[0].hash if api.get(name) else ""

    assert asyncio.run(main()) == api.store("from within a loop")


def test_eight_threads_may_call_at_once(memory: None) -> None:
    def work(thread: int) -> list[str]:
        hashes = []
        for number in range(25):
            hashes.append(api.store(f"note {number} of thread {thread}", tags=f"t{thread}"))
            assert api.get(hashes[-1]).tags == (f"t{thread}",)
        return hashes

    with ThreadPoolExecutor(8) as threads:
        stored = {name for hashes in threads.map(work, range(8)) for name in hashes}

    assert len(stored) == 200
    assert api.health().count == 200
    assert all(api.search_by_tag(f"t{thread}").total == 25 for thread in range(8))


def test_notes_belong_to_the_project_around_the_current_directory(
    memory: None, module_home: MemoryHome, monkeypatch: pytest.MonkeyPatch, project: Path
) -> None:
    other = module_home.directory(f"{project.name}-other")
    (other / "deep" / "down").mkdir(parents=True)
    api.store("mine")
    monkeypatch.chdir(other)
    api.store("theirs")
    monkeypatch.chdir(other / "deep" / "down")
    below = api.list()
    monkeypatch.setenv("TOOLFOLD_MEMORY_NAMESPACE", f"{project.name}-third")
    api.store("nobody's")
    named = api.list()
    monkeypatch.delenv("TOOLFOLD_MEMORY_NAMESPACE")
    monkeypatch.chdir(project)

    assert [each.preview for each in below.memories] == ["theirs"]
    assert [each.preview for each in named.memories] == ["nobody's"]
    assert [each.preview for each in api.list().memories] == ["mine"]


def test_a_directory_that_is_gone_is_a_clear_error(
    memory: None, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = project / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    with pytest.raises(BadInput, match="current directory"):
        api.health()
    monkeypatch.chdir(project)
    assert api.health().count == 0


def test_an_answer_that_is_too_long_is_refused_and_the_next_one_comes(
    memory: None, way: str
) -> None:
    name = api.store("x" * 1_000_000)
    for letter in "abcdefghijklmnopq":
        name = api.update(name, letter * 1_000_000)

    if way == "daemon":
        with pytest.raises(BadInput, match="Ask for less at once"):
            api.history(name)
    else:
        assert len(api.history(name)) == 18
    assert api.health().count == 1
