"""The options of `toolfold skills`."""

import argparse
from typing import Any

from toolfold.entrypoints.parser import accept_yes

_VERBS = {
    "list": ("list skills, and what is wrong with broken ones", "list"),
    "show": ("show a skill: signature, results, code, versions", "show weekly_report"),
    "edit": ("open a skill in $EDITOR and check it afterwards", "edit weekly_report"),
    "test": ("run skills against recorded answers, without servers", "test"),
    "export": ("copy a skill's folder, or zip it", "export weekly_report report.zip"),
    "diff": ("show what changed between two versions", "diff weekly_report 1 2"),
    "rollback": ("restore a version (default: the one before)", "rollback weekly_report"),
    "delete": ("delete a skill; `rollback` brings it back", "delete weekly_report"),
}


def add_skills(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `toolfold skills` to the commands."""
    skills = commands.add_parser(
        "skills",
        help="functions that agents saved",
        description="Functions that agents saved for later, as folders that you can commit.",
        examples=("toolfold skills", "toolfold skills show weekly_report"),
    )
    verbs = skills.add_subparsers(metavar="VERB", prog="toolfold skills")
    parsers = {}
    for name, (about, example) in _VERBS.items():
        is_checked = name in {"edit", "test"}
        parser = parsers[name] = verbs.add_parser(
            name,
            parents=[shared] if is_checked else [],
            help=about,
            description=f"{about[:1].upper()}{about[1:]}.",
            examples=(f"toolfold skills {example}",),
        )
        module = "commands.skill_checks" if is_checked else "commands.skills"
        parser.set_defaults(command=f"skills_{name}", module=module)
        if name not in {"list", "test"}:
            parser.add_argument("name", metavar="NAME", help="such as weekly_report")
        if name != "edit":
            parser.add_argument("--json", action="store_true", help="print JSON")
    parsers["test"].add_argument("name", nargs="*", metavar="NAME", help="default: all recorded")
    accept_yes(parsers["delete"])
    parsers["export"].add_argument("target", metavar="TARGET", help="a directory, or a .zip file")
    diff = parsers["diff"]
    diff.add_argument("old", nargs="?", type=int, help="a version (default: the one before)")
    diff.add_argument("new", nargs="?", type=int, help="a version (default: the newest)")
    parsers["rollback"].add_argument("version", nargs="?", type=int, help="its number")
