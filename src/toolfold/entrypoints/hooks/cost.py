"""What it would take an agent to ask memory by itself, in tokens of real texts."""

import json
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from toolfold.jsontypes import JsonObject
from toolfold.relay.surface import load_surface
from toolfold.tokens import count_tokens


class Asked(NamedTuple):
    """One call of a tool, and the text that comes back."""

    tool: str
    arguments: JsonObject
    answer: str


def tokens_as_tool_calls(asked: Sequence[Asked]) -> int:
    """Return what passes through a model that makes these calls: definitions, calls and answers.

    Only the definitions of tools that are called count, each once, as where clients load them on
    demand. A client that loads all of them pays for more.
    """
    definitions = sum(_definition(tool) for tool in {each.tool for each in asked})
    return definitions + sum(_call(each) for each in asked)


def _call(asked: Asked) -> int:
    call = {"name": asked.tool, "arguments": asked.arguments}
    return count_tokens(json.dumps(call, ensure_ascii=False)) + count_tokens(asked.answer)


@cache
def _definition(tool: str) -> int:
    return sum(count_tokens(text) for name, text in definitions().items() if name == tool)


@cache
def definitions() -> dict[str, str]:
    """Return the definition of each tool of memory as a model reads it, by name."""
    return {
        tool["name"]: json.dumps(
            {key: tool[key] for key in ("name", "description", "inputSchema")}, ensure_ascii=False
        )
        for tool in load_surface("memory")["tools"]
    }
