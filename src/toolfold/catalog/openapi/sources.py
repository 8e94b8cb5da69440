"""Where a specification is read from, and the parts of it that stand in other documents."""

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import anyio
import anyio.to_thread
import httpx2

from toolfold.catalog.openapi.auth import default_credentials
from toolfold.catalog.openapi.network import GuardedTransport, Resolve, host_and_port, origin_of
from toolfold.catalog.openapi.text import MAX_BYTES, parse_text
from toolfold.catalog.secrets import FilledServer
from toolfold.errors import ConfigError, ToolFailed
from toolfold.jsontypes import Json, JsonObject
from toolfold.storage.files import read_file

_DOCUMENTS: Final = "x-toolfold-documents"
_MAX_DOCUMENTS: Final = 500
_MAX_REDIRECTS: Final = 5
_FETCH_TIMEOUT_S: Final = 30.0

Read = Callable[[str], Awaitable[bytes]]
"""Reads the document at a location; raises ConfigError where it must not or cannot be read."""


@dataclass(slots=True)
class SpecFiles:
    """What a specification was made of: its documents by location, and what was left out."""

    location: str
    """Its own, after redirects."""
    contents: dict[str, bytes] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def is_url(spec: str) -> bool:
    """Whether a specification is named by a URL, and not by a file."""
    return bool(re.match(r"https?://", spec, re.IGNORECASE))


async def read_spec(spec: str, *, resolve: Resolve | None = None) -> tuple[Json, SpecFiles]:
    """Read the specification at a path or URL, with the documents that it refers to.

    Only documents of its own origin are read: of the same directory and those below, or the
    same scheme, host and port. References to others are left out.

    Raises:
        ConfigError: It cannot be read; the message does not name it.
    """
    if not is_url(spec):
        files = SpecFiles(location=_resolved(spec))
        return await _bundled(files, lambda location: _read_below(files.location, location))
    transport = GuardedTransport({host_and_port(spec)}, resolve=resolve)
    async with httpx2.AsyncClient(transport=transport, timeout=_FETCH_TIMEOUT_S) as client:
        files = SpecFiles(location=spec)
        content, files.location = await _fetch(client, spec)
        files.contents[files.location] = content
        return await _bundled(files, lambda location: _fetch_same(client, files, location))


async def _bundled(files: SpecFiles, read: Read) -> tuple[Json, SpecFiles]:
    root = await _parsed(files, files.location, read)
    if isinstance(root, dict) and any(True for _ in _references(root)):
        await _Bundle(root, files, read).complete()
    return root, files


async def _parsed(files: SpecFiles, location: str, read: Read) -> Json:
    if location not in files.contents:
        files.contents[location] = await read(location)
    return await anyio.to_thread.run_sync(parse_text, files.contents[location])


class _Bundle:
    """Puts other documents into the first one, so that every reference is one within it."""

    def __init__(self, root: JsonObject, files: SpecFiles, read: Read) -> None:
        self._root = root
        self._files = files
        self._read = read
        self._places: dict[str, str] = {files.location: ""}
        self._waiting: list[tuple[str, Json]] = [(files.location, root)]

    async def complete(self) -> None:
        while self._waiting:
            location, document = self._waiting.pop()
            for holder in list(_references(document, local=bool(self._places[location]))):
                await self._rewrite(holder, location)

    async def _rewrite(self, holder: JsonObject, location: str) -> None:
        target, pointer = urldefrag(str(holder["$ref"]))
        place = await self._place(_joined(location, target)) if target else self._places[location]
        if place is None:
            del holder["$ref"]
        else:
            holder["$ref"] = f"#{place}{pointer}"

    async def _place(self, location: str) -> str | None:
        """Return where a document is in the first one; None if it is left out."""
        if location in self._places:
            return self._places[location]
        try:
            if len(self._places) >= _MAX_DOCUMENTS:
                raise ConfigError(f"it is made of more than {_MAX_DOCUMENTS} documents")
            document = await _parsed(self._files, location, self._read)
        except ConfigError as error:
            self._files.faults.append(f"the reference to {location[:200]} is left out: {error}")
            return None
        documents = self._root.setdefault(_DOCUMENTS, {})
        assert isinstance(documents, dict)  # noqa: S101
        name = str(len(documents))
        documents[name] = document
        self._places[location] = f"/{_DOCUMENTS}/{name}"
        self._waiting.append((location, document))
        return self._places[location]


def _references(document: Json, *, local: bool = False) -> Iterator[JsonObject]:
    """Give what refers to other documents, or with `local` to this one, too."""
    waiting = [document]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            reference = each.get("$ref")
            if isinstance(reference, str) and (local or not reference.startswith("#")):
                yield each
            waiting.extend(value for key, value in each.items() if key != _DOCUMENTS)
        elif isinstance(each, list):
            waiting.extend(each)


def _joined(location: str, target: str) -> str:
    if is_url(location):
        return urljoin(location, target)
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+:", target):
        return target  # a URL, which no file may refer to
    return str((Path(location).parent / unquote(target)).resolve())


async def _read_below(spec: str, location: str) -> bytes:
    """Read a file, if it is the specification's or in its directory, links followed."""
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+:", location):
        raise ConfigError("it is of another origin")
    return await anyio.to_thread.run_sync(_read_file_below, Path(spec), Path(location))


def _read_file_below(spec: Path, path: Path) -> bytes:
    if path != spec and not path.resolve().is_relative_to(spec.parent):
        raise ConfigError("it is outside of the specification's directory")
    content = read_file(path, max_bytes=MAX_BYTES)
    if content is None:
        raise ConfigError("there is no such file")
    return content


def _resolved(path: str) -> str:
    return str(Path(path).resolve())


async def _fetch_same(client: httpx2.AsyncClient, files: SpecFiles, location: str) -> bytes:
    if not is_url(location) or origin_of(location) != origin_of(files.location):
        raise ConfigError("it is of another origin")
    content, final = await _fetch(client, location)
    if origin_of(final) != origin_of(files.location):
        raise ConfigError("it leads to another origin")
    return content


async def ask_schema(
    filled: FilledServer,
    question: bytes,
    *,
    auth: httpx2.Auth | None = None,
    resolve: Resolve | None = None,
) -> SpecFiles:
    """Return what a GraphQL server says of itself, without its secrets.

    Raises:
        ConfigError: It does not; the message does not name it.
    """
    server = filled.config
    transport = GuardedTransport({host_and_port(server.spec)}, resolve=resolve)
    proof = default_credentials(dict(server.auth)).headers
    headers = [("content-type", "application/json"), *proof, *server.headers]
    async with httpx2.AsyncClient(
        transport=transport, timeout=_FETCH_TIMEOUT_S, auth=auth
    ) as client:
        content, location = await _fetch(client, server.spec, headers, question)
    if filled.redactor is not None:
        content = filled.redactor.content(content)
    return SpecFiles(location=location, contents={location: content})


async def read_schema_file(spec: str) -> SpecFiles:
    """Read a schema from a file; raises as `read_spec`."""
    location = _resolved(spec)
    return SpecFiles(location=location, contents={location: await _read_below(location, location)})


async def _fetch(
    client: httpx2.AsyncClient,
    url: str,
    headers: Sequence[tuple[str, str]] = (),
    content: bytes | None = None,
) -> tuple[bytes, str]:
    """Get what is at a URL; with `content` ask there, and nowhere that it leads to."""
    method = "GET" if content is None else "POST"
    wanted = [("accept", "*/*"), *headers]
    for _ in range(_MAX_REDIRECTS):
        try:
            async with client.stream(method, url, headers=wanted, content=content) as response:
                if response.is_redirect and content is None:
                    url = urljoin(url, response.headers.get("location", ""))
                    if urlsplit(url).scheme not in {"http", "https"}:
                        raise ConfigError("it leads to what is no web address")
                    continue
                if response.status_code != 200:
                    raise ConfigError(f"the server answered with status {response.status_code}")
                return await _body(response), url
        except (httpx2.HTTPError, httpx2.InvalidURL, ToolFailed) as error:
            raise ConfigError(f"cannot be fetched: {error}") from error
    raise ConfigError("is redirected too often")


async def _body(response: httpx2.Response) -> bytes:
    content = bytearray()
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) > MAX_BYTES:
            raise ConfigError(f"is larger than {MAX_BYTES:,} bytes")
    return bytes(content)
