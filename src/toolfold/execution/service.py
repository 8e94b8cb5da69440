"""One way to have code run, resumed, approved or refused: every door enters here."""

import math
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio.to_thread

from toolfold.catalog.names import module_names
from toolfold.catalog.questions import Elicitor
from toolfold.config.config import Config
from toolfold.config.serverfile import is_named_still
from toolfold.errors import NotFound
from toolfold.execution.background import BackgroundRun, BackgroundRuns, BackgroundWork, OnRunStart
from toolfold.execution.calls import OnRunProgress
from toolfold.execution.report import RunReport
from toolfold.execution.runtime import FRESH, Runtime, SessionRequest
from toolfold.execution.trust.approvals import Approval, Approvals, decided, scope_of
from toolfold.journal.decisions import DecidedAction
from toolfold.journal.journal import Journal
from toolfold.journal.replay import DoubtDecision
from toolfold.journal.runs import Origin
from toolfold.sandbox.sandbox import OnPrint

_MAX_CONFIGS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What every door can say of a run, whatever is run."""

    patience_s: float = math.inf
    """How long its asker waits for it: after that it goes on in the background. Zero waits for
    nothing."""
    is_detached: bool = False
    """Whether it goes on when its asker leaves; else it ends before its next call."""
    can_hold: bool = True
    """Whether its asker waits beyond that while the run itself waits for another."""
    ask: Elicitor | None = None
    """Puts questions to the user of its asker; None where nobody can be asked."""
    on_begin: OnRunStart = lambda _id: None
    on_progress: OnRunProgress = lambda _done, _total, _note: None
    on_print: OnPrint | None = None
    """Hears what the code prints, as it does."""


WAITED_FOR: Final = RunOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """Code that somebody wants to be run."""

    code: str
    origin: Origin
    session: SessionRequest = FRESH
    dry_run: bool = False
    """Whether only what reads is called, and the rest is listed."""
    options: RunOptions = WAITED_FOR


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRequest:
    """A run that did not come to its own end, and that somebody wants to go on."""

    run_id: str
    origin: Origin
    decision: DoubtDecision = "ask"
    options: RunOptions = WAITED_FOR


class RunConfigs:
    """In which configuration the last runs of this process began: they go on with its servers."""

    def __init__(self) -> None:
        self._configs: OrderedDict[str, Config] = OrderedDict()

    def note(self, run_id: str, config: Config) -> None:
        """Remember where a run began."""
        self._configs[run_id] = config
        while len(self._configs) > _MAX_CONFIGS:
            self._configs.popitem(last=False)

    def of(self, run_id: str) -> Config | None:
        """Return where a run began; None for one of another process, or of long ago."""
        return self._configs.get(run_id)


class RunService:
    """Runs code for every door, with the same options."""

    def __init__(  # the composition root hands it every part
        self,
        runtime: Runtime,
        background_runs: BackgroundRuns,
        journal: Journal,
        approvals: Approvals,
        config: Config,
        run_configs: RunConfigs,
    ) -> None:
        self._runtime = runtime
        self._background_runs = background_runs
        self._journal = journal
        self._approvals = approvals
        self._config = config
        self._run_configs = run_configs

    async def run(self, request: RunRequest) -> RunReport | BackgroundRun:
        """Run code; return what came of it, or the run itself where it outlasts the patience.

        Raises:
            ToolfoldError: It cannot be run; what the code does wrong is in the report.
        """
        run = partial(
            self._runtime.run,
            request.code,
            origin=request.origin,
            session=request.session,
            dry_run=request.dry_run,
            on_progress=request.options.on_progress,
            on_print=request.options.on_print,
        )
        return await self._answer(
            request.origin.client,
            request.options,
            lambda on_begin, ask: run(on_begin=on_begin, ask=ask),
        )

    async def resume(self, request: ResumeRequest) -> RunReport | BackgroundRun:
        """Go on with a run; no call that completed is repeated.

        Raises:
            ToolfoldError: It cannot be resumed.
        """
        resume = partial(
            self._runtime.resume,
            request.run_id,
            origin=request.origin,
            decision=request.decision,
            on_progress=request.options.on_progress,
            on_print=request.options.on_print,
        )
        return await self._answer(
            request.origin.client,
            request.options,
            lambda on_begin, ask: resume(on_begin=on_begin, ask=ask),
        )

    async def approve(
        self,
        approval: Approval,
        *,
        most: int,
        always: bool,
        by: str,
        options: RunOptions = WAITED_FOR,
    ) -> RunReport | BackgroundRun | None:
        """Let a run go on that waits for the user; None where it waits alive and goes on itself.

        Raises:
            NotFound: It does not wait any more, or the user removed the server of its tool.
            ToolfoldError: As `resume`.
        """
        await anyio.to_thread.run_sync(self._check_server, approval)
        is_going_on = await anyio.to_thread.run_sync(
            self._write_approval, approval, most, always, by
        )
        if is_going_on:
            return None
        origin = Origin(client=approval.client, project=approval.project)
        return await self.resume(
            ResumeRequest(run_id=approval.attempt, origin=origin, options=options)
        )

    async def reject(self, approval: Approval, *, by: str) -> None:
        """Refuse what a run wants to do.

        Raises:
            NotFound: It does not wait any more.
        """
        await anyio.to_thread.run_sync(self._write_rejection, approval, by)

    def _check_server(self, approval: Approval) -> None:
        """See that the server of a tool is still there: what was removed is not called.

        Raises:
            NotFound: It is not.
        """
        named = approval.tool.partition(".")[0]
        modules = module_names(server.name for server in self._config.servers)
        for server in self._config.servers:
            if named in {server.name, modules[server.name]} and not is_named_still(server):
                raise NotFound(
                    f"There is no server {server.name!r} any more; nothing was called. "
                    f"`toolfold reject {approval.attempt}` ends the run."
                )

    def _write_approval(self, approval: Approval, most: int, always: bool, by: str) -> bool:
        """Write it down; return whether the run takes the answer by itself."""
        is_alive = self._is_alive(approval)
        self._approvals.decide(approval.id, "approved", most=most, by=by)
        self._note(approval, "approved", by)
        if always:
            scope = scope_of(self._config.namespace, approval.client)
            self._approvals.allow_always(scope, approval.tool, approval.definition)
        return is_alive

    def _write_rejection(self, approval: Approval, by: str) -> None:
        self._approvals.decide(approval.id, "rejected", most=0, by=by)
        self._note(approval, "rejected", by)

    def _note(self, approval: Approval, action: DecidedAction, by: str) -> None:
        """Have the journal of the run say what was decided, where that is ours."""
        try:
            self._journal.decide(approval.attempt, decided(approval, action, by=by))
        except NotFound:
            if not self._config.settings.database_url:
                raise

    def _is_alive(self, approval: Approval) -> bool:
        """Whether the run that asked waits in its process, and takes the answer by itself.

        Raises:
            NotFound: Another replica has it, and it can be resumed only there.
        """
        try:
            run = self._journal.find(approval.attempt)
        except NotFound as error:
            if self._config.settings.database_url and approval.waits_alive:
                return True
            raise NotFound(
                f"The run {approval.attempt} is not in the journal of this process, so it cannot "
                "go on here. Approve it where it began."
            ) from error
        return approval.waits_alive and self._journal.is_under_way(run)

    async def _answer(
        self, client: str, options: RunOptions, work: BackgroundWork
    ) -> RunReport | BackgroundRun:
        def begin(noted: OnRunStart, run_id: str) -> None:
            self._run_configs.note(run_id, self._config)
            noted(run_id)
            options.on_begin(run_id)

        answer = await self._background_runs.answer(
            client,
            lambda noted, ask: work(partial(begin, noted), ask),
            ask=options.ask,
            patience_s=options.patience_s,
            is_detached=options.is_detached or options.patience_s == 0,
            can_hold=options.can_hold,
        )
        if isinstance(answer, BackgroundRun):
            self._journal.flush()  # who gets an id can look the run up
        return answer
