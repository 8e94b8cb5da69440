"""Runtime.run: the one path through the system."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import anyio
import anyio.to_thread

from toolfold.catalog.names import as_written
from toolfold.catalog.questions import Ask
from toolfold.config.settings import Limits
from toolfold.errors import BadInput, CodeRejected, ConfigError, RunCrashed
from toolfold.execution import report
from toolfold.execution.calls import Answerers, Calls, OnProgress
from toolfold.execution.checking.plan import Plan, make_plan
from toolfold.execution.checking.review import Finding
from toolfold.execution.examiner import Examiner
from toolfold.execution.going import Begun, Work
from toolfold.execution.hints import hint_for
from toolfold.execution.keeping import Keeping
from toolfold.execution.overflow import Saved, save_overflow
from toolfold.execution.report import RunFailure, RunResult, Times
from toolfold.execution.resuming import Resuming
from toolfold.execution.sessions.sessions import Held, Sessions
from toolfold.execution.skills.feed import Feed, Feeder
from toolfold.execution.skills.uses import SkillUses
from toolfold.execution.stage import Act, Stage
from toolfold.execution.tiers import Tier, Tiers
from toolfold.execution.trust.approvals import Approvals
from toolfold.execution.trust.concealing import Concealing, Privacy
from toolfold.execution.trust.guarding import Guard, RunFacts
from toolfold.execution.trust.rehearsal import Rehearsal
from toolfold.execution.trust.tainting import Following, Taints
from toolfold.execution.trust.waiting import WaitingRuns
from toolfold.journal.journal import Journal
from toolfold.journal.journaled import JournaledRun
from toolfold.journal.replay import Decision, Replay
from toolfold.journal.runs import RESUMABLE, Kind, Origin, Run, Start
from toolfold.policy.files import PolicyFiles
from toolfold.sandbox.sandbox import (
    Checker,
    Failure,
    GuestOutcome,
)
from toolfold.skills.extract import definition_in
from toolfold.skills.library import Library
from toolfold.skills.models import Skill
from toolfold.workspace.workspace import Workspace

_NOBODY = Origin()
_LONG_CODE: Final = 16_384  # characters; a thread costs more than to read fewer
_SHOWN_LEFT_OVER: Final = 5


@dataclass(frozen=True, slots=True)
class SessionWish:
    """In which session a run shall be: None for one that nobody keeps."""

    name: str | None = None
    may_go_beside: bool = False
    """Whether a copy of it will do, while another run is in it."""


FRESH: Final = SessionWish()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Who says what code may do."""

    rules: PolicyFiles
    approvals: Approvals
    privacy: Privacy
    scope: str
    """The namespace in which the user allows tools for good."""


class Runtime:
    """Runs guest code with every tool at hand."""

    def __init__(  # noqa: PLR0913  # the composition root hands it every part
        self,
        *,
        answerers: Answerers,
        tiers: Tiers,
        checker: Checker,
        limits: Limits,
        waiting: WaitingRuns,
        journal: Journal,
        sessions: Sessions,
        workspace: Workspace,
        library: Library,
        trust: Trust,
    ) -> None:
        self._answerers = answerers
        self._catalog = answerers.catalog
        self._workspace = workspace
        self._journal = journal
        self._tiers = tiers
        self._limits = limits
        self._sessions = sessions
        self._trust = trust
        self._taints = Taints(trust.privacy.untrusted)
        self._readers = anyio.CapacityLimiter(1)
        answerers.runs.resume = self._go_on
        self._feeder = Feeder(library, max_bytes=limits.code_bytes)
        self._uses = SkillUses(library)
        self._examiner = Examiner(answerers.catalog, tiers, checker, self._feeder, limits)
        self._resuming = Resuming(journal, answerers.catalog)
        self._stage = Stage(
            catalog=answerers.catalog,
            tiers=tiers,
            examiner=self._examiner,
            waiting=waiting,
            sessions=sessions,
            workspace=workspace,
            wall_time_s=limits.wall_time_s,
        )

    async def run(  # noqa: PLR0913  # who asks, where, and who is told
        self,
        code: str,
        *,
        origin: Origin = _NOBODY,
        session: SessionWish = FRESH,
        dry_run: bool = False,
        on_begin: Begun = lambda _id: None,
        on_progress: OnProgress = lambda _done, _total, _note: None,
        ask: Ask | None = None,
    ) -> RunResult:
        """Run `code` where it can do no harm, with every tool at hand.

        Plan, check, run, shape: what the code does wrong comes back in the result. Cancelling ends
        the run before its next call. What servers ask the user meanwhile goes to `ask`. The journal
        has the run and its calls, whichever way it ends.

        Raises:
            BadInput: No session can have that name.
            StoreError: Sessions cannot be kept.
        """
        rehearsal = Rehearsal() if dry_run else None
        told = _Told(self._journal.new_id(), origin, on_progress, ask, rehearsal=rehearsal)
        on_begin(told.run_id)  # also while it waits for its session
        async with self._sessions.hold(session.name, may_go_beside=session.may_go_beside) as held:
            held.is_kept = held.is_kept and not dry_run
            return await self._in_session(code, held, told)

    async def resume(
        self,
        run_id: str,
        *,
        origin: Origin = _NOBODY,
        decision: Decision = "ask",
        on_begin: Begun = lambda _id: None,
        on_progress: OnProgress = lambda _done, _total, _note: None,
        ask: Ask | None = None,
    ) -> RunResult:
        """Go on with a run that did not come to its own end. No call that completed is repeated.

        Raises:
            NotFound: There is no such run, or nothing to go on with.
            InDoubt: Calls were under way that may not be repeated; `decision` says what to do.
            StateLost: The variables with which it began are not kept.
        """
        replay = await self._resuming.replay(run_id, decision)
        told = _Told(self._journal.new_id(), origin, on_progress, ask, replay)
        start, code = replay.run.start, replay.run.code.head
        again = (
            self._sessions.hold_again(start.session, start.generation, replay.first)
            if start.session
            else self._sessions.hold(None)
        )
        with self._journal.claimed(replay.first) as is_ours:
            if not is_ours:
                raise BadInput(f"Somebody goes on with the run {replay.first} at this moment.")
            self._resuming.see_that_nobody_was_faster(replay)
            on_begin(told.run_id)
            async with again as held:
                return await self._in_session(code, held, told)

    async def _go_on(self, run: Run, origin: Origin) -> Work:
        """Return what goes on with a run for guest code, which decides nothing for the user."""
        await self._resuming.replay(run.id, "ask")

        async def work(on_begin: Begun, _ask: Ask | None) -> RunResult:
            return await self.resume(run.id, origin=origin, on_begin=on_begin)

        return work

    async def _in_session(self, code: str, held: Held, told: "_Told") -> RunResult:
        first = told.replay.first if told.replay else ""
        resumes = told.replay.run.id if told.replay else ""
        start = Start(held.info.name, held.info.generation, resumes)
        kind: Kind = "code" if told.rehearsal is None else "rehearsal"
        with self._journal.begin(
            told.origin, code, kind=kind, start=start, run_id=told.run_id
        ) as journaled:
            self._sessions.remember_start(held, journaled.id)
            result = await self._journaled(code, held, journaled, told)
            failure = result.error.kind if result.error else None
            journaled.end(failure=failure, reply=result.text)
            journaled.offer(self._catalog.definitions, shown=told.origin.shown)
            if failure not in RESUMABLE:
                self._sessions.forget_start(first or journaled.id)
        return replace(result, run_id=journaled.id, session=held.info.name)

    async def _journaled(
        self, code: str, held: Held, journaled: JournaledRun, told: "_Told"
    ) -> RunResult:
        clock, keeping = _Clock(), Keeping(self._workspace, journaled.id)
        try:
            guard = self._guard(journaled, told)
            feed, tier = await self._checked(code, held, clock)
            calls = self._calls(feed.plan, held, journaled, told, guard, keeping)
            recorder = None if told.rehearsal else self._uses.recorder(feed, calls.call)
            act = Act(feed=feed, calls=calls, recorder=recorder, ask=told.ask, held=held)
            tier, outcome = await self._stage.play(act, tier)
        except CodeRejected as rejection:
            return _rejected(rejection, clock.times, held.notes)
        except RunCrashed as crash:
            if self._tiers.has_cpython:
                return _crashed(str(crash), clock.times)
            # Only now is it known that there is none: go on as where there never was.
            return await self._journaled(code, held, journaled, told)
        self._catalog.save_shapes()
        await self._uses.count(feed, code, outcome, recorder)
        clock.split(sandbox_ms=outcome.guest_s, upstream_ms=outcome.waiting_s)
        saved = await save_overflow(outcome, keeping, max_chars=self._limits.reply_chars)
        notes = (*held.notes, *_replayed(told.replay), *_rehearsed(told.rehearsal))
        return self._shape(feed.plan, outcome, tier, calls, clock, saved, notes)

    async def _checked(self, code: str, held: Held, clock: "_Clock") -> tuple[Feed, Tier]:
        """Return code as it is run, and where; nothing has happened yet.

        Raises:
            CodeRejected: It cannot work.
        """
        plan = await self._plan(code)
        clock.lap("plan_ms")
        feed = await self._feeder.feed(plan)
        bound = held.info.bindings
        feed = await self._examiner.prepare(feed, bound)
        clock.lap("connect_ms")
        needs_cpython = held.info.tier == "cpython" and held.state is not None
        tier, findings = await self._examiner.examine(feed, bound, needs_cpython=needs_cpython)
        clock.lap("check_ms")
        if findings:
            missed = self._examiner.missed(feed)
            told = [replace(each, message=as_written(each.message)) for each in findings]
            text = report.rejection_text(told, plan.source, missed=missed)
            raise CodeRejected(text, line=findings[0].line)
        return feed, tier

    def _calls(  # all that a call may meet
        self,
        plan: Plan,
        held: Held,
        journaled: JournaledRun,
        told: "_Told",
        guard: Guard,
        keeping: Keeping,
    ) -> Calls:
        sources = [as_written(held.info.bindings.source()), as_written(plan.source)]
        return Calls(
            self._answerers,
            journaled,
            told.on_progress,
            origin=told.origin,
            keeping=keeping,
            definition_of=partial(definition_in, sources),
            guard=guard,
            concealing=Concealing(self._trust.privacy),
            following=self._following(held),
            rehearsal=told.rehearsal,
            replay=told.replay,
        )

    def _following(self, held: Held) -> Following:
        has_state = held.state is not None
        taint = self._taints.of(held.info.name, has_state=has_state)
        return Following(taint, self._taints.untrusted)

    def _guard(self, journaled: JournaledRun, told: "_Told") -> Guard:
        """Return who decides about calls.

        Raises:
            CodeRejected: The rules cannot be read: nothing is allowed until they can.
        """
        try:
            policy = self._trust.rules.policy(told.origin.client)
        except ConfigError as error:
            raise CodeRejected(f"Nothing was run. {error}") from error
        first = told.replay.first if told.replay else journaled.id
        run = RunFacts(
            first=first, attempt=journaled.id, origin=told.origin, scope=self._trust.scope
        )
        run = replace(run, made=told.replay.made) if told.replay else run
        return Guard(policy, self._trust.approvals, run, journaled.decide)

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

    def _shape(  # noqa: PLR0913  # all that is known of a run
        self,
        plan: Plan,
        outcome: GuestOutcome,
        tier: Tier,
        calls: Calls,
        clock: "_Clock",
        saved: Saved,
        notes: tuple[str, ...],
    ) -> RunResult:
        counts, waits = calls.tally.counts(), (*calls.waits, *calls.concealing.notes, *notes)
        if outcome.failure is not None:
            outcome = replace(outcome, failure=_named(outcome.failure))
        failure = outcome.failure
        max_chars = self._limits.reply_chars
        if failure is None:
            text = report.success_text(outcome, waits, saved, max_chars=max_chars)
            error = None
        else:
            hint = hint_for(failure, tier, has_cpython=self._tiers.has_cpython)
            text = report.failure_text(
                outcome,
                as_written(plan.source),
                counts,
                (*waits, *saved.notes),
                max_chars=max_chars,
                hint=hint,
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


def _named(failure: Failure) -> Failure:
    """Return a failure that names modules as the program did."""
    message, traceback = as_written(failure.message), as_written(failure.traceback)
    return replace(failure, message=message, traceback=traceback)


def _rejected(rejection: CodeRejected, times: Times, notes: Iterable[str]) -> RunResult:
    text = report.with_notes(str(rejection), notes)
    error = RunFailure(kind="rejected", message=text, line=rejection.line)
    return RunResult(success=False, text=text, error=error, times=times)


def _crashed(text: str, times: Times) -> RunResult:
    error = RunFailure(kind="crash", message=text)
    return RunResult(success=False, text=text, error=error, times=times)


@dataclass(frozen=True, slots=True)
class _Told:
    """Which run it is, who asked for it, and whom to tell of it."""

    run_id: str
    origin: Origin
    on_progress: OnProgress
    ask: Ask | None
    replay: Replay | None = None
    rehearsal: Rehearsal | None = None


def _replayed(replay: Replay | None) -> Iterable[str]:
    if replay is not None:
        yield (
            f"This went on with run {replay.run.id}: {replay.answered} calls were answered as they "
            "were then, and not made again."
        )
        for call in replay.left_over()[:_SHOWN_LEFT_OVER]:
            yield f"The first time it also made {call}, which was not asked for again."


def _rehearsed(rehearsal: Rehearsal | None) -> Iterable[str]:
    if rehearsal is not None:
        yield rehearsal.text()


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
