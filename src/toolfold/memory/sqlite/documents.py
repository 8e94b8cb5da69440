"""Keep documents in a SQLite file, beside the notes that are their chunks."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final

from toolfold.memory.documents.models import NOTE_TYPE, Document, Placed, thread_of
from toolfold.memory.documents.store import DocumentPage, PlanChunks
from toolfold.memory.models import Draft
from toolfold.memory.sqlite.file import SqliteFile
from toolfold.memory.sqlite.rows import namespace_id, read_note
from toolfold.memory.sqlite.writer import NoteWriter
from toolfold.memory.store import NoteChange

_COLUMNS: Final = tuple(field.name for field in fields(Document))
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM documents"
_CHUNKS: Final = """
    SELECT number, position, content, hash FROM notes
    WHERE thread = (SELECT id FROM threads WHERE namespace = ? AND name = ?)
        AND type = ? AND deleted IS NULL
    ORDER BY position, number
"""


class SqliteDocuments:
    """Implements `DocumentStore` over one file, which is to be running as long as this is."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def find(self, namespace: str, path: str) -> Document | None:
        return await self._file.read(
            lambda connection: read_document(connection, namespace_id(connection, namespace), path)
        )

    async def is_whole(self, namespace: str, document: Document) -> bool:
        def work(connection: sqlite3.Connection) -> bool:
            number = namespace_id(connection, namespace)
            kept = 0 if number is None else len(_chunks(connection, number, document.path))
            return kept == document.chunks

        return await self._file.read(work)

    async def put(
        self, namespace: str, document: Document, plan: PlanChunks, *, now: float
    ) -> Sequence[int]:
        def work(connection: sqlite3.Connection) -> list[int]:
            writer = NoteWriter(connection, namespace, now=now)
            known = _chunks(connection, writer.namespace, document.path)
            drafts = plan([Placed(position, content) for _, position, content, _ in known])
            write_document(connection, writer.namespace, document)
            return _replace_chunks(connection, writer, known, drafts)

        return await self._file.write(work)

    async def touch(self, namespace: str, document: Document) -> None:
        def work(connection: sqlite3.Connection) -> None:
            number = namespace_id(connection, namespace)
            if number is not None and read_document(connection, number, document.path):
                write_document(connection, number, document)

        await self._file.write(work)

    async def forget(self, namespace: str, paths: Sequence[str], *, now: float) -> int:
        def work(connection: sqlite3.Connection) -> int:
            writer = NoteWriter(connection, namespace, now=now)
            return sum(_forget(connection, writer, path) for path in paths)

        return await self._file.write(work)

    async def page(self, namespace: str, *, limit: int, offset: int = 0) -> DocumentPage:
        def work(connection: sqlite3.Connection) -> DocumentPage:
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

        return await self._file.read(work)

    async def below(self, namespace: str, folder: str) -> list[str]:
        start = folder.rstrip("/") + "/"
        # The character after the slash is the first that no path below can begin with.
        span = (start, start[:-1] + chr(ord("/") + 1), folder)

        def work(connection: sqlite3.Connection) -> list[str]:
            rows = connection.execute(
                "SELECT path FROM documents WHERE namespace = ? "
                "AND (path >= ? AND path < ? OR path = ?) ORDER BY path",
                (namespace_id(connection, namespace), *span),
            )
            return [path for (path,) in rows]

        return await self._file.read(work)


def write_document(connection: sqlite3.Connection, namespace: int, document: Document) -> None:
    """Keep what is known of a document, in place of what was."""
    values = [_kept(getattr(document, name)) for name in _COLUMNS]
    connection.execute(
        f"INSERT OR REPLACE INTO documents (namespace, {', '.join(_COLUMNS)}) "
        f"VALUES ({', '.join('?' * (len(_COLUMNS) + 1))})",
        (namespace, *values),
    )


def read_document(
    connection: sqlite3.Connection, namespace: int | None, path: str
) -> Document | None:
    """Return what is known of a document, None if nothing is."""
    row = connection.execute(
        f"{_SELECT} WHERE namespace = ? AND path = ?", (namespace, path)
    ).fetchone()
    return None if row is None else _document(row)


def read_documents(connection: sqlite3.Connection, namespace: int | None) -> list[Document]:
    """Return all documents of a namespace, by path."""
    rows = connection.execute(f"{_SELECT} WHERE namespace = ? ORDER BY path", (namespace,))
    return [_document(row) for row in rows]


_Known = tuple[int, int, str, str]


def _chunks(connection: sqlite3.Connection, namespace: int, path: str) -> list[_Known]:
    return connection.execute(_CHUNKS, (namespace, thread_of(path), NOTE_TYPE)).fetchall()


def _replace_chunks(
    connection: sqlite3.Connection,
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


def _forget(connection: sqlite3.Connection, writer: NoteWriter, path: str) -> int:
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
