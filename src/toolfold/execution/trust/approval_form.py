"""What the user is asked about calls of a tool, and how the answer is read. Pure."""

import json
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Final

from toolfold.catalog.questions import Question, Reply
from toolfold.config.faults import shown
from toolfold.execution.trust.approvals import Approval, ApprovalRequest
from toolfold.jsontypes import Json, JsonObject

MAX_APPROVED_CALLS: Final = 10_000

_SHOWN_CHARS: Final = 300
_SHOWN_ARGUMENTS: Final = 20
_SHOWN_VALUE_CHARS: Final = 60
_SHOWN_RULE_CHARS: Final = 600


def _form(known: int) -> JsonObject:
    """Return the form; by default, what waits now is approved and no more."""
    most: JsonObject = {
        "type": "integer",
        "title": "How many times in this run",
        "minimum": 1,
        "maximum": MAX_APPROVED_CALLS,
        "default": known,
    }
    approve: JsonObject = {"type": "boolean", "title": "Allow it", "default": False}
    return {
        "type": "object",
        "properties": {"approve": approve, "most": most},
        "required": ["approve"],
    }


def question(wanted: ApprovalRequest, samples: list[JsonObject]) -> Question:
    """Return what a client puts to its user."""
    calls = "1 call" if wanted.known == 1 else f"{wanted.known} calls"
    message = (
        f"The agent's code wants to call {wanted.tool}: {calls} so far, more may follow in this "
        f"run.\nReason: {shown_rule(wanted.rule)}\n"
    )
    message += "\n".join(f"  {shown_arguments(sample)}" for sample in samples)
    return Question(asker="toolfold", message=message, schema=_form(wanted.known))


def approved_calls(reply: Reply, known: int) -> int | None:
    """Return how many calls a user approves, 0 for none; None if they did not decide.

    Where they name no number, it is the calls that wait now.
    """
    content = reply.content or {}
    if reply.action == "decline" or content.get("approve") is False:
        return 0
    if reply.action != "accept" or content.get("approve") is not True:
        return None  # nothing is approved by a form that was not filled in
    most = content.get("most")
    return known if most is None else _most(most)


def _most(value: object) -> int:
    """Return the number that stands in a form; what is no number approves one call."""
    try:
        number = int(float(str(value)))
    except (ValueError, OverflowError):
        return 1
    return max(0, min(number, MAX_APPROVED_CALLS))


def shown_arguments(arguments: JsonObject) -> str:
    """Return arguments as a person sees them: of long ones the head of each, so that none hides."""
    text = json.dumps(arguments, ensure_ascii=False)
    if len(text) > _SHOWN_CHARS:
        text = f"{{{', '.join(_heads(arguments))}}}"
    return shown(text, max_chars=2 * _SHOWN_ARGUMENTS * _SHOWN_VALUE_CHARS + _SHOWN_CHARS)


def _heads(arguments: JsonObject) -> Iterator[str]:
    for name, value in islice(arguments.items(), _SHOWN_ARGUMENTS):
        yield f"{_head(name)}: {_head(value)}"
    if len(arguments) > _SHOWN_ARGUMENTS:
        yield f"and {len(arguments) - _SHOWN_ARGUMENTS} arguments that are not shown"


def _head(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_VALUE_CHARS else f"{text[:_SHOWN_VALUE_CHARS]}…"


@lru_cache(maxsize=256)  # a loop is decided about by one rule
def shown_rule(rule: str) -> str:
    """Return a rule as a person sees it: on one line, whatever guest code put into it."""
    return shown(rule, max_chars=_SHOWN_RULE_CHARS)


def waiting_text(approval: Approval) -> str:
    """Say what a run waits for, and how it is decided."""
    calls = "" if approval.known == 1 else f", {approval.known} calls"
    return (
        f"Needs approval: {approval.tool} {approval.arguments}{calls}: {approval.rule}. The run is "
        "paused before this call and continues from it once approved. Tell the user to run "
        f"`toolfold approve {approval.attempt}` or `toolfold reject {approval.attempt}` in a "
        f"terminal; then `runs.get({approval.attempt!r}, wait_s=0)` shows the result. Other runs "
        "can go on meanwhile."
    )


def standing_text(approval: Approval, *, now: float) -> str:
    """Say how it stands with what a run waits for, which has not gone on since."""
    tool, attempt = approval.tool, approval.attempt
    if approval.state == "rejected":
        return rejected_text(tool)
    if approval.expires_at < now:
        return f"Nobody approved {tool} in time; it was not called. Ask the user what they want."
    if approval.state == "approved":
        return f"The user approved {tool}: `runs.resume({attempt!r})` goes on with the run."
    return waiting_text(approval)


def rejected_text(tool: str) -> str:
    """Say that the user does not want a tool to be called."""
    return (
        f"The user rejected {tool}: it was not called. Do not try to get the same by other tools; "
        "ask the user what they want."
    )
