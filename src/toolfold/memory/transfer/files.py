"""Files that are written whole or not at all."""

import os
import tempfile
from pathlib import Path
from typing import Final

from toolfold.errors import BadInput, StoreError

_SQLITE: Final = b"SQLite format 3\0"


class NewFile:
    """A file that takes its place when it is finished; until then, what was there stays.

    Nobody but the user can read it.

    Raises:
        BadInput: Its place is one where no export belongs.
        StoreError: It cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.lines = 0
        self.size = 0
        if path.is_dir() or _is_database(path):
            raise BadInput(f"{path} is a folder or a database. Name another file to export to.")
        try:
            descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        except OSError as error:
            raise self._failed(error) from error
        self._partial = Path(name)
        self._file = os.fdopen(descriptor, "wb")

    def write(self, line: str) -> None:
        """Write a line."""
        try:
            self.size += self._file.write(line.encode() + b"\n")
            self.lines += 1
        except OSError as error:
            raise self._failed(error) from error

    def finish(self) -> None:
        """Put the file in its place; it is on the disk when this returns."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._partial.replace(self._path)
        except OSError as error:
            raise self._failed(error) from error

    def discard(self) -> None:
        """Leave nothing behind, unless it is finished."""
        self._file.close()
        self._partial.unlink(missing_ok=True)

    def _failed(self, error: OSError) -> StoreError:
        return StoreError(f"{self._path} cannot be written: {error.strerror or error}.")


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False
