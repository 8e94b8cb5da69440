"""Measure both sandboxes beside plain Python, bubblewrap and a bare socketpair.

Everything is measured in turns within one run, and compared by its minima: on a busy machine they
say what the work costs, and medians say how busy it is. Both are printed. A round trip is timed as
one of a few dozen in a row, so that there are moments in which nobody else wants the processor.
"""

import shutil
import socket
import statistics
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread
from targets import limit

from toolfold.config.settings import Limits
from toolfold.jsontypes import Json
from toolfold.sandbox.cpython.conversation import GuestConversation
from toolfold.sandbox.cpython.sandbox import CPythonSandbox, CPythonSession
from toolfold.sandbox.drive import Drive
from toolfold.sandbox.monty import MontySandbox, MontySession
from toolfold.sandbox.sandbox import GuestCall, GuestModule, Program, Sandbox

ROUNDS = 12
CALLS = 2_000
IN_A_ROW = 40
MODULES = {"host": lambda: GuestModule(functions=("echo",), stub="def echo(value): ...")}
CALLING = f"import host\nfor i in range({CALLS}):\n    host.echo(i)"
WORK = """
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
rows = [{"key": i % 97, "text": str(i)} for i in range(4000)]
groups = {}
for row in rows:
    groups.setdefault(row["key"], []).append(row["text"])
total = sum(len(" ".join(sorted(texts))) for texts in groups.values()) + fib(15)
"""
REPEATED = f"""
import time
def work():
{textwrap.indent(WORK, "    ")}
taken = []
for _ in range(12):
    began = time.perf_counter()
    work()
    taken.append(time.perf_counter() - began)
print(min(taken))
"""

CHECKOUT_MS = limit("checkout-ms")
MAX_PING_PONGS = {name: limit(f"ping-pongs-{name}") for name in ("monty", "cpython")}
MAX_PLAIN = limit("plain-work")


@dataclass
class Times:
    """Seconds by what they were taken of."""

    taken: dict[str, list[float]] = field(default_factory=dict)

    def add(self, what: str, *seconds: float) -> None:
        self.taken.setdefault(what, []).extend(seconds)

    def least(self, what: str) -> float:
        return min(self.taken[what])

    def ratio(self, what: str, to: str) -> float:
        return self.least(what) / self.least(to)


def main() -> int:
    """Print the tables; fail where a figure is worse than promised."""
    times = Times()
    anyio.run(_measure, times)
    return _report(times)


async def _measure(times: Times) -> None:
    limits = Limits()
    monty, cpython = MontySandbox(limits, workers=2), CPythonSandbox(limits, workers=2)
    async with monty.running(), cpython.running():
        await cpython.warm()
        for _ in range(ROUNDS):
            await _take_a_turn(times, monty, cpython)
        _print_memory(cpython)


async def _take_a_turn(times: Times, monty: MontySandbox, cpython: CPythonSandbox) -> None:
    with _ping_pong() as ping:
        times.add("ping-pong", *ping())
        async with monty.open(MODULES, frozenset()) as session:
            times.add("call, monty", *await anyio.to_thread.run_sync(_call_in_monty, session))
        times.add("ping-pong", *ping())
        async with cpython.open(MODULES, frozenset()) as session:
            await _until_refilled(cpython)
            times.add("call, cpython", *await _call_in_cpython(session))
        times.add("ping-pong", *ping())
    for name, sandbox in (("monty", monty), ("cpython", cpython)):
        await _until_refilled(cpython)
        await _start(times, name, sandbox)
        times.add(f"call on the loop, {name}", *await _call_on_the_loop(sandbox))
        times.add(f"work, {name}", await _work(sandbox))
        times.add("work, python -I", _plain_work())
    for what, command in _starts().items():
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.add(what, time.perf_counter() - began)


async def _until_refilled(cpython: CPythonSandbox) -> None:
    """Wait for the next guests to be ready: their start takes processor time from what is timed."""
    while len(cpython._pool._ready) < 2:  # noqa: SLF001
        await anyio.sleep(0.005)


async def _start(times: Times, name: str, sandbox: Sandbox) -> None:
    """Time what a run waits for: a session, and with it the first value."""
    began = time.perf_counter()
    async with sandbox.open(MODULES, frozenset()) as session:
        opened = time.perf_counter()
        outcome = await session.run(Program(source="1 + 1"), _echo)
        times.add(f"warm checkout, {name}", opened - began)
        times.add(f"warm checkout and first value, {name}", time.perf_counter() - began)
    assert outcome.value == 2, outcome


async def _echo(call: GuestCall) -> Json:
    return call.args[0]


def _in_rows(moments: list[float]) -> list[float]:
    """Return what one step took, by the rows of steps between moments."""
    ends = range(IN_A_ROW, len(moments), IN_A_ROW)
    return [(moments[end] - moments[end - IN_A_ROW]) / IN_A_ROW for end in ends]


def _call_in_monty(session: MontySession) -> list[float]:
    """Time calls that the host answers in the thread that drives the guest."""
    moments: list[float] = []

    def post(call_id: int, call: GuestCall, _is_awaited: bool) -> None:
        moments.append(time.perf_counter())
        drive.answers.put((call_id, {"return_value": call.args[0]}))

    parts = (session._native, session._limits, session._host)  # noqa: SLF001
    drive = Drive(*parts, (0, {}), post)
    outcome = drive.run(CALLING)
    assert outcome.failure is None, outcome
    return _in_rows(moments)


async def _call_in_cpython(session: CPythonSession) -> list[float]:
    """The same: here the thread is that of the event loop, which reads the bridge."""
    moments: list[float] = []

    def post(call_id: int, payload: bytes, _is_awaited: bool, line: int) -> None:
        moments.append(time.perf_counter())
        call = talk.call_of(payload, line)
        assert call is not None
        talk.answer(call_id, call.args[0])

    parts = (session.guest, session._link, session._limits, session._offer)  # noqa: SLF001
    talk = GuestConversation(*parts, post)
    talk.begin(0, CALLING, frozenset(), (list(MODULES), []))
    await talk.ended.wait()
    outcome = talk.outcome()
    assert outcome.failure is None, outcome
    return _in_rows(moments)


async def _call_on_the_loop(sandbox: Sandbox) -> list[float]:
    """Time calls as the product makes them: the host's function is a coroutine on the loop."""
    moments: list[float] = []

    async def echo(call: GuestCall) -> Json:
        moments.append(time.perf_counter())
        return call.args[0]

    async with sandbox.open(MODULES, frozenset()) as session:
        outcome = await session.run(Program(source=CALLING), echo)
        assert outcome.failure is None, outcome
    return _in_rows(moments)


async def _work(sandbox: Sandbox) -> float:
    async with sandbox.open({}, frozenset()) as session:
        if isinstance(sandbox, CPythonSandbox):
            outcome = await session.run(Program(source=REPEATED), _echo)
            return float(outcome.output)
        taken = []
        for _ in range(12):  # it has no such clock of its own
            began = time.perf_counter()
            outcome = await session.run(Program(source=WORK), _echo)
            taken.append(time.perf_counter() - began)
            assert outcome.failure is None, outcome
        return min(taken)


def _plain_work() -> float:
    done = subprocess.run(
        [sys.executable, "-I", "-c", REPEATED], check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def _starts() -> dict[str, list[str]]:
    found = {"python -I -c 1": [sys.executable, "-I", "-c", "1"]}
    if bubblewrap := shutil.which("bwrap"):
        walls = ["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev"]
        found["bubblewrap true"] = [bubblewrap, *walls, "true"]
        found["bubblewrap python -I -c 1"] = [bubblewrap, *walls, sys.executable, "-I", "-c", "1"]
    return found


@contextmanager
def _ping_pong() -> Iterator[Callable[[], list[float]]]:
    """Yield what times a round trip of a few bytes between two processes."""
    ours, theirs = socket.socketpair()
    code = (
        "import socket, sys\ns = socket.socket(fileno=int(sys.argv[1]))\n"
        "while d := s.recv(64):\n    s.send(d)"
    )
    other = subprocess.Popen(
        [sys.executable, "-I", "-c", code, str(theirs.fileno())], pass_fds=[theirs.fileno()]
    )
    theirs.close()

    def ping() -> list[float]:
        moments = []
        for _ in range(CALLS):
            ours.send(b"a few bytes, as in a call")
            ours.recv(64)
            moments.append(time.perf_counter())
        return _in_rows(moments)

    ping()
    try:
        yield ping
    finally:
        ours.close()
        other.wait()


def _print_memory(cpython: CPythonSandbox) -> None:
    ready = cpython._pool._ready  # noqa: SLF001
    if ready:
        lines = Path(f"/proc/{ready[0].pid}/smaps_rollup").read_text().splitlines()[1:]
        sizes = {name: int(size.split()[0]) / 1024 for name, size in (x.split(":") for x in lines)}
        private = sizes["Private_Clean"] + sizes["Private_Dirty"]
        print(
            f"A guest that is ready: {sizes['Rss']:.0f} MB resident, {sizes['Pss']:.0f} MB by "
            f"share, {private:.0f} MB of its own; behind {cpython.level}.\n"
        )


def _report(times: Times) -> int:
    print(f"{'':<44}{'least':>12}{'median':>12}")
    for what, taken in times.taken.items():
        scale, unit = (1e6, "us") if min(taken) < 1e-3 else (1e3, "ms")
        least, median = min(taken) * scale, statistics.median(taken) * scale
        print(f"{what:<44}{least:>9.1f} {unit}{median:>9.1f} {unit}")
    failed = 0
    for name, most in MAX_PING_PONGS.items():
        failed += _judge(
            f"call, {name} / ping-pong", times.ratio(f"call, {name}", "ping-pong"), most
        )
        checkout_ms = times.least(f"warm checkout, {name}") * 1e3
        failed += _judge(f"warm checkout, {name}, in ms", checkout_ms, CHECKOUT_MS)
    plain = times.ratio("work, cpython", "work, python -I")
    failed += _judge("work, cpython / python -I", plain, MAX_PLAIN)
    print(f"{'work, monty / python -I':<44}{times.ratio('work, monty', 'work, python -I'):>12.2f}")
    if "bubblewrap true" not in times.taken:
        print("bubblewrap is not installed, so there is no comparison with it.")
    return int(failed > 0)


def _judge(what: str, found: float, most: float) -> int:
    print(f"{what:<44}{found:>12.2f}   at most {most:g}{' !' if found > most else ''}")
    return int(found > most)


if __name__ == "__main__":
    sys.exit(main())
