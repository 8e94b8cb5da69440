"""Keep notes and their vectors in tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from toolfold.errors import BadInput, StoreError
from toolfold.memory.models import Draft, Note, shown
from toolfold.memory.sql.connection import SqlConnection, SqlDatabase, condition, counting
from toolfold.memory.sql.rows import (
    FoundNote,
    find_kept,
    find_live,
    find_readable,
    namespace_id,
    read_live,
    read_note,
    read_superseded,
    read_versions,
    seek,
)
from toolfold.memory.sql.writer import NoteWriter
from toolfold.memory.store import (
    EVERYTHING,
    Counts,
    Embedded,
    Filter,
    Matches,
    NoteChange,
    NoteListing,
    Unembedded,
    Updated,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorState:
    """Who made the vectors of a store, and the number of the last transaction that wrote."""

    changed: int
    embedder: str | None
    dimensions: int


def read_state(connection: SqlConnection, *, expected: str | None) -> VectorState:
    """Return whose the vectors are.

    Raises:
        StoreError: They are not from the embedder that is expected.
    """
    changed, embedder, dimensions = connection.execute(
        "SELECT changed, embedder, dimensions FROM state"
    ).fetchone()
    if embedder != expected:
        raise _mixed(embedder, expected)
    return VectorState(changed=changed, embedder=embedder, dimensions=dimensions or 0)


def made_by(connection: SqlConnection) -> str | None:
    """Return which embedder the vectors are from; None while there are none."""
    [found] = connection.execute("SELECT embedder FROM state").fetchone()
    name: str | None = found
    return name


def adopt(connection: SqlConnection, embedder: str, dimensions: int) -> None:
    """Note which embedder the vectors are from, and drop those of another; see `Store.adopt`."""
    found = made_by(connection)
    if found == embedder:
        return
    connection.execute("UPDATE state SET embedder = ?, dimensions = ?", (embedder, dimensions))
    if found is not None:
        connection.execute(
            "UPDATE points SET vector = NULL, changed = ? WHERE length(vector) > 0",
            (connection.next_change(),),
        )


def unembedded(connection: SqlConnection) -> list[int]:
    """Return the numbers of the notes that have no vector, oldest first."""
    rows = connection.execute("SELECT number FROM points WHERE vector IS NULL ORDER BY number")
    return [number for (number,) in rows]


def texts_of(connection: SqlConnection, numbers: Sequence[int]) -> list[Unembedded]:
    """Return what is to be embedded, of those among these notes that have no vector yet."""
    if not numbers:
        return []
    rows = connection.execute(
        "SELECT number, hash, content FROM points JOIN notes USING (number) "
        f"WHERE vector IS NULL AND number IN ({', '.join('?' * len(numbers))}) ORDER BY number",
        tuple(numbers),
    )
    return [Unembedded(*row) for row in rows]


def embed(connection: SqlConnection, embedder: str, vectors: Sequence[Embedded]) -> None:
    """Keep vectors, of notes that still say what they were made from; see `Store.embed`."""
    read_state(connection, expected=embedder)
    changed = connection.next_change()
    connection.executemany(
        "UPDATE points SET vector = ?, changed = ? WHERE number = ? AND vector IS NULL AND EXISTS "
        "(SELECT 1 FROM notes WHERE notes.number = points.number AND hash = ?)",
        [(each.vector, changed, each.key, each.hash) for each in vectors],
    )


def _mixed(found: str | None, expected: str | None) -> StoreError:
    return StoreError(
        f"The notes are embedded by {found} now, and this process has {expected}: their vectors "
        "cannot be compared. Another version of toolfold has opened this memory: restart this one."
    )


NOTHING: Final = Matches(lists={}, created={}, quality={}, total=0)

_ALL: Final = 1 << 62
_MANY: Final = 2_000
_TAGS: Final = """
    SELECT tag, count(*) FROM tags WHERE namespace = ?
    GROUP BY tag ORDER BY count(*) DESC, tag LIMIT ?
"""


class SqlStore:
    """All of `Store` but for search, over one database, which is to be running."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database
        self._embedder: str | None = None

    async def add(self, namespace: str, drafts: Sequence[Draft], *, now: float) -> list[int]:
        def work(connection: SqlConnection) -> list[int]:
            writer = NoteWriter(connection, namespace, now=now)
            return [writer.add(draft) for draft in drafts]

        return await self._database.write(work, namespace)

    async def get(self, namespace: str, hash_prefix: str) -> Note:
        def work(connection: SqlConnection) -> Note:
            found = find_readable(connection, namespace_id(connection, namespace), hash_prefix)
            return read_note(connection, found.number)

        return await self._database.read(work)

    async def load(self, namespace: str, keys: Sequence[int]) -> dict[int, Note]:
        return await self._database.read(lambda connection: read_live(connection, namespace, keys))

    async def history(self, namespace: str, hash_prefix: str) -> list[Note]:
        def work(connection: SqlConnection) -> list[Note]:
            found = find_kept(connection, namespace_id(connection, namespace), hash_prefix)
            versions = read_versions(connection, found.number)
            return [*versions, read_note(connection, found.number)]

        return await self._database.read(work)

    async def update(
        self, namespace: str, hash_prefix: str, change: NoteChange, *, now: float
    ) -> Updated:
        def work(connection: SqlConnection) -> Updated:
            found = find_live(connection, namespace_id(connection, namespace), hash_prefix)
            NoteWriter(connection, namespace, now=now).update(found.number, change)
            return Updated(found.number, read_note(connection, found.number))

        return await self._database.write(work, namespace)

    async def supersede(self, namespace: str, older: str, newer: str, *, is_found: bool) -> bool:
        def work(connection: SqlConnection) -> bool:
            known = namespace_id(connection, namespace)
            old = find_live(connection, known, older)
            new = find_live(connection, known, newer)
            if _is_settled(connection, old, new, is_found=is_found):
                return False
            NoteWriter(connection, namespace, now=0).supersede(new.number, old)
            return True

        return await self._database.write(work, namespace)

    async def reinstate(self, namespace: str, hash_prefix: str) -> bool:
        def work(connection: SqlConnection) -> bool:
            found = find_live(connection, namespace_id(connection, namespace), hash_prefix)
            return NoteWriter(connection, namespace, now=0).reinstate(found.hash)

        return await self._database.write(work, namespace)

    async def delete(self, namespace: str, hash_prefixes: Sequence[str], *, now: float) -> int:
        def work(connection: SqlConnection) -> int:
            known = namespace_id(connection, namespace)
            found = {_to_delete(connection, known, prefix) for prefix in hash_prefixes} - {None}
            return _delete(connection, namespace, [each.number for each in found if each], now)

        return await self._database.write(work, namespace)

    async def delete_matching(self, namespace: str, wanted: Filter, *, now: float) -> int:
        def work(connection: SqlConnection) -> int:
            return _delete(connection, namespace, _keys(connection, namespace, wanted), now)

        return await self._database.write(work, namespace)

    async def restore(self, namespace: str, hash_prefixes: Sequence[str], *, now: float) -> int:
        def work(connection: SqlConnection) -> int:
            known = namespace_id(connection, namespace)
            found = {seek(connection, known, each, "deleted") for each in hash_prefixes} - {None}
            if found:
                writer = NoteWriter(connection, namespace, now=now)
                for each in found:
                    writer.restore(each.number if each else 0)
            return len(found)

        return await self._database.write(work, namespace)

    async def purge(self, namespace: str, hash_prefixes: Sequence[str], *, now: float) -> int:
        def work(connection: SqlConnection) -> int:
            known = namespace_id(connection, namespace)
            found = {seek(connection, known, each, "kept") for each in hash_prefixes} - {None}
            if found:
                writer = NoteWriter(connection, namespace, now=now)
                writer.purge([each.number for each in found if each])
            return len(found)

        purged = await self._database.write(work, namespace)
        await self._database.erase()
        return purged

    async def newest(
        self, namespace: str, wanted: Filter, *, limit: int, offset: int = 0
    ) -> NoteListing:
        def work(connection: SqlConnection) -> NoteListing:
            total = _count(connection, namespace, wanted)
            are_many = total > _MANY
            numbers = _keys(
                connection, namespace, wanted, limit=limit, offset=offset, are_many=are_many
            )
            notes = read_live(connection, namespace, numbers)
            return NoteListing([notes[number] for number in numbers], total)

        return await self._database.read(work)

    async def keys(self, namespace: str, wanted: Filter) -> list[int]:
        return await self._database.read(lambda connection: _keys(connection, namespace, wanted))

    async def counts(self, namespace: str) -> Counts:
        def work(connection: SqlConnection) -> Counts:
            known = namespace_id(connection, namespace)
            return Counts(
                notes=_count(connection, namespace, EVERYTHING),
                unembedded=len(unembedded(connection)),
                is_warm=known is None or self._is_warm(known),
            )

        return await self._database.read(work)

    async def tags(self, namespace: str, *, limit: int) -> dict[str, int]:
        def work(connection: SqlConnection) -> dict[str, int]:
            known = namespace_id(connection, namespace)
            return dict(connection.execute(_TAGS, (known, limit)).fetchall())

        return await self._database.read(work)

    async def adopt(self, embedder: str, dimensions: int) -> None:
        # Only if need be: a file that cannot be written is to be read all the same.
        if await self._database.read(made_by) != embedder:
            await self._database.write(
                lambda connection: self._adopt(connection, embedder, dimensions)
            )
        self._embedder = embedder

    async def unembedded(self) -> list[int]:
        return await self._database.read(unembedded)

    async def texts(self, keys: Sequence[int]) -> list[Unembedded]:
        return await self._database.read(lambda connection: texts_of(connection, keys))

    async def embed(self, embedder: str, vectors: Sequence[Embedded]) -> None:
        await self._database.write(lambda connection: self._embed(connection, embedder, vectors))

    def _is_warm(self, _namespace: int) -> bool:
        """Whether search by meaning has in memory what it needs."""
        return True

    def _adopt(self, connection: SqlConnection, embedder: str, dimensions: int) -> None:
        adopt(connection, embedder, dimensions)

    def _embed(self, connection: SqlConnection, embedder: str, vectors: Sequence[Embedded]) -> None:
        embed(connection, embedder, vectors)


def _is_settled(
    connection: SqlConnection, old: FoundNote, new: FoundNote, *, is_found: bool
) -> bool:
    """Tell whether one is known not to take the place of the other, or has already."""
    heirs: list[int] = [new.number]
    while heirs[-1] not in heirs[:-1]:
        if heirs[-1] == old.number:
            name = shown(old.hash)
            raise BadInput(f"The note {name} cannot take its own place. Reinstate it first.")
        by = read_superseded(connection, heirs[-1:]).get(heirs[-1])
        heirs.append(heirs[-1] if by is None else by.by)
    kinds = {link.kind for link in read_note(connection, new.number).links if link.hash == old.hash}
    if kinds & ({"supersedes", "distinct"} if is_found else {"supersedes"}):
        return True
    return is_found and bool(read_superseded(connection, [old.number]))


def _to_delete(connection: SqlConnection, namespace: int | None, prefix: str) -> FoundNote | None:
    found = seek(connection, namespace, prefix, "live")
    return found or seek(connection, namespace, prefix, "archived")


def _delete(connection: SqlConnection, namespace: str, numbers: Sequence[int], now: float) -> int:
    if numbers:
        writer = NoteWriter(connection, namespace, now=now)
        for number in numbers:
            writer.delete(number)
    return len(numbers)


def _keys(
    connection: SqlConnection,
    namespace: str,
    wanted: Filter,
    *,
    limit: int = _ALL,
    offset: int = 0,
    are_many: bool = False,
) -> list[int]:
    known = namespace_id(connection, namespace)
    if known is None:
        return []
    meets = condition(known, wanted, are_many=are_many)
    rows = connection.execute(
        f"SELECT number FROM notes WHERE {meets.sql} "
        "ORDER BY created DESC, number DESC LIMIT ? OFFSET ?",
        (*meets.values, limit, offset),
    )
    return [number for (number,) in rows]


def _count(connection: SqlConnection, namespace: str, wanted: Filter) -> int:
    known = namespace_id(connection, namespace)
    if known is None:
        return 0
    if wanted == EVERYTHING:
        rows = connection.execute("SELECT notes FROM namespaces WHERE id = ?", (known,))
    else:
        rows = connection.execute(*counting(known, wanted))
    [total] = rows.fetchone()
    counted: int = total
    return counted
