"""Arguments of `toolfold privacy`."""

import argparse
from typing import Any


def add_privacy(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `toolfold privacy`."""
    privacy = commands.add_parser(
        "privacy",
        help="personal data that models do not see",
        description="Keep personal data in answers of servers from models: they see placeholders "
        "such as [EMAIL_1], and tools get the real values back. It is off until you switch it on.",
        examples=(
            "toolfold privacy check customers.json",
            "toolfold privacy on",
            "toolfold privacy status",
        ),
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

    for mode, about in (
        ("on", "switch it on for you, in every project"),
        ("off", "switch it off again; a project's own file may still switch it on"),
    ):
        switch = add(mode, about, f"toolfold privacy {mode}")
        switch.set_defaults(command="privacy_set", mode=mode)
        switch.add_argument("--json", action="store_true", help="print JSON")
    status = add(
        "status", "show what is concealed and which server receives what",
        "toolfold privacy status", parents=[shared],
    )  # fmt: skip
    reveal = add(
        "reveal", "show the values of placeholders (at a terminal only)",
        "toolfold privacy reveal 'Write to [EMAIL_1]'",
    )  # fmt: skip
    reveal.add_argument("text", metavar="TEXT", help="text with placeholders; - for standard input")
    check = add(
        "check", "show a file or text as models see it with privacy on; nothing is stored",
        "toolfold privacy check customers.json",
        "toolfold privacy check --text 'Call Ada at +44 20 7946 0991'",
    )  # fmt: skip
    check.add_argument("file", nargs="?", metavar="FILE", help="a file; - for standard input")
    check.add_argument("--text", help="a text instead of a file")
    forget = add(
        "forget", "erase the values of this project's placeholders",
        "toolfold privacy forget --yes",
    )  # fmt: skip
    forget.add_argument("--yes", "-y", action="store_true", help="do not ask")
    forget.add_argument(
        "--unused-days",
        type=float,
        metavar="DAYS",
        help="of all projects: placeholders unused for so many days",
    )
    for parser in (status, check, forget):
        parser.add_argument("--json", action="store_true", help="print JSON")
