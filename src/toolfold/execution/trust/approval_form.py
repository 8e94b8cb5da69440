"""What the user is asked about calls of a tool, how the answer is read, rules of clients."""

import json
import re
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import islice
from typing import Final, NamedTuple

from toolfold.catalog.names import module_names
from toolfold.catalog.questions import Question, Reply
from toolfold.config.config import Config
from toolfold.errors import count, shown
from toolfold.execution.trust.approvals import Approval, ApprovalRequest, approvals_of
from toolfold.jsontypes import Json, JsonObject
from toolfold.policy.decide import reason_of
from toolfold.policy.files import PolicyFiles, read_policy
from toolfold.policy.rules import BUILTIN, Rule

MAX_APPROVED_CALLS: Final = 10_000

_SHOWN_CHARS: Final = 300
_SHOWN_ARGUMENTS: Final = 20
_SHOWN_VALUE_CHARS: Final = 60
_SHOWN_RULE_CHARS: Final = 600


def _form(known: int, *, may_stay: bool) -> JsonObject:
    """Return the form; by default, what waits now is approved and no more."""
    most: JsonObject = {
        "type": "integer",
        "title": "How many times in this run",
        "minimum": 1,
        "maximum": MAX_APPROVED_CALLS,
        "default": known,
    }
    approve: JsonObject = {"type": "boolean", "title": "Allow it", "default": False}
    always: JsonObject = {"type": "boolean", "title": "Always in this project", "default": False}
    properties: JsonObject = {"approve": approve, "most": most}
    return {
        "type": "object",
        "properties": {**properties, "always": always} if may_stay else properties,
        "required": ["approve"],
    }


def question(
    wanted: ApprovalRequest, samples: list[JsonObject], *, may_stay: bool = False
) -> Question:
    """Return what a client puts to its user, who may allow the tool for good if it `may_stay`."""
    calls = count(wanted.known, "call")
    message = (
        f"The agent's code wants to call {wanted.tool}: {calls} so far, more may follow in this "
        f"run.\nReason: {shown_rule(wanted.rule)}\n"
    )
    message += "\n".join(f"  {shown_arguments(sample)}" for sample in samples)
    return Question(
        asker="toolfold", message=message, schema=_form(wanted.known, may_stay=may_stay)
    )


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


def is_for_good(reply: Reply) -> bool:
    """Whether a user who approves does so for all later runs in the project, too."""
    content = reply.content or {}
    is_approved = reply.action == "accept" and content.get("approve") is True
    return is_approved and content.get("always") is True


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
        yield f"and {count(len(arguments) - _SHOWN_ARGUMENTS, 'more argument')}, not shown"


def _head(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_VALUE_CHARS else f"{text[:_SHOWN_VALUE_CHARS]}…"


@lru_cache(maxsize=256)  # a loop is decided about by one rule
def shown_rule(rule: str) -> str:
    """Return a rule as a person sees it: on one line, whatever guest code put into it."""
    return shown(rule, max_chars=_SHOWN_RULE_CHARS)


def waiting_text(approval: Approval) -> str:
    """Say what a run waits for, and how it is decided."""
    calls = "" if approval.known == 1 else f", {count(approval.known, 'call')}"
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
        return f"{tool} was not approved in time and was not called. Ask the user what they want."
    if approval.state == "approved":
        return f"The user approved {tool}: `runs.resume({attempt!r})` resumes the run."
    return waiting_text(approval)


def rejected_text(tool: str) -> str:
    """Say that the user does not want a tool to be called."""
    return (
        f"The user rejected {tool}: it was not called. Do not try to get the same by other tools; "
        "ask the user what they want."
    )


class RuleLine(NamedTuple):
    """One rule as people read it."""

    action: str
    text: str
    """What it is about."""

    origin: str
    """Where it stands."""

    reason: str = ""
    """How decisions by it begin to say why, in the journal."""


def policy_files(config: Config) -> PolicyFiles:
    """Return the files that rules stand in."""
    return PolicyFiles(config, modules_of=partial(modules_of, config))


def modules_of(config: Config, server: str) -> list[str]:
    """Return the modules that may be a server of a client: `crm`, and `crm_2` if it was taken."""
    module = module_names([server])[server]
    modules = module_names(each.name for each in config.servers).values()
    renamed = re.compile(rf"{re.escape(module)}_[0-9]+")
    return [module, *filter(renamed.fullmatch, modules)]


def rules_in_force(config: Config) -> Iterator[RuleLine]:
    """Yield every rule in the order in which they are asked.

    Raises:
        ConfigError: A file of rules cannot be read.
    """
    for scope, tool in approvals_of(config).always_allowed(config.namespace):
        key = scope.removeprefix(config.namespace).replace(" key:", " for the key ")
        yield RuleLine("allow", tool, f"always, as you said{key}")
    files = policy_files(config)
    for path in files.paths:
        file = read_policy(path)
        yield from map(_line, (*file.rules, *file.careful[-1:]))
        for key, rules in file.keys.items():
            for line in map(_line, rules):
                yield line._replace(text=f"{line.text} (key {key})")
    yield from map(_line, files.client_rules())
    yield from map(_line, BUILTIN)


def _line(rule: Rule) -> RuleLine:
    action = rule.action.name.lower()
    text = str(rule).removeprefix(f"{rule.origin}: ").removeprefix(f"{action} ")
    text = re.sub(r"that is (\w+): yes", r"marked \1 by its server", text)
    return RuleLine(action, text, rule.origin, shown_rule(reason_of(rule)))
