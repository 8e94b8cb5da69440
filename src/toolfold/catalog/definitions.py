"""What models read of tools where clients load their definitions, kept for the ledger."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from toolfold.catalog.shared_schemas import without_shared
from toolfold.catalog.tool import Tool, built_in_server
from toolfold.jsontypes import JsonObject


class DefinitionText(NamedTuple):
    """The definitions of one server as a text, and what tells the text from any other."""

    id: str
    text: str


def listing(
    server: str, tools: Mapping[str, JsonObject], *, is_built_in: bool = False
) -> DefinitionText:
    """Return the definitions of a server; `tools` has them by path: `github.create_issue`."""
    content = {"server": server, "is_built_in": is_built_in, "tools": tools}
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    encoded = text.encode("utf-8", "replace")
    return DefinitionText(hashlib.sha256(encoded).hexdigest()[:32], encoded.decode())


def definition(name: str, description: str | None, input_schema: JsonObject) -> JsonObject:
    """Return what clients put before a model of a tool."""
    return {"name": name, "description": description or "", "inputSchema": input_schema}


class Definitions:
    """Those of all tools that are known at one moment. They are written when they are asked for."""

    def __init__(self, tools: Mapping[str, Iterable[Tool]]) -> None:
        """Take the tools of each module."""
        self._tools = tools

    @cached_property
    def listings(self) -> tuple[DefinitionText, ...]:
        """A listing for each module; may be asked for from any thread."""
        return tuple(_listing(module, tools) for module, tools in sorted(self._tools.items()))


def _listing(module: str, tools: Iterable[Tool]) -> DefinitionText:
    known = list(tools)
    server = known[0].server if known else module
    return listing(
        server,
        {
            tool.path: definition(
                tool.listed.name,
                tool.listed.description,
                without_shared(tool.listed.input_schema),
            )
            for tool in known
        },
        is_built_in=server == built_in_server(module),
    )
