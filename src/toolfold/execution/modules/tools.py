"""The module `tools` of guest code: find tools, read about them, see servers and resources."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import anyio
import anyio.to_thread
import mcp_types as types

from toolfold.catalog.catalog import Catalog, ServerStatus
from toolfold.catalog.offers import Offers
from toolfold.catalog.search.discovery import SearchResult, ToolIndex
from toolfold.catalog.search.tool_vectors import ToolVectorIndex
from toolfold.catalog.tool import ListedTool, Tool, built_in_server
from toolfold.errors import BadCall, BadInput, NotFound, count
from toolfold.execution.modules.glance import Look, glance
from toolfold.jsontypes import Json, JsonObject
from toolfold.sandbox.sandbox import GuestCall, GuestModule
from toolfold.skills.library import Library
from toolfold.skills.models import VERBS, Skill, SkillFault, parse_name


class ToolAndSkillIndex:
    """One index over tools and skills, made anew when either changes."""

    def __init__(self, catalog: Catalog, library: Library) -> None:
        self._catalog = catalog
        self._library = library
        self._made: tuple[ToolIndex, tuple[str, ...], ToolIndex] | None = None
        self._skills: dict[str, Skill] = {}

    @property
    def index(self) -> ToolIndex:
        """Search over all tools and skills."""
        of_tools, skills = self._catalog.index, self._library.skills()
        key = tuple(f"{skill.name} {skill.texts.digest}" for skill in skills)
        if self._made is None or self._made[0] is not of_tools or self._made[1] != key:
            self._skills = {f"skills.{skill.name}": skill for skill in skills}
            tools = [*self._catalog.tools, *map(_as_tool, skills)]
            self._made = (of_tools, key, ToolIndex(tools) if skills else of_tools)
        return self._made[2]

    def skill(self, tool: Tool) -> Skill | None:
        """Return the skill that a hit stands for, if it does."""
        return self._skills.get(tool.path) if tool.is_built_in or "." in tool.module else None

    def named(self, name: str) -> Skill | None:
        """Return the skill `skills.<name>`; None if there is none."""
        try:
            return self._library.find(parse_name(name))
        except (BadInput, NotFound):
            return None

    def lines(self) -> list[str]:
        """Say how many skills there are, and which cannot be used."""
        found = self._library.all()
        broken = [each for each in found if isinstance(each, SkillFault)]
        told = [f"skill {each.name}: not usable: {each.reason}" for each in broken]
        count = len(found) - len(broken)
        return [f"saved skills: {count} (skills.search)", *told] if count else told


def shown_hit(skill: Skill, detail: str) -> str:
    """Return what is said of a skill that was found."""
    if detail == "name":
        return f"skills.{skill.name}"
    return skill.documented if detail == "full" else f"{skill.line}  [{skill.usage}]"


def _as_tool(skill: Skill) -> Tool:
    """Stand for a skill where tools are ranked."""
    module, _, function = f"skills.{skill.name}".rpartition(".")
    return Tool(
        server=built_in_server("skills"),
        module=module,
        function=function,
        listed=ListedTool(
            name=function,
            description=skill.description,
            input_schema={
                "type": "object",
                "properties": {name: {} for name in skill.function.names},
            },
        ),
    )


READ: Final = "tools.read"
RESOURCES: Final = "tools.resources"
"""The one function that goes to a server, and so is counted as tools are."""

BY_WORDS_ONLY: Final = "(found by words alone: search by meaning is not ready yet)"

_PATIENCE_S: Final = 10.0
Asks = Callable[[Tool], bool]
"""Says whether the user will be asked about a tool."""

_MAX_HITS: Final = 50
_MAX_LISTED: Final = 100
_MAX_DESCRIPTION_CHARS: Final = 500

MODULE: Final = GuestModule(
    functions=("search", "describe", "servers", "resources", "read"),
    stub="""\
from typing import Any, Awaitable
from ty_extensions import Intersection
def search(query: str, limit: int = 5, server: str | None = None, detail: str = "brief") -> Intersection[str, Awaitable[str]]: ...
def describe(*names: str) -> Intersection[str, Awaitable[str]]: ...
def servers() -> Intersection[str, Awaitable[str]]: ...
def resources(server: str | None = None) -> Intersection[list[dict[str, Any]], Awaitable[list[dict[str, Any]]]]: ...
def read(server: str, uri: str) -> Intersection[Any, Awaitable[Any]]: ...
""",  # noqa: E501
)


class DiscoveryModule:
    """Answers the calls to `tools.*`."""

    def __init__(
        self,
        catalog: Catalog,
        meaning: ToolVectorIndex,
        library: Library,
        *,
        is_denied: Callable[[Tool, str], bool] = lambda _tool, _client: False,
    ) -> None:
        self._catalog = catalog
        self._is_denied = is_denied
        self._meaning = meaning
        self._index = ToolAndSkillIndex(catalog, library)

    def warm(self) -> None:
        """Keep search by meaning ready in the background, for a host that stays."""
        self._meaning.follow(lambda: self._index.index)

    def note_listing(self) -> None:
        """Take note that a server has listed its tools: what they mean is learned at once."""
        self._meaning.renew()

    async def call(
        self,
        call: GuestCall,
        *,
        client: str = "",
        asks: Asks = lambda _tool: False,
        look: Look | None = None,
    ) -> Json:
        """Answer one call for a client; `asks` says of which tools its user will be asked.

        `look` makes a call that shows what a server has.

        Raises:
            NotFound: No such function, or no such tool.
            BadCall: The arguments do not fit.
        """
        match call.function:
            case "tools.search":
                given = _arguments(call, ("query", "limit", "server", "detail"))
                return await self.search(**given, client=client, asks=asks)  # type: ignore[arg-type]
            case "tools.describe":
                names = tuple(map(str, call.args))
                return await self.describe(*names, client=client, asks=asks, look=look)
            case "tools.servers":
                await self.learn()
                return await anyio.to_thread.run_sync(self.servers)
            case "tools.resources":
                return await self.resources(**_arguments(call, ("server",), required=0))  # type: ignore[arg-type]
        raise NotFound(f"tools has {', '.join(MODULE.functions)}, not {call.function!r}.")

    async def search(
        self,
        query: str,
        limit: int = 5,
        server: str | None = None,
        detail: str = "brief",
        *,
        client: str = "",
        asks: Asks = lambda _tool: False,
    ) -> str:
        """Return the tools and skills that fit `query`, best first.

        `detail` says how much of each: its name, a brief line, or the full stub.
        """
        if detail not in {"name", "brief", "full"}:
            raise BadCall(f"detail is 'name', 'brief' or 'full', not {detail!r}.")
        if not isinstance(limit, int):
            raise BadCall(f"limit is a number of tools, not {limit!r}.")
        limit = max(1, min(limit, _MAX_HITS))
        await self.learn()
        found = await self._find(str(query), limit=limit, server=server, client=client)
        result = found.clear(self._is_own)
        lines = [self._shown(tool, detail, asks) for tool in result.hits[:limit]]
        if len(result.hits) > limit:
            count = len(result.hits)
            total = str(count) if count <= _MAX_HITS else f"more than {_MAX_HITS}"
            lines.append(f"({limit} of {total}; limit=… shows more)")
        if not lines:
            lines.append(f"No tool matches {query!r}.")
        if result.unmatched:
            lines.append(f"(no tool mentions: {', '.join(result.unmatched)})")
        if result.is_by_words_only:
            lines.append(BY_WORDS_ONLY)
        return "\n".join(lines + self._missing())

    async def find(
        self, query: str, *, limit: int, client: str, server: str | None = None
    ) -> SearchResult:
        """Return the tools that fit `query`, best first, of all servers that answer in time."""
        await self.learn()
        found = await self._find(query, limit=limit + _MAX_HITS, server=server, client=client)
        tools = found.without(lambda tool: self._index.skill(tool) is not None)
        return replace(tools, hits=tools.hits[:limit], worths=tools.worths[:limit])

    async def find_skills(self, query: str, limit: int) -> list[Skill]:
        """Return the skills that fit `query`, best first."""
        found = await self._find(query, limit=limit + len(VERBS), server="skills")
        skills = [skill for tool in found.hits if (skill := self._index.skill(tool))]
        return skills[:limit]

    async def _find(
        self, query: str, *, limit: int, server: str | None, client: str = ""
    ) -> SearchResult:
        index = await anyio.to_thread.run_sync(lambda: self._index.index)
        name = self._catalog.modules.get(str(server), server)
        found = await self._meaning.search(index, query, limit=limit + _MAX_HITS, server=name)
        return found.without(lambda tool: self._is_denied(tool, client))

    def _is_own(self, tool: Tool) -> bool:
        """Whether a hit is toolfold's own, and neither a server's tool nor a saved skill."""
        return tool.is_built_in and self._index.skill(tool) is None

    def _shown(self, tool: Tool, detail: str, asks: Asks) -> str:
        if skill := self._index.skill(tool):
            return shown_hit(skill, detail)
        if detail == "full":
            return self._described(tool, asks)
        return tool.path if detail == "name" else self._brief(tool, asks)

    def _brief(self, tool: Tool, asks: Asks) -> str:
        return self._catalog.brief(tool) + _mark(tool, asks)

    def _described(self, tool: Tool, asks: Asks) -> str:
        stub = self._catalog.describe(tool)
        return f"# asks the user before it is called\n{stub}" if asks(tool) else stub

    async def describe(
        self,
        *names: str,
        client: str = "",
        asks: Asks = lambda _tool: False,
        look: Look | None = None,
    ) -> str:
        """Return the tools of servers that are named, a line each, and the stubs of tools.

        Without a name, the tools of all servers, or the servers where these are too many.
        """
        await self.learn()
        if not names:
            names = tuple(sorted(self._catalog.servers))
            if not 0 < sum(len(self._catalog.functions(name)) for name in names) <= _MAX_LISTED:
                return await anyio.to_thread.run_sync(self.servers)
            names = tuple(name for name in names if self._catalog.functions(name))
        if any(name.startswith("skills") for name in names):
            return await anyio.to_thread.run_sync(self._describe_all, names, client, asks)
        texts = [self._describe_one(name, client, asks) for name in names]
        if look is not None:
            has = [await self._glance(name, look) for name in names]
            texts = [
                f"{text}\n{line}" if line else text for text, line in zip(texts, has, strict=True)
            ]
        return "\n\n".join(texts)

    async def _glance(self, name: str, look: Look) -> str:
        """Return a line about what a server has; "" where that is not known, or not open."""
        tools = self._catalog.functions(name).values()
        known = [(tool, self._catalog.glance(tool)) for tool in tools]
        return await glance([(tool, given) for tool, given in known if given is not None], look)

    def _describe_all(self, names: tuple[str, ...], client: str, asks: Asks) -> str:
        return "\n\n".join(self._describe_one(name, client, asks) for name in names)

    def _describe_one(self, name: str, client: str, asks: Asks) -> str:
        if name.startswith("skills.") and (skill := self._index.named(name)):
            return skill.documented
        tools = self._catalog.functions(name)
        if not tools:
            return self._described(self._catalog.find(name), asks)
        found = [tool for tool in tools.values() if not self._is_denied(tool, client)]
        if not found:
            return f"All tools of {name} are denied by a rule."
        return self._catalog.overview(name, found, lambda tool: _mark(tool, asks))

    def servers(self) -> str:
        """Return the servers, one a line, with the number of their tools or what ails them."""
        lines = []
        for status in self._catalog.statuses():
            name = status.module or status.name
            if status.fault:
                lines.append(f"{name}: not usable: {status.fault}")
            elif status.tools is None:
                lines.append(f"{name}: still starting")
            elif status.resources:
                lines.append(
                    f"{name}: {count(status.tools, 'tool')}, {count(status.resources, 'resource')} "
                    f"(tools.resources({name!r}))"
                )
            else:
                lines.append(f"{name}: {count(status.tools, 'tool')}")
            lines[-1] += _started(status)
            lines += [f"  left out: {each}" for each in status.left_out]
        if not lines:
            lines.append("No server is configured. `toolfold doctor` says where to do so.")
        lines += self._catalog.notes
        for module in sorted(self._catalog.modules.keys() - self._catalog.servers.keys()):
            lines.append(
                f"{module}: built in, {count(len(self._catalog.functions(module)), 'function')}"
            )
        lines += self._index.lines()
        return "\n".join(lines)

    async def resources(self, server: str | None = None) -> Json:
        """Return the resources of a server, by default of all, and the templates of others.

        Raises:
            NotFound: There is no such server.
        """
        wanted = None if server is None else str(server)
        await self._catalog.offered.learn(wanted)
        return [
            {"server": module, **entry}
            for module, offers in self._catalog.offered.by_module().items()
            if wanted in {None, module, self._catalog.modules[module]}
            for entry in _entries(offers)
        ]

    def _missing(self) -> list[str]:
        """Name the servers whose tools could not be searched."""
        return [
            f"({status.module or status.name} not searched: {status.fault or 'still starting'})"
            for status in self._catalog.statuses()
            if status.tools is None
        ]

    async def learn(self) -> None:
        """Wait until all tools are known, but not for long."""
        with anyio.move_on_after(_PATIENCE_S):
            await self._catalog.learn()


def read_arguments(call: GuestCall) -> JsonObject:
    """Return which resource of which server a call of `tools.read` wants.

    Raises:
        BadCall: It does not say.
    """
    return _arguments(call, ("server", "uri"), required=2)


def _entries(offers: Offers) -> list[dict[str, Json]]:
    """Describe each resource, then each template, as plain as can be."""
    return [{"uri": each.uri, **_described(each)} for each in offers.resources] + [
        {"uri_template": each.uri_template, **_described(each)} for each in offers.templates
    ]


def _described(item: types.Resource | types.ResourceTemplate) -> dict[str, Json]:
    return {
        "name": item.name,
        "mime_type": item.mime_type,
        "description": (item.description or "")[:_MAX_DESCRIPTION_CHARS],
    }


def _mark(tool: Tool, asks: Asks) -> str:
    return "  [asks the user]" if asks(tool) else ""


def _started(status: ServerStatus) -> str:
    """Say what a server is for, and with what it was started, as far as that is known."""
    if status.fault is not None:
        return ""
    about = f"; {status.about}" if status.about else ""
    return about + (f"; started with {', '.join(status.values)}" if status.values else "")


def _arguments(call: GuestCall, names: tuple[str, ...], *, required: int = 1) -> dict[str, Json]:
    given: dict[str, Json] = dict(zip(names, call.args, strict=False))
    given.update(call.kwargs)
    said: dict[str, Json] = {name: value for name, value in given.items() if value is not None}
    if len(call.args) > len(names) or set(given) - set(names) or set(names[:required]) - set(said):
        raise BadCall(f"{call.function} takes {', '.join(names)}.")
    return said
