"""For whom something is done: what every step at the border knows."""

from dataclasses import dataclass
from typing import Literal

from toolfold.catalog.questions import Elicitor
from toolfold.execution.trust.dry_run import DryRun
from toolfold.execution.trust.guard import CallGuard
from toolfold.execution.trust.privacy_border import PrivacyBorder
from toolfold.execution.trust.taint import TaintTracker
from toolfold.journal.replay import Replay
from toolfold.journal.run_writer import JournaledRun
from toolfold.journal.runs import Origin

Door = Literal["code", "mcp", "rest", "memory", "script", "hook", "terminal"]
"""By which way somebody came: guest code; a client that asks by itself; a program over REST; a
client that sees memory alone; a script of the user's that asks memory; a hook of a client; the
user, with a command at a terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """For whom, by which door and in which run something is done, and whether one can be asked."""

    origin: Origin
    door: Door
    run: JournaledRun
    guard: CallGuard
    """What the rules say, compiled for this run."""
    privacy: PrivacyBorder
    taint: TaintTracker
    ask: Elicitor | None = None
    """Puts a question to the person at the client; None where nobody can be asked."""
    dry_run_log: DryRun | None = None
    replay: Replay | None = None
