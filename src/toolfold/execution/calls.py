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
from toolfold.execution.report import Tally
from toolfold.execution.skills_module import SAVE, with_source
from toolfold.jsontypes import Json, plain
from toolfold.sandbox.sandbox import GuestCall

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
        definition_of: Callable[[str], str | None],
    ) -> None:
        self.tally = Tally()
        self.shown: list[Blob] = []
        self.ask: Ask | None = None
        self._catalog = catalog
        self._discovery = discovery
        self._journaled = journaled
        self._on_progress = on_progress
        self._definition_of = definition_of
        self._blobs: dict[str, Blob] = {}
        self._waited_s: dict[str, float] = {}

    async def call(self, call: GuestCall) -> Json:
        """Answer one call of guest code."""
        if call.function == SHOW:
            return self._show(call)
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
        if tool.path == SAVE:
            journaled.arguments = with_source(journaled.arguments, self._definition_of)
        answer = await self._catalog.call(
            tool, journaled.arguments, keep=self._keep, on_wait=self._note_wait, ask=self.ask
        )
        return answer.value

    async def _read(self, call: GuestCall, journaled: JournaledCall) -> Json:
        journaled.arguments = read_arguments(call)
        return await self._discovery.read(journaled.arguments, keep=self._keep, ask=self.ask)

    def _keep(self, blob: Blob) -> Json:
        """Keep an image or a binary here; guest code gets a reference to it."""
        kind = blob.mime_type.partition("/")[0]
        name = f"{kind}_{len(self._blobs) + 1}"
        self._blobs[name] = blob
        return {"blob": name, "mime_type": blob.mime_type, "bytes": blob.size_bytes}

    def _show(self, call: GuestCall) -> Json:
        reference = call.args[0] if len(call.args) == 1 else None
        name = reference.get("blob") if isinstance(reference, dict) else reference
        blob = self._blobs.get(name) if isinstance(name, str) else None
        if blob is None or not blob.mime_type.startswith("image/"):
            raise BadCall("show() takes an image that a tool returned in this run.")
        self.shown.append(blob)
        return None

    def _note_wait(self, why: str, seconds: float) -> None:
        self._waited_s[why] = self._waited_s.get(why, 0.0) + seconds

    @property
    def is_unused(self) -> bool:
        """Whether nothing was called and nothing shown, so that the code may run once more."""
        return not self.tally.total and not self.shown

    @property
    def waits(self) -> tuple[str, ...]:
        """Why the run waited before calls, and how long in all."""
        return tuple(f"{why}: waited {total:.1f} s" for why, total in self._waited_s.items())
