"""Tell what a file of memory is by looking into it."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from toolfold.errors import BadInput, NotFound
from toolfold.memory.transfer.memory_service import is_memory_service, open_foreign
from toolfold.memory.transfer.models import Source
from toolfold.memory.transfer.records import FORMAT, MAX_LINE_BYTES, VERSION, parse_line

_SQLITE: Final = b"SQLite format 3\0"
_KNOWN: Final = (
    "an export of toolfold, the JSON lines of server-memory, or a SQLite database of "
    "mcp-memory-service"
)


def tell_source(path: Path) -> Source:
    """Return which program's memory a file is.

    Raises:
        NotFound: There is no such file.
        BadInput: It is none that can be imported.
    """
    try:
        if not path.is_file():
            raise NotFound(f"There is no file {path}.")
        with path.open("rb") as file:
            if file.peek(len(_SQLITE)).startswith(_SQLITE):
                return _in_database(path)
            line = b"\n"
            while line and not line.strip():
                line = file.readline(MAX_LINE_BYTES)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}.") from error
    return _in_line(line, path)


def _in_database(path: Path) -> Source:
    with closing(open_foreign(path)) as connection:
        try:
            if is_memory_service(connection):
                return "mcp-memory-service"
        except sqlite3.Error as error:
            raise BadInput(f"The database {path} is damaged: {error}.") from error
    raise BadInput(f"{path} is a database of another kind. What can be imported is {_KNOWN}.")


def _in_line(line: bytes, path: Path) -> Source:
    if not line.strip():
        raise BadInput(f"{path} is empty.")
    try:
        value = parse_line(line.removeprefix(b"\xef\xbb\xbf"))
    except BadInput as error:
        raise BadInput(f"{path} is not known. What can be imported is {_KNOWN}.") from error
    if value.get("format") == FORMAT:
        version = value.get("version")
        if not isinstance(version, int) or not 1 <= version <= VERSION:
            raise BadInput(f"A newer toolfold exported {path}. Update this one.")
        return "toolfold"
    if value.get("type") in ("entity", "relation"):
        return "server-memory"
    raise BadInput(f"{path} is JSON of another kind. What can be imported is {_KNOWN}.")
