"""One connection to one MCP server, owned by one task.

The SDK's client must be closed by the task that opened it, so `serve` opens it, keeps it and closes
it; calls use it from wherever they are. The server is started when first needed, stays warm, and is
started again when it died.
"""

import logging
import math
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, Protocol, cast

import anyio
import mcp_types as types
from anyio.abc import TaskStatus
from mcp import Client, MCPError
from mcp.client.extension import advertise
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from toolfold.catalog.in_flight import InFlightRequests
from toolfold.catalog.large import LargeParts, MessageSizes
from toolfold.catalog.listing import ListingCache, definition_size, listed_tool
from toolfold.catalog.login.logins import Logins, StoredLogin
from toolfold.catalog.observed_shapes import ObservedShapes
from toolfold.catalog.offers import KnownOffers, Offers
from toolfold.catalog.pace import CallPace
from toolfold.catalog.questions import Elicitor, Question, Reply
from toolfold.catalog.sanitize import plain
from toolfold.catalog.secrets import FilledServer, ServerSecrets
from toolfold.catalog.tasks import EXTENSION as TASKS
from toolfold.catalog.tasks import RemoteTask
from toolfold.catalog.tool import ListedTool
from toolfold.catalog.transport import (
    ConnectFailure,
    ServerStart,
    Transport,
    first_line,
    is_too_long,
)
from toolfold.catalog.upstream_request import (
    AnswerT,
    CallListener,
    CallSlot,
    CallSlots,
    UpstreamRequest,
    UpstreamTask,
)
from toolfold.catalog.watches import ResourceWatches, Tell
from toolfold.config.harmless import address
from toolfold.config.servers import ServerConfig, config_hash
from toolfold.errors import (
    ConfigError,
    StoreError,
    ToolFailed,
    UpstreamTimedOut,
    UpstreamUnavailable,
)

_log = logging.getLogger(__name__)

_MAX_BACKOFF_S: Final = 30.0
_REFUSED_BACKOFF_S: Final = 2.0  # whoever has just logged in should not have to wait
_ATTEMPTS: Final = 4
_MAX_LISTING_PAGES: Final = 200
_MAX_LISTED_TOOLS: Final = 20_000
_MAX_LISTING_CHARS: Final = 64_000_000
_CHANGES: Final = (
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
    types.ResourceListChangedNotification,
)

OnWait = Callable[[str, float], None]
"""Told of each wait before a call: why, and for how many seconds."""


class _Interrupted(UpstreamUnavailable):
    """The connection was lost, or the server refused for now: the same call may go through."""


class Upstream(Protocol):
    """Whatever offers tools: an MCP server, or an API."""

    config: ServerConfig
    cover_words: Callable[[str], str]
    """Takes out of what it says of a failure what no model may see."""
    listeners: list[Callable[[], None]]
    """Told whenever what it offers has changed."""
    on_connected: Callable[[], None]
    fault: str | None
    """Why it cannot be used right now, as a sentence without its name."""
    left_out: tuple[str, ...]
    """Which of its tools are not offered, and why."""
    protocol: str | None
    connections: int
    """How often a connection to it was begun."""
    shapes: ObservedShapes
    """What its tools were seen to return."""
    parts: LargeParts
    """What of its answers is kept in files."""

    @property
    def name(self) -> str:
        """Its name in the configuration."""

    @property
    def state(self) -> str:
        """Whether it is connected."""

    @property
    def known_tools(self) -> tuple[ListedTool, ...] | None:
        """What it listed last; None if it never did."""

    @property
    def known_offers(self) -> Offers | None:
        """What it offers beside tools; None if that is not known."""

    @property
    def is_learning(self) -> bool:
        """Whether it is being asked what it offers."""

    async def offers(self) -> Offers:
        """Return what it offers beside tools."""

    async def tools(self, *, fresh: bool = False) -> tuple[ListedTool, ...]:
        """Return what it lists, asking it only if that is not known."""

    async def run(
        self,
        request: UpstreamRequest[AnswerT],
        *,
        on_wait: OnWait = ...,
        ask: Elicitor | None = None,
        listener: CallListener | None = None,
    ) -> AnswerT:
        """Make a request of it, and return the answer."""

    async def watch(self, uri: str, tell: Tell, *, task_status: TaskStatus[None] = ...) -> None:
        """Have `tell` called whenever a resource may have changed, until cancelled.

        Raises:
            UpstreamError: That cannot be; no more once it has begun.
        """

    def restart(self) -> None:
        """End the connection, if there is one; what wants it next makes another at once."""

    async def serve(self) -> None:
        """Own its connections until cancelled."""


class McpUpstream:
    """An MCP server that we call."""

    cover_words: Callable[[str], str] = staticmethod(str)
    """Takes out of what it says of a failure what no model may see."""
    left_out: tuple[str, ...] = ()
    """Which of the tools that it listed are not offered, and why."""
    connections = 0

    def __init__(  # noqa: PLR0913  # the composition root hands it every part
        self,
        config: ServerConfig,
        *,
        start: ServerStart,
        cache: ListingCache,
        logins: Logins,
        log_file: Path,
        connect_timeout_s: float,
        sizes: MessageSizes,
        task_s: float,
        secrets: ServerSecrets,
    ) -> None:
        self.config, self._secrets = config, secrets
        self._task_s, self._slots = task_s, CallPace(config.name, config.rate_per_s)
        self.listeners: list[Callable[[], None]] = []
        """Told whenever what it offers has changed."""
        self.on_connected: Callable[[], None] = lambda: None
        self.fault: str | None = None
        """Why it cannot be used right now, as a sentence without the server's name."""
        self.protocol: str | None = None
        self._cache = cache
        self._hash = config_hash(config)
        self.shapes = ObservedShapes(cache.sibling("shapes", self._hash))
        """What its tools were seen to return."""
        self.parts = LargeParts(sizes)
        """What of its answers is kept in files."""
        self._start = start
        self._login = StoredLogin(config, logins) if config.may_log_in else None
        self._new_line = partial(
            Transport,
            start=start,
            log_file=log_file,
            on_end=self._lose,
            auth=self._login,
            parts=self.parts,
        )
        self._line = self._new_line(FilledServer(config, None))
        self._connect_timeout_s = connect_timeout_s
        self._state: Literal["idle", "connecting", "online", "closing"] = "idle"
        self._client: Client | None = None
        self._wanted, self._settled = anyio.Event(), anyio.Event()
        self._lost, self._relist = anyio.Event(), anyio.Event()
        self._failures, self._retry_at = 0, 0.0
        self._listing = cache.load(self._hash)
        self._offers = KnownOffers(cache.sibling("offers", self._hash))
        self._in_flight = InFlightRequests(config.name, config.timeout_s, task_s=task_s)
        self._watches = ResourceWatches(
            config.name,
            connect=self._connected_until,
            request=self.run,
            timeout_s=connect_timeout_s,
        )
        self._is_fresh, self._listed = False, anyio.Event()
        self._turns = CallSlots(
            concurrency=config.concurrency, serialize_writes=config.serialize_writes
        )

    @property
    def name(self) -> str:
        """The server's name in the configuration."""
        return self.config.name

    @property
    def state(self) -> str:
        """Whether it is connected: idle, connecting, online or closing."""
        return self._state

    @property
    def known_tools(self) -> tuple[ListedTool, ...] | None:
        """What it listed last, in this process or an earlier one; None if it never did."""
        return self._listing

    @property
    def known_offers(self) -> Offers | None:
        """What it offers beside tools, as last listed; None if it never was."""
        return self._offers.value

    @property
    def is_learning(self) -> bool:
        """Whether it is being asked what it offers, or is about to be for another reason."""
        is_wanted = self._listing is None or self._state != "idle"
        return self._offers.value is None and is_wanted and self.fault is None

    async def offers(self) -> Offers:
        """Return what the server offers beside tools, asking it only if that is not known.

        Raises:
            UpstreamUnavailable: The server cannot be reached, or did not say.
        """
        if self._offers.value is None:
            settled = self._offers.settled
            if self._client is not None:
                self._relist.set()
            await self._connected()
            await settled.wait()
        if self._offers.value is None:
            raise self._unavailable(self.fault or "it did not say which resources it has")
        return self._offers.value

    async def tools(self, *, fresh: bool = False) -> tuple[ListedTool, ...]:
        """Return what the server lists, asking it only if that is not known.

        Raises:
            UpstreamUnavailable: The server cannot be reached, or its listing is not valid.
        """
        if self._listing is None or (fresh and not self._is_fresh):
            listed = self._listed
            if self._client is not None:
                self._relist.set()
            await self._connected()
            await listed.wait()
        if self._listing is None or (fresh and self.fault):
            raise self._unavailable(self.fault or "it listed nothing")
        return self._listing

    async def run(
        self,
        request: UpstreamRequest[AnswerT],
        *,
        on_wait: OnWait = lambda _why, _seconds: None,
        ask: Elicitor | None = None,
        listener: CallListener | None = None,
    ) -> AnswerT:
        """Call a tool, read a resource, get a prompt: return the answer, whatever it says.

        Where the server makes a task of it, this waits for its end, and lets others have the turn.

        Calls of tools not marked read-only go one at a time. A call is repeated only when the
        server refused it for now or was lost, and only if the tool is read-only or idempotent.
        What the server asks the user goes to `ask`.

        Raises:
            UpstreamUnavailable: The server cannot be reached, or died before it answered.
            UpstreamTimedOut: It did not answer in time.
            ToolFailed: It answered with a protocol error.
            QuestionRefused: It asks what cannot be put to the user.
            QuestionExpired: The user did not answer.
        """
        async with self._turns.take(is_write=request.is_write) as turn:
            asking = None if ask is None else _yielding(turn, ask)
            answer = await self._repeated(request, asking, listener, on_wait)
            if not isinstance(answer, UpstreamTask):
                return answer
            async with turn.yielded():
                result: Any = await self._ended(answer, request, ask, listener, on_wait)
            return cast("AnswerT", result)

    async def _ended(
        self,
        handle: UpstreamTask,
        request: UpstreamRequest[Any],
        ask: Elicitor | None,
        listener: CallListener | None,
        on_wait: OnWait,
    ) -> types.CallToolResult:
        """Return the result of a task when it has ended."""
        task = RemoteTask(
            handle,
            server=self.name,
            tool=request.name,
            send=lambda each: self._repeated(each, ask, None, on_wait),
            listener=listener,
            answer=lambda questions: self._in_flight.replies(questions, ask),
        )
        is_modern = self.protocol in MODERN_PROTOCOL_VERSIONS
        return await task.result(is_modern=is_modern, limit_s=self._task_s)

    async def _repeated(
        self,
        request: UpstreamRequest[AnswerT],
        ask: Elicitor | None,
        listener: CallListener | None,
        on_wait: OnWait,
    ) -> AnswerT | UpstreamTask:
        """Send a request, and again where that cannot do anything twice."""
        for _ in range(_ATTEMPTS - 1):
            await self._pace(on_wait)
            try:
                return await self._send(request, ask, listener)
            except _Interrupted:
                if not request.may_repeat:
                    raise
        await self._pace(on_wait)
        return await self._send(request, ask, listener)

    async def watch(
        self, uri: str, tell: Tell, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """See `Upstream`."""
        await self._watches.watch(uri, tell, task_status)

    def restart(self) -> None:
        """See `Upstream`."""
        self._failures, self._retry_at = 0, 0.0
        self._is_fresh = False
        self._secrets.forget()
        self._lose()

    async def serve(self) -> None:
        """Own the connection until cancelled: open it when wanted, close it when lost."""
        while True:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            self._state = "connecting"
            self.connections += 1
            fault = await self._hold_connection()
            self._go_offline(fault)

    async def _pace(self, on_wait: OnWait) -> None:
        await self._slots.wait(on_wait, busy_until=self._line.busy_until)

    async def _send(
        self,
        request: UpstreamRequest[AnswerT],
        ask: Elicitor | None,
        listener: CallListener | None,
    ) -> AnswerT | UpstreamTask:
        client = await self._connected()
        try:
            # Not `call_tool`: that validates every answer against the output schema, which the
            # server has done, at a tenth of the time of a call.
            is_plain = self.protocol not in MODERN_PROTOCOL_VERSIONS and not request.may_be_task
            calls = self._line.calls if is_plain else None
            return await self._in_flight.exchange(client, request, ask, listener, calls)
        except MCPError as error:
            raise self._translated(error, request.name) from error
        except ValidationError as error:
            raise ToolFailed(
                f"{self.name}: {request.name} answered with what is not valid MCP."
            ) from error

    def _translated(self, error: MCPError, name: str) -> Exception:
        if error.code == types.REQUEST_TIMEOUT:
            return UpstreamTimedOut(
                f"{self.name}: {name} did not answer within {self.config.timeout_s:g} s. "
                "It may still be at work there."
            )
        if self._line.busy_until > time.monotonic():
            wait = self._line.busy_until - time.monotonic()
            return _Interrupted(
                f"{self.name} is overloaded and asks to wait {wait:.0f} s; {name} was not done."
            )
        if is_too_long(error.message):
            return self._too_long(name, "It was done all the same.")
        # Servers use the code of a closed connection for faults of their own, too.
        if error.message in {"Connection closed", "Session terminated"}:
            self._lose()
            if self._line.has_overflowed:
                return self._too_long(name, "That ended the connection, for other calls too.")
            return _Interrupted(
                f"{self.name} ended before {name} answered; its outcome is unknown. "
                "The next call starts the server again."
            )
        if refusal := self._refusal():
            if self._secrets.forget():
                self._lose()  # what a command or a file gives may be another one by now
            return self._unavailable(refusal)
        return ToolFailed(f"{self.name}: {name} failed: {self._line.covered(error.message)}")

    def _too_long(self, name: str, consequence: str) -> ToolFailed:
        most = self._line.max_message_bytes
        return ToolFailed(
            f"{self.name} answered with more than {most:,} bytes while {name} was under way. "
            f"{consequence} Ask for less: a page, fewer fields."
        )

    async def _connected(self) -> Client:
        """Return the live client, connecting first if need be."""
        while self._client is None:
            if self.fault and time.monotonic() < self._retry_at:
                raise self._unavailable(self.fault)
            if self._state == "idle":
                self._settled = anyio.Event()
                self._wanted.set()
                self._state = "connecting"
            await self._settled.wait()
            if self._client is None and self.fault:
                raise self._unavailable(self.fault)
        return self._client

    async def _connected_until(self) -> tuple[Client, anyio.Event]:
        """Return the live client, and what is set when it is lost."""
        return await self._connected(), self._lost

    def _unavailable(self, fault: str) -> UpstreamUnavailable:
        return UpstreamUnavailable(f"The server {self.name!r} cannot be used: {fault}")

    async def _hold_connection(self) -> str | None:
        """Connect and stay until the connection is lost. Return the fault, if it never stood."""
        self._lost = anyio.Event()
        try:
            server = await self._secrets.filled()
        except ConfigError as error:
            return str(error)
        self._line = line = self._new_line(server)
        deadline = anyio.current_time() + self._connect_timeout_s
        try:
            with anyio.CancelScope(deadline=deadline) as handshake:
                async with Client(
                    line.open(),
                    cache=None,
                    message_handler=self._on_message,
                    elicitation_callback=self._in_flight.on_elicitation,
                    logging_callback=self._in_flight.on_log,
                    log_level="info",
                    extensions=[advertise(TASKS)],
                ) as client:
                    handshake.deadline = math.inf
                    self._go_online(client)
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(self._keep_listing, client)
                        await self._lost.wait()
                        tasks.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001  # the loop of a background task
            _log.info("%s: %s", self.name, line.covered(repr(error)))
            return self._describe(error) if self._state == "connecting" else None
        if handshake.cancelled_caught:
            return self._describe(TimeoutError())
        return None

    def _go_online(self, client: Client) -> None:
        self._state = "online"
        self._client = client
        self.on_connected()
        self.protocol = client.protocol_version
        self.fault = None
        self._failures = 0
        self._settled.set()

    def _lose(self) -> None:
        """Note that the connection is gone: nobody may use it while it is being closed."""
        if self._state == "online":
            self._state = "closing"
            self._client = None
            self._settled = anyio.Event()
        self._lost.set()

    def _go_offline(self, fault: str | None) -> None:
        self._state = "idle"
        self._client = None
        self._is_fresh = False
        if fault:
            self._failures += 1
            is_for_user = self._refusal() or self.config.missing
            longest = _REFUSED_BACKOFF_S if is_for_user else _MAX_BACKOFF_S
            self._secrets.forget()
            backoff = min(2.0 ** (self._failures - 1), longest)
            self._retry_at = time.monotonic() + backoff
            self.fault = fault
        self._settled.set()
        self._announce_listing()
        self._offers.settle()

    async def _on_message(self, message: object) -> None:
        if isinstance(message, _CHANGES):
            self._relist.set()
        elif isinstance(message, types.ResourceUpdatedNotification):
            self._watches.note(str(message.params.uri))
        elif isinstance(message, Exception) and self._line.noise is None:
            self._line.noise = plain(self._line.covered(str(message))[:200])

    async def _keep_listing(self, client: Client) -> None:
        """List on connecting, and again whenever the server says that a list changed."""
        self._relist.set()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._subscribe, client)
            while True:
                await self._relist.wait()
                self._relist = anyio.Event()
                await self._list(client)
                if await self._offers.learn(client, timeout_s=self._connect_timeout_s):
                    self._tell()

    async def _subscribe(self, client: Client) -> None:
        """Ask to be told of changes, where the protocol wants that; `_hear` is told of them."""
        has = client.server_capabilities
        tools = bool(has.tools and has.tools.list_changed)
        prompts = bool(has.prompts and has.prompts.list_changed)
        resources = bool(has.resources and has.resources.list_changed)
        is_modern = client.protocol_version in MODERN_PROTOCOL_VERSIONS
        if is_modern and (tools or prompts or resources):
            async with client.listen(
                tools_list_changed=tools,
                prompts_list_changed=prompts,
                resources_list_changed=resources,
            ) as changes:
                async for _ in changes:
                    self._relist.set()

    async def _list(self, client: Client) -> None:
        self._line.left_out.clear()
        try:
            with anyio.fail_after(self._connect_timeout_s):
                tools = tuple([tool async for tool in _pages(client)])
        except (MCPError, ValidationError, RuntimeError, TimeoutError) as error:
            self.fault = self._refusal() or self._covered(self._unusable(error))
        else:
            self._is_fresh = True
            self.fault = None
            self.left_out = tuple(dict.fromkeys(self._line.left_out))
            if tools != self._listing:
                self._listing = tools
                self._save(tools)
                self._tell()
        self._announce_listing()

    def _tell(self) -> None:
        for tell in list(self.listeners):
            tell()

    def _unusable(self, error: Exception) -> str:
        """Say why what it listed cannot be used."""
        what = first_line(error)
        if isinstance(error, TimeoutError):
            what = f"it did not come within {self._connect_timeout_s:g} s"
            what += f", and this is not MCP: {self._line.noise}" if self._line.noise else ""
        elif isinstance(error, MCPError) and is_too_long(error.message):
            what = f"one page has more than {self.parts.sizes.message_bytes:,} bytes"
        return f"its list of tools is not usable: {what}"

    def _save(self, tools: tuple[ListedTool, ...]) -> None:
        try:
            self._cache.save(self._hash, tools)
        except StoreError as error:
            _log.warning("%s", error)

    def _announce_listing(self) -> None:
        self._listed.set()
        self._listed = anyio.Event()

    def _describe(self, error: BaseException) -> str:
        directory = self.config.cwd or self._start.directory
        trouble = ConnectFailure(self.config, self._line, directory, self._connect_timeout_s)
        return self._covered(plain(trouble.of(error) or self._refusal() or first_line(error)))

    def _covered(self, words: str) -> str:
        return self.cover_words(self._line.covered(words))

    def _refusal(self) -> str | None:
        """Say why the server refuses us and what to do, if its last answer was a refusal."""
        status = self._line.refused_status
        if status is None:
            return None
        if self._login is not None and self._login.fault:
            return self._login.fault
        return (
            f"{address(self.config.url)} refused with status {status}. Check its headers or token."
        )


def _yielding(turn: CallSlot, ask: Elicitor) -> Elicitor:
    """Ask without keeping others from their turns: a person may think for minutes."""

    async def asking(question: Question) -> Reply:
        async with turn.yielded():
            return await ask(question)

    return replace(ask, put=asking)


async def _pages(client: Client) -> AsyncIterator[ListedTool]:
    cursor: str | None = None
    count = chars = 0
    for _ in range(_MAX_LISTING_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            listed = listed_tool(tool)
            count, chars = count + 1, chars + definition_size(listed)
            if count > _MAX_LISTED_TOOLS or chars > _MAX_LISTING_CHARS:
                raise RuntimeError(
                    f"it has more than {_MAX_LISTED_TOOLS:,} tools or {_MAX_LISTING_CHARS:,} "
                    "characters"
                )
            yield listed
        cursor = page.next_cursor
        if not cursor:
            return
    raise RuntimeError(f"it has more than {_MAX_LISTING_PAGES} pages")
