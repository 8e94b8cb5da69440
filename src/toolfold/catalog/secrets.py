"""Secrets of servers: what references stand for, found when a server starts, and kept from view.

Values are held in memory only. What a server says passes a `Redactor`, which takes out the values
that this server was given: that keeps them from models, journals and logs when a server repeats
them by mistake. One that wants to tell them can write them in another way.
"""

import base64
import json
import logging
import os
import re
import shlex
import shutil
import signal
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE
from threading import Thread
from typing import Any, Final
from urllib.parse import quote, quote_plus

import anyio
import anyio.to_thread
import httpx2
from anyio.abc import ByteReceiveStream

from toolfold.catalog.known_values import is_secret_name
from toolfold.config.servers import Pairs, SecretReference, ServerConfig
from toolfold.errors import ConfigError, StoreError
from toolfold.storage.files import read_file
from toolfold.storage.secrets import MAX_CHARS, SecretStore

_COMMAND_S: Final = 60.0
_MIN_CHARS: Final = 6
_MIN_DIGITS: Final = 12
"""What is shorter stands in answers by chance."""

_MIN_LITERAL_CHARS: Final = 8
"""What stands in a file without a reference may be any word, such as `none`."""

_READ_BYTES: Final = 65_536
_DRAIN_S: Final = 2.0
_HIDDEN: Final = "[secret]"
_SCHEME: Final = re.compile(r"(?:Bearer|Basic|Token)\s+", re.IGNORECASE)


class Redactor:
    """Takes the secrets of a server out of what it says."""

    def __init__(self, values: Mapping[str, str]) -> None:
        """Hide each value behind the name that it is given by."""
        self._hidden = {
            spelling: name for value, name in values.items() for spelling in _spellings(value)
        }
        longest_first = sorted(self._hidden, key=len, reverse=True)
        self._texts = _pattern(longest_first)
        self._bytes = re.compile(self._texts.pattern.encode()) if self._texts else None
        self._whole = tuple(each.encode() for each in longest_first)

    def text(self, text: str) -> str:
        """Return a text without the secrets."""
        if self._texts is None:
            return text
        return self._texts.sub(lambda found: self._hidden[found[0]], text)

    def content(self, content: bytes) -> bytes:
        """Return bytes of text without the secrets."""
        if self._bytes is None:
            return content
        return self._bytes.sub(lambda found: self._hidden[found[0].decode()].encode(), content)

    def unfinished(self, content: bytes) -> int:
        """Return how many bytes at the end may be the beginning of a secret."""
        longest = 0
        for secret in self._whole:
            at = max(0, len(content) - len(secret) + 1)
            while (at := content.find(secret[:1], at)) != -1:
                if secret.startswith(content[at:]):
                    longest = max(longest, len(content) - at)
                    break
                at += 1
        return longest


class RedactedBytes:
    """Takes secrets out of bytes that come in pieces, wherever the pieces are cut."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """Return what can be passed on now."""
        content = self._redactor.content(self._held + piece)
        cut = len(content) - self._redactor.unfinished(content)
        self._held = content[cut:]
        return content[:cut]

    def end(self) -> bytes:
        """Return what was held back, when no more comes."""
        held, self._held = self._held, b""
        return held


class RedactedBody(httpx2.AsyncByteStream):
    """The body of a response, without secrets."""

    def __init__(self, body: Any, redactor: Redactor) -> None:
        self._body = body
        self._redactor = redactor

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in redacted(self._body, self._redactor):
            yield piece

    async def aclose(self) -> None:
        """Close what it is read from."""
        await self._body.aclose()


async def redacted(pieces: Any, redactor: Redactor | None) -> AsyncIterator[bytes]:
    """Yield pieces of a text without the secrets, wherever they are cut."""
    passing = None if redactor is None else RedactedBytes(redactor)
    async for piece in pieces:
        yield piece if passing is None else passing.feed(piece)
    if passing is not None:
        yield passing.end()


class RedactedLog:
    """A log file that a program writes to through a pipe, in which its secrets do not appear."""

    def __init__(self, log: Any, redactor: Redactor) -> None:
        self._log = log
        self._redactor = redactor
        self._reads, self._writes = os.pipe()
        self._copying = Thread(target=self._copy, daemon=True, name="redacted log")

    def __enter__(self) -> "RedactedLog":
        self._copying.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for what the program wrote before it ended; what it left behind may go on."""
        os.close(self._writes)
        self._copying.join(_DRAIN_S)

    def fileno(self) -> int:
        """Return what the program writes to."""
        return self._writes

    def _copy(self) -> None:
        passing = RedactedBytes(self._redactor)
        with self._log as log:
            while piece := os.read(self._reads, _READ_BYTES):
                log.buffer.write(passing.feed(piece))
                log.buffer.flush()
            log.buffer.write(passing.end())
        os.close(self._reads)


@dataclass(frozen=True, slots=True)
class FilledServer:
    """A server with its secrets, as it is started, and who takes them out of what it says."""

    config: ServerConfig
    redactor: Redactor | None


class Secrets:
    """What references to secrets stand for, known to this process alone."""

    def __init__(self, store: SecretStore, environ: Mapping[str, str]) -> None:
        """Keep to a store; `environ` is what commands get, with the user's PATH and HOME."""
        self._store = store
        self._environ = environ
        self._of_commands: dict[str, str] = {}
        self._turns: dict[str, anyio.Lock] = {}
        self._known: dict[str, str] = {}
        self._redactor = Redactor({})

    async def filled(self, server: ServerConfig, *, path: str, home: str) -> FilledServer:
        """Return a server with its secrets.

        `path` and `home` are those of its user, for commands that print a secret.

        Raises:
            ConfigError: One of them cannot be had; the message says what to do.
        """
        values: dict[SecretReference, str] = {}
        for reference in server.references:
            values[reference] = await self._value(server, reference, path=path, home=home)
        filled = server.with_secrets(values.__getitem__)
        if server.url and not re.match(r"https?://[^/\s]", filled.url, re.IGNORECASE):
            raise ConfigError("the secret in its `url` does not make it begin with https://.")
        plain = {each.id for each in server.inputs if not each.is_secret}
        hidden = _literals(server) | {
            value: f"[secret {each.name}]" if each.is_stored else _HIDDEN
            for each, value in values.items()
            if each.name not in plain and _can_be_hidden(value)
        }
        self._remember(hidden)
        return FilledServer(filled, Redactor(hidden) if hidden else None)

    def forget(self, server: ServerConfig) -> bool:
        """Have commands asked again for the secrets of a server; return whether it has such."""
        found = [each.name for each in server.references if each.kind == "cmd"]
        for name in found:
            self._of_commands.pop(name, None)
        return any(not each.is_stored for each in server.references)

    def text(self, text: str) -> str:
        """Return a text without any secret that was used in this process."""
        return self._redactor.text(text)

    @contextmanager
    def kept_from_logs(self) -> Iterator[None]:
        """Take secrets out of what this process logs."""
        handlers = list(logging.getLogger().handlers)
        for handler in handlers:
            handler.addFilter(self._clean)
        try:
            yield
        finally:
            for handler in handlers:
                handler.removeFilter(self._clean)

    def _clean(self, record: logging.LogRecord) -> bool:
        if self._known:
            record.msg, record.args = self.text(record.getMessage()), ()
            if record.exc_info:
                told = logging.Formatter().formatException(record.exc_info)
                record.exc_text = self.text(told)
        return True

    def _remember(self, hidden: Mapping[str, str]) -> None:
        if hidden.keys() - self._known.keys():
            self._known |= hidden
            self._redactor = Redactor(self._known)

    async def _value(
        self, server: ServerConfig, reference: SecretReference, *, path: str, home: str
    ) -> str:
        if reference.kind == "cmd":
            value = await self._of_command(reference.name, path=path, home=home)
        elif reference.kind == "file":
            value = await anyio.to_thread.run_sync(_of_file, reference.name, home)
        else:
            value = await anyio.to_thread.run_sync(self._stored, server, reference)
        if "\0" in value:
            raise ConfigError(f"{_called(reference)} holds a NUL, which nothing can be given.")
        return value

    def _stored(self, server: ServerConfig, reference: SecretReference) -> str:
        name = reference.name
        try:
            value = self._store.get(name)
        except StoreError as error:
            raise ConfigError(str(error)) from error
        about = next((each for each in server.inputs if each.id == name), None)
        if value is None and reference.kind == "input" and about and about.default is not None:
            return about.default
        if value is None:
            words = f" ({about.description.rstrip('.')})" if about and about.description else ""
            raise ConfigError(f"it needs the secret {name!r}{words}. Run: {giving(name)}")
        if about and about.options and value not in about.options:
            raise ConfigError(
                f"its input {name!r} has to be one of {', '.join(about.options)}. "
                f"Run: {giving(name)}"
            )
        return value

    async def _of_command(self, command: str, *, path: str, home: str) -> str:
        async with self._turns.setdefault(command, anyio.Lock()):
            if command not in self._of_commands:
                around = {**self._environ, "PATH": path} | ({"HOME": home} if home else {})
                self._of_commands[command] = await _run(command, around)
            return self._of_commands[command]


@dataclass(frozen=True, slots=True)
class ServerSecrets:
    """The secrets of one server, and where its user is."""

    secrets: Secrets
    server: ServerConfig
    path: str
    home: str

    async def filled(self) -> FilledServer:
        """Return the server with them; raises as `Secrets.filled`."""
        return await self.secrets.filled(self.server, path=self.path, home=self.home)

    def forget(self) -> bool:
        """Have them asked for again; return whether that may give others."""
        return self.secrets.forget(self.server)


def giving(name: str) -> str:
    """Return the command that gives a secret."""
    return f"toolfold secrets set {shlex.quote(name)}"


def _called(reference: SecretReference) -> str:
    """Name a secret in a message; of a command the program alone: its arguments may be private."""
    if reference.kind == "cmd":
        return f"its secret from the command `{reference.name.split()[0]}`"
    if reference.kind == "file":
        return f"its secret from {reference.name}"
    return f"its secret {reference.name!r}"


async def _run(command: str, environ: Mapping[str, str]) -> str:
    """Return what a command prints, without the end of its line. No shell reads it."""
    what = _called(SecretReference("cmd", command))
    by_hand = "Run that command in a terminal to see why."
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"{what} cannot be read: a quotation mark is missing.") from error
    try:
        process = await anyio.open_process(
            [shutil.which(words[0], path=environ["PATH"]) or words[0], *words[1:]],
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=DEVNULL,
            env=environ,
            start_new_session=True,
        )
    except OSError as error:
        raise ConfigError(f"{what} cannot be read: it was not found or may not run.") from error
    try:
        with anyio.fail_after(_COMMAND_S):
            assert process.stdout is not None  # noqa: S101
            printed = await _bounded(process.stdout, what)
            status = await process.wait()
    except TimeoutError as error:
        raise ConfigError(
            f"{what} cannot be read: no answer within {_COMMAND_S:g} s. {by_hand}"
        ) from error
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with anyio.CancelScope(shield=True):
            await process.aclose()
    if status:
        raise ConfigError(f"{what} cannot be read: it ended with status {status}. {by_hand}")
    return _text(printed, what)


async def _bounded(stdout: ByteReceiveStream, what: str) -> bytes:
    printed = b""
    with suppress(anyio.EndOfStream):
        while len(printed) <= MAX_CHARS:
            printed += await stdout.receive()
    if len(printed) > MAX_CHARS:
        raise ConfigError(f"{what} cannot be used: it has more than {MAX_CHARS:,} bytes.")
    return printed


def _of_file(name: str, home: str) -> str:
    what = _called(SecretReference("file", name))
    path = Path(home) / name[2:] if name.startswith("~/") and home else Path(name)
    if not path.is_absolute():
        raise ConfigError(f"{what} cannot be read: write its whole path, or begin it with ~/.")
    try:
        content = read_file(path, max_bytes=MAX_CHARS)
    except ConfigError as error:
        raise ConfigError(f"{what}, which {error}.") from error
    if content is None:
        raise ConfigError(f"{what} cannot be read: there is no such file.")
    return _text(content, what)


def _text(content: bytes, what: str) -> str:
    try:
        text = content.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{what} cannot be used: it is not text in UTF-8.") from error
    if not text:
        raise ConfigError(f"{what} cannot be used: it is empty.")
    return text


def _can_be_hidden(value: str) -> bool:
    """Whether a value is long enough to be told from what stands in answers by chance."""
    return len(value) >= (_MIN_DIGITS if value.isdecimal() else _MIN_CHARS)


def _literals(server: ServerConfig) -> dict[str, str]:
    """Return what stands in an entry without a reference and plainly is a secret."""
    named: Pairs = (*server.env, *server.headers)
    found = [value for name, value in named if is_secret_name(name)]
    found += [value for _, value in server.auth]
    found.append(server.oauth.client_secret)
    bare = (_SCHEME.sub("", value, count=1) for value in found if "\0" not in value)
    return {value: _HIDDEN for value in bare if len(value) >= _MIN_LITERAL_CHARS}


def _spellings(value: str) -> Iterable[str]:
    """Return how a secret is written in texts, JSON, URLs and headers."""
    escaped = json.dumps(value)[1:-1]
    encoded = base64.b64encode(value.encode()).decode().rstrip("=")
    return dict.fromkeys(
        (
            value,
            escaped,
            json.dumps(value, ensure_ascii=False)[1:-1],
            escaped.replace("/", "\\/"),
            json.dumps(escaped)[1:-1],
            quote(value),
            quote(value, safe=""),
            quote_plus(value),
            encoded,
            encoded.replace("+", "-").replace("/", "_"),
        )
    )


def _pattern(spellings: list[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(re.escape, spellings))) if spellings else None
