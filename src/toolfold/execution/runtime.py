"""Runtime.run: the one path through the system."""

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Final

import anyio
import anyio.to_thread

from toolfold.catalog.names import as_written
from toolfold.catalog.questions import Elicitor
from toolfold.config.settings import Limits
from toolfold.errors import BadInput, CodeRejected, ConfigError, RunCrashed, count
from toolfold.execution import report
from toolfold.execution.analysis.imports import as_people_write
from toolfold.execution.analysis.plan import ProgramPlan, make_plan
from toolfold.execution.analysis.review import Finding
from toolfold.execution.artifacts import RunArtifacts
from toolfold.execution.background import BackgroundWork, OnRunStart
from toolfold.execution.border import unrecorded_notes
from toolfold.execution.calls import Answerers, Calls, OnRunProgress
from toolfold.execution.context import CallContext
from toolfold.execution.examiner import Examiner
from toolfold.execution.executor import ExecutionRequest, Executor, PrintedOnce
from toolfold.execution.hints import hint_for
from toolfold.execution.report import RunFailure, RunReport, SavedOverflow, Times, save_overflow
from toolfold.execution.resume import ResumableRuns
from toolfold.execution.sessions.sessions import SessionLease, Sessions
from toolfold.execution.skills.linker import LinkedProgram, SkillLinker
from toolfold.execution.skills.recorder import SkillUsageRecorder
from toolfold.execution.tiers import Tier, Tiers
from toolfold.execution.trust.dry_run import DryRun
from toolfold.execution.trust.guard import CallGuard, RunFacts
from toolfold.execution.trust.preapproval import Preapproval, WaitingRuns
from toolfold.execution.trust.taint import TaintTracker, literals_in
from toolfold.journal.journal import Journal
from toolfold.journal.replay import DoubtDecision, Replay
from toolfold.journal.run_writer import JournaledRun
from toolfold.journal.runs import RESUMABLE, Origin, Run, RunKind, RunStart
from toolfold.sandbox.sandbox import (
    Checker,
    GuestFailure,
    GuestOutcome,
    OnPrint,
)
from toolfold.skills.extract import definition_in
from toolfold.skills.library import Library
from toolfold.skills.models import Skill
from toolfold.workspace.workspace import Workspace

_NOBODY = Origin()
_LONG_CODE: Final = 16_384  # characters; a thread costs more than to read fewer
_SHOWN_LEFT_OVER: Final = 5


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """In which session a run shall be: None for one that nobody keeps."""

    name: str | None = None
    may_go_beside: bool = False
    """Whether a copy of it will do, while another run is in it."""


FRESH: Final = SessionRequest()


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
        scope: str,
    ) -> None:
        self._answerers = answerers
        self._border = answerers.border
        self._catalog = answerers.reach.catalog
        self._workspace = workspace
        self._journal = journal
        self._tiers = tiers
        self._limits = limits
        self._sessions = sessions
        self._scope = scope
        self._readers = anyio.CapacityLimiter(1)
        answerers.runs.resume = self._go_on
        self._linker = SkillLinker(library, max_bytes=limits.code_bytes)
        self._uses = SkillUsageRecorder(library)
        self._examiner = Examiner(self._catalog, tiers, checker, self._linker, limits)
        self._resumable = ResumableRuns(journal, self._catalog)
        self._executor = Executor(
            catalog=self._catalog,
            tiers=tiers,
            examiner=self._examiner,
            waiting=waiting,
            sessions=sessions,
            workspace=workspace,
            wall_time_s=limits.wall_time_s,
            text_bytes=limits.value_bytes * 3 // 4,
            read_ahead=limits.read_ahead,
        )

    async def run(  # noqa: PLR0913  # who asks, where, and who is told
        self,
        code: str,
        *,
        origin: Origin = _NOBODY,
        session: SessionRequest = FRESH,
        dry_run: bool = False,
        on_begin: OnRunStart = lambda _id: None,
        on_progress: OnRunProgress = lambda _done, _total, _note: None,
        on_print: OnPrint | None = None,
        ask: Elicitor | None = None,
    ) -> RunReport:
        """Run `code` where it can do no harm, with every tool at hand.

        Plan, check, run, shape: what the code does wrong comes back in the result. Cancelling ends
        the run before its next call. What servers ask the user meanwhile goes to `ask`. The journal
        has the run and its calls, whichever way it ends.

        Raises:
            BadInput: No session can have that name.
            StoreError: Sessions cannot be kept.
            TooManyRequests: The holder of a key has too much under way.
        """
        context = RunContext(
            self._journal.new_id(),
            origin,
            on_progress,
            ask,
            dry_run_log=DryRun() if dry_run else None,
            preapproval=self._preapproval(code, origin, session),
            on_print=on_print,
        )
        hold = partial(self._sessions.hold, session.name, may_go_beside=session.may_go_beside)
        with self._border.counted(origin):
            on_begin(context.run_id)  # also while it waits for its session
            async with hold() as lease:
                lease.is_kept = lease.is_kept and not dry_run
                return await self._in_session(code, lease, context)

    def _preapproval(
        self, code: str, origin: Origin, session: SessionRequest
    ) -> Preapproval | None:
        """Return what a hook of the client's found of the program before."""
        known = self._border.trust.preapprovals
        named = "" if session.may_go_beside else session.name or ""
        found = known.take(origin.tool_use, code, named, self._scope)
        if found:
            known.follow(found, session.name or "")
        return found

    async def resume(  # noqa: PLR0913  # as `run`
        self,
        run_id: str,
        *,
        origin: Origin = _NOBODY,
        decision: DoubtDecision = "ask",
        on_begin: OnRunStart = lambda _id: None,
        on_progress: OnRunProgress = lambda _done, _total, _note: None,
        on_print: OnPrint | None = None,
        ask: Elicitor | None = None,
    ) -> RunReport:
        """Go on with a run that did not come to its own end. No call that completed is repeated.

        Raises:
            NotFound: There is no such run, or nothing to go on with.
            InDoubt: Calls were under way that may not be repeated; `decision` says what to do.
            StateLost: The variables with which it began are not kept.
            TooManyRequests: As `run`.
        """
        replay = await self._resumable.replay(run_id, decision)
        context = RunContext(
            self._journal.new_id(), origin, on_progress, ask, replay, on_print=on_print
        )
        start, code = replay.run.start, replay.run.code.head
        again = (
            self._sessions.hold_again(start.session, start.generation, replay.first)
            if start.session
            else self._sessions.hold(None)
        )
        with self._border.counted(origin), self._journal.claimed(replay.first) as is_ours:
            if not is_ours:
                raise BadInput(f"Another process is resuming the run {replay.first} now.")
            self._resumable.check_not_superseded(replay)
            on_begin(context.run_id)
            async with again as lease:
                return await self._in_session(code, lease, context)

    async def _go_on(self, run: Run, origin: Origin) -> BackgroundWork:
        """Return what goes on with a run for guest code, which decides nothing for the user."""
        await self._resumable.replay(run.id, "ask")

        async def work(on_begin: OnRunStart, _ask: Elicitor | None) -> RunReport:
            return await self.resume(run.id, origin=origin, on_begin=on_begin)

        return work

    async def _in_session(self, code: str, lease: SessionLease, context: "RunContext") -> RunReport:
        first = context.replay.first if context.replay else ""
        resumes = context.replay.run.id if context.replay else ""
        start = RunStart(lease.info.name, lease.info.generation, resumes)
        kind: RunKind = "code" if context.dry_run_log is None else "rehearsal"
        with self._journal.begin(
            context.origin, code, kind=kind, start=start, run_id=context.run_id
        ) as journaled:
            self._sessions.remember_start(lease, journaled.id)
            result = await self._journaled(code, lease, journaled, context)
            failure = result.error.kind if result.error else None
            journaled.end(failure=failure, reply=result.text)
            journaled.offer(self._catalog.definitions, shown=context.origin.shown)
            if failure not in RESUMABLE:
                self._sessions.forget_start(first or journaled.id)
        return replace(result, run_id=journaled.id, session=lease.info.name)

    async def _journaled(
        self, code: str, lease: SessionLease, journaled: JournaledRun, context: "RunContext"
    ) -> RunReport:
        clock, artifacts = _Clock(), RunArtifacts(self._workspace, journaled.id)
        try:
            guard = self._guard(journaled, context)
            linked, tier = await self._checked(code, lease, clock)
            calls = self._calls(linked, lease, journaled, context, guard, artifacts)
            recorder = None if context.dry_run_log else self._uses.recorder(linked, calls.call)
            request = ExecutionRequest(
                linked=linked,
                calls=calls,
                recorder=recorder,
                ask=context.ask,
                lease=lease,
                on_print=PrintedOnce(context.on_print) if context.on_print else None,
            )
            tier, outcome = await self._executor.play(request, tier)
        except CodeRejected as rejection:
            return _rejected(rejection, clock.times, lease.notes)
        except RunCrashed as crash:
            if self._tiers.has_cpython:
                return _crashed(str(crash), clock.times)
            # Only now is it known that there is none: go on as where there never was.
            return await self._journaled(code, lease, journaled, context)
        self._catalog.save_shapes()
        await self._uses.count(linked, code, outcome, recorder)
        clock.split(sandbox_ms=outcome.guest_s, upstream_ms=outcome.waiting_s)
        saved = await save_overflow(outcome, artifacts, max_chars=self._limits.reply_chars)
        notes = (*lease.notes, *_replayed(context.replay), *_rehearsed(context.dry_run_log))
        return self._shape(linked.plan, outcome, tier, calls, clock, saved, notes)

    async def _checked(
        self, code: str, lease: SessionLease, clock: "_Clock"
    ) -> tuple[LinkedProgram, Tier]:
        """Return code as it is run, and where; nothing has happened yet.

        Raises:
            CodeRejected: It cannot work.
        """
        plan = await self._plan(code)
        clock.lap("plan_ms")
        linked = await self._linker.link(plan)
        bound = lease.info.bindings
        linked = await self._examiner.prepare(linked, bound)
        clock.lap("connect_ms")
        needs_cpython = lease.info.tier == "cpython" and lease.state is not None
        tier, findings = await self._examiner.examine(linked, bound, needs_cpython=needs_cpython)
        clock.lap("check_ms")
        if findings:
            missed = self._examiner.missed(linked)
            context = [replace(each, message=as_written(each.message)) for each in findings]
            text = report.rejection_text(context, plan.source, missed=missed)
            raise CodeRejected(text, line=findings[0].line)
        return self._examiner.read_ahead(linked, bound), tier

    def _calls(  # all that a call may meet
        self,
        linked: LinkedProgram,
        lease: SessionLease,
        journaled: JournaledRun,
        context: "RunContext",
        guard: CallGuard,
        artifacts: RunArtifacts,
    ) -> Calls:
        sources = [as_people_write(lease.info.bindings.source()), linked.plan.shown]
        literals = cache(partial(literals_in, linked.nodes)) if guard.is_careful else None
        taint = self._border.taints.of(lease.info.name, has_state=lease.state is not None)
        call_context = CallContext(
            origin=context.origin,
            door="code",
            run=journaled,
            guard=guard,
            privacy=self._border.privacy(),
            taint=TaintTracker(taint, self._border.taints.untrusted, literals=literals),
            dry_run_log=context.dry_run_log,
            replay=context.replay,
        )
        return Calls(
            self._answerers,
            call_context,
            context.on_progress,
            artifacts=artifacts,
            definition_of=partial(definition_in, sources),
        )

    def _guard(self, journaled: JournaledRun, context: "RunContext") -> CallGuard:
        """Return who decides about calls.

        Raises:
            CodeRejected: The rules cannot be read: nothing is allowed until they can.
        """
        try:
            policy = self._border.policy_for(context.origin, context.ask, context.preapproval)
        except ConfigError as error:
            raise CodeRejected(f"Nothing was run. {error}") from error
        first = context.replay.first if context.replay else journaled.id
        run = RunFacts(first=first, attempt=journaled.id, origin=context.origin, scope=self._scope)
        run = replace(run, made=context.replay.made) if context.replay else run
        return self._border.guard(policy, run, journaled, context.preapproval)

    async def _plan(self, code: str) -> ProgramPlan:
        """Read the code: beside the event loop where it is so long that others would wait."""
        plan = partial(make_plan, code, max_bytes=self._limits.code_bytes)
        if len(code) < _LONG_CODE:
            return plan()
        return await anyio.to_thread.run_sync(plan, limiter=self._readers)

    async def plain_names(self, session: str, names: Collection[str]) -> frozenset[str]:
        """Return those of the names that a session has plain values of, or nothing at all."""
        return await self._executor.plain_names(self._sessions.latest(session), names)

    async def check_skill(self, skill: Skill) -> tuple[Tier, list[Finding]]:
        """Return which interpreter a skill needs, and what is wrong with its code.

        Raises:
            CodeRejected: It cannot be checked.
        """
        return await self._examiner.check_skill(skill)

    def _shape(  # noqa: PLR0913  # all that is known of a run
        self,
        plan: ProgramPlan,
        outcome: GuestOutcome,
        tier: Tier,
        calls: Calls,
        clock: "_Clock",
        saved: SavedOverflow,
        notes: tuple[str, ...],
    ) -> RunReport:
        counts = calls.tally.counts()
        run = calls.context.run
        waits = (
            *calls.waits,
            *calls.context.guard.notes,
            *calls.context.privacy.notes,
            *unrecorded_notes(run),
            *notes,
        )
        if outcome.failure is not None:
            outcome = replace(outcome, failure=_named(outcome.failure))
        failure = outcome.failure
        max_chars = self._limits.reply_chars
        if failure is None:
            text = report.success_text(outcome, waits, saved, max_chars=max_chars)
            error, trouble = None, ""
        else:
            hint = hint_for(
                failure,
                tier,
                has_cpython=self._tiers.has_cpython,
                tools=self._catalog.tools,
            )
            text = report.failure_text(
                outcome,
                plan.shown,
                counts,
                (*waits, *saved.notes),
                max_chars=max_chars,
                hint=hint,
            )
            trouble = report.failure_text(
                replace(outcome, output=""), plan.source, counts, (*waits, *saved.notes),
                max_chars=max_chars, hint=hint,
            )  # fmt: skip
            error = RunFailure(kind=failure.kind, message=failure.message, line=failure.line)
        clock.lap("shape_ms")
        return RunReport(
            success=failure is None,
            text=text,
            output=outcome.output,
            trouble=trouble,
            value=outcome.value,
            error=error,
            calls=counts,
            waits=waits,
            images=tuple(calls.shown),
            times=clock.times,
            tier=tier,
        )


def _named(failure: GuestFailure) -> GuestFailure:
    """Return a failure that names modules as the program did."""
    message, traceback = as_written(failure.message), as_written(failure.traceback)
    return replace(failure, message=message, traceback=traceback)


def _rejected(rejection: CodeRejected, times: Times, notes: Iterable[str]) -> RunReport:
    said = str(rejection)
    if said.startswith("SyntaxError"):
        said = f"Nothing was run. {said}"
    text = report.with_notes(said, notes)
    error = RunFailure(kind="rejected", message=text, line=rejection.line)
    return RunReport(success=False, text=text, error=error, times=times)


def _crashed(text: str, times: Times) -> RunReport:
    error = RunFailure(kind="crash", message=text)
    return RunReport(success=False, text=text, error=error, times=times)


@dataclass(frozen=True, slots=True)
class RunContext:
    """Which run it is, who asked for it, and whom to tell of it."""

    run_id: str
    origin: Origin
    on_progress: OnRunProgress
    ask: Elicitor | None
    replay: Replay | None = None
    dry_run_log: DryRun | None = None
    preapproval: Preapproval | None = None
    on_print: OnPrint | None = None


def _replayed(replay: Replay | None) -> Iterable[str]:
    if replay is not None:
        yield (
            f"This resumed run {replay.run.id}: {count(replay.answered, 'call')} answered from the "
            "record and not repeated."
        )
        for call in replay.left_over()[:_SHOWN_LEFT_OVER]:
            yield f"The first time it also made {call}, which was not asked for again."


def _rehearsed(dry_run_log: DryRun | None) -> Iterable[str]:
    if dry_run_log is not None:
        yield dry_run_log.text()


class _Clock:
    """Keeps the times of one run."""

    def __init__(self) -> None:
        self._spent: dict[str, float] = {}
        self._last = time.perf_counter()

    @property
    def times(self) -> Times:
        """What was booked, in milliseconds."""
        return Times(**self._spent)

    def lap(self, phase: str) -> None:
        """Book the time since the last lap to `phase`."""
        now = time.perf_counter()
        self._spent[phase] = round((now - self._last) * 1000, 3)
        self._last = now

    def split(self, **seconds: float) -> None:
        """Book measured seconds to their phases, and begin a lap."""
        for phase, value in seconds.items():
            self._spent[phase] = round(value * 1000, 3)
        self._last = time.perf_counter()
