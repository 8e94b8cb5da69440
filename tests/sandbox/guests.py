"""Run guest code in a sandbox with a host that remembers what it was asked."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest

from toolfold.config.settings import Limits
from toolfold.errors import RunCrashed, ToolFailed
from toolfold.execution.analysis.plan import make_plan
from toolfold.jsontypes import Json
from toolfold.sandbox.cpython.pool import Level
from toolfold.sandbox.cpython.sandbox import CPythonSandbox, CPythonSession
from toolfold.sandbox.files import Places
from toolfold.sandbox.monty import MontySandbox
from toolfold.sandbox.sandbox import (
    GuestCall,
    GuestModule,
    GuestOutcome,
    Modules,
    Program,
    Sandbox,
    Session,
)

LIMITS = Limits(guest_time_s=5.0, wall_time_s=30.0, memory_bytes=64 << 20)
NAMES = frozenset({"show", "mcp__host__echo"})

Answers = Callable[[GuestCall], Awaitable[Json]]


class Host:
    """Answers `host.echo(value)` with the value, `host.fail(words)` with a failure."""

    def __init__(self, answers: dict[str, Answers] | None = None) -> None:
        self.calls: list[GuestCall] = []
        self.ended: list[GuestCall] = []
        self._answers = answers or {}

    async def call(self, call: GuestCall) -> Json:
        self.calls.append(call)
        answer = await self._answer(call)
        self.ended.append(call)
        return answer

    async def _answer(self, call: GuestCall) -> Json:
        if answer := self._answers.get(call.function.removeprefix("host.")):
            return await answer(call)
        if call.function == "host.fail":
            raise ToolFailed(str(call.args[0]))
        await anyio.lowlevel.checkpoint()
        return call.args[0] if call.args else dict(call.kwargs)


def host_modules() -> Modules:
    functions = ("echo", "fail", "wait", "crash")
    stub = "".join(f"def {name}(*args: object, **kwargs: object): ...\n" for name in functions)
    return {"host": lambda: GuestModule(functions=functions, stub=stub)}


Running = Callable[..., AbstractAsyncContextManager[Sandbox]]


@asynccontextmanager
async def running_sandbox(
    *, tier: str = "monty", workers: int = 2, level: Level = "namespaces", **limits: object
) -> AsyncIterator[Any]:
    """Run a sandbox; skip the test where this machine lacks its walls."""
    bounds = replace(LIMITS, **limits)  # type: ignore[arg-type]
    if tier == "monty":
        monty = MontySandbox(bounds, workers=workers)
        async with monty.running():
            yield monty
    else:
        cpython = CPythonSandbox(bounds, workers=workers, levels=(level,))
        async with cpython.running():
            try:
                await cpython.warm()
            except RunCrashed as error:
                pytest.skip(str(error))
            yield cpython


@asynccontextmanager
async def sharing(
    cpython: CPythonSandbox, *, workers: int = 2, **limits: object
) -> AsyncIterator[CPythonSandbox]:
    """Give a sandbox with limits of its own that uses the processes of another."""
    other = cpython.within(replace(LIMITS, **limits))  # type: ignore[arg-type]
    other._places = Places(workers)
    yield other


def process_of(session: Any) -> int:
    """Return the number of the process that a session runs in."""
    if isinstance(session, CPythonSession):
        return session.guest.pid
    session._enter()  # else it takes its worker with its first program
    return int(session._native.worker_pid)


async def run(sandbox: Sandbox, code: str, host: Host | None = None) -> GuestOutcome:
    """Run `code` in a session of its own."""
    async with sandbox.open(host_modules(), NAMES) as session:
        return await run_in(session, code, host)


async def run_in(session: Session, code: str, host: Host | None = None) -> GuestOutcome:
    """Run `code` in a session that goes on."""
    plan = make_plan(code, max_bytes=LIMITS.code_bytes)
    program = Program(source=plan.source, awaited=plan.awaited)
    return await session.run(program, (host or Host()).call)


async def value_of(sandbox: Sandbox, code: str, host: Host | None = None) -> Json:
    """Run code that must reach its end, and return the value of its last line."""
    outcome = await run(sandbox, code, host)
    assert outcome.failure is None, outcome.failure
    return outcome.value


async def failure_kind(sandbox: Sandbox, code: str, host: Host | None = None) -> str:
    """Run code that must fail, and return how."""
    outcome = await run(sandbox, code, host)
    assert outcome.failure is not None, f"it ended with {outcome.value!r:.200}"
    return outcome.failure.kind
