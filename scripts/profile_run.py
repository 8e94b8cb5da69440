"""Show where the CPU time of a run goes, from the client's request to its answer.

python scripts/profile_run.py             a run's milliseconds and a call's microseconds, by phase
python scripts/profile_run.py daemon      the same through relay and daemon, by process only

Time is that of processors, not of the clock on the wall: it means the same on a busy machine. Each
phase is charged with what it does itself, without the phases that it calls.
"""

import contextlib
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from rooms import Peer

RUNS: Final = 200
CALLS: Final = 50
WARM_RUNS: Final = 20
SETTLING_S: Final = 60
IDLE_S: Final = 0.03
TICKS: Final = os.sysconf("SC_CLK_TCK")
CODES: Final = {
    "run": "1",
    "read": f"import crm\nfor n in range({CALLS}):\n    crm.add(a=n)",
    "write": f"import crm\nfor n in range({CALLS}):\n    crm.change(a=n)",
}

PHASES: Final = {
    "door": ["entrypoints.mcp.server._Surface.answer", "execution.service.RunService.run",
             "entrypoints.mcp.elicitation_broker.ElicitationBroker.attend"],
    "run": ["execution.runtime.Runtime.run", "execution.executor.Executor.play"],
    "plan": ["execution.runtime.make_plan", "execution.executor.bindings"],
    "connect": ["execution.examiner.Examiner.prepare", "execution.skills.linker.SkillLinker.link"],
    "check": ["execution.examiner.Examiner.examine", "sandbox.checker.MontyChecker._check"],
    "session": ["execution.sessions.sessions.Sessions._load", "execution.sessions.sessions.Sessions.keep",
                "execution.sessions.sessions.Sessions.has_gone_on",
                "execution.sessions.sessions.Sessions.remember_start",
                "execution.sessions.sessions.Sessions.forget_start",
                "execution.sessions.folder.SessionFolder._try_lock",
                "execution.sessions.folder.StateFiles.write",
                "execution.sessions.folder.StateFiles.read"],
    "sandbox": ["sandbox.monty.MontySession.run", "sandbox.monty.MontySession.leave",
                "sandbox.drive.Drive.run", "sandbox.monty._load"],
    "call": ["execution.calls.Calls.call"],
    "border": ["execution.border.Border.cross"],
    "bind, check": ["execution.access.ToolCall.bind", "execution.access.ToolCall.check"],
    "guard": ["execution.trust.guard.CallGuard.admit",
              "execution.trust.privacy_border.PrivacyBorder.reveal",
              "execution.trust.privacy_border.PrivacyBorder.conceal",
              "execution.trust.taint.TaintTracker.find", "execution.trust.taint.TaintTracker.learn"],
    "send": ["catalog.sending.Sender.call"],
    "journal": ["journal.journal.Journal.begin", "journal.run_writer.JournaledRun.end",
                "journal.run_writer.JournaledRun.send", "journal.run_writer.JournaledRun._write_calls"],
    "sqlite": ["journal.rows.RowWriter.flush"],
    "audit head": ["journal.rows.RowWriter._seal"],
    "shape": ["execution.runtime.Runtime._shape", "execution.runtime.save_overflow",
              "catalog.catalog.Catalog.save_shapes"],
}  # fmt: skip

# Runs in place of `toolfold`: charges the CPU time of each thread to the innermost phase.
METER: Final = """
import functools, importlib, inspect, json, os, sys, threading, time, types
spent, local, now = {}, threading.local(), time.thread_time

def enter(name):
    stack = local.__dict__.setdefault("stack", [])
    moment = now()
    if stack:
        spent[stack[-1]] = spent.get(stack[-1], 0) + moment - local.since
    stack.append(name)
    local.since = now()

def leave():
    name, moment = local.stack.pop(), now()
    spent[name] = spent.get(name, 0) + moment - local.since
    local.since = now()

@types.coroutine
def stepped(name, coroutine):
    send, given = coroutine.send, None
    while True:
        enter(name)
        try:
            waits_for = send(given)
        except StopIteration as end:
            return end.value
        finally:
            leave()
        try:
            send, given = coroutine.send, (yield waits_for)
        except BaseException as error:
            send, given = coroutine.throw, error

def metered(name, function):
    @functools.wraps(function)
    def work(*args, **kwargs):
        enter(name)
        try:
            return function(*args, **kwargs)
        finally:
            leave()
    async def step(*args, **kwargs):
        return await stepped(name, function(*args, **kwargs))
    return functools.wraps(function)(step) if inspect.iscoroutinefunction(function) else work

def holder(path):
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module("toolfold." + ".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        return functools.reduce(getattr, parts[end:-1], found), parts[-1]

for phase, paths in json.loads(os.environ["PROFILE_PHASES"]).items():
    for path in paths:
        place, name = holder(path)
        setattr(place, name, metered(phase, getattr(place, name)))

def tell():
    while True:
        with open(os.environ["ROOMS_MARKS"]) as marks:
            path = marks.read().strip()
        with open(path + ".part", "w") as told:
            json.dump({**spent, "": time.process_time()}, told)
        os.replace(path + ".part", path)

threading.Thread(target=tell, daemon=True).start()
sys.argv[0] = "toolfold"
from toolfold.__main__ import main
sys.exit(main())
"""

RELAY: Final = """
import sys
sys.argv[0] = "toolfold"
from toolfold.__main__ import main
sys.exit(main())
"""

Costs = dict[str, float]
"""Seconds of CPU time, by phase or process; under "" those of all."""


def cost(peer: Peer, code: str, runs: int, read: Callable[[], Costs]) -> Costs:
    """Return what one run costs, each with a text of its own: none is known already."""
    for number in range(WARM_RUNS):
        peer.run(f"# warm {number}\n{code}")
    before = read()
    for number in range(runs):
        peer.run(f"# {number}\n{code}")
    after = read()
    return {name: (spent - before.get(name, 0)) / runs for name, spent in after.items()}


def settle(read: Callable[[], Costs]) -> None:
    """Wait until nothing is warmed up in the background any more."""
    before, until = read()[""], time.monotonic() + SETTLING_S
    while time.monotonic() < until:
        time.sleep(1)
        now = read()[""]
        if now - before < IDLE_S:
            return
        before = now


def phases_told(peer: Peer, home: Path) -> Costs:
    told = home / f"told-{time.monotonic_ns()}"
    peer.mark(str(told))
    while not told.exists():
        time.sleep(0.01)
    found: Costs = json.loads(told.read_text())
    return found


def processes_told(home: Path) -> Costs:
    """Read what the processes below `home` have spent, by what they are."""
    found: Costs = defaultdict(float)
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(home).encode() in (process / "environ").read_bytes():
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                words = (process / "cmdline").read_text().split("\0")
                name = next((each for each in ("upstream.py", "tracer.py", "daemon", "monty")
                             if any(each in word for word in words)), "other")  # fmt: skip
                spent = (int(fields[11]) + int(fields[12])) / TICKS
                found[name] += spent
                found[""] += spent
    return found


def print_table(costs: dict[str, Costs]) -> None:
    rows = sorted(costs["run"], key=lambda name: (not name, -costs["run"][name]))
    calls = {kind: costs[kind] for kind in ("read", "write")}
    print(f"{'':<14}{'a run':>10}{'a read':>10}{'a write':>10}")
    print(f"{'':<14}{'ms':>10}{'us':>10}{'us':>10}")
    rows += [name for name in calls["read"] if name not in rows]
    for name in rows:
        fixed = costs["run"].get(name, 0.0)
        shares = [(each.get(name, 0.0) - fixed) / CALLS * 1e6 for each in calls.values()]
        print(f"{name or 'in all':<14}{fixed * 1e3:>10.3f}{shares[0]:>10.1f}{shares[1]:>10.1f}")


def main() -> None:
    is_daemon = sys.argv[1:] == ["daemon"]
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        if is_daemon:
            peer = Peer(home, RELAY, (), TOOLFOLD_DAEMON_IDLE_S="1")
        else:
            peer = Peer(home, METER, PROFILE_PHASES=json.dumps(PHASES))
        peer.begin()
        read = partial(processes_told, home) if is_daemon else partial(phases_told, peer, home)
        peer.run(CODES["run"])
        settle(read)
        runs = {"run": RUNS, "read": RUNS // 5, "write": RUNS // 5}
        costs = {name: cost(peer, code, runs[name], read) for name, code in CODES.items()}
        if not is_daemon:
            for each in costs.values():
                each["loop, threads"] = 2 * each[""] - sum(each.values())
        print_table(costs)
        peer.close()


if __name__ == "__main__":
    main()
