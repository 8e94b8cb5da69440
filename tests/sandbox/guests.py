"""Run guest code in a sandbox with a host that remembers what it was asked."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio

from toolfold.config.settings import Limits
from toolfold.errors import ToolFailed
from toolfold.execution.plan import make_plan
from toolfold.jsontypes import Json
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


@asynccontextmanager
async def running_sandbox(*, workers: int = 2, **limits: object) -> AsyncIterator[MontySandbox]:
    sandbox = MontySandbox(replace(LIMITS, **limits), workers=workers)  # type: ignore[arg-type]
    async with sandbox.running():
        yield sandbox


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
