"""Ask our own server what clients ask first, and keep the answers for relays."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.shared.message import SessionMessage

from toolfold import __version__
from toolfold.catalog.listing import write_whole
from toolfold.config.config import Config, deciding_files
from toolfold.entrypoints.mcp.lines import initialization_options
from toolfold.relay.manifest import as_manifest, file_states, manifest_path
from toolfold.relay.surface import LEGACY_VERSIONS, MODERN_VERSIONS

_log = logging.getLogger(__name__)

_LISTS: Final = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
MakeServer: TypeAlias = Callable[[], Server[Any]]

_ABOUT: Final = {"name": "toolfold-rehearsal", "version": __version__}


async def save_manifest(config: Config, make: MakeServer, hello: dict[str, Any]) -> None:
    """Write what a relay in the world of `hello` may answer without us."""
    path = anyio.Path(manifest_path(str(config.directories.cache), hello))
    files = deciding_files(config, Path(hello["cwd"]), hello["config"])
    states = file_states(map(str, files))  # before we ask: what changes meanwhile must show
    try:
        text = as_manifest(await collect_first_answers(make), states, __version__)
        if not await path.exists() or await path.read_text(encoding="utf-8") != text:
            write_whole(Path(path), text)
    except Exception:  # noqa: BLE001  # the edge of a background task
        _log.exception("The manifest cannot be written.")


async def collect_first_answers(make: MakeServer) -> dict[str, Any]:
    """Return the first answers of every protocol that we speak."""
    latest = LEGACY_VERSIONS[-1]
    greeting = {"protocolVersion": latest, "capabilities": {}, "clientInfo": _ABOUT}
    questions = {"initialize": greeting} | {method: {} for method in _LISTS}
    answers: dict[str, Any] = {"legacy": await _ask(make(), questions)}
    for version in MODERN_VERSIONS:
        envelope = {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": _ABOUT,
            }
        }
        modern = dict.fromkeys(("server/discover", *_LISTS), envelope)
        answers[version] = await _ask(make(), modern)
    return answers


async def _ask(server: Server[Any], questions: dict[str, Any]) -> dict[str, Any]:
    """Return the result of each method, asked in turn on one connection."""
    to_server, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    results = {}
    async with to_server, from_server, anyio.create_task_group() as tasks:
        tasks.start_soon(server.run, read, write, initialization_options(server))
        for method, params in questions.items():
            request = types.JSONRPCRequest(jsonrpc="2.0", id=1, method=method, params=params)
            await to_server.send(SessionMessage(request))
            answer = (await from_server.receive()).message
            if isinstance(answer, types.JSONRPCResponse):
                results[method] = answer.result
            if method == "initialize":
                done = types.JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
                await to_server.send(SessionMessage(done))
        tasks.cancel_scope.cancel()
    return results
