"""Reads that a loop is about to make, begun before their turn.

A loop of a program says which reads will come (`analysis/read_ahead.py`). A few of them are begun,
in that order, each as if the program had called; when its turn comes, the call finds what came of
it, failures too. So what a program sees is the same as without.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
from anyio.abc import TaskGroup

from toolfold.catalog.tool import Tool
from toolfold.errors import ToolfoldError
from toolfold.jsontypes import Json
from toolfold.sandbox.sandbox import AHEAD, GuestCall, OnCall

_NEUTRAL: Final = ("progress", "show")
"""What guest code calls that is no tool and changes nothing that can be read."""


@asynccontextmanager
async def reading_ahead(
    on_call: OnCall, find: Callable[[str], Tool], may_read: Callable[[Tool], bool], most: int
) -> AsyncIterator[OnCall]:
    """Answer calls for the length of a context; `most` reads are begun before their turn.

    What was begun and nobody asked for by its end is given up.
    """
    async with anyio.create_task_group() as tasks:
        yield _ReadAhead(on_call, find, may_read, most, tasks).call
        tasks.cancel_scope.cancel()


class _Read:
    """A read that was begun, and what came of it."""

    def __init__(self, site: int) -> None:
        self.site = site
        self.ended = anyio.Event()
        self.scope = anyio.CancelScope()
        self.value: Json = None
        self.error: Exception | None = None

    async def make(self, on_call: OnCall, call: GuestCall) -> None:
        with self.scope:
            try:
                self.value = await on_call(call)
            except Exception as error:  # noqa: BLE001  # it is raised where the program calls
                self.error = error
            self.ended.set()

    async def outcome(self) -> Json:
        await self.ended.wait()
        if self.error is not None:
            raise self.error
        return self.value


class _ReadAhead:
    """The reads of one run."""

    def __init__(
        self,
        on_call: OnCall,
        find: Callable[[str], Tool],
        may_read: Callable[[Tool], bool],
        most: int,
        tasks: TaskGroup,
    ) -> None:
        self._on_call, self._find, self._may_read = on_call, find, may_read
        self._tasks = tasks
        self._coming: dict[int, Iterator[GuestCall]] = {}
        """By the loop that says so, the innermost last."""
        self._begun: dict[str, list[_Read]] = {}
        self._room = most

    async def call(self, call: GuestCall) -> Json:
        """Answer a call of guest code, from what was begun if it was."""
        if call.function == AHEAD:
            self._take(call)
            return None
        if call.function in _NEUTRAL:
            return await self._on_call(call)
        tool = self._tool(call.function)
        if tool is None or not tool.listed.read_only:
            self._give_up()
            return await self._on_call(call)
        read = self._turn_of(_key(tool, call))
        if read is None:
            return await self._on_call(call)
        self._begin()
        return await read.outcome()

    def _turn_of(self, key: str) -> _Read | None:
        """Return the read that was begun for a call, the oldest first."""
        begun = self._begun.get(key)
        if begun is None:
            return None
        read = begun.pop(0)
        if not begun:
            del self._begun[key]
        self._room += 1
        return read

    def _take(self, call: GuestCall) -> None:
        """Take what a loop says, unless some of it may not be read without being asked."""
        match call.args:
            case (int(site), list(turns)):
                self._leave(site)
            case _:
                return
        told = [each for turn in turns if isinstance(turn, list) for each in turn]
        coming = [each for each in map(_foretold, told) if each]
        if all(map(self._is_open, {each.function for each in coming})):
            self._coming[site] = iter(coming)
            self._begin()

    def _is_open(self, name: str) -> bool:
        tool = self._tool(name)
        return tool is not None and bool(tool.listed.read_only) and self._may_read(tool)

    def _begin(self) -> None:
        """Begin as many reads as there is room for, those of the innermost loop first."""
        while self._coming and self._room > 0:
            site = next(reversed(self._coming))
            call = next(self._coming[site], None)
            if call is None:
                del self._coming[site]
                continue
            read = _Read(site)
            self._begun.setdefault(_key(self._find(call.function), call), []).append(read)
            self._room -= 1
            self._tasks.start_soon(read.make, self._on_call, call)

    def _leave(self, site: int) -> None:
        """Forget what is left of a loop that was left before its end."""
        self._coming.pop(site, None)
        self._drop(lambda read: read.site == site)

    def _give_up(self) -> None:
        """Forget everything: something changes, so what was read may be so no more."""
        self._coming.clear()
        self._drop(lambda _read: True)

    def _drop(self, is_dropped: Callable[[_Read], bool]) -> None:
        for key, reads in list(self._begun.items()):
            for read in filter(is_dropped, list(reads)):
                read.scope.cancel()
                reads.remove(read)
                self._room += 1
            if not reads:
                del self._begun[key]

    def _tool(self, name: str) -> Tool | None:
        try:
            return self._find(name)
        except ToolfoldError:
            return None


def _key(tool: Tool, call: GuestCall) -> str:
    return json.dumps([tool.path, call.args, call.kwargs], sort_keys=True)


def _foretold(told: Json) -> GuestCall | None:
    match told:
        case [str(name), list() as given, dict() as named]:
            return GuestCall(name, tuple(given), named)
        case _:
            return None
