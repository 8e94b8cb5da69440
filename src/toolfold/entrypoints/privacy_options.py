"""Arguments of `toolfold privacy`."""

import argparse
from typing import Any


def add_privacy(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `toolfold privacy`."""
    privacy = commands.add_parser("privacy", help="personal data that models do not see")
    kinds = privacy.add_subparsers(
        metavar="status|reveal|check|forget", required=True, prog="toolfold privacy"
    )
    status = kinds.add_parser(
        "status", parents=[shared], help="what is concealed, and who may receive it"
    )
    status.set_defaults(command="privacy_status", module="commands.privacy")
    reveal = kinds.add_parser(
        "reveal", help="show what placeholders stand for, to you at a terminal"
    )
    reveal.add_argument("text", help="a text with placeholders, or - for standard input")
    reveal.set_defaults(command="privacy_reveal", module="commands.privacy")
    check = kinds.add_parser("check", help="show what would be concealed; nothing is kept")
    check.add_argument("text", help="a file, a text, or - for standard input")
    check.set_defaults(command="privacy_check", module="commands.privacy")
    forget = kinds.add_parser("forget", help="erase what placeholders of this project stand for")
    forget.add_argument("--yes", action="store_true", help="without asking")
    forget.add_argument(
        "--unused-days",
        type=float,
        metavar="DAYS",
        help="of all projects, those whose placeholders were not used for so long",
    )
    forget.set_defaults(command="privacy_forget", module="commands.privacy")
