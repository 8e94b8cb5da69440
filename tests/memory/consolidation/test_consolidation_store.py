"""The contract of what keeps consolidations, whichever database it is."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fakes import FakeEmbedder
from stores import OpenBackend, draft, embed_all

from toolfold.errors import NotFound, StoreError
from toolfold.memory.consolidation.models import ConsolidationCounts
from toolfold.memory.consolidation.store import (
    ConsolidationLease,
    ConsolidationPlan,
    ConsolidationStore,
    Merge,
    Occasion,
    SeenNote,
)
from toolfold.memory.note_vectors import NoteUse, UseStore
from toolfold.memory.sql.consolidation import SqlConsolidations
from toolfold.memory.store import Filter, NoteChange, Store


class Stores(NamedTuple):
    notes: Store
    consolidations: ConsolidationStore
    uses: UseStore


@pytest.fixture
async def stores(open_backend: OpenBackend, tmp_path: Path) -> AsyncIterator[Stores]:
    async with open_backend(tmp_path) as backend:
        kept = SqlConsolidations(backend.database)
        yield Stores(backend.store, kept, kept)


async def add(stores: Stores, *contents: str, namespace: str = "one", **values: Any) -> list[int]:
    drafts = [draft(content, **values) for content in contents]
    return await stores.notes.add(namespace, drafts, now=1000.0)


async def seen(stores: Stores, namespace: str = "one") -> dict[int, SeenNote]:
    notes = await stores.consolidations.notes_after(namespace, 0, limit=100)
    return {note.key: SeenNote(note.hash, note.version) for note in notes}


def occasion(at: float = 2000.0, **counts: int) -> Occasion:
    found = ConsolidationCounts(**counts)
    return Occasion(at=at, strategy="balanced", days_back=None, counts=found)


async def live(stores: Stores, namespace: str = "one") -> set[str]:
    return {n.content for n in (await stores.notes.newest(namespace, Filter(), limit=100)).notes}


async def test_notes_are_read_in_pages_with_all_that_is_weighed(stores: Stores) -> None:
    keys = await add(stores, "alpha", "beta", tags=("x",), quality=0.25, metadata={"a": 1})
    await add(stores, "gamma", created=3000.0, thread="talk", position=0)
    await add(stores, "elsewhere", namespace="two")
    await embed_all(stores.notes, FakeEmbedder())
    [first, *_] = await stores.consolidations.notes_after("one", 0, limit=1)
    await stores.uses.add_uses([NoteUse("one", first.hash[:8], 2, 1, 5000.0)])
    await stores.uses.add_uses(
        [NoteUse("one", first.hash, 1, 0, 4000.0), NoteUse("two", "0" * 8, 1, 0, 1)]
    )

    [page] = await stores.consolidations.notes_after("one", 0, limit=1)
    rest = await stores.consolidations.notes_after("one", page.key, limit=10)

    assert (page.key, page.content, page.tags, page.metadata) == (
        keys[0],
        "alpha",
        ("x",),
        {"a": 1},
    )
    assert (page.quality, page.influence, page.version) == (0.25, 0.25, 1)
    assert (page.created, page.updated) == (1000.0, 1000.0)
    assert (page.gets, page.last_used) == (3, 5000.0)
    assert page.vector
    assert [(note.content, note.thread) for note in rest] == [("beta", None), ("gamma", "talk")]
    assert (rest[0].gets, rest[0].last_used) == (0, None)
    late = await stores.consolidations.notes_after("one", 0, limit=10, since=3000.0)
    assert [note.content for note in late] == ["gamma"]
    assert await stores.consolidations.notes_after("nowhere", 0, limit=10) == []


async def test_a_plan_is_done_and_counted(stores: Stores) -> None:
    a, b, c, d = await add(stores, "a b", "a b c", "a b c d", "a b c d e", tags=("t",))
    plan = ConsolidationPlan(
        merges=(Merge(b, (a,), ("t", "u")),),
        archive=(c,),
        links=((b, d),),
        influence={d: 0.125},
        findings=(b"one", b"two"),
        seen=await seen(stores),
    )

    applied = await stores.consolidations.apply("one", plan, occasion(looked_at=4, patterns=1))

    assert applied.counts == ConsolidationCounts(4, 1, 0, 1, 1, 1, 1)
    assert applied.skipped == 0
    assert await live(stores) == {"a b c", "a b c d e"}
    names = {
        note.key: note.hash for note in await stores.consolidations.notes_after("one", 0, limit=9)
    }
    assert (await stores.notes.get("one", names[b])).tags == ("t", "u")
    faded = (await stores.consolidations.notes_after("one", c, limit=1))[0]
    assert (faded.influence, faded.quality) == (0.125, 0.5)
    known = await stores.consolidations.known_findings("one", [b"one", b"two", b"three"])
    assert known == {b"one", b"two"}
    assert await stores.consolidations.known_findings("two", [b"one"]) == set()
    [past] = await stores.consolidations.past("one", limit=5)
    assert (past.id, past.at, past.counts) == (applied.id, 2000.0, applied.counts)


async def test_notes_that_changed_since_the_plan_was_made_are_left_alone(stores: Stores) -> None:
    a, b, c, d, e = await add(stores, "a", "b", "c", "d", "e")
    plan = ConsolidationPlan(
        merges=(Merge(a, (b,), ("u",)), Merge(c, (d,), ("u",))),
        archive=(e,),
        influence={c: 0.1},
        seen=await seen(stores),
    )
    await stores.notes.update("one", draft("a").hash, NoteChange(tags=("mine",)), now=1500.0)
    await stores.notes.delete("one", [draft("d").hash], now=1500.0)
    await stores.notes.delete("one", [draft("e").hash], now=1500.0)

    applied = await stores.consolidations.apply("one", plan, occasion())

    assert applied.skipped == 3
    assert applied.counts == ConsolidationCounts(faded=1)
    assert await live(stores) == {"a", "b", "c"}
    assert (await stores.notes.get("one", draft("a").hash)).tags == ("mine",)
    with pytest.raises(NotFound):
        await stores.notes.get("one", draft("e").hash)


async def test_a_plan_that_fails_half_way_has_done_nothing(stores: Stores) -> None:
    a, b = await add(stores, "a", "b")
    wrong: Any = {a: 0.2, b: None}
    plan = ConsolidationPlan(
        archive=(a,), influence=wrong, seen=await seen(stores), findings=(b"x",)
    )

    with pytest.raises(StoreError):
        await stores.consolidations.apply("one", plan, occasion())

    assert await live(stores) == {"a", "b"}
    assert await stores.consolidations.past("one", limit=5) == []
    assert await stores.consolidations.known_findings("one", [b"x"]) == set()


async def test_turns_are_taken_by_one_when_they_are_due(stores: Stores) -> None:
    await add(stores, "a")
    kept = stores.consolidations

    async def take(holder: str, now: float) -> float:
        return await kept.take_turn(
            ConsolidationLease("one", holder, now + 50), now=now, every_s=100
        )

    assert await take("x", 1000) == 0, "there was none yet"
    assert await take("y", 1010) == 40, "until the turn of the other ends"
    assert await take("x", 1010) == 0, "its own"
    assert await take("y", 1061) == 0, "the other may have died"
    await kept.end_turn(ConsolidationLease("one", "x", 0))
    assert await take("z", 1062) > 0, "only who holds a turn gives it back"
    await kept.end_turn(ConsolidationLease("one", "y", 0))
    await kept.apply("one", ConsolidationPlan(), occasion(at=1065))
    assert await take("x", 1100) == 65
    assert await take("x", 1165) == 0
    await kept.end_turn(ConsolidationLease("one", "x", 0))
    assert await kept.namespaces() == ["one"]


async def test_what_was_undone_is_not_due_before_somebody_consolidates(stores: Stores) -> None:
    [key] = await add(stores, "a")
    kept = stores.consolidations
    plan = ConsolidationPlan(influence={key: 0.1}, seen=await seen(stores))
    applied = await kept.apply("one", plan, occasion(at=2000))
    await kept.undo("one", applied.id, now=2001)

    assert await kept.take_turn(ConsolidationLease("one", "x", 1e9), now=1e8, every_s=100) == 100

    await kept.apply("one", ConsolidationPlan(), occasion(at=1e8))
    assert (
        await kept.take_turn(ConsolidationLease("one", "x", 1e9), now=1e8 + 100, every_s=100) == 0
    )
