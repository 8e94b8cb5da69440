"""Arguments of `toolfold privacy`."""

import argparse
from typing import Any


def add_privacy(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `toolfold privacy`."""
    privacy = commands.add_parser(
        "privacy",
        help="personal data that models do not see",
        description="Placeholders such as [EMAIL_1] that stand for personal data.",
        examples=("toolfold privacy status", "toolfold privacy check customers.json"),
    )
    verbs = privacy.add_subparsers(metavar="VERB", prog="toolfold privacy")

    def add(name: str, about: str, *examples: str, **options: Any) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = verbs.add_parser(
            name,
            help=about,
            description=f"{about[:1].upper()}{about[1:]}.",
            examples=examples,
            **options,
        )
        parser.set_defaults(command=f"privacy_{name}", module="commands.privacy")
        return parser

    status = add(
        "status", "show what is concealed and which server receives what",
        "toolfold privacy status", parents=[shared],
    )  # fmt: skip
    reveal = add(
        "reveal", "show what placeholders stand for (at a terminal only)",
        "toolfold privacy reveal 'Write to [EMAIL_1]'",
    )  # fmt: skip
    reveal.add_argument("text", metavar="TEXT", help="text with placeholders; - for standard input")
    check = add(
        "check", "show a file or text as a model would see it; nothing is stored",
        "toolfold privacy check customers.json",
        "toolfold privacy check --text 'Call Ada at +44 20 7946 0991'",
    )  # fmt: skip
    check.add_argument("file", nargs="?", metavar="FILE", help="a file; - for standard input")
    check.add_argument("--text", help="a text instead of a file")
    for parser in (status, check):
        parser.add_argument("--json", action="store_true", help="print JSON")
    forget = add(
        "forget", "erase what the placeholders of this project stand for",
        "toolfold privacy forget --yes",
    )  # fmt: skip
    forget.add_argument("--yes", "-y", action="store_true", help="do not ask")
    forget.add_argument(
        "--unused-days",
        type=float,
        metavar="DAYS",
        help="of all projects: placeholders unused for so many days",
    )
