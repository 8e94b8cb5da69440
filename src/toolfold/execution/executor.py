"""Where a program is run: in one interpreter, or in both, after what must run before it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from toolfold.catalog.catalog import Catalog
from toolfold.catalog.questions import Elicitor
from toolfold.catalog.stubfiles import StubFiles
from toolfold.clocks import PausableClock
from toolfold.execution.calls import PROGRESS, SHOW, Calls
from toolfold.execution.examiner import Examiner
from toolfold.execution.modules import cache
from toolfold.execution.modules import runs as runs_module
from toolfold.execution.modules import tools as discovery_module
from toolfold.execution.sessions.bindings import Bindings, bindings
from toolfold.execution.sessions.carry import candidates, changes, stays_behind, values_in
from toolfold.execution.sessions.handover import no_calls, pack_up, refuse_to_leave
from toolfold.execution.sessions.sessions import SessionLease, Sessions
from toolfold.execution.skills.linker import LinkedProgram, run_linked
from toolfold.execution.skills.recorder import Recorder
from toolfold.execution.tiers import Tier, Tiers
from toolfold.execution.trust.paused_runs import RunElicitor, WaitingRuns
from toolfold.sandbox.sandbox import (
    Frozen,
    GuestFiles,
    GuestModule,
    GuestOutcome,
    Modules,
    Program,
    Session,
    SessionStart,
    SessionState,
    close_parked,
)
from toolfold.sandbox.trees import ReadOnlyTree, Roots, Unchanged
from toolfold.workspace.workspace import Workspace

_NAMES: Final = frozenset({SHOW, PROGRESS, cache.GET, cache.PUT})


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRequest:
    """What is to be run, in which session, and who answers its calls."""

    linked: LinkedProgram
    calls: Calls
    recorder: Recorder | None
    """Notes what skills call, if there are any."""
    ask: Elicitor | None
    lease: SessionLease


class Executor:
    """Runs programs that were found to be right."""

    def __init__(  # noqa: PLR0913  # what a stage is made of
        self,
        *,
        catalog: Catalog,
        tiers: Tiers,
        examiner: Examiner,
        waiting: WaitingRuns,
        sessions: Sessions,
        workspace: Workspace,
        wall_time_s: float,
    ) -> None:
        self._catalog = catalog
        self._tiers = tiers
        self._examiner = examiner
        self._waiting = waiting
        self._sessions = sessions
        self._workspace = workspace
        self._wall_time_s = wall_time_s

    async def play(self, request: ExecutionRequest, tier: Tier) -> tuple[Tier, GuestOutcome]:
        """Run, and once more on CPython where Monty fails before anything was called.

        Raises:
            CodeRejected: It needs variables that cannot be taken along to CPython.
            RunCrashed: The interpreter ended.
        """
        lease, calls = request.lease, request.calls
        outcome, state = await self._play(request, tier)
        kept: Tier = tier
        if self._tiers.may_try_again(tier, outcome.failure) and calls.is_unused:
            if request.recorder:
                request.recorder.begin_again()
            outcome, other = await self._play(request, "cpython")
            tier = "cpython"
            if outcome.failure is None or state is None:
                kept, state = "cpython", other
            else:  # the code is wrong in both: the session stays where it was
                close_parked(other)
        is_frozen = outcome.failure is not None and outcome.failure.kind == "approval"
        if lease.is_kept and not (is_frozen and state is None):
            bound = bindings(request.linked.plan)
            bound = bound if outcome.failure is None else bound.in_doubt()
            await self._keep(request, state, kept, bound)
        return tier, outcome

    async def _keep(
        self, request: ExecutionRequest, state: SessionState | None, tier: Tier, bound: Bindings
    ) -> None:
        """Keep what a run has left; where others changed the session since, what it changed."""
        lease, sessions = request.lease, self._sessions
        async with sessions.updating(lease.info.name):
            if not sessions.has_gone_on(lease) and not (lease.is_apart and tier == "cpython"):
                await sessions.keep(lease, state, tier, bound)
                return
            if state is None:
                return
            now = sessions.latest(lease.info.name)
            if tier == "cpython" or now.info.tier == "cpython":
                close_parked(state)
                own = [name for name in bound.names if name not in bound.imports]
                if own:
                    lease.notes.append(stays_behind(own))
                return
            await self._carry(request, state, now, bound)

    async def _carry(
        self, request: ExecutionRequest, state: SessionState, now: SessionLease, bound: Bindings
    ) -> None:
        lease = request.lease
        names = candidates(request.linked.plan, lease.info.bindings, bound)
        if not names:
            return
        before, after, there = [
            await self._values(each, names) for each in (lease.state, state, now.state)
        ]
        found = changes(names, before, after, bound)
        if found.left:
            lease.notes.append(stays_behind(found.left))
        if not found.programs:
            return
        both = [each for each in found.bound.names if there.get(each, "") != before.get(each, "")]
        both = [each for each in both if after[each] is not None and there[each] != after[each]]
        if both:
            lease.notes.append(
                f"Another run changed {', '.join(both)} meanwhile: the values of this run are kept."
            )
        start = SessionStart(state=now.state)
        opened = self._tiers.sandbox("monty").open(
            modules(self._catalog), _NAMES, session_start=start
        )
        async with opened as session:
            for program in found.programs:
                await session.run(program, no_calls)
            left = await session.leave()
        await self._sessions.keep(now, left, "monty", found.bound)
        lease.notes += now.notes

    async def _values(
        self, state: SessionState | None, names: tuple[str, ...]
    ) -> dict[str, str | None]:
        """Read the values of names from what a session was left as."""
        if state is None:
            return dict.fromkeys(names, "")
        start = SessionStart(state=state)
        opened = self._tiers.sandbox("monty").open(
            modules(self._catalog), _NAMES, session_start=start
        )
        async with opened as session:
            return await values_in(session, names)

    async def _play(
        self, request: ExecutionRequest, tier: Tier
    ) -> tuple[GuestOutcome, SessionState | None]:
        """Run in one interpreter; return what is left of it too."""
        linked, calls, lease = request.linked, request.calls, request.lease
        moves = tier == "cpython" and isinstance(lease.state, Frozen)
        before = list(await self._moved(request)) if moves else []
        before += _helpers(linked, lease.info.bindings)
        state = None if moves else lease.state
        session_start = SessionStart(state=state, seed=calls.seed, clock=calls.read_clock)
        names = _NAMES.union(*(self._examiner.aliases(plan) for plan in linked.plans))
        files = calls.files = self._files(calls)
        opened = self._tiers.sandbox(tier).open(
            modules(self._catalog), names, files=files, session_start=session_start
        )
        async with opened as session:
            clock = self._attend(request, tier, session)
            for program in before:
                outcome = await session.run(program, no_calls, clock=clock)
                if outcome.failure is not None:
                    return outcome, None
            on_call = request.recorder.call if request.recorder else calls.call
            outcome = await run_linked(session, linked, on_call, clock)
            return outcome, await session.leave() if lease.is_kept else None

    def _attend(self, request: ExecutionRequest, tier: Tier, session: Session) -> PausableClock:
        """Tell those who answer its calls where a program runs; return its clock."""
        calls, ask = request.calls, request.ask
        clock = PausableClock(self._wall_time_s)
        guard = calls.context.guard
        guard.tier, guard.clock, guard.waiting = tier, clock, self._waiting
        guard.ask = ask and replace(ask, put=RunElicitor(ask, self._waiting, clock))
        calls.context = replace(calls.context, ask=guard.ask)
        calls.settle_files = session.settle
        return clock

    def _files(self, calls: Calls) -> Roots:
        stubs = ReadOnlyTree(StubFiles(self._catalog), "servers")
        own: GuestFiles = self._workspace
        if calls.context.dry_run_log is not None:
            own = Unchanged(own, "this is a dry run")
        return Roots({"servers": stubs, "workspace": own})

    async def _moved(self, request: ExecutionRequest) -> Iterable[Program]:
        """Return what makes in CPython the variables of Monty that a program uses.

        Raises:
            CodeRejected: Some of them cannot be made there.
        """
        plan, lease = request.linked.plan, request.lease
        used = lease.info.bindings.used_by(plan)
        if not used.names:
            return ()
        session_start = SessionStart(state=lease.state)
        monty = self._tiers.sandbox("monty")
        async with monty.open(
            modules(self._catalog), _NAMES, session_start=session_start
        ) as session:
            handover = await pack_up(session, used)
        if handover.left:
            raise refuse_to_leave(plan, handover.left)
        return handover.programs


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
    return {name: factory(module) for name, module in catalog.spellings.items()} | ours


def _helpers(linked: LinkedProgram, bound: Bindings) -> Iterable[Program]:
    """Return what a program uses that is guest code too, but not its own."""
    name = cache.NAME
    is_named = any(name in plan.names for plan in linked.plans)
    is_named = is_named or any(f"{name}(" in text for text in bound.definitions.values())
    if is_named and name not in {*bound.names, *bindings(linked.plan).names}:
        yield Program(source=cache.SOURCE)
