"""The command line: argument parsing, nothing else. Heavy imports wait for their command."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

_EPILOG = """\
examples:
  toolfold run -c 'import tools; print(tools.servers())'
  toolfold tools search "open an issue"
  toolfold doctor
"""


def run_command(argv: Sequence[str]) -> int:
    """Run one command and return its exit status."""
    arguments = _parser().parse_args(argv)
    from importlib import import_module

    if arguments.command == "tools_search" and not arguments.json:
        from toolfold.entrypoints.kept_search import kept_index, print_hits

        if kept := kept_index(arguments):
            print_hits(arguments, *kept)
            return 0
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


def _parser() -> argparse.ArgumentParser:
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
    _add_trust(commands)
    doctor = commands.add_parser(
        "doctor", parents=[shared], help="connect to every server and say what works"
    )
    doctor.set_defaults(command="doctor", module="commands")
    return parser


def _shared_options() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
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
    run.add_argument("--json", action="store_true", help="print the typed result")
    run.set_defaults(command="run", module="commands")


def _add_tools(commands: Any, shared: argparse.ArgumentParser) -> None:
    tools = commands.add_parser("tools", help="list, find and describe tools")
    kinds = tools.add_subparsers(
        metavar="list|search|describe", required=True, prog="toolfold tools"
    )
    shared = argparse.ArgumentParser(add_help=False, parents=[shared])
    shared.add_argument("--json", action="store_true", help="print JSON")
    listing = kinds.add_parser("list", parents=[shared], help="every tool, a line each")
    listing.add_argument("server", nargs="?", help="only the tools of this server")
    listing.set_defaults(command="tools_list", module="tools_commands")
    search = kinds.add_parser("search", parents=[shared], help="the tools that fit a task")
    search.add_argument("query", nargs="+")
    search.add_argument("--limit", type=int, default=5, help="how many (default 5)")
    search.add_argument("--server", help="only the tools of this server")
    search.set_defaults(command="tools_search", module="tools_commands")
    describe = kinds.add_parser("describe", parents=[shared], help="how to call a tool")
    describe.add_argument("names", nargs="+", metavar="NAME")
    describe.set_defaults(command="tools_describe", module="tools_commands")


def _add_mcp(commands: Any, shared: argparse.ArgumentParser) -> None:
    mcp = commands.add_parser("mcp", parents=[shared], help="serve execute_code over stdio")
    mcp.add_argument("--no-daemon", action="store_true", help="do everything in this one process")
    mcp.set_defaults(command="mcp", module="commands")


def _add_trust(commands: Any) -> None:
    trust = commands.add_parser("trust", help="let the servers of this project's file start")
    trust.add_argument("file", nargs="?", help="by default the file of the current project")
    trust.add_argument("--revoke", action="store_true", help="take the trust back")
    trust.set_defaults(command="trust", module="commands")


class _Version(argparse.Action):
    """Print the version; looking it up is not free, so only when asked."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"toolfold {version('toolfold')}")
        parser.exit()
