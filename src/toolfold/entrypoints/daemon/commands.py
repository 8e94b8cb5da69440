"""Run commands for terminals: each is a thin program that sends its words and prints what comes."""

import base64
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import anyio
import anyio.to_thread
from anyio.from_thread import BlockingPortal

from toolfold.app import App, SharedResources
from toolfold.catalog.questions import Elicitor
from toolfold.config.config import CommandCaller, Config, acting_for
from toolfold.entrypoints.cli import make_parser, run_command
from toolfold.entrypoints.daemon.app_pool import AppPool
from toolfold.entrypoints.mcp.lines import InFlight, LineStream
from toolfold.entrypoints.parser import Parser
from toolfold.entrypoints.terminal import (
    OnMemoryProgress,
    StreamName,
    TerminalInterrupt,
    attached,
    route_streams,
)
from toolfold.journal.runs import TERMINAL, Origin
from toolfold.memory.models import as_json
from toolfold.relay.wire import decode, encode

_T = TypeVar("_T")
_Content = TypeVar("_Content", str, bytes)
_log = logging.getLogger(__name__)

_MAX_COMMANDS: Final = 200
_MAX_HELD: Final = 8_192
_MAX_UNSENT: Final = 64
_MAX_PIECE: Final = 1_000_000
_INTERRUPTED: Final = 130
_FAILED: Final = 1
_MACHINE_ZONE: Final = Path("/etc/localtime")


class CommandServer:
    """Runs the commands of terminals, each in a thread of its own."""

    def __init__(self, apps: AppPool, shared: SharedResources) -> None:
        self._apps = apps
        self._shared = shared
        self._threads = anyio.CapacityLimiter(_MAX_COMMANDS)
        route_streams()

    async def serve(
        self, caller: CommandCaller, lines: LineStream, in_flight: InFlight, *, client: str
    ) -> None:
        """Run the command that a terminal asks for, and say how it ended.

        A terminal that leaves, or says that it was interrupted, ends what it asked for.
        """
        request = decode(await lines.receive()) or {}
        async with BlockingPortal() as portal, anyio.create_task_group() as tasks:
            terminal = SocketTerminal(
                id=client,
                apps=self._apps,
                shared=self._shared,
                lines=lines,
                portal=portal,
                streams=request.get("terminal") or {},
            )
            tasks.start_soon(terminal.hear)
            with in_flight.counting(client):
                status = await anyio.to_thread.run_sync(
                    _run, request.get("argv") or [], caller, terminal, limiter=self._threads
                )
                await terminal.finish(status)
            tasks.cancel_scope.cancel()


@cache
def _parser() -> Parser:
    return make_parser()  # that takes longer than most commands


def _run(argv: list[str], caller: CommandCaller, terminal: "SocketTerminal") -> int:
    """Run a command as if this were a process of its own; return its exit status."""
    with acting_for(caller), attached(terminal):
        try:
            return run_command(argv, _parser())
        except SystemExit as leaving:  # argument parsing ends so
            return leaving.code if isinstance(leaving.code, int) else int(bool(leaving.code))
        except TerminalInterrupt:
            return _INTERRUPTED
        except Exception:  # noqa: BLE001  # the outer edge
            _log.exception("A command ended with an error.")
            terminal.write("stderr", "toolfold: The command failed; see `toolfold logs`.\n")
            return _FAILED


@cache
def _zone(name: str) -> tzinfo | None:
    """Return the time zone of a value of TZ: without one, that of the machine."""
    try:
        if name:
            return ZoneInfo(name.removeprefix(":"))
        with _MACHINE_ZONE.open("rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return None  # a form that is not in the database: that of this process


def _pieces(content: _Content) -> Iterator[_Content]:
    """Cut what is printed into parts of which each fits into a line."""
    for start in range(0, len(content), _MAX_PIECE):
        yield content[start : start + _MAX_PIECE]


@dataclass(slots=True, eq=False, kw_only=True)
class SocketTerminal:
    """A terminal at the other end of a connection. Its methods may be called from any thread."""

    id: str
    apps: AppPool
    shared: SharedResources
    lines: LineStream
    portal: BlockingPortal
    streams: dict[str, Any]
    """Which of its standard streams a person is at, and how wide it is."""
    is_interrupted: bool = False
    _held: dict[str, list[str]] = field(default_factory=lambda: {"stdout": [], "stderr": []})
    _unsent: list[bytes] = field(default_factory=list)
    _changed: anyio.Event = field(default_factory=anyio.Event)
    _scopes: set[anyio.CancelScope] = field(default_factory=set)
    _loop_thread: int = field(default_factory=threading.get_ident)
    _replies: list[dict[str, Any]] = field(default_factory=list)

    @property
    def columns(self) -> int:
        """How wide it is; 0 where it is none."""
        return int(self.streams.get("columns") or 0)

    @property
    def zone(self) -> tzinfo | None:
        """Its time zone; None where it is that of this process."""
        return _zone(str(self.streams.get("zone") or ""))

    def is_tty(self, name: str) -> bool:
        """Whether a person is at one of its standard streams."""
        return bool(self.streams.get(name))

    def write(self, name: StreamName, content: str | bytes) -> None:
        """Print; without content, what was held back is sent."""
        if isinstance(content, bytes):
            self._flush(name)
            for piece in _pieces(content):
                self._post({name: base64.b64encode(piece).decode(), "is_base64": True})
            return
        held = self._held[name]
        held.append(content)
        is_line = self.is_tty(name) or name == "stderr"
        if not content or (is_line and "\n" in content) or sum(map(len, held)) > _MAX_HELD:
            self._flush(name)

    def _flush(self, name: StreamName) -> None:
        text = "".join(self._held[name])
        self._held[name].clear()
        for piece in _pieces(text):
            self._post({name: piece})

    def _post(self, message: dict[str, Any]) -> None:
        """Send in order. Who is not the event loop waits while too much is unsent."""
        if threading.get_ident() == self._loop_thread:
            self._put(message)
        else:
            self.portal.call(self._put_patiently, message)

    def _put(self, message: dict[str, Any]) -> None:
        self._unsent.append(encode(message))
        self._note_change()

    async def _put_patiently(self, message: dict[str, Any]) -> None:
        self._put(message)
        while len(self._unsent) > _MAX_UNSENT and not self.is_interrupted:
            await self._changed.wait()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def read_line(self, *, hidden: bool = False) -> str:
        """Return what is typed, with its end; "" when nothing more comes.

        What is `hidden` does not appear there while it is typed.

        Raises:
            Interrupted: The person pressed Control-C instead, or is gone.
        """
        self._flush("stdout")
        kind = "hidden" if hidden else "line"
        content: bytes = self.portal.call(self._ask, {"read": kind})
        return content.decode("utf-8", "surrogateescape")

    def read_input(self, path: str | None = None) -> bytes:
        """Return all of a file as that side sees it; of its standard input without a path.

        Raises:
            OSError: It cannot be read.
            Interrupted: As `read_line`.
        """
        content: bytes = self.portal.call(self._ask, {"read": "all", "path": path})
        return content

    async def _ask(self, message: dict[str, Any]) -> bytes:
        self._put(message)
        parts: list[bytes] = []
        while True:
            while not self._replies:
                if self.is_interrupted:
                    raise TerminalInterrupt
                await self._changed.wait()
            reply = self._replies.pop(0)
            if "error" in reply:
                raise OSError(0, str(reply["error"]))
            parts.append(base64.b64decode(reply.get("content", "")))
            if reply.get("is_last"):
                return b"".join(parts)

    def browse(self, address: str) -> None:
        """Have that side open an address in a browser."""
        self._post({"browse": address})

    def with_app(self, config: Config, action: Callable[[App], Awaitable[int]]) -> int:
        """Do something with the app of a configuration.

        Raises:
            Interrupted: The person pressed Control-C meanwhile, or is gone.
        """

        async def work() -> int:
            async with self.apps.enter(config) as app:
                return await action(app)

        return self.portal.call(self._interruptible, work)

    def config_of_run(self, run_id: str) -> Config | None:
        """Return in which configuration a run of this process began; None where it is not known."""
        return self.shared.run_configs.of(run_id)

    def ask_memory(
        self,
        config: Config,
        namespace: str,
        verb: str,
        arguments: dict[str, Any],
        *,
        on_progress: OnMemoryProgress | None,
        elicitor: Elicitor | None,
    ) -> Any:
        """Have a verb of memory done, and return its answer as JSON.

        Raises:
            ToolfoldError: It could not be done.
        """
        project = str(config.project or config.start_directory)
        door = self.shared.verb_doors.enter(
            config,
            Origin(client=TERMINAL, project=project),
            "terminal",
            namespace=namespace,
            ask=elicitor,
        )
        call = partial(door.call, verb, arguments, form=as_json, progress=on_progress)
        return self.portal.call(self._interruptible, call)

    async def _interruptible(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Do something until the terminal is interrupted.

        Raises:
            Interrupted: It was.
        """
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            if self.is_interrupted:
                scope.cancel()
            try:
                return await work()
            finally:
                self._scopes.discard(scope)
        raise TerminalInterrupt

    async def hear(self) -> None:
        """Take in what the terminal says, and send it what it is told."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._send_all)
            while True:
                try:
                    message = decode(await self.lines.receive()) or {}
                except anyio.EndOfStream:
                    self.interrupt()
                    return
                if "interrupt" in message:
                    self.interrupt()
                else:
                    self._replies.append(message)
                self._note_change()

    def interrupt(self) -> None:
        """End what the terminal asked for."""
        self.is_interrupted = True
        self._note_change()
        for scope in list(self._scopes):
            scope.cancel()

    async def _send_all(self) -> None:
        while True:
            while not self._unsent:
                await self._changed.wait()
            content = b"".join(self._unsent)
            self._unsent.clear()
            self._note_change()
            await self.lines.send(content)

    async def finish(self, status: int) -> None:
        """Say how the command ended, after all that it printed."""
        for name in self._held:
            for piece in _pieces("".join(self._held[name])):
                self._put({name: piece})
        unsent, self._unsent = self._unsent, []
        await self.lines.send(b"".join([*unsent, encode({"status": status})]))
