"""Rules of a client about MCP tools as rules of ours. Pure."""

import json
import re
from typing import Final

from toolfold.jsontypes import Json

_NAME: Final = re.compile(r"mcp__(?P<server>[\w.-]+?)(?:__(?P<tool>[\w*-]+))?$")
_ORDER: Final = ("deny", "ask", "allow")


def translated(kept: Json) -> list[tuple[str, str]]:
    """Return action and pattern of each rule that was kept: what denies comes first."""
    found: dict[tuple[str, str], None] = {}
    for entry in kept if isinstance(kept, list) else []:
        if isinstance(entry, dict) and (rule := _translated(entry)):
            found[rule] = None
    return sorted(found, key=lambda rule: _ORDER.index(rule[0]))


def _translated(entry: dict[str, Json]) -> tuple[str, str] | None:
    action = entry.get("action") or entry.get("list")
    name = _NAME.match(str(entry.get("rule", entry.get("tool", ""))))
    if action not in _ORDER or name is None:
        return None
    module = re.sub(r"\W", "_", name["server"])
    return str(action), f"{module}.{name['tool'] or '*'}"


def as_toml(rules: list[tuple[str, str]]) -> str:
    """Write rules as they stand in `policy.toml`."""
    return "\n".join(
        f"[[policy]]\naction = {json.dumps(action)}\ntools = {json.dumps(pattern)}\n"
        for action, pattern in rules
    )
