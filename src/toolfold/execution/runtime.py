"""Runtime.run: the one path through the system."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Final

import anyio
import anyio.to_thread

from toolfold.catalog.binding import bind
from toolfold.catalog.catalog import Catalog
from toolfold.catalog.questions import Ask
from toolfold.catalog.results import Blob
from toolfold.catalog.stubfiles import StubFiles
from toolfold.catalog.tool import Tool
from toolfold.clocks import PausableClock
from toolfold.config.settings import Limits
from toolfold.errors import BadCall, CodeRejected, RunCrashed, ToolfoldError
from toolfold.execution import discovery_module, report
from toolfold.execution.discovery_module import READ, DiscoveryModule, read_arguments
from toolfold.execution.journal import Journal, JournaledCall, JournaledRun
from toolfold.execution.plan import Plan, make_plan
from toolfold.execution.report import RunFailure, RunResult, Tally, Times
from toolfold.execution.review import Finding, review
from toolfold.execution.runs import Origin
from toolfold.execution.tiers import Tier, Tiers
from toolfold.execution.waiting import RunAsk, WaitingRuns
from toolfold.jsontypes import Json, plain
from toolfold.sandbox.sandbox import (
    Checker,
    GuestCall,
    GuestModule,
    GuestOutcome,
    Modules,
    Program,
)

OnProgress = Callable[[int, str], None]
"""Told of each call as it begins: how many there were, and which it is."""

_NOBODY = Origin()
_LONG_CODE: Final = 16_384  # characters; a thread costs more than to read fewer
_SHOW = "show"
_SHOW_STUB = "def show(image: object, /) -> None: ..."


class Runtime:
    """Runs guest code with every tool at hand."""

    def __init__(  # noqa: PLR0913  # the composition root hands it every part
        self,
        *,
        catalog: Catalog,
        discovery: DiscoveryModule,
        tiers: Tiers,
        checker: Checker,
        limits: Limits,
        waiting: WaitingRuns,
        journal: Journal,
    ) -> None:
        self._catalog = catalog
        self._waiting = waiting
        self._journal = journal
        self._tiers = tiers
        self._checker = checker
        self._limits = limits
        self._discovery = discovery
        self._readers = anyio.CapacityLimiter(1)

    async def run(
        self,
        code: str,
        *,
        origin: Origin = _NOBODY,
        on_progress: OnProgress = lambda _count, _call: None,
        ask: Ask | None = None,
    ) -> RunResult:
        """Run `code` where it can do no harm, with every tool at hand.

        Plan, check, run, shape: what the code does wrong comes back in the result. Cancelling ends
        the run before its next call. What servers ask the user meanwhile goes to `ask`. The journal
        has the run and its calls, whichever way it ends.
        """
        with self._journal.begin(origin, code) as journaled:
            result = await self._journaled(code, journaled, on_progress, ask)
            failure = result.error.kind if result.error else None
            journaled.end(failure=failure, reply=result.text)
            journaled.offer(self._catalog.definitions, shown=origin.shown)
        return replace(result, run_id=journaled.id)

    async def _journaled(
        self, code: str, journaled: JournaledRun, on_progress: OnProgress, ask: Ask | None
    ) -> RunResult:
        clock = _Clock()
        try:
            plan = await self._plan(code)
            clock.lap("plan_ms")
            await self._catalog.learn(plan.imports | self._catalog.modules_in(plan.names))
            clock.lap("connect_ms")
            tier, findings = await self._check(plan)
            clock.lap("check_ms")
        except CodeRejected as rejection:
            return _rejected(str(rejection), None, clock.times)
        if findings:
            missed = self._tiers.missed(plan, self._catalog.modules)
            text = report.rejection_text(findings, plan.source, missed=missed)
            return _rejected(text, findings[0].line, clock.times)
        calls = _Calls(self._catalog, self._discovery, journaled, on_progress)
        try:
            tier, outcome = await self._run_somewhere(plan, tier, calls, ask)
        except RunCrashed as crash:
            if self._tiers.has_cpython:
                return _crashed(str(crash), clock.times)
            # Only now is it known that there is none: go on as where there never was.
            return await self._journaled(code, journaled, on_progress, ask)
        self._catalog.save_shapes()
        clock.split(sandbox_ms=outcome.guest_s, upstream_ms=outcome.waiting_s)
        return self._shape(plan, outcome, tier, calls, clock)

    async def _plan(self, code: str) -> Plan:
        """Read the code: beside the event loop where it is so long that others would wait."""
        plan = partial(make_plan, code, max_bytes=self._limits.code_bytes)
        if len(code) < _LONG_CODE:
            return plan()
        return await anyio.to_thread.run_sync(plan, limiter=self._readers)

    async def _check(self, plan: Plan) -> tuple[Tier, list[Finding]]:
        """Choose the interpreter, and find what cannot work, before anything has happened."""
        verdict = await self._checker.check(plan.source, prelude=self._prelude(plan))
        tiers, found = self._tiers, verdict.diagnostics
        if tiers.choose(plan, self._catalog.modules) == "monty":
            findings = review(plan, found, self._catalog)
            findings += report.unsupported_findings(plan.unsupported)
            if not findings and verdict.refusal:
                findings.append(Finding(line=1, message=verdict.refusal))
            if not findings or not tiers.has_cpython:
                return "monty", findings
        return "cpython", review(plan, found, self._catalog, packages=tiers.packages)

    def _prelude(self, plan: Plan) -> str:
        """Declare what guest code may use without importing it."""
        lines = [_SHOW_STUB]
        for name in self._aliases(plan):
            tool = self._catalog.find(name)
            lines.append(f"from {tool.module} import {tool.function} as {name}")
        return "\n".join(lines)

    def _aliases(self, plan: Plan) -> list[str]:
        """Return the names in the code that are tools as clients write them: `mcp__a__b`."""
        found = []
        for name in sorted(plan.names):
            if name.startswith("mcp__"):
                try:
                    self._catalog.find(name)
                except ToolfoldError:
                    continue
                found.append(name)
        return found

    async def _run_somewhere(
        self, plan: Plan, tier: Tier, calls: "_Calls", ask: Ask | None
    ) -> tuple[Tier, GuestOutcome]:
        """Run, and once more on CPython where Monty fails before anything was called."""
        outcome = await self._run(plan, tier, calls, ask)
        if self._tiers.may_try_again(tier, outcome.failure) and calls.is_unused:
            tier, outcome = "cpython", await self._run(plan, "cpython", calls, ask)
        return tier, outcome

    async def _run(self, plan: Plan, tier: Tier, calls: "_Calls", ask: Ask | None) -> GuestOutcome:
        names = frozenset({_SHOW, *self._aliases(plan)})
        files = StubFiles(self._catalog)
        sandbox = self._tiers.sandbox(tier)
        async with sandbox.open(modules(self._catalog), names, files=files) as session:
            clock = PausableClock(self._limits.wall_time_s)
            calls.ask = ask and replace(ask, put=RunAsk(ask, self._waiting, clock))
            program = Program(source=plan.source, awaited=plan.awaited)
            return await session.run(program, calls.call, clock=clock)

    def _shape(
        self, plan: Plan, outcome: GuestOutcome, tier: Tier, calls: "_Calls", clock: "_Clock"
    ) -> RunResult:
        counts, waits = calls.tally.counts(), calls.waits
        failure = outcome.failure
        max_chars = self._limits.reply_chars
        if failure is None:
            text = report.success_text(outcome, waits, max_chars=max_chars)
            error = None
        else:
            text = report.failure_text(
                outcome, plan.source, counts, waits, max_chars=max_chars, tier=tier
            )
            error = RunFailure(kind=failure.kind, message=failure.message, line=failure.line)
        clock.lap("shape_ms")
        return RunResult(
            success=failure is None,
            text=text,
            output=outcome.output,
            value=outcome.value,
            error=error,
            calls=counts,
            waits=waits,
            images=tuple(calls.shown),
            times=clock.times,
            tier=tier,
        )


def modules(catalog: Catalog) -> Modules:
    """Return every module that guest code can import, made when first needed."""

    def factory(module: str) -> Callable[[], GuestModule]:
        def make() -> GuestModule:
            tools = catalog.functions(module)
            spellings = {tool.listed.name for tool in tools.values()}
            functions = {*tools, *filter(str.isidentifier, spellings)}
            return GuestModule(functions=tuple(sorted(functions)), stub=catalog.stub(module))

        return make

    return {"tools": lambda: discovery_module.MODULE} | {
        module: factory(module) for module in catalog.modules
    }


def _rejected(text: str, line: int | None, times: Times) -> RunResult:
    error = RunFailure(kind="rejected", message=text, line=line)
    return RunResult(success=False, text=text, error=error, times=times)


def _crashed(text: str, times: Times) -> RunResult:
    error = RunFailure(kind="crash", message=text)
    return RunResult(success=False, text=text, error=error, times=times)


class _Calls:
    """Answers the calls of one run, and keeps account of them."""

    def __init__(
        self,
        catalog: Catalog,
        discovery: DiscoveryModule,
        journaled: JournaledRun,
        on_progress: OnProgress,
    ) -> None:
        self.tally = Tally()
        self.shown: list[Blob] = []
        self.ask: Ask | None = None
        self._catalog = catalog
        self._discovery = discovery
        self._journaled = journaled
        self._on_progress = on_progress
        self._blobs: dict[str, Blob] = {}
        self._waited_s: dict[str, float] = {}

    async def call(self, call: GuestCall) -> Json:
        """Answer one call of guest code."""
        if call.function == _SHOW:
            return self._show(call)
        if call.function == READ:
            return await self._counted(READ, call, self._read)
        if call.function.startswith("tools."):
            return await self._discovery.call(call)
        tool = self._catalog.find(call.function)
        return await self._counted(tool.path, call, partial(self._call_tool, tool))

    async def _counted(
        self,
        path: str,
        call: GuestCall,
        answer: Callable[[GuestCall, JournaledCall], Awaitable[Json]],
    ) -> Json:
        """Answer what goes to a server; the client, the reply and the journal hear of it."""
        count = self.tally.begin(path)
        self._on_progress(self.tally.total, f"{path} {count}")
        try:
            with self._journaled.call(path, call.kwargs) as journaled:
                value = await answer(call, journaled)
                journaled.answer = plain(value) if isinstance(value, tuple) else value
        except ToolfoldError:
            self.tally.fail(path)
            raise
        self.tally.complete(path)
        return value

    async def _call_tool(self, tool: Tool, call: GuestCall, journaled: JournaledCall) -> Json:
        journaled.arguments = bind(tool, call.args, call.kwargs)
        answer = await self._catalog.call(
            tool, journaled.arguments, keep=self._keep, on_wait=self._note_wait, ask=self.ask
        )
        return answer.value

    async def _read(self, call: GuestCall, journaled: JournaledCall) -> Json:
        journaled.arguments = read_arguments(call)
        return await self._discovery.read(journaled.arguments, keep=self._keep, ask=self.ask)

    def _keep(self, blob: Blob) -> Json:
        """Keep an image or a binary here; guest code gets a reference to it."""
        kind = blob.mime_type.partition("/")[0]
        name = f"{kind}_{len(self._blobs) + 1}"
        self._blobs[name] = blob
        return {"blob": name, "mime_type": blob.mime_type, "bytes": blob.size_bytes}

    def _show(self, call: GuestCall) -> Json:
        reference = call.args[0] if len(call.args) == 1 else None
        name = reference.get("blob") if isinstance(reference, dict) else reference
        blob = self._blobs.get(name) if isinstance(name, str) else None
        if blob is None or not blob.mime_type.startswith("image/"):
            raise BadCall("show() takes an image that a tool returned in this run.")
        self.shown.append(blob)
        return None

    def _note_wait(self, why: str, seconds: float) -> None:
        self._waited_s[why] = self._waited_s.get(why, 0.0) + seconds

    @property
    def is_unused(self) -> bool:
        """Whether nothing was called and nothing shown, so that the code may run once more."""
        return not self.tally.total and not self.shown

    @property
    def waits(self) -> tuple[str, ...]:
        """Why the run waited before calls, and how long in all."""
        return tuple(f"{why}: waited {total:.1f} s" for why, total in self._waited_s.items())


class _Clock:
    """Keeps the times of one run."""

    def __init__(self) -> None:
        self.times = Times()
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        """Book the time since the last lap to `phase`."""
        now = time.perf_counter()
        self.times = replace(self.times, **{phase: round((now - self._last) * 1000, 3)})
        self._last = now

    def split(self, **seconds: float) -> None:
        """Book measured seconds to their phases, and begin a lap."""
        self.times = replace(
            self.times, **{phase: round(value * 1000, 3) for phase, value in seconds.items()}
        )
        self._last = time.perf_counter()
