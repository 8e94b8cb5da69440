"""Runtime.run: the one path through the system."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import anyio
import anyio.to_thread

from toolfold.catalog.catalog import Catalog
from toolfold.catalog.questions import Ask
from toolfold.catalog.stubfiles import StubFiles
from toolfold.clocks import PausableClock
from toolfold.config.settings import Limits
from toolfold.errors import CodeRejected, RunCrashed, ToolfoldError
from toolfold.execution import discovery_module, report
from toolfold.execution.calls import SHOW, Calls, OnProgress
from toolfold.execution.discovery_module import DiscoveryModule
from toolfold.execution.journal import Journal, JournaledRun
from toolfold.execution.keeping import Keeping
from toolfold.execution.overflow import Saved, save_overflow
from toolfold.execution.plan import Plan, make_plan
from toolfold.execution.report import RunFailure, RunResult, Times
from toolfold.execution.review import Finding, review
from toolfold.execution.runs import Origin
from toolfold.execution.tiers import Tier, Tiers
from toolfold.execution.waiting import RunAsk, WaitingRuns
from toolfold.sandbox.sandbox import (
    Checker,
    GuestModule,
    GuestOutcome,
    Modules,
    Program,
)
from toolfold.sandbox.trees import ReadOnlyTree, Roots
from toolfold.workspace.workspace import Workspace

_NOBODY = Origin()
_LONG_CODE: Final = 16_384  # characters; a thread costs more than to read fewer
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
        workspace: Workspace,
    ) -> None:
        self._catalog = catalog
        self._workspace = workspace
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
        keeping = Keeping(self._workspace, journaled.id)
        calls = Calls(self._catalog, self._discovery, journaled, on_progress, keeping)
        try:
            tier, outcome = await self._run_somewhere(plan, tier, calls, ask)
        except RunCrashed as crash:
            if self._tiers.has_cpython:
                return _crashed(str(crash), clock.times)
            # Only now is it known that there is none: go on as where there never was.
            return await self._journaled(code, journaled, on_progress, ask)
        self._catalog.save_shapes()
        clock.split(sandbox_ms=outcome.guest_s, upstream_ms=outcome.waiting_s)
        saved = await save_overflow(outcome, keeping, max_chars=self._limits.reply_chars)
        return self._shape(plan, outcome, tier, calls, clock, saved)

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
        self, plan: Plan, tier: Tier, calls: Calls, ask: Ask | None
    ) -> tuple[Tier, GuestOutcome]:
        """Run, and once more on CPython where Monty fails before anything was called."""
        outcome = await self._run(plan, tier, calls, ask)
        if self._tiers.may_try_again(tier, outcome.failure) and calls.is_unused:
            tier, outcome = "cpython", await self._run(plan, "cpython", calls, ask)
        return tier, outcome

    async def _run(self, plan: Plan, tier: Tier, calls: Calls, ask: Ask | None) -> GuestOutcome:
        names = frozenset({SHOW, *self._aliases(plan)})
        stubs = ReadOnlyTree(StubFiles(self._catalog), "servers")
        calls.files = files = Roots({"servers": stubs, "workspace": self._workspace})
        sandbox = self._tiers.sandbox(tier)
        async with sandbox.open(modules(self._catalog), names, files=files) as session:
            clock = PausableClock(self._limits.wall_time_s)
            calls.ask = ask and replace(ask, put=RunAsk(ask, self._waiting, clock))
            program = Program(source=plan.source, awaited=plan.awaited)
            return await session.run(program, calls.call, clock=clock)

    def _shape(  # all that is known of a run
        self,
        plan: Plan,
        outcome: GuestOutcome,
        tier: Tier,
        calls: Calls,
        clock: "_Clock",
        saved: Saved,
    ) -> RunResult:
        counts, waits = calls.tally.counts(), calls.waits
        failure = outcome.failure
        max_chars = self._limits.reply_chars
        if failure is None:
            text = report.success_text(outcome, waits, saved, max_chars=max_chars)
            error = None
        else:
            text = report.failure_text(
                outcome, plan.source, counts, (*waits, *saved.notes), max_chars=max_chars, tier=tier
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
