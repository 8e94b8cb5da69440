"""Write a rule about one tool into the text of `policy.toml`, or take it out. Pure.

All else of the text stays as it is, comments included.
"""

import json
import re
import tomllib
from typing import Final

_HEADER: Final = re.compile(r"^\s*\[", re.MULTILINE)
_RULE_KEYS: Final = {"action", "tools"}


def with_rule(text: str, action: str, tool: str) -> str:
    """Return the text with a rule about `tool` first, and no other unconditional one about it."""
    rest = without_rule(text, tool)
    first = _HEADER.search(rest)
    place = first.start() if first else len(rest)
    before = rest[:place]
    if before and not before.endswith("\n"):
        before += "\n"
    rule = f"[[policy]]\naction = {json.dumps(action)}\ntools = {json.dumps(tool)}\n"
    return f"{before}{rule}\n{rest[place:]}" if rest[place:] else f"{before}{rule}"


def without_rule(text: str, tool: str) -> str:
    """Return the text without the rules that say something about `tool` alone, unconditionally."""
    starts = [match.start() for match in _HEADER.finditer(text)]
    if not starts:
        return text
    blocks = [text[one:other] for one, other in zip(starts, [*starts[1:], None], strict=True)]
    kept = [block for block in blocks if not _is_about(block, tool)]
    return text[: starts[0]] + "".join(kept)


def _is_about(block: str, tool: str) -> bool:
    try:
        rules = tomllib.loads(block).get("policy")
    except tomllib.TOMLDecodeError:
        return False
    if not isinstance(rules, list) or len(rules) != 1 or rules[0].keys() != _RULE_KEYS:
        return False
    return rules[0]["tools"] in (tool, [tool])
