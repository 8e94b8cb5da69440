"""`toolfold approve` and `toolfold reject`: what only the user decides, at a terminal."""

import dataclasses
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from toolfold.config.config import Config
from toolfold.entrypoints.commands.options import config_of, config_of_run
from toolfold.entrypoints.screen import Cell, print_json, print_line, tell
from toolfold.entrypoints.terminal import local_time
from toolfold.errors import ConfigError, count, shown
from toolfold.execution.report import RunReport
from toolfold.execution.trust.approval_form import MAX_APPROVED_CALLS
from toolfold.execution.trust.approvals import (
    Approval,
    Approvals,
    approvals_of,
    decided,
)
from toolfold.journal.decisions import DecidedAction
from toolfold.journal.journal import journal_of
from toolfold.journal.runs import Origin

if TYPE_CHECKING:
    from toolfold.app import App

_SHOWN_CHARS = 500


def approve(arguments: Namespace) -> int:
    """List what waits, or approve it and go on with the run."""
    config = config_of(arguments)
    approvals = approvals_of(config)
    if arguments.run is None:
        return _list(arguments, approvals)
    approval = _find(approvals, arguments.run)
    begun = Origin(client=approval.client, project=approval.project)
    run_config = config_of_run(arguments, config, approval.attempt, begun)
    most = approval.known if arguments.most is None else arguments.most
    if not 1 <= most <= MAX_APPROVED_CALLS:
        raise ConfigError(f"--most takes a number from 1 to {MAX_APPROVED_CALLS}, not {most}.")
    _describe(approval)
    if not _is_sure(f"Allow up to {count(most, 'call')}?" if most > 1 else "Allow this call?"):
        print("Nothing was decided.")
        return 1
    return _continue_run(arguments, run_config, approval, most)


def _continue_run(arguments: Namespace, config: Config, approval: Approval, most: int) -> int:
    from toolfold.entrypoints.commands import local  # heavy, and only this needs it

    async def action(app: "App") -> int:
        result = await app.runs.approve(
            approval, most=most, always=arguments.always, by="a terminal"
        )
        if isinstance(result, RunReport):
            return local.print_result(arguments, result)
        print("Approved. The run continues.")
        return 0

    return local.with_app(config, action)


def reject(arguments: Namespace) -> int:
    """Refuse what a run wants to do."""
    config = config_of(arguments)
    approvals = approvals_of(config)
    approval = _find(approvals, arguments.run)
    if not arguments.json:
        _describe(approval)
    by = "a terminal" if sys.stdin.isatty() else "a command without a terminal"
    approvals.decide(approval.id, "rejected", most=0, by=by)
    _write_down(config, approval, "rejected", by)
    sentence = f"Rejected: {approval.tool} was not called."
    tell(arguments, sentence, run=approval.attempt, tool=approval.tool)
    return 0


def _find(approvals: Approvals, wanted: str) -> Approval:
    """Return the question of the run whose id begins so; for `last`, the newest one."""
    pending = approvals.pending() if wanted == "last" else []
    newest = max(pending, key=lambda each: each.asked_at, default=None)
    return newest or approvals.find(wanted)


def _write_down(config: Config, approval: Approval, action: DecidedAction, by: str) -> None:
    """Have the journal say what was decided, and by whom."""
    journal_of(config).decide(approval.attempt, decided(approval, action, by=by))


def _list(arguments: Namespace, approvals: Approvals) -> int:
    pending = approvals.pending()
    if arguments.json:
        print_json([dataclasses.asdict(each) for each in pending])
        return 0
    for approval in pending:
        _describe(approval)
    if not pending:
        print("No run is waiting for approval.")
    return 0


def _describe(approval: Approval) -> None:
    until = local_time(approval.expires_at).strftime("%H:%M")
    calls = f"{count(approval.known, 'call')} waiting"
    run, tool = Cell(approval.attempt, "name"), Cell(shown(approval.tool), "strong")
    print_line(run, "  ", tool, f": {calls}, open until {until}")
    print(f"    {shown(approval.arguments, max_chars=_SHOWN_CHARS)}")
    print(f"    {shown(approval.rule, max_chars=_SHOWN_CHARS)}")


def _is_sure(question: str) -> bool:
    """Ask the person at the terminal: what cannot type at one shall not decide.

    Raises:
        ConfigError: There is none.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError(
            "Only a person at a terminal can approve: type this command in one. An agent must not "
            "decide for its user."
        )
    try:
        return input(f"{question} [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:  # nothing more can be typed, and that is no yes
        print()
        return False
