"""What holds for any notes: undone exactly, found once, and the same each time."""

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from consolidating import World, running_world
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolfold.errors import NotFound
from toolfold.memory.consolidation.models import STRATEGIES

WORDS = ["staging", "deploy", "failed", "migration", "locked", "ada", "the", "port", "8080", "not"]
NOTES = st.fixed_dictionaries(
    {
        "content": st.builds(
            lambda words, end, is_loud: (
                (" ".join(words) + end).upper() if is_loud else " ".join(words) + end
            ),
            st.lists(st.sampled_from(WORDS), min_size=1, max_size=6),
            st.sampled_from(["", ".", "!", "?"]),
            st.booleans(),
        ),
        "tags": st.lists(st.sampled_from(["a", "b", "pinned"]), max_size=2),
        "quality": st.sampled_from([None, 0.0, 0.1, 0.5, 0.9]),
    },
    optional={"place": st.integers(0, 5)},
)
HISTORIES = st.lists(
    st.tuples(NOTES, st.sampled_from([0, 0, 1, 100, 500])), min_size=1, max_size=25
)
ACTIONS = st.lists(st.sampled_from(["get", "delete", "update", "restore", "link"]), max_size=6)
COMMON = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


async def live(world: World, history: list[tuple[dict[str, Any], int]], actions: list[str]) -> None:
    """Store notes over time, and do this and that to some of them."""
    names = []
    for note, days in history:
        given_ = dict(note)
        place = given_.pop("place", None)
        thread = {} if place is None else {"thread": "talk", "position": place}
        world.later(days)
        names.append(await world.memory.store(**given_, **thread))
    for number, action in enumerate(actions):
        with suppress(NotFound):  # it is deleted
            await act(world, action, names[number % len(names)], number)
    await world.usage.write()
    await world.memory.until_ready()


async def act(world: World, action: str, name: str, number: int) -> None:
    match action:
        case "get":
            await world.memory.get(name)
        case "delete":
            await world.memory.delete(name)
        case "restore":
            await world.memory.restore(name)
        case "update":
            await world.memory.update(name, tags=["other"])
        case "link":
            await world.memory.store(f"linked {number}", associated=[name])


async def check(
    strategy: Any, history: list[tuple[dict[str, Any], int]], actions: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with running_world(Path(directory)) as world:
            await live(world, history, actions)
            before = world.dump()

            dry = await world.consolidation.consolidate(strategy, dry_run=True)
            assert world.dump() == before
            done = await world.consolidation.consolidate(strategy)
            assert done._replace(id=None) == dry
            if done.id is None:
                assert dry.counts.looked_at == 0
                return
            after = world.dump()
            again = await world.consolidation.consolidate(strategy)
            assert not any(again.counts[1:]), again
            assert not any(each.is_new for each in (*again.patterns, *again.clusters))
            assert world.dump() == after

            undone = await world.consolidation.undo(done.id)
            assert undone.skipped == ()
            assert world.dump() == before
            once_more = await world.consolidation.consolidate(strategy)
            assert once_more._replace(id=None) == dry
            assert world.dump().keys() == after.keys()


@given(st.sampled_from(sorted(STRATEGIES)), HISTORIES, ACTIONS)
def hold(strategy: str, history: list[tuple[dict[str, Any], int]], actions: list[str]) -> None:
    anyio.run(check, strategy, history, actions)


def test_any_consolidation_is_found_once_and_undone_exactly() -> None:
    settings(COMMON)(hold)()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_any_consolidation_is_found_once_and_undone_exactly_at_length() -> None:
    settings(COMMON, max_examples=2_000)(hold)()
