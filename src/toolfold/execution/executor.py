"""Where a program is run: in one interpreter, or in both, after what must run before it."""

from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache as cache_result
from typing import Final

from toolfold.catalog.catalog import Catalog, StubFiles
from toolfold.catalog.questions import Elicitor
from toolfold.catalog.tool import Definitions
from toolfold.clocks import PausableClock
from toolfold.execution.calls import PROGRESS, SHOW, Calls
from toolfold.execution.examiner import Examiner
from toolfold.execution.modules import cache
from toolfold.execution.modules import runs as runs_module
from toolfold.execution.modules import tools as discovery_module
from toolfold.execution.read_ahead import reading_ahead
from toolfold.execution.sessions.bindings import Bindings, bindings
from toolfold.execution.sessions.handover import (
    Handover,
    candidates,
    changed_by_both,
    changes,
    no_calls,
    pack_up,
    refuse_to_leave,
    stays_behind,
    values_in,
)
from toolfold.execution.sessions.pickled import (
    Pickled,
    changed_texts,
    lost_names,
    lost_with_process,
    only,
    read_texts,
    write_texts,
)
from toolfold.execution.sessions.sessions import SessionLease, Sessions
from toolfold.execution.skills.linker import LinkedProgram, run_linked
from toolfold.execution.skills.recorder import Recorder
from toolfold.execution.tiers import Tier, Tiers
from toolfold.execution.trust.guard import facts_of
from toolfold.execution.trust.preapproval import RunElicitor, WaitingRuns
from toolfold.sandbox.sandbox import (
    AHEAD,
    Frozen,
    GuestFiles,
    GuestModule,
    GuestOutcome,
    Modules,
    OnCall,
    OnPrint,
    Program,
    Session,
    SessionStart,
    SessionState,
    close_parked,
)
from toolfold.sandbox.trees import ReadOnlyTree, Roots, Unchanged
from toolfold.workspace.workspace import Workspace

_NAMES: Final = frozenset({SHOW, PROGRESS, AHEAD, cache.GET, cache.PUT})


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRequest:
    """What is to be run, in which session, and who answers its calls."""

    linked: LinkedProgram
    calls: Calls
    recorder: Recorder | None
    """Notes what skills call, if there are any."""
    ask: Elicitor | None
    lease: SessionLease
    on_print: "PrintedOnce | None" = None


class PrintedOnce:
    """Passes on what a program prints; what it prints again when it begins anew is left out."""

    def __init__(self, on_print: OnPrint) -> None:
        self._on_print = on_print
        self._printed: list[str] = []
        self._again = ""

    def begin_again(self) -> None:
        """Expect all that was printed once more."""
        self._again = "".join(self._printed)

    def __call__(self, text: str) -> None:
        """Take what is printed."""
        if self._again.startswith(text):
            self._again = self._again.removeprefix(text)
            return
        text, self._again = text.removeprefix(self._again), ""
        self._printed.append(text)
        self._on_print(text)


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
        text_bytes: int,
        read_ahead: int,
    ) -> None:
        self._catalog = catalog
        self._tiers = tiers
        self._examiner = examiner
        self._waiting = waiting
        self._sessions = sessions
        self._workspace = workspace
        self._wall_time_s = wall_time_s
        self._text_bytes = text_bytes
        self._ahead = read_ahead
        self._modules: tuple[Definitions, Modules] | None = None

    @property
    def _offered(self) -> Modules:
        """What can be imported, made once for the tools that there are now."""
        tools = self._catalog.definitions
        if self._modules is None or self._modules[0] is not tools:
            self._modules = tools, modules(self._catalog)
        return self._modules[1]

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
            if request.on_print:
                request.on_print.begin_again()
            outcome, other = await self._play(request, "cpython")
            tier = "cpython"
            if outcome.failure is None or state is None:
                kept, state = "cpython", other
            else:  # the code is wrong in both: the session stays where it was
                close_parked(other)
                lease.missing = {}
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
            if not sessions.has_gone_on(lease):
                if state is not None:
                    lease.leave_behind()
                await sessions.keep(lease, state, tier, bound)
            elif state is not None:
                now = sessions.latest(lease.info.name)
                is_pickled = tier == "cpython" and now.info.tier == "cpython"
                merge = self._merge if is_pickled else self._carry
                await merge(request, state, now, bound)
                lease.notes += now.notes

    async def _carry(
        self, request: ExecutionRequest, state: SessionState, now: SessionLease, bound: Bindings
    ) -> None:
        """Carry into a session what a run changed, by texts that both interpreters read."""
        lease = request.lease
        names = candidates(request.linked.plan, lease.info.bindings, bound)
        if not names:
            close_parked(state)
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
            lease.notes.append(changed_by_both(both))
        async with self._latest(now) as session:
            for program in found.programs:
                await session.run(program, no_calls)
            await self._keep_latest(now, session, found.bound)

    async def _merge(
        self, request: ExecutionRequest, state: SessionState, now: SessionLease, bound: Bindings
    ) -> None:
        """Bring together what a run and others changed of CPython's variables.

        The process that had the session goes on with it, for it holds what cannot be pickled.
        """
        lease = request.lease
        own = changed_texts(lease.before, lease.texts)
        others = changed_texts(lease.before, now.texts)
        if both := [name for name in own if name in others and own[name] != others[name]]:
            lease.notes.append(changed_by_both(both))
        if lease.is_apart:
            left = [name for name in lost_names(lease.texts, bound) if name in bound.names]
            lease.notes += [stays_behind(left)] if left else []
            close_parked(state)
            async with self._latest(now) as session:
                await read_texts(session, own, bound)
                await self._keep_latest(now, session, bound)
            return
        pulled = {name: text for name, text in others.items() if name not in own}
        foreign = set(now.info.bindings.names) - set(bound.names)
        start = SessionStart(state=state)
        opened = self._tiers.sandbox("cpython").open(self._offered, _NAMES, session_start=start)
        async with opened as session:
            await read_texts(session, pulled, only(now.info.bindings, foreign))
            await self._keep_latest(now, session, bound)

    @asynccontextmanager
    async def _latest(self, now: SessionLease) -> AsyncIterator[Session]:
        """Open a session as it is now: in its process, or in a new one that is made alike."""
        parked = self._sessions.take_parked(now) if now.info.tier == "cpython" else None
        state = parked or (now.state if isinstance(now.state, Frozen) else None)
        opened = self._tiers.sandbox(now.info.tier).open(
            self._offered, _NAMES, session_start=SessionStart(state=state)
        )
        async with opened as session:
            if state is None and isinstance(now.state, Pickled):
                await read_texts(session, now.texts, now.info.bindings)
            yield session

    async def _keep_latest(self, now: SessionLease, session: Session, bound: Bindings) -> None:
        if now.info.tier == "cpython":
            names = now.info.bindings.after(bound).names
            now.texts = await write_texts(session, names, room=self._text_bytes)
        await self._sessions.keep(now, await session.leave(), now.info.tier, bound)

    async def plain_names(self, lease: SessionLease, names: Collection[str]) -> frozenset[str]:
        """Return those of the names that are plain values there, or not bound at all."""
        if lease.info.tier != "monty":
            return frozenset()
        values = await self._values(lease.state, tuple(names))
        return frozenset(name for name, value in values.items() if value is not None)

    async def _values(
        self, state: SessionState | None, names: tuple[str, ...]
    ) -> dict[str, str | None]:
        """Read the values of names from what a session was left as."""
        if state is None:
            return dict.fromkeys(names, "")
        if isinstance(state, Pickled):
            return dict.fromkeys(names)
        tier: Tier = "monty" if isinstance(state, Frozen) else "cpython"
        start = SessionStart(state=state)
        opened = self._tiers.sandbox(tier).open(self._offered, _NAMES, session_start=start)
        async with opened as session:
            return await values_in(session, names)

    async def _play(
        self, request: ExecutionRequest, tier: Tier
    ) -> tuple[GuestOutcome, SessionState | None]:
        """Run in one interpreter; return what is left of it too."""
        linked, calls, lease = request.linked, request.calls, request.lease
        moves = tier == "cpython" and isinstance(lease.state, Frozen)
        handover = await self._moved(request) if moves else Handover()
        before = [*handover.programs, *_helpers(linked, lease.info.bindings)]
        pickled = lease.state if isinstance(lease.state, Pickled) else None
        state = None if moves or pickled else lease.state
        origin = calls.context.origin
        session_start = SessionStart(
            state=state,
            seed=calls.seed,
            clock=calls.read_clock,
            is_kept=lease.is_kept,
            on_print=request.on_print,
            caller=origin.client,
            is_remote=origin.has_key,
        )
        names = _NAMES.union(*(self._examiner.aliases(plan) for plan in linked.plans))
        files = calls.files = self._files(calls)
        opened = self._tiers.sandbox(tier).open(
            self._offered, names, files=files, session_start=session_start
        )
        async with opened as session:
            clock = self._attend(request, tier, session)
            for program in before:
                outcome = await session.run(program, no_calls, clock=clock)
                if outcome.failure is not None:
                    return outcome, None
            for program in handover.others:
                await session.run(program, no_calls, clock=clock)
            if tier == "cpython" and lease.is_kept:
                await self._note_start(request, session, pickled, is_new=state is None)
            outcome = await self._run(request, session, clock)
            if tier == "cpython" and lease.is_kept:
                own = bindings(linked.plan)
                bound = lease.info.bindings.after(own)
                lease.texts = await write_texts(session, bound.names, room=self._text_bytes)
                lease.missing = handover.missing(lease.texts, own.names)
            return outcome, await session.leave() if lease.is_kept else None

    async def _run(
        self, request: ExecutionRequest, session: Session, clock: PausableClock
    ) -> GuestOutcome:
        """Run a program; where its loops say which reads will come, these begin before."""
        linked, calls = request.linked, request.calls
        on_call: OnCall = request.recorder.call if request.recorder else calls.call
        if linked.ahead is None:
            return await run_linked(session, linked, on_call, clock)
        guard = calls.context.guard
        async with reading_ahead(
            on_call, self._catalog.find, lambda tool: guard.is_open(facts_of(tool)), self._ahead
        ) as on_call:
            return await run_linked(session, linked, on_call, clock)

    async def _note_start(
        self, request: ExecutionRequest, session: Session, pickled: Pickled | None, *, is_new: bool
    ) -> None:
        """Note with which variables a run begins in CPython, made anew where they must be."""
        lease = request.lease
        known = lease.info.bindings
        if pickled:
            used = known.used_by(request.linked.plan).names
            left = await read_texts(session, pickled.texts, known)
            if missed := [name for name in left if name in used and not lease.notes]:
                lease.notes.append(lost_with_process(missed))
        is_measured = not is_new or not known.names
        lease.before = (
            lease.texts
            if is_measured
            else await write_texts(session, known.names, room=self._text_bytes)
        )

    def _attend(self, request: ExecutionRequest, tier: Tier, session: Session) -> PausableClock:
        """Tell those who answer its calls where a program runs; return its clock."""
        calls, ask = request.calls, request.ask
        clock = PausableClock(self._wall_time_s)
        guard = calls.context.guard
        guard.tier, guard.clock, guard.waiting = tier, clock, self._waiting
        guard.ask = ask and replace(ask, put=RunElicitor(ask, self._waiting, clock))
        calls.context = replace(calls.context, ask=guard.ask)
        calls.settle_files = session.settle
        guard.printed = session.printed
        return clock

    def _files(self, calls: Calls) -> Roots:
        stubs = ReadOnlyTree(StubFiles(self._catalog), "servers")
        own: GuestFiles = self._workspace
        if calls.context.dry_run_log is not None:
            own = Unchanged(own, "this is a dry run")
        return Roots({"servers": stubs, "workspace": own})

    async def _moved(self, request: ExecutionRequest) -> Handover:
        """Return what makes in CPython the variables of Monty.

        Raises:
            CodeRejected: Some of those that the program uses cannot be made there.
        """
        plan, lease = request.linked.plan, request.lease
        bound = lease.info.bindings
        used = frozenset(bound.needed_by(plan).names)
        if not bound.names:
            return Handover()
        session_start = SessionStart(state=lease.state)
        monty = self._tiers.sandbox("monty")
        async with monty.open(self._offered, _NAMES, session_start=session_start) as session:
            handover = await pack_up(session, bound, used)
        if needed := [name for name in handover.left if name in used]:
            raise refuse_to_leave(plan, needed)
        return handover


def modules(catalog: Catalog) -> Modules:
    """Return every module that guest code can import now, each made when first needed."""

    def factory(module: str) -> Callable[[], GuestModule]:
        @cache_result
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
