"""A server that asks its user, and has prompts and resources: `python curious.py LOG [ERA [MODE]]`.

Each start is a line in LOG, as is each note. ERA `2025` speaks the handshake protocol only; any
other speaks both. Modes: `plain`; `endless` has a list of resources without an end; `mute` never
answers `prompts/list`; `growing` gains a resource with each call of `note`, and says so.
"""

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server import NotificationOptions, Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
)
from sdk import text, tool

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg=="
NAME_FORM = {
    "type": "object",
    "properties": {"name": {"type": "string", "title": "Your name"}},
    "required": ["name"],
}
TOO_MANY_FIELDS = {
    "type": "object",
    "properties": {f"field_{number}": {"type": "string"} for number in range(4_000)},
}
HELD: dict[str, types.TextResourceContents | types.BlobResourceContents] = {
    "memo://plain": types.TextResourceContents(uri="memo://plain", text="a memo"),
    "memo://numbers?from=1#all": types.TextResourceContents(
        uri="memo://numbers?from=1#all", mime_type="application/json", text="[1, 2, 3]"
    ),
    "memo://dot": types.BlobResourceContents(uri="memo://dot", mime_type="image/png", blob=PNG),
    "memo://huge": types.TextResourceContents(uri="memo://huge", text="x" * 6_000_000),
}

Answer = types.CallToolResult | types.InputRequiredResult
Call = Callable[[Any, types.CallToolRequestParams], Awaitable[Answer]]


def form(message: str, schema: dict[str, Any]) -> types.ElicitRequest:
    params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
    return types.ElicitRequest(params=params)


def page(message: str, url: str) -> types.ElicitRequest:
    params = types.ElicitRequestURLParams(message=message, url=url, elicitation_id="page-1")
    return types.ElicitRequest(params=params)


async def asked(ctx: Any, params: Any, request: types.ElicitRequest) -> Answer | types.ElicitResult:
    """Ask in the way of the client's era: the answer, or what to answer the call with for now."""
    if ctx.protocol_version < "2026-07-28":
        answer: types.ElicitResult = await ctx.session.send_request(request, types.ElicitResult)
        return answer
    replies = params.input_responses or {}
    if "only" in replies and params.request_state == "sealed":
        return replies["only"]  # type: ignore[no-any-return]
    return types.InputRequiredResult(input_requests={"only": request}, request_state="sealed")


class Curious:
    """The server's state."""

    def __init__(self, log: Path, mode: str) -> None:
        self._log = log
        self._mode = mode
        self._bus = InMemorySubscriptionBus()
        self._notes: list[str] = []
        self._sessions: dict[str, Any] = {}
        self._calls: dict[str, Call] = {
            "note": self.note, "sign": self.sign, "pay": self.pay, "fill": self.fill,
            "sample": self.sample, "insist": self.insist, "meet": self.meet,
            "touch": self.touch,
        }  # fmt: skip
        self._arrived: dict[object, anyio.Event] = {}
        self.say("start")

    def say(self, what: str) -> None:
        with self._log.open("a") as file:
            file.write(what + "\n")

    def server(self) -> Server[Any]:
        return Server(
            "curious",
            version="1.0",
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
            on_completion=self.complete,
            on_subscriptions_listen=self.listen,
            on_subscribe_resource=self.subscribe,
            on_unsubscribe_resource=self.unsubscribe,
        )

    async def listen(self, ctx: Any, params: Any) -> types.SubscriptionsListenResult:
        uris = params.notifications.resource_subscriptions or []
        for uri in uris:
            self.say(f"watch {uri}")
        try:
            return await ListenHandler(self._bus)(ctx, params)
        finally:
            for uri in uris:
                self.say(f"unwatch {uri}")

    async def subscribe(self, ctx: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
        if params.uri == "memo://closed":
            raise MCPError(types.INVALID_PARAMS, "Nobody may watch this.")
        self._sessions[params.uri] = ctx.session
        self.say(f"watch {params.uri}")
        return types.EmptyResult()

    async def unsubscribe(
        self, ctx: Any, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self._sessions.pop(params.uri, None)
        self.say(f"unwatch {params.uri}")
        return types.EmptyResult()

    async def touch(self, ctx: Any, params: types.CallToolRequestParams) -> Answer:
        """Say that a resource has changed, to those who want to know."""
        uri = str((params.arguments or {})["uri"])
        if uri in self._sessions:
            await self._sessions[uri].send_resource_updated(uri)
        await self._bus.publish(ResourceUpdated(uri=uri))
        return text("touched")

    async def list_tools(self, ctx: Any, params: Any) -> types.ListToolsResult:
        writes = [tool("note", "text", read_only=False), tool("sign", "document", read_only=False)]
        reads = [tool(name, read_only=True) for name in ("pay", "fill", "sample", "insist")]
        meet = tool("meet", "me", "other", "asks", read_only=True)
        touch = tool("touch", "uri", read_only=True)
        return types.ListToolsResult(tools=[*writes, *reads, meet, touch])

    async def call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> Answer:
        return await self._calls[params.name](ctx, params)

    async def note(self, ctx: Any, params: types.CallToolRequestParams) -> Answer:
        self._notes.append(str((params.arguments or {})["text"]))
        self.say(f"note {self._notes[-1]}")
        if self._mode == "growing":
            if ctx.protocol_version < "2026-07-28":
                await ctx.session.send_resource_list_changed()
            else:
                await self._bus.publish(ResourcesListChanged())
        return text(len(self._notes))

    async def sign(self, ctx: Any, params: types.CallToolRequestParams) -> Answer:
        document = (params.arguments or {})["document"]
        answer = await asked(ctx, params, form(f"Who signs {document}?", NAME_FORM))
        if not isinstance(answer, types.ElicitResult):
            return answer
        self.say(f"sign {document} {answer.action}")
        return text({"action": answer.action, "content": answer.content})

    async def meet(self, ctx: Any, params: types.CallToolRequestParams) -> Answer:
        """Wait for a second call, and ask in the one that wants it."""
        given = params.arguments or {}
        self._arrived.setdefault(given["me"], anyio.Event()).set()
        await self._arrived.setdefault(given["other"], anyio.Event()).wait()
        if not given["asks"]:
            await self._arrived.setdefault("asked", anyio.Event()).wait()
            return text("met")
        try:
            answer = await asked(ctx, params, form(f"Who is {given['me']}?", NAME_FORM))
            assert isinstance(answer, types.ElicitResult)
            return text(answer.content)
        finally:
            self._arrived.setdefault("asked", anyio.Event()).set()

    async def pay(self, ctx: Any, params: types.CallToolRequestParams) -> Answer:
        request = page("Pay there.", "https://pay.example.org/7")
        answer = await asked(ctx, params, request)
        if not isinstance(answer, types.ElicitResult):
            return answer
        return text({"action": answer.action})

    async def fill(self, ctx: Any, params: types.CallToolRequestParams) -> Answer:
        answer = await asked(ctx, params, form("Fill this in.", TOO_MANY_FIELDS))
        return answer if not isinstance(answer, types.ElicitResult) else text("filled in")

    async def sample(self, ctx: Any, params: types.CallToolRequestParams) -> Answer:
        return types.InputRequiredResult(
            input_requests={"roots": types.ListRootsRequest()}, request_state="x"
        )

    async def insist(self, ctx: Any, params: types.CallToolRequestParams) -> Answer:
        return types.InputRequiredResult(
            input_requests={"again": form("Again?", NAME_FORM)}, request_state="x"
        )

    async def list_prompts(self, ctx: Any, params: Any) -> types.ListPromptsResult:
        if self._mode == "mute":
            await anyio.sleep_forever()
        who = types.PromptArgument(name="who", required=True)
        prompt = types.Prompt(name="Greet people", description="A greeting.", arguments=[who])
        return types.ListPromptsResult(prompts=[prompt])

    async def get_prompt(
        self, ctx: Any, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        greeting = types.TextContent(text=f"{params.name}: hello {(params.arguments or {})['who']}")
        memo = types.ResourceLink(uri="memo://plain", name="memo")
        return types.GetPromptResult(
            messages=[
                types.PromptMessage(role="user", content=greeting),
                types.PromptMessage(role="user", content=memo),
            ]
        )

    async def list_resources(
        self, ctx: Any, params: types.PaginatedRequestParams
    ) -> types.ListResourcesResult:
        start = int(params.cursor or 0)
        uris = [*HELD, *(f"memo://note/{number}" for number in range(len(self._notes)))]
        if self._mode == "endless":
            uris = [f"memo://note/{number}" for number in range(start + 101)]
        page = [types.Resource(uri=uri, name=uri[7:]) for uri in uris[start:][:100]]
        more = str(start + 100) if len(uris) > start + 100 else None
        return types.ListResourcesResult(resources=page, next_cursor=more)

    async def list_templates(self, ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(uri_template="memo://said/{word}{?times}", name="said")
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, ctx: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        if params.uri in HELD:
            return types.ReadResourceResult(contents=[HELD[params.uri]])
        if params.uri.startswith("memo://said/"):
            said = types.TextResourceContents(uri=params.uri, text=params.uri)
            return types.ReadResourceResult(contents=[said, said])
        raise MCPError(types.INVALID_PARAMS, "There is no such memo.")

    async def complete(self, ctx: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
        name = params.ref.name if isinstance(params.ref, types.PromptReference) else params.ref.uri
        values = [f"{params.argument.value}da", name, json.dumps(params.argument.name)]
        return types.CompleteResult(completion=types.Completion(values=values))


def main(log: str, era: str = "both", mode: str = "plain") -> None:
    server = Curious(Path(log), mode).server()

    async def serve() -> None:
        changes = NotificationOptions(resources_changed=True)
        options = server.create_initialization_options(changes)
        async with stdio_server() as (read, write):
            if era == "2025":
                await serve_loop(server, read, write, lifespan_state={}, init_options=options)
            else:
                await server.run(read, write, options)

    anyio.run(serve)


if __name__ == "__main__":
    main(*sys.argv[1:])
