"""`toolfold serve`: the daemon in the foreground, with MCP over HTTP beside its socket."""

import signal
import sys
import time
from argparse import Namespace
from typing import Final

import anyio
import anyio.to_thread

from toolfold.app import running_app, running_shared
from toolfold.config.config import Config
from toolfold.entrypoints.commands.daemon import (
    ask_daemon,
    find_daemon,
    take_place,
    use_data_directory,
)
from toolfold.entrypoints.commands.local import quieten_logs
from toolfold.entrypoints.commands.options import config_of
from toolfold.entrypoints.daemon.daemon import Daemon
from toolfold.entrypoints.http.app import serve_http
from toolfold.errors import ConfigError, ToolfoldError
from toolfold.relay.daemon import DaemonHandle

_TAKE_OVER_S: Final = 30.0


def serve(arguments: Namespace) -> int:
    """Serve clients on the local socket and over HTTP until a signal comes."""
    if arguments.data_dir is not None:
        use_data_directory(arguments.data_dir)
    flags = {"host": arguments.host, "port": arguments.port}
    arguments.set += [f"{name}={value}" for name, value in flags.items() if value is not None]
    config = config_of(arguments)
    quieten_logs()
    reach = find_daemon()
    return anyio.run(_serve, config, reach)


async def _serve(config: Config, reach: DaemonHandle) -> int:
    status = 0

    async def end_on_signal() -> None:
        nonlocal status
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for received in signals:
                status = 128 + received
                tasks.cancel_scope.cancel()

    async with running_shared(config) as shared, anyio.create_task_group() as tasks:
        tasks.start_soon(end_on_signal)
        lock = await anyio.to_thread.run_sync(_take_over, reach)
        if lock is not None:
            daemon = Daemon(config, shared, reach, lock, on_stop=tasks.cancel_scope.cancel)
            tasks.start_soon(daemon.serve)
        async with running_app(config, shared) as app:
            settings = config.settings
            try:
                await serve_http(app, host=settings.host, port=settings.port, started=_announce)
            except ToolfoldError as error:  # here, before task groups wrap it
                print(f"toolfold: {error}", file=sys.stderr)
                status = 2
        tasks.cancel_scope.cancel()
    return status


def _take_over(reach: DaemonHandle) -> int | None:
    """Take the place of a daemon in the background; None if another `serve` holds it."""
    deadline = time.monotonic() + _TAKE_OVER_S
    while (lock := take_place(reach)) is None:
        answer = ask_daemon(reach, "status")
        if answer is not None and answer["foreground"]:
            print(
                "toolfold: another instance serves stdio clients; this one serves HTTP only",
                file=sys.stderr,
            )
            return None
        if answer is not None:
            ask_daemon(reach, "stop")
        if time.monotonic() > deadline:
            raise ConfigError("The daemon does not make room. See `toolfold status`.")
        time.sleep(0.05)
    return lock


def _announce(url: str) -> None:
    print(f"toolfold: serving MCP at {url}", flush=True)
