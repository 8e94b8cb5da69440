"""The tools of the conformance suite that take long, over the tasks of toolfold."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
from fixture_tools import answered, asking, complete, elicit, form, text

from toolfold.catalog.questions import Elicitor, Question
from toolfold.entrypoints.mcp.elicitation_broker import BrokeredRequest, BrokeredWork
from toolfold.entrypoints.mcp.tasks import declares_tasks, tasks_required

Work = BrokeredWork[types.CallToolResult]
Make = Callable[[dict[str, Any]], Work]
Answer = types.CallToolResult | types.InputRequiredResult | BrokeredRequest[types.CallToolResult]

TASK_TOOLS: dict[str, tuple[Make, bool]] = {}
"""By name: what makes the work of a call, and whether its client must have tasks."""


class AtOnce:
    """Work that is a task from its beginning on."""

    after_s = 0.0

    async def named(self, work: object) -> str:
        return f"task-{id(work):x}"

    async def stop(self) -> None:
        return None


def task_tool(*, required: bool = False) -> Callable[[Make], Make]:
    def add(make: Make) -> Make:
        TASK_TOOLS[make.__name__] = (make, required)
        return make

    return add


async def call_task_tool(context: Any, params: types.CallToolRequestParams) -> Answer:
    make, is_required = TASK_TOOLS[params.name]
    asked = {"user_name": elicit("What is your name?", form("name"))}
    arguments = dict(params.arguments or {})
    if params.name == "test_tool_with_task":
        if not answered(params, asked):
            return asking(asked)
        arguments["reply"] = str((params.input_responses or {})["user_name"])
    if is_required and not declares_tasks(context):
        raise tasks_required()
    params = params.model_copy(update={"input_responses": None, "request_state": None})
    task = AtOnce() if declares_tasks(context) else None
    broker = context.lifespan_context
    return await broker.attend(context, params, make(arguments), task=task)


def work(do: Callable[[Elicitor | None], Awaitable[types.CallToolResult]]) -> Work:
    async def run(ask: Elicitor | None, _progress: object) -> types.CallToolResult:
        return await do(ask)

    return run


@task_tool()
def slow_compute(arguments: dict[str, Any]) -> Work:
    async def do(_ask: Elicitor | None) -> types.CallToolResult:
        await anyio.sleep(arguments["seconds"])
        return complete(text("Computed."))

    return work(do)


@task_tool(required=True)
def failing_job(_arguments: dict[str, Any]) -> Work:
    async def do(_ask: Elicitor | None) -> types.CallToolResult:
        await anyio.sleep(1)
        return complete(text("The job failed."), is_error=True)

    return work(do)


@task_tool()
def protocol_error_job(_arguments: dict[str, Any]) -> Work:
    async def do(_ask: Elicitor | None) -> types.CallToolResult:
        await anyio.sleep(0.1)
        raise RuntimeError("The job crashed.")

    return work(do)


@task_tool()
def confirm_delete(_arguments: dict[str, Any]) -> Work:
    async def do(ask: Elicitor | None) -> types.CallToolResult:
        return complete(text(await asked_for(ask, "confirm")))

    return work(do)


@task_tool()
def multi_input(_arguments: dict[str, Any]) -> Work:
    async def do(ask: Elicitor | None) -> types.CallToolResult:
        async with anyio.create_task_group() as tasks:
            for name in ("name", "confirm"):
                tasks.start_soon(asked_for, ask, name)
        return complete(text("Both."))

    return work(do)


@task_tool(required=True)
def test_tool_with_task(arguments: dict[str, Any]) -> Work:
    async def do(_ask: Elicitor | None) -> types.CallToolResult:
        await anyio.sleep(0.1)
        return complete(text(f"Hello, {arguments['reply']}!"))

    return work(do)


async def asked_for(ask: Elicitor | None, name: str) -> str:
    assert ask is not None
    await anyio.sleep(0.1)  # it is a task by then
    reply = await ask(Question(asker="suite", message=f"{name}?", schema=form(name)))
    return str(reply.content)
