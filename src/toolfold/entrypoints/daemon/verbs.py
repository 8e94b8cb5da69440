"""Answer scripts, commands and hooks that ask memory directly: a verb a line."""

import logging
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import anyio

from toolfold.config.config import Config
from toolfold.entrypoints.mcp.lines import InFlight, LineStream
from toolfold.errors import BadInput, NotFound, ToolfoldError
from toolfold.execution.verb_door import VerbDoors
from toolfold.journal.runs import Origin
from toolfold.memory.models import as_json
from toolfold.memory.store import in_background
from toolfold.memory.verbs import VERBS
from toolfold.relay.wire import MAX_LINE, decode, encode, key_of

_log = logging.getLogger(__name__)

_REPORT_S: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbServer:
    """Serves one peer, in the namespace where it is unless a request names another."""

    doors: VerbDoors
    config: Config
    client: str
    lines: LineStream
    in_flight: InFlight

    async def serve(self) -> None:
        """Serve until the peer is gone; what it waited for is cancelled then."""
        async with anyio.create_task_group() as tasks:
            while True:
                try:
                    line = await self.lines.receive()
                except anyio.EndOfStream:
                    tasks.cancel_scope.cancel()
                    return
                tasks.start_soon(self._answer, decode(line) or {})

    async def _answer(self, request: dict[str, Any]) -> None:
        request_id = request.get("id")
        with self.in_flight.counting(key_of(request_id)):
            try:
                await self._send(request_id, {"value": await self._value(request)})
            except ToolfoldError as error:
                reason = {"code": error.code, "message": str(error)}
                await self._send(request_id, {"error": reason})
            except Exception:  # noqa: BLE001  # the outer edge
                _log.exception("A request for memory ended with an error.")
                reason = {"code": "store", "message": "Memory failed; see `toolfold logs`."}
                await self._send(request_id, {"error": reason})

    async def _value(self, request: dict[str, Any]) -> Any:
        """Answer a request; of one that is answered in pages, what is said after the last."""
        if not request:
            raise BadInput("This cannot be read: it is nested too deep, or a number is too long.")
        namespace = request.get("namespace") or self.config.notes_namespace
        verb, arguments = request.get("verb", 0), request.get("arguments", {})
        kinds = ((namespace, str), (verb, str), (arguments, dict))
        if not all(isinstance(value, kind) for value, kind in kinds):
            raise BadInput("A request is {id, verb, arguments, namespace}.")
        if verb not in VERBS:
            raise NotFound(f"Memory has no verb {verb!r}.")
        cross = partial(self._cross, namespace, verb, arguments)
        if request.get("pages"):
            return await cross(on_page=partial(self._send_page, request.get("id")))
        if not request.get("progress"):
            return await cross()
        latest: list[Any] = []

        def note(done: int, total: int, what: str = "") -> None:
            latest[:] = [done, total, what]

        async with in_background(partial(self._report, request.get("id"), latest)):
            return await cross(progress=note)

    async def _cross(
        self, namespace: str, verb: str, arguments: dict[str, Any], **options: Any
    ) -> Any:
        """Have a verb done in a namespace, as the rules say."""
        project = str(self.config.project or self.config.start_directory)
        origin = Origin(client=self.client, project=project)
        door = self.doors.enter(self.config, origin, "script", namespace=namespace)
        return await door.call(verb, arguments, form=as_json, **options)

    async def _send_page(self, request_id: object, page: Any) -> None:
        await self._send(request_id, {"page": as_json(page)})

    async def _report(self, request_id: object, latest: list[Any]) -> None:
        """Tell the peer now and then how far its request is."""
        said: list[Any] = []
        while True:
            await anyio.sleep(_REPORT_S)
            if latest != said:
                said = list(latest)
                await self._send(request_id, {"progress": said})

    async def _send(self, request_id: object, answer: dict[str, Any]) -> None:
        line = encode({"id": request_id, **answer})
        if len(line) > MAX_LINE:
            raise BadInput(
                f"The answer has {len(line):,} bytes, and {MAX_LINE:,} is the limit. Ask for "
                "less at once."
            )
        await self.lines.send(line)
