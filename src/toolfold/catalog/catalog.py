"""All tools of all upstreams: list, find, describe, call."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio
import anyio.to_thread

from toolfold.catalog.answers import Answer
from toolfold.catalog.builtin import BuiltIn
from toolfold.catalog.definitions import Definitions
from toolfold.catalog.known_tools import KnownTools
from toolfold.catalog.known_values import values_of
from toolfold.catalog.offered import Offered
from toolfold.catalog.search.discovery import ToolIndex
from toolfold.catalog.stubs import brief, render_stub
from toolfold.catalog.textrules import kind_of, unwrapped_property
from toolfold.catalog.tool import Tool
from toolfold.catalog.upstream import Upstream
from toolfold.config.faults import ConfigFault
from toolfold.config.servers import ServerFault
from toolfold.errors import NotFound, UpstreamUnavailable

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
    values: tuple[str, ...] = ()
    """The paths, databases and addresses that it was started with."""


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

    @property
    def tools(self) -> list[Tool]:
        """Every tool that is known, in a stable order."""
        return self._known.tools

    @property
    def definitions(self) -> Definitions:
        """All of them as models would read them, where clients load them."""
        return self._known.definitions

    @property
    def modules(self) -> Mapping[str, str]:
        """The server behind each module name, of all that are configured or built in."""
        return self._known.modules

    @property
    def servers(self) -> Mapping[str, str]:
        """The same, of those that are configured."""
        return self._known.servers

    @property
    def spellings(self) -> Mapping[str, str]:
        """Every name under which guest code may have a module, and the module."""
        return self._known.spellings

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
                values=tuple(each.value for each in values_of(upstream.config)),
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
        wanted = [each for each in named if each in servers]
        async with anyio.create_task_group() as tasks:
            for module in wanted:
                upstream = self._upstreams[servers[module]]
                if fresh or upstream.known_tools is None:
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
        return render_stub(tool, observed=self._noted(tool))

    def brief(self, tool: Tool) -> str:
        """Return a tool as one line: its signature with types, and what it is for."""
        return brief(tool, returns=self._returns(tool))

    def seen(self, tool: Tool) -> str | None:
        """Say what a tool was seen to return, if that is known of it."""
        if tool.is_built_in:
            return None
        return self._upstreams[tool.server].shapes.line(tool.listed.name)

    def may_fail_silently(self, tool: Tool) -> bool:
        """Whether a tool was seen to answer with the text of an error, and not to say so."""
        if tool.is_built_in:
            return False
        return self._upstreams[tool.server].shapes.rule(tool.listed).may_fail

    def _returns(self, tool: Tool) -> str | None:
        """Return what a tool is known to return beyond what is declared, as a plain type."""
        if tool.is_built_in:
            return None
        shapes = self._upstreams[tool.server].shapes
        rule = shapes.rule(tool.listed)
        if tool.listed.output_schema is not None:
            return "dict" if rule.unwraps is False else None
        return shapes.short(tool.listed.name) or ("str" if rule.is_text else None)

    def _noted(self, tool: Tool) -> str | None:
        """Say what code must know of a tool's answers that its declaration does not say."""
        if tool.is_built_in:
            return None
        shapes = self._upstreams[tool.server].shapes
        rule, seen = shapes.rule(tool.listed), shapes.line(tool.listed.name)
        notes = []
        if tool.listed.output_schema is None and rule.is_text and seen in {None, "str"}:
            notes.append("returns text")
        elif tool.listed.output_schema is None and seen:
            notes.append(f"seen to return {seen}")
        if rule.may_fail:
            notes.append("may be an error text")
        return "; ".join(notes) or None

    def save_shapes(self) -> None:
        """Keep what was learned of results."""
        for upstream in self._upstreams.values():
            upstream.shapes.save()


def _count_resources(upstream: Upstream) -> int:
    offers = upstream.known_offers
    return len(offers.resources) + len(offers.templates) if offers else 0


def _decides_nothing(text: str) -> bool:
    return len(text) < _SHORT_CHARS and kind_of(text) in {"error", "empty"}
