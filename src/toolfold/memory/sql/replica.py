"""Read all versions of the notes of a namespace, and make notes what they are elsewhere."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from toolfold.memory.documents.models import NOTE_TYPE
from toolfold.memory.models import Event, Note
from toolfold.memory.sql.archive import insert_event, insert_version, read_events
from toolfold.memory.sql.connection import SqlConnection, SqlDatabase
from toolfold.memory.sql.rows import namespace_id, read_note, read_versions
from toolfold.memory.sql.writer import NoteWriter
from toolfold.memory.sync.journal import Entry, KeptNote, NoteRewrite, sight_of
from toolfold.memory.sync.models import KeptNotes

# Chunks of documents belong to the machine whose files they are.
_NUMBERS: Final = """
    SELECT number, archived FROM notes WHERE namespace = ? AND type != ? ORDER BY number
"""
_IS_PURGED: Final = "SELECT 1 FROM points WHERE number = ? AND is_live = 0 AND vector = ?"


class SqlReplica:
    """Implements `Replica` over one database, which is to be running as long as this is."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def read(self, namespace: str) -> KeptNotes:
        def work(connection: SqlConnection) -> KeptNotes:
            known = namespace_id(connection, namespace)
            rows = connection.execute(_NUMBERS, (known, NOTE_TYPE)).fetchall()
            notes = [_kept(connection, number, archived) for number, archived in rows]
            return KeptNotes(notes, {each.id: each for each in read_events(connection, known)})

        return await self._database.read(work)

    async def erased(self, numbers: Sequence[int]) -> set[int]:
        def work(connection: SqlConnection) -> set[int]:
            return {
                number
                for number in numbers
                if connection.execute(_IS_PURGED, (number, b"")).fetchone() is not None
            }

        return await self._database.read(work)

    async def rewrite(
        self,
        namespace: str,
        rewrites: Sequence[NoteRewrite],
        events: Sequence[Event],
        *,
        now: float,
    ) -> list[int] | None:
        def work(connection: SqlConnection) -> list[int] | None:
            if not all(_is_as_seen(connection, rewrite) for rewrite in rewrites):
                return None
            writer = NoteWriter(connection, namespace, now=now)
            for event in events:
                insert_event(connection, writer.namespace, event)
            return _rewrite(connection, writer, rewrites)

        keys = await self._database.write(work, namespace)
        if any(each.entry is None for each in rewrites):
            await self._database.erase()
        return keys


def _kept(connection: SqlConnection, number: int, archived: float | None) -> KeptNote:
    versions = [*read_versions(connection, number), read_note(connection, number)]
    return KeptNote(number, tuple(versions), is_archived=archived is not None)


def _is_as_seen(connection: SqlConnection, rewrite: NoteRewrite) -> bool:
    for number, sight in rewrite.seen.items():
        row = connection.execute(
            "SELECT archived FROM notes WHERE number = ?", (number,)
        ).fetchone()
        if row is None:
            return False
        if sight_of(_kept(connection, number, row[0])) != sight:
            return False
    return True


def _rewrite(
    connection: SqlConnection, writer: NoteWriter, rewrites: Sequence[NoteRewrite]
) -> list[int]:
    writer.purge([number for each in rewrites if each.entry is None for number in each.seen])
    kept = [each for each in rewrites if each.entry is not None]
    for rewrite in kept:  # a note may get the hash that another one gives up
        for number in rewrite.seen:
            writer.free_hash(number)
    return [_write(connection, writer, each, each.entry) for each in kept if each.entry]


def _write(
    connection: SqlConnection, writer: NoteWriter, rewrite: NoteRewrite, entry: Entry
) -> int:
    *earlier, note = _versions(entry)
    numbers = sorted(rewrite.seen)
    for other in numbers[1:]:
        writer.absorb(other)
    if numbers:
        number = numbers[0]
        writer.replace(number, note)
        for table in ("versions", "links"):
            connection.execute(f"DELETE FROM {table} WHERE number = ?", (number,))
    else:
        number = writer.take_over(note)
    for version in earlier:
        insert_version(connection, writer.namespace, number, version)
    connection.executemany(
        "INSERT INTO links VALUES (?, ?, ?)",
        [(number, *key) for key, state in entry.links.items() if state.is_there],
    )
    if entry.state.name == "archived":
        connection.execute("UPDATE notes SET archived = deleted WHERE number = ?", (number,))
    return number


def _versions(entry: Entry) -> list[Note]:
    notes = [
        replace(stage.note, version=version) for version, stage in enumerate(entry.chain, start=1)
    ]
    deleted = None if entry.state.name == "live" else entry.state.at
    return [*notes[:-1], replace(notes[-1], deleted=deleted)]
