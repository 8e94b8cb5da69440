"""The account of tokens: what passed through a model, and what direct calls would have. Pure."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple

from toolfold.journal.runs import RunKind, call_text, compact
from toolfold.jsontypes import JsonObject
from toolfold.tokens import count_tokens

_FETCH_RESULTS: Final = 5

PASSED_AS_IT_IS: Final[frozenset[RunKind]] = frozenset({"direct", "request", "reveal"})
"""The kinds of runs that are one call at most, made by the model, a program or the user itself."""


class Definition(NamedTuple):
    """What one tool costs a model before its first call, in tokens."""

    loaded: int
    """The definition."""

    name: int
    """The line with its name, where definitions are deferred."""

    fetch: int
    """The call that fetches the definition there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDefinitions:
    """What the tools of one server cost; `tools` are by path."""

    server: str
    is_built_in: bool
    tools: Mapping[str, Definition]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """What one tool was called for: how often, and the tokens of its calls and answers."""

    calls: int = 0
    tokens: int = 0

    def plus(self, tokens: int) -> "ToolUse":
        """Return it with one more call."""
        return ToolUse(calls=self.calls + 1, tokens=self.tokens + tokens)

    def together(self, other: "ToolUse") -> "ToolUse":
        """Return both together."""
        return ToolUse(calls=self.calls + other.calls, tokens=self.tokens + other.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One run. All figures but `at` and `calls` are tokens."""

    run: str
    at: float
    door: str
    project: str
    kind: RunKind
    shown: int
    """Our own definitions, with the first run of a conversation."""

    sent: int
    """What the model wrote to have the run, and read of it."""

    direct: int
    """The calls that the run made, and their answers: what a model would have written and read."""

    loaded: int
    """The definitions of all servers, as far as the conversation did not have them yet."""

    deferred: int
    """The same where clients defer them: names, and what calls needed fetched."""

    tools: Mapping[str, ToolUse] = field(default_factory=dict)
    """By path."""

    @property
    def calls(self) -> int:
        """How many calls of tools it made."""
        return sum(use.calls for use in self.tools.values())

    @property
    def passed(self) -> int:
        """All that passed through the model."""
        return self.shown + self.sent

    @property
    def all_loaded(self) -> int:
        """What would have, with every definition loaded."""
        return self.direct + self.loaded

    @property
    def all_deferred(self) -> int:
        """What would have, with definitions deferred as Claude Code does."""
        return self.direct + self.deferred


class KnownDefinitions:
    """What a model knows of a conversation: definitions are read once, however many runs follow."""

    def __init__(self) -> None:
        self._shown: set[str] = set()
        self._loaded: set[str] = set()
        self._fetched: set[str] = set()

    def shown(self, listing_id: str, tokens: int) -> int:
        """Return what our own definitions cost now."""
        if not listing_id or listing_id in self._shown:
            return 0
        self._shown.add(listing_id)
        return tokens

    def direct(
        self, servers: Iterable[ServerDefinitions], used: Mapping[str, ToolUse], kind: RunKind
    ) -> tuple[int, int]:
        """Return what definitions would cost now: all loaded, and deferred.

        What is built in counts as a server only where it is used. Of what a hook asked, no more
        than the definitions of the tools that it takes count, both ways.
        """
        if kind in {"request", "reveal"}:
            return 0, 0
        loaded = deferred = 0
        for path, each in _offered(servers, used):
            if kind == "hook":
                loaded += self._once(self._fetched, path, each.loaded) if path in used else 0
                continue
            loaded += self._once(self._loaded, path, each.loaded)
            deferred += self._once(self._loaded, f"name of {path}", each.name)
            if path in used:
                deferred += self._once(self._fetched, path, each.loaded + each.fetch)
        return loaded, loaded if kind == "hook" else deferred

    @staticmethod
    def _once(known: set[str], what: str, tokens: int) -> int:
        if what in known:
            return 0
        known.add(what)
        return tokens


def _offered(
    servers: Iterable[ServerDefinitions], used: Mapping[str, ToolUse]
) -> Iterator[tuple[str, Definition]]:
    for server in servers:
        if not server.is_built_in or not used.keys().isdisjoint(server.tools):
            yield from server.tools.items()


@cache
def read_definitions(text: str) -> ServerDefinitions:
    """Count what was kept of a server's definitions."""
    content: Any = json.loads(text)
    server = content["server"]
    return ServerDefinitions(
        server=server,
        is_built_in=content["is_built_in"],
        tools={
            path: _counted(f"mcp__{server}__{definition['name']}", definition)
            for path, definition in content["tools"].items()
        },
    )


def _counted(name: str, definition: JsonObject) -> Definition:
    # As Claude Code has it: a line for each name, and one call that fetches what is wanted.
    wanted = {"query": f"select:{name}", "max_results": _FETCH_RESULTS}
    return Definition(
        loaded=count_tokens(compact(definition)),
        name=count_tokens(f"{name}\n"),
        fetch=count_tokens(call_text("ToolSearch", compact(wanted))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Accounts together. All but `runs` and `calls` are tokens."""

    runs: int
    calls: int
    passed: int
    deferred: int
    loaded: int

    @property
    def saved(self) -> int:
        """What did not pass, where definitions would have been deferred."""
        return self.deferred - self.passed

    @property
    def saved_of_loaded(self) -> int:
        """What did not pass, where all would have been loaded."""
        return self.loaded - self.passed

    def plus(self, other: "Sums") -> "Sums":
        """Return both together."""
        return Sums(
            runs=self.runs + other.runs,
            calls=self.calls + other.calls,
            passed=self.passed + other.passed,
            deferred=self.deferred + other.deferred,
            loaded=self.loaded + other.loaded,
        )


NOTHING: Final = Sums(runs=0, calls=0, passed=0, deferred=0, loaded=0)


@dataclass(slots=True)
class DaySums:
    """The accounts of one day together, by door, with what each server was called for."""

    doors: dict[str, Sums] = field(default_factory=dict)
    servers: dict[str, ToolUse] = field(default_factory=dict)

    def add(self, account: Account) -> None:
        """Take one more in."""
        self.doors[account.door] = self.doors.get(account.door, NOTHING).plus(sums([account]))
        for server, use in uses([account], by_server=True).items():
            self.servers[server] = self.servers.get(server, ToolUse()).together(use)


def sums(accounts: Sequence[Account]) -> Sums:
    """Add accounts up."""
    return Sums(
        runs=len(accounts),
        calls=sum(each.calls for each in accounts),
        passed=sum(each.passed for each in accounts),
        deferred=sum(each.all_deferred for each in accounts),
        loaded=sum(each.all_loaded for each in accounts),
    )


def uses(accounts: Iterable[Account], *, by_server: bool) -> dict[str, ToolUse]:
    """Return what each tool, or the tools of each server, were called for; most tokens first.

    Only calls that runs and hooks made: what a model or a program calls by itself passes as it is.
    """
    found: dict[str, ToolUse] = {}
    for account in accounts:
        if account.kind in PASSED_AS_IT_IS:
            continue
        for path, use in account.tools.items():
            name = path.partition(".")[0] if by_server else path
            found[name] = found.get(name, ToolUse()).together(use)
    return dict(sorted(found.items(), key=lambda each: -each[1].tokens))
