"""The options of `toolfold approve`, `reject` and `policy`. Nothing heavy is imported."""

import argparse
from typing import Any


def add_approvals(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `toolfold approve` and `toolfold reject`."""
    approve = commands.add_parser(
        "approve", parents=[shared], help="let a run go on that waits for you; none lists them"
    )
    approve.add_argument("run", nargs="?", help="by the beginning of its id")
    approve.add_argument(
        "--most", type=int, default=100, help="how many calls of the tool (default 100)"
    )
    approve.add_argument(
        "--always", action="store_true", help="and never ask about this tool again here"
    )
    approve.add_argument("--json", action="store_true", help="print JSON")
    approve.set_defaults(command="approve", module="commands.approve")
    reject = commands.add_parser("reject", parents=[shared], help="refuse what a run wants to do")
    reject.add_argument("run", help="by the beginning of its id")
    reject.set_defaults(command="reject", module="commands.approve")


def add_policy(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `toolfold policy`."""
    policy = commands.add_parser("policy", help="which tools code may call, and who is asked")
    kinds = policy.add_subparsers(metavar="show|check|import|ask", prog="toolfold policy")
    policy.set_defaults(command="policy_show", module="commands.policy")
    show = kinds.add_parser("show", help="all rules that hold here, in their order")
    show.set_defaults(command="policy_show")
    check = kinds.add_parser("check", parents=[shared], help="which rule decides about a tool")
    check.add_argument("tool", help="such as crm.delete_contact")
    check.add_argument("arguments", nargs="?", default="{}", help="as JSON")
    check.add_argument("--count", type=int, default=1, help="the how manieth call of a run it is")
    check.add_argument("--key", default="", metavar="ID", help="for the holder of this API key")
    check.set_defaults(command="policy_check")
    taken = kinds.add_parser("import", help="take over your client's rules, kept when installing")
    taken.add_argument("--dry-run", action="store_true", help="only print them")
    taken.set_defaults(command="policy_import")
    again = kinds.add_parser("ask", help="ask about a tool again that is always allowed")
    again.add_argument("tool")
    again.set_defaults(command="policy_ask")
