"""Keep documents in tables, beside the notes that are their chunks."""

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final

from toolfold.memory.documents.models import (
    NOTE_TYPE,
    Document,
    DocumentPage,
    Placed,
    PlanChunks,
    thread_of,
)
from toolfold.memory.models import Draft
from toolfold.memory.sql.connection import SqlConnection, SqlDatabase
from toolfold.memory.sql.rows import namespace_id, read_note
from toolfold.memory.sql.writer import NoteWriter
from toolfold.memory.store import NoteChange

_COLUMNS: Final = tuple(field.name for field in fields(Document))
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM documents"
_REPLACED: Final = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name != "path")
_CHUNKS: Final = """
    SELECT number, position, content, hash FROM notes
    WHERE thread = (SELECT id FROM threads WHERE namespace = ? AND name = ?)
        AND type = ? AND deleted IS NULL
    ORDER BY position, number
"""


class SqlDocuments:
    """Implements `DocumentStore` over one database, which is to be running as long as this is."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def find(self, namespace: str, path: str) -> Document | None:
        return await self._database.read(
            lambda connection: read_document(connection, namespace_id(connection, namespace), path)
        )

    async def is_whole(self, namespace: str, document: Document) -> bool:
        def work(connection: SqlConnection) -> bool:
            number = namespace_id(connection, namespace)
            kept = 0 if number is None else len(_chunks(connection, number, document.path))
            return kept == document.chunks

        return await self._database.read(work)

    async def put(
        self, namespace: str, document: Document, plan: PlanChunks, *, now: float
    ) -> Sequence[int]:
        def work(connection: SqlConnection) -> list[int]:
            writer = NoteWriter(connection, namespace, now=now)
            known = _chunks(connection, writer.namespace, document.path)
            drafts = plan([Placed(position, content) for _, position, content, _ in known])
            write_document(connection, writer.namespace, document)
            return _replace_chunks(connection, writer, known, drafts)

        return await self._database.write(work, namespace)

    async def touch(self, namespace: str, document: Document) -> None:
        def work(connection: SqlConnection) -> None:
            number = namespace_id(connection, namespace)
            if number is not None and read_document(connection, number, document.path):
                write_document(connection, number, document)

        await self._database.write(work, namespace)

    async def forget(self, namespace: str, paths: Sequence[str], *, now: float) -> int:
        def work(connection: SqlConnection) -> int:
            writer = NoteWriter(connection, namespace, now=now)
            return sum(_forget(connection, writer, path) for path in paths)

        return await self._database.write(work, namespace)

    async def page(self, namespace: str, *, limit: int, offset: int = 0) -> DocumentPage:
        def work(connection: SqlConnection) -> DocumentPage:
            number = namespace_id(connection, namespace)
            rows = connection.execute(
                f"{_SELECT} WHERE namespace = ? ORDER BY path LIMIT ? OFFSET ?",
                (number, limit, offset),
            )
            documents = [_document(row) for row in rows]
            [total] = connection.execute(
                "SELECT count(*) FROM documents WHERE namespace = ?", (number,)
            ).fetchone()
            return DocumentPage(documents, total)

        return await self._database.read(work)

    async def chunks(self, namespace: str, path: str) -> list[str]:
        def work(connection: SqlConnection) -> list[str]:
            number = namespace_id(connection, namespace)
            found = [] if number is None else _chunks(connection, number, path)
            return [name for _number, _position, _content, name in found]

        return await self._database.read(work)

    async def below(self, namespace: str, folder: str) -> list[str]:
        start = folder.rstrip("/") + "/"
        # The character after the slash is the first that no path below can begin with.
        span = (start, start[:-1] + chr(ord("/") + 1), folder)

        def work(connection: SqlConnection) -> list[str]:
            rows = connection.execute(
                "SELECT path FROM documents WHERE namespace = ? "
                "AND (path >= ? AND path < ? OR path = ?) ORDER BY path",
                (namespace_id(connection, namespace), *span),
            )
            return [path for (path,) in rows]

        return await self._database.read(work)


def write_document(connection: SqlConnection, namespace: int, document: Document) -> None:
    """Keep what is known of a document, in place of what was."""
    values = [_kept(getattr(document, name)) for name in _COLUMNS]
    connection.execute(
        f"INSERT INTO documents (namespace, {', '.join(_COLUMNS)}) "
        f"VALUES ({', '.join('?' * (len(_COLUMNS) + 1))}) "
        f"ON CONFLICT (namespace, path) DO UPDATE SET {_REPLACED}",
        (namespace, *values),
    )


def read_document(connection: SqlConnection, namespace: int | None, path: str) -> Document | None:
    """Return what is known of a document, None if nothing is."""
    row = connection.execute(
        f"{_SELECT} WHERE namespace = ? AND path = ?", (namespace, path)
    ).fetchone()
    return None if row is None else _document(row)


def read_documents(connection: SqlConnection, namespace: int | None) -> list[Document]:
    """Return all documents of a namespace, by path."""
    rows = connection.execute(f"{_SELECT} WHERE namespace = ? ORDER BY path", (namespace,))
    return [_document(row) for row in rows]


_Known = tuple[int, int, str, str]


def _chunks(connection: SqlConnection, namespace: int, path: str) -> list[_Known]:
    return connection.execute(_CHUNKS, (namespace, thread_of(path), NOTE_TYPE)).fetchall()


def _replace_chunks(
    connection: SqlConnection,
    writer: NoteWriter,
    known: Sequence[_Known],
    drafts: Sequence[Draft],
) -> list[int]:
    wanted = {draft.hash for draft in drafts}
    for number, _, _, name in known:
        if name not in wanted:
            writer.delete(number)
    numbers = [writer.add(draft) for draft in drafts]
    stayed = {number for number, _, _, name in known if name in wanted}
    for number, draft in zip(numbers, drafts, strict=True):
        # What a chunk says is the same; its page may be another by now.
        if number in stayed and read_note(connection, number).metadata != draft.metadata:
            writer.update(number, NoteChange(metadata=draft.metadata))
    return numbers


def _forget(connection: SqlConnection, writer: NoteWriter, path: str) -> int:
    connection.execute(
        "DELETE FROM documents WHERE namespace = ? AND path = ?", (writer.namespace, path)
    )
    known = _chunks(connection, writer.namespace, path)
    for number, *_ in known:
        writer.delete(number)
    return len(known)


def _kept(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, tuple) else value


def _document(row: tuple[Any, ...]) -> Document:
    values = dict(zip(_COLUMNS, row, strict=True))
    values["tags"] = tuple(json.loads(values["tags"]))
    return Document(**values)
