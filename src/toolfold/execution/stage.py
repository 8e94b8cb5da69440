"""Where a program is run: in one interpreter, or in both, after what must run before it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from toolfold.catalog.catalog import Catalog
from toolfold.catalog.questions import Ask
from toolfold.catalog.stubfiles import StubFiles
from toolfold.clocks import PausableClock
from toolfold.execution.calls import PROGRESS, SHOW, Calls
from toolfold.execution.examiner import Examiner
from toolfold.execution.modules import caching
from toolfold.execution.modules import runs as runs_module
from toolfold.execution.modules import tools as discovery_module
from toolfold.execution.sessions.bindings import Bindings, bindings
from toolfold.execution.sessions.moving import no_calls, pack_up, refuse_to_leave
from toolfold.execution.sessions.sessions import Held, Sessions
from toolfold.execution.skills.feed import Feed, run_feed
from toolfold.execution.skills.recording import Recorder
from toolfold.execution.tiers import Tier, Tiers
from toolfold.execution.trust.waiting import RunAsk, WaitingRuns
from toolfold.sandbox.sandbox import (
    Beginning,
    Frozen,
    GuestFiles,
    GuestModule,
    GuestOutcome,
    Modules,
    Program,
    Session,
    State,
    close_parked,
)
from toolfold.sandbox.trees import ReadOnlyTree, Roots, Unchanged
from toolfold.workspace.workspace import Workspace

_NAMES: Final = frozenset({SHOW, PROGRESS, caching.GET, caching.PUT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What is to be run, in which session, and who answers its calls."""

    feed: Feed
    calls: Calls
    recorder: Recorder | None
    """Notes what skills call, if there are any."""
    ask: Ask | None
    held: Held


class Stage:
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

    async def play(self, act: Act, tier: Tier) -> tuple[Tier, GuestOutcome]:
        """Run, and once more on CPython where Monty fails before anything was called.

        Raises:
            CodeRejected: It needs variables that cannot be taken along to CPython.
            RunCrashed: The interpreter ended.
        """
        held, calls = act.held, act.calls
        outcome, state = await self._play(act, tier)
        kept: Tier = tier
        if self._tiers.may_try_again(tier, outcome.failure) and calls.is_unused:
            if act.recorder:
                act.recorder.begin_again()
            outcome, other = await self._play(act, "cpython")
            tier = "cpython"
            if outcome.failure is None or state is None:
                kept, state = "cpython", other
            else:  # the code is wrong in both: the session stays where it was
                close_parked(other)
        is_frozen = outcome.failure is not None and outcome.failure.kind == "approval"
        if held.is_kept and not (is_frozen and state is None):
            bound = bindings(act.feed.plan)
            is_whole = outcome.failure is None
            await self._sessions.keep(held, state, kept, bound if is_whole else bound.in_doubt())
        return tier, outcome

    async def _play(self, act: Act, tier: Tier) -> tuple[GuestOutcome, State | None]:
        """Run in one interpreter; return what is left of it too."""
        feed, calls, held = act.feed, act.calls, act.held
        moves = tier == "cpython" and isinstance(held.state, Frozen)
        before = list(await self._moved(act)) if moves else []
        before += _helpers(feed, held.info.bindings)
        state = None if moves else held.state
        beginning = Beginning(state=state, seed=calls.seed, clock=calls.read_clock)
        names = _NAMES.union(*(self._examiner.aliases(plan) for plan in feed.plans))
        files = calls.files = self._files(calls)
        opened = self._tiers.sandbox(tier).open(
            modules(self._catalog), names, files=files, beginning=beginning
        )
        async with opened as session:
            clock = self._attend(act, tier, session)
            for program in before:
                outcome = await session.run(program, no_calls, clock=clock)
                if outcome.failure is not None:
                    return outcome, None
            on_call = act.recorder.call if act.recorder else calls.call
            outcome = await run_feed(session, feed, on_call, clock)
            return outcome, await session.leave() if held.is_kept else None

    def _attend(self, act: Act, tier: Tier, session: Session) -> PausableClock:
        """Tell those who answer its calls where a program runs; return its clock."""
        calls, ask = act.calls, act.ask
        clock = PausableClock(self._wall_time_s)
        calls.guard.tier, calls.guard.clock, calls.guard.waiting = tier, clock, self._waiting
        calls.ask = ask and replace(ask, put=RunAsk(ask, self._waiting, clock))
        calls.guard.ask = calls.ask
        calls.settle_files = session.settle
        return clock

    def _files(self, calls: Calls) -> Roots:
        stubs = ReadOnlyTree(StubFiles(self._catalog), "servers")
        own: GuestFiles = self._workspace
        if calls.rehearsal is not None:
            own = Unchanged(own, "this is a dry run")
        return Roots({"servers": stubs, "workspace": own})

    async def _moved(self, act: Act) -> Iterable[Program]:
        """Return what makes in CPython the variables of Monty that a program uses.

        Raises:
            CodeRejected: Some of them cannot be made there.
        """
        plan, held = act.feed.plan, act.held
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


def _helpers(feed: Feed, bound: Bindings) -> Iterable[Program]:
    """Return what a program uses that is guest code too, but not its own."""
    name = caching.NAME
    is_named = any(name in plan.names for plan in feed.plans)
    is_named = is_named or any(f"{name}(" in text for text in bound.definitions.values())
    if is_named and name not in {*bound.names, *bindings(feed.plan).names}:
        yield Program(source=caching.SOURCE)
