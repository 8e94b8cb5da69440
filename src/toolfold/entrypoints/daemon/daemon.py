"""The daemon: one warm process for all clients of a user.

A client is greeted in two steps. It says where it is and with which options; it is told which
variables its configuration names; it gives those and nothing else. From then on it speaks MCP.
"""

import hmac
import logging
import math
import os
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
from anyio.abc import ByteStream, Listener, SocketAttribute, TaskGroup

from toolfold import __version__
from toolfold.app import App, Shared, running_shared
from toolfold.catalog.orphans import end_orphans
from toolfold.config.files import replace_file
from toolfold.config.settings import Config
from toolfold.entrypoints.daemon.client_place import ClientPlace
from toolfold.entrypoints.daemon.losses import describe_losses
from toolfold.entrypoints.daemon.worlds import Worlds
from toolfold.entrypoints.mcp.lines import InFlight, LineStream, serve_lines
from toolfold.entrypoints.mcp.rehearsal import keep_manifest
from toolfold.entrypoints.mcp.server import make_server
from toolfold.errors import ToolfoldError
from toolfold.relay.daemon import Daemon as Reach
from toolfold.relay.wire import WIRE, decode, encode

_log = logging.getLogger(__name__)

_GREETING_S: Final = 30.0
_LONGEST_DRAIN_S: Final = 330.0  # the longest run takes 300


@dataclass(slots=True, eq=False)
class _Client:
    id: str
    pid: int
    project: str
    since: float = field(default_factory=time.time)
    in_flight: InFlight = field(default_factory=InFlight)


class Daemon:
    """Serves clients on a local socket until it is idle for long, or told to end."""

    def __init__(
        self,
        config: Config,
        shared: Shared,
        reach: Reach,
        lock: int,
        *,
        on_stop: Callable[[], None] | None = None,
    ) -> None:
        """In the foreground it does not end by itself, and `on_stop` ends what is beside it."""
        settings = config.settings
        self._shared = shared
        self._reach = reach
        self._lock: int | None = lock
        self._on_stop = on_stop
        self._idle_s = settings.daemon_idle_s if on_stop is None else math.inf
        self._worlds = Worlds(shared, linger_s=settings.linger_s)
        self._clients: set[_Client] = set()
        self._started = time.time()
        self._token = "" if not reach.uses_port else secrets.token_urlsafe(24)
        self._changed = anyio.Event()
        self._draining = anyio.Event()
        self._background: TaskGroup | None = None

    async def serve(self) -> None:
        """Serve until idle, drained or cancelled. The socket and the lock go first."""
        async with self._worlds.running(), anyio.create_task_group() as tasks:
            self._background = tasks
            try:
                async with await self._listen() as listener:
                    tasks.start_soon(self._end_when_idle)
                    async with anyio.create_task_group() as door:
                        door.start_soon(partial(listener.serve, self._receive, tasks))
                        await self._draining.wait()
                        door.cancel_scope.cancel()
            finally:
                self._vanish()
            with anyio.move_on_after(_LONGEST_DRAIN_S):
                await self._until_empty()
            tasks.cancel_scope.cancel()

    def drain(self) -> None:
        """Take no new clients, let those that wait for an answer have it, then end."""
        self._draining.set()

    def stop(self, *, now: bool) -> None:
        """End because a person asked for it."""
        if self._on_stop is not None:
            self._on_stop()
        elif now:
            self.end()
        else:
            self.drain()

    def end(self) -> None:
        """End now."""
        self._draining.set()
        if self._background is not None:
            self._background.cancel_scope.cancel()

    async def _until_empty(self) -> None:
        while self._clients:
            await self._changed.wait()

    async def _end_when_idle(self) -> None:
        while True:
            if self._clients:
                await self._changed.wait()
                continue
            with anyio.move_on_after(self._idle_s) as waited:
                await self._changed.wait()
            if waited.cancelled_caught and not self._clients:
                _log.info("No client for %g s: ending.", self._idle_s)
                self.drain()
                return

    # How it is reached

    async def _listen(self) -> Listener[ByteStream]:
        places = self._reach.places
        if not self._reach.uses_port:
            # One that was killed leaves its socket; we hold the lock.
            await anyio.Path(places.socket).unlink(missing_ok=True)
            return await anyio.create_unix_listener(places.socket, mode=0o600)
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
        port = listener.extra(SocketAttribute.local_port)  # noqa: S610  # not Django's
        replace_file(Path(places.port_file), f"{port} {self._token}".encode())
        return listener

    def _vanish(self) -> None:
        """Let another daemon begin: nobody finds this one any more."""
        places = self._reach.places
        path = places.port_file if self._reach.uses_port else places.socket
        if self._lock is not None:
            Path(path).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None

    # One connection

    async def _receive(self, stream: ByteStream) -> None:
        async with stream:
            lines = LineStream(stream)
            try:
                with anyio.fail_after(_GREETING_S):
                    hello = decode(await lines.receive()) or {}
                if not hmac.compare_digest(str(hello.get("token", "")), self._token):
                    return
                await self._welcome(hello, lines)
            except (anyio.EndOfStream, TimeoutError):
                return
            except ToolfoldError as error:
                await lines.send(encode({"error": str(error)}))
            except Exception:  # noqa: BLE001  # the outer edge
                _log.exception("A connection ended with an error.")

    async def _welcome(self, hello: dict[str, Any], lines: LineStream) -> None:
        match hello.get("kind"):
            case "mcp":
                await self._greet(hello, lines)
            case "status":
                await lines.send(encode(self.status()))
            case "stop":
                await lines.send(encode({**self.status(), "in_flight": self._in_flight}))
                self.stop(now=bool(hello.get("now")))
            case _:
                await lines.send(encode({"error": "This daemon does not know that request."}))

    async def _greet(self, hello: dict[str, Any], lines: LineStream) -> None:
        place = ClientPlace.read(hello)
        needs = await anyio.to_thread.run_sync(place.variables)
        greeting = {"wire": WIRE, "version": __version__, "pid": os.getpid(), "needs": needs}
        await lines.send(encode(greeting))
        with anyio.fail_after(_GREETING_S):
            reply = decode(await lines.receive()) or {}
        if reply.get("drain"):
            _log.info("A newer toolfold takes over.")
            self.drain()
            return
        config = await anyio.to_thread.run_sync(place.config, reply.get("environ", {}))
        async with self._worlds.enter(config) as app:
            await self._serve(app, hello, reply.get("lost", []), lines)

    async def _serve(
        self, app: App, hello: dict[str, Any], lost: list[str], lines: LineStream
    ) -> None:
        project = str(app.config.project or app.config.start_directory)
        client = _Client(id=str(hello["client"]), pid=hello.get("pid", 0), project=project)
        assert self._background is not None  # noqa: S101
        self._background.start_soon(keep_manifest, app, hello)
        losses = describe_losses(self._shared.journal, client.id, lost) if lost else {}
        await lines.send(encode({"ready": True, "lost": losses}))
        async with self._counted(client):
            await serve_lines(make_server(app, client=client.id), lines, client.in_flight)

    @asynccontextmanager
    async def _counted(self, client: _Client) -> AsyncIterator[None]:
        """Count a client; when we drain, it is let go as soon as it waits for nothing."""

        async def let_go() -> None:
            await self._draining.wait()
            await client.in_flight.none()
            tasks.cancel_scope.cancel()

        self._clients.add(client)
        self._note_change()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(let_go)
                yield
                tasks.cancel_scope.cancel()
        finally:
            self._clients.discard(client)
            self._note_change()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    # What it says of itself

    @property
    def _in_flight(self) -> int:
        return sum(len(client.in_flight) for client in self._clients)

    def status(self) -> dict[str, Any]:
        """Say what is going on."""
        return {
            "pid": os.getpid(),
            "version": __version__,
            "started": self._started,
            "idle_s": self._idle_s if math.isfinite(self._idle_s) else None,
            "foreground": self._on_stop is not None,
            "clients": [
                {
                    "id": client.id,
                    "pid": client.pid,
                    "project": client.project,
                    "since": client.since,
                    "in_flight": len(client.in_flight),
                }
                for client in sorted(self._clients, key=lambda client: client.since)
            ],
            "servers": [
                {"name": upstream.name, "state": upstream.state, "fault": upstream.fault}
                for upstream in sorted(self._shared.upstreams.upstreams, key=lambda u: u.name)
            ],
        }


def run_daemon(config: Config, reach: Reach, lock: int) -> None:
    """Be the daemon until it ends."""
    os.set_inheritable(lock, False)  # servers that outlive us must not seem to be us
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    for noisy in ("mcp", "httpx", "httpx2", "httpcore"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    anyio.run(_main, config, reach, lock)


async def _main(config: Config, reach: Reach, lock: int) -> None:
    _log.info("toolfold %s begins, process %d.", __version__, os.getpid())
    async with running_shared(config) as shared, anyio.create_task_group() as tasks:
        daemon = Daemon(config, shared, reach, lock)
        tasks.start_soon(_end_on_signal, daemon)
        tasks.start_soon(end_orphans)
        await daemon.serve()
        tasks.cancel_scope.cancel()
    _log.info("toolfold ends, process %d.", os.getpid())


async def _end_on_signal(daemon: Daemon) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            daemon.end()
