"""Processes that die while they consolidate."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from consolidating import running_world

SCRIPT = Path(__file__).with_name("consolidation_process.py")
NOTES = 1_500


@pytest.mark.parametrize(
    "rounds", [3, pytest.param(50, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])]
)
async def test_a_consolidation_that_is_killed_has_happened_wholly_or_not_at_all(
    tmp_path: Path, rounds: int
) -> None:
    async with running_world(tmp_path) as world:
        for end in (".", "!"):
            await world.memory.store_batch([f"fact number {n} is so{end}" for n in range(NOTES)])
        await world.memory.until_ready()
        before = world.dump()

    for number in range(rounds):
        kill_while_writing(tmp_path, after_s=number * 0.05)
        async with running_world(tmp_path) as world:
            past = await world.consolidation.consolidations()
            done = [each for each in past if each.undone is None and any(each.counts[3:])]
            if done:
                assert done[0].counts.superseded == NOTES
                assert not any((await world.consolidation.consolidate("minimal")).counts[1:])
                await world.consolidation.undo(done[0].id)
            assert world.dump() == before
            assert (await world.memory.health()).count == 2 * NOTES


def kill_while_writing(directory: Path, *, after_s: float) -> None:
    path = os.pathsep.join([str(SCRIPT.parent), str(SCRIPT.parent.parent)])
    process = subprocess.Popen(
        [sys.executable, SCRIPT, directory],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path, "HOME": str(directory)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    try:
        process.wait(after_s)
    except subprocess.TimeoutExpired:
        process.kill()
    process.wait()
    process.stdout.close()
