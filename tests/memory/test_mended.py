"""Bounds that hold whoever asks, and changes that do not get lost."""

from pathlib import Path
from zoneinfo import ZoneInfo

import anyio
import pytest
from fakes import FakeEmbedder
from memories import Clock, running_memory

from toolfold.errors import BadInput
from toolfold.memory.models import CompactMemory, as_text
from toolfold.memory.service import Memory


@pytest.mark.parametrize("created", [1e300, 3e14, -1e13, "0001-01-01"])
async def test_a_time_that_no_calendar_has_is_refused(memory: Memory, created: float | str) -> None:
    with pytest.raises(BadInput, match="created"):
        await memory.store("from nowhere", created=created)


def test_a_note_of_a_time_that_no_calendar_has_can_still_be_shown() -> None:
    assert "1e+300" in repr(CompactMemory("abcd1234", "old", (), 1e300, 1.0))


async def test_changes_of_metadata_at_the_same_time_are_all_kept(memory: Memory) -> None:
    name = await memory.store("a note")

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(lambda n=number: memory.update(name, metadata={f"key{n}": n}))

    assert (await memory.get(name)).metadata == {f"key{number}": number for number in range(20)}


async def test_a_key_of_metadata_that_is_none_goes_and_the_others_stay(memory: Memory) -> None:
    name = await memory.store("a note", metadata={"a": 1, "b": 2})
    await memory.update(name, metadata={"a": None, "c": 3})

    assert (await memory.get(name)).metadata == {"b": 2, "c": 3}


@pytest.mark.parametrize(("queries", "limit"), [(["x"] * 101, 1), (["x"] * 11, 500), ("x", 1)])
async def test_a_batch_of_queries_is_bounded(
    memory: Memory, queries: list[str], limit: int
) -> None:
    with pytest.raises(BadInput):
        await memory.search_batch(queries, limit)


async def test_the_total_counts_all_that_are_good_enough(memory: Memory) -> None:
    await memory.store_batch([f"apples of row {number}" for number in range(400)])
    await memory.until_ready()

    everything = await memory.search("apples", limit=1)
    good = await memory.search("apples", limit=1, min_score=0.001)

    if (await memory.health()).backend == "sqlite":
        assert everything.total == good.total == 400
    else:  # PostgreSQL counts the candidates of an index that is allowed to miss some
        assert 380 <= min(everything.total, good.total) <= max(everything.total, good.total) <= 400


async def test_memory_gets_ready_without_a_search(tmp_path: Path, embedder: FakeEmbedder) -> None:
    async with running_memory(tmp_path, embedder) as memory:
        await memory.store("a note")
        await memory.until_ready()
    async with running_memory(tmp_path, embedder) as memory:
        with anyio.fail_after(60):
            while not (await memory.health()).ready:
                await anyio.sleep(0.01)


async def test_times_without_a_zone_are_of_the_zone_of_memory(
    tmp_path: Path, embedder: FakeEmbedder, clock: Clock
) -> None:
    zone = ZoneInfo("Pacific/Auckland")
    async with running_memory(tmp_path, embedder, clock=clock, zone=zone) as memory:
        name = await memory.store("deploy", created="2026-05-03T08:00")
        note = await memory.get(name)
        listed = await memory.list(after="2026-05-03", before="2026-05-04")
        recalled = await memory.recall("deploy on 2026-05-03")

    assert note.created == 1_777_752_000.0
    assert listed.total == recalled.total == 1


async def test_of_a_long_history_the_last_versions_are_returned(memory: Memory) -> None:
    name = await memory.store("version 0")
    for number in range(1, 6):
        name = await memory.update(name, f"version {number}")

    versions = [note.content for note in await memory.history(name, limit=2)]

    assert versions == ["version 4", "version 5"]
    assert as_text(await memory.get(name)).endswith("version 5")
