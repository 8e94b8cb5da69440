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
from typing import Final, TextIO, TypeVar

import anyio

from toolfold.app import App, Stores, running_app, running_stores
from toolfold.config.config import Config
from toolfold.entrypoints.commands import doctor as examination
from toolfold.entrypoints.commands.ask import terminal_elicitor
from toolfold.entrypoints.commands.options import (
    config_of,
    config_of_run,
    warn_of_settings,
    written_options,
)
from toolfold.entrypoints.commands.progress import RunScreen
from toolfold.entrypoints.commands.trust import trust_project
from toolfold.entrypoints.mcp.memory import serve_memory
from toolfold.entrypoints.mcp.server import serve_app
from toolfold.entrypoints.screen import Cell, for_people, print_json, print_line
from toolfold.entrypoints.terminal import read_file, remote_terminal
from toolfold.errors import ConfigError, ToolfoldError
from toolfold.execution.background import BackgroundRun, interrupted_text
from toolfold.execution.report import RunReport
from toolfold.execution.runtime import SessionRequest
from toolfold.execution.service import ResumeRequest, RunRequest
from toolfold.journal.journal import journal_of
from toolfold.journal.replay import DoubtDecision
from toolfold.journal.runs import TERMINAL, Origin

_UNREAD: Final = 141
_BEGUN_AGAIN: Final = (
    "The quick interpreter lacks a feature that this code uses, so the code was restarted in "
    "CPython. The output of the first attempt is shown above, too."
)

_T = TypeVar("_T")
_Request = TypeVar("_Request", RunRequest, ResumeRequest)


def run(arguments: Namespace) -> int:
    """Run code from a file, the command line or standard input."""
    code = _code(arguments)

    async def action(app: App) -> int:
        request = RunRequest(
            code=code,
            origin=terminal_origin(str(app.config.project or app.config.start_directory)),
            session=SessionRequest(arguments.session),
            dry_run=arguments.dry_run,
        )
        return await run_shown(app, arguments, app.runs.run, request)

    config = _with_secrets(arguments)
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
        return await run_shown(app, arguments, app.runs.resume, request)

    return with_app(config_of_run(arguments, config, begun.id, begun.origin), action)


async def run_shown(
    app: App,
    arguments: Namespace,
    run: Callable[[_Request], Awaitable[RunReport | BackgroundRun]],
    request: _Request,
) -> int:
    """Run, and print what the code prints as it does; return the exit status.

    Where the person interrupts that, say which calls had completed.
    """
    begun: list[str] = []
    screen = RunScreen()
    options = replace(
        request.options,
        on_begin=begun.append,
        ask=terminal_elicitor(screen.paused),
        on_progress=screen.note,
        on_print=None if arguments.json else screen.print,
    )
    outcome: RunReport | BackgroundRun | ToolfoldError | None = None
    async with anyio.create_task_group() as tasks:

        async def end_unread() -> None:
            await screen.is_closed.wait()
            tasks.cancel_scope.cancel()

        tasks.start_soon(end_unread)
        if screen.has_line:
            tasks.start_soon(screen.draw)
        try:
            outcome = await run(replace(request, options=options))
        except ToolfoldError as error:  # raised below, where no task group wraps it
            outcome = error
        except anyio.get_cancelled_exc_class():
            for run_id in begun:
                words = interrupted_text(app.shared.journal, run_id)
                print(f"toolfold: {words}", file=sys.stderr, flush=True)
            raise
        tasks.cancel_scope.cancel()
    if isinstance(outcome, ToolfoldError):
        raise outcome
    if not isinstance(outcome, RunReport):
        return _UNREAD  # its end was waited for, unless nobody reads
    return print_result(arguments, outcome, printed="".join(screen.printed))


def terminal_origin(project: str) -> Origin:
    """Return who asks for a run here; where it is lost with the daemon, it is found by that."""
    terminal = remote_terminal()
    request = "" if terminal is None else terminal.id
    return Origin(client=TERMINAL, request=request, project=project)


def print_result(arguments: Namespace, result: RunReport, *, printed: str = "") -> int:
    """Print what came of a run, but for what was `printed` already; return the exit status.

    People and pipes get all that it printed, and its value: the cut is for models.
    """
    if arguments.json:
        print_json(_as_json(result))
        return int(not result.success)
    is_dry = getattr(arguments, "dry_run", False)
    output = result.output.removeprefix(printed)
    if printed and not result.output.startswith(printed):  # random numbers, or the time
        print_line(Cell(_BEGUN_AGAIN, "dim"), file=sys.stderr)
        output = ""
    if output or (printed and not printed.endswith("\n")):
        print(output, end="" if output.endswith("\n") else "\n", flush=True)
    if is_dry and result.success:  # before a value that was made up
        _print_waits(result, sys.stdout)
    if not result.success:
        print_line(for_people(result.trouble or result.text), file=sys.stderr)
        return 1
    _print_value(result)
    if not is_dry:
        _print_waits(result, sys.stderr)
    return 0


def _print_waits(result: RunReport, file: TextIO) -> None:
    for note in result.waits:
        print_line(Cell(for_people(note), "dim"), file=file)


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
        await serve_app(app)
        return 0

    return with_app(config, action)


async def _serve_memory(config: Config, stores: Stores) -> int:
    await serve_memory(stores, config)
    return 0


def trust(arguments: Namespace) -> int:
    """Trust a project's file, or take that back."""
    return trust_project(arguments)


def doctor(arguments: Namespace) -> int:
    """Look at what is on the disk, connect to every server, and say what works."""
    # Nobody else needs the vocabulary and the model at once.
    from toolfold.entrypoints.commands.state_checks import examine_state

    findings = examination.Findings(is_quiet=arguments.json, is_fixing=arguments.fix)
    examination.examine_edits(findings)
    try:
        config = config_of(arguments) if arguments.json else _with_secrets(arguments)
    except ConfigError as error:
        findings.add("FAILED", "settings", str(error))
        return findings.finish()
    examination.examine_configuration(config, findings)
    examine_state(config, findings)
    examination.examine_relay(written_options(arguments), findings)

    async def action(app: App) -> int:
        await examination.examine(app, findings)
        if arguments.learn:
            origin = terminal_origin(str(config.project or ""))
            await examination.learn_shapes(app, origin, findings)
        return 0

    return with_app(config, action) or findings.finish()


def _with_secrets(arguments: Namespace) -> Config:
    """Return the configuration, once the person at the terminal was asked for what it lacks."""
    config = config_of(arguments)
    if not any(server.missing for server in config.servers):
        return config
    from toolfold.entrypoints.commands.secrets import ask_for_missing  # few lack any

    return config_of(arguments) if ask_for_missing(config) else config


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
                    print(f"toolfold: {for_people(error)}", file=sys.stderr)
                    status = 2
            tasks.cancel_scope.cancel()
        return status

    return anyio.run(main)


def quieten_logs() -> None:
    """Log what a person at a terminal should know, and no more."""
    logging.basicConfig(level=logging.WARNING, format="toolfold: %(message)s")
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # the catalog words its troubles itself


def _code(arguments: Namespace) -> str:
    """Return what is to be run.

    Raises:
        ConfigError: There is nothing, or no text.
    """
    code = _given_code(arguments)
    if not code.strip():
        raise ConfigError("No code was given. `toolfold run -c '1 + 1'` runs some.")
    return code


def _given_code(arguments: Namespace) -> str:
    if arguments.code is not None and arguments.file is not None:
        raise ConfigError(f"Give a file or -c CODE, not both: {arguments.file} was not run.")
    if arguments.code is not None:
        return str(arguments.code)
    if arguments.file in {None, "-"}:
        if sys.stdin.isatty():
            print("Type Python, then Ctrl-D.", file=sys.stderr, flush=True)
        return sys.stdin.read()
    try:
        return read_file(arguments.file).decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{arguments.file} is not UTF-8 text: it must be Python.") from error


def _as_json(result: RunReport) -> dict[str, object]:
    entries = dataclasses.asdict(result)
    entries["images"] = [image["mime_type"] for image in entries["images"]]
    return entries
