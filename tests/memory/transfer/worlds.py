"""All of a memory over one file, and what moves it."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

from fakes import FakeEmbedder
from memories import Clock
from stores import OpenBackend, open_sqlite

from toolfold.memory.documents.service import Documents
from toolfold.memory.events.service import Events
from toolfold.memory.graph.service import Graph
from toolfold.memory.note_vectors import NoteVectorizer
from toolfold.memory.service import Memory
from toolfold.memory.sql.archive import SqlArchive
from toolfold.memory.sql.documents import SqlDocuments
from toolfold.memory.sql.events import SqlEvents
from toolfold.memory.sql.graph import SqlGraphStore
from toolfold.memory.transfer.models import Imported
from toolfold.memory.transfer.service import Transfer

_INDEXES = ("_data", "_idx", "_docsize", "_config", "_content")
_COUNTERS = {"state", "namespaces", "points", "sqlite_sequence"}


@dataclass(frozen=True)
class World:
    """Everything that serves one namespace."""

    directory: Path
    clock: Clock
    memory: Memory
    events: Events
    graph: Graph
    documents: Documents
    transfer: Transfer

    async def exported(self, name: str = "export.jsonl") -> bytes:
        await self.transfer.export_file(str(self.directory / name))
        return (self.directory / name).read_bytes()

    async def take(self, content: bytes | str, *, dry_run: bool = False) -> Imported:
        path = self.directory / "import.jsonl"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return await self.transfer.import_file(str(path), dry_run)

    def rows(self) -> dict[str, list[tuple[object, ...]]]:
        """Return what stands in the tables, but for what every transaction counts or indexes."""
        with closing(sqlite3.connect(self.directory / "memory.db")) as connection:
            names = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'"
            ).fetchall()
            found = {
                name: connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()
                for (name,) in names
                if not name.endswith(_INDEXES) and name not in _COUNTERS
            }
        assert {"notes", "versions", "links", "tags", "events", "documents"} <= found.keys()
        return found


@asynccontextmanager
async def running_world(
    directory: Path,
    *,
    namespace: str = "project",
    clock: Clock | None = None,
    open_backend: OpenBackend = open_sqlite,
) -> AsyncIterator[World]:
    clock = clock or Clock()
    async with open_backend(directory) as (database, store):
        meaning = NoteVectorizer(store, FakeEmbedder())
        async with meaning.running():
            graph = Graph(SqlGraphStore(database), store, namespace=namespace, clock=clock)
            yield World(
                directory=directory,
                clock=clock,
                memory=Memory(store, meaning, namespace=namespace, clock=clock),
                events=Events(SqlEvents(database), namespace=namespace, clock=clock),
                graph=graph,
                documents=Documents(
                    SqlDocuments(database), meaning, namespace=namespace, roots=None, clock=clock
                ),
                transfer=Transfer(
                    SqlArchive(database), graph, meaning, namespace=namespace, clock=clock
                ),
            )
