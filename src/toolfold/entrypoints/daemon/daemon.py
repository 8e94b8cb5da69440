"""The daemon: one warm process for all clients of a user."""

import logging
import math
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
from anyio.abc import Listener, SocketAttribute, SocketStream, TaskGroup

from toolfold import __version__
from toolfold.app import SharedResources, running_shared
from toolfold.catalog.orphans import Children, end_orphans
from toolfold.config.config import Config
from toolfold.entrypoints.daemon.app_pool import AppPool
from toolfold.entrypoints.daemon.clients import ConnectedClients
from toolfold.entrypoints.daemon.connections import ConnectionServer
from toolfold.entrypoints.daemon.reload import GoodFiles
from toolfold.entrypoints.logs import use_format
from toolfold.relay.daemon import DaemonHandle
from toolfold.storage.files import replace_file

_log = logging.getLogger(__name__)

_MAX_DRAIN_S: Final = 330.0  # the longest run takes 300
_MAX_CONNECTIONS: Final = 1_000
_MAX_FILES: Final = 8_192
_BREATH_S: Final = 0.1


class Daemon:
    """Serves clients on a local socket until it is idle for long, or told to end."""

    def __init__(
        self,
        config: Config,
        shared: SharedResources,
        handle: DaemonHandle,
        lock: int,
        *,
        on_stop: Callable[[], None] | None = None,
    ) -> None:
        """In the foreground it does not end by itself, and `on_stop` ends what is beside it."""
        settings = config.settings
        self._shared = shared
        self._handle = handle
        self._lock: int | None = lock
        self._on_stop = on_stop
        self._idle_s = settings.daemon_idle_s if on_stop is None else math.inf
        self._apps = AppPool(shared, linger_s=settings.linger_s)
        self._clients = ConnectedClients()
        self._token = secrets.token_urlsafe(24) if handle.uses_port else ""
        self._started = time.time()
        self._tasks: TaskGroup | None = None
        self._files: GoodFiles | None = None

    async def serve(self) -> None:
        """Serve until idle, drained or cancelled. The socket and the lock go first."""
        async with self._apps.running(), anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                async with await self._listen() as listener, anyio.create_task_group() as door:
                    door.start_soon(self._accept, listener, tasks)
                    door.start_soon(self._drain_when_idle)
                    await self._clients.is_draining.wait()
                    door.cancel_scope.cancel()
            finally:
                self._vanish()
            with anyio.move_on_after(_MAX_DRAIN_S):
                await self._clients.all_gone()
            tasks.cancel_scope.cancel()

    def drain(self) -> None:
        """Take no new clients, let those that wait for an answer have it, then end."""
        self._clients.is_draining.set()

    def end(self) -> None:
        """End now."""
        self.drain()
        if self._tasks is not None:
            self._tasks.cancel_scope.cancel()

    def stop(self, *, now: bool) -> None:
        """End because a person asked for it."""
        if self._on_stop is not None:
            self._on_stop()
        elif now:
            self.end()
        else:
            self.drain()

    def status(self) -> dict[str, Any]:
        """Say what is going on."""
        upstreams = sorted(self._shared.upstreams.upstreams, key=lambda each: each.name)
        return {
            "pid": os.getpid(),
            "version": __version__,
            "started": self._started,
            "idle_s": self._idle_s if math.isfinite(self._idle_s) else None,
            "foreground": self._on_stop is not None,
            "in_flight": self._clients.in_flight,
            "unusable": [str(edit) for edit in self._files.unusable()] if self._files else [],
            "clients": self._clients.status(),
            "servers": [
                {"name": each.name, "state": each.state, "fault": each.fault} for each in upstreams
            ],
        }

    async def _drain_when_idle(self) -> None:
        if math.isfinite(self._idle_s):
            await self._clients.none_for(self._idle_s)
            _log.info("No client for %g s: ending.", self._idle_s)
            self.drain()

    async def _listen(self) -> Listener[SocketStream]:
        places = self._handle.places
        if not self._handle.uses_port:
            # One that was killed leaves its socket; we hold the lock.
            await anyio.Path(places.socket).unlink(missing_ok=True)
            return await anyio.create_unix_listener(places.socket, mode=0o600)
        both = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
        [listener] = both.listeners
        port = listener.extra(SocketAttribute.local_port)  # noqa: S610  # not Django's
        replace_file(Path(places.port_file), f"{port} {self._token}".encode())
        return listener

    async def _accept(self, listener: Any, tasks: TaskGroup) -> None:
        server = ConnectionServer(self, self._shared, self._apps, self._clients, tasks)
        self._files = server.files
        tasks.start_soon(server.watch.serve)
        prove = partial(self._handle.proof, self._token)
        while True:
            try:
                stream = await listener.accept()
            except (OSError, anyio.BrokenResourceError) as error:
                # Too many open files: some will be closed, and nobody should lose a run over it.
                _log.warning("A connection could not be taken: %r", error.__cause__ or error)
                await anyio.sleep(_BREATH_S)
                continue
            if self._clients.connections < _MAX_CONNECTIONS:
                tasks.start_soon(server.receive, stream, prove)
            else:
                await stream.aclose()

    def _vanish(self) -> None:
        """Let another daemon begin: nobody finds this one any more."""
        places = self._handle.places
        path = places.port_file if self._handle.uses_port else places.socket
        if self._lock is not None:
            Path(path).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None


def run_daemon(config: Config, handle: DaemonHandle, lock: int) -> None:
    """Be the daemon until it ends."""
    os.set_inheritable(lock, False)  # servers that outlive us must not seem to be us
    _allow_many_files()
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    for noisy in ("mcp", "httpx", "httpx2", "httpcore"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    anyio.run(_main, config, handle, lock)


async def _main(config: Config, handle: DaemonHandle, lock: int) -> None:
    _log.info("toolfold %s started, process %d.", __version__, os.getpid())
    async with running_shared(config) as shared, anyio.create_task_group() as tasks:
        use_format(config.settings, shared.journal)
        daemon = Daemon(config, shared, handle, lock)
        tasks.start_soon(_end_on_signal, daemon)
        tasks.start_soon(end_orphans, Children.directory(config.directories.state))
        await daemon.serve()
        tasks.cancel_scope.cancel()
    _log.info("toolfold stopped, process %d.", os.getpid())


async def _end_on_signal(daemon: Daemon) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            daemon.end()


def _allow_many_files() -> None:
    """Every client and every server takes some, and shells allow few by default."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
