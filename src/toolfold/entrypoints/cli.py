"""The command line: argument parsing, nothing else. Heavy imports wait for their command."""

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any, Final

from toolfold.entrypoints.memory_options import add_memory, add_transfer
from toolfold.entrypoints.parser import Parser, accept_yes, positive
from toolfold.entrypoints.privacy_options import add_privacy
from toolfold.entrypoints.server_options import add_servers
from toolfold.entrypoints.session_options import add_runs, add_sessions
from toolfold.entrypoints.skills_options import add_skills
from toolfold.entrypoints.trust_options import add_approvals, add_policy

_BARE: Final = {
    "tools": "list",
    "memory": "list",
    "runs": "list",
    "sessions": "list",
    "policy": "show",
    "privacy": "status",
    "skills": "list",
    "workspace": "ls",
    "keys": "list",
    "secrets": "list",
}
"""What a group does without a verb."""

_OPTIONS: Final = ("-h", "--help", "--version")
_RUN_ID: Final = re.compile(r"[0-9a-f]{1,16}")


def run_command(argv: Sequence[str], parser: Parser | None = None) -> int:
    """Run one command and return its exit status; who runs many may keep the parser."""
    parser = parser or make_parser()
    words = with_verb(argv)
    if words[0].startswith("-") and len(words) == 1 and words[0] not in _OPTIONS:
        parser.refuse(words)
    # Left to itself, argparse ends the words of `add NAME` where an option follows.
    place = words.index("--") if words[0] == "add" and "--" in words else len(words)
    arguments, extra = parser.parse_known_args(words[:place])
    if extra:
        arguments.leaf.refuse(extra)
    if place < len(words):
        arguments.words += words[place + 1 :]
    from importlib import import_module

    from toolfold.errors import ToolfoldError

    try:
        commands = import_module(f"toolfold.entrypoints.{arguments.module}")
        status: int = getattr(commands, arguments.command)(arguments)
    except ToolfoldError as error:
        from toolfold.entrypoints.screen import for_people

        print(f"toolfold: {for_people(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141
    return status


def with_verb(argv: Sequence[str]) -> list[str]:
    """Return the words with a verb where a group was named alone, or with the id of a run."""
    words = list(argv) or ["welcome"]
    if words[0] == "help":
        return [*words[1:], "--help"]
    if words[0] not in _BARE or {"-h", "--help"} & set(words[1:2]):
        return words
    if len(words) == 1 or words[1].startswith("-"):
        return [words[0], _BARE[words[0]], *words[1:]]
    if words[0] == "runs" and _RUN_ID.fullmatch(words[1]):
        return ["runs", "show", *words[1:]]
    return words


def make_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="toolfold",
        description="Fold every tool an agent has into one.",
        examples=(
            "toolfold install claude --dry-run",
            "toolfold doctor",
            "toolfold tools search 'open an issue'",
            "toolfold run -c 'import tools; print(tools.servers())'",
        ),
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    # Left to itself, argparse would load what measures terminals to find out our own name.
    commands = parser.add_subparsers(metavar="COMMAND", required=True, prog="toolfold")
    shared = _shared_options()
    _add_install(commands)
    _add_doctor(commands, shared)
    _add_backup(commands)
    _add_run(commands, shared)
    _add_tools(commands, shared)
    add_memory(commands)
    add_runs(commands, shared)
    add_approvals(commands, shared)
    add_policy(commands, shared)
    add_privacy(commands, shared)
    add_sessions(commands)
    add_skills(commands, shared)
    _add_workspace(commands)
    _add_savings(commands)
    add_transfer(commands, shared)
    add_servers(commands)
    _add_trust(commands)
    _add_login(commands, shared)
    _add_serve(commands, shared)
    _add_ui(commands, shared)
    _add_keys(commands)
    _add_daemon(commands)
    _add_mcp(commands, shared)
    _add_hook(commands)
    _add_shell(commands)
    return parser


def _add(commands: Any, name: str, about: str, *examples: str, **options: Any) -> Any:
    """Add a command; what it is called with follows."""
    command = options.pop("command", name.replace("-", "_"))
    module = options.pop("module")
    if about:
        options |= {"help": about}
        options.setdefault("description", f"{about[:1].upper()}{about[1:]}.")
    parser = commands.add_parser(name, examples=examples, **options)
    parser.set_defaults(command=command, module=module)
    return parser


def _shared_options() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--no-daemon", action="store_true", help="do everything in this process")
    shared.add_argument("--config", metavar="FILE", help="use only the servers of this file")
    shared.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a setting: --set limits.calls=50",
    )
    return shared


def _add_json(parser: Any) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _add_doctor(commands: Any, shared: argparse.ArgumentParser) -> None:
    doctor = _add(
        commands, "doctor", "check everything: configuration, stores, daemon, sandbox, servers",
        "toolfold doctor", "toolfold doctor --fix", "toolfold doctor --learn",
        "toolfold doctor --json",
        parents=[shared], module="commands.local",
    )  # fmt: skip
    doctor.add_argument("--fix", action="store_true", help="fix what can be fixed without risk")
    doctor.add_argument(
        "--learn",
        action="store_true",
        help="call read-only tools without arguments, to learn what they return",
    )
    _add_json(doctor)


def _add_backup(commands: Any) -> None:
    backup = _add(
        commands, "backup", "write notes, runs, sessions, settings and your own skills to one file",
        "toolfold backup", "toolfold backup /media/stick/toolfold.tar.gz",
        module="commands.backup",
    )  # fmt: skip
    backup.add_argument(
        "file", nargs="?", metavar="FILE", help="a new file (default: named after the time)"
    )
    restore = _add(
        commands, "restore", "restore a backup; present data is kept aside",
        "toolfold restore toolfold.tar.gz", module="commands.backup",
    )  # fmt: skip
    restore.add_argument("file", metavar="FILE", help="what `toolfold backup` wrote")
    restore.add_argument("--yes", "-y", action="store_true", help="do not ask")
    for parser in (backup, restore):
        _add_json(parser)


def _add_run(commands: Any, shared: argparse.ArgumentParser) -> None:
    run = _add(
        commands, "run", "run Python with every tool at hand",
        "toolfold run -c 'import tools; print(tools.servers())'",
        "toolfold run report.py --dry-run",
        "echo '1 + 1' | toolfold run",
        parents=[shared], module="commands.local",
    )  # fmt: skip
    run.add_argument("file", nargs="?", metavar="FILE", help="default: standard input")
    run.add_argument("-c", dest="code", metavar="CODE", help="the code itself")
    run.add_argument(
        "--dry-run", action="store_true", help="call read-only tools only, and list the other calls"
    )
    run.add_argument("--session", metavar="NAME", help="keep variables under this name")
    _add_json(run)


def _add_tools(commands: Any, shared: argparse.ArgumentParser) -> None:
    tools = commands.add_parser(
        "tools",
        help="list, search and describe tools",
        description="The tools of your servers.",
        examples=("toolfold tools", "toolfold tools search 'open an issue'"),
    )
    verbs = tools.add_subparsers(metavar="VERB", prog="toolfold tools")
    module = "commands.tools"
    listing = _add(
        verbs, "list", "list tools", "toolfold tools list", "toolfold tools list --server git",
        parents=[shared], command="tools_list", module=module,
    )  # fmt: skip
    listing.add_argument("name", nargs="?", metavar="SERVER", help="only tools of this server")
    search = _add(
        verbs, "search", "find tools for a task", "toolfold tools search 'open an issue'",
        parents=[shared], command="tools_search", module=module,
    )  # fmt: skip
    search.add_argument("query", nargs="+", metavar="QUERY")
    search.add_argument("--limit", type=positive, default=5, help="how many (default 5)")
    for parser in (listing, search):
        parser.add_argument("--server", metavar="SERVER", help="only tools of this server")
    describe = _add(
        verbs, "describe", "show how to call a tool, or all tools of a server",
        "toolfold tools describe github.create_issue", "toolfold tools describe filesystem",
        parents=[shared], command="tools_describe", module=module,
    )  # fmt: skip
    describe.add_argument("names", nargs="+", metavar="NAME", help="tools or servers")
    changes = _add(
        verbs, "changes", "show tools whose definition changed since you used them",
        "toolfold tools changes",
        parents=[shared], command="tools_changes", module=module,
    )  # fmt: skip
    for parser in (listing, search, describe, changes):
        _add_json(parser)


def _add_mcp(commands: Any, shared: argparse.ArgumentParser) -> None:
    mcp = _add(
        commands, "mcp", "serve execute_code over stdio; clients start this",
        "toolfold mcp", "toolfold mcp --tools memory",
        parents=[shared], module="commands.local",
    )  # fmt: skip
    mcp.add_argument(
        "--tools",
        choices=("code", "memory", "graph"),
        help="offer one tool that runs code (default), only memory, or only the knowledge graph",
    )
    mcp.add_argument("--namespace", help="where notes belong (default: the project)")


def _add_serve(commands: Any, shared: argparse.ArgumentParser) -> None:
    serve = _add(
        commands, "serve", "serve MCP and REST over HTTP; requests from other machines "
        "need a key",
        "toolfold serve", "curl -s http://127.0.0.1:8765/health",
        "toolfold keys create ci", "toolfold serve --host 0.0.0.0",
        parents=[shared], module="commands.serve",
    )  # fmt: skip
    serve.add_argument("--host", help="where to listen (default 127.0.0.1)")
    serve.add_argument("--port", help="the port (default 8765); 0 takes a free one")
    serve.add_argument("--data-dir", metavar="DIR", help="where notes, runs and keys are stored")


def _add_ui(commands: Any, shared: argparse.ArgumentParser) -> None:
    ui = _add(
        commands, "ui", "open the dashboard in a browser", "toolfold ui",
        "toolfold ui --no-browser", parents=[shared], module="commands.ui",
    )  # fmt: skip
    ui.add_argument("--port", type=int, default=0, help="the port (default: a free one)")
    ui.add_argument(
        "--no-browser", action="store_true", help="do not open a browser; serve until Ctrl-C"
    )


def _add_daemon(commands: Any) -> None:
    module = "commands.daemon"
    status = _add(
        commands, "status", "show the daemon, its clients and servers", "toolfold status",
        module=module,
    )  # fmt: skip
    _add_json(status)
    stop = _add(
        commands, "stop", "stop the daemon once no request is in progress", "toolfold stop",
        "toolfold stop --now", module=module,
    )  # fmt: skip
    stop.add_argument("--now", action="store_true", help="also end runs in progress")
    _add_json(stop)
    logs = _add(
        commands, "logs", "print the log of the daemon, of the hooks or of a server",
        "toolfold logs", "toolfold logs hooks", "toolfold logs github -f",
        "toolfold logs github --crash", module=module,
    )  # fmt: skip
    logs.add_argument(
        "server", nargs="?", metavar="NAME", help="daemon (default), hooks, or a server's name"
    )
    logs.add_argument("-n", dest="lines", type=int, default=50, help="how many lines (default 50)")
    logs.add_argument(
        "--crash", action="store_true", help="what a server wrote before it last died"
    )
    logs.add_argument("-f", dest="follow", action="store_true", help="follow the log as it grows")
    _add_json(logs)
    _add(commands, "daemon", "", module=module).add_argument("--lock", type=int)


def _add_workspace(commands: Any) -> None:
    workspace = commands.add_parser(
        "workspace",
        help="files that runs left in this project",
        description="Files that runs left in this project.",
        examples=("toolfold workspace", "toolfold workspace cat report.csv"),
    )
    verbs = workspace.add_subparsers(metavar="VERB", prog="toolfold workspace")

    def add(name: str, about: str, *examples: str) -> Any:
        command = f"workspace_{name}"
        return _add(verbs, name, about, *examples, command=command, module="commands.workspace")

    ls = add("ls", "list files", "toolfold workspace ls 'results/*'")
    ls.add_argument("pattern", nargs="?", metavar="PATTERN", help="such as '*.csv' (default: all)")
    _add_json(ls)
    cat = add("cat", "print a file", "toolfold workspace cat report.csv")
    cat.add_argument("path", metavar="PATH")
    rm = add("rm", "remove a file or a directory", "toolfold workspace rm results --yes")
    rm.add_argument("path", nargs="?", metavar="PATH")
    rm.add_argument("--all", action="store_true", help="remove everything")
    rm.add_argument("--yes", "-y", action="store_true", help="do not ask")
    _add_json(rm)
    export = add("export", "write files to an archive", "toolfold workspace export files.zip")
    export.add_argument("archive", metavar="ARCHIVE", help="a new .zip, .tar or .tar.gz")
    export.add_argument("path", nargs="?", metavar="PATH", help="only what is below this")
    _add_json(export)


def _add_savings(commands: Any) -> None:
    savings = _add(
        commands, "savings", "show how many tokens were saved",
        "toolfold savings --since yesterday", "toolfold savings --by tool --price 3",
        "toolfold savings --estimate", module="commands.savings",
    )  # fmt: skip
    savings.add_argument("--since", metavar="WHEN", help="a date, today, yesterday, 12h, 7d, 2w")
    savings.add_argument(
        "--by",
        choices=("run", "day", "tool", "server", "door"),
        help="a line for each; a door is a way in: mcp, http, rest, cli or hook",
    )
    savings.add_argument(
        "--price", type=float, metavar="DOLLARS", help="the price of a million input tokens"
    )
    savings.add_argument(
        "--users", type=int, default=1, help="multiply by this many users (default 1)"
    )
    savings.add_argument(
        "--estimate",
        action="store_true",
        help="what the servers of your clients cost before any call",
    )
    _add_json(savings)


def _add_trust(commands: Any) -> None:
    trust = _add(
        commands, "trust", "let the servers of a project's file start",
        "toolfold trust", "toolfold trust --revoke", module="commands.local",
    )  # fmt: skip
    trust.add_argument("file", nargs="?", metavar="FILE", help="default: this project's file")
    trust.add_argument("--revoke", action="store_true", help="no longer trust it")
    _add_json(trust)


def _add_login(commands: Any, shared: argparse.ArgumentParser) -> None:
    login = _add(
        commands, "login", "log in to an HTTP server, in the browser", "toolfold login linear",
        parents=[shared], module="commands.login",
    )  # fmt: skip
    login.add_argument("--no-browser", action="store_true", help="only print the page to visit")
    login.add_argument(
        "--timeout",
        type=float,
        default=300.0,
        metavar="S",
        help="how long to wait for you (default 300 s)",
    )
    logout = _add(
        commands, "logout", "forget a login", "toolfold logout linear",
        parents=[shared], module="commands.login",
    )  # fmt: skip
    accept_yes(logout)
    for parser in (login, logout):
        parser.add_argument("server", metavar="SERVER", help="its name in the configuration")
        _add_json(parser)


def _add_keys(commands: Any) -> None:
    keys = commands.add_parser(
        "keys",
        help="API keys for HTTP",
        description="Who may use toolfold over HTTP.",
        examples=("toolfold keys create ci", "toolfold keys", "toolfold keys revoke ci"),
    )
    verbs = keys.add_subparsers(metavar="VERB", prog="toolfold keys")

    def add(name: str, about: str, *examples: str) -> Any:
        command = f"keys_{name}"
        parser = _add(verbs, name, about, *examples, command=command, module="commands.keys")
        parser.add_argument("--data-dir", metavar="DIR", help="as of `toolfold serve --data-dir`")
        return parser

    create = add("create", "create a key and print it, once", "toolfold keys create ci")
    create.add_argument("name", metavar="NAME", help="who gets it")
    create.add_argument("--namespace", help="where its notes belong (default: the project)")
    listing = add("list", "list keys, revoked ones included", "toolfold keys list")
    revoke = add("revoke", "revoke a key", "toolfold keys revoke ci --yes")
    revoke.add_argument("key", metavar="KEY", help="its id or name")
    revoke.add_argument("--yes", "-y", action="store_true", help="do not ask")
    token = add("token", "print the token for pages in your browser", "toolfold keys token")
    token.add_argument("--renew", action="store_true", help="replace it first")
    for parser in (create, listing, revoke, token):
        _add_json(parser)


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
    module = "install.commands"
    install = _add(
        commands, "install", "move a client's servers to toolfold",
        "toolfold install claude --dry-run", "toolfold install all",
        parents=[clients, where, dry], module=module,
    )  # fmt: skip
    install.add_argument("--keep", action="store_true", help="add toolfold and move nothing")
    install.add_argument(
        "--move-secrets",
        action="store_true",
        help="keep tokens in their entries as secrets instead (asked at a terminal)",
    )
    install.add_argument(
        "--hooks",
        action="store_true",
        help="add 5 session hooks (claude): recall notes at the start, save at the end, "
        "ask only before programs that change something",
    )
    uninstall = _add(
        commands, "uninstall", "give a client its servers back",
        "toolfold uninstall claude", "toolfold uninstall all --purge",
        parents=[clients, where, dry], module="commands.uninstall",
    )  # fmt: skip
    uninstall.add_argument(
        "--purge", action="store_true", help="also delete notes, runs, settings: everything"
    )
    uninstall.add_argument("--yes", "-y", action="store_true", help="do not ask")
    sync = _add(
        commands, "sync", "move servers that were added to clients since install",
        "toolfold sync --dry-run", parents=[clients, dry], module=module,
    )  # fmt: skip
    init = _add(
        commands, "init", "write a starter configuration", "toolfold init",
        "toolfold init --project", module=module,
    )  # fmt: skip
    init.add_argument("--project", action="store_true", help="for this project, not for you")
    for parser in (install, uninstall, sync, init):
        _add_json(parser)


def _add_hook(commands: Any) -> None:
    hook = _add(
        commands, "hook", "answer a session hook of Claude Code, on standard input; at a terminal, "
        "show what it would say",
        "toolfold hook session-start", "toolfold hook session-start < payload.json",
        module="commands.hook",
    )  # fmt: skip
    hook.add_argument(
        "name",
        metavar="HOOK",
        choices=("session-start", "prompt", "pre-tool-use", "pre-compact", "session-end"),
        help="session-start: show notes; prompt: show notes that the prompt asks for; "
        "pre-tool-use: let programs that only read run, ask about others; "
        "pre-compact: save a record of the conversation; session-end: save a record and an event",
    )


def _add_shell(commands: Any) -> None:
    completion = _add(
        commands, "completion", "print completions for bash, zsh or fish",
        'eval "$(toolfold completion bash)"',
        "toolfold completion fish > ~/.config/fish/completions/toolfold.fish",
        module="commands.completion",
    )  # fmt: skip
    completion.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"))
    _add(
        commands, "demo", "show the main job on an embedded server", "toolfold demo",
        module="commands.demo",
    )  # fmt: skip
    # Without help they are not listed: shells ask the first, `toolfold` alone is the second.
    complete = _add(commands, "complete", "", module="commands.completion")
    complete.add_argument("words", nargs=argparse.REMAINDER)
    _add(commands, "welcome", "", module="commands.welcome")


class _Version(argparse.Action):
    """Print the version; looking it up is not free, so only when asked."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"toolfold {version('toolfold')}")
        parser.exit()
