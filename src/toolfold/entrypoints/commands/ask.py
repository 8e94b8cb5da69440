"""Ask the person at the terminal about calls of a run, where the run waits."""

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import anyio
import anyio.to_thread

from toolfold.catalog.questions import Elicitor, Question, Reply, unanswerable
from toolfold.entrypoints.screen import Cell, print_line
from toolfold.entrypoints.terminal import TerminalInterrupt
from toolfold.execution.trust.approval_form import MAX_APPROVED_CALLS
from toolfold.execution.trust.asked_clients import AUTOMATIC_S

_YES = frozenset({"y", "yes"})
_NO = frozenset({"", "n", "no"})
_ALL = frozenset({"a", "all"})


def terminal_elicitor(paused: Callable[[], AbstractContextManager[None]]) -> Elicitor | None:
    """Return who asks the person at the terminal; None where nobody is there."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None

    async def put(question: Question) -> Reply:
        with paused():
            return await _put(question)

    return Elicitor(user="the terminal", put=put)


async def _put(question: Question) -> Reply:
    properties = (question.schema or {}).get("properties")
    if not isinstance(properties, dict) or "approve" not in properties:
        raise unanswerable(question, "a terminal can only be asked for approval")
    most = properties.get("most")
    known = most.get("default") if isinstance(most, dict) else None
    began = time.monotonic()
    try:
        typed = await anyio.to_thread.run_sync(_typed, question.message)
    except TerminalInterrupt:
        raise unanswerable(question, "the person at the terminal pressed Control-C") from None
    if typed in _YES:
        return Reply(action="accept", content={"approve": True, "most": int(str(known or 1))})
    if typed in _ALL:
        return Reply(action="accept", content={"approve": True, "most": MAX_APPROVED_CALLS})
    # What comes sooner counts as the answer of a program, and this one is a person's.
    await anyio.sleep(max(0.0, AUTOMATIC_S - (time.monotonic() - began)) * 2)
    return Reply(action="decline")


def _typed(message: str) -> str:
    first, _, rest = message.partition("\n")
    print_line(Cell(first, "warn"))
    if rest:
        print(rest)
    while True:
        try:
            typed = input("Allow? [y/N/all] ").strip().lower()
        except EOFError:  # nothing more can be typed, and that is no yes
            print()
            return ""
        if typed in _YES | _ALL | _NO:
            return typed
        print("Type y for this, all for every such call, or n for no.")
