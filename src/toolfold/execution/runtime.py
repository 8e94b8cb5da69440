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
from toolfold.errors import CodeRejected, RunCrashed
from toolfold.execution import discovery_module, report
from toolfold.execution.calls import SHOW, Calls, OnProgress
from toolfold.execution.discovery_module import DiscoveryModule
from toolfold.execution.examiner import Examiner
from toolfold.execution.journal import Journal, JournaledRun
from toolfold.execution.plan import Plan, make_plan
from toolfold.execution.recording import Recorder
from toolfold.execution.report import RunFailure, RunResult, Times
from toolfold.execution.review import Finding
from toolfold.execution.runs import Origin
from toolfold.execution.skill_feed import Feed, Feeder, run_feed
from toolfold.execution.skill_uses import SkillUses
from toolfold.execution.tiers import Tier, Tiers
from toolfold.execution.waiting import RunAsk, WaitingRuns
from toolfold.sandbox.sandbox import (
    Checker,
    GuestModule,
    GuestOutcome,
    Modules,
    OnCall,
)
from toolfold.skills.extract import definition_in
from toolfold.skills.library import Library
from toolfold.skills.models import Skill

_NOBODY = Origin()
_LONG_CODE: Final = 16_384  # characters; a thread costs more than to read fewer


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
        library: Library,
    ) -> None:
        self._catalog = catalog
        self._waiting = waiting
        self._journal = journal
        self._tiers = tiers
        self._limits = limits
        self._discovery = discovery
        self._readers = anyio.CapacityLimiter(1)
        self._feeder = Feeder(library, max_bytes=limits.code_bytes)
        self._uses = SkillUses(library)
        self._examiner = Examiner(catalog, tiers, checker, self._feeder, limits)

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
            feed = await self._feeder.feed(plan)
            await self._examiner.learn(feed)
            clock.lap("connect_ms")
            tier, findings = await self._examiner.examine(feed)
            clock.lap("check_ms")
        except CodeRejected as rejection:
            return _rejected(str(rejection), None, clock.times)
        if findings:
            missed = self._examiner.missed(feed)
            text = report.rejection_text(findings, plan.source, missed=missed)
            return _rejected(text, findings[0].line, clock.times)
        definition_of = partial(definition_in, [plan.source])
        calls = Calls(self._catalog, self._discovery, journaled, on_progress, definition_of)
        recorder = self._uses.recorder(feed, calls.call)
        try:
            tier, outcome = await self._run_somewhere(feed, tier, calls, recorder, ask)
        except RunCrashed as crash:
            if self._tiers.has_cpython:
                return _crashed(str(crash), clock.times)
            # Only now is it known that there is none: go on as where there never was.
            return await self._journaled(code, journaled, on_progress, ask)
        self._catalog.save_shapes()
        await self._uses.count(feed, code, outcome, recorder)
        clock.split(sandbox_ms=outcome.guest_s, upstream_ms=outcome.waiting_s)
        return self._shape(plan, outcome, tier, calls, clock)

    async def _plan(self, code: str) -> Plan:
        """Read the code: beside the event loop where it is so long that others would wait."""
        plan = partial(make_plan, code, max_bytes=self._limits.code_bytes)
        if len(code) < _LONG_CODE:
            return plan()
        return await anyio.to_thread.run_sync(plan, limiter=self._readers)

    async def check_skill(self, skill: Skill) -> tuple[Tier, list[Finding]]:
        """Return which interpreter a skill needs, and what is wrong with its code.

        Raises:
            CodeRejected: It cannot be checked.
        """
        return await self._examiner.check_skill(skill)

    async def _run_somewhere(
        self, feed: Feed, tier: Tier, calls: Calls, recorder: Recorder | None, ask: Ask | None
    ) -> tuple[Tier, GuestOutcome]:
        """Run, and once more on CPython where Monty fails before anything was called."""
        on_call = recorder.call if recorder else calls.call
        outcome = await self._run(feed, tier, calls, on_call, ask)
        if self._tiers.may_try_again(tier, outcome.failure) and calls.is_unused:
            if recorder:
                recorder.begin_again()
            tier, outcome = "cpython", await self._run(feed, "cpython", calls, on_call, ask)
        return tier, outcome

    async def _run(
        self, feed: Feed, tier: Tier, calls: Calls, on_call: OnCall, ask: Ask | None
    ) -> GuestOutcome:
        names = frozenset({SHOW}.union(*(self._examiner.aliases(plan) for plan in feed.plans)))
        files = StubFiles(self._catalog)
        sandbox = self._tiers.sandbox(tier)
        async with sandbox.open(modules(self._catalog), names, files=files) as session:
            clock = PausableClock(self._limits.wall_time_s)
            calls.ask = ask and replace(ask, put=RunAsk(ask, self._waiting, clock))
            return await run_feed(session, feed, on_call, clock)

    def _shape(
        self, plan: Plan, outcome: GuestOutcome, tier: Tier, calls: Calls, clock: "_Clock"
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
