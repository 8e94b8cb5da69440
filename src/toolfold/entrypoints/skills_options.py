"""The options of `toolfold skills`."""

import argparse
from typing import Any


def add_skills(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `toolfold skills` to the commands."""
    skills = commands.add_parser("skills", help="functions that agents saved: read, edit, test")
    kinds = skills.add_subparsers(
        metavar="list|show|edit|test|export|diff|rollback|delete",
        required=True,
        prog="toolfold skills",
    )
    listing = kinds.add_parser("list", help="every skill, a line each, and what is broken")
    listing.add_argument("--json", action="store_true", help="print JSON")
    kinds.add_parser("show", help="how it is called, how it has done, its code")
    kinds.add_parser("edit", parents=[shared], help="open it in $EDITOR, and check it after")
    test = kinds.add_parser(
        "test", parents=[shared], help="run it against recorded answers; no server is needed"
    )
    export = kinds.add_parser("export", help="copy its folder, or make a zip of it")
    diff = kinds.add_parser("diff", help="what changed between two versions")
    rollback = kinds.add_parser("rollback", help="bring a version back, by default the one before")
    kinds.add_parser("delete", help="take it away; its versions stay")
    for kind, parser in kinds.choices.items():
        module = "commands.skill_checks" if kind in {"edit", "test"} else "commands.skills"
        parser.set_defaults(command=f"skills_{kind}", module=module)
        if kind not in {"list", "test"}:
            parser.add_argument("name", help="the skill: weekly_report, memory.backup_all")
    test.add_argument("name", nargs="*", help="which skills; by default all that were recorded")
    export.add_argument("target", help="a directory, or a file that ends with .zip")
    diff.add_argument("old", nargs="?", type=int, help="a version (default: the one before)")
    diff.add_argument("new", nargs="?", type=int, help="a version (default: the newest)")
    rollback.add_argument("version", nargs="?", type=int, help="its number")
