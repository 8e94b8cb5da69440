"""Rules: ordered, the first that fits decides."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, get_args

from toolfold.errors import ConfigError
from toolfold.jsontypes import JsonObject
from toolfold.policy.conditions import Condition, Undecided

Action = Literal["allow", "ask", "deny"]

_STRICTER: Final[Mapping[Action, int]] = {"allow": 0, "ask": 1, "deny": 2}
_HINTS: Final = ("read_only", "destructive", "idempotent")
_MOST_RULES: Final = 1_000
_MOST_NAME_CHARS: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What rules can know of a tool."""

    path: str
    """As code calls it: `crm.delete_contact`."""
    server: str
    """As the configuration names it."""
    read_only: bool = False
    destructive: bool | None = None
    idempotent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. What it does not say fits everything."""

    action: Action
    tool: str = "*"
    """A pattern: `crm.delete_*`."""
    server: str = "*"
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    when: Condition | None = None
    more_than: int = 0
    """Only for calls after so many of the tool in one run."""
    source: str = "built in"
    """Where it stands, for people."""

    def fits(self, facts: Facts, arguments: JsonObject | None, count: int) -> bool:
        """Whether it speaks of the call that is the `count`th of its tool in a run.

        Where arguments are not known, its condition may hold. One that says nothing of the
        arguments closes what it would close, and opens nothing.
        """
        if not (fnmatchcase(facts.path, self.tool) and fnmatchcase(facts.server, self.server)):
            return False
        for said, known in (
            (self.read_only, facts.read_only),
            (self.destructive, bool(facts.destructive)),
            (self.idempotent, facts.idempotent),
        ):
            if said is not None and said != known:
                return False
        return count > self.more_than and self._condition_holds(arguments)

    def _condition_holds(self, arguments: JsonObject | None) -> bool:
        if self.when is None:
            return True
        if arguments is None:
            return self.action != "allow"
        try:
            return self.when.holds(arguments)
        except Undecided:
            return self.action != "allow"

    def __str__(self) -> str:
        said = [f"{self.action} {self.tool}"]
        if self.server != "*":
            said.append(f"of {self.server}")
        hints = {name: getattr(self, name) for name in _HINTS}
        said += [
            name if value else f"not {name}" for name, value in hints.items() if value is not None
        ]
        if self.when is not None:
            said.append(f"when {self.when.text}")
        if self.more_than:
            said.append(f"after {self.more_than} in one run")
        return f"{' '.join(said)} ({self.source})"


DEFAULTS: Final = (
    Rule(action="allow", server="toolfold:*"),
    Rule(action="ask", destructive=True),
    Rule(action="allow"),
)
"""What holds where no other rule speaks: tools of servers that say to destroy are asked about. What
is built in keeps what it takes away."""

_NEVER: Final = Rule(action="allow", source="no rule of this list")


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a call, and why."""

    action: Action
    rule: Rule


class Policy:
    """Lists of rules; in each the first that fits decides, and of the lists the strictest.

    So a project, or a key, can close what the user leaves open, and open nothing.
    """

    def __init__(self, user: Iterable[Rule] = (), *others: Iterable[Rule]) -> None:
        self._lists = [[*user, *DEFAULTS], *([*rules, _NEVER] for rules in others)]

    def decide(self, facts: Facts, arguments: JsonObject | None, count: int = 1) -> Decision:
        """Decide about a call: the `count`th of its tool in a run."""
        found = [
            next(rule for rule in rules if rule.fits(facts, arguments, count))
            for rules in self._lists
        ]
        rule = max(found, key=lambda rule: _STRICTER[rule.action])
        return Decision(rule.action, rule)

    def denies_always(self, facts: Facts) -> bool:
        """Whether no call of a tool can ever be made: then it need not be shown."""
        for rules in self._lists:
            for rule in rules:
                if rule.more_than or (rule.when is not None):
                    if rule.action != "deny" and rule.fits(facts, None, _MOST_RULES * _MOST_RULES):
                        break
                    continue
                if rule.fits(facts, {}, 1):
                    if rule.action == "deny":
                        return True
                    break
        return False


def read_rules(values: Any, source: str) -> list[Rule]:
    """Read rules as TOML has them.

    Raises:
        ConfigError: One cannot be understood; the message says which.
    """
    if not isinstance(values, list) or len(values) > _MOST_RULES:
        raise ConfigError(f"rules is a list of tables, at most {_MOST_RULES}")
    rules = []
    for number, value in enumerate(values, 1):
        try:
            rules.append(_read_rule(value, f"{source}, rule {number}"))
        except ConfigError as error:
            raise ConfigError(f"rule {number}: {error}") from error
    return rules


def _read_rule(value: Any, source: str) -> Rule:
    if not isinstance(value, dict):
        raise ConfigError("is not a table")
    known = {each.name for each in fields(Rule)} - {"source"}
    if unknown := sorted(set(value) - known):
        raise ConfigError(f"{unknown[0]!r} is unknown; there are {', '.join(sorted(known))}")
    given = dict(value)
    _check_values(given)
    if "when" in given:
        given["when"] = Condition(given["when"])
    return Rule(**given, source=source)


def _check_values(given: dict[str, Any]) -> None:
    more_than = given.get("more_than", 0)
    problems = {
        "action is allow, ask or deny": given.get("action") not in get_args(Action),
        "tool is a pattern such as 'crm.delete_*'": not _is_pattern(given.get("tool", "*")),
        "server is a pattern of names": not _is_pattern(given.get("server", "*")),
        f"{', '.join(_HINTS)} are true or false": any(
            not isinstance(given.get(name, True), bool) for name in _HINTS
        ),
        "more_than is a number of calls": type(more_than) is not int or more_than < 0,
        "when is a condition such as 'amount > 100'": not isinstance(given.get("when", ""), str),
    }
    for problem, is_there in problems.items():
        if is_there:
            raise ConfigError(problem)


def _is_pattern(text: object) -> bool:
    return isinstance(text, str) and 0 < len(text) <= _MOST_NAME_CHARS
