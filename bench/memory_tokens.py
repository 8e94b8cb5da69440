"""Count what memory costs a model: definitions of tools, and replies to search, store and health.

The replies that mcp-memory-service once promised stand beside those of the service as it is, of our
MCP tools, of code in `execute_code`, and of `toolfold.api` in a script.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from memory_ours import ours
from memory_sides import Side, filled, memory_service
from notes import notes, questions
from stage import ROOT, Unavailable

from toolfold.tokens import count_tokens

SIZE = 1_000
PROMISED = {"search": 385, "store": 15, "health": 20}
VERBS = tuple(PROMISED)
ROW = "{:<52}{:>12}{:>9}{:>7}{:>8}{:>8}"
CODE = {
    "search": "import memory\nprint(memory.search({query!r}))",
    "store": "import memory\nmemory.store({note!r})",
    "health": "import memory\nmemory.health()",
}
SHORT = "import memory\nfor m in memory.search({query!r}).memories: print(m.hash, m.preview)"

Calls = dict[str, tuple[str, dict[str, Any]]]
"""For each verb the tool that does it, and its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one way to a memory costs, in tokens."""

    title: str
    definitions: int
    replies: dict[str, int]

    @classmethod
    def of(cls, title: str, definitions: object, replies: dict[str, str]) -> "Cost":
        """Count texts."""
        written = "" if definitions is None else _compact(definitions)
        counted = {name: count_tokens(text) for name, text in replies.items()}
        return cls(title=title, definitions=count_tokens(written), replies=counted)

    @property
    def total(self) -> int:
        """Definitions once, and one reply of each."""
        return self.definitions + sum(self.replies.values())


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", default=ROOT / ".tools", type=Path, metavar="DIR")
    arguments = parser.parse_args()
    kept = arguments.tools / "memory-service" / "filled"
    print(ROW.format("tokens (o200k)", "definitions", *VERBS, "all"))
    print(ROW.format("promised replies", "", *PROMISED.values(), sum(PROMISED.values())))
    try:
        peer, _ = memory_service(arguments.tools / "memory-service")
        _print(_peer_costs(peer, kept))
    except Unavailable as reason:
        print(f"mcp-memory-service: skipped, {reason}")
    _print(_our_costs(ours(), kept))
    return 0


def _peer_costs(side: Side, kept: Path) -> list[Cost]:
    [query], [note, other] = questions(1), notes(2, seed="more")
    calls: Calls = {
        "search": ("memory_search", {"query": query, "limit": 5}),
        "store": ("memory_store", {"content": note}),
        "health": ("memory_health", {}),
    }
    with _home(side, kept) as home:
        listed, replies = anyio.run(_by_mcp, side.server, side.env_at(home), calls)
        by_functions = side.report(home, query, other)["replies"]
    return [
        Cost.of(f"{side.title}, its {len(listed)} MCP tools", listed, replies),
        Cost.of("  the definitions of these three alone", _used(listed, calls), replies),
        Cost.of("  its functions, print(found.memories)", None, _of_functions(by_functions)),
    ]


def _our_costs(side: Side, kept: Path) -> list[Cost]:
    [query], texts = questions(1), list(notes(4, seed="more"))
    calls: Calls = {
        "search": ("memory_search", {"query": query, "limit": 5}),
        "store": ("memory_store", {"content": texts[0]}),
        "health": ("memory_health", {}),
    }
    code: Calls = {
        name: ("execute_code", {"code": text.format(query=query, note=texts[1])})
        for name, text in CODE.items()
    }
    short = code | {"search": ("execute_code", {"code": SHORT.format(query=query)})}
    one_tool = [*side.server[:-2]]  # without `--tools memory`
    with _home(side, kept) as home:
        listed, replies = anyio.run(_by_mcp, side.server, side.env_at(home), calls)
        one, by_code = anyio.run(_by_mcp, one_tool, side.env_at(home), code)
        _, by_short_code = anyio.run(_by_mcp, one_tool, side.env_at(home), short)
        by_functions = side.report(home, query, texts[3])["replies"]
    return [
        Cost.of(f"toolfold mcp --tools memory, {len(listed)} tools", listed, replies),
        Cost.of("  the definitions of these three alone", _used(listed, calls), replies),
        Cost.of("toolfold, execute_code", one, by_code),
        Cost.of("  which prints hash and preview of each", one, by_short_code),
        Cost.of("toolfold.api, print(found)", None, _of_functions(by_functions, "print(found)")),
    ]


@contextmanager
def _home(side: Side, kept: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        home = filled(side, kept, SIZE, Path(directory))
        try:
            yield home
        finally:
            side.end(home)


async def _by_mcp(
    server: list[str], env: dict[str, str], calls: Calls
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the definitions of a server's tools, and what a model reads of each call."""
    command, *arguments = server
    parameters = StdioServerParameters(command=command, args=arguments, env=env)
    with Path(os.devnull).open("w") as nowhere:
        async with Client(stdio_client(parameters, errlog=nowhere), mode="legacy") as client:
            tools = (await client.list_tools()).tools
            replies = {name: await _reply(client, *call) for name, call in calls.items()}
    return [_definition(tool) for tool in tools], replies


async def _reply(client: Client, tool: str, arguments: dict[str, Any]) -> str:
    result = await client.call_tool(tool, arguments)
    text = "\n".join(one.text for one in result.content if isinstance(one, types.TextContent))
    if result.is_error:
        raise RuntimeError(f"{tool} failed: {text}")
    return text


def _of_functions(replies: dict[str, str], shown: str = "print(found.memories)") -> dict[str, str]:
    return {
        "search": replies[f"search of 5 results, {shown}"],
        "store": replies["store"],
        "health": replies["health"],
    }


def _definition(tool: types.Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}


def _used(listed: list[dict[str, Any]], calls: Calls) -> list[dict[str, Any]]:
    names = {tool for tool, _ in calls.values()}
    return [one for one in listed if one["name"] in names]


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _print(costs: list[Cost]) -> None:
    for each in costs:
        replies = [each.replies[name] for name in VERBS]
        print(ROW.format(each.title, each.definitions or "", *replies, each.total), flush=True)


if __name__ == "__main__":
    sys.exit(main())
