"""The MCP server: `execute_code`, and what the user chose to see beside it."""

import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.abc import TaskStatus
from mcp import MCPError
from mcp.server import Server

from toolfold import __version__
from toolfold.app import App, AppSource
from toolfold.catalog.questions import Elicitor
from toolfold.catalog.tool import DefinitionText, Tool, definition, listing, self_contained
from toolfold.entrypoints.mcp.code_runs import CodeRuns, ToolAnswer, text_result
from toolfold.entrypoints.mcp.elicitation_broker import (
    BrokeredRequest,
    ElicitationBroker,
    client_name,
    open_broker,
)
from toolfold.entrypoints.mcp.lines import serve_stdio
from toolfold.entrypoints.mcp.list_changes import ListChanges, ListKind
from toolfold.entrypoints.mcp.passthrough import PASSED_THROUGH, Passthrough
from toolfold.entrypoints.mcp.resource_updates import Pulse, ResourceSubscriptions, Send
from toolfold.entrypoints.mcp.tasks import ServedTasks, Task, TaskServer
from toolfold.errors import NotFound, ToolfoldError
from toolfold.execution.access import ForwardedCall
from toolfold.journal.runs import Origin
from toolfold.jsontypes import JsonObject
from toolfold.relay.surface import as_listed, execute_code
from toolfold.relay.wire import key_of
from toolfold.sandbox.sandbox import GuestCall

_SEARCH_DEFINITION: Final = types.Tool(
    name="search_tools",
    description="Find tools that execute_code can call. Returns their signatures, best first.",
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer"},
            "server": {"type": "string"},
            "detail": {"enum": ["name", "brief", "full"]},
        },
        "required": ["query"],
    },
    annotations=types.ToolAnnotations(read_only_hint=True),
    _meta={"anthropic/alwaysLoad": True},
)


TOOL_USE: Final = "claudecode/toolUseId"


class _Surface:
    """The tools that clients see, and what answers each."""

    def __init__(self, app: App, client: str | Callable[[Any], str], session: str | None) -> None:
        self._app = app
        self._client = client
        self._code_runs = CodeRuns(app, session)
        self._discovery = app.discovery
        self._settings = app.config.settings
        self._listing: tuple[Mapping[str, str], DefinitionText] | None = None

    async def definitions(self) -> list[types.Tool]:
        """Return what `tools/list` answers, in a stable order."""
        catalog = self._app.catalog
        definition = execute_code(sorted(catalog.servers), catalog.kinds)
        tools = [types.Tool.model_validate(as_listed(definition))]
        if self._settings.search_tools:
            tools.append(_SEARCH_DEFINITION)
        pinned = await self._pinned()
        return tools + [_pinned_definition(name, tool) for name, tool in pinned.items()]

    async def answer(self, context: Any, params: types.CallToolRequestParams) -> ToolAnswer:
        """Answer one call, and bring along what came of runs that had gone on.

        Raises:
            ToolfoldError: There is no such tool.
        """
        result = await self._answered(context, params)
        if isinstance(result, types.CallToolResult):
            news = self._app.shared.background_runs.news(self.name_of(context))
            result.content.extend(types.TextContent(type="text", text=each) for each in news)
        return result

    async def _answered(self, context: Any, params: types.CallToolRequestParams) -> ToolAnswer:
        name, arguments = params.name, dict(params.arguments or {})
        broker: ElicitationBroker = context.lifespan_context
        if name == "execute_code":
            origin = replace(await self._origin(context), tool_use=_tool_use(context, params))
            return await self._code_runs.answer(context, params, origin)
        if name == "search_tools" and self._settings.search_tools:
            search = GuestCall("tools.search", (), arguments)
            found = await self._discovery.call(search, client=self.name_of(context))
            return text_result(str(found))
        pinned = await self._pinned()
        if name not in pinned:
            raise NotFound(f"There is no tool {name!r}; execute_code can call every tool.")
        call = partial(self._call_pinned, await self._origin(context), pinned[name], arguments)
        return await broker.attend(context, params, lambda ask, _progress: call(ask))

    async def recover(self, context: Any, task_id: str) -> Task | None:
        """Go on with a task of this client's that no connection holds.

        Raises:
            ToolfoldError: It cannot be looked for.
        """
        return await self._code_runs.recover(context, self.name_of(context), task_id)

    def name_of(self, context: Any) -> str:
        """Return under which name the journal knows the client."""
        return self._client if isinstance(self._client, str) else self._client(context)

    async def _origin(self, context: Any) -> Origin:
        config = self._app.config
        return Origin(
            client=self.name_of(context),
            request=key_of(context.request_id),
            project=str(config.project or config.start_directory),
            program=client_name(context),
            is_local_client=context.request is None,
            shown=await self._shown(),
        )

    async def _shown(self) -> DefinitionText:
        """Return what the model saw of us, for the ledger."""
        servers = self._app.catalog.servers
        if self._listing is None or self._listing[0] is not servers:
            tools = {
                f"toolfold.{tool.name}": definition(tool.name, tool.description, tool.input_schema)
                for tool in await self.definitions()
            }
            self._listing = servers, listing("toolfold", tools)
        return self._listing[1]

    async def _call_pinned(
        self, origin: Origin, tool: Tool, arguments: JsonObject, ask: Elicitor | None
    ) -> types.CallToolResult:
        """Return what the server answered, or a result that says why there is no answer."""
        app = self._app
        access = ForwardedCall(app.reach, tool, arguments)
        notes: list[str] = []
        try:
            result = await app.border.single(
                access,
                origin,
                "mcp",
                code=f"# The client called {tool.path}, which is pinned.",
                ask=ask,
                shown=_text_of,
                on_end=lambda run: run.offer(app.catalog.definitions, shown=origin.shown),
                on_note=notes.append,
            )
        except ToolfoldError as error:
            result = access.result or text_result(str(error), is_error=True)
        said = [types.TextContent(type="text", text=note) for note in notes]
        return result.model_copy(update={"content": [*result.content, *said]}) if said else result

    async def _pinned(self) -> dict[str, Tool]:
        """Return the pinned tools that exist, under names that every client takes."""
        wanted = self._settings.pinned_tools
        if not wanted:
            return {}
        await self._app.catalog.learn({path.partition(".")[0] for path in wanted})
        found: dict[str, Tool] = {}
        for path in wanted:
            try:
                tool = self._app.catalog.find(path)
            except NotFound:
                continue
            found[f"{tool.module}__{tool.function}"] = tool
        return found


class _View(NamedTuple):
    """What clients see of one app."""

    app: App
    surface: _Surface
    passthrough: Passthrough

    async def lists(self) -> dict[ListKind, object]:
        """Return what every list holds now."""
        offers = self.passthrough.offers()
        return {"tools": await self.surface.definitions(), **offers}


class _Views:
    """What clients see, of the app that is current when they ask."""

    def __init__(
        self, source: AppSource, client: str | Callable[[Any], str], session: str | None
    ) -> None:
        self._source = source
        self._client = client
        self._session = session
        self._latest: _View | None = None
        self.changes = ListChanges(source, self._lists)
        self.tasks = ServedTasks(self._name_of, self._recover)
        self.subscriptions = ResourceSubscriptions(self._follow, self.changes.bus)

    @contextmanager
    def current(self) -> Iterator[_View]:
        """Have what is current for the length of a request."""
        with self._source.using() as app:
            if self._latest is None or self._latest.app is not app:
                surface = _Surface(app, self._client, self._session)
                self._latest = _View(app, surface, Passthrough(app, surface.name_of))
            yield self._latest

    async def _lists(self) -> dict[ListKind, object]:
        with self.current() as view:
            return await view.lists()

    async def list_tools(self, context: Any, _params: Any) -> types.ListToolsResult:
        """Answer `tools/list`."""
        with self.current() as view:
            tools = await view.surface.definitions()
        self.changes.note(context, "tools", tools)
        return types.ListToolsResult(tools=tools)

    def _name_of(self, context: Any) -> str:
        with self.current() as view:
            return view.surface.name_of(context)

    async def _recover(self, context: Any, task_id: str) -> Task | None:
        with self.current() as view:
            return await view.surface.recover(context, task_id)

    async def call_tool(
        self, context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult | dict[str, Any]:
        """Answer `tools/call`: with a task where the client has these and the run goes on."""
        with self.current() as view:
            try:
                answer = await view.surface.answer(context, params)
            except ToolfoldError as error:
                return text_result(str(error), is_error=True)
        if isinstance(answer, BrokeredRequest):
            return await self.tasks.begin(context, answer)
        return answer

    def passed_through(self, name: str) -> Callable[[Any, Any], Any]:
        """Return what answers a method that is for the upstreams."""

        async def answer(context: Any, params: Any) -> Any:
            with self.current() as view:
                result = await getattr(view.passthrough, name)(context, params)
                for kind, listed in view.passthrough.offers().items():
                    if name == f"list_{kind}":
                        self.changes.note(context, kind, listed)
            return result

        return answer

    async def _follow(
        self,
        context: Any,
        address: str,
        send: Send,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Have a client told of a resource until cancelled, also when another app has it.

        Raises:
            MCPError: That cannot be; no more once it has begun.
        """
        pulse = Pulse(send)
        await self._watch(context, address, pulse, task_status.started)
        while True:
            try:
                await self._watch(context, address, pulse, pulse.beat)
            except MCPError:  # its server is gone, and may be back with the next app
                await self._source.switched.wait()

    async def _watch(
        self, context: Any, address: str, pulse: Pulse, begin: Callable[[], None]
    ) -> None:
        """Watch a resource by the app that is current, until another takes its place."""
        switched = self._source.switched
        refusal: MCPError | None = None
        with self.current() as view:
            async with anyio.create_task_group() as tasks:
                try:
                    await view.passthrough.watch(context, address, tasks, pulse.beat)
                except MCPError as error:  # out of here it would come as one of a group
                    refusal = error
                else:
                    begin()
                    tasks.start_soon(pulse.deliver)
                    await switched.wait()
                tasks.cancel_scope.cancel()
        if refusal is not None:
            raise refusal

    @asynccontextmanager
    async def serving(self, _server: object) -> AsyncIterator[ElicitationBroker]:
        """Attend to clients, and tell them what changes, for the length of this context."""
        with self.current() as view:
            ask_s = view.app.config.settings.limits.ask_s
        async with (
            open_broker(ask_s) as broker,
            self.subscriptions.running(),
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(self.changes.follow)
            yield broker
            tasks.cancel_scope.cancel()


def make_server(
    source: AppSource, *, client: str | Callable[[Any], str] = "", session: str | None = None
) -> Server[Any]:
    """Return the server of an app, for one client where it has a name of its own.

    Where several share it, `client` tells the name from the context of a call. `session` is the one
    for runs that name none; without it nothing of them is kept.
    """
    views = _Views(source, client, session)
    passed_through: dict[str, Any] = {
        handler: views.passed_through(name) for handler, name in PASSED_THROUGH.items()
    }
    server = TaskServer(
        "toolfold",
        version=__version__,
        lifespan=views.serving,
        on_list_tools=views.list_tools,
        on_subscriptions_listen=views.subscriptions.listen,
        on_subscribe_resource=views.subscriptions.subscribe,
        on_unsubscribe_resource=views.subscriptions.unsubscribe,
        **passed_through,
    )
    server.add_request_handler("tools/call", types.CallToolRequestParams, views.call_tool)
    views.tasks.serve(server, views.call_tool, tools={"execute_code"})
    return server


async def serve_app(app: App) -> None:
    """Serve until the client closes our standard input."""
    server = make_server(app, session=f"stdio-{secrets.token_hex(8)}")
    app.discovery.warm()
    await serve_stdio(server)


def _tool_use(context: Any, params: types.CallToolRequestParams) -> str:
    """Return by which id a local client's own hook knew of a call before."""
    known = (params.meta or {}).get(TOOL_USE) if context.request is None else None
    return known if isinstance(known, str) else ""


def _pinned_definition(name: str, tool: Tool) -> types.Tool:
    listed = tool.listed
    return types.Tool(
        name=name,
        description=listed.description,
        input_schema=self_contained(listed.input_schema),
        annotations=types.ToolAnnotations(
            read_only_hint=listed.read_only,
            destructive_hint=listed.destructive,
            idempotent_hint=listed.idempotent,
        ),
    )


def _text_of(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")
