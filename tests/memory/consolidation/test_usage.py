"""How often notes are used."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from consolidating import World, running_world

from toolfold.errors import StoreError
from toolfold.memory.note_vectors import NoteUse, UsageCounter


def uses(world: World) -> list[tuple[int, int, float]]:
    with closing(sqlite3.connect(world.path)) as connection:
        return connection.execute("SELECT gets, shown, last FROM uses ORDER BY number").fetchall()


async def test_reading_and_finding_a_note_are_counted_in_the_background(tmp_path: Path) -> None:
    async with running_world(tmp_path) as world:
        name = await world.memory.store("alpha one")
        await world.memory.store("beta two")
        await world.memory.get(name)
        await world.memory.get(name)
        await world.memory.search("alpha")
        await world.memory.search("")
        await world.memory.list()
        assert uses(world) == []
    assert uses(world) == [(2, 1, world.clock.now)], "written when it ends"
    async with running_world(tmp_path) as world:
        world.later(1)
        await world.memory.search_batch(["alpha", "beta"])
    assert uses(world) == [(2, 2, world.clock.now), (0, 1, world.clock.now)]


async def test_only_the_best_of_a_search_are_taken_to_be_used(tmp_path: Path) -> None:
    async with running_world(tmp_path) as world:
        await world.memory.store_batch([f"alpha {number}" for number in range(20)])
        assert len((await world.memory.search("alpha", limit=20)).memories) == 20

    assert len(uses(world)) == 5


async def test_purging_a_note_forgets_its_uses(tmp_path: Path) -> None:
    async with running_world(tmp_path) as world:
        name = await world.memory.store("alpha")
        await world.memory.get(name)
        await world.usage.write()
        await world.memory.purge(name)

    assert uses(world) == []


class FullStore:
    async def add_uses(self, uses: Sequence[NoteUse]) -> None:
        raise StoreError("The disk is full.")


async def test_counts_that_cannot_be_written_are_nobodys_trouble(
    caplog: pytest.LogCaptureFixture,
) -> None:
    usage = UsageCounter(FullStore())
    async with usage.running():
        usage.got("one", "abcd")

    assert "The disk is full." in caplog.text


async def test_what_waits_to_be_written_is_bounded() -> None:
    written: list[NoteUse] = []

    class Keeping:
        async def add_uses(self, uses: Sequence[NoteUse]) -> None:
            written.extend(uses)

    usage = UsageCounter(Keeping())
    for _ in range(2):
        usage.shown("one", (f"{number:08x}" for number in range(20_000)))

    await usage.write()

    assert len(written) == 10_000
    assert {use.shown for use in written} == {2}
