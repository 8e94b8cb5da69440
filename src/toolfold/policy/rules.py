"""Rules: what they say, and how they are read from settings. Pure.

```toml
[[policy]]
action = "ask"                      # allow, ask or deny
tools = ["github.*", "*.delete_*"]  # any of these; all tools where nothing is said
upstreams = ["github"]
read_only = false                   # or true, "unknown", or a list; destructive and idempotent too
when = "amount > 100"
more_than = 20                      # from the 21st call of the tool in one run on
tainted = true                      # where an argument holds what an untrusted upstream answered
```
"""

import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from toolfold.errors import ConfigError, count
from toolfold.jsontypes import Json
from toolfold.policy.conditions import Condition, parse

MAX_RULES: Final = 500
MAX_PATTERNS: Final = 100
ANNOTATIONS: Final = ("read_only", "destructive", "idempotent")
_PATTERN: Final = re.compile(r"[\w.*-]{1,200}")
_TRUTHS: Final[Mapping[object, bool | None]] = {True: True, False: False, "unknown": None}
_KEYS: Final = {"action", "tools", "upstreams", "when", "more_than", "tainted", *ANNOTATIONS}


class Action(IntEnum):
    """What happens to a call; the greater is the stricter."""

    ALLOW = 0
    ASK = 1
    DENY = 2


class Rule(NamedTuple):
    """What happens to calls that fit all that the rule says; what it does not say fits any."""

    action: Action
    tools: tuple[str, ...] = ()
    upstreams: tuple[str, ...] = ()
    annotations: tuple[tuple[str, tuple[bool | None, ...]], ...] = ()
    when: Condition | None = None
    more_than: int | None = None
    tainted: bool = False
    origin: str = "built-in rule"

    def __str__(self) -> str:
        parts = [f"{self.action.name.lower()} {', '.join(self.tools) or 'every tool'}"]
        parts += [f"of {', '.join(self.upstreams)}"] if self.upstreams else []
        words = {True: "yes", False: "no", None: "unknown"}
        for name, truths in self.annotations:
            parts.append(f"that is {name}: {' or '.join(words[each] for each in truths)}")
        parts += [f"when {self.when.text}"] if self.when else []
        if self.more_than is not None:
            parts.append(f"beyond {count(self.more_than, 'call')} in one run")
        parts += ["given what an untrusted upstream answered"] if self.tainted else []
        return f"{self.origin}: {' '.join(parts)}"


CAREFUL: Final = "careful"
"""The preset: `careful = "ask"`, or "deny", before the rules of a file."""

BUILTIN: Final = (Rule(Action.ASK, annotations=(("destructive", (True,)),)),)
"""What holds where no rule of the user's fits: what calls itself destructive is asked about."""


def read_rules(values: Json, *, origin: str) -> tuple[Rule, ...]:
    """Return the rules that stand in settings, in their order; `origin` says where that is.

    Raises:
        ConfigError: One of them cannot be read. It is named by its place, from 1 on.
    """
    if not isinstance(values, list) or len(values) > MAX_RULES:
        raise ConfigError(f"{origin}: `policy` must be a list of at most {MAX_RULES} rules.")
    return tuple(_read(value, f"{origin}, rule {n}") for n, value in enumerate(values, start=1))


def careful(action: Json, rules: Sequence[Rule], *, origin: str) -> tuple[Rule, ...]:
    """Return the layer that the preset is: what writes is closed to tainted arguments.

    Of the rules beside it those count that name tainted calls and allow them.

    Raises:
        ConfigError: It is neither "ask" nor "deny".
    """
    if action not in ("ask", "deny"):
        raise ConfigError(f'{origin}: `{CAREFUL}` must be "ask" or "deny", not {action!r}.')
    opened = [rule for rule in rules if rule.tainted and rule.action is Action.ALLOW]
    closed = Rule(
        Action[str(action).upper()],
        annotations=(("read_only", (False,)),),
        tainted=True,
        origin=f"{origin}, {CAREFUL}",
    )
    return (*opened, closed)


def fits_pattern(name: str, pattern: str) -> bool:
    """Whether a name is what a pattern describes; `*` stands for any characters."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    *inner, last = rest
    if not name.startswith(first) or len(name) < len(first) + len(last) or not name.endswith(last):
        return False
    place, end = len(first), len(name) - len(last)
    for part in inner:
        place = name.find(part, place, end)
        if place < 0:
            return False
        place += len(part)
    return True


def _read(value: Json, where: str) -> Rule:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be a table with `action`.")
    if unknown := set(value) - _KEYS:
        raise ConfigError(f"{where}: {min(unknown)!r} is unknown. Known are {sorted(_KEYS)}.")
    action = value.get("action")
    if not isinstance(action, str) or action.upper() not in Action.__members__:
        raise ConfigError(f"{where}: `action` must be allow, ask or deny, not {action!r}.")
    when, more_than = value.get("when"), value.get("more_than")
    if when is not None and not isinstance(when, str):
        raise ConfigError(f"{where}: `when` must be a text such as 'amount > 100'.")
    is_count = isinstance(more_than, int) and not isinstance(more_than, bool) and more_than >= 0
    if more_than is not None and not is_count:
        raise ConfigError(f"{where}: `more_than` must be a number of calls, not {more_than!r}.")
    if value.get("tainted", True) is not True:
        raise ConfigError(f"{where}: `tainted` can only be true.")
    return Rule(
        Action[action.upper()],
        tools=_patterns(value, "tools", where),
        upstreams=_patterns(value, "upstreams", where),
        annotations=_annotations(value, where),
        when=_condition(when, where),
        more_than=more_than if isinstance(more_than, int) else None,
        tainted="tainted" in value,
        origin=where,
    )


def _condition(when: str | None, where: str) -> Condition | None:
    try:
        return None if when is None else parse(when)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error


def _patterns(value: Mapping[str, Json], key: str, where: str) -> tuple[str, ...]:
    given = value.get(key, [])
    patterns = given if isinstance(given, list) else [given]
    for each in patterns:
        if not isinstance(each, str) or not _PATTERN.fullmatch(each):
            raise ConfigError(
                f"{where}: {each!r} in `{key}` is not a pattern: write letters, digits, `_`, `-`, "
                "`.` and `*`, such as github.* or *.delete_*."
            )
    if (key in value and not patterns) or len(patterns) > MAX_PATTERNS:
        raise ConfigError(f"{where}: `{key}` must name between 1 and {MAX_PATTERNS} patterns.")
    return tuple(map(str, patterns))


def _annotations(
    value: Mapping[str, Json], where: str
) -> tuple[tuple[str, tuple[bool | None, ...]], ...]:
    return tuple(
        (name, _truths(value[name], f"{where}: `{name}`")) for name in ANNOTATIONS if name in value
    )


def _truths(given: Json, where: str) -> tuple[bool | None, ...]:
    each: Sequence[Json] = given if isinstance(given, list) else [given]
    if not each or any(not isinstance(one, bool) and one != "unknown" for one in each):
        raise ConfigError(f'{where} must be true, false, "unknown" or a list of these.')
    return tuple(_TRUTHS[one] for one in each if isinstance(one, bool | str))


# Decide about a call, and say why. Pure.
#
# The user's rules are asked in their order, and then the built-in ones; the first that fits
# decides. Other layers, a project's or a key's, decide in the same way by themselves, and the
# strictest decision counts: they may tighten what the user allows, and never loosen it.
#
# Where it cannot be told whether a rule fits, one that asks or denies fits and one that allows does
# not. That is so for a condition on an argument that is not there. It is also so for annotations
# that a server leaves out: not to say `read_only` or `idempotent` is to say no. `destructive` is
# taken at its word: where nothing is said, only a rule that names `"unknown"` fits.
