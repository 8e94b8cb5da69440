"""Answer hooks that ask the daemon: one question, one answer."""

import logging
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

from toolfold.config.config import Config
from toolfold.entrypoints.daemon.app_pool import AppPool
from toolfold.entrypoints.hooks.program_review import ProgramReview
from toolfold.entrypoints.hooks.service import HookAnswer, Hooks
from toolfold.entrypoints.mcp.lines import InFlight, LineStream
from toolfold.errors import ToolfoldError
from toolfold.relay.wire import decode, encode, key_of

_log = logging.getLogger(__name__)


async def review_program(apps: AppPool, config: Config, payload: dict[str, str]) -> HookAnswer:
    """Say whether the user shall be asked about a program that is about to run."""
    async with apps.enter(config) as app:
        return await ProgramReview(app).answer(payload)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookServer:
    """Serves one hook in the place where it is."""

    hooks: Hooks
    config: Config
    lines: LineStream
    in_flight: InFlight

    async def serve(self) -> None:
        """Serve until the hook is gone; what it no longer waits for is cancelled."""
        async with anyio.create_task_group() as tasks:
            await self._receive(tasks)

    async def _receive(self, tasks: TaskGroup) -> None:
        while True:
            try:
                line = await self.lines.receive()
            except anyio.EndOfStream:
                tasks.cancel_scope.cancel()
                return
            tasks.start_soon(partial(self._answer, decode(line) or {}))

    async def _answer(self, request: dict[str, Any]) -> None:
        request_id = request.get("id")
        with self.in_flight.counting(key_of(request_id)):
            try:
                answer: dict[str, Any] = {"value": await self.hooks.answer(self.config, request)}
            except ToolfoldError as error:
                answer = {"error": {"code": error.code, "message": str(error)}}
            except Exception:  # noqa: BLE001  # the outer edge
                _log.exception("A hook ended with an error.")
                answer = {"error": {"code": "hook", "message": "It failed; see `toolfold logs`."}}
            await self.lines.send(encode({"id": request_id, **answer}))
