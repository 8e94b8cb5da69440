"""The options of `toolfold runs` and `toolfold sessions`. Nothing heavy is imported."""

import argparse
from typing import Any

from toolfold.entrypoints.parser import positive


def add_runs(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `toolfold runs`."""
    runs = commands.add_parser(
        "runs",
        help="list, show and resume runs; verify the audit log",
        description="The runs of code, newest first; `toolfold runs ID` shows one.",
        examples=(
            "toolfold runs",
            "toolfold runs 6afb0320",
            "toolfold runs resume 6afb0320",
            "toolfold runs verify",
        ),
    )
    verbs = runs.add_subparsers(metavar="VERB", prog="toolfold runs")

    def add(name: str, about: str, *examples: str, **options: Any) -> argparse.ArgumentParser:
        command = options.pop("command", f"runs_{name}")
        module = options.pop("module", "commands.runs")
        parser: argparse.ArgumentParser = verbs.add_parser(
            name, help=about, description=f"{_sentence(about)}", examples=examples, **options
        )
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.set_defaults(command=command, module=module)
        return parser

    listing = add("list", "list the newest runs", "toolfold runs list --limit 5")
    listing.add_argument("--limit", type=positive, default=20, help="how many (default 20)")
    show = add("show", "show a run with its calls", "toolfold runs show 6afb0320")
    resume = add(
        "resume",
        "resume a run after a crash or a pause; nothing is done twice",
        "toolfold runs resume 6afb0320",
        "toolfold runs resume 6afb0320 --skip",
        parents=[shared],
    )
    doubt = resume.add_mutually_exclusive_group()
    doubt.add_argument(
        "--repeat", action="store_true", help="make the calls again that may have been made"
    )
    doubt.add_argument("--skip", action="store_true", help="take such calls as made")
    replay = add(
        "replay", "show a run step by step from its record; nothing is called",
        "toolfold runs replay 6afb0320", command="replay", module="commands.replay",
    )  # fmt: skip
    for parser in (show, resume, replay):
        parser.add_argument("run", metavar="RUN", help="its id, the beginning of it, or `last`")
    verify = add(
        "verify",
        "verify the audit log",
        "toolfold runs verify",
        "toolfold runs verify audit.jsonl",
        command="verify",
        module="commands.audit",
    )
    verify.add_argument(
        "--accept", action="store_true", help="accept the log as ending where it ends now"
    )
    verify.add_argument(
        "file", nargs="?", metavar="FILE", help="an export to verify (default: the log itself)"
    )
    export = add(
        "export", "write the audit log as lines of JSON",
        "toolfold runs export --since 7d --out audit.jsonl",
        command="export", module="commands.audit",
    )  # fmt: skip
    export.add_argument("--since", metavar="WHEN", help="a date, today, yesterday, 12h, 7d, 2w")
    export.add_argument("--out", metavar="FILE", help="a file (default: standard output)")


def add_sessions(commands: Any) -> None:
    """Add `toolfold sessions`."""
    sessions = commands.add_parser(
        "sessions",
        help="variables that runs share",
        description="Sessions of this project: variables, functions and imports kept between runs.",
        examples=("toolfold sessions", "toolfold run --session report -c 'x = 1'"),
    )
    verbs = sessions.add_subparsers(metavar="VERB", prog="toolfold sessions")

    def add(name: str, about: str, *examples: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = verbs.add_parser(
            name, help=about, description=_sentence(about), examples=examples
        )
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.set_defaults(command=f"sessions_{name}", module="commands.sessions")
        if name != "list":
            parser.add_argument("name", metavar="NAME", help="the session")
        return parser

    add("list", "list the sessions of this project", "toolfold sessions list --json")
    add("show", "show what a session holds", "toolfold sessions show report")
    fork = add("fork", "copy a session", "toolfold sessions fork report report-2")
    fork.add_argument("copy", metavar="COPY", help="the name of the copy")
    for parser in (
        add("reset", "clear the variables of a session", "toolfold sessions reset report --yes"),
        add("delete", "delete a session", "toolfold sessions delete report --yes"),
    ):
        parser.add_argument("--yes", "-y", action="store_true", help="do not ask")


def _sentence(about: str) -> str:
    return f"{about[:1].upper()}{about[1:]}."
