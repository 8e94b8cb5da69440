"""Decide about a call, and say why. Pure.

The user's rules are asked in their order, and then the built-in ones; the first that fits decides.
Other layers, a project's or a key's, decide in the same way by themselves, and the strictest
decision counts: they may tighten what the user allows, and never loosen it.

Where it cannot be told whether a rule fits, one that asks or denies fits and one that allows does
not. That is so for a condition on an argument that is not there. It is also so for annotations
that a server leaves out: not to say `read_only` or `idempotent` is to say no. `destructive` is
taken at its word: where nothing is said, only a rule that names `"unknown"` fits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from toolfold.jsontypes import JsonObject
from toolfold.policy.rules import BUILTIN, Action, Rule, fits_pattern

_ABOUT: Final = "names this tool"


class ToolFacts(NamedTuple):
    """What is known of a tool; of annotations, None is what its server does not say."""

    name: str
    upstream: str
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    other_names: tuple[str, ...] = ()
    """How else rules may spell it: as its server does, `crm.delete-contact`."""
    definition: str = ""
    """What it says of itself; empty where nobody has to compare it. No rule is about it."""


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What is known of one call."""

    arguments: JsonObject
    count: int = 1
    """Which call of the tool in its run it is (1, 2, …)."""
    tainted: str = ""
    """Which argument holds what an untrusted upstream answered; empty if none does."""


class Policy(NamedTuple):
    """The user's rules, and layers of others that may only tighten them."""

    user: tuple[Rule, ...] = ()
    layers: tuple[tuple[Rule, ...], ...] = ()
    built_in: tuple[Rule, ...] = BUILTIN
    """What holds where no rule of the user's fits; nothing where nobody is to be asked by it."""
    is_careful: bool = False
    """Whether what is not written in a program counts as tainted: see `careful` in the rules."""
    may_trust_client: bool = False
    """Whether what a local client lets its user decide counts, where its user cannot be asked."""


class Decision(NamedTuple):
    """What happens to a call, by which rule, and why; without a rule it is allowed."""

    action: Action
    rule: Rule | None
    why: str


class Ruling:
    """What the rules of a policy say of one tool: those about others are left out."""

    def __init__(self, policy: Policy, tool: ToolFacts) -> None:
        self._layers = [
            [(rule, reason_of(rule)) for rule in rules if _is_about(rule, tool)[0]]
            for rules in ((*policy.user, *policy.built_in), *policy.layers)
        ]
        is_fixed = not any(_is_conditional(rule) for layer in self._layers for rule, _ in layer)
        self._fixed = self._decided(CallFacts({}, 1, "")) if is_fixed else None

    @property
    def is_open(self) -> bool:
        """Whether every call of the tool is allowed, whatever it is like."""
        return all(rule.action is Action.ALLOW for layer in self._layers for rule, _ in layer)

    def decide(self, arguments: JsonObject, count: int = 1, *, tainted: str = "") -> Decision:
        """Decide about the `count`-th call of the tool in a run.

        `tainted` says which argument holds what an untrusted upstream answered, if one does.
        """
        return self._fixed or self._decided(CallFacts(arguments, count, tainted))

    def _decided(self, call: CallFacts) -> Decision:
        decisions = [_first(layer, call) for layer in self._layers]
        return max(decisions, key=_strictness)


def decide(policy: Policy, tool: ToolFacts, arguments: JsonObject, count: int = 1) -> Decision:
    """Decide about the `count`-th call of a tool in a run."""
    return Ruling(policy, tool).decide(arguments, count)


def is_always_denied(policy: Policy, tool: ToolFacts) -> bool:
    """Whether no call of a tool can be allowed, whatever its arguments: it need not be shown."""
    return any(_is_denied_by(rules, tool) for rules in (policy.user, *policy.layers))


def explain(
    policy: Policy, tool: ToolFacts, arguments: JsonObject, count: int = 1
) -> Iterator[str]:
    """Yield a line for each rule that was asked, and one for what came of it."""
    for rules in ((*policy.user, *policy.built_in), *policy.layers):
        for rule in rules:
            is_fit, why = _fit(rule, tool, CallFacts(arguments, count))
            yield f"{'applies' if is_fit else 'does not apply'}: {rule} ({why})"
            if is_fit:
                break
    decision = decide(policy, tool, arguments, count)
    yield f"{tool.name}: {decision.action.name.lower()}, {decision.why}"


def _first(rules: Sequence[tuple[Rule, str]], call: CallFacts) -> Decision:
    for rule, named in rules:
        is_fit, why = _holds(rule, call)
        if is_fit:
            return Decision(rule.action, rule, named if why == _ABOUT else f"{named} ({why})")
    return Decision(Action.ALLOW, None, "no rule fits")


def reason_of(rule: Rule) -> str:
    """Return how a decision by a rule begins to say why."""
    return "its server marks it as destructive" if rule in BUILTIN else f"by {rule}"


def _fit(rule: Rule, tool: ToolFacts, call: CallFacts) -> tuple[bool, str]:
    is_about, why = _is_about(rule, tool)
    return _holds(rule, call) if is_about else (False, why)


def _holds(rule: Rule, call: CallFacts) -> tuple[bool, str]:
    """Whether a call is as a rule says, of a tool that the rule is about."""
    if rule.more_than is not None and call.count <= rule.more_than:
        return False, f"this is call {call.count} of the run"
    if rule.tainted and not call.tainted:
        return False, "no argument is known to come from an untrusted server"
    if rule.when is None:
        return True, call.tainted if rule.tainted else _ABOUT
    truth = rule.when.holds_for(call.arguments)
    if truth is None:
        return (
            rule.action is not Action.ALLOW,
            "its condition cannot be decided from these arguments",
        )
    return truth, f"its condition {'holds' if truth else 'does not hold'}"


def _is_about(rule: Rule, tool: ToolFacts) -> tuple[bool, str]:
    """Whether a rule is about a tool at all, whatever it is called with."""
    if rule.tools and not _fits_any((tool.name, *tool.other_names), rule.tools):
        return False, "names other tools"
    modules = [name.partition(".")[0] for name in (tool.name, *tool.other_names)]
    if rule.upstreams and not _fits_any((tool.upstream, *modules), rule.upstreams):
        return False, "names other servers"
    for name, truths in rule.annotations:
        said: bool | None = getattr(tool, name)
        means_no = said is None and name != "destructive" and rule.action is not Action.ALLOW
        if said not in truths and not (means_no and False in truths):
            if said is None:
                return False, f"its server does not mark it {name.replace('_', '-')}"
            return False, f"{name} is {'yes' if said else 'no'}"
    return True, _ABOUT


def _fits_any(names: Sequence[str], patterns: Sequence[str]) -> bool:
    return any(fits_pattern(name, pattern) for name in names for pattern in patterns)


def _is_denied_by(rules: Sequence[Rule], tool: ToolFacts) -> bool:
    for rule in rules:
        if not _is_about(rule, tool)[0]:
            continue
        if rule.action is not Action.DENY:
            return False
        if not _is_conditional(rule):
            return True
    return False


def _is_conditional(rule: Rule) -> bool:
    """Whether a rule is about some calls of a tool, and not about the tool."""
    return rule.when is not None or bool(rule.more_than) or rule.tainted


def _strictness(decision: Decision) -> tuple[Action, bool]:
    """Return how strict a decision is; who decided about a tool has not decided about a call."""
    return decision.action, decision.rule is not None and _is_conditional(decision.rule)
