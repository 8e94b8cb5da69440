"""Tell clients that a list has changed since it was listed, as their protocol has it."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal

import anyio
import mcp_types as types
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
    ToolsListChanged,
)

from toolfold.app import AppSource
from toolfold.entrypoints.mcp.elicitation import is_modern

ListKind = Literal["tools", "prompts", "resources"]

_EVENTS: Final[dict[ListKind, tuple[ServerEvent, Callable[[], types.ServerNotification]]]] = {
    "tools": (ToolsListChanged(), types.ToolListChangedNotification),
    "prompts": (PromptsListChanged(), types.PromptListChangedNotification),
    "resources": (ResourcesListChanged(), types.ResourceListChangedNotification),
}
_MAX_SESSIONS: Final = 1_000

CurrentLists = Callable[[], Awaitable[dict[ListKind, object]]]
"""Returns what every list holds now, to be compared."""


class ListChanges:
    """Knows what clients were last told, and tells them when that holds no more.

    Those of 2026-07-28 hear of it in the streams that they listen to, older ones at any time.
    """

    def __init__(self, source: AppSource, lists: CurrentLists) -> None:
        self._source = source
        self._lists = lists
        self._told: dict[ListKind, object] = {}
        self._sessions: OrderedDict[str, Any] = OrderedDict()
        self.bus: Final = InMemorySubscriptionBus()
        """What clients hear who listen."""

    def note(self, context: Any, kind: ListKind, listed: object) -> None:
        """Take note of what a client was told."""
        self._told[kind] = listed
        if not is_modern(context):
            headers = {} if context.request is None else context.request.headers
            key = headers.get("mcp-session-id", "")
            self._sessions[key] = context.session
            self._sessions.move_to_end(key)
            if len(self._sessions) > _MAX_SESSIONS:
                self._sessions.popitem(last=False)

    async def follow(self) -> None:
        """Announce what changes until cancelled."""
        while True:
            switched = self._source.switched
            with self._source.using() as app:
                changed = app.catalog.changed
            await self._announce_changes()
            await _first(switched, changed)

    async def _announce_changes(self) -> None:
        if not self._told:
            return
        current = await self._lists()
        changed = [kind for kind in self._told if self._told[kind] != current[kind]]
        self._told |= {kind: current[kind] for kind in changed}
        for kind in changed:
            await self.announce(kind)

    async def announce(self, kind: ListKind) -> None:
        """Tell all clients that a list has changed."""
        event, notification = _EVENTS[kind]
        await self.bus.publish(event)
        for session in list(self._sessions.values()):
            await session.send_notification(notification())


async def _first(*events: anyio.Event) -> None:
    """Wait for one of these."""
    async with anyio.create_task_group() as tasks:

        async def wait(event: anyio.Event) -> None:
            await event.wait()
            tasks.cancel_scope.cancel()

        for event in events:
            tasks.start_soon(wait, event)
