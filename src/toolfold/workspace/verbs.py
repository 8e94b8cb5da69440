"""The module `workspace` of guest code: look at files without reading them whole."""

import base64
import errno
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from heapq import nsmallest
from pathlib import PurePosixPath
from typing import Any, Final, Literal

from toolfold.errors import BadInput, NotFound, ToolFailed, ToolfoldError
from toolfold.jsontypes import Json, JsonObject
from toolfold.workspace.descent import Look, Status, attentive, unwatched
from toolfold.workspace.records import count, page, records, shape_of_file
from toolfold.workspace.workspace import Workspace

MODULE: Final = "workspace"
"""How guest code imports it."""

ROOT: Final = "/workspace"
_LISTED: Final = 1_000
_SAMPLE_BYTES: Final = 200
_PATTERN_CHARS: Final = 500
_MAX: Final = 1 << 53

_PATH: Final[JsonObject] = {"type": "string", "description": "such as /workspace/orders.csv"}
_AT: Final[JsonObject] = {
    "type": ["string", "null"],
    "description": "the list in an object, by its keys: rows, or data.rows",
}


def _number(default: int, lowest: int = 0) -> JsonObject:
    return {"type": "integer", "minimum": lowest, "maximum": _MAX, "default": default}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceVerb:
    """One function of the module."""

    name: str
    description: str
    parameters: JsonObject = field(default_factory=dict)
    required: tuple[str, ...] = ("path",)
    returns: str
    effect: Literal["reads", "removes"] = "reads"


VERBS: Final = (
    WorkspaceVerb(
        name="list",
        description="List the files in the workspace by a pattern, such as *.csv or results/*.",
        parameters={"pattern": {"type": "string", "default": "*"}},
        required=(),
        returns="list[dict[str, Any]]",
    ),
    WorkspaceVerb(
        name="describe",
        description="Describe a file: type, bytes, length, keys or columns, a sample.",
        parameters={"path": _PATH},
        returns="dict[str, Any]",
    ),
    WorkspaceVerb(
        name="read",
        description="Read a slice of a file as text; offset and size are in bytes.",
        parameters={"path": _PATH, "offset": _number(0), "size": _number(100_000)},
        returns="str",
    ),
    WorkspaceVerb(
        name="records",
        description="Read records of a large file: items of a JSON list, JSON lines, rows of "
        "CSV, lines of text.",
        parameters={"path": _PATH, "start": _number(0), "limit": _number(100, 1), "at": _AT},
        returns="list[Any]",
    ),
    WorkspaceVerb(
        name="count",
        description="Count the records of a file.",
        parameters={"path": _PATH, "at": _AT},
        returns="int",
    ),
    WorkspaceVerb(
        name="remove",
        description="Remove a file, or a directory with all that is in it; return how many.",
        parameters={"path": _PATH},
        returns="int",
        effect="removes",
    ),
)


class WorkspaceVerbs:
    """Answers the functions of the module. Blocks; to be called in a thread.

    `check` is called now and then, and ends the work by raising.
    """

    def __init__(self, workspace: Workspace, *, max_chars: int, check: Look = unwatched) -> None:
        self._workspace = workspace
        self._max_chars = max_chars
        self._check = check
        self._answers: dict[str, Callable[..., Any]] = {
            verb.name: getattr(self, f"_{verb.name}") for verb in VERBS
        }

    def call(self, name: str, arguments: JsonObject) -> Json:
        """Answer one call.

        Raises:
            ToolfoldError: There is no answer; the message says why.
        """
        try:
            answer: Json = self._answers[name](attentive(self._check), **arguments)
        except ToolfoldError as error:
            raise ToolFailed(f"workspace.{name}: {error}") from error
        except OSError as error:
            raise ToolFailed(f"workspace.{name}: {_words(error)}") from error
        return answer

    def read_bytes(self, path: str, offset: int, size: int) -> Json:
        """Return a slice of a file in base64, for those who take bytes.

        Raises:
            NotFound: There is no such file.
            BadInput: It cannot be read.
        """
        inner = inner_path(path)
        try:
            content = self._workspace.read(inner, offset, size)
            length = self._workspace.stat(inner).size
        except OSError as error:
            kind = NotFound if error.errno in {errno.ENOENT, errno.ENOTDIR} else BadInput
            raise kind(f"{error.strerror}: {error.filename}.") from error
        encoded = base64.b64encode(content).decode()
        return {"path": f"{ROOT}/{inner}", "bytes": length, "offset": offset, "base64": encoded}

    def _list(self, look: Look, pattern: str = "*") -> Json:
        if len(pattern) > _PATTERN_CHARS:
            raise BadInput(f"A pattern has {_PATTERN_CHARS:,} characters at most.")
        found = nsmallest(_LISTED, self._matching(look, inner_path(pattern)))
        return [
            {"path": f"{ROOT}/{path}", "bytes": status.size, "changed_at": status.changed_at}
            for path, status in found
        ]

    def _matching(self, look: Look, pattern: str) -> Iterator[tuple[str, Status]]:
        for path, status in self._workspace.files():
            look()
            if fnmatchcase(path, pattern) or fnmatchcase(PurePosixPath(path).name, pattern):
                yield path, status

    def _describe(self, look: Look, path: str) -> Json:
        return described(self._workspace, inner_path(path), look)

    def _read(self, _look: Look, path: str, offset: int = 0, size: int = 100_000) -> Json:
        if size > self._max_chars:
            raise BadInput(f"{self._max_chars:,} bytes can be read at once.")
        return self._workspace.read(inner_path(path), offset, size).decode("utf-8", "replace")

    def _records(
        self, look: Look, path: str, start: int = 0, limit: int = 100, at: str | None = None
    ) -> Json:
        inner = inner_path(path)
        with self._workspace.opened(inner, look) as file:
            found = records(file, inner, at)
            return page(found, start, limit, max_chars=self._max_chars)

    def _count(self, look: Look, path: str, at: str | None = None) -> Json:
        inner = inner_path(path)
        with self._workspace.opened(inner, look) as file:
            return count(file, inner, at)

    def _remove(self, _look: Look, path: str) -> Json:
        inner = inner_path(path)
        if not inner:
            raise BadInput("Say which file or directory is to be removed.")
        return self._workspace.remove(inner)


def described(workspace: Workspace, path: str, look: Look) -> JsonObject:
    """Return what a file is, in few words.

    Raises:
        OSError: It cannot be opened.
    """
    size = workspace.stat(path).size
    try:
        with workspace.opened(path, look) as file:
            shape = shape_of_file(file, path)
    except BadInput as error:
        sample = workspace.read(path, 0, _SAMPLE_BYTES).decode("utf-8", "replace")
        shape = {"type": "text", "note": str(error), "sample": sample}
    return {"path": f"{ROOT}/{path}", **shape, "bytes": size}


def inner_path(path: str) -> str:
    """Return a path as guest code writes it, from the workspace on."""
    if path == ROOT or path.startswith(f"{ROOT}/"):
        return path.removeprefix(ROOT).strip("/")
    return path


def _words(error: OSError) -> str:
    where = f": {error.filename}" if error.filename else ""
    hint = " See workspace.list()." if error.errno == errno.ENOENT else ""
    return f"{error.strerror}{where}.{hint}"
