"""The MCP server: `execute_code`, and what the user chose to see beside it."""

import secrets
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import anyio.to_thread
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

from toolfold import __version__
from toolfold.app import App
from toolfold.catalog.definitions import DefinitionText, definition, listing
from toolfold.catalog.questions import Elicitor
from toolfold.catalog.tool import Tool
from toolfold.entrypoints.mcp.elicitation_broker import ElicitationBroker, client_name, open_broker
from toolfold.entrypoints.mcp.passthrough import Passthrough
from toolfold.errors import NotFound, ToolfoldError
from toolfold.execution import report
from toolfold.execution.access import ForwardedCall
from toolfold.execution.background import BackgroundRun
from toolfold.execution.calls import OnRunProgress
from toolfold.execution.report import RunReport
from toolfold.execution.runtime import SessionRequest
from toolfold.execution.service import RunOptions, RunRequest
from toolfold.execution.trust.approval_form import waiting_text
from toolfold.execution.trust.approvals import approvals_of
from toolfold.journal.runs import Origin
from toolfold.jsontypes import JsonObject
from toolfold.relay.surface import execute_code
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


_TAKEN: Final = frozenset({"code", "session", "dry_run"})


class _Surface:
    """The tools that clients see, and what answers each."""

    def __init__(self, app: App, client: str | Callable[[Any], str], session: str | None) -> None:
        self._app = app
        self._session = session
        self._client = client
        self._discovery = app.discovery
        self._settings = app.config.settings
        self._listing: tuple[Mapping[str, str], DefinitionText] | None = None

    async def definitions(self) -> list[types.Tool]:
        """Return what `tools/list` answers, in a stable order."""
        tools = [types.Tool.model_validate(execute_code(sorted(self._app.catalog.servers)))]
        if self._settings.search_tools:
            tools.append(_SEARCH_DEFINITION)
        pinned = await self._pinned()
        return tools + [_pinned_definition(name, tool) for name, tool in pinned.items()]

    async def answer(
        self, context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Answer one call.

        Raises:
            ToolfoldError: There is no such tool, or it failed.
        """
        name, arguments = params.name, dict(params.arguments or {})
        broker: ElicitationBroker = context.lifespan_context
        if name == "execute_code":
            origin = await self._origin(context)
            return await broker.attend(context, params, partial(self._execute, origin, arguments))
        if name == "search_tools" and self._settings.search_tools:
            search = GuestCall("tools.search", (), arguments)
            found = await self._discovery.call(search, client=self.name_of(context))
            return _text(str(found))
        pinned = await self._pinned()
        if name not in pinned:
            raise NotFound(f"There is no tool {name!r}; execute_code can call every tool.")
        call = partial(self._call_pinned, await self._origin(context), pinned[name], arguments)
        return await broker.attend(context, params, lambda ask, _progress: call(ask))

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

    async def _execute(
        self,
        origin: Origin,
        arguments: JsonObject,
        ask: Elicitor | None,
        on_progress: OnRunProgress,
    ) -> types.CallToolResult:
        code, session = arguments.get("code"), arguments.get("session")
        dry_run = arguments.get("dry_run", False)
        is_odd = not isinstance(dry_run, bool) or bool(arguments.keys() - _TAKEN)
        if not isinstance(code, str) or not _is_text(session) or is_odd:
            return _text(
                "execute_code takes `code`, the Python text to run, and if you like `session`, the "
                "name of the variables to go on with, and `dry_run`, true or false.",
                is_error=True,
            )
        wish = SessionRequest(str(session)) if session else SessionRequest(self._session, True)
        options = RunOptions(
            ask=ask, on_progress=on_progress, patience_s=self._settings.limits.answer_s
        )
        result = await self._app.runs.run(
            RunRequest(
                code=code, origin=origin, session=wish, dry_run=bool(dry_run), options=options
            )
        )
        if isinstance(result, BackgroundRun):
            return _text(await self._going_text(result))
        return _reply(result)

    async def _call_pinned(
        self, origin: Origin, tool: Tool, arguments: JsonObject, ask: Elicitor | None
    ) -> types.CallToolResult:
        """Return what the server answered, or a result that says why there is no answer."""
        app = self._app
        access = ForwardedCall(app.reach, tool, arguments)
        try:
            return await app.border.single(
                access,
                origin,
                "mcp",
                code=f"# The client called {tool.path}, which is pinned.",
                ask=ask,
                shown=_text_of,
                on_end=lambda run: run.offer(app.catalog.definitions, shown=origin.shown),
            )
        except ToolfoldError as error:
            return access.result or _text(str(error), is_error=True)

    async def _going_text(self, run: BackgroundRun) -> str:
        """Say that a run goes on, or what it waits for."""
        approvals = approvals_of(self._app.config)
        approval = await anyio.to_thread.run_sync(approvals.latest_of, run.id)
        if approval is not None and approval.state == "pending":
            return waiting_text(approval)
        return report.background_text(run.id, self._settings.limits.answer_s)

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


def make_server(
    app: App, *, client: str | Callable[[Any], str] = "", session: str | None = None
) -> Server[Any]:
    """Return the server of one app, for one client where it has a name of its own.

    Where several share it, `client` tells the name from the context of a call. `session` is the one
    for runs that name none; without it nothing of them is kept.
    """
    surface = _Surface(app, client, session)

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=await surface.definitions())

    async def call_tool(
        context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        try:
            return await surface.answer(context, params)
        except ToolfoldError as error:
            return _text(str(error), is_error=True)

    return Server(
        "toolfold",
        version=__version__,
        lifespan=lambda _server: open_broker(app.config.settings.limits.ask_s),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        **Passthrough(app, surface.name_of).handlers(),
    )


async def serve_stdio(app: App) -> None:
    """Serve until the client closes our standard input."""
    server = make_server(app, session=f"stdio-{secrets.token_hex(8)}")
    app.discovery.warm()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _pinned_definition(name: str, tool: Tool) -> types.Tool:
    listed = tool.listed
    return types.Tool(
        name=name,
        description=listed.description,
        input_schema=listed.input_schema,
        annotations=types.ToolAnnotations(
            read_only_hint=listed.read_only,
            destructive_hint=listed.destructive,
            idempotent_hint=listed.idempotent,
        ),
    )


def _reply(result: RunReport) -> types.CallToolResult:
    """Text only: clients that see structured content show the model that instead."""
    images = [
        types.ImageContent(type="image", data=blob.base64, mime_type=blob.mime_type)
        for blob in result.images
    ]
    text = types.TextContent(type="text", text=result.text)
    return types.CallToolResult(content=[text, *images], is_error=not result.success)


def _text_of(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


def _text(text: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], is_error=is_error
    )
