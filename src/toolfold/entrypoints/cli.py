"""The command line: argument parsing, nothing else. Heavy imports wait for their command."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from toolfold.entrypoints.memory_options import add_memory, add_transfer
from toolfold.entrypoints.privacy_options import add_privacy
from toolfold.entrypoints.session_options import add_runs, add_sessions
from toolfold.entrypoints.skills_options import add_skills
from toolfold.entrypoints.trust_options import add_approvals, add_policy

_EPILOG = """\
examples:
  toolfold run -c 'import tools; print(tools.servers())'
  toolfold tools search "open an issue"
  toolfold doctor
"""


def run_command(argv: Sequence[str], parser: argparse.ArgumentParser | None = None) -> int:
    """Run one command and return its exit status; who runs many may keep the parser."""
    arguments = (parser or make_parser()).parse_args(argv)
    from importlib import import_module

    from toolfold.errors import ToolfoldError

    try:
        commands = import_module(f"toolfold.entrypoints.{arguments.module}")
        status: int = getattr(commands, arguments.command)(arguments)
    except ToolfoldError as error:
        print(f"toolfold: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141
    return status


def make_parser() -> argparse.ArgumentParser:
    """Return what reads all commands."""
    parser = argparse.ArgumentParser(
        prog="toolfold",
        description="Fold every tool an agent has into one.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    # Left to itself, argparse would load what measures terminals to find out our own name.
    commands = parser.add_subparsers(metavar="COMMAND", required=True, prog="toolfold")
    shared = _shared_options()
    _add_run(commands, shared)
    _add_tools(commands, shared)
    _add_mcp(commands, shared)
    _add_serve(commands, shared)
    _add_ui(commands, shared)
    add_memory(commands)
    add_transfer(commands)
    add_runs(commands, shared)
    add_sessions(commands)
    add_approvals(commands, shared)
    add_policy(commands, shared)
    add_privacy(commands, shared)
    add_skills(commands, shared)
    _add_workspace(commands)
    _add_savings(commands)
    _add_trust(commands)
    _add_install(commands)
    _add_hook(commands)
    _add_daemon(commands)
    _add_login(commands, shared)
    _add_keys(commands)
    doctor = commands.add_parser(
        "doctor", parents=[shared], help="connect to every server and say what works"
    )
    doctor.set_defaults(command="doctor", module="commands.local")
    return parser


def _shared_options() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--no-daemon", action="store_true", help="do everything in this process")
    shared.add_argument("--config", metavar="FILE", help="use exactly the servers of this file")
    shared.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a setting: --set limits.calls=50",
    )
    return shared


def _add_run(commands: Any, shared: argparse.ArgumentParser) -> None:
    run = commands.add_parser("run", parents=[shared], help="run Python with every tool at hand")
    run.add_argument("file", nargs="?", help="a file with the code; standard input if left out")
    run.add_argument("-c", dest="code", help="the code itself")
    run.add_argument(
        "--dry-run", action="store_true", help="call only what reads, and list what would be called"
    )
    run.add_argument("--session", metavar="NAME", help="go on with its variables, and keep them")
    run.add_argument("--json", action="store_true", help="print the typed result")
    run.set_defaults(command="run", module="commands.local")


def _add_tools(commands: Any, shared: argparse.ArgumentParser) -> None:
    tools = commands.add_parser("tools", help="list, find and describe tools")
    kinds = tools.add_subparsers(
        metavar="list|search|describe", required=True, prog="toolfold tools"
    )
    shared = argparse.ArgumentParser(add_help=False, parents=[shared])
    shared.add_argument("--json", action="store_true", help="print JSON")
    listing = kinds.add_parser("list", parents=[shared], help="every tool, a line each")
    listing.add_argument("server", nargs="?", help="only the tools of this server")
    listing.set_defaults(command="tools_list", module="commands.tools")
    search = kinds.add_parser("search", parents=[shared], help="the tools that fit a task")
    search.add_argument("query", nargs="+")
    search.add_argument("--limit", type=int, default=5, help="how many (default 5)")
    search.add_argument("--server", help="only the tools of this server")
    search.set_defaults(command="tools_search", module="commands.tools")
    describe = kinds.add_parser("describe", parents=[shared], help="how to call a tool")
    describe.add_argument("names", nargs="+", metavar="NAME")
    describe.set_defaults(command="tools_describe", module="commands.tools")


def _add_mcp(commands: Any, shared: argparse.ArgumentParser) -> None:
    mcp = commands.add_parser("mcp", parents=[shared], help="serve execute_code over stdio")
    mcp.add_argument(
        "--tools",
        choices=("code", "memory", "graph"),
        help="what the client sees: one tool that runs code (default), or memory or the knowledge "
        "graph alone",
    )
    mcp.add_argument("--namespace", help="where notes belong to; by default the project")
    mcp.set_defaults(command="mcp", module="commands.local")


def _add_ui(commands: Any, shared: argparse.ArgumentParser) -> None:
    ui = commands.add_parser("ui", parents=[shared], help="open the dashboard in a browser")
    ui.add_argument("--port", type=int, default=0, help="the port (default: a free one)")
    ui.add_argument("--no-browser", action="store_true", help="only print the address")
    ui.set_defaults(command="ui", module="commands.ui")


def _add_serve(commands: Any, shared: argparse.ArgumentParser) -> None:
    serve = commands.add_parser(
        "serve", parents=[shared], help="be the daemon in the foreground, and serve HTTP"
    )
    serve.add_argument("--host", help="where to listen (default 127.0.0.1)")
    serve.add_argument("--port", help="the port (default 8765); 0 takes a free one")
    serve.add_argument("--data-dir", metavar="DIR", help="where notes, runs and keys are kept")
    serve.set_defaults(command="serve", module="commands.serve")


def _add_daemon(commands: Any) -> None:
    def add(name: str, **options: Any) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = commands.add_parser(name, **options)
        parser.set_defaults(command=name, module="commands.daemon")
        return parser

    status = add("status", help="say whether the daemon runs, and for whom")
    status.add_argument("--json", action="store_true", help="print JSON")
    stop = add("stop", help="end the daemon when nobody waits for an answer")
    stop.add_argument("--now", action="store_true", help="end it with the runs in progress")
    logs = add("logs", help="print the end of the daemon's log, or of a server's")
    logs.add_argument("server", nargs="?", help="a server's name")
    logs.add_argument("-n", dest="lines", type=int, default=50, help="how many lines (default 50)")
    logs.add_argument("-f", dest="follow", action="store_true", help="go on as it grows")
    add("daemon").add_argument("--lock", type=int)  # without help it is not listed


def _add_workspace(commands: Any) -> None:
    workspace = commands.add_parser("workspace", help="files that runs have left in this project")
    kinds = workspace.add_subparsers(
        metavar="ls|cat|rm|export", required=True, prog="toolfold workspace"
    )
    ls = kinds.add_parser("ls", help="list files")
    ls.add_argument("pattern", nargs="?", help="such as '*.csv' or 'results/*' (default: all)")
    ls.set_defaults(command="workspace_ls", module="commands.workspace")
    cat = kinds.add_parser("cat", help="print a file as it is")
    cat.add_argument("path")
    cat.set_defaults(command="workspace_cat", module="commands.workspace")
    rm = kinds.add_parser("rm", help="remove a file, or a directory with all that is in it")
    rm.add_argument("path", nargs="?")
    rm.add_argument("--all", action="store_true", help="remove everything")
    rm.set_defaults(command="workspace_rm", module="commands.workspace")
    export = kinds.add_parser("export", help="write files to an archive")
    export.add_argument("archive", help="a .zip, .tar or .tar.gz that is not there yet")
    export.add_argument("path", nargs="?", help="only what is below this")
    export.set_defaults(command="workspace_export", module="commands.workspace")


def _add_savings(commands: Any) -> None:
    savings = commands.add_parser("savings", help="tokens that did not pass through a model")
    savings.add_argument(
        "--since", metavar="WHEN", help="a date, or how long ago: 12h, 7d, 2w (default: all)"
    )
    savings.add_argument(
        "--by", choices=("run", "day", "tool", "server", "door"), help="a line for each"
    )
    savings.add_argument(
        "--price", type=float, metavar="DOLLARS", help="of a million tokens that a model reads"
    )
    savings.add_argument("--users", type=int, default=1, help="how many work like this (default 1)")
    savings.add_argument(
        "--estimate",
        action="store_true",
        help="what the servers of your clients cost before anything is called",
    )
    savings.add_argument("--json", action="store_true", help="print JSON")
    savings.set_defaults(command="savings", module="commands.savings")


def _add_trust(commands: Any) -> None:
    trust = commands.add_parser("trust", help="let the servers of this project's file start")
    trust.add_argument("file", nargs="?", help="by default the file of the current project")
    trust.add_argument("--revoke", action="store_true", help="take the trust back")
    trust.set_defaults(command="trust", module="commands.local")


def _add_login(commands: Any, shared: argparse.ArgumentParser) -> None:
    login = commands.add_parser(
        "login", parents=[shared], help="log in to an HTTP server, in the browser"
    )
    login.add_argument("server", help="its name in the configuration")
    login.add_argument("--no-browser", action="store_true", help="only print the page to visit")
    login.add_argument(
        "--timeout",
        type=float,
        default=300.0,
        metavar="S",
        help="how long to wait for you (default 300 s)",
    )
    login.set_defaults(command="login", module="commands.login")
    logout = commands.add_parser("logout", parents=[shared], help="forget such a login")
    logout.add_argument("server", help="its name in the configuration")
    logout.set_defaults(command="logout", module="commands.login")


def _add_keys(commands: Any) -> None:
    keys = commands.add_parser("keys", help="who may use toolfold over HTTP")
    kinds = keys.add_subparsers(
        metavar="create|list|revoke|token", required=True, prog="toolfold keys"
    )
    create = kinds.add_parser("create", help="make a key, and print it for the only time")
    create.add_argument("name", help="who gets it")
    create.add_argument("--namespace", help="where its notes belong to; by default the project")
    create.add_argument("--json", action="store_true", help="print JSON")
    listing = kinds.add_parser("list", help="all keys that there are and were")
    listing.add_argument("--json", action="store_true", help="print JSON")
    revoke = kinds.add_parser("revoke", help="have a key open nothing any more")
    revoke.add_argument("key", help="its id, or the name of who has it")
    token = kinds.add_parser("token", help="the token that pages in your browser need")
    token.add_argument("--renew", action="store_true", help="make another one first")
    for kind, parser in kinds.choices.items():
        parser.set_defaults(command=f"keys_{kind}", module="commands.keys")


def _add_install(commands: Any) -> None:
    where = argparse.ArgumentParser(add_help=False)
    scope = where.add_mutually_exclusive_group()
    scope.add_argument("--user", action="store_true", help="the client's file for you (default)")
    scope.add_argument("--project", action="store_true", help="its file in this project")
    dry = argparse.ArgumentParser(add_help=False)
    dry.add_argument("--dry-run", action="store_true", help="print a diff and change nothing")
    clients = argparse.ArgumentParser(add_help=False)
    clients.add_argument(
        "clients", nargs="*", metavar="CLIENT", help="claude cursor vscode codex all"
    )
    install = commands.add_parser(
        "install", parents=[clients, where, dry], help="move a client's servers to toolfold"
    )
    install.add_argument("--keep", action="store_true", help="add toolfold, and move nothing")
    install.add_argument(
        "--hooks", action="store_true", help="have conversations begin with notes (claude)"
    )
    uninstall = commands.add_parser(
        "uninstall", parents=[clients, where, dry], help="put the client's servers back"
    )
    sync = commands.add_parser(
        "sync", parents=[clients, dry], help="fold in servers added to clients since install"
    )
    init = commands.add_parser("init", help="write a starter configuration")
    init.add_argument("--project", action="store_true", help="for this project, not for you")
    for parser in (install, uninstall, sync, init):
        command = parser.prog.split()[-1]
        parser.set_defaults(command=command, module="install.commands")


def _add_hook(commands: Any) -> None:
    hook = commands.add_parser("hook", help="answer a session hook of Claude Code, on stdin")
    hook.add_argument("name", choices=("session-start", "prompt", "pre-compact", "session-end"))
    hook.set_defaults(command="hook", module="commands.hook")


class _Version(argparse.Action):
    """Print the version; looking it up is not free, so only when asked."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"toolfold {version('toolfold')}")
        parser.exit()
