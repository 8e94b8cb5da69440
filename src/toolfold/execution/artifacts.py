"""What one run keeps in files: images, binaries, and what is too large to be handed over."""

import base64
import binascii
import mimetypes
import re
from dataclasses import replace
from itertools import chain
from typing import Final

import anyio.to_thread
from anyio.from_thread import check_cancelled

from toolfold.catalog.tool import Blob, LargeAnswer, Redact, Tool
from toolfold.errors import BadCall, BadInput, ToolFailed
from toolfold.jsontypes import Json, JsonObject
from toolfold.workspace.descent import attentive
from toolfold.workspace.verbs import ROOT, described, inner_path
from toolfold.workspace.workspace import Workspace, save_result

_SHOWN_BYTES: Final = 5_000_000
_JSON_STARTS: Final = (b"{", b"[")


class RunArtifacts:
    """Takes what tools answered that is no value; guest code gets references."""

    def __init__(self, workspace: Workspace, run_id: str) -> None:
        self._workspace = workspace
        self._run_id = run_id
        self._blobs: dict[str, Blob] = {}
        self._unsaved: list[tuple[JsonObject, Blob, Redact | None]] = []
        self._files = self._taken = 0

    def blob(self, blob: Blob, cover: Redact | None = None) -> Json:
        """Take an image or a binary; `save_blobs` makes a file of it."""
        kind = blob.mime_type.partition("/")[0]
        self._taken += 1
        name = f"{kind}_{self._taken}"
        if cover is None:
            self._blobs[name] = blob
        reference: JsonObject = {
            "blob": name,
            "mime_type": blob.mime_type,
            "bytes": blob.size_bytes,
        }
        self._unsaved.append((reference, blob, cover))
        return reference

    async def save_blobs(self) -> None:
        """Make files of what came last, and have the references say where."""
        unsaved, self._unsaved = self._unsaved, []
        if unsaved:
            await anyio.to_thread.run_sync(self._save_blobs, unsaved)

    async def large(self, tool: Tool, answer: LargeAnswer) -> Json:
        """Make a file of an answer; return what it is in few words.

        Raises:
            ToolFailed: There is no room for it.
        """
        return await anyio.to_thread.run_sync(self._save_large, tool, answer)

    async def save(self, name: str, content: bytes) -> str:
        """Save what the run printed or ended with; return its path.

        Raises:
            OSError: There is no room for it.
        """
        path = await anyio.to_thread.run_sync(
            save_result, self._workspace, f"{self._run_id}{name}", [content]
        )
        return f"{ROOT}/{path}"

    async def image(self, reference: Json) -> Blob:
        """Return an image of this run by its reference, or any in the workspace by its path.

        Raises:
            BadCall: There is none.
        """
        name, path = reference, reference
        if isinstance(reference, dict):
            name, path = reference.get("blob"), reference.get("path")
        if isinstance(name, str) and name in self._blobs:
            blob: Blob | None = self._blobs[name]
        else:
            blob = await anyio.to_thread.run_sync(self._read, path) if path else None
        if blob is None or not blob.mime_type.startswith("image/"):
            raise BadCall("show() takes an image that a tool returned, or the path of one.")
        return blob

    def _read(self, path: Json) -> Blob | None:
        if not isinstance(path, str):
            return None
        inner = inner_path(path)
        mime_type = mimetypes.guess_type(inner)[0] or ""
        if not mime_type.startswith("image/"):
            return None
        try:
            content = self._workspace.read(inner, 0, _SHOWN_BYTES + 1)
        except OSError as error:
            raise BadCall(f"show(): {error.strerror}: {path}.") from error
        if len(content) > _SHOWN_BYTES:
            raise BadCall(f"show() takes images of at most {_SHOWN_BYTES:,} bytes: {path}.")
        return Blob(mime_type=mime_type, base64=base64.b64encode(content).decode())

    def _save_blobs(self, unsaved: list[tuple[JsonObject, Blob, Redact | None]]) -> None:
        for reference, blob, cover in unsaved:
            name = f"{self._run_id}-{_safe(str(reference['blob']))}{_suffix(blob.mime_type)}"
            try:
                content = _content(blob, cover)
                if cover is not None:
                    self._blobs[str(reference["blob"])] = _blob(blob, content)
                path = save_result(self._workspace, name, [content])
            except (OSError, binascii.Error) as error:
                words = error.strerror if isinstance(error, OSError) else "it is not valid base64"
                reference["note"] = f"not saved: {words}"
            else:
                reference |= {"path": f"{ROOT}/{path}", "bytes": len(content)}

    def _save_large(self, tool: Tool, answer: LargeAnswer) -> JsonObject:
        self._files += 1
        try:
            chunks = iter(answer.chunks())
            first = next(chunks, b"")
            suffix = "json" if first.lstrip()[:1] in _JSON_STARTS else "txt"
            name = f"{self._run_id}-{_safe(tool.path)}-{self._files}.{suffix}"
            path = save_result(self._workspace, name, chain([first], chunks))
        except (BadInput, OSError) as error:
            words = error.strerror if isinstance(error, OSError) else str(error)
            raise ToolFailed(
                f"{tool.path} was called, and its answer of {answer.size:,} bytes could not be "
                f"saved: {words}."
            ) from error
        look = attentive(check_cancelled)
        told = described(self._workspace, path, look)
        return told | ({"others": list(answer.others)} if answer.others else {})


async def redact_blob(blob: Blob, cover: Redact | None) -> Blob:
    """Return a blob; if it is text, as `cover` leaves it.

    Raises:
        ToolFailed: It could not be covered.
    """
    if cover is None:
        return blob
    try:
        return _blob(blob, await anyio.to_thread.run_sync(_content, blob, cover))
    except (BadInput, binascii.Error) as error:
        raise ToolFailed(f"A file that is text could not be concealed: {error}.") from error


def _blob(blob: Blob, content: bytes) -> Blob:
    return replace(blob, base64=base64.b64encode(content).decode())


def _content(blob: Blob, cover: Redact | None) -> bytes:
    content = base64.b64decode(blob.base64)
    if cover is None or text_of(blob) is None:
        return content
    return b"".join(cover(lambda: [content]))


def text_of(blob: Blob) -> str | None:
    """Return the text that a blob is, whatever it calls itself; None if it is none."""
    try:
        return base64.b64decode(blob.base64).decode()
    except (UnicodeDecodeError, binascii.Error):
        return None


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)[:80]


def _suffix(mime_type: str) -> str:
    return mimetypes.guess_extension(mime_type.partition(";")[0].strip()) or ".bin"
