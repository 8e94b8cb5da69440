"""Hundreds of runs, in batches at one time, on both tiers: nothing of them is left."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from guests import Host, host_modules, process_of, run, run_in, running_sandbox

from toolfold.sandbox.cpython.sandbox import CPythonSandbox
from toolfold.sandbox.sandbox import Sandbox

BATCH = 10
# How runs end: by themselves, by an error, by limits, by their own violence.
CODES = (
    "import host\nsum(host.echo(i) for i in range(5))",
    "import host, asyncio\nawait asyncio.gather(*[host.echo(i) for i in range(5)])",
    "1 / 0",
    "open('/workspace/x', 'w').write('x' * 100_000)",
    "while True:\n    pass",
    "x = [0]\nwhile True:\n    x += x",
    "import os\nos._exit(3)",
    "import threading\nfor _ in range(4):\n    threading.Thread(target=lambda: list(iter(int, 1))).start()",
    "import host\nhost.echo(b'')",
    "import ctypes\nctypes.string_at(0)",
)


def below(pid: int) -> set[int]:
    """Return the processes that descend from one."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found = {pid}
    while grown := {child for child, parent in parents.items() if parent in found} - found:
        found |= grown
    return found - {pid}


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def mounts(sandbox: CPythonSandbox) -> str:
    """Return what is mounted where guests are forked: theirs come and go with them."""
    zygote = sandbox._pool._zygote
    assert zygote is not None
    return Path(f"/proc/{zygote._process.pid}/mounts").read_text()


def private_bytes(pid: int) -> int:
    """Return the memory that a process shares with no other."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    sizes = dict(line.split(":") for line in lines)
    return 1024 * sum(int(sizes[name].split()[0]) for name in ("Private_Clean", "Private_Dirty"))


async def many_runs(sandbox: Sandbox, runs: int) -> None:
    for start in range(0, runs, BATCH):
        async with anyio.create_task_group() as batch:
            for number in range(start, start + BATCH):
                batch.start_soon(run, sandbox, CODES[number % len(CODES)], Host())


@pytest.fixture(scope="module")
async def cpython(anyio_backend: str) -> AsyncIterator[CPythonSandbox]:
    async with running_sandbox(tier="cpython", workers=4, guest_time_s=0.3) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
async def monty(anyio_backend: str) -> AsyncIterator[Sandbox]:
    async with running_sandbox(tier="monty", workers=4, guest_time_s=0.3) as sandbox:
        yield sandbox


@pytest.mark.parametrize(
    "runs", [40, pytest.param(500, marks=[pytest.mark.soak, pytest.mark.timeout(900)])]
)
async def test_no_process_descriptor_or_mount_is_left(
    cpython: CPythonSandbox, monty: Sandbox, runs: int
) -> None:
    await many_runs(cpython, BATCH)  # both have their processes and threads now
    await many_runs(monty, BATCH)
    # The zygote and two guests that are ready; Monty keeps up to four workers.
    with anyio.fail_after(60):
        while len(cpython._pool._ready) < 2:
            await anyio.sleep(0.05)
    ours = {guest.pid for guest in cpython._pool._ready}
    before = (descriptors(), mounts(cpython))

    async with anyio.create_task_group() as tiers:
        tiers.start_soon(many_runs, cpython, runs // 2)
        tiers.start_soon(many_runs, monty, runs // 2)

    with anyio.fail_after(60):
        while len(cpython._pool._ready) < 2 or len(below(os.getpid())) > 1 + 2 + 4:
            await anyio.sleep(0.05)
    assert descriptors() <= before[0] + 2 * 4  # the pipes of Monty's workers come and go
    assert mounts(cpython) == before[1]
    assert not any(
        Path(f"/proc/{pid}").exists() for pid in ours - {g.pid for g in cpython._pool._ready}
    )


async def test_a_guest_that_is_ready_holds_little_memory_of_its_own(
    cpython: CPythonSandbox,
) -> None:
    async with cpython.open(host_modules(), frozenset()) as session:
        await run_in(session, "1")
        private = private_bytes(process_of(session))

    assert private < 32 << 20
