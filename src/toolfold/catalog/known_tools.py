"""The tools that are known, under the names that guest code uses, whether servers run or not."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

from toolfold.catalog.known_values import KnownValue, defaults_for
from toolfold.catalog.names import former_name, function_names, module_names, sandbox_name
from toolfold.catalog.search.discovery import ToolIndex
from toolfold.catalog.stubs import module_stub
from toolfold.catalog.textrules import only_property
from toolfold.catalog.tool import Definitions, ListedTool, Tool, built_in_server
from toolfold.errors import NotFound


class KnownTools:
    """What each server listed, or None where that is not known yet."""

    def __init__(
        self,
        listings: Mapping[str, Sequence[ListedTool] | None],
        *,
        built_in: Mapping[str, Sequence[ListedTool]] = MappingProxyType({}),
        values: Mapping[str, Sequence[KnownValue]] = MappingProxyType({}),
    ) -> None:
        self._names = module_names(listings)
        self.servers: Mapping[str, str] = {module: name for name, module in self._names.items()}
        """The server behind each module, of all that are configured."""
        own = {f"toolfold.{each}" if each in self.servers else each: each for each in built_in}
        self.modules = {**self.servers, **{module: built_in_server(module) for module in own}}
        """All modules; what is built in has a server in name only."""
        self.spellings: Mapping[str, str] = _spellings(self.servers, own)
        """Every name under which a module is known, and the module."""
        self._tools = {
            self._names[server]: _named(server, self._names[server], listed, values.get(server, ()))
            for server, listed in listings.items()
            if listed is not None
        }
        self._tools |= {
            module: _named(built_in_server(module), module, built_in[own_name])
            for module, own_name in own.items()
        }
        self.definitions = Definitions(
            {module: tuple(tools.values()) for module, tools in self._tools.items()}
        )
        """As models would read them."""
        self.single = [tool for tool in self.tools if only_property(tool.listed.output_schema)]
        """Those that are declared to answer with an object of one property."""
        self._index: ToolIndex | None = None
        self._stubs: dict[str, str] = {}

    @cached_property
    def tools(self) -> list[Tool]:
        """Every tool, in a stable order."""
        return [
            tool for _, tools in sorted(self._tools.items()) for _, tool in sorted(tools.items())
        ]

    @property
    def index(self) -> ToolIndex:
        """Search over all tools."""
        if self._index is None:
            self._index = ToolIndex(self.tools)
        return self._index

    def module_of(self, server: str) -> str:
        """Return the module of a configured server."""
        return self._names[server]

    def functions(self, module: str) -> Mapping[str, Tool]:
        """Return the tools of a module by function name; none if they are not known."""
        return self._tools.get(module, {})

    def stub(self, module: str) -> str:
        """Return the module's stub for the type checker."""
        if module not in self._stubs:
            self._stubs[module] = module_stub(self.functions(module).values())
        return self._stubs[module]

    def split(self, name: str) -> tuple[str, str]:
        """Split `github.create_issue` or `mcp__github__create_issue` into module and function."""
        if not name.startswith("mcp__"):
            module, _, function = name.partition(".")
            if module == "toolfold":
                inner, _, function = function.partition(".")
                module = f"toolfold.{inner}"
            return self.spellings.get(module) or self._names.get(module, module), function
        server, _, tool = name.removeprefix("mcp__").partition("__")
        for candidate, module in self._names.items():
            if server in {candidate, module, candidate.replace("-", "_")}:
                return module, tool
        return server, tool

    def find(self, name: str) -> Tool:
        """Return the tool of that name, in any of its spellings.

        Raises:
            NotFound: There is none; the message names the nearest.
        """
        module, function = self.split(name)
        tools = self.functions(module)
        if function in tools:
            return tools[function]
        for tool in tools.values():
            if tool.listed.name == function:
                return tool
        raise NotFound(self._missing(name, module, function))

    def _missing(self, name: str, module: str, function: str) -> str:
        import difflib  # only a mistake needs it

        if not function:
            return self._missing_word(name, module)
        if module not in self.modules:
            near = difflib.get_close_matches(module, self.modules, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            return f"No tool is named {name!r}: there is no server {module!r}.{hint}"
        near = difflib.get_close_matches(function, self.functions(module), n=3, cutoff=0.5)
        if near:
            suggestions = " or ".join(f"{module}.{match}" for match in near)
            return f"No tool is named {name!r}. Did you mean {suggestions}?"
        return f"No tool is named {name!r}. tools.search(...) finds tools."

    def _missing_word(self, name: str, module: str) -> str:
        """Say what a name without a dot may stand for: a tool of that name, or a server."""
        if module in self.modules:
            return f"{name!r} is a server, not a tool. Did you mean '{module}.*', all of its tools?"
        meant = [tool.path for tool in self.tools if name in {tool.function, tool.listed.name}]
        hint = f" Did you mean {' or '.join(meant[:3])}?" if meant else ""
        return f"No tool is named {name!r}.{hint or ' Tools are named as SERVER.TOOL.'}"


def _spellings(servers: Iterable[str], built_in: Mapping[str, str]) -> dict[str, str]:
    """Return what each name stands for; what a server is called now goes before former names."""
    found = {former: module for module in servers if (former := former_name(module))}
    for module, own_name in built_in.items():
        found |= {f"toolfold.{own_name}": module, sandbox_name(module): module, module: module}
    found |= {sandbox_name(module): module for module in servers}
    return found | {module: module for module in servers}


def _named(
    server: str,
    module: str,
    listed: Sequence[ListedTool],
    values: Sequence[KnownValue] = (),
) -> dict[str, Tool]:
    names = function_names(tool.name for tool in listed)
    return {
        names[tool.name]: Tool(
            server=server,
            module=module,
            function=names[tool.name],
            listed=tool,
            defaults=_defaults(tool, values) if values else {},
        )
        for tool in listed
    }


def _defaults(tool: ListedTool, values: Sequence[KnownValue]) -> dict[str, str]:
    required = tool.input_schema.get("required")
    names = (
        [each for each in required if isinstance(each, str)] if isinstance(required, list) else []
    )
    return defaults_for(tool.input_schema.get("properties"), names, values)
