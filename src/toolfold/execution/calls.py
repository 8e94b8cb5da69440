"""The calls of one run: answered, counted, written down."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from toolfold.catalog.binding import bind
from toolfold.catalog.catalog import Catalog
from toolfold.catalog.questions import Ask
from toolfold.catalog.results import Blob
from toolfold.catalog.tool import Tool
from toolfold.errors import BadCall, ToolfoldError
from toolfold.execution.discovery_module import READ, DiscoveryModule, read_arguments
from toolfold.execution.journal import JournaledCall, JournaledRun
from toolfold.execution.keeping import Keeping
from toolfold.execution.report import Tally
from toolfold.jsontypes import Json, plain
from toolfold.sandbox.sandbox import GuestCall
from toolfold.sandbox.trees import Roots

OnProgress = Callable[[int, str], None]
"""Told of each call as it begins: how many there were, and which it is."""

SHOW: Final = "show"
"""The function that shows an image to the model; it needs no import."""


class Calls:
    """Answers the calls of one run, and keeps account of them."""

    def __init__(
        self,
        catalog: Catalog,
        discovery: DiscoveryModule,
        journaled: JournaledRun,
        on_progress: OnProgress,
        keeping: Keeping,
    ) -> None:
        self.tally = Tally()
        self.shown: list[Blob] = []
        self.ask: Ask | None = None
        self.files: Roots | None = None
        self._catalog = catalog
        self._discovery = discovery
        self._journaled = journaled
        self._on_progress = on_progress
        self._keeping = keeping
        self._waited_s: dict[str, float] = {}

    async def call(self, call: GuestCall) -> Json:
        """Answer one call of guest code."""
        if call.function == SHOW:
            return await self._show(call)
        if call.function == READ:
            return await self._counted(READ, call, self._read)
        if call.function.startswith("tools."):
            return await self._discovery.call(call)
        tool = self._catalog.find(call.function)
        return await self._counted(tool.path, call, partial(self._call_tool, tool))

    async def _counted(
        self,
        path: str,
        call: GuestCall,
        answer: Callable[[GuestCall, JournaledCall], Awaitable[Json]],
    ) -> Json:
        """Answer what goes to a server; the client, the reply and the journal hear of it."""
        count = self.tally.begin(path)
        self._on_progress(self.tally.total, f"{path} {count}")
        try:
            with self._journaled.call(path, call.kwargs) as journaled:
                value = await answer(call, journaled)
                journaled.answer = plain(value) if isinstance(value, tuple) else value
        except ToolfoldError:
            self.tally.fail(path)
            raise
        self.tally.complete(path)
        return value

    async def _call_tool(self, tool: Tool, call: GuestCall, journaled: JournaledCall) -> Json:
        journaled.arguments = bind(tool, call.args, call.kwargs)
        answer = await self._catalog.call(
            tool, journaled.arguments, keep=self._keeping, on_wait=self._note_wait, ask=self.ask
        )
        await self._keeping.save_blobs()
        return answer.value

    async def _read(self, call: GuestCall, journaled: JournaledCall) -> Json:
        journaled.arguments = read_arguments(call)
        keep = self._keeping.blob
        value = await self._discovery.read(journaled.arguments, keep=keep, ask=self.ask)
        await self._keeping.save_blobs()
        return value

    async def _show(self, call: GuestCall) -> Json:
        if len(call.args) != 1:
            raise BadCall("show() takes one image.")
        self.shown.append(await self._keeping.image(call.args[0]))
        return None

    def _note_wait(self, why: str, seconds: float) -> None:
        self._waited_s[why] = self._waited_s.get(why, 0.0) + seconds

    @property
    def is_unused(self) -> bool:
        """Whether nothing was called, shown or written, so that the code may run once more."""
        has_written = self.files is not None and self.files.has_changed
        return not self.tally.total and not self.shown and not has_written

    @property
    def waits(self) -> tuple[str, ...]:
        """Why the run waited before calls, and how long in all."""
        return tuple(f"{why}: waited {total:.1f} s" for why, total in self._waited_s.items())
