"""Rules of a client about MCP tools as rules of ours. Pure.

Clients write `mcp__SERVER__TOOL`, both as they are configured and listed. What closes may be taken
for more than it says, what opens never.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from toolfold.jsontypes import Json

_RULE: Final = re.compile(r"mcp__(?P<name>[\w.*-]+)(?P<only>\(.*\))?", re.DOTALL)
_ORDER: Final = ("deny", "ask", "allow")

Pattern = tuple[str, str]
"""An action, and which tools it is about."""


class Translated(NamedTuple):
    """What becomes of the rules that were kept."""

    rules: list[Pattern]
    """What denies comes first."""

    left: list[str]
    """Those that are not taken over, each with why."""


def translated(kept: Json, *, module_of: Callable[[str], str]) -> Translated:
    """Return the rules that were kept as ours.

    `module_of` says under which name guest code knows a server. Only the user's own settings may
    allow anything: those of a project came with its repository.
    """
    found: dict[Pattern, None] = {}
    left = []
    for entry in kept if isinstance(kept, list) else []:
        parts: dict[str, Json] = entry if isinstance(entry, dict) else {}
        action, rule = str(parts.get("list")), str(parts.get("rule"))
        name = _RULE.fullmatch(rule)
        if action not in _ORDER or name is None:
            left.append(f"{action} {rule}: it is not a rule about a tool of a server")
        elif action == "allow" and parts.get("scope") != "user":
            source = parts.get("source")
            left.append(f"allow {rule}: it stands in {source}, and here would hold everywhere")
        elif action == "allow" and name["only"]:
            left.append(f"allow {rule}: it allows only some calls")
        else:
            patterns = _patterns(name["name"], module_of, is_strict=action != "allow")
            found.update(dict.fromkeys((action, pattern) for pattern in patterns))
    return Translated(sorted(found, key=lambda rule: _ORDER.index(rule[0])), left)


def _patterns(name: str, module_of: Callable[[str], str], *, is_strict: bool) -> Iterator[str]:
    """Yield what a name may mean: it does not say where the server ends and the tool begins."""
    parts = name.split("__")
    if len(parts) == 1:
        yield "*" if name == "*" else f"{_module(name, module_of)}.*"
    for place in range(1, len(parts) if is_strict else min(2, len(parts))):
        server, tool = "__".join(parts[:place]), "__".join(parts[place:])
        yield f"{_module(server, module_of)}.{tool or '*'}"


def _module(server: str, module_of: Callable[[str], str]) -> str:
    return server if "*" in server else module_of(server)


def as_toml(rules: Iterable[Pattern]) -> str:
    """Write rules as they stand in `policy.toml`."""
    return "\n".join(
        f"[[policy]]\naction = {json.dumps(action)}\ntools = {json.dumps(pattern)}\n"
        for action, pattern in rules
    )
