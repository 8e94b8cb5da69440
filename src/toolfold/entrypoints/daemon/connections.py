"""How a daemon receives whoever connects.

A client is greeted in two steps. It says where it is and with which options; it is told which
variables its configuration names; it gives those and nothing else. From then on it speaks MCP.
"""

import hmac
import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import anyio
import anyio.to_thread
from anyio.abc import ByteStream, TaskGroup
from mcp.server import Server

from toolfold import __version__
from toolfold.app import SharedResources
from toolfold.config.config import CommandCaller, Config, deciding_files
from toolfold.config.remotes import notes_file
from toolfold.entrypoints.daemon.app_pool import AppPool, CurrentApp
from toolfold.entrypoints.daemon.client_context import ClientContext
from toolfold.entrypoints.daemon.clients import ConnectedClient, ConnectedClients, Wait
from toolfold.entrypoints.daemon.commands import CommandServer
from toolfold.entrypoints.daemon.hooks import HookServer, review_program
from toolfold.entrypoints.daemon.reload import ConfigWatch, FileWatch, Following, GoodFiles
from toolfold.entrypoints.daemon.verbs import VerbServer
from toolfold.entrypoints.hooks.service import Hooks
from toolfold.entrypoints.mcp.lines import CallTool, LineStream, serve_lines
from toolfold.entrypoints.mcp.manifest_writer import save_manifest
from toolfold.entrypoints.mcp.memory import graph_call, make_memory_server
from toolfold.entrypoints.mcp.server import make_server
from toolfold.errors import ConfigError, ToolfoldError
from toolfold.execution.background import describe_interrupted, describe_losses
from toolfold.journal.runs import TERMINAL
from toolfold.relay.wire import WIRE, decode, encode

_log = logging.getLogger(__name__)

_GREETING_S: Final = 30.0
_REPLACING_S: Final = 5.0
_MAX_HELLO: Final = 1024 * 1024
_MAX_VERSION: Final = 40

Prove = Callable[[str], str]
"""Returns what only somebody who knows the daemon's token can say to a message."""


class DaemonControl(Protocol):
    """The daemon, as far as those who connect can tell it something."""

    def status(self) -> dict[str, Any]:
        """Say what is going on."""
        ...

    def drain(self) -> None:
        """Make room for another daemon."""
        ...

    def stop(self, *, now: bool) -> None:
        """End because a person asked for it."""
        ...


class ConnectionServer:
    """Greets those who connect, and serves clients."""

    def __init__(
        self,
        daemon: DaemonControl,
        shared: SharedResources,
        apps: AppPool,
        clients: ConnectedClients,
        background: TaskGroup,
    ) -> None:
        self._daemon = daemon
        self._background = background
        self._shared = shared
        self._apps = apps
        self._clients = clients
        self._greeted: set[str] = set()
        self.watch: Final = FileWatch()
        """Must be served for changes of files to be noticed."""
        self.files: Final = GoodFiles()
        self._commands = CommandServer(apps, shared)
        self._hooks = Hooks(
            shared.verb_doors,
            shared.embedder,
            journal=shared.journal,
            review=partial(review_program, apps),
        )

    async def receive(self, stream: ByteStream, prove: Prove) -> None:
        """Serve one connection to its end. Whatever goes wrong concerns that one alone."""
        async with stream:
            lines = LineStream(stream)
            with self._clients.connected():
                try:
                    hello = await _next(lines)
                    if _is_allowed(hello, prove):
                        await self._welcome(hello, lines, prove)
                except (anyio.EndOfStream, TimeoutError):
                    return
                except ToolfoldError as error:
                    await self._refuse(lines, str(error))
                except Exception:  # noqa: BLE001  # the outer edge
                    _log.exception("A connection ended with an error.")
                    await self._refuse(lines, "The toolfold daemon failed; see `toolfold logs`.")

    async def _refuse(self, lines: LineStream, reason: str) -> None:
        """Say why a client is not served. A newer one may say that it knows better."""
        await lines.send(encode({"error": reason, "version": __version__}))
        with anyio.move_on_after(_REPLACING_S):
            try:
                self._obey(decode(await lines.receive()) or {})
            except anyio.EndOfStream:
                return

    def _obey(self, reply: dict[str, Any]) -> bool:
        if reply.get("drain"):
            _log.info("A newer toolfold takes over.")
            self._daemon.drain()
            return True
        return False

    async def _welcome(self, hello: dict[str, Any], lines: LineStream, prove: Prove) -> None:
        match hello.get("kind"):
            case "mcp" | "verbs" | "hook" | "command":
                await self._greet(hello, lines, prove)
            case "status":
                await lines.send(encode(self._daemon.status()))
            case "stop":
                await lines.send(encode(self._daemon.status()))
                self._daemon.stop(now=bool(hello.get("now")))
            case kind:
                raise ConfigError(f"The daemon of toolfold {__version__} does not know {kind!r}.")

    async def _greet(self, hello: dict[str, Any], lines: LineStream, prove: Prove) -> None:
        context = ClientContext.read(hello)
        is_command = hello["kind"] == "command"  # what is wrong with settings it says itself
        given = [] if is_command else await self._variables(context)
        greeting = {
            "wire": WIRE,
            "version": __version__,
            "proof": prove(f"daemon:{hello.get('nonce')}"),
            "needs": given,
        }
        await lines.send(encode(greeting))
        reply = await _next(lines)
        if self._obey(reply):
            return
        if not isinstance(reply.get("environ"), dict):
            raise ConfigError("The relay did not say which variables it has.")
        if is_command:
            await self._serve_command(hello, reply, context, lines)
            return
        load = partial(context.config, reply["environ"], self.files.read)
        config = await anyio.to_thread.run_sync(load)
        project = str(config.project or config.start_directory)
        client = _client(hello, project)
        lost = reply.get("lost", [])
        losses = describe_losses(self._shared.journal, client.id, lost) if lost else {}
        if hello["kind"] == "mcp":
            await self._remind(client.id, [*lost, *reply.get("told", [])])
        ready = encode({"ready": True, "pid": os.getpid(), "lost": losses})
        following = self._following(config, client.id, hello, load)

        async def is_known(new: Config) -> bool:
            needs = await self._variables(context)
            return set(needs) <= set(given) and new.settings.tools == "code"

        following.is_known = is_known
        await self._serve(config, client, lines, hello, ready, following)

    def _following(
        self, config: Config, client: str, hello: dict[str, Any], load: Callable[[], Config]
    ) -> Following:
        files = deciding_files(config, Path(hello["cwd"]), hello["config"])
        if config.project is not None:
            files.append(notes_file(config.project))

        def tell() -> None:
            if hello["kind"] == "mcp":
                self._shared.background_runs.owe(client, self.files.news(client, files))

        tell()
        return Following(watch=ConfigWatch(self.watch, files, load, tell), config=config)

    async def _variables(self, context: ClientContext) -> list[str]:
        return await anyio.to_thread.run_sync(context.variables, self.files.read)

    async def _remind(self, client: str, known: list[str]) -> None:
        """Have a client that this daemon has not seen told what became of its runs before it."""
        if client not in self._greeted:
            self._greeted.add(client)
            told = await anyio.to_thread.run_sync(
                describe_interrupted, self._shared.journal, client, known
            )
            self._shared.background_runs.owe(client, told)

    async def _serve(  # what was found out of a client
        self,
        config: Config,
        client: ConnectedClient,
        lines: LineStream,
        hello: dict[str, Any],
        ready: bytes,
        following: Following,
    ) -> None:
        match hello["kind"]:
            case "verbs":
                await lines.send(ready)
                await self._serve_verbs(config, client, lines)
            case "hook":
                await lines.send(ready)
                await self._serve_hook(config, client, lines)
            case _ if config.settings.tools != "code":
                await lines.send(ready)
                await self._serve_memory(config, client, lines, hello, following)
            case _:
                async with self._apps.follow(config) as current:
                    await lines.send(ready)
                    await self._serve_code(current, client, lines, hello, following)

    async def _serve_command(
        self,
        hello: dict[str, Any],
        reply: dict[str, Any],
        context: ClientContext,
        lines: LineStream,
    ) -> None:
        client = _client(hello, str(context.cwd))
        lost = reply.get("lost", [])
        losses = describe_losses(self._shared.journal, TERMINAL, lost) if lost else {}
        await lines.send(encode({"ready": True, "pid": os.getpid(), "lost": losses}))
        caller = CommandCaller(context.cwd, reply["environ"])
        async with self._clients.served(client):
            await self._commands.serve(caller, lines, client.in_flight, client=client.id)

    async def _serve_code(
        self,
        current: CurrentApp,
        client: ConnectedClient,
        lines: LineStream,
        hello: dict[str, Any],
        following: Following,
    ) -> None:
        is_outdated = False

        async def follow() -> None:
            nonlocal is_outdated
            await following.switch(current, keep)
            is_outdated = True

        def keep() -> None:
            # Also if this client leaves at once.
            with current.using() as app:
                make = partial(make_server, app)
                self._background.start_soon(save_manifest, app.config, make, hello)

        keep()
        server = make_server(current, client=client.id, session=client.id)
        try:
            await self._serve_mcp(server, client, lines, outdated=follow)
        finally:
            if not is_outdated:  # else it comes back at once, and asks what became of its runs
                self._shared.background_runs.leave(client.id)

    async def _serve_memory(
        self,
        config: Config,
        client: ConnectedClient,
        lines: LineStream,
        hello: dict[str, Any],
        following: Following,
    ) -> None:
        make = partial(make_memory_server, self._shared.stores, config, client=client.id)
        self._background.start_soon(save_manifest, config, make, hello)
        call = graph_call(self._shared.stores, config, client=client.id)
        outdated = partial(following.watch.changed, config)
        await self._serve_mcp(make(), client, lines, call=call, outdated=outdated)

    async def _serve_mcp(
        self,
        server: Server[Any],
        client: ConnectedClient,
        lines: LineStream,
        *,
        call: CallTool | None = None,
        outdated: Wait | None = None,
    ) -> None:
        async with self._clients.served(client, outdated=outdated):
            await serve_lines(server, lines, client.in_flight, call=call)

    async def _serve_verbs(
        self, config: Config, client: ConnectedClient, lines: LineStream
    ) -> None:
        server = VerbServer(
            doors=self._shared.verb_doors,
            config=config,
            client=client.id,
            lines=lines,
            in_flight=client.in_flight,
        )
        async with self._clients.served(client):
            await server.serve()

    async def _serve_hook(self, config: Config, client: ConnectedClient, lines: LineStream) -> None:
        server = HookServer(
            hooks=self._hooks, config=config, lines=lines, in_flight=client.in_flight
        )
        async with self._clients.served(client):
            await server.serve()


def _client(hello: dict[str, Any], project: str) -> ConnectedClient:
    version = str(hello.get("version", ""))[:_MAX_VERSION]
    return ConnectedClient(
        id=str(hello["client"]), pid=hello.get("pid", 0), project=project, version=version
    )


async def _next(lines: LineStream) -> dict[str, Any]:
    with anyio.fail_after(_GREETING_S):
        return decode(await lines.receive(at_most=_MAX_HELLO)) or {}


def _is_allowed(hello: dict[str, Any], prove: Prove) -> bool:
    expected = prove(f"client:{hello.get('nonce')}")
    return hmac.compare_digest(str(hello.get("proof", "")).encode(), expected.encode())
