"""Tasks of MCP as we offer them: a run that outlasts its request, asked for by its id.

In 2025-11-25 the client asks for a task, and `tasks/result` waits for its end. With the extension
of 2026-07-28 we decide: a run that is not over when its client must be answered becomes a task, and
`tasks/get` brings its result along.
"""

import secrets
from collections.abc import Awaitable, Callable, Container
from datetime import UTC, datetime
from typing import Any, Final, Literal

import mcp_types as types
from mcp import MCPError
from mcp.server import NotificationOptions, Server
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field, ValidationError

from toolfold.catalog.tasks import EXTENSION
from toolfold.entrypoints.mcp.elicitation import is_modern
from toolfold.entrypoints.mcp.elicitation_broker import BrokeredRequest
from toolfold.errors import ToolfoldError

_LEGACY: Final = "2025-11-25"
_RELATED: Final = "io.modelcontextprotocol/related-task"
_TTL_MS: Final = 86_400_000
_POLL_MS: Final = 500
_MAX_TASKS: Final = 200
_MAX_OPEN: Final = 100
_STATUS_CHARS: Final = 300

Status = Literal["working", "input_required", "completed", "failed", "cancelled"]
Task = BrokeredRequest[types.CallToolResult]
Json = dict[str, Any]


class TaskParams(types.RequestParams):
    """What every request about a task names."""

    task_id: str


class TaskUpdateParams(TaskParams):
    """Replies to questions of a task, by the keys of the questions."""

    input_responses: Json = Field(default_factory=dict)


CallTool = Callable[[Any, types.CallToolRequestParams], Awaitable[HandlerResult]]

Recover = Callable[[Any, str], Awaitable[Task | None]]
"""Goes on with the task of a connection or daemon that is gone; None where there is none for that
client."""


class ServedTask:
    """One task as its client sees it."""

    def __init__(self, task_id: str, owner: str, work: Task) -> None:
        self.id = task_id
        self.owner = owner
        self.work = work
        self._is_cancelled = False
        self._created = self._updated = datetime.now(UTC)
        self._last: tuple[Status, str] = ("working", "")

    @property
    def status(self) -> Status:
        """How it stands."""
        if self._is_cancelled:
            return "cancelled"
        if self.work.is_over:
            return "failed" if self.work.failure else "completed"
        return "input_required" if self.work.requests else "working"

    async def cancel(self) -> None:
        """End it; one that is over stays as it is."""
        if self.work.is_over or self._is_cancelled:
            return
        self._is_cancelled = True
        self.work.cancel()
        if self.work.task is not None:
            await self.work.task.stop()

    def error(self) -> Json:
        """Return why there is no result."""
        message = "The task was cancelled." if self._is_cancelled else str(self.work.failure)
        return {"code": types.INTERNAL_ERROR, "message": message}

    def result(self) -> Json:
        """Return what the call would have been answered."""
        return self.work.result().model_dump(by_alias=True, mode="json", exclude_none=True)

    def fields(self, *, legacy: bool) -> Json:
        """Return what every answer about it has."""
        note = self.work.latest_note[:_STATUS_CHARS]
        if self._last != (self.status, note):
            self._last, self._updated = (self.status, note), datetime.now(UTC)
        fields: Json = {
            "taskId": self.id,
            "status": self.status,
            "createdAt": _stamp(self._created),
            "lastUpdatedAt": _stamp(self._updated),
            "ttl" if legacy else "ttlMs": _TTL_MS,
            "pollInterval" if legacy else "pollIntervalMs": _POLL_MS,
        }
        return fields | ({"statusMessage": note} if note else {})

    def details(self) -> Json:
        """Return what `tasks/get` answers with the extension."""
        fields = {"resultType": "complete", **self.fields(legacy=False)}
        match self.status:
            case "completed":
                fields["result"] = self.result()
            case "failed":
                fields["error"] = self.error()
            case "input_required":
                asked = self.work.requests.items()
                fields["inputRequests"] = {
                    key: each.model_dump(by_alias=True, mode="json", exclude_none=True)
                    for key, each in asked
                }
        return fields


class ServedTasks:
    """The tasks that clients of one server have, and the methods by which they ask for them."""

    def __init__(self, owner: Callable[[Any], str], recover: Recover) -> None:
        """`owner` says whose a request is: others do not see its tasks."""
        self._owner = owner
        self._recover = recover
        self._tasks: dict[str, ServedTask] = {}

    async def begin(self, context: Any, work: Task) -> Json:
        """Have work that goes on be a task from now on; return what its request is answered.

        Raises:
            MCPError: Too many are open; this one was ended.
        """
        task_id = await work.task.named(work) if work.task else secrets.token_urlsafe(16)
        task = self._add(context, task_id, work)
        if is_modern(context):
            return {"resultType": "task", **task.fields(legacy=False)}
        return {"task": task.fields(legacy=True)}

    def _add(self, context: Any, task_id: str, work: Task) -> ServedTask:
        """Keep a task.

        Raises:
            MCPError: Too many are open; this one was ended.
        """
        over = [each.id for each in self._tasks.values() if each.work.is_over]
        for each in over[: max(0, len(self._tasks) - _MAX_TASKS + 1)]:
            del self._tasks[each]
        if len(self._tasks) - len(over) >= _MAX_OPEN:
            work.cancel()
            raise MCPError(types.INTERNAL_ERROR, f"{_MAX_OPEN} tasks are open already.")
        task = self._tasks[task_id] = ServedTask(task_id, self._owner(context), work)
        return task

    def serve(self, server: "TaskServer", call_tool: CallTool, *, tools: Container[str]) -> None:
        """Answer the methods of tasks, and calls that ask to be one: those of `tools` may."""
        server.add_request_handler("tasks/get", TaskParams, self._get)
        server.add_request_handler("tasks/cancel", TaskParams, self._cancel)
        server.add_request_handler("tasks/update", TaskUpdateParams, self._update)
        server.add_request_handler("tasks/result", TaskParams, self._result)

        async def call_as_task(ctx: Any, call_next: CallNext) -> HandlerResult:
            """Answer for the SDK, which lets no task of 2025-11-25 pass."""
            params = ctx.params or {}
            if ctx.method != "tools/call" or "task" not in params:
                return await call_next(ctx)
            parsed = types.CallToolRequestParams.model_validate(params, by_name=False)
            if not wants_task(ctx, parsed):
                return await call_next(ctx)
            if parsed.name not in tools:
                raise _no_method("tools/call")
            return await call_tool(ctx, parsed)

        server.middleware.append(call_as_task)

    async def _get(self, context: Any, params: TaskParams) -> Json:
        task = await self._find(context, params)
        return task.details() if is_modern(context) else task.fields(legacy=True)

    async def _cancel(self, context: Any, params: TaskParams) -> Json:
        task = await self._find(context, params)
        if is_modern(context):
            await task.cancel()
            return {"resultType": "complete"}
        if task.status in {"completed", "failed", "cancelled"}:
            raise MCPError(types.INVALID_PARAMS, f"The task {task.id} is {task.status} already.")
        await task.cancel()
        return task.fields(legacy=True)

    async def _update(self, context: Any, params: TaskUpdateParams) -> Json:
        if not is_modern(context):
            raise _no_method("tasks/update")
        task = await self._find(context, params)
        replies: dict[str, types.InputResponse] = {}
        for key in params.input_responses.keys() & task.work.requests.keys():
            try:
                replies[key] = types.ElicitResult.model_validate(
                    params.input_responses[key], by_name=False
                )
            except ValidationError as error:
                reason = f"The reply to {key!r} is none that its question can have."
                raise MCPError(types.INVALID_PARAMS, reason) from error
        task.work.take_replies(context, replies)
        return {"resultType": "complete"}

    async def _result(self, context: Any, params: TaskParams) -> Json:
        """Wait for the end; what the task asks meanwhile is asked within this request."""
        if is_modern(context):
            raise _no_method("tasks/result")
        task = await self._find(context, params)
        await task.work.put_questions(context, {_RELATED: {"taskId": task.id}})
        if task.status != "completed":
            raise MCPError(types.INTERNAL_ERROR, task.error()["message"])
        result = task.result()
        result["_meta"] = {**result.get("_meta", {}), _RELATED: {"taskId": task.id}}
        return result

    async def _find(self, context: Any, params: TaskParams) -> ServedTask:
        _check_request(context, params)
        task = self._tasks.get(params.task_id)
        if task is None:
            task = await self._recovered(context, params.task_id)
        if task is None or task.owner != self._owner(context):
            raise MCPError(types.INVALID_PARAMS, f"There is no task {params.task_id!r}.")
        return task

    async def _recovered(self, context: Any, task_id: str) -> ServedTask | None:
        try:
            found = await self._recover(context, task_id)
        except ToolfoldError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error
        if found is None:
            return None
        # Another request for it may have come meanwhile.
        return self._tasks.get(task_id) or self._add(context, task_id, found)


class TaskServer(Server[Any]):
    """A server that tells clients that it has tasks, as their protocol has it."""

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, Json] | None = None,
        extensions: dict[str, Json] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> types.ServerCapabilities:
        """See `Server`."""
        found = super().get_capabilities(
            notification_options,
            experimental_capabilities,
            extensions,
            protocol_version=protocol_version,
        )
        if protocol_version in MODERN_PROTOCOL_VERSIONS:
            return found.model_copy(
                update={"extensions": {**(found.extensions or {}), EXTENSION: {}}}
            )
        calls = types.TasksToolsCapability(call=types.TasksCallCapability())
        tasks = types.ServerTasksCapability(
            cancel=types.TasksCancelCapability(),
            requests=types.ServerTasksRequestsCapability(tools=calls),
        )
        return found.model_copy(update={"tasks": tasks})


def declares_tasks(context: Any) -> bool:
    """Whether the client of a request takes a task in the place of a result."""
    capabilities = context.session.client_capabilities
    extensions = capabilities.extensions if capabilities is not None else None
    return is_modern(context) and EXTENSION in (extensions or {})


def wants_task(context: Any, params: types.CallToolRequestParams) -> bool:
    """Whether a request of 2025-11-25 asks to be a task."""
    return context.session.protocol_version == _LEGACY and params.task is not None


def tasks_required() -> MCPError:
    """Say that a request needs a client that has tasks."""
    needed = types.MissingRequiredClientCapabilityErrorData(
        required_capabilities=types.ClientCapabilities(extensions={EXTENSION: {}})
    )
    return MCPError(
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"The client does not declare the extension {EXTENSION}, which this request needs.",
        needed.model_dump(by_alias=True, mode="json", exclude_none=True),
    )


def _check_request(context: Any, params: TaskParams) -> None:
    if not is_modern(context):
        if context.session.protocol_version != _LEGACY:
            raise _no_method("tasks")
        return
    if not declares_tasks(context):
        raise tasks_required()
    headers = None if context.request is None else context.request.headers
    if headers is not None and decode_header_value(headers.get(MCP_NAME_HEADER)) != params.task_id:
        reason = f"{MCP_NAME_HEADER} header does not match the request body's 'taskId' parameter"
        raise MCPError(types.HEADER_MISMATCH, reason)


def _no_method(name: str) -> MCPError:
    return MCPError(types.METHOD_NOT_FOUND, "Method not found", name)


def _stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
