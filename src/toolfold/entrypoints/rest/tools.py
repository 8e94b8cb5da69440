"""The registry: find tools, read about them, call them."""

from collections.abc import Mapping
from typing import Any, Final

import anyio.to_thread

from toolfold.catalog.tool import Blob, LargeAnswer, Redact, Tool
from toolfold.entrypoints.rest.operations import (
    Operation,
    RestRequest,
    closed_object,
    owned,
    page_of,
    paging,
    whole_object,
)
from toolfold.entrypoints.rest.registry import Registry, category_of, described, explained, listed
from toolfold.errors import NotFound
from toolfold.execution.access import ToolCall
from toolfold.execution.artifacts import RunArtifacts, redact_blob
from toolfold.execution.report import render
from toolfold.execution.trust.approvals import approvals_of
from toolfold.execution.trust.guard import is_denied
from toolfold.execution.trust.pinned_definitions import DefinitionChange, definition_of
from toolfold.jsontypes import Json, JsonObject, plain
from toolfold.workspace.workspace import Workspace

_Seen = tuple[int, frozenset[str]]
"""A catalog, and what of it a client does not see."""

_MAX_REGISTRIES: Final = 20
_DISCOVERED: Final = 1
_MAX: Final = 500
_TEXT: Final[JsonObject] = {"type": "string"}
_NAME: Final[JsonObject] = {
    "type": "string",
    "minLength": 1,
    "examples": ["memory.health", "memory.recall"],
    "description": "As `/tools/list` has it: `github.create_issue`.",
}
_LISTED: Final = closed_object(
    {"name": _TEXT, "category": _TEXT, "description": _TEXT, "call": _TEXT, "why": _TEXT},
    required=("name", "category", "description"),
)
_CHANGE: Final = whole_object(
    {
        "tool": _TEXT,
        "at": {
            "type": ["number", "null"],
            "description": "When it was first used so; null if it was not yet.",
        },
        "changes": {"type": "array", "items": _TEXT},
    }
)
_PARAMETER: Final = closed_object(
    {
        "name": _TEXT,
        "type": _TEXT,
        "required": {"type": "boolean"},
        "description": _TEXT,
        "default": {},
    },
    required=("name", "type", "required", "description"),
)
_CATEGORY: Final = whole_object(
    {
        "description": _TEXT,
        "count": {"type": "integer"},
        "tools": {"type": "array", "items": whole_object({"name": _TEXT, "description": _TEXT})},
    }
)


class ToolOperations:
    """Answers what is asked of tools. What was counted is kept until the catalog changes."""

    def __init__(self) -> None:
        self._registries: dict[_Seen, tuple[Mapping[str, str], Registry]] = {}
        self._definitions: tuple[object, dict[str, str]] = None, {}

    def operations(self) -> list[Operation]:
        """Return all of them."""
        return [
            Operation(
                method="GET",
                path="/tools/discover",
                summary="Every category, and a few of its tools.",
                tag="tools",
                takes=closed_object(paging(_DISCOVERED, _MAX)),
                returns=whole_object(
                    {
                        "categories": {"type": "object", "additionalProperties": _CATEGORY},
                        "total_tools": {"type": "integer"},
                        "next_offset": {"type": ["integer", "null"]},
                    }
                ),
                answer=self._discover,
            ),
            Operation(
                method="GET",
                path="/tools/list",
                summary="Tools, of a category or all; with a query those that fit it, best first.",
                tag="tools",
                takes=closed_object(
                    {
                        "category": _TEXT,
                        "query": _TEXT,
                        "explain": {
                            "type": "boolean",
                            "default": False,
                            "description": "Also say how each is called, and why it ranks there.",
                        },
                        **paging(50, _MAX),
                    }
                ),
                returns=page_of("tools", _LISTED),
                answer=self._list,
            ),
            Operation(
                method="GET",
                path="/tools/changes",
                summary="What tools say of themselves otherwise than when they were used.",
                tag="tools",
                returns=whole_object({"changes": {"type": "array", "items": _CHANGE}}),
                answer=self._changes,
            ),
            Operation(
                method="GET",
                path="/tools/{name}",
                summary="How to call a tool: parameters, what it returns, an example.",
                tag="tools",
                takes=closed_object({"name": _NAME}, required=("name",)),
                returns=_described_schema(),
                answer=_describe,
            ),
            Operation(
                method="POST",
                path="/tools/{name}/execute",
                summary="Call a tool. The journal has it as a run of one call.",
                tag="tools",
                takes=closed_object(
                    {"name": _NAME, "arguments": {"type": "object"}}, required=("name",)
                ),
                returns=closed_object(
                    {
                        "run_id": _TEXT,
                        "result": {},
                        "blobs": {"type": "object"},
                        "notes": {"type": "array", "items": _TEXT},
                    },
                    required=("run_id", "result", "blobs"),
                ),
                answer=_execute,
                calls_tools=True,
            ),
        ]

    async def _discover(self, request: RestRequest, arguments: JsonObject) -> Json:
        limit, offset = _page(arguments, _DISCOVERED)
        return (await self._registry(request)).discover(limit=limit, offset=offset)

    async def _list(self, request: RestRequest, arguments: JsonObject) -> Json:
        limit, offset = _page(arguments, 50)
        found = await self._found(request, arguments)
        shown = found[offset : offset + limit]
        end = offset + len(shown)
        query = str(arguments.get("query", "")) if arguments.get("explain") else None
        return {
            "tools": [listed(tool) if query is None else explained(tool, query) for tool in shown],
            "total": len(found),
            "next_offset": end if shown and end < len(found) else None,
        }

    async def _found(self, request: RestRequest, arguments: JsonObject) -> list[Tool]:
        registry = await self._registry(request)
        category, query = arguments.get("category"), arguments.get("query")
        if category is not None and category not in registry.categories:
            names = ", ".join(sorted(registry.categories))
            raise NotFound(f"No category is named {category!r}. There are {names}.")
        if query:
            hits = await request.app.discovery.find(
                str(query), limit=registry.total, client=request.client
            )
            return [tool for tool in hits.hits if category in (None, category_of(tool))]
        if category is not None:
            return list(registry.categories[str(category)].tools)
        found = [tool for _, each in sorted(registry.categories.items()) for tool in each.tools]
        return sorted(found, key=lambda tool: tool.is_built_in)  # those of the user's servers first

    async def _changes(self, request: RestRequest, _arguments: JsonObject) -> Json:
        """Return changes of tools that were not used since, then those they were used with."""
        config, catalog = owned(request), request.app.catalog
        if self._definitions[0] is not catalog.modules:
            current = {each.path: definition_of(each) for each in catalog.tools}
            self._definitions = catalog.modules, current
        definitions, current = approvals_of(config).definitions, self._definitions[1]

        def read() -> list[DefinitionChange]:
            scope = config.namespace
            return [*definitions.compare_all(scope, current), *definitions.changes(scope)]

        found = await anyio.to_thread.run_sync(read)
        changes: Json = [
            {"tool": each.tool, "at": each.at, "changes": [*each.lines()]} for each in found[:_MAX]
        ]
        return {"changes": changes}

    async def _registry(self, request: RestRequest) -> Registry:
        await request.app.discovery.learn()
        catalog = request.app.catalog
        denied = frozenset(
            tool.path
            for tool in catalog.tools
            if is_denied(request.app.rules, tool, request.client)
        )
        known = self._registries.get((id(catalog), denied))
        statuses = catalog.statuses()
        is_settled = all(status.tools is not None for status in statuses)
        if known and known[0] is catalog.modules and is_settled:
            return known[1]
        registry = Registry([tool for tool in catalog.tools if tool.path not in denied], statuses)
        if is_settled:
            self._registries[id(catalog), denied] = catalog.modules, registry
            if len(self._registries) > _MAX_REGISTRIES:
                del self._registries[next(iter(self._registries))]
        return registry


async def _describe(request: RestRequest, arguments: JsonObject) -> Json:
    tool = await _tool(request, arguments)
    return described(tool, request.app.catalog.seen(tool))


async def _execute(request: RestRequest, arguments: JsonObject) -> Json:
    tool = await _tool(request, arguments)
    given: Any = arguments.get("arguments", {})
    app, kept = request.app, _Kept(request.app.workspace, request.app.shared.journal.new_id())
    notes: list[Json] = []
    result = await app.border.single(
        ToolCall(app.reach, tool, (), given, keep=kept, settle=kept.settle),
        request.origin,
        "rest",
        code=f"# A client called {tool.path} over REST.",
        run_id=kept.run_id,
        shown=render,
        on_note=notes.append,
    )
    answer: JsonObject = {"run_id": kept.run_id, "result": plain(result), "blobs": kept.blobs}
    return answer | {"notes": notes} if notes else answer


class _Kept:
    """Takes what is no value. Images and binaries come beside the result."""

    def __init__(self, workspace: Workspace, run_id: str) -> None:
        self.run_id = run_id
        self.blobs: JsonObject = {}
        self._artifacts = RunArtifacts(workspace, run_id)
        self._taken: dict[str, tuple[Blob, Redact | None]] = {}

    async def large(self, tool: Tool, answer: LargeAnswer) -> Json:
        """Have a file made of what is too large; it can be fetched by its path."""
        return await self._artifacts.large(tool, answer)

    def blob(self, blob: Blob, cover: Redact | None = None) -> Json:
        """Take an image or a binary."""
        name = f"{blob.mime_type.partition('/')[0]}_{len(self._taken) + 1}"
        self._taken[name] = blob, cover
        return {"blob": name, "mime_type": blob.mime_type, "bytes": blob.size_bytes}

    async def settle(self) -> None:
        """Have what was taken ready for the answer, concealed where that must be."""
        for name, taken in self._taken.items():
            blob = await redact_blob(*taken)
            self.blobs[name] = {"mime_type": blob.mime_type, "base64": blob.base64}


async def _tool(request: RestRequest, arguments: JsonObject) -> Tool:
    """Return the tool that is asked for, once its server has said what it has."""
    catalog, name = request.app.catalog, str(arguments["name"])
    try:
        return catalog.find(name)
    except NotFound:
        await request.app.discovery.learn()
    return catalog.find(name)


def _page(arguments: JsonObject, default: int) -> tuple[int, int]:
    limit: Any = arguments.get("limit", default)
    offset: Any = arguments.get("offset", 0)
    return limit, offset


def _described_schema() -> JsonObject:
    flag: JsonObject = {"type": "boolean"}
    return whole_object(
        {
            "name": _TEXT,
            "category": _TEXT,
            "description": _TEXT,
            "call": _TEXT,
            "parameters": {"type": "array", "items": _PARAMETER},
            "takes_others": flag,
            "returns": _TEXT,
            "example": whole_object({"arguments": {"type": "object"}}),
            "read_only": flag,
            "destructive": flag,
            "idempotent": flag,
        }
    )
