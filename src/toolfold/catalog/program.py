"""A command-line program as an upstream: its declared commands are tools, and no shell is used."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

import anyio
import mcp_types as types
from anyio.abc import ByteReceiveStream, Process
from mcp.client.stdio import get_default_environment

from toolfold.catalog.large import LargeParts, MessageSizes, TooLong
from toolfold.catalog.pace import CallPace
from toolfold.catalog.questions import Elicitor
from toolfold.catalog.sanitize import plain
from toolfold.catalog.secrets import ServerSecrets, redacted
from toolfold.catalog.tool import ListedTool
from toolfold.catalog.tools_only import ToolsOnly
from toolfold.catalog.transport import ServerStart
from toolfold.catalog.upstream import OnWait
from toolfold.catalog.upstream_request import AnswerT, CallListener, UpstreamRequest
from toolfold.config.servers import CliArgument, CliCommand, ServerConfig
from toolfold.errors import BadCall, ToolFailed, UpstreamTimedOut, UpstreamUnavailable
from toolfold.jsontypes import Json, JsonObject

_MAX_WORD_BYTES: Final = 100_000  # the kernel takes 131,072
_MAX_WORDS_BYTES: Final = 1_000_000
_MAX_ERROR_BYTES: Final = 16_384
_MAX_ERROR_CHARS: Final = 1_500


class ProgramUpstream(ToolsOnly):
    """A program that is started for every call."""

    def __init__(
        self,
        config: ServerConfig,
        *,
        start: ServerStart,
        cache_directory: Path,
        sizes: MessageSizes,
        secrets: ServerSecrets,
    ) -> None:
        super().__init__(config, cache_directory=cache_directory, sizes=sizes, secrets=secrets)
        self._start = start
        self._commands = {each.name: each for each in config.commands}
        self._tools = command_tools(config)
        self._pace = CallPace(config.name, config.rate_per_s)
        self.protocol = "command line"

    @property
    def state(self) -> str:
        """Never connected: it runs while it is called."""
        return "idle"

    @property
    def known_tools(self) -> tuple[ListedTool, ...]:
        """The commands that its entry declares."""
        return self._tools

    async def tools(self, *, fresh: bool = False) -> tuple[ListedTool, ...]:
        """Return its commands; `fresh` sees whether it is there.

        Raises:
            UpstreamUnavailable: There is no such program.
        """
        if fresh:
            self.fault = None
            if shutil.which(self.config.command, path=self._start.path) is None:
                self.fault = f"there is no program {self.config.command!r} in the PATH"
                raise UpstreamUnavailable(f"The server {self.name!r} cannot be used: {self.fault}")
            await self._look_for_secrets()
        return self._tools

    async def run(
        self,
        request: UpstreamRequest[AnswerT],
        *,
        on_wait: OnWait = lambda _why, _seconds: None,
        ask: Elicitor | None = None,  # noqa: ARG002  # nobody sits at its terminal
        listener: CallListener | None = None,  # noqa: ARG002
    ) -> AnswerT:
        """Run a command and return what it printed. Those that change something run one at a time.

        Raises:
            UpstreamUnavailable: The program cannot be started.
            UpstreamTimedOut: It did not end in time, and was ended.
            BadCall: The arguments cannot be given to it.
        """
        params = request.make(None, None).params
        if not isinstance(params, types.CallToolRequestParams):
            raise ToolFailed(f"{self.name} is a program, with neither prompts nor resources.")
        command = self._commands[params.name]
        words = command_words(command, cast("JsonObject", params.arguments or {}))
        async with self._turns.take(is_write=request.is_write):
            await self._pace.wait(on_wait)
            return cast("AnswerT", await self._execute(command, words))

    def restart(self) -> None:
        """See `Upstream`: secrets are read again."""
        self.fault = None
        self._forget_secrets()

    async def serve(self) -> None:
        """Wait until cancelled: nothing of it is running between calls."""
        await anyio.sleep_forever()

    async def _execute(self, command: CliCommand, words: list[str]) -> types.CallToolResult:
        server = (await self._filled()).config
        try:
            process = await anyio.open_process(
                [server.command, *words],
                stdin=subprocess.DEVNULL,
                env=get_default_environment() | self._start.environ() | dict(server.env),
                cwd=server.cwd or self._start.directory,
                start_new_session=True,
            )
        except OSError as error:
            raise UpstreamUnavailable(
                f"The server {self.name!r} cannot be used: {server.command} cannot be started: "
                f"{error.strerror}."
            ) from error
        try:
            self.on_connected()
            with anyio.fail_after(self.config.timeout_s):
                return await self._result(command, process)
        except TimeoutError as error:
            raise UpstreamTimedOut(
                f"{self.name}: {command.name} did not end within {self.config.timeout_s:g} s, and "
                "was ended."
            ) from error
        except TooLong as error:
            raise ToolFailed(f"{self.name}: {command.name} was ended: {error}.") from error
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)

    async def _result(self, command: CliCommand, process: Process) -> types.CallToolResult:
        assert process.stdout is not None  # noqa: S101
        assert process.stderr is not None  # noqa: S101
        said, words = _Output(self.parts), _ErrorOutput()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(words.read, process.stderr)
            await said.read(redacted(_pieces(process.stdout), self._redactor))
            if said.trouble is None:
                await process.wait()
            else:
                tasks.cancel_scope.cancel()
        if said.trouble is not None:
            raise said.trouble
        if process.returncode == 0:
            return types.CallToolResult(content=[types.TextContent(type="text", text=said.text)])
        told = self._covered(plain(words.text or said.text).strip()[-_MAX_ERROR_CHARS:])
        text = f"{command.name} ended with status {process.returncode}" + (told and f": {told}")
        block = types.TextContent(type="text", text=self.cover_words(text))
        return types.CallToolResult(content=[block], is_error=True)


class _Output:
    """What a program prints; kept in a file where it is long."""

    def __init__(self, parts: LargeParts) -> None:
        self._parts = parts
        self.text = ""
        self.trouble: TooLong | None = None

    async def read(self, pieces: AsyncIterator[bytes]) -> None:
        try:
            gathered = await self._parts.gather(pieces)
        except TooLong as error:
            self.trouble = error
            return
        self.text = gathered if isinstance(gathered, str) else gathered.decode("utf-8", "replace")


class _ErrorOutput:
    """The end of what a program says of its errors."""

    def __init__(self) -> None:
        self._said = bytearray()

    async def read(self, stream: ByteReceiveStream) -> None:
        async for piece in _pieces(stream):
            self._said += piece
            del self._said[:-_MAX_ERROR_BYTES]

    @property
    def text(self) -> str:
        return self._said.decode("utf-8", "replace")


async def _pieces(stream: ByteReceiveStream) -> AsyncIterator[bytes]:
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            yield await stream.receive()


async def _end(process: Process) -> None:
    """End what is left of a call, and what it started."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    await process.aclose()


def command_words(command: CliCommand, arguments: JsonObject) -> list[str]:
    """Return the words of a command line: fixed ones, options, then what stands by its position.

    Raises:
        BadCall: A value cannot be given: the program would take it for an option.
    """
    options: list[str] = []
    positional: list[str] = []
    for argument in command.arguments:
        for text in _texts(argument, arguments.get(argument.name)):
            if argument.option:
                options += _option(argument, text)
            elif text.startswith("-") and not command.ends_options:
                raise BadCall(
                    f"{argument.name!r} cannot begin with `-`: {command.name} would take it for "
                    "an option."
                )
            else:
                positional.append(text)
    separator = ["--"] if command.ends_options and positional else []
    words = [*command.words, *options, *separator, *positional]
    if sum(len(each.encode("utf-8", "replace")) for each in words) > _MAX_WORDS_BYTES:
        raise BadCall(f"The arguments have more than {_MAX_WORDS_BYTES:,} bytes.")
    return words


def _texts(argument: CliArgument, value: Json) -> Iterator[str]:
    """Give the values of an argument as a program reads them; none of a switch that is off."""
    values = value if argument.is_list and isinstance(value, list) else [value]
    for each in values:
        if each is None or each is False:
            continue
        text = "" if each is True else str(each)
        if "\0" in text or len(text.encode("utf-8", "replace")) > _MAX_WORD_BYTES:
            raise BadCall(
                f"{argument.name!r} holds a NUL or more than {_MAX_WORD_BYTES:,} bytes, which no "
                "program can be given."
            )
        yield text


def _option(argument: CliArgument, text: str) -> list[str]:
    option = argument.option
    if argument.type == "boolean":
        return [option]
    if option.startswith("--"):
        return [f"{option}={text}"]
    if text.startswith("-") and argument.type == "string":
        raise BadCall(f"{argument.name!r} cannot begin with `-`: it would be taken for an option.")
    return [option, text]


def command_tools(server: ServerConfig) -> tuple[ListedTool, ...]:
    """Return what a program may be run for, as tools: its entry says all of it."""
    return tuple(map(_tool, server.commands))


def _tool(command: CliCommand) -> ListedTool:
    properties: JsonObject = {each.name: _schema(each) for each in command.arguments}
    return ListedTool(
        name=command.name,
        description=command.description,
        input_schema={
            "type": "object",
            "properties": properties,
            "required": [each.name for each in command.arguments if each.is_required],
            "additionalProperties": False,
        },
        read_only=command.is_read_only,
        destructive=command.is_destructive,
        idempotent=command.is_read_only,
    )


def _schema(argument: CliArgument) -> JsonObject:
    schema: JsonObject = {"type": argument.type}
    if argument.choices:
        schema["enum"] = [*argument.choices]
    if argument.is_list:
        schema = {"type": "array", "items": schema}
    return schema | ({"description": argument.description} if argument.description else {})
