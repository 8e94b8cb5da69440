"""`toolfold serve`: the daemon in the foreground, with MCP over HTTP beside its socket."""

import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import Final

import anyio
import anyio.to_thread

from toolfold.app import SharedResources, running_shared
from toolfold.config.config import Config, current_directory, deciding_files
from toolfold.entrypoints.commands.daemon import (
    ask_daemon,
    find_daemon,
    take_place,
    use_data_directory,
)
from toolfold.entrypoints.commands.local import quieten_logs
from toolfold.entrypoints.commands.options import config_of
from toolfold.entrypoints.commands.state_checks import examine_app
from toolfold.entrypoints.daemon.app_pool import AppPool
from toolfold.entrypoints.daemon.daemon import Daemon
from toolfold.entrypoints.daemon.reload import ConfigWatch, FileWatch, Following, GoodFiles
from toolfold.entrypoints.http.app import needs_key, serve_http
from toolfold.entrypoints.http.stack import find_address
from toolfold.entrypoints.http.tenants import HTTP_CLIENT
from toolfold.entrypoints.logs import use_format
from toolfold.errors import ConfigError, ToolfoldError
from toolfold.relay.daemon import DaemonHandle

_TAKE_OVER_S: Final = 30.0


def serve(arguments: Namespace) -> int:
    """Serve clients on the local socket and over HTTP until a signal comes."""
    if arguments.data_dir is not None:
        use_data_directory(arguments.data_dir)
    flags = {"host": arguments.host, "port": arguments.port}
    arguments.set += [f"{name}={value}" for name, value in flags.items() if value is not None]
    quieten_logs()
    reach = find_daemon()
    files = GoodFiles()
    load = partial(config_of, arguments, read=files.read)
    return anyio.run(_serve, load(), reach, partial(_following, files, load, arguments.config))


async def _serve(
    config: Config, reach: DaemonHandle, follow: Callable[[Config, SharedResources], Following]
) -> int:
    status, ending = 0, anyio.Event()

    async def end_on_signal() -> None:
        """Finish when told to end, and end at once when interrupted or told again."""
        nonlocal status
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for received in signals:
                status = 128 + received
                if received == signal.SIGINT or ending.is_set():
                    tasks.cancel_scope.cancel()
                ending.set()

    async with running_shared(config) as shared, anyio.create_task_group() as tasks:
        use_format(config.settings, shared.journal)
        tasks.start_soon(end_on_signal)
        lock = await anyio.to_thread.run_sync(_take_over, reach)
        if lock is not None:
            daemon = Daemon(config, shared, reach, lock, on_stop=tasks.cancel_scope.cancel)
            tasks.start_soon(daemon.serve)
        apps = AppPool(shared, linger_s=config.settings.linger_s)
        async with apps.running(), apps.follow(config) as app:
            following = follow(config, shared)
            tasks.start_soon(following.watch.serve)
            tasks.start_soon(following.switch, app, lambda: None)
            host, port = config.settings.host, config.settings.port
            try:
                address = await find_address(host, port)
                started = partial(_announce, is_open=not needs_key(address, config))
                await serve_http(
                    app, host=host, port=port, started=started, ending=ending, examine=examine_app
                )
            except ToolfoldError as error:  # here, before task groups wrap it
                print(f"toolfold: {error}", file=sys.stderr)
                status = 2
        tasks.cancel_scope.cancel()
    return status


def _following(
    files: GoodFiles,
    load: Callable[[], Config],
    config_file: str | None,
    config: Config,
    shared: SharedResources,
) -> Following:
    """Return how what is served over HTTP goes with its files."""
    deciding = deciding_files(config, current_directory(), config_file)

    def tell() -> None:
        news = files.news(HTTP_CLIENT, deciding)
        shared.background_runs.owe(HTTP_CLIENT, news)
        for each in news:
            print(f"toolfold: {each}", file=sys.stderr)

    watch = ConfigWatch(FileWatch(), deciding, load, tell)
    return Following(watch=watch, config=config)


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


def _announce(url: str, *, is_open: bool) -> None:
    keys = (
        "not needed from this machine (require_keys = false)"
        if is_open
        else "needed; `toolfold keys create NAME` makes one"
    )
    print(f"toolfold: serving MCP at {url}")
    print(f"REST: /openapi.json, /docs. Dashboard: /ui/. Keys: {keys}.")
    print(f"Try: curl -s {url.removesuffix('/mcp')}/health. Ctrl-C ends it.", flush=True)
