"""`execute_code`: a call into a run, a run into a task where its client has these, and a reply."""

from functools import partial
from typing import Any, Final

import anyio
import anyio.to_thread
import mcp_types as types

from toolfold.app import App
from toolfold.catalog.questions import Elicitor
from toolfold.entrypoints.mcp.elicitation_broker import BrokeredWork, ElicitationBroker
from toolfold.entrypoints.mcp.tasks import Task, declares_tasks, wants_task
from toolfold.errors import NotFound, ToolfoldError
from toolfold.execution import report
from toolfold.execution.background import BackgroundRun
from toolfold.execution.calls import OnRunProgress
from toolfold.execution.report import RunReport
from toolfold.execution.runtime import SessionRequest
from toolfold.execution.service import ResumeRequest, RunOptions, RunRequest
from toolfold.execution.trust.approval_form import waiting_text
from toolfold.execution.trust.approvals import approvals_of
from toolfold.journal.runs import Origin, Run
from toolfold.jsontypes import JsonObject

_TAKEN: Final = frozenset({"code", "session", "dry_run"})
_TASK_PATIENCE_S: Final = 365 * 86_400.0
"""How long a task is waited for, but for one that waits for a person: it ends by its own limits."""

ToolAnswer = types.CallToolResult | types.InputRequiredResult | Task
"""What a call comes to; or the work itself, which goes on as a task."""

CodeWork = BrokeredWork[types.CallToolResult]


class RunTask:
    """The run of one request that may become a task: by which id, and how it is ended."""

    def __init__(self, app: App) -> None:
        self.after_s = app.config.settings.limits.answer_s
        self._background_runs = app.shared.background_runs
        self._journal = app.shared.journal
        self._run_id = ""
        self.began = anyio.Event()

    def note(self, run_id: str) -> None:
        """Learn the id of the run."""
        self._run_id = run_id
        self.began.set()

    async def named(self, work: Task) -> str:
        """Return the id of the task, once it can be found by that."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_then, work.over, tasks.cancel_scope)
            await self.began.wait()
            tasks.cancel_scope.cancel()
        if not self._run_id:  # it was refused before it began
            return self._journal.new_id()
        self._journal.flush()
        return self._run_id

    async def stop(self) -> None:
        """End the run before its next call."""
        if (run := self._background_runs.find(self._run_id)) is not None:
            await self._background_runs.stop(run)


async def _then(wait: Any, scope: anyio.CancelScope) -> None:
    await wait()
    scope.cancel()


class CodeRuns:
    """Runs what clients of one app send to `execute_code`."""

    def __init__(self, app: App, session: str | None) -> None:
        self._app = app
        self._session = session
        self._answer_s = app.config.settings.limits.answer_s

    async def answer(
        self, context: Any, params: types.CallToolRequestParams, origin: Origin
    ) -> ToolAnswer:
        """Run the code of a call until its client is answered, or as a task."""
        broker: ElicitationBroker = context.lifespan_context
        is_asked_for = wants_task(context, params)
        task = RunTask(self._app) if is_asked_for or declares_tasks(context) else None
        arguments, can_hold = dict(params.arguments or {}), _hears_of_progress(context)
        work: CodeWork = partial(self._execute, origin, arguments, can_hold, task)
        if is_asked_for:
            return broker.start(context, params, work, task=task)
        return await broker.attend(context, params, work, task=task)

    async def _execute(
        self,
        origin: Origin,
        arguments: JsonObject,
        can_hold: bool,
        task: RunTask | None,
        ask: Elicitor | None,
        on_progress: OnRunProgress,
    ) -> types.CallToolResult:
        code, session = arguments.get("code"), arguments.get("session")
        dry_run = arguments.get("dry_run", False)
        is_odd = not isinstance(dry_run, bool) or bool(arguments.keys() - _TAKEN)
        if not isinstance(code, str) or not _is_text(session) or is_odd:
            return text_result(
                "execute_code takes `code`, the Python text to run, and if you like `session`, the "
                "name of the session to use, and `dry_run`, true or false.",
                is_error=True,
            )
        wish = SessionRequest(str(session)) if session else SessionRequest(self._session, True)
        options = self._options(ask, on_progress, can_hold=can_hold, task=task)
        result = await self._app.runs.run(
            RunRequest(
                code=code, origin=origin, session=wish, dry_run=bool(dry_run), options=options
            )
        )
        return await self._replied(result)

    def _options(
        self,
        ask: Elicitor | None,
        on_progress: OnRunProgress,
        *,
        can_hold: bool,
        task: RunTask | None,
    ) -> RunOptions:
        if task is None:
            return RunOptions(
                ask=ask, on_progress=on_progress, patience_s=self._answer_s, can_hold=can_hold
            )
        # It outlasts the connection that began it; `RunTask.stop` ends it.
        return RunOptions(
            ask=ask,
            on_progress=on_progress,
            patience_s=_TASK_PATIENCE_S,
            is_detached=True,
            on_begin=task.note,
        )

    async def recover(self, context: Any, client: str, task_id: str) -> Task | None:
        """Go on with the task of a connection, or of a daemon, that is gone; None if unknown.

        Raises:
            StoreError: The journal does not answer.
        """
        broker: ElicitationBroker = context.lifespan_context
        task = RunTask(self._app)
        run = self._app.shared.background_runs.find(task_id)
        if run is not None and run.client == client:
            task.note(run.id)
            work: CodeWork = partial(self._joined, run)
        else:
            known = self._written(client, task_id)
            if known is None:
                return None
            work = partial(self._resumed, known, client, task)
        return broker.start(context, types.RequestParams(), work, task=task)

    def _written(self, client: str, task_id: str) -> Run | None:
        """Return the last attempt at a run of a client."""
        journal = self._app.shared.journal
        try:
            run = journal.find(task_id)
            is_theirs = run.id == task_id and run.origin.client == client
            return journal.following(task_id) if is_theirs else None
        except NotFound:
            return None

    async def _joined(
        self, run: BackgroundRun, _ask: Elicitor | None, _progress: OnRunProgress
    ) -> types.CallToolResult:
        await run.over.wait()
        return await self._replied(run.outcome()) if run.result else text_result(run.text)

    async def _resumed(
        self,
        run: Run,
        client: str,
        task: RunTask,
        ask: Elicitor | None,
        on_progress: OnRunProgress,
    ) -> types.CallToolResult:
        """Return what is written of a run that has ended; go on with one that its daemon left."""
        if run.ending is not None:
            return text_result(run.ending.reply.head, is_error=run.ending.failure is not None)
        self._app.shared.background_runs.disown(client, run.id)
        origin = Origin(client=client, project=run.origin.project)
        options = self._options(ask, on_progress, can_hold=True, task=task)
        try:
            result = await self._app.runs.resume(
                ResumeRequest(run_id=run.id, origin=origin, options=options)
            )
        except ToolfoldError as error:
            return text_result(str(error), is_error=True)
        return await self._replied(result)

    async def _replied(self, result: RunReport | BackgroundRun) -> types.CallToolResult:
        if isinstance(result, BackgroundRun):
            return text_result(await self._going_text(result))
        return _reply(result)

    async def _going_text(self, run: BackgroundRun) -> str:
        """Say that a run goes on, or what it waits for."""
        approvals = approvals_of(self._app.config)
        approval = await anyio.to_thread.run_sync(approvals.latest_of, run.id)
        if approval is not None and approval.state == "pending":
            printed = run.printed[: self._app.config.settings.limits.reply_chars]
            return f"{printed}{waiting_text(approval)}"
        return report.background_text(run.id, self._answer_s)


def text_result(text: str, *, is_error: bool = False) -> types.CallToolResult:
    """Return a result that is one text."""
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], is_error=is_error
    )


def _reply(result: RunReport) -> types.CallToolResult:
    """Text only: clients that see structured content show the model that instead."""
    images = [
        types.ImageContent(type="image", data=blob.base64, mime_type=blob.mime_type)
        for blob in result.images
    ]
    text = types.TextContent(type="text", text=result.text)
    return types.CallToolResult(content=[text, *images], is_error=not result.success)


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _hears_of_progress(context: Any) -> bool:
    """Whether a client wants to hear of progress: it then waits as long as it hears of some."""
    meta = context.meta or {}
    return meta.get("progress_token", meta.get("progressToken")) is not None
