"""SQLite databases of other programs: only read, and trusted with nothing."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeAlias

from toolfold.storage.sqlite_file import translated

ForeignConnection: TypeAlias = sqlite3.Connection


@contextmanager
def open_foreign(path: Path) -> Iterator[ForeignConnection]:
    """Open a database of another program for the length of a context.

    Raises:
        StoreError: It cannot be opened, or read.
    """
    with translated(f"The database {path} cannot be read"):
        # Read by one worker thread after the other.
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False
        )
        with closing(connection):
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA query_only = ON")
            connection.execute("SELECT 1 FROM sqlite_master")
            yield connection
