"""All tools of all upstreams: list, find, describe, call."""

import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio
import anyio.to_thread

from toolfold.catalog.known_tools import KnownTools
from toolfold.catalog.known_values import program_kind, program_of, starts_paths, values_of
from toolfold.catalog.names import words
from toolfold.catalog.offered import Offered
from toolfold.catalog.overview import OverviewLine, overview
from toolfold.catalog.search.discovery import ToolIndex
from toolfold.catalog.stubs import brief, render_stub, short_result
from toolfold.catalog.textrules import kind_of, unwrapped_property
from toolfold.catalog.tool import Answer, BuiltIn, Definitions, Tool
from toolfold.catalog.upstream import Upstream
from toolfold.config.servers import ServerFault
from toolfold.errors import ConfigFault, NotFound, UpstreamUnavailable
from toolfold.jsontypes import JsonObject

_SHORT_CHARS: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """One configured server, as `tools.servers()` and `doctor` show it."""

    name: str
    module: str | None
    tools: int | None
    """How many it lists; None while that is not known."""
    fault: str | None = None
    protocol: str | None = None
    resources: int = 0
    """How many it is known to list, with templates."""
    about: str = ""
    """What it is for: in its own words, else which program it is, if its name does not say it."""
    values: tuple[str, ...] = ()
    """The paths, databases and addresses that it was started with."""
    left_out: tuple[str, ...] = ()
    """Which of the tools that it lists are not offered, and why."""


class Catalog:
    """The tools of every upstream, under the names that guest code uses."""

    def __init__(
        self,
        upstreams: Iterable[Upstream],
        *,
        built_ins: Iterable[BuiltIn] = (),
        faults: Iterable[ConfigFault | ServerFault] = (),
        max_result_bytes: int,
    ) -> None:
        self._upstreams = {upstream.name: upstream for upstream in upstreams}
        self._built_ins = {module.name: module for module in built_ins}
        faults = list(faults)
        self._faults = [fault for fault in faults if isinstance(fault, ServerFault)]
        self.notes = [str(fault) for fault in faults if isinstance(fault, ConfigFault)]
        """What is wrong with the configuration beyond single servers."""
        self._max_result_bytes = max_result_bytes
        self.offered = Offered(self._upstreams, lambda: self._known.servers)
        """Prompts and resources."""
        self.changed = anyio.Event()
        """Set when upstreams list something else; another one is here then."""
        self.refresh()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Learn in the background what upstreams list that nothing is known of."""
        async with anyio.create_task_group() as learners:
            for upstream in self._upstreams.values():
                if upstream.known_tools is None:
                    learners.start_soon(self._learn, upstream)
            yield
            learners.cancel_scope.cancel()

    @staticmethod
    async def _learn(upstream: Upstream, *, fresh: bool = False) -> None:
        try:
            await upstream.tools(fresh=fresh)
        except UpstreamUnavailable:
            return  # the upstream keeps its fault, and whoever needs the tools is told

    def refresh(self) -> None:
        """Take over what the upstreams list now."""
        self._known = KnownTools(
            {name: upstream.known_tools for name, upstream in self._upstreams.items()},
            built_in={name: module.tools for name, module in self._built_ins.items()},
            values={name: values_of(each.config) for name, each in self._upstreams.items()},
        )
        self.definitions: Definitions = self._known.definitions
        """All tools as models would read them, where clients load them."""
        self.modules: Mapping[str, str] = self._known.modules
        """The server behind each module name, of all that are configured or built in."""
        self.servers: Mapping[str, str] = self._known.servers
        """The same, of those that are configured."""
        self.kinds: Mapping[str, str] = {
            module: program_kind(self._upstreams[server].config)
            for module, server in self.servers.items()
        }
        """What servers are, where their entries say it and their names do not."""
        self.spellings: Mapping[str, str] = self._known.spellings
        """Every name under which guest code may have a module, and the module."""
        self.changed.set()
        self.changed = anyio.Event()

    @property
    def tools(self) -> list[Tool]:
        """Every tool that is known, in a stable order."""
        return self._known.tools

    @property
    def index(self) -> ToolIndex:
        """Search over all tools."""
        return self._known.index

    def modules_in(self, names: Iterable[str]) -> frozenset[str]:
        """Return the modules of those names that are written as clients do: `mcp__github__…`."""
        return frozenset(self._known.split(name)[0] for name in names if name.startswith("mcp__"))

    def functions(self, module: str) -> Mapping[str, Tool]:
        """Return the tools of a module by function name; none if they are not known."""
        return self._known.functions(self._known.spellings.get(module, module))

    def has(self, module: str, function: str) -> bool:
        """Whether a module is known to have a tool of that name, as guest code or servers spell."""
        tools = self.functions(module)
        return function in tools or any(each.listed.name == function for each in tools.values())

    @property
    def unwrapped(self) -> frozenset[str]:
        """The names of properties that stand for the whole answer of some tool."""
        rules = ((tool, self._upstreams[tool.server].shapes) for tool in self._known.single)
        found = (
            unwrapped_property(tool.listed.output_schema, shapes.rule(tool.listed))
            for tool, shapes in rules
        )
        return frozenset(each[0] for each in found if each)

    def statuses(self) -> list[ServerStatus]:
        """Say of each configured server what it offers, or why it does not."""
        working = [
            ServerStatus(
                name=name,
                module=self._known.module_of(name),
                tools=None if upstream.known_tools is None else len(upstream.known_tools),
                fault=upstream.fault,
                protocol=upstream.protocol,
                resources=_count_resources(upstream),
                about=_about(upstream),
                values=tuple(each.value for each in values_of(upstream.config)),
                left_out=upstream.left_out,
            )
            for name, upstream in sorted(self._upstreams.items())
        ]
        broken = [
            ServerStatus(name=fault.name, module=None, tools=None, fault=fault.reason)
            for fault in self._faults
        ]
        return working + broken

    async def learn(self, modules: Iterable[str] | None = None, *, fresh: bool = False) -> None:
        """Wait until the tools of these modules (by default all) are known, or known not to be."""
        servers = self._known.servers
        spellings = self._known.spellings
        named = servers if modules is None else {spellings.get(each, each) for each in modules}
        wanted = [self._upstreams[servers[each]] for each in named if each in servers]
        unknown = [each for each in wanted if fresh or each.known_tools is None]
        if unknown:
            async with anyio.create_task_group() as tasks:
                for upstream in unknown:
                    tasks.start_soon(partial(self._learn, upstream, fresh=fresh))

    def stub(self, module: str) -> str:
        """Return the module's stub for the type checker."""
        return self._known.stub(self._known.spellings.get(module, module))

    def fault(self, module: str) -> str | None:
        """Say why a module has no tools, if that is so."""
        server = self._known.servers.get(self._known.spellings.get(module, module))
        return self._upstreams[server].fault if server else None

    def find(self, name: str) -> Tool:
        """Return the tool of that name: `github.create_issue` or `mcp__github__create_issue`.

        Raises:
            NotFound: There is none; the message names the nearest, or what ails its server.
        """
        try:
            return self._known.find(name)
        except NotFound:
            module, _ = self._known.split(name)
            fault = self.fault(module)
            if fault is None:
                raise
            server = self.modules[module]
        raise NotFound(f"No tool is named {name!r}: the server {server!r} cannot be used: {fault}")

    def observe(self, tool: Tool, answer: Answer) -> None:
        """Learn what a tool returns from what it returned, as guest code has it."""
        is_whole = answer.size <= self._max_result_bytes
        if isinstance(answer.value, str) and _decides_nothing(answer.value):
            return
        if is_whole and tool.listed.output_schema is None and not tool.is_built_in:
            self._upstreams[tool.server].shapes.observe(tool.listed.name, answer.value)

    def describe(self, tool: Tool) -> str:
        """Return the stub of a tool for a model to read, with what it was seen to return."""
        returns, noted = self._stub_type(tool), self._noted(tool)
        return render_stub(tool, observed=noted, returns=returns)

    def brief(self, tool: Tool) -> str:
        """Return a tool as one line: its signature with types, and what it is for."""
        return brief(tool, returns=self._returns(tool))

    def seen(self, tool: Tool) -> str | None:
        """Say what a tool was seen to return, if that is known of it."""
        if tool.is_built_in:
            return None
        return self._upstreams[tool.server].shapes.line(tool.listed.name)

    def overview(self, module: str, tools: Iterable[Tool], marks: Callable[[Tool], str]) -> str:
        """Return these tools of a module, a line each, below what they have in common."""
        module = self._known.spellings.get(module, module)
        lines = [
            OverviewLine(
                tool, self._returns(tool) or short_result(tool), marks(tool), self._example(tool)
            )
            for tool in tools
        ]
        upstream = self._upstreams.get(self._known.servers.get(module, ""))
        if upstream is None:
            return overview(module, lines, about="built in", notes=())
        return overview(module, lines, about=_about(upstream), notes=self._notes(module, upstream))

    def _notes(self, module: str, upstream: Upstream) -> list[str]:
        """Say what a server was started with, and what is peculiar to calls of its tools."""
        notes = []
        if values := values_of(upstream.config):
            tools = self._known.functions(module).values()
            filled = sorted({name for tool in tools for name in tool.defaults})
            note = f" ({', '.join(filled)} filled in)" if filled else ""
            if starts_paths(upstream.config):
                note = " (relative paths start there)"
            notes.append(f"started with {', '.join(each.value for each in values)}{note}")
        if module in sys.stdlib_module_names:
            notes.append(f"{module} also has the functions of Python's own {module}")
        return notes

    def glance(self, tool: Tool) -> JsonObject | None:
        """Return the arguments by which a tool shows what its server has; None if it does not."""
        if tool.is_built_in:
            return None
        return self._upstreams[tool.server].shapes.glance(tool.listed)

    def _example(self, tool: Tool) -> str:
        """Return a text that a tool answered, if its answers are texts and one was recorded."""
        if tool.is_built_in:
            return ""
        shapes = self._upstreams[tool.server].shapes
        is_text = tool.listed.output_schema is not None or shapes.rule(tool.listed).is_text
        return shapes.example(tool.listed) if is_text else ""

    def _returns(self, tool: Tool) -> str | None:
        """Return what a tool is known to return beyond what is declared, as a plain type."""
        if tool.is_built_in:
            return None
        shapes = self._upstreams[tool.server].shapes
        rule = shapes.rule(tool.listed)
        if tool.listed.output_schema is not None:
            return "dict" if rule.unwraps is False else None
        known = shapes.short(tool.listed.name) or ("str" if rule.is_text else None)
        return f"{known} or error text" if known and rule.may_fail else known

    def _noted(self, tool: Tool) -> str | None:
        """Say what code must know of a tool's answers that its declaration does not say."""
        if tool.is_built_in:
            return None
        shapes = self._upstreams[tool.server].shapes
        rule, seen = shapes.rule(tool.listed), shapes.line(tool.listed.name)
        notes = []
        if tool.listed.output_schema is None and seen and seen != self._stub_type(tool):
            notes.append(f"seen to return {seen}")
        if example := self._example(tool):
            notes.append(f"answers like {example!r}")
        if rule.may_fail:
            notes.append("may be an error text")
        return "; ".join(notes) or None

    def _stub_type(self, tool: Tool) -> str | None:
        """Return the type of what an undeclared tool was seen to return, as Python writes it."""
        if tool.is_built_in or tool.listed.output_schema is not None:
            return None
        shapes = self._upstreams[tool.server].shapes
        rule = shapes.rule(tool.listed)
        known = shapes.type(tool.listed.name) or ("str" if rule.is_text else None)
        is_other = known is not None and "str" not in known.split(" | ")
        return f"{known} | str" if rule.may_fail and is_other else known

    def save_shapes(self) -> None:
        """Keep what was learned of results."""
        for upstream in self._upstreams.values():
            upstream.shapes.save()


def _about(upstream: Upstream) -> str:
    """Say what a server is for, unless its name says it."""
    own = upstream.known_offers.about if upstream.known_offers else ""
    program = program_of(upstream.config)
    # A single word is the name of a program, and the entry may have a better one.
    told = (own, program) if " " in own else (program, own)
    named = {*words(upstream.name), "mcp", "server"}
    return next((text for text in told if set(words(text)) - named), "")


def _count_resources(upstream: Upstream) -> int:
    offers = upstream.known_offers
    return len(offers.resources) + len(offers.templates) if offers else 0


def _decides_nothing(text: str) -> bool:
    return len(text) < _SHORT_CHARS and kind_of(text) in {"error", "empty"}


# The catalog as files, for agents that like to browse.
#
# ```text
# /servers/index.txt                    every tool, a line each
# /servers/github/index.txt             every tool of one server, a line each
# /servers/github/create_issue.pyi      how to call it
# ```

_INDEX = "index.txt"


class StubFiles:
    """Reads the catalog as it is at the moment."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def entries(self, path: str) -> Sequence[str] | None:
        """Return the names in a directory, in order; None if there is no such directory."""
        match _parts(path):
            case []:
                return ["servers"]
            case ["servers"]:
                return [_INDEX, *sorted(self._catalog.modules)]
            case ["servers", module] if module in self._catalog.modules:
                functions = sorted(self._catalog.functions(module))
                return [_INDEX, *(f"{function}.pyi" for function in functions)]
        return None

    def read(self, path: str) -> str | None:
        """Return the text of a file; None if there is no such file."""
        match _parts(path):
            case ["servers", name] if name == _INDEX:
                return _lines(self._catalog.brief(tool) for tool in self._catalog.tools)
            case ["servers", module, name] if name == _INDEX and module in self._catalog.modules:
                return _lines(map(self._catalog.brief, self._catalog.functions(module).values()))
            case ["servers", module, name] if name.endswith(".pyi"):
                tool = self._catalog.functions(module).get(name.removesuffix(".pyi"))
                return None if tool is None else self._catalog.describe(tool)
        return None


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
