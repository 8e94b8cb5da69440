"""Keep notes in a SQLite file."""

import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import anyio

from toolfold.errors import StoreError
from toolfold.memory.background import in_background
from toolfold.memory.models import Draft, Note
from toolfold.memory.sqlite.file import SqliteFile
from toolfold.memory.sqlite.filters import condition
from toolfold.memory.sqlite.hash_lookup import FoundNote, find_kept, find_live, find_readable, seek
from toolfold.memory.sqlite.rows import namespace_id, read_live, read_note, read_versions
from toolfold.memory.sqlite.vectors import (
    adopt,
    embed,
    made_by,
    read_state,
    texts_of,
    unembedded,
)
from toolfold.memory.sqlite.wordsearch import NOTHING, match_words
from toolfold.memory.sqlite.writer import NoteWriter
from toolfold.memory.store import (
    EVERYTHING,
    Counts,
    Embedded,
    Filter,
    Matches,
    NoteChange,
    NoteListing,
    Query,
    Unembedded,
    Updated,
)

# numpy costs 0.1 s to import; a first search by words does without.
if TYPE_CHECKING:
    from toolfold.memory.sqlite.matcher import Matcher

_T = TypeVar("_T")

_log = logging.getLogger(__name__)


class SqliteStore:
    """Implements `Store` over one file, which is to be running as long as this is."""

    backend = "sqlite"

    def __init__(self, file: SqliteFile, *, patience_s: float = 0.0) -> None:
        """A search by meaning waits up to `patience_s` for what it needs to be in memory."""
        self._file = file
        self._patience_s = patience_s
        self._matcher: Matcher | None = None
        self._embedder: str | None = None
        self._cold: dict[str, anyio.Event] = {}
        self._news = anyio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Load in the background what search by meaning needs, for the length of this context."""
        async with in_background(self._keep_warm):
            yield

    async def add(self, namespace: str, drafts: Sequence[Draft], *, now: float) -> list[int]:
        def work(connection: sqlite3.Connection) -> list[int]:
            writer = NoteWriter(connection, namespace, now=now)
            return [writer.add(draft) for draft in drafts]

        return await self._file.write(work)

    async def get(self, namespace: str, hash_prefix: str) -> Note:
        def work(connection: sqlite3.Connection) -> Note:
            found = find_readable(connection, namespace_id(connection, namespace), hash_prefix)
            return read_note(connection, found.number)

        return await self._file.read(work)

    async def load(self, namespace: str, keys: Sequence[int]) -> dict[int, Note]:
        return await self._file.read(lambda connection: read_live(connection, namespace, keys))

    async def history(self, namespace: str, hash_prefix: str) -> list[Note]:
        def work(connection: sqlite3.Connection) -> list[Note]:
            found = find_kept(connection, namespace_id(connection, namespace), hash_prefix)
            versions = read_versions(connection, found.number)
            return [*versions, read_note(connection, found.number)]

        return await self._file.read(work)

    async def update(
        self, namespace: str, hash_prefix: str, change: NoteChange, *, now: float
    ) -> Updated:
        def work(connection: sqlite3.Connection) -> Updated:
            found = find_live(connection, namespace_id(connection, namespace), hash_prefix)
            NoteWriter(connection, namespace, now=now).update(found.number, change)
            return Updated(found.number, read_note(connection, found.number))

        return await self._file.write(work)

    async def delete(self, namespace: str, hash_prefixes: Sequence[str], *, now: float) -> int:
        def work(connection: sqlite3.Connection) -> int:
            known = namespace_id(connection, namespace)
            found = {_to_delete(connection, known, prefix) for prefix in hash_prefixes} - {None}
            return _delete(connection, namespace, [each.number for each in found if each], now)

        return await self._file.write(work)

    async def delete_matching(self, namespace: str, wanted: Filter, *, now: float) -> int:
        def work(connection: sqlite3.Connection) -> int:
            return _delete(connection, namespace, _keys(connection, namespace, wanted), now)

        return await self._file.write(work)

    async def restore(self, namespace: str, hash_prefixes: Sequence[str], *, now: float) -> int:
        def work(connection: sqlite3.Connection) -> int:
            known = namespace_id(connection, namespace)
            found = {seek(connection, known, each, "deleted") for each in hash_prefixes} - {None}
            if found:
                writer = NoteWriter(connection, namespace, now=now)
                for each in found:
                    writer.restore(each.number if each else 0)
            return len(found)

        return await self._file.write(work)

    async def purge(self, namespace: str, hash_prefixes: Sequence[str], *, now: float) -> int:
        def work(connection: sqlite3.Connection) -> int:
            known = namespace_id(connection, namespace)
            found = {seek(connection, known, each, "kept") for each in hash_prefixes} - {None}
            if found:
                writer = NoteWriter(connection, namespace, now=now)
                writer.purge([each.number for each in found if each])
            return len(found)

        purged = await self._file.write(work)
        await self._file.empty_log()
        return purged

    async def newest(
        self, namespace: str, wanted: Filter, *, limit: int, offset: int = 0
    ) -> NoteListing:
        def work(connection: sqlite3.Connection) -> NoteListing:
            numbers = _keys(connection, namespace, wanted, limit=limit, offset=offset)
            notes = read_live(connection, namespace, numbers)
            total = _count(connection, namespace, wanted)
            return NoteListing([notes[number] for number in numbers], total)

        return await self._file.read(work)

    async def keys(self, namespace: str, wanted: Filter) -> list[int]:
        return await self._file.read(lambda connection: _keys(connection, namespace, wanted))

    async def search(self, namespace: str, query: Query, *, depth: int) -> Matches:
        def work(connection: sqlite3.Connection) -> Matches:
            return self._match(connection, namespace, query, depth=depth)

        return await self._read_warm(namespace, query, work)

    async def find(
        self,
        namespace: str,
        query: Query,
        choose: Callable[[Matches], Sequence[int]],
        *,
        depth: int,
    ) -> dict[int, Note]:
        def work(connection: sqlite3.Connection) -> dict[int, Note]:
            matches = self._match(connection, namespace, query, depth=depth)
            return read_live(connection, namespace, choose(matches))

        return await self._read_warm(namespace, query, work)

    def _match(
        self, connection: sqlite3.Connection, namespace: str, query: Query, *, depth: int
    ) -> Matches:
        known = namespace_id(connection, namespace)
        if known is None:
            return NOTHING
        matches = None
        if query.vector is not None and self._matcher is not None:
            state = read_state(connection, expected=self._embedder)
            matches = self._matcher.match(connection, known, state, query, depth=depth)
        if matches is None:
            self._cold.setdefault(namespace, anyio.Event())
            return match_words(connection, known, query, depth=depth)
        return matches

    async def _read_warm(
        self, namespace: str, query: Query, work: Callable[[sqlite3.Connection], _T]
    ) -> _T:
        """Do `work`; where vectors are not in memory yet, once more if they soon are."""
        found = await self._file.read(work)
        if (warmed := self._cold.get(namespace)) is None:
            return found
        self._news.set()
        if query.vector is None:
            return found
        with anyio.move_on_after(self._patience_s):
            await warmed.wait()
            return await self._file.read(work)
        return found

    async def warm(self, namespace: str) -> None:
        await self._file.read(lambda connection: self._load(connection, namespace))

    async def counts(self, namespace: str) -> Counts:
        def work(connection: sqlite3.Connection) -> Counts:
            known = namespace_id(connection, namespace)
            return Counts(
                notes=_count(connection, namespace, EVERYTHING),
                unembedded=len(unembedded(connection)),
                is_warm=known is None
                or (self._matcher is not None and self._matcher.is_loaded(known)),
            )

        return await self._file.read(work)

    def warm_soon(self, namespace: str) -> None:
        self._cold.setdefault(namespace, anyio.Event())
        self._news.set()

    async def adopt(self, embedder: str, dimensions: int) -> None:
        # Only if need be: a file that cannot be written is to be read all the same.
        if await self._file.read(made_by) != embedder:
            await self._file.write(lambda connection: adopt(connection, embedder, dimensions))
        self._embedder = embedder

    async def unembedded(self) -> list[int]:
        return await self._file.read(unembedded)

    async def texts(self, keys: Sequence[int]) -> list[Unembedded]:
        return await self._file.read(lambda connection: texts_of(connection, keys))

    async def embed(self, embedder: str, vectors: Sequence[Embedded]) -> None:
        await self._file.write(lambda connection: embed(connection, embedder, vectors))

    async def _keep_warm(self) -> None:
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            for namespace, warmed in list(self._cold.items()):
                try:
                    await self.warm(namespace)
                except StoreError as error:
                    _log.warning("Notes are searched by words alone: %s", error)
                del self._cold[namespace]
                warmed.set()

    def _load(self, connection: sqlite3.Connection, namespace: str) -> None:
        from toolfold.memory.sqlite.matcher import Matcher

        matcher = self._matcher or Matcher()
        known = namespace_id(connection, namespace)
        state = read_state(connection, expected=self._embedder)
        if known is not None and not matcher.is_loaded(known):
            matcher.load(connection, known, state)
        self._matcher = matcher


def _to_delete(
    connection: sqlite3.Connection, namespace: int | None, prefix: str
) -> FoundNote | None:
    found = seek(connection, namespace, prefix, "live")
    return found or seek(connection, namespace, prefix, "archived")


def _delete(
    connection: sqlite3.Connection, namespace: str, numbers: Sequence[int], now: float
) -> int:
    if numbers:
        writer = NoteWriter(connection, namespace, now=now)
        for number in numbers:
            writer.delete(number)
    return len(numbers)


def _keys(
    connection: sqlite3.Connection,
    namespace: str,
    wanted: Filter,
    *,
    limit: int = -1,
    offset: int = 0,
) -> list[int]:
    known = namespace_id(connection, namespace)
    if known is None:
        return []
    meets = condition(known, wanted)
    rows = connection.execute(
        f"SELECT number FROM notes WHERE {meets.sql} "
        "ORDER BY created DESC, number DESC LIMIT ? OFFSET ?",
        (*meets.values, limit, offset),
    )
    return [number for (number,) in rows]


def _count(connection: sqlite3.Connection, namespace: str, wanted: Filter) -> int:
    known = namespace_id(connection, namespace)
    if known is None:
        return 0
    if wanted == EVERYTHING:
        rows = connection.execute("SELECT notes FROM namespaces WHERE id = ?", (known,))
    else:
        meets = condition(known, wanted)
        rows = connection.execute(f"SELECT count(*) FROM notes WHERE {meets.sql}", meets.values)
    [total] = rows.fetchone()
    counted: int = total
    return counted
