"""The names under which clients reach the prompts and resources of all servers.

A prompt is `<module>__<prompt>`, both made into identifiers as tools are. A resource is
`toolfold://<module>/` followed by its own URI as it stands. Nothing is encoded: so a URI template
stays one, and what a client expands from it is the address of what the server's would have been.
"""

from collections.abc import Iterable
from typing import Final

import mcp_types as types

from toolfold.catalog.names import function_names

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
