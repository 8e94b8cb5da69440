"""Read and merge all that a database keeps of one namespace."""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, Final

from toolfold.errors import BadInput, NotFound
from toolfold.memory.documents.models import Document
from toolfold.memory.graph.inputs import read, written
from toolfold.memory.models import Event, Note
from toolfold.memory.sql.connection import SqlConnection, SqlDatabase
from toolfold.memory.sql.documents import read_document, read_documents, write_document
from toolfold.memory.sql.graph_rows import graph_id, read_all
from toolfold.memory.sql.graph_writer import GraphWriter
from toolfold.memory.sql.rows import namespace_id, read_note, read_versions
from toolfold.memory.sql.writer import NoteWriter
from toolfold.memory.store import NoteChange
from toolfold.memory.transfer.models import MergeOutcome, MergeResult
from toolfold.memory.transfer.records import ArchiveRecord, NoteRecord, NoteStage, VersionRecord

_UNCHANGED: Final = MergeOutcome("unchanged")
_INSERT_VERSION: Final = """
    INSERT INTO versions (number, version, namespace, hash, type, source, quality, created,
        updated, tags, metadata, content)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_EVENT_COLUMNS: Final = "id, type, content, outcome, duration_ms, session_id, metadata, at"
_SELECT_EVENTS: Final = f"SELECT {_EVENT_COLUMNS} FROM events WHERE namespace = ?"
_INSERT_EVENT: Final = f"""
    INSERT INTO events (namespace, {_EVENT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING
"""


class SqlArchive:
    """Implements `Archive` over one database, which is to be running as long as this is."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def export(self, namespace: str, take: Callable[[ArchiveRecord], None]) -> None:
        def work(connection: SqlConnection) -> None:
            known = namespace_id(connection, namespace)
            for record in _records(connection, known):
                take(record)

        await self._database.read(work)

    async def merge(
        self, namespace: str, records: Sequence[ArchiveRecord], *, now: float, dry_run: bool = False
    ) -> list[MergeOutcome]:
        def work(connection: SqlConnection) -> list[MergeOutcome]:
            merger = _Merger(connection, NoteWriter(connection, namespace, now=now))
            taken = [merger.take(record) for record in records]
            if dry_run:
                raise _Rehearsed(taken)
            return taken

        try:
            return await self._database.write(work, namespace)
        except _Rehearsed as rehearsed:
            return rehearsed.taken

    async def move(self, formerly: str, namespace: str, *, now: float) -> list[int]:
        def is_kept(connection: SqlConnection) -> bool:
            return any(find(connection, formerly) is not None for find in (namespace_id, graph_id))

        def work(connection: SqlConnection) -> list[int]:
            _move_graph(connection, formerly, namespace)
            return _move_notes(connection, formerly, namespace, now)

        return await self._database.write(work) if await self._database.read(is_kept) else []


class _Rehearsed(Exception):
    """Ends a transaction of which nothing is to stay."""

    def __init__(self, taken: list[MergeOutcome]) -> None:
        self.taken = taken


def _records(connection: SqlConnection, namespace: int | None) -> Iterator[ArchiveRecord]:
    """Give all that is kept in a namespace, as `Archive.export` does."""
    numbers = connection.execute(
        "SELECT number, archived FROM notes WHERE namespace = ? ORDER BY number", (namespace,)
    ).fetchall()  # more may be written meanwhile
    for number, archived in numbers:
        note, versions = read_note(connection, number), read_versions(connection, number)
        yield NoteRecord(note, tuple(map(_stage, versions)), is_archived=archived is not None)
        yield from (VersionRecord(_stage(note), version) for version in versions)
    yield from read_events(connection, namespace)
    yield from read_documents(connection, namespace)


class _Merger:
    """Merges records within one transaction."""

    def __init__(self, connection: SqlConnection, writer: NoteWriter) -> None:
        self._connection = connection
        self._writer = writer

    def take(self, record: ArchiveRecord) -> MergeOutcome:
        """Keep a record, or say why it cannot be."""
        self._connection.execute("SAVEPOINT record")
        try:
            taken = self._take(record)
        except (BadInput, NotFound) as error:
            self._connection.execute("ROLLBACK TO record")
            taken = MergeOutcome(reason=str(error))
        self._connection.execute("RELEASE record")
        return taken

    def _take(self, record: ArchiveRecord) -> MergeOutcome:
        match record:
            case NoteRecord():
                return self._take_note(record)
            case VersionRecord():
                return self._take_version(record)
            case Event():
                return self._take_event(record)
            case Document():
                return MergeOutcome(self._take_document(record))

    def _take_note(self, record: NoteRecord) -> MergeOutcome:
        number = self._find(_stage(record.note), record.formerly)
        if number is None:
            return MergeOutcome("added", self._add(record))
        before = read_note(self._connection, number)
        if before.deleted is not None or record.note.deleted is not None:
            return _UNCHANGED
        self._bring_together(number, before, record.note)
        is_changed = read_note(self._connection, number) != before
        return MergeOutcome("updated", number) if is_changed else _UNCHANGED

    def _bring_together(self, number: int, before: Note, other: Note) -> None:
        self._writer.update(number, _change(before, other))
        self._link(number, other)
        is_changed = read_note(self._connection, number).version > before.version
        if is_changed and other.updated > before.updated:
            # So the next file tells that these two are the same.
            self._connection.execute(
                "UPDATE notes SET updated = ? WHERE number = ?", (other.updated, number)
            )

    def _add(self, record: NoteRecord) -> int:
        number = self._writer.take_over(record.note)
        self._link(number, record.note)
        if record.is_archived:
            self._connection.execute(
                "UPDATE notes SET archived = deleted WHERE number = ?", (number,)
            )
        return number

    def _link(self, number: int, note: Note) -> None:
        self._connection.executemany(
            "INSERT INTO links VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            [(number, link.kind, link.hash) for link in note.links],
        )

    def _take_version(self, record: VersionRecord) -> MergeOutcome:
        number = self._find(record.of)
        if number is None:
            raise NotFound("Its current version is missing.")
        if record.note.version >= read_note(self._connection, number).version:
            return _UNCHANGED
        made = insert_version(self._connection, self._writer.namespace, number, record.note)
        return MergeOutcome("added") if made else _UNCHANGED

    def _take_event(self, event: Event) -> MergeOutcome:
        made = insert_event(self._connection, self._writer.namespace, event)
        return MergeOutcome("added") if made else _UNCHANGED

    def _take_document(self, document: Document) -> MergeResult:
        before = read_document(self._connection, self._writer.namespace, document.path)
        if before is not None and before.ingested >= document.ingested:
            return "unchanged"
        write_document(self._connection, self._writer.namespace, document)
        return "added" if before is None else "updated"

    def _find(self, now: NoteStage, formerly: Sequence[NoteStage] = ()) -> int | None:
        """Return the note that says the same now, or else shares a stage with the record."""
        row = self._connection.execute(
            "SELECT number FROM notes WHERE namespace = ? AND hash = ?",
            (self._writer.namespace, now.hash),
        ).fetchone()
        shared = (self._at_stage(stage) for stage in (now, *reversed(formerly)))
        return row[0] if row else next((number for number in shared if number is not None), None)

    def _at_stage(self, stage: NoteStage) -> int | None:
        for table in ("notes", "versions"):
            row = self._connection.execute(
                f"SELECT number FROM {table} WHERE namespace = ? AND hash = ? AND updated = ?",
                (self._writer.namespace, *stage),
            ).fetchone()
            if row is not None:
                number: int = row[0]
                return number
        return None


def insert_version(connection: SqlConnection, namespace: int, number: int, note: Note) -> bool:
    """Keep an earlier version of a note; tell whether there was none of its number."""
    made = connection.execute(
        _INSERT_VERSION,
        (
            *(number, note.version, namespace, note.hash, note.type, note.source),
            *(note.quality, note.created, note.updated, _dumped(note.tags)),
            *(_dumped(note.metadata), note.content),
        ),
    )
    return bool(made.rowcount)


def insert_event(connection: SqlConnection, namespace: int, event: Event) -> bool:
    """Keep an event; tell whether it was not there."""
    made = connection.execute(
        _INSERT_EVENT,
        (
            *(namespace, event.id, event.type, event.content, event.outcome, event.duration_ms),
            *(event.session_id, _dumped(event.metadata), event.at),
        ),
    )
    return bool(made.rowcount)


def read_events(connection: SqlConnection, namespace: int | None) -> list[Event]:
    """Return all events of a namespace, oldest first."""
    rows = connection.execute(f"{_SELECT_EVENTS} ORDER BY number", (namespace,)).fetchall()
    return list(map(_event, rows))


def _stage(note: Note) -> NoteStage:
    return NoteStage(note.hash, note.updated)


def _event(row: tuple[Any, ...]) -> Event:
    values = dict(zip(_EVENT_COLUMNS.split(", "), row, strict=True))
    return Event(**values | {"metadata": json.loads(values["metadata"])})


def _change(before: Note, other: Note) -> NoteChange:
    """Return what is to be different in a note that is here, in view of the same one elsewhere."""
    tags = tuple(dict.fromkeys((*before.tags, *other.tags)))
    if other.updated <= before.updated:
        return NoteChange(tags=tags)
    return NoteChange(
        content=other.content,
        tags=tags,
        type=other.type,
        metadata=other.metadata,
        source=other.source,
        quality=other.quality,
    )


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _move_notes(connection: SqlConnection, old: str, new: str, now: float) -> list[int]:
    source = namespace_id(connection, old)
    if source is None:
        return []
    if namespace_id(connection, new) is None:
        connection.execute("UPDATE namespaces SET name = ? WHERE id = ?", (new, source))
        return []
    merger = _Merger(connection, NoteWriter(connection, new, now=now))
    taken = [merger.take(record) for record in _records(connection, source)]
    name = _free(old, lambda name: namespace_id(connection, name))
    connection.execute("UPDATE namespaces SET name = ? WHERE id = ?", (name, source))
    return [each.key for each in taken if each.key is not None]


def _move_graph(connection: SqlConnection, old: str, new: str) -> None:
    source = graph_id(connection, old)
    if source is None:
        return
    name = new
    if graph_id(connection, new) is not None:
        graph, _ = read(written(read_all(connection, source)).split("\n"))
        writer = GraphWriter(connection, new)
        writer.merge(graph)
        writer.finish()
        name = _free(old, lambda name: graph_id(connection, name))
    connection.execute("UPDATE graphs SET namespace = ? WHERE id = ?", (name, source))


def _free(name: str, find: Callable[[str], int | None]) -> str:
    """Return a name for what has been moved away."""
    names = (f"{name} (moved {number})" for number in count(1))
    return next(each for each in names if find(each) is None)
