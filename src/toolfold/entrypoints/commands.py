"""What each command does. Each takes the parsed arguments and returns the exit status."""

import dataclasses
import json
import logging
import signal
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from toolfold.app import App, running_app
from toolfold.catalog.stubs import brief
from toolfold.config.settings import Config, load_config
from toolfold.entrypoints import doctor as examination
from toolfold.entrypoints.mcp_server import serve_stdio
from toolfold.entrypoints.trusting import trust_project
from toolfold.errors import ConfigError, ToolfoldError
from toolfold.execution.report import RunResult


def run(arguments: Namespace) -> int:
    """Run code from a file, the command line or standard input."""
    code = _code(arguments)

    async def action(app: App) -> int:
        result = await app.runtime.run(code)
        if arguments.json:
            print(json.dumps(_as_json(result), ensure_ascii=False, indent=2))
        else:
            print(result.text, file=sys.stdout if result.success else sys.stderr)
        return 0 if result.success else 1

    return _with_app(arguments, action)


def tools_list(arguments: Namespace) -> int:
    """Print every tool, and name the servers that cannot be used."""

    async def action(app: App) -> int:
        await app.catalog.learn()
        for tool in app.catalog.tools:
            if arguments.server in {None, tool.server, tool.module}:
                print(brief(tool))
        return _report_faults(app)

    return _with_app(arguments, action)


def tools_search(arguments: Namespace) -> int:
    """Print the tools that fit a query."""

    async def action(app: App) -> int:
        query = " ".join(arguments.query)
        print(await app.discovery.search(query, arguments.limit, arguments.server))
        return 0

    return _with_app(arguments, action)


def tools_describe(arguments: Namespace) -> int:
    """Print how to call the tools named."""

    async def action(app: App) -> int:
        print(await app.discovery.describe(*arguments.names))
        return 0

    return _with_app(arguments, action)


def mcp(arguments: Namespace) -> int:
    """Serve MCP over stdio until the client leaves."""

    async def action(app: App) -> int:
        await serve_stdio(app)
        return 0

    return _with_app(arguments, action)


def trust(arguments: Namespace) -> int:
    """Trust a project's file, or take that back."""
    return trust_project(arguments.file, revoke=arguments.revoke)


def doctor(arguments: Namespace) -> int:
    """Connect to every server and say what works."""
    config = _config(arguments)
    examination.print_configuration(config)
    return _with_app(arguments, examination.examine, config)


def _with_app(
    arguments: Namespace, action: Callable[[App], Awaitable[int]], config: Config | None = None
) -> int:
    """Do something with a running app; a signal ends it in order."""
    logging.basicConfig(level=logging.WARNING, format="toolfold: %(message)s")
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # the catalog words its troubles itself
    config = config or _config(arguments)

    async def main() -> int:
        status = 128 + signal.SIGTERM
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_on_signal, tasks.cancel_scope)
            async with running_app(config) as app:
                try:
                    status = await action(app)
                except ToolfoldError as error:  # here, before task groups wrap it
                    print(f"toolfold: {error}", file=sys.stderr)
                    status = 2
            tasks.cancel_scope.cancel()
        return status

    return anyio.run(main)


async def _cancel_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


def _config(arguments: Namespace) -> Config:
    overrides = dict(_override(text) for text in arguments.set)
    config_file = Path(arguments.config) if arguments.config else None
    return load_config(config_file=config_file, overrides=overrides)


def _override(text: str) -> tuple[str, object]:
    key, separator, value = text.partition("=")
    if not separator:
        raise ConfigError(f"--set takes KEY=VALUE, such as limits.calls=50; got {text!r}.")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _code(arguments: Namespace) -> str:
    if arguments.code is not None:
        return str(arguments.code)
    if arguments.file in {None, "-"}:
        return sys.stdin.read()
    try:
        return Path(arguments.file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read {arguments.file}: {error}") from error


def _as_json(result: RunResult) -> dict[str, object]:
    entries = dataclasses.asdict(result)
    entries["images"] = [image["mime_type"] for image in entries["images"]]
    return entries


def _report_faults(app: App) -> int:
    faults = [status for status in app.catalog.statuses() if status.fault]
    for status in faults:
        print(f"toolfold: {status.name}: {status.fault}", file=sys.stderr)
    return 1 if faults else 0
