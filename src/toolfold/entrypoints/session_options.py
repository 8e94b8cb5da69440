"""The options of `toolfold runs` and `toolfold sessions`. Nothing heavy is imported."""

import argparse
from typing import Any


def add_runs(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `toolfold runs`."""
    runs = commands.add_parser(
        "runs", parents=[shared], help="what ran, one run in full, the audit log"
    )
    runs.add_argument(
        "words",
        nargs="*",
        metavar="[show] ID | resume ID | replay ID | verify | export",
        help="the run to show, go on with or see again, by the beginning of its id; none lists the "
        "newest; or the audit log to verify or export",
    )
    runs.add_argument("--limit", type=int, default=20, help="how many to list (default 20)")
    doubt = runs.add_mutually_exclusive_group()
    doubt.add_argument(
        "--repeat", action="store_true", help="resume: make again what may have been done already"
    )
    doubt.add_argument("--skip", action="store_true", help="resume: take it as done")
    runs.add_argument(
        "--since", metavar="WHEN", help="export: a date, or how long ago: 12h, 7d, 2w"
    )
    runs.add_argument("--out", metavar="FILE", help="export: write a file, not standard output")
    runs.add_argument(
        "--accept", action="store_true", help="verify: take the log to end where it does now"
    )
    runs.add_argument("--json", action="store_true", help="print JSON")
    runs.set_defaults(command="runs", module="commands.runs")


def add_sessions(commands: Any) -> None:
    """Add `toolfold sessions`."""
    sessions = commands.add_parser("sessions", help="the variables that runs of agents share")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--json", action="store_true", help="print JSON")
    kinds = sessions.add_subparsers(metavar="list|show|reset|fork", prog="toolfold sessions")
    sessions.set_defaults(command="sessions_list", module="commands.sessions", json=False)
    listing = kinds.add_parser("list", parents=[shared], help="all of this project, a line each")
    listing.set_defaults(command="sessions_list")
    show = kinds.add_parser("show", parents=[shared], help="what one holds")
    show.set_defaults(command="sessions_show")
    reset = kinds.add_parser("reset", help="forget its variables")
    reset.set_defaults(command="sessions_reset")
    fork = kinds.add_parser("fork", help="make a copy under another name")
    fork.set_defaults(command="sessions_fork")
    for kind in (show, reset, fork):
        kind.add_argument("name")
    fork.add_argument("copy")
