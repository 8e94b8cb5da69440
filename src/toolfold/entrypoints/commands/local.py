"""What each command does. Each takes the parsed arguments and returns the exit status."""

import dataclasses
import logging
import signal
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from typing import TypeVar

import anyio

from toolfold.app import App, Stores, running_app, running_stores
from toolfold.config.config import Config
from toolfold.config.faults import shown
from toolfold.entrypoints.commands import doctor as examination
from toolfold.entrypoints.commands.ask import terminal_elicitor
from toolfold.entrypoints.commands.options import (
    config_of,
    config_of_run,
    warn_of_settings,
    written_options,
)
from toolfold.entrypoints.commands.trust import trust_project
from toolfold.entrypoints.mcp.memory import serve_memory
from toolfold.entrypoints.mcp.server import serve_stdio
from toolfold.entrypoints.screen import Cell, is_terminal, print_json, print_line
from toolfold.entrypoints.terminal import read_file, remote_terminal
from toolfold.errors import ConfigError, ToolfoldError
from toolfold.execution.background import BackgroundRun
from toolfold.execution.losses import interrupted_text
from toolfold.execution.report import RunReport
from toolfold.execution.runtime import SessionRequest
from toolfold.execution.service import ResumeRequest, RunRequest
from toolfold.journal.journal import journal_of
from toolfold.journal.replay import DoubtDecision
from toolfold.journal.runs import TERMINAL, Origin

_T = TypeVar("_T")
_Request = TypeVar("_Request", RunRequest, ResumeRequest)


def run(arguments: Namespace) -> int:
    """Run code from a file, the command line or standard input."""
    code = _code(arguments)

    async def action(app: App) -> int:
        request = RunRequest(
            code=code,
            origin=terminal_origin(str(app.config.project or "")),
            session=SessionRequest(arguments.session),
            dry_run=arguments.dry_run,
        )
        return print_result(arguments, await told_if_interrupted(app, app.runs.run, request))

    config = config_of(arguments)
    warn_of_settings(config)
    return with_app(config, action)


def resume(arguments: Namespace, run_id: str) -> int:
    """Go on with a run that did not come to its own end."""
    decision: DoubtDecision = "repeat" if arguments.repeat else "skip" if arguments.skip else "ask"
    config = config_of(arguments)
    begun = journal_of(config).find(run_id)

    async def action(app: App) -> int:
        origin = terminal_origin(begun.origin.project)
        if begun.origin.client.startswith("key:"):
            origin = replace(origin, client=begun.origin.client)
        request = ResumeRequest(run_id=run_id, origin=origin, decision=decision)
        return print_result(arguments, await told_if_interrupted(app, app.runs.resume, request))

    return with_app(config_of_run(arguments, config, begun.id, begun.origin), action)


async def told_if_interrupted(
    app: App, run: Callable[[_Request], Awaitable[RunReport | BackgroundRun]], request: _Request
) -> RunReport:
    """Run; where the person interrupts that, say which calls had completed."""
    begun: list[str] = []
    options = replace(
        request.options,
        on_begin=begun.append,
        ask=terminal_elicitor(),
        on_progress=_print_progress,
    )
    try:
        report = await run(replace(request, options=options))
    except anyio.get_cancelled_exc_class():
        for run_id in begun:
            words = interrupted_text(app.shared.journal, run_id)
            print(f"toolfold: {words}", file=sys.stderr, flush=True)
        raise
    assert isinstance(report, RunReport)  # noqa: S101  # its end was waited for
    return report


def _print_progress(done: float, total: float | None, note: str) -> None:
    """Show how far a run says to be, where a person looks."""
    if is_terminal(sys.stderr):
        far = f"{done:g}" if total is None else f"{done:g} of {total:g}"
        print_line(Cell(f"{far}  {shown(note)}".rstrip(), "dim"), file=sys.stderr)


def terminal_origin(project: str) -> Origin:
    """Return who asks for a run here; where it is lost with the daemon, it is found by that."""
    terminal = remote_terminal()
    request = "" if terminal is None else terminal.id
    return Origin(client=TERMINAL, request=request, project=project)


def print_result(arguments: Namespace, result: RunReport) -> int:
    """Print what came of a run; return the exit status.

    People and pipes get all that it printed, and its value: the cut is for models.
    """
    if arguments.json:
        print_json(_as_json(result))
        return int(not result.success)
    if result.output:
        print(result.output, end="" if result.output.endswith("\n") else "\n", flush=True)
    if result.success:
        _print_value(result)
        for note in result.waits:
            print_line(
                Cell(note, "dim"), file=None if getattr(arguments, "dry_run", False) else sys.stderr
            )
        return 0
    print_line(result.trouble or result.text, file=sys.stderr)
    return 1


def _print_value(result: RunReport) -> None:
    if isinstance(result.value, str):
        print(result.value)
    elif result.value is not None:
        print_json(result.value)


def mcp(arguments: Namespace) -> int:
    """Serve MCP over stdio until the client leaves."""
    flags = {"tools": arguments.tools, "memory.namespace": arguments.namespace}
    arguments.set += [f"{name}={value}" for name, value in flags.items() if value is not None]
    config = config_of(arguments)
    if config.settings.tools != "code":
        return with_running(running_stores(config), partial(_serve_memory, config))

    async def action(app: App) -> int:
        await serve_stdio(app)
        return 0

    return with_app(config, action)


async def _serve_memory(config: Config, stores: Stores) -> int:
    await serve_memory(stores, config)
    return 0


def trust(arguments: Namespace) -> int:
    """Trust a project's file, or take that back."""
    return trust_project(arguments.file, revoke=arguments.revoke)


def doctor(arguments: Namespace) -> int:
    """Connect to every server and say what works."""
    config = config_of(arguments)
    findings = examination.Findings(is_quiet=arguments.json)
    examination.examine_configuration(config, findings)
    examination.examine_relay(written_options(arguments), findings)

    async def action(app: App) -> int:
        await examination.examine(app, findings)
        return 0

    return with_app(config, action) or findings.finish()


def learn_tools(config: Config) -> None:
    """Connect to the servers whose tools are not known, so that they are on disk afterwards."""

    async def action(app: App) -> int:
        await app.catalog.learn()
        return 0

    with_app(config, action)


def with_app(config: Config, action: Callable[[App], Awaitable[int]]) -> int:
    """Do something with a running app; a signal ends it in order.

    In the daemon that is the app which all its clients share.
    """
    terminal = remote_terminal()
    if terminal is not None:
        return terminal.with_app(config, action)
    return with_running(running_app(config), action)


def with_running(
    running: AbstractAsyncContextManager[_T], action: Callable[[_T], Awaitable[int]]
) -> int:
    """Do something with what is running in a context; a signal ends it in order."""
    quieten_logs()

    async def main() -> int:
        status = 0

        async def end_on_signal() -> None:
            nonlocal status
            # Python's own way for SIGINT cancels once, which what is just ending may swallow.
            with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                async for number in signals:
                    status = 128 + number
                    tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end_on_signal)
            async with running as it:
                try:
                    status = await action(it)
                except ToolfoldError as error:  # here, before task groups wrap it
                    print(f"toolfold: {error}", file=sys.stderr)
                    status = 2
            tasks.cancel_scope.cancel()
        return status

    return anyio.run(main)


def quieten_logs() -> None:
    """Log what a person at a terminal should know, and no more."""
    logging.basicConfig(level=logging.WARNING, format="toolfold: %(message)s")
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # the catalog words its troubles itself


def _code(arguments: Namespace) -> str:
    if arguments.code is not None:
        return str(arguments.code)
    if arguments.file in {None, "-"}:
        return sys.stdin.read()
    try:
        return read_file(arguments.file).decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{arguments.file} is not UTF-8 text: it must be Python.") from error


def _as_json(result: RunReport) -> dict[str, object]:
    entries = dataclasses.asdict(result)
    entries["images"] = [image["mime_type"] for image in entries["images"]]
    return entries
