"""Tell clients that a resource has changed which they subscribed to, as their protocol has it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, Protocol

import anyio
import mcp_types as types
from anyio.abc import TaskGroup, TaskStatus
from mcp import MCPError
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourceUpdated,
    ServerEvent,
)

_MAX_OF_ONE: Final = 100
_MAX_OF_ALL: Final = 1_000
_MAX_STREAMS: Final = 1_000

_PAUSE_S: Final = 0.1

Send = Callable[[], Awaitable[None]]


class Pulse:
    """Sends word of one resource: of many updates in a short time, once."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._beat = anyio.Event()

    def beat(self) -> None:
        """Have word sent."""
        self._beat.set()

    async def deliver(self) -> None:
        """Send it until cancelled."""
        while True:
            await self._beat.wait()
            self._beat = anyio.Event()
            await self._send()
            await anyio.sleep(_PAUSE_S)


class Follow(Protocol):
    """Has a client told of one resource, by `send`, until cancelled."""

    def __call__(
        self, context: Any, address: str, send: Send, *, task_status: TaskStatus[None] = ...
    ) -> Awaitable[None]:
        """Raise an `MCPError` if that cannot be; no more once it has begun."""
        ...


class ResourceSubscriptions:
    """Which clients want to hear of which resources.

    Those of 2026-07-28 say so when they listen, and hear of it in that stream; older ones subscribe
    to each. All of them are forgotten when their clients leave.
    """

    def __init__(self, follow: Follow, bus: InMemorySubscriptionBus) -> None:
        """`bus` has what all clients who listen may want to hear beside it."""
        self._follow = follow
        self._bus = bus
        self._streams = 0
        self._followed = 0
        self._sessions: dict[str, dict[str, anyio.CancelScope]] = {}
        self._tasks: TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow what older clients subscribed to for the length of this context."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            yield
            tasks.cancel_scope.cancel()

    async def listen(
        self, context: Any, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Answer `subscriptions/listen`; what cannot be followed is not among what is honored."""
        if self._streams >= _MAX_STREAMS:
            raise MCPError(types.INTERNAL_ERROR, f"{_MAX_STREAMS:,} clients listen already.")
        self._streams += 1
        wanted = list(dict.fromkeys(params.notifications.resource_subscriptions or ()))
        bus = _StreamBus(self._bus)
        try:
            async with anyio.create_task_group() as tasks:
                honored = [
                    address
                    for address in wanted[:_MAX_OF_ONE]
                    if await self._begins(tasks, context, address, bus)
                ]
                result = await ListenHandler(bus)(context, _narrowed(params, honored))
                tasks.cancel_scope.cancel()
        finally:
            self._streams -= 1
        return result

    async def _begins(
        self, tasks: TaskGroup, context: Any, address: str, bus: "_StreamBus"
    ) -> bool:
        send = partial(bus.publish, ResourceUpdated(uri=address))
        try:
            await tasks.start(self._counted, context, address, send)
        except MCPError:
            return False
        return True

    async def subscribe(
        self, context: Any, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Answer `resources/subscribe`."""
        address, subscribed = str(params.uri), self._subscribed(context)
        if address in subscribed:
            return types.EmptyResult()
        if len(subscribed) >= _MAX_OF_ONE:
            raise MCPError(
                types.INVALID_PARAMS,
                f"You are subscribed to {_MAX_OF_ONE} resources, the most there may be. "
                "Unsubscribe from one first.",
            )
        assert self._tasks is not None  # noqa: S101
        scope = subscribed[address] = anyio.CancelScope()
        try:
            await self._tasks.start(self._within, scope, context, address)
        except BaseException:
            subscribed.pop(address, None)
            scope.cancel()
            raise
        return types.EmptyResult()

    async def unsubscribe(
        self, context: Any, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Answer `resources/unsubscribe`."""
        scope = self._subscribed(context).pop(str(params.uri), None)
        if scope is not None:
            scope.cancel()
        return types.EmptyResult()

    def _subscribed(self, context: Any) -> dict[str, anyio.CancelScope]:
        """Return what a client is subscribed to; all of it ends with its connection."""
        headers = {} if context.request is None else context.request.headers
        key = headers.get("mcp-session-id", "")
        if key not in self._sessions:
            self._sessions[key] = {}
            connection = context.session._connection  # noqa: SLF001  # nothing else tells of its end
            connection.exit_stack.callback(self._leave, key)
        return self._sessions[key]

    def _leave(self, key: str) -> None:
        for scope in self._sessions.pop(key, {}).values():
            scope.cancel()

    async def _within(
        self,
        scope: anyio.CancelScope,
        context: Any,
        address: str,
        *,
        task_status: TaskStatus[None],
    ) -> None:
        about = types.ResourceUpdatedNotificationParams(uri=address)
        updated = types.ResourceUpdatedNotification(params=about)

        async def send() -> None:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await context.session.send_notification(updated)

        with scope:
            await self._counted(context, address, send, task_status=task_status)

    async def _counted(
        self, context: Any, address: str, send: Send, *, task_status: TaskStatus[None]
    ) -> None:
        if self._followed >= _MAX_OF_ALL:
            raise MCPError(
                types.INTERNAL_ERROR, f"{_MAX_OF_ALL:,} resources are subscribed to already."
            )
        self._followed += 1
        try:
            await self._follow(context, address, send, task_status=task_status)
        finally:
            self._followed -= 1


class _StreamBus(InMemorySubscriptionBus):
    """What one stream can hear: its own resources, and what all can."""

    def __init__(self, shared: InMemorySubscriptionBus) -> None:
        super().__init__()
        self._shared = shared

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """See `SubscriptionBus`."""
        ends = super().subscribe(listener), self._shared.subscribe(listener)

        def unsubscribe() -> None:
            for end in ends:
                end()

        return unsubscribe


def _narrowed(
    params: types.SubscriptionsListenRequestParams, honored: list[str]
) -> types.SubscriptionsListenRequestParams:
    wanted = params.notifications.model_copy(update={"resource_subscriptions": honored or None})
    return params.model_copy(update={"notifications": wanted})
