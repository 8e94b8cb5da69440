"""Consolidations that happen by themselves."""

import logging
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from consolidating import World, running_world

from toolfold.errors import BadInput, StoreError
from toolfold.memory.consolidation.service import Schedule, keep_consolidating
from toolfold.memory.consolidation.store import ConsolidationStore

HOUR_S = 3600.0


def schedule(world: World, every_hours: float = 24) -> Schedule:
    return Schedule(
        world.store,
        world.kept,
        every_s=every_hours * HOUR_S,
        strategy="minimal",
        clock=world.clock,
    )


async def history(world: World) -> list[str]:
    return [each.id for each in await world.consolidation.consolidations()]


async def test_a_consolidation_happens_when_it_is_due_whoever_starts_again(tmp_path: Path) -> None:
    async with running_world(tmp_path) as world:
        await world.memory.store("Ship small")
        await world.memory.store("ship small!")
        await schedule(world).run_due()
        assert await history(world) == ["1"]
        assert (await world.memory.health()).count == 1
        now = world.clock
    async with running_world(tmp_path, clock=now) as world:
        now.now += 23 * HOUR_S
        wait_s = await schedule(world).run_due()
        assert await history(world) == ["1"]
        assert wait_s <= HOUR_S
        now.now += HOUR_S
        await schedule(world).run_due()
        assert await history(world) == ["2", "1"]


async def test_every_namespace_has_its_turn(tmp_path: Path) -> None:
    async with running_world(tmp_path, namespace="one") as one:
        await one.memory.store("alpha")
        async with running_world(tmp_path, namespace="two") as two:
            await two.memory.store("beta")
            await schedule(one).run_due()
            assert await history(one) == ["1"]
            assert await history(two) == ["1"]


async def test_of_two_processes_one_consolidates(tmp_path: Path) -> None:
    async with running_world(tmp_path) as world, anyio.create_task_group() as tasks:
        await world.memory.store("alpha")
        for _ in range(5):
            tasks.start_soon(schedule(world).run_due)

    async with running_world(tmp_path) as world:
        assert await history(world) == ["1"]


async def test_what_somebody_undid_is_not_done_again_by_itself(tmp_path: Path) -> None:
    async with running_world(tmp_path) as world:
        await world.memory.store("Ship small")
        await world.memory.store("ship small!")
        await schedule(world).run_due()
        await world.consolidation.undo()
        world.later(100)
        await schedule(world).run_due()
        assert await history(world) == ["1"]


async def test_a_store_in_trouble_is_tried_again_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        async def namespaces(self) -> list[str]:
            raise StoreError("It is damaged.")

    async with running_world(tmp_path) as world:
        broken: ConsolidationStore = Broken()  # type: ignore[assignment]
        tried = Schedule(world.store, broken, every_s=10, strategy="minimal", clock=world.clock)
        assert await tried.run_due() >= 1
    assert "It is damaged." in caplog.text


async def test_it_goes_on_in_the_background_until_it_is_cancelled(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with running_world(tmp_path) as world:
        await world.memory.store("alpha")
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:

                async def run() -> None:
                    await keep_consolidating(
                        world.store, world.kept, every_hours=1, clock=world.clock
                    )

                tasks.start_soon(run)
                while not await history(world):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
        for hours in (0, -1, float("inf"), float("nan"), True):
            with pytest.raises(BadInput):
                await keep_consolidating(world.store, world.kept, every_hours=hours)
