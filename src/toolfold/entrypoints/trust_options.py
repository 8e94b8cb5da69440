"""The options of `toolfold approve`, `reject` and `policy`. Nothing heavy is imported."""

import argparse
from typing import Any


def add_approvals(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `toolfold approve` and `toolfold reject`."""
    approve = commands.add_parser(
        "approve",
        parents=[shared],
        help="approve a paused run; without RUN, list them",
        description="Approve what a paused run wants to do, and resume it. "
        "Without RUN, list the runs that wait.",
        examples=("toolfold approve", "toolfold approve 6afb0320 --most 50"),
    )
    approve.add_argument(
        "run", nargs="?", metavar="RUN", help="its id, the beginning of it, or `last`"
    )
    approve.add_argument(
        "--most", type=int, metavar="N", help="allow up to N calls (default: those that wait now)"
    )
    approve.add_argument(
        "--always", action="store_true", help="and do not ask about this tool again in this project"
    )
    approve.add_argument("--json", action="store_true", help="print JSON")
    approve.set_defaults(command="approve", module="commands.approve")
    reject = commands.add_parser(
        "reject",
        parents=[shared],
        help="reject what a paused run wants to do",
        description="Reject what a paused run wants to do. The call is not made.",
        examples=("toolfold reject 6afb0320",),
    )
    reject.add_argument("run", metavar="RUN", help="its id, the beginning of it, or `last`")
    reject.add_argument("--json", action="store_true", help="print JSON")
    reject.set_defaults(command="reject", module="commands.approve")


def add_policy(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `toolfold policy`."""
    policy = commands.add_parser(
        "policy",
        help="which tools code may call",
        description="Rules that allow, deny or ask before a tool is called.",
        examples=(
            "toolfold policy",
            "toolfold policy deny 'crm.delete_*'",
            "toolfold policy check crm.delete_contact '{\"id\": 7}'",
        ),
    )
    verbs = policy.add_subparsers(metavar="VERB", prog="toolfold policy")

    def add(name: str, about: str, *examples: str, **options: Any) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = verbs.add_parser(
            name,
            help=about,
            description=f"{about[:1].upper()}{about[1:]}.",
            examples=examples,
            **options,
        )
        parser.set_defaults(command=f"policy_{name}", module="commands.policy")
        return parser

    add("show", "list the rules in their order", "toolfold policy show --json")
    check = add(
        "check", "show which rule applies to a call",
        "toolfold policy check crm.delete_contact '{\"id\": 7}'", parents=[shared],
    )  # fmt: skip
    check.add_argument("tool", metavar="TOOL", help="such as crm.delete_contact")
    check.add_argument("arguments", nargs="?", default="{}", help="its arguments, as JSON")
    check.add_argument("--count", type=int, default=1, help="which call in the run (1, 2, …)")
    check.add_argument("--key", default="", metavar="ID", help="for the holder of this API key")
    for name, about in (
        ("allow", "call a tool without asking"),
        ("deny", "never call a tool"),
        ("ask", "ask before a tool is called"),
        ("unset", "remove rules that allow, deny or ask has set"),
    ):
        parser = add(name, about, f"toolfold policy {name} crm.delete_contact", parents=[shared])
        parser.add_argument(
            "tools", metavar="TOOL", nargs="+", help="such as crm.delete_contact or 'crm.*'"
        )
        parser.set_defaults(command="policy_unset" if name == "unset" else "policy_set", verb=name)
    taken = add(
        "import",
        "take over your client's rules, kept at install",
        "toolfold policy import --dry-run",
    )
    taken.add_argument("--dry-run", action="store_true", help="print them, change nothing")
    for parser in verbs.choices.values():
        parser.add_argument("--json", action="store_true", help="print JSON")
