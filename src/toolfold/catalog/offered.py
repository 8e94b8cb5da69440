"""The prompts and resources of all upstreams: list, find, read."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

import anyio
import mcp_types as types

from toolfold.catalog.names import function_names
from toolfold.catalog.offers import Offers
from toolfold.catalog.upstream import Upstream
from toolfold.errors import NotFound, UpstreamUnavailable

# The names under which clients reach the prompts and resources of all servers.
#
# A prompt is `<module>__<prompt>`, both made into identifiers as tools are. A resource is
# `toolfold://<module>/` followed by its own URI as it stands. Nothing is encoded: so a URI template
# stays one, and what a client expands from it is the address of what the server's would have been.

_SCHEME: Final = "toolfold://"


def prompt_names(module: str, prompts: Iterable[types.Prompt]) -> dict[str, types.Prompt]:
    """Return the prompts of one server under the names that clients use."""
    listed = {prompt.name: prompt for prompt in prompts}
    identifiers = function_names(listed)
    return {f"{module}__{identifiers[name]}": prompt for name, prompt in listed.items()}


def outer_uri(module: str, uri: str) -> str:
    """Return the address under which clients reach a resource of a server."""
    return f"{_SCHEME}{module}/{uri}"


def inner_uri(address: str) -> tuple[str, str] | None:
    """Return module and URI of the resource behind an address; None if it is none of ours."""
    module, slash, uri = address.removeprefix(_SCHEME).partition("/")
    return (module, uri) if address.startswith(_SCHEME) and slash else None


def outward(module: str, block: types.ContentBlock) -> types.ContentBlock:
    """Return a block of content with the URIs in it as clients reach them."""
    if isinstance(block, types.ResourceLink):
        return block.model_copy(update={"uri": outer_uri(module, block.uri)})
    if isinstance(block, types.EmbeddedResource):
        return block.model_copy(update={"resource": outward_contents(module, block.resource)})
    return block


def outward_contents(
    module: str, contents: types.TextResourceContents | types.BlobResourceContents
) -> types.TextResourceContents | types.BlobResourceContents:
    """Return what a resource holds with its URI as clients reach it."""
    return contents.model_copy(update={"uri": outer_uri(module, contents.uri)})


_PATIENCE_S: Final = 10.0
_NOTHING: Final = Offers()
_MAX_COMPARED_CHARS: Final = 300


class Offered:
    """What the upstreams offer beside tools."""

    def __init__(
        self,
        upstreams: Mapping[str, Upstream],
        modules: Callable[[], Mapping[str, str]],
    ) -> None:
        self._upstreams = upstreams
        self._modules = modules

    async def settle(self) -> None:
        """Wait for the upstreams that are being asked anyhow. No other is contacted for this."""
        learning = [each for each in self._upstreams.values() if each.is_learning]
        with anyio.move_on_after(_PATIENCE_S):
            await self._learn(learning)

    async def learn(self, server: str | None = None) -> None:
        """Wait until the offers of a server, by default of all, are known or known not to be.

        Raises:
            NotFound: There is no such server.
        """
        wanted = list(self._upstreams.values()) if server is None else [self.find(server)[1]]
        with anyio.move_on_after(_PATIENCE_S):
            await self._learn(upstream for upstream in wanted if upstream.known_offers is None)

    @staticmethod
    async def _learn(upstreams: Iterable[Upstream]) -> None:
        async def learn(upstream: Upstream) -> None:
            with suppress(UpstreamUnavailable):  # it keeps its fault, and the others their say
                await upstream.offers()

        async with anyio.create_task_group() as tasks:
            for upstream in upstreams:
                tasks.start_soon(learn, upstream)

    def by_module(self) -> dict[str, Offers]:
        """Return what is known to be offered, by module, in a stable order."""
        return {
            module: self._upstreams[server].known_offers or _NOTHING
            for module, server in sorted(self._modules().items())
        }

    def prompts(self) -> list[types.Prompt]:
        """Return every prompt that is known, as clients see it."""
        return [
            prompt.model_copy(update={"name": name, "title": self._title(module, prompt)})
            for module, offers in self.by_module().items()
            for name, prompt in prompt_names(module, offers.prompts).items()
        ]

    def resources(self) -> list[types.Resource]:
        """Return every resource that is known, as clients see it."""
        return [
            resource.model_copy(
                update={
                    "uri": outer_uri(module, resource.uri),
                    "title": self._title(module, resource),
                }
            )
            for module, offers in self.by_module().items()
            for resource in offers.resources
        ]

    def templates(self) -> list[types.ResourceTemplate]:
        """Return every template of resources that is known, as clients see it."""
        return [
            template.model_copy(
                update={
                    "uri_template": outer_uri(module, template.uri_template),
                    "title": self._title(module, template),
                }
            )
            for module, offers in self.by_module().items()
            for template in offers.templates
        ]

    def _title(self, module: str, item: types.BaseMetadata) -> str:
        return f"{self._modules()[module]}: {item.title or item.name}"

    async def find_prompt(self, name: str) -> tuple[str, str]:
        """Return module and own name of a prompt."""
        module = name.partition("__")[0]
        with suppress(NotFound):
            await self.learn(module)
        offers = self.by_module().get(module, _NOTHING)
        known = prompt_names(module, offers.prompts)
        if name in known:
            return module, known[name].name
        hint = _nearest(name, (prompt.name for prompt in self.prompts()))
        raise NotFound(f"There is no prompt {_shown(name)}.{hint}")

    def inner(self, address: str) -> tuple[str, str]:
        inner = inner_uri(address)
        if inner is None:
            raise NotFound(
                f"{_shown(address)} is not a resource here: URIs start with toolfold://<server>/."
            )
        return inner

    def find(self, server: str) -> tuple[str, Upstream]:
        """Return module and upstream of a server, by either of its names."""
        modules = self._modules()
        for module, name in modules.items():
            if server in {module, name}:
                return module, self._upstreams[name]
        hint = _nearest(server, modules) or " tools.servers() lists them."
        raise NotFound(f"There is no server {_shown(server)}.{hint}")

    def nearest_uri(self, module: str, uri: str) -> str:
        offers = self.by_module()[module]
        known = [resource.uri for resource in offers.resources]
        known += [template.uri_template for template in offers.templates]
        return "" if uri in known else _nearest(uri, known)


def _nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint at what may have been meant. Long names would take long to compare."""
    if len(name) > _MAX_COMPARED_CHARS:
        return ""
    short = [each for each in known if len(each) <= _MAX_COMPARED_CHARS]
    near = difflib.get_close_matches(name, short, n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""


def _shown(name: str) -> str:
    return repr(name[:_MAX_COMPARED_CHARS])
