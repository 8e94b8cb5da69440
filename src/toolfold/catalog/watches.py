"""Resources of one server that somebody wants to hear about."""

import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import anyio
import mcp_types as types
from anyio.abc import TaskStatus
from mcp import Client, MCPError
from mcp.client.subscriptions import ResourceUpdated, Subscription, SubscriptionLost
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolfold.catalog.upstream_request import UpstreamRequest, subscribing, unsubscribing
from toolfold.errors import ToolFailed, ToolfoldError, UpstreamUnavailable

_AGAIN_S: Final = 2.0
_FAREWELL_S: Final = 2.0

Tell = Callable[[], None]
"""Told that a resource may be another than it was."""


class ResourceWatches:
    """Asks a server to tell of updates, in the way of its protocol, and again when it was lost."""

    def __init__(
        self,
        server: str,
        *,
        connect: Callable[[], Awaitable[tuple[Client, anyio.Event]]],
        request: Callable[[UpstreamRequest[types.EmptyResult]], Awaitable[Any]],
        timeout_s: float,
    ) -> None:
        """`connect` returns the live client and what is set when it is lost."""
        self._server = server
        self._connect = connect
        self._request = request
        self._timeout_s = timeout_s
        self._watched: dict[str, list[Tell]] = {}

    def note(self, updated: str) -> None:
        """Take note that a server of 2025 says so of a resource, or of a part of one."""
        for uri, tells in list(self._watched.items()):
            if updated == uri or updated.startswith(uri.rstrip("/") + "/"):
                for tell in list(tells):
                    tell()

    async def watch(self, uri: str, tell: Tell, task_status: TaskStatus[None]) -> None:
        """Watch a resource until cancelled; where updates may have been missed, `tell` too.

        Raises:
            UpstreamError: The server cannot be asked for it, or refused; no more once it has begun.
        """
        is_begun = False

        def begin() -> None:
            nonlocal is_begun
            if is_begun:
                tell()
            else:
                is_begun = True
                task_status.started()

        while True:
            try:
                await self._hold(uri, tell, begin)
            except ToolfoldError:
                if not is_begun:
                    raise
            await anyio.sleep(_AGAIN_S)

    async def _hold(self, uri: str, tell: Tell, begin: Tell) -> None:
        """Watch until the connection is lost."""
        client, lost = await self._connect()
        has = client.server_capabilities.resources
        if has is None or not has.subscribe:
            raise ToolFailed(f"{self._server} does not say when a resource changes; read it again.")
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            await self._subscribe(uri, tell, begin, lost)
            return
        try:
            await self._listen(client, uri, tell, begin, lost)
        except (MCPError, SubscriptionLost, TimeoutError) as error:
            raise UpstreamUnavailable(f"{self._server} does not let {uri} be watched.") from error

    async def _subscribe(self, uri: str, tell: Tell, begin: Tell, lost: anyio.Event) -> None:
        tells = self._watched.setdefault(uri, [])
        tells.append(tell)
        try:
            await self._request(subscribing(uri))
            begin()
            await lost.wait()
        finally:
            tells.remove(tell)
            if not tells:
                self._watched.pop(uri, None)
                await self._unsubscribe(uri, lost)

    async def _unsubscribe(self, uri: str, lost: anyio.Event) -> None:
        with anyio.move_on_after(_FAREWELL_S, shield=True), suppress(ToolfoldError):
            if not lost.is_set():
                await self._request(unsubscribing(uri))

    async def _listen(
        self, client: Client, uri: str, tell: Tell, begin: Tell, lost: anyio.Event
    ) -> None:
        with anyio.fail_after(self._timeout_s) as opening:
            async with client.listen(resource_subscriptions=[uri]) as changes:
                opening.deadline = math.inf
                if not changes.honored.resource_subscriptions:
                    raise SubscriptionLost(f"{uri} was not honored")
                begin()
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_hear, changes, tell, tasks.cancel_scope)
                    await lost.wait()
                    tasks.cancel_scope.cancel()


async def _hear(changes: Subscription, tell: Tell, until: anyio.CancelScope) -> None:
    with suppress(SubscriptionLost):
        async for event in changes:
            if isinstance(event, ResourceUpdated):
                tell()
    until.cancel()
