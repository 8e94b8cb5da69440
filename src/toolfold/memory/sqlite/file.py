"""The file of a store, for tasks: everything happens in worker threads."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar

import anyio
import anyio.to_thread

from toolfold.memory.sqlite.schema import SCHEMA
from toolfold.storage.database import Database

_T = TypeVar("_T")

_READERS: Final = 4


class SqliteFile:
    """One file that all stores of a process use; other processes may, at the same time.

    A commit waits for the disk, and for other processes, so nothing here blocks the event loop.
    """

    def __init__(self, path: Path) -> None:
        self._database = Database(path, SCHEMA)
        self._reading = anyio.CapacityLimiter(_READERS)
        self._writing = anyio.CapacityLimiter(1)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the file open for the length of this context.

        Raises:
            StoreError: It cannot be opened.
        """
        await anyio.to_thread.run_sync(self._database.open)
        try:
            yield
        finally:
            self._database.close()

    async def read(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Do `work` on the database as it is at one moment.

        Raises:
            StoreError: It does not answer.
        """
        return await anyio.to_thread.run_sync(self._database.read, work, limiter=self._reading)

    async def write(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Do `work` wholly or not at all. What it wrote is on the disk when this returns.

        Raises:
            StoreError: The database does not take it; nothing has changed.
        """
        return await anyio.to_thread.run_sync(self._database.write, work, limiter=self._writing)

    async def empty_log(self) -> None:
        """Put the log of changes into the file, and cut it to nothing.

        Raises:
            StoreError: A process that reads stood in the way for too long.
        """
        await anyio.to_thread.run_sync(self._database.empty_log, limiter=self._writing)
