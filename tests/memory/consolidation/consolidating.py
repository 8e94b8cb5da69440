"""A running memory with its consolidation, and the whole of what its file holds."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fakes import FakeEmbedder
from memories import Clock

from toolfold.memory.consolidation.service import Consolidation
from toolfold.memory.consolidation.store import StoredNote
from toolfold.memory.models import note_hash
from toolfold.memory.note_vectors import NoteVectorizer, UsageCounter
from toolfold.memory.ranking.rank import estimated_quality
from toolfold.memory.service import Memory
from toolfold.memory.sql.consolidation import SqlConsolidations
from toolfold.memory.sqlite.connection import SqliteFile
from toolfold.memory.sqlite.store import SqliteStore

DAY_S = 86_400.0


@dataclass
class World:
    """What works on one file, in one namespace."""

    path: Path
    clock: Clock
    store: SqliteStore
    kept: SqlConsolidations
    usage: UsageCounter
    memory: Memory
    consolidation: Consolidation

    def later(self, days: float) -> None:
        self.clock.now += days * DAY_S

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        return dump(self.path)


@asynccontextmanager
async def running_world(
    directory: Path, *, clock: Clock | None = None, namespace: str = "project"
) -> AsyncIterator[World]:
    clock = clock or Clock()
    path = directory / "memory.db"
    file = SqliteFile(path)
    store, kept = SqliteStore(file), SqlConsolidations(file)
    usage = UsageCounter(kept, clock=clock)
    meaning = NoteVectorizer(store, FakeEmbedder())
    async with file.running(), store.running(), meaning.running(), usage.running():
        yield World(
            path=path,
            clock=clock,
            store=store,
            kept=kept,
            usage=usage,
            memory=Memory(store, meaning, namespace=namespace, clock=clock, usage=usage),
            consolidation=Consolidation(store, kept, namespace=namespace, clock=clock),
        )


def dump(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables, without counters of transactions and without the history.

    Of an index of words, each occurrence: the same words may lie in other segments.
    """
    with closing(sqlite3.connect(path)) as connection:
        names = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if name not in {"state", "sqlite_sequence", "consolidations"}
            and not name.startswith("words_")
        ]
        return {name: sorted(_rows(connection, name), key=repr) for name in sorted(names)}


def _rows(connection: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    described = connection.execute(f"SELECT name FROM pragma_table_info('{table}')")
    columns = [f'"{name}"' for (name,) in described if name != "changed"]
    return connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()


def kept(content: str, key: int = 1, **values: Any) -> StoredNote:
    """Return a note as a consolidation reads it."""
    given: dict[str, Any] = {
        "key": key,
        "hash": note_hash(content),
        "version": 1,
        "content": content,
        "type": "note",
        "thread": None,
        "tags": (),
        "metadata": {},
        "created": 1000.0,
        "updated": 1000.0,
        "quality": estimated_quality(content),
        "vector": None,
        "links": frozenset(),
    }
    given |= values
    return StoredNote(**({"influence": given["quality"]} | given))
