"""The verbs of consolidation, on a made-up history of a project."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from consolidating import World, running_world

from toolfold.errors import BadInput, NotFound

INCIDENTS = [
    "The staging deploy failed because the migration locked the orders table",
    "Another staging deploy failed: the migration locked the invoices table",
    "The staging deploy failed again, the migration locked the users table",
    "Staging deploy failed on the migration, which locked the payments table",
    "The staging deploy failed once more since the migration locked the carts table",
]
OTHERS = [
    "Ada prefers tea in the mornings",
    "The office plant wants water twice a week",
    "Invoices are numbered by country and year",
    "Bob wrote the parser for the query language",
    "Our logo is a folded paper crane",
    "Kubernetes upgrades are announced in the platform channel",
    "The printer on the third floor has no toner",
    "Lunch is ordered from the Vietnamese kitchen",
    "Passwords are rotated by the vault every quarter",
    "The search index is rebuilt at two in the night",
    "Customers in Norway pay without value added tax",
    "The mascot of the team is a sleepy otter",
    "Feature flags live in a table of their own",
    "Retries back off exponentially with jitter",
    "The warehouse in Leipzig ships on weekdays only",
    "Support answers within four working hours",
]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running_world(tmp_path) as world:
        yield world


async def tell_history(world: World) -> list[str]:
    """Store the history of a project over some weeks, and return the hashes of its incidents."""
    names = []
    for number, text in enumerate([*INCIDENTS, *OTHERS]):
        world.later(1)
        name = await world.memory.store(text, tags="incident" if number < len(INCIDENTS) else None)
        names.append(name)
    await world.memory.until_ready()
    return names[: len(INCIDENTS)]


async def test_what_recurs_in_a_project_is_found_as_pattern_and_as_cluster(world: World) -> None:
    incidents = await tell_history(world)

    found = await world.consolidation.consolidate("quality")

    pattern = found.patterns[0]
    assert set(pattern.hashes) == set(incidents)
    assert 0.8 < pattern.confidence < 1
    assert {"migration", "locked"} & set(pattern.text.replace(",", " ").split())
    [cluster] = found.clusters
    assert set(cluster.hashes) == set(incidents)
    assert set(cluster.words) <= {"staging", "deploy", "failed", "migration", "locked", "table"}
    assert any(part in text for text in INCIDENTS for part in cluster.summary.split(" … "))
    assert found.counts.looked_at == len(INCIDENTS) + len(OTHERS)
    linked = {each.hash for each in found.associations} | {e.other for e in found.associations}
    assert linked <= set(incidents)
    note = await world.memory.get(found.associations[0].hash)
    assert found.associations[0].other in {link.hash[:8] for link in note.links}
    assert {link.kind for link in note.links} == {"associated"}


async def test_the_newer_of_two_equal_notes_stays_with_the_tags_of_both(world: World) -> None:
    old = await world.memory.store("The API listens on port 8080", tags="api")
    world.later(1)
    new = await world.memory.store("the API listens on port 8080.", tags="ports")
    other = await world.memory.store("The API listens on port 8081", tags="api")

    found = await world.consolidation.consolidate("minimal")

    [duplicate] = found.duplicates
    assert (duplicate.hash, duplicate.superseded) == (new, (old,))
    assert found.counts.superseded == 1
    survivor = await world.memory.get(new)
    assert set(survivor.tags) == {"api", "ports"}
    assert [(link.kind, link.hash[:8]) for link in survivor.links] == [("supersedes", old)]
    assert {each.hash for each in (await world.memory.search("port API")).memories} == {new, other}
    with pytest.raises(NotFound, match="restore"):
        await world.memory.get(old)
    assert await world.memory.restore(old)
    assert (await world.memory.get(old)).tags == ("api",)


async def test_the_better_note_stays_whichever_is_newer(world: World) -> None:
    rated = await world.memory.store("Ship small", quality=0.9)
    world.later(1)
    await world.memory.store("ship small!")

    found = await world.consolidation.consolidate()

    assert [each.hash for each in found.duplicates] == [rated]


async def test_pinned_notes_and_parts_of_conversations_are_never_hidden(world: World) -> None:
    await world.memory.store("Thanks", tags="pinned")
    await world.memory.store("thanks!", tags="IMPORTANT")
    for place in range(3):
        await world.memory.store(
            "Thanks." * (place + 1), thread="talk", position=place, quality=0.1
        )
    await world.memory.store("Poor and pinned", tags="important", quality=0.1)
    world.later(1000)
    await world.memory.store("something new")
    before = {name: world.dump()[name] for name in ("notes", "links", "versions")}

    found = await world.consolidation.consolidate("quality")

    assert (found.counts.superseded, found.counts.archived) == (0, 0)
    assert {name: world.dump()[name] for name in before} == before


async def test_what_nobody_uses_fades_and_comes_back_when_it_is_used(world: World) -> None:
    first = await world.memory.store("The alpha gate opens at nine")
    second = await world.memory.store("The omega gate opens at nine")
    world.later(400)
    await world.memory.get(second)
    await world.usage.write()
    await world.memory.until_ready()

    found = await world.consolidation.consolidate("speed")

    assert found.counts.faded == 1
    best = [each.hash for each in (await world.memory.search("gate opens")).memories]
    assert best == [second, first]
    assert (await world.memory.get(first)).quality == 0.5
    await world.usage.write()
    assert (await world.consolidation.consolidate("speed")).counts.faded == 1
    scores = [each.score for each in (await world.memory.search("gate opens")).memories]
    assert scores[0] == scores[1]


async def test_a_memory_that_nobody_opened_for_years_has_not_faded(world: World) -> None:
    await tell_history(world)
    world.later(2000)

    assert not any((await world.consolidation.consolidate("speed")).counts[3:])


async def test_the_poor_and_unused_is_archived_and_can_still_be_had(world: World) -> None:
    poor = await world.memory.store("Maybe the cache is slow", quality=0.1, tags="cache")
    asked = await world.memory.store("Is the cache slow?")
    used = await world.memory.store("The cache was slow on Tuesday", quality=0.1)
    world.later(400)
    await world.memory.get(used)
    await world.usage.write()

    found = await world.consolidation.consolidate()

    assert found.archived == (poor,)
    best = (await world.memory.search("cache slow")).memories
    assert {each.hash for each in best} == {asked, used}
    assert (await world.memory.search_by_tag("cache")).total == 0
    assert (await world.memory.get(poor)).content == "Maybe the cache is slow"
    assert (await world.memory.health()).count == 2
    assert await world.memory.restore(poor)
    assert (await world.memory.search_by_tag("cache")).total == 1


async def test_an_archived_note_can_be_deleted_and_is_then_out_of_reach(world: World) -> None:
    poor = await world.memory.store("Maybe the cache is slow", quality=0.1)
    world.later(400)
    await world.memory.store("The cache is fine")
    await world.consolidation.consolidate()

    assert await world.memory.delete(poor)

    with pytest.raises(NotFound, match="deleted"):
        await world.memory.get(poor)
    assert not await world.memory.delete(poor)
    assert (await world.memory.search("cache")).total == 1


async def test_days_back_looks_at_new_notes_only(world: World) -> None:
    await world.memory.store("Ship small")
    world.later(10)
    await world.memory.store("ship small!")
    await world.memory.store("Review fast")

    recent = await world.consolidation.consolidate(days_back=5)
    assert (recent.counts.looked_at, recent.counts.superseded) == (2, 0)
    assert (await world.consolidation.consolidate(days_back=11)).counts.superseded == 1


@pytest.mark.parametrize("strategy", ["minimal", "speed", "balanced", "quality"])
async def test_a_dry_run_tells_the_same_and_changes_not_a_byte(world: World, strategy: Any) -> None:
    await tell_history(world)
    await world.memory.store("OUR LOGO IS A FOLDED PAPER CRANE", tags="logo")
    await world.memory.until_ready()
    before, file = world.dump(), world.path.read_bytes()

    dry = await world.consolidation.consolidate(strategy, dry_run=True)

    assert world.dump() == before
    assert world.path.read_bytes() == file
    assert dry.id is None
    assert await world.consolidation.consolidations() == ()
    done = await world.consolidation.consolidate(strategy)
    assert done._replace(id=None) == dry


async def test_the_history_tells_what_was_done_and_undone(world: World) -> None:
    await tell_history(world)
    first = await world.consolidation.consolidate("balanced")
    world.later(1)
    second = await world.consolidation.consolidate("speed", days_back=3)
    world.later(1)

    undone = await world.consolidation.undo()

    assert undone.id == first.id, "the second changed nothing"
    assert undone.counts.associations == first.counts.associations
    last, before = await world.consolidation.consolidations()
    assert (last.id, last.strategy, last.days_back, last.undone) == (second.id, "speed", 3, None)
    assert (before.id, before.counts, before.undone) == (first.id, first.counts, world.clock.now)
    assert len(await world.consolidation.consolidations(limit=1)) == 1
    assert "undone" in repr(before)


async def test_a_consolidation_is_undone_once_and_the_last_first(world: World) -> None:
    await world.memory.store("Ship small", tags="a")
    await world.memory.store("ship small!", tags="b")
    first = await world.consolidation.consolidate("minimal")
    await world.memory.store("SHIP SMALL", tags="c")
    world.later(1)
    second = await world.consolidation.consolidate("minimal")
    assert (first.counts.superseded, second.counts.superseded) == (1, 1)

    with pytest.raises(BadInput, match=f"Undo it first: undo\\('{second.id}'\\)"):
        await world.consolidation.undo(first.id)
    assert (await world.consolidation.undo()).id == second.id
    assert (await world.consolidation.undo()).id == first.id

    with pytest.raises(NotFound, match="No consolidation can be undone"):
        await world.consolidation.undo()
    with pytest.raises(BadInput, match="undone already"):
        await world.consolidation.undo(first.id)
    for unknown in ("99", "nonsense", "-1"):
        with pytest.raises(NotFound):
            await world.consolidation.undo(unknown)
    assert (await world.memory.health()).count == 3


async def test_undoing_leaves_alone_what_somebody_changed_since_and_names_it(world: World) -> None:
    await world.memory.store("Ship small", tags="a")
    survivor = await world.memory.store("ship small!", tags="b", quality=0.9)
    await world.memory.store("Review fast", tags="a")
    fast = await world.memory.store("review fast.", tags="b", quality=0.9)
    await world.consolidation.consolidate("minimal")
    await world.memory.update(survivor, tags="mine")

    undone = await world.consolidation.undo()

    assert undone.skipped == (survivor,)
    assert (await world.memory.get(survivor)).tags == ("mine",)
    assert (await world.memory.get(fast)).tags == ("b",)
    assert (await world.memory.health()).count == 4
    assert survivor in repr(undone)


async def test_purging_leaves_nothing_of_a_note_in_what_consolidations_remember(
    world: World,
) -> None:
    await world.memory.store("Xylophone lessons", tags="zither")
    gone = await world.memory.store("xylophone lessons.", quality=0.9)
    await world.consolidation.consolidate()

    await world.memory.purge(gone)

    assert not world.dump()["consolidation_changes"] or gone not in repr(world.dump())
    assert (await world.consolidation.undo()).counts.superseded == 1
    assert (await world.memory.search_by_tag("zither")).total == 1


async def test_namespaces_are_consolidated_apart(tmp_path: Path) -> None:
    async with running_world(tmp_path, namespace="one") as one:
        await one.memory.store("Ship small")
        async with running_world(tmp_path, namespace="two") as two:
            await two.memory.store("ship small!")
            found = await one.consolidation.consolidate()
            assert (found.counts.looked_at, found.counts.superseded) == (1, 0)
            assert await two.consolidation.consolidations() == ()
            with pytest.raises(NotFound):
                await two.consolidation.undo(found.id)


async def test_an_empty_memory_is_consolidated_to_nothing(world: World) -> None:
    found = await world.consolidation.consolidate()

    assert (found.id, any(found.counts)) == (None, False)
    assert repr(found) == "A consolidation that changed nothing (balanced): nothing."
    assert await world.consolidation.consolidations() == ()


async def test_progress_is_told_from_beginning_to_end(world: World) -> None:
    await tell_history(world)
    told: list[tuple[int, int, str]] = []

    await world.consolidation.consolidate(progress=lambda *step: told.append(step))

    assert {what for _, _, what in told} >= {"reading notes", "comparing notes"}
    assert all(0 <= done <= total for done, total, _ in told)
    assert (21, 21, "comparing notes") in told


async def test_who_is_cancelled_does_not_wait_for_thinking_and_nothing_has_changed(
    world: World,
) -> None:
    await tell_history(world)
    before = world.dump()
    with anyio.fail_after(60), anyio.CancelScope() as scope:

        def stop(done: int, total: int, what: str) -> None:
            if what == "comparing notes":
                scope.cancel()

        await world.consolidation.consolidate(progress=stop)

    assert scope.cancelled_caught
    assert world.dump() == before


@pytest.mark.parametrize(
    "values",
    [
        {"strategy": "thorough"},
        {"strategy": None},
        {"strategy": "x" * 1000},
        {"days_back": 0},
        {"days_back": -1},
        {"days_back": float("nan")},
        {"days_back": float("inf")},
        {"days_back": True},
        {"days_back": "7"},
    ],
)
async def test_what_cannot_be_used_is_refused(world: World, values: dict[str, Any]) -> None:
    await world.memory.store("Ship small")
    await world.memory.store("ship small!")

    with pytest.raises(BadInput) as raised:
        await world.consolidation.consolidate(**values)

    assert len(str(raised.value)) < 200
    assert (await world.memory.health()).count == 2


async def test_a_result_reads_well(world: World) -> None:
    await tell_history(world)
    await world.memory.store("our logo is a folded paper crane!")

    lines = repr(await world.consolidation.consolidate("quality")).splitlines()

    assert lines[0].startswith("Consolidation 1 (quality): 22 looked at, ")
    assert {"Patterns:", "Clusters:", "Near-duplicates:", "Associations:"} <= set(lines)
    assert max(map(len, lines)) < 700
