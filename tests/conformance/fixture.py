"""What the conformance suite wants a server to have, over toolfold's HTTP: `python fixture.py`.

The tools, resources and prompts are the suite's. What is examined is the way they are served: the
same app, guard and settings as those of `toolfold serve`.
"""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from fixture_tasks import TASK_TOOLS, call_task_tool
from fixture_tools import (
    PNG,
    TOOLS,
    Asked,
    Result,
    answered,
    asking,
    bus,
    elicit,
    embedded,
    form,
    image,
    text,
)
from mcp.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError

from toolfold.entrypoints.http.guard import AccessControl
from toolfold.entrypoints.http.stack import mcp_app, serve_asgi
from toolfold.entrypoints.mcp.elicitation_broker import (
    BrokeredRequest,
    ElicitationBroker,
    open_broker,
)
from toolfold.entrypoints.mcp.tasks import ServedTasks, TaskServer

CONTEXT: Asked = {
    "user_context": elicit("What context should the prompt use?", form("context")),
}
PROMPTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    schemas = {name: schema for name, (schema, _) in TOOLS.items()}
    schemas |= {name: {"type": "object"} for name in TASK_TOOLS}
    return types.ListToolsResult(
        tools=[
            types.Tool(name=name, description=f"The suite's {name}.", input_schema=schema)
            for name, schema in schemas.items()
        ]
    )


async def no_task(context: Any, task_id: str) -> None:
    return None


tasks = ServedTasks(lambda context: "", no_task)


async def call_tool(
    context: Any, params: types.CallToolRequestParams
) -> Result | dict[str, Any] | types.CallToolResult:
    if params.name in TASK_TOOLS:
        answer = await call_task_tool(context, params)
        is_task = isinstance(answer, BrokeredRequest)
        return await tasks.begin(context, answer) if is_task else answer
    if params.name not in TOOLS:
        raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name!r}.")
    return await TOOLS[params.name][1](context, params)


async def list_resources(context: Any, params: Any) -> types.ListResourcesResult:
    uris = ["test://static-text", "test://static-binary", "test://watched-resource"]
    return types.ListResourcesResult(
        resources=[
            types.Resource(uri=uri, name=uri, description=f"The suite's {uri}.") for uri in uris
        ]
    )


async def list_templates(context: Any, params: Any) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(name="data", uri_template="test://template/{id}/data")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(
    context: Any, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[contents(str(params.uri))])


def contents(uri: str) -> types.TextResourceContents | types.BlobResourceContents:
    if uri == "test://static-binary":
        return types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
    if uri in {"test://static-text", "test://watched-resource"}:
        words = "This is the content of the static text resource."
        return types.TextResourceContents(uri=uri, mime_type="text/plain", text=words)
    if found := re.fullmatch(r"test://template/(\w+)/data", uri):
        value = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
        return types.TextResourceContents(
            uri=uri, mime_type="application/json", text=json.dumps(value)
        )
    raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})


async def list_prompts(context: Any, params: Any) -> types.ListPromptsResult:
    def prompt(name: str, arguments: tuple[str, ...]) -> types.Prompt:
        taken = [types.PromptArgument(name=each, required=True) for each in arguments]
        return types.Prompt(name=name, description=f"The suite's {name}.", arguments=taken)

    return types.ListPromptsResult(prompts=[prompt(*item) for item in PROMPTS.items()])


async def get_prompt(
    context: Any, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    if params.name == "test_input_required_result_prompt" and not answered(params, CONTEXT):
        return asking(CONTEXT)
    blocks = prompt_blocks(params.name, params.arguments or {})
    messages = [types.PromptMessage(role="user", content=block) for block in blocks]
    return types.GetPromptResult(messages=messages)


def prompt_blocks(name: str, given: dict[str, str]) -> list[types.ContentBlock]:
    if name == "test_prompt_with_arguments":
        return [text(f"Prompt with arguments: arg1={given['arg1']!r}, arg2={given['arg2']!r}")]
    if name == "test_prompt_with_embedded_resource":
        words = "Embedded resource content for testing."
        resource = embedded(given["resourceUri"], "text/plain", words)
        return [resource, text("Please process the embedded resource above.")]
    if name == "test_prompt_with_image":
        return [image(), text("Please analyze the image above.")]
    return [text("This is a simple prompt for testing.")]


async def complete(context: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
    known = [word for word in ("paris", "park", "party") if word.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=known, total=len(known)))


async def accept(context: Any, params: Any) -> types.EmptyResult:
    return types.EmptyResult()


@asynccontextmanager
async def serving(_server: object) -> AsyncIterator[ElicitationBroker]:
    async with open_broker(60) as broker:
        yield broker


def make_server() -> Server[Any]:
    server = TaskServer(
        "conformance",
        version="1.0",
        lifespan=serving,
        on_list_tools=list_tools,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=accept,
        on_unsubscribe_resource=accept,
        on_subscriptions_listen=ListenHandler(bus),
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=accept,
    )
    server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)
    tasks.serve(server, call_tool, tools=TASK_TOOLS)
    sealed = RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="conformance")
    server.middleware.append(sealed)
    return server


async def main() -> None:
    app = mcp_app(make_server(), access_control=AccessControl())
    await serve_asgi(app, host="127.0.0.1", port=0, started=lambda url: print(url, flush=True))


if __name__ == "__main__":
    anyio.run(main)
