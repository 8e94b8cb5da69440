"""Runtime.run: the one path through the system."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import anyio
import anyio.to_thread

from toolfold.catalog.catalog import Catalog
from toolfold.catalog.questions import Ask
from toolfold.catalog.stubfiles import StubFiles
from toolfold.clocks import PausableClock
from toolfold.config.settings import Limits
from toolfold.errors import BadInput, CodeRejected, ConfigError, InDoubt, RunCrashed, ToolfoldError
from toolfold.execution import caching, discovery_module, report, runs_module
from toolfold.execution.approvals import Approvals
from toolfold.execution.bindings import Bindings, bindings
from toolfold.execution.calls import PROGRESS, SHOW, Answerers, Calls, OnProgress
from toolfold.execution.concealing import Concealing, Privacy
from toolfold.execution.examiner import Examiner
from toolfold.execution.going import Begun, Work
from toolfold.execution.guarding import Guard, RunFacts
from toolfold.execution.hints import hint_for
from toolfold.execution.journal import Journal, JournaledRun
from toolfold.execution.keeping import Keeping
from toolfold.execution.moving import no_calls, pack_up, refuse_to_leave
from toolfold.execution.overflow import Saved, save_overflow
from toolfold.execution.plan import Plan, make_plan
from toolfold.execution.recording import Recorder
from toolfold.execution.rehearsal import Rehearsal
from toolfold.execution.replay import Decision, Replay
from toolfold.execution.report import RunFailure, RunResult, Times
from toolfold.execution.review import Finding
from toolfold.execution.runs import RESUMABLE, Kind, Origin, Run, Start
from toolfold.execution.sessions import Held, Sessions
from toolfold.execution.skill_feed import Feed, Feeder, run_feed
from toolfold.execution.skill_uses import SkillUses
from toolfold.execution.tainting import Following, Taints
from toolfold.execution.tiers import Tier, Tiers
from toolfold.execution.waiting import RunAsk, WaitingRuns
from toolfold.policy.files import PolicyFiles
from toolfold.sandbox.sandbox import (
    Beginning,
    Checker,
    Frozen,
    GuestFiles,
    GuestModule,
    GuestOutcome,
    Modules,
    OnCall,
    Program,
    State,
    close_parked,
)
from toolfold.sandbox.trees import ReadOnlyTree, Roots, Unchanged
from toolfold.skills.extract import definition_in
from toolfold.skills.library import Library
from toolfold.skills.models import Skill
from toolfold.workspace.workspace import Workspace

_NOBODY = Origin()
_LONG_CODE: Final = 16_384  # characters; a thread costs more than to read fewer
_SHOWN_LEFT_OVER: Final = 5
_NAMES: Final = frozenset({SHOW, PROGRESS, caching.GET, caching.PUT})


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
        self._waiting = waiting
        self._journal = journal
        self._tiers = tiers
        self._limits = limits
        self._sessions = sessions
        self._trust = trust
        self._taints = Taints(trust.privacy.untrusted)
        self._readers = anyio.CapacityLimiter(1)
        answerers.runs.resume = self._resuming
        self._feeder = Feeder(library, max_bytes=limits.code_bytes)
        self._uses = SkillUses(library)
        self._examiner = Examiner(answerers.catalog, tiers, checker, self._feeder, limits)

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
        replay = await self._replay(run_id, decision)
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
            if (last := self._journal.following(replay.first).id) != replay.run.id:
                raise BadInput(f"Somebody has just gone on with the run {run_id}: see run {last}.")
            on_begin(told.run_id)
            async with again as held:
                return await self._in_session(code, held, told)

    async def _replay(self, run_id: str, decision: Decision) -> Replay:
        """Return what is known of a run that can be gone on with, or of the last attempt at that.

        Raises:
            BadInput: It is under way.
            NotFound: There is no such run, or nothing to go on with.
            InDoubt: The user has to decide.
        """
        last = self._journal.following(self._journal.find(run_id).id)
        if self._journal.is_under_way(last):
            raise BadInput(f"The run {last.id} is under way: runs.get({last.id!r}) waits for it.")
        replay = Replay(self._journal.recorded(last.id), decision=decision)
        await self._settle_doubts(replay)
        return replay

    async def _resuming(self, run: Run, origin: Origin) -> Work:
        """Return what goes on with a run for guest code, which decides nothing for the user."""
        await self._replay(run.id, "ask")

        async def work(on_begin: Begun, _ask: Ask | None) -> RunResult:
            return await self.resume(run.id, origin=origin, on_begin=on_begin)

        return work

    async def _settle_doubts(self, replay: Replay) -> None:
        """See that nothing is repeated that may do harm twice.

        Raises:
            InDoubt: The user has to decide.
        """
        await self._catalog.learn({doubt.tool.partition(".")[0] for doubt in replay.doubts})
        if doubts := replay.open_doubts(self._may_repeat):
            raise InDoubt(report.doubt_text(replay.run.id, doubts))

    def _may_repeat(self, path: str) -> bool:
        try:
            listed = self._catalog.find(path).listed
        except ToolfoldError:
            return False
        return listed.read_only or listed.idempotent

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
        clock = _Clock()
        try:
            guard = self._guard(journaled, told)
            plan = await self._plan(code)
            clock.lap("plan_ms")
            feed = await self._feeder.feed(plan)
            bound = held.info.bindings
            await self._examiner.learn(feed, bound)
            clock.lap("connect_ms")
            needs_cpython = held.info.tier == "cpython" and held.state is not None
            tier, findings = await self._examiner.examine(feed, bound, needs_cpython=needs_cpython)
            clock.lap("check_ms")
        except CodeRejected as rejection:
            return _rejected(str(rejection), None, clock.times, held.notes)
        if findings:
            missed = self._examiner.missed(feed)
            text = report.rejection_text(findings, plan.source, missed=missed)
            return _rejected(text, findings[0].line, clock.times, held.notes)
        keeping = Keeping(self._workspace, journaled.id)
        calls = Calls(
            self._answerers,
            journaled,
            told.on_progress,
            origin=told.origin,
            keeping=keeping,
            definition_of=partial(definition_in, [bound.source(), plan.source]),
            guard=guard,
            concealing=Concealing(self._trust.privacy),
            following=self._following(held),
            rehearsal=told.rehearsal,
            replay=told.replay,
        )
        recorder = self._uses.recorder(feed, calls.call)
        try:
            tier, outcome = await self._run_somewhere(
                plan, feed, tier, calls, recorder, told.ask, held
            )
        except CodeRejected as rejection:
            return _rejected(str(rejection), None, clock.times, held.notes)
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
        return self._shape(plan, outcome, tier, calls, clock, saved, notes)

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

    async def _run_somewhere(  # noqa: PLR0913  # all that a run is made of
        self,
        plan: Plan,
        feed: Feed,
        tier: Tier,
        calls: Calls,
        recorder: Recorder | None,
        ask: Ask | None,
        held: Held,
    ) -> tuple[Tier, GuestOutcome]:
        """Run, and once more on CPython where Monty fails before anything was called."""
        on_call = recorder.call if recorder else calls.call
        outcome, state = await self._run(feed, tier, calls, on_call, ask, held)
        kept: Tier = tier
        if self._tiers.may_try_again(tier, outcome.failure) and calls.is_unused:
            if recorder:
                recorder.begin_again()
            outcome, other = await self._run(feed, "cpython", calls, on_call, ask, held)
            tier = "cpython"
            if outcome.failure is None or state is None:
                kept, state = "cpython", other
            else:  # the code is wrong in both: the session stays where it was
                close_parked(other)
        is_frozen = outcome.failure is not None and outcome.failure.kind == "approval"
        if held.is_kept and not (is_frozen and state is None):
            bound = bindings(plan)
            is_whole = outcome.failure is None
            await self._sessions.keep(held, state, kept, bound if is_whole else bound.in_doubt())
        return tier, outcome

    async def _run(
        self,
        feed: Feed,
        tier: Tier,
        calls: Calls,
        on_call: OnCall,
        ask: Ask | None,
        held: Held,
    ) -> tuple[GuestOutcome, State | None]:
        """Run in one interpreter, after what must run before; return what is left of it too."""
        moves = tier == "cpython" and isinstance(held.state, Frozen)
        helpers = _helpers(feed, held.info.bindings)
        moved = await self._moved(feed.plan, held) if moves else ()
        state = None if moves else held.state
        beginning = Beginning(state=state, seed=calls.seed, clock=calls.read_clock)
        names = _NAMES.union(*(self._examiner.aliases(plan) for plan in feed.plans))
        sandbox = self._tiers.sandbox(tier)
        stubs = ReadOnlyTree(StubFiles(self._catalog), "servers")
        own: GuestFiles = self._workspace
        if calls.rehearsal is not None:
            own = Unchanged(own, "this is a dry run")
        files = calls.files = Roots({"servers": stubs, "workspace": own})
        known = modules(self._catalog)
        async with sandbox.open(known, names, files=files, beginning=beginning) as session:
            clock = PausableClock(self._limits.wall_time_s)
            calls.guard.tier, calls.guard.clock = tier, clock
            calls.ask = ask and replace(ask, put=RunAsk(ask, self._waiting, clock))
            calls.guard.ask = calls.ask
            calls.settle_files = session.settle
            for program in (*moved, *helpers):
                outcome = await session.run(program, no_calls, clock=clock)
                if outcome.failure is not None:
                    return outcome, None
            outcome = await run_feed(session, feed, on_call, clock)
            return outcome, await session.leave() if held.is_kept else None

    async def _moved(self, plan: Plan, held: Held) -> Iterable[Program]:
        """Return what makes in CPython the variables of Monty that a program uses.

        Raises:
            CodeRejected: Some of them cannot be made there.
        """
        used = held.info.bindings.used_by(plan)
        if not used.names:
            return ()
        beginning = Beginning(state=held.state)
        monty = self._tiers.sandbox("monty")
        async with monty.open(modules(self._catalog), _NAMES, beginning=beginning) as session:
            luggage = await pack_up(session, used)
        if luggage.left:
            raise refuse_to_leave(plan, luggage.left)
        return luggage.programs

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
        failure = outcome.failure
        max_chars = self._limits.reply_chars
        if failure is None:
            text = report.success_text(outcome, waits, saved, max_chars=max_chars)
            error = None
        else:
            hint = hint_for(failure, tier, has_cpython=self._tiers.has_cpython)
            text = report.failure_text(
                outcome, plan.source, counts, (*waits, *saved.notes), max_chars=max_chars, hint=hint
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

    ours = {"tools": lambda: discovery_module.MODULE, "runs": lambda: runs_module.MODULE}
    return ours | {module: factory(module) for module in catalog.modules}


def _rejected(text: str, line: int | None, times: Times, notes: Iterable[str] = ()) -> RunResult:
    text = report.with_notes(text, notes)
    error = RunFailure(kind="rejected", message=text, line=line)
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


def _helpers(feed: Feed, bound: Bindings) -> Iterable[Program]:
    """Return what a program uses that is guest code too, but not its own."""
    name = caching.NAME
    is_named = any(name in plan.names for plan in feed.plans)
    is_named = is_named or any(f"{name}(" in text for text in bound.definitions.values())
    if is_named and name not in {*bound.names, *bindings(feed.plan).names}:
        yield Program(source=caching.SOURCE)


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
