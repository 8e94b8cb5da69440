"""The tools that the conformance suite calls. It says of each what it should do."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg=="
WAV = "UklGRiUAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQEAAACA"

Result = types.CallToolResult | types.InputRequiredResult
Call = Callable[[Any, types.CallToolRequestParams], Awaitable[Result]]
Asked = dict[str, types.InputRequest]

TOOLS: dict[str, tuple[dict[str, Any], Call]] = {}
"""By name: the input schema, and what answers."""

SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

bus = InMemorySubscriptionBus()


def text(words: str) -> types.TextContent:
    return types.TextContent(text=words)


def embedded(uri: str, kind: str, words: str) -> types.EmbeddedResource:
    return types.EmbeddedResource(
        resource=types.TextResourceContents(uri=uri, mime_type=kind, text=words)
    )


def image() -> types.ImageContent:
    return types.ImageContent(data=PNG, mime_type="image/png")


def complete(*blocks: types.ContentBlock, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=list(blocks), is_error=is_error)


def tool(properties: dict[str, Any] | None = None, **schema: Any) -> Callable[[Call], Call]:
    """Add a tool that is named as the function is."""

    def add(call: Call) -> Call:
        TOOLS[call.__name__] = ({"type": "object", "properties": properties or {}, **schema}, call)
        return call

    return add


def constant(name: str, *blocks: types.ContentBlock, is_error: bool = False) -> None:
    """Add a tool that always answers the same."""

    async def call(context: Any, params: Any) -> Result:
        return complete(*blocks, is_error=is_error)

    call.__name__ = name
    tool()(call)


constant("test_simple_text", text("This is a simple text response for testing."))
constant("test_image_content", image())
constant("test_audio_content", types.AudioContent(data=WAV, mime_type="audio/wav"))
constant(
    "test_embedded_resource",
    embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."),
)
constant(
    "test_multiple_content_types",
    text("Multiple content types test:"),
    image(),
    embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
)
constant(
    "test_error_handling",
    text("This tool intentionally returns an error for testing"),
    is_error=True,
)


@tool({"name": {"type": "string"}}, required=["name"])
async def greet(context: Any, params: types.CallToolRequestParams) -> Result:
    return complete(text(f"Hello, {(params.arguments or {})['name']}!"))


@tool()
async def test_tool_with_progress(context: Any, params: Any) -> Result:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100)
    return complete(text("Done."))


@tool()
async def test_tool_with_logging(context: Any, params: Any) -> Result:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.session.send_log_message("info", words, related_request_id=context.request_id)
    return complete(text("Done."))


@tool()
async def test_logging_tool(context: Any, params: Any) -> Result:
    return await test_tool_with_logging(context, params)


@tool({"prompt": {"type": "string"}}, required=["prompt"])
async def test_sampling(context: Any, params: types.CallToolRequestParams) -> Result:
    answer = await context.session.create_message(
        [types.SamplingMessage(role="user", content=text((params.arguments or {})["prompt"]))],
        max_tokens=100,
        related_request_id=context.request_id,
    )
    return complete(text(f"LLM response: {answer.content.text}"))


async def elicited(context: Any, message: str, schema: dict[str, Any]) -> Result:
    answer = await context.session.elicit_form(message, schema, context.request_id)
    content = json.dumps(answer.content)
    return complete(text(f"Elicitation completed: action={answer.action}, content={content}"))


@tool({"message": {"type": "string"}}, required=["message"])
async def test_elicitation(context: Any, params: types.CallToolRequestParams) -> Result:
    return await elicited(context, (params.arguments or {})["message"], form("username", "email"))


@tool()
async def test_elicitation_sep1034_defaults(context: Any, params: Any) -> Result:
    properties = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "default": True},
    }
    return await elicited(context, "Defaults", {"type": "object", "properties": properties})


@tool()
async def test_elicitation_sep1330_enums(context: Any, params: Any) -> Result:
    plain = {"enum": ["option1", "option2", "option3"], "type": "string"}
    titled = [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]
    properties = {
        "untitledSingle": plain,
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": plain},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return await elicited(context, "Enums", {"type": "object", "properties": properties})


@tool()
async def test_missing_capability(context: Any, params: Any) -> Result:
    if not context.session.check_client_capability(
        types.ClientCapabilities(sampling=types.SamplingCapability())
    ):
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "This tool needs the client's capability `sampling`.",
            {"requiredCapabilities": {"sampling": {}}},
        )
    return complete(text("Sampling is there."))


@tool()
async def test_trigger_tool_change(context: Any, params: Any) -> Result:
    return await changed(ToolsListChanged())


@tool()
async def test_trigger_prompt_change(context: Any, params: Any) -> Result:
    return await changed(PromptsListChanged())


async def changed(event: ServerEvent) -> Result:
    await bus.publish(event)
    return complete(text("Changed."))


@tool({"region": {"type": "string", "x-mcp-header": "Region"}}, required=["region"])
async def test_headers(context: Any, params: types.CallToolRequestParams) -> Result:
    return complete(text(json.dumps(params.arguments)))


@tool(**SCHEMA_2020_12)
async def json_schema_2020_12_tool(context: Any, params: types.CallToolRequestParams) -> Result:
    return complete(text(json.dumps(params.arguments)))


# What needs answers of the client, which come with the next attempt.


def form(*names: str, kind: str = "string") -> dict[str, Any]:
    properties = {name: {"type": kind} for name in names}
    return {"type": "object", "properties": properties, "required": list(names)}


def elicit(message: str, schema: dict[str, Any]) -> types.ElicitRequest:
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=message, requested_schema=schema)
    )


def sample(prompt: str) -> types.CreateMessageRequest:
    messages = [types.SamplingMessage(role="user", content=text(prompt))]
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=messages, max_tokens=100)
    )


def answered(params: Any, asked: Asked) -> bool:
    return asked.keys() <= (params.input_responses or {}).keys()


def asking(asked: Asked, state: str | None = None) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=asked, request_state=state)


def questioning(name: str, asked: Asked, state: str | None = None) -> None:
    """Add a tool that asks `asked`, and is content with any answers that come with its state."""

    async def call(context: Any, params: types.CallToolRequestParams) -> Result:
        if not answered(params, asked) or params.request_state != state:
            return asking(asked, state)
        answers = {key: str(answer) for key, answer in (params.input_responses or {}).items()}
        return complete(text(f"{state or 'answered'}: {answers}"))

    call.__name__ = name
    tool()(call)


NAME = elicit("What is your name?", form("name"))
CONFIRM = elicit("Please confirm", form("ok", kind="boolean"))
questioning("test_input_required_result_elicitation", {"user_name": NAME})
questioning("test_streaming_elicitation", {"user_name": NAME})
questioning(
    "test_input_required_result_sampling",
    {"capital_question": sample("What is the capital of France?")},
)
questioning("test_input_required_result_list_roots", {"client_roots": types.ListRootsRequest()})
questioning("test_input_required_result_request_state", {"confirm": CONFIRM}, "state-ok")
questioning("test_input_required_result_tampered_state", {"confirm": CONFIRM}, "state-ok")
questioning(
    "test_input_required_result_multiple_inputs",
    {
        "user_name": NAME,
        "greeting": sample("Generate a greeting"),
        "client_roots": types.ListRootsRequest(),
    },
    "state-ok",
)


@tool()
async def test_input_required_result_multi_round(
    context: Any, params: types.CallToolRequestParams
) -> Result:
    first: Asked = {"step1": elicit("Step 1: What is your name?", form("name"))}
    second: Asked = {"step2": elicit("Step 2: What is your favorite color?", form("color"))}
    if params.request_state == "round 2" and answered(params, second):
        return complete(text("All is known."))
    if params.request_state == "round 1" and answered(params, first):
        return asking(second, "round 2")
    return asking(first, "round 1")


@tool()
async def test_input_required_result_capabilities(
    context: Any, params: types.CallToolRequestParams
) -> Result:
    has = context.session.check_client_capability
    asked: Asked = {}
    if has(types.ClientCapabilities(elicitation=types.ElicitationCapability())):
        asked["user_name"] = NAME
    if has(types.ClientCapabilities(sampling=types.SamplingCapability())):
        asked["greeting"] = sample("Generate a greeting")
    return complete(text("Thanks.")) if answered(params, asked) else asking(asked)
