"""What it would take an agent to ask memory by itself, in tokens of real texts."""

from collections.abc import Sequence
from functools import cache, cached_property
from typing import Final, NamedTuple

from toolfold.catalog.tool import DefinitionText, definition, listing
from toolfold.journal.journal import Journal
from toolfold.journal.runs import Origin, compact, tool_text
from toolfold.jsontypes import JsonObject
from toolfold.relay.surface import load_surface
from toolfold.tokens import count_tokens


class AvoidedCall(NamedTuple):
    """One call of a tool, and the text that comes back."""

    tool: str
    arguments: JsonObject
    answer: str

    @property
    def path(self) -> str:
        """How the journal calls the tool: `memory.search`."""
        return self.tool.replace("_", ".", 1)


def tokens_as_tool_calls(asked: Sequence[AvoidedCall]) -> int:
    """Return what passes through a model that makes these calls: definitions, calls and answers.

    Only the definitions of tools that are called count, each once, as where clients load them on
    demand. A client that loads all of them pays for more.
    """
    definitions = sum(_definition(tool) for tool in {each.tool for each in asked})
    return definitions + sum(_call(each) for each in asked)


def _call(asked: AvoidedCall) -> int:
    call = tool_text(asked.path, compact(asked.arguments))
    return count_tokens(call) + count_tokens(asked.answer)


@cache
def _definition(tool: str) -> int:
    return sum(count_tokens(text) for name, text in definitions().items() if name == tool)


@cache
def definitions() -> dict[str, str]:
    """Return the definition of each tool of memory as a model reads it, by name."""
    return {name: compact(each) for name, each in _tools().items()}


@cache
def _tools() -> dict[str, JsonObject]:
    return {
        tool["name"]: definition(tool["name"], tool["description"], tool["inputSchema"])
        for tool in load_surface("memory")["tools"]
    }


class MemoryTools:
    """The tools of memory, as an offer that the ledger understands."""

    @cached_property
    def listings(self) -> tuple[DefinitionText, ...]:
        """Their definitions."""
        tools = {name.replace("_", ".", 1): each for name, each in _tools().items()}
        return (listing("memory", tools, is_built_in=True),)


_MEMORY_TOOLS: Final = MemoryTools()


def book(
    journal: Journal, origin: Origin, hook: str, asked: Sequence[AvoidedCall], shown: str
) -> None:
    """Write into the journal what a hook asked memory, and what it put before the model."""
    with journal.begin(origin, f"# The hook {hook} showed notes.", kind="hook") as run:
        for each in asked:
            with run.call(each.path, each.arguments) as call:
                call.answer = each.answer
        run.end(failure=None, reply=shown)
        run.offer(_MEMORY_TOOLS)
