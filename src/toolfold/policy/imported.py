"""Rules of a client about MCP tools as rules of ours. Pure.

Clients write `mcp__SERVER__TOOL`, both as they are configured and listed. What closes may be taken
for more than it says, what opens never.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from toolfold.jsontypes import Json

_RULE: Final = re.compile(r"mcp__(?P<name>[\w.*-]+)(?P<only>\(.*\))?", re.DOTALL)
_ORDER: Final = ("deny", "ask", "allow")
_MAX_CHARS: Final = 150  # with its module in place of the server, a pattern must stay readable

RulePattern = tuple[str, str]
"""An action, and which tools it is about."""

ModulesOf = Callable[[str], Sequence[str]]
"""Says under which names guest code may know a server: several, if another had its name before."""


class Translated(NamedTuple):
    """What becomes of the rules that were kept."""

    rules: list[RulePattern]
    """What denies comes first."""

    left: list[str]
    """Those that are not taken over, each with why."""


def translated(kept: Json, *, modules_of: ModulesOf) -> Translated:
    """Return the rules that were kept as ours.

    Only the user's own settings may allow anything: those of a project came with its repository.
    """
    found: dict[RulePattern, None] = {}
    left = []
    for entry in kept if isinstance(kept, list) else []:
        parts: dict[str, Json] = entry if isinstance(entry, dict) else {}
        action, rule = str(parts.get("list")), str(parts.get("rule"))
        name = _RULE.fullmatch(rule)
        if action not in _ORDER or name is None:
            left.append(f"{action} {rule}: it is not a rule about a tool of a server")
        elif len(name["name"]) > _MAX_CHARS:
            left.append(f"{action} {rule}: its name is longer than {_MAX_CHARS} characters")
        elif action == "allow" and parts.get("scope") != "user":
            source = parts.get("source")
            left.append(f"allow {rule}: it is in {source}, and would apply everywhere here")
        elif action == "allow" and name["only"]:
            left.append(f"allow {rule}: it allows only some calls")
        else:
            patterns = _patterns(name["name"], modules_of, is_strict=action != "allow")
            if action == "allow" and len(patterns) > 1:
                left.append(f"allow {rule}: it may mean {' or '.join(patterns)}")
            else:
                found.update(dict.fromkeys((action, pattern) for pattern in patterns))
    return Translated(sorted(found, key=lambda rule: _ORDER.index(rule[0])), left)


def _patterns(name: str, modules_of: ModulesOf, *, is_strict: bool) -> list[str]:
    """Return what a name may mean: it does not say where the server ends and the tool begins."""
    if name == "*":
        return ["*"]
    parts = name.split("__")
    places = range(1, max(2, len(parts)) if is_strict else 2)
    meanings = [("__".join(parts[:place]), "__".join(parts[place:])) for place in places]
    return [
        f"{module}.{tool or '*'}"
        for server, tool in meanings
        for module in ([server] if "*" in server else modules_of(server))
    ]


def as_toml(rules: Iterable[RulePattern]) -> str:
    """Write rules as they stand in `policy.toml`."""
    return "\n".join(
        f"[[policy]]\naction = {json.dumps(action)}\ntools = {json.dumps(pattern)}\n"
        for action, pattern in rules
    )
