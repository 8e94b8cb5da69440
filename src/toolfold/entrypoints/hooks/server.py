"""Answer a hook by an MCP server that the user named, where memory does not answer.

Its tools are known by their names. Calls pass the border as all others do, from the hook's door.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import anyio.to_thread

from toolfold.app import App, running_app, running_shared
from toolfold.catalog.tool import Tool
from toolfold.config.config import Config, load_config
from toolfold.entrypoints.hooks.service import HookAnswer
from toolfold.errors import BadInput, Denied, NeedsApproval, NotFound, Unrecorded, UpstreamError
from toolfold.execution.access import ForwardedCall
from toolfold.journal.runs import Origin
from toolfold.jsontypes import JsonObject
from toolfold.relay.hooks.record import describe, read_transcript
from toolfold.relay.hooks.secrets import beginning_without_secrets
from toolfold.relay.hooks.text import fenced, within

_SEARCH: Final = (
    "memory_search", "retrieve_memory", "search_memory", "recall", "search", "search_nodes"
)  # fmt: skip
_STORE: Final = ("memory_store", "store_memory", "remember", "store")
_HOW: Final = "They come from an MCP server, whose tools say more."
_MAX_QUERY: Final = 1_000
_FENCE_TOKENS: Final = 120


async def answer_by_server(name: str, request: dict[str, Any]) -> HookAnswer:
    """Answer one hook by a server of the user's own file; what a rule forbids is a remark.

    Raises:
        ConfigError: Settings or rules cannot be read.
        BadInput: There is no transcript to keep a record of.
        NotFound: There is no such server, or it has no tool for this.
        UpstreamError: It failed.
    """
    config = load_config()
    config = load_config(config_file=config.directories.config / "mcp.json")
    servers = tuple(each for each in config.servers if each.name == name and each.enabled)
    if not servers:
        raise NotFound(f"Your mcp.json has no usable server {name!r} (hooks.server).")
    config = replace(config, servers=servers)
    async with (
        running_shared(config, opens_memory=False) as shared,
        running_app(config, shared) as app,
    ):
        try:
            return await _answer(app, name, request)
        except (Denied, NeedsApproval, Unrecorded) as error:
            return {"remarks": [str(error)]}


async def _answer(app: App, name: str, request: dict[str, Any]) -> HookAnswer:
    payload: dict[str, str] = request.get("payload") or {}
    if request.get("hook") in {"session-start", "prompt"}:
        return _found(app.config, name, await _use(app, _SEARCH, _query(app.config, payload)))
    if content := await anyio.to_thread.run_sync(_record, app.config, payload):
        await _use(app, _STORE, {"content": content, "tags": ["session"]})
    return {}


async def _use(app: App, names: Sequence[str], given: JsonObject) -> str:
    """Call the first of these tools that there is, with those arguments that it takes."""
    await app.catalog.learn()
    for status in app.catalog.statuses():
        if status.fault:
            raise UpstreamError(f"{status.name}: {status.fault}")
    tool = _first([each for each in app.catalog.tools if not each.is_built_in], names)
    taken = tool.listed.input_schema.get("properties")
    arguments = {
        key: value for key, value in given.items() if isinstance(taken, dict) and key in taken
    }
    project = str(app.config.project or app.config.start_directory)
    result = await app.border.single(
        ForwardedCall(app.reach, tool, arguments),
        Origin(client="hook", project=project),
        "hook",
        code=f"# A hook called {tool.path}.",
    )
    text = "\n".join(block.text for block in result.content if block.type == "text")
    if result.is_error:
        raise UpstreamError(f"{tool.path} failed: {text}")
    return text


def _first(tools: Sequence[Tool], names: Sequence[str]) -> Tool:
    there = {tool.listed.name: tool for tool in tools}
    for name in names:
        if name in there:
            return there[name]
    raise NotFound(f"The server has none of the tools {', '.join(names)}.")


def _query(config: Config, payload: dict[str, str]) -> JsonObject:
    prompt = beginning_without_secrets(payload.get("prompt", ""), _MAX_QUERY)
    query = prompt or config.start_directory.name or "project"
    notes = config.settings.hooks.notes
    return {"query": query[:_MAX_QUERY], "limit": notes, "n_results": notes}


def _found(config: Config, name: str, text: str) -> HookAnswer:
    budget = config.settings.hooks.budget_tokens - _FENCE_TOKENS
    lines = within([line for line in text.splitlines() if line.strip()], budget)
    if not lines:
        return {}
    project = config.start_directory.name
    return {"context": fenced(lines, project=project, about=f"MCP server {name}", how=_HOW)}


def _record(config: Config, payload: dict[str, str]) -> str:
    path = payload.get("transcript_path")
    if not path:
        return ""
    directory = config.start_directory
    try:
        transcript = read_transcript(path)
    except (OSError, ValueError) as error:
        raise BadInput(f"The transcript cannot be read: {error}.") from error
    return describe(transcript, project=directory.name, directory=str(directory))
