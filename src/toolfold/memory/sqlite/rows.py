"""Read notes from the rows of a SQLite store, inside of a transaction."""

import json
import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from toolfold.errors import NotFound
from toolfold.memory.models import Link, Note

# Keeps statements well below the number of variables that SQLite takes.
_NUMBERS_AT_ONCE: Final = 500

_SELECT: Final = """
    SELECT notes.number, namespaces.name, notes.hash, notes.version, notes.type, notes.source,
        threads.name, notes.position, notes.quality, notes.created, notes.updated, notes.deleted,
        notes.tags, notes.metadata, notes.content
    FROM notes JOIN namespaces ON namespaces.id = notes.namespace
        LEFT JOIN threads ON threads.id = notes.thread
"""
_SELECT_VERSIONS: Final = """
    SELECT versions.number, namespaces.name, versions.hash, versions.version, versions.type,
        versions.source, threads.name, notes.position, versions.quality, versions.created,
        versions.updated, NULL, versions.tags, versions.metadata, versions.content
    FROM versions JOIN notes USING (number) JOIN namespaces ON namespaces.id = notes.namespace
        LEFT JOIN threads ON threads.id = notes.thread
    WHERE versions.number = ? ORDER BY versions.version
"""
_COLUMNS: Final = (
    *("number", "namespace", "hash", "version", "type", "source", "thread", "position", "quality"),
    *("created", "updated", "deleted", "tags", "metadata", "content"),
)


def namespace_id(connection: sqlite3.Connection, name: str) -> int | None:
    """Return the number of a namespace, None if nothing was ever kept in it."""
    found = connection.execute("SELECT id FROM namespaces WHERE name = ?", (name,)).fetchone()
    return None if found is None else found[0]


def read_note(connection: sqlite3.Connection, number: int) -> Note:
    """Return a note, deleted or not.

    Raises:
        NotFound: It is purged.
    """
    row = connection.execute(f"{_SELECT} WHERE notes.number = ?", (number,)).fetchone()
    if row is None:
        raise NotFound("The note has just been purged.")
    return _note(connection, row)


def read_live(
    connection: sqlite3.Connection, namespace: str, numbers: Sequence[int]
) -> dict[int, Note]:
    """Return the notes of a namespace that are not deleted, by number."""
    found = {}
    for start in range(0, len(numbers), _NUMBERS_AT_ONCE):
        some = numbers[start : start + _NUMBERS_AT_ONCE]
        rows = connection.execute(
            # The plus keeps SQLite from going through all notes of the namespace instead.
            f"{_SELECT} WHERE notes.number IN ({', '.join('?' * len(some))}) "
            "AND notes.deleted IS NULL AND +notes.namespace = ?",
            (*some, namespace_id(connection, namespace)),
        ).fetchall()
        found.update({row[0]: _note(connection, row) for row in rows})
    return found


def read_versions(connection: sqlite3.Connection, number: int) -> list[Note]:
    """Return what a note was before, oldest first."""
    rows = connection.execute(_SELECT_VERSIONS, (number,)).fetchall()
    return [_note(connection, row) for row in rows]


def _note(connection: sqlite3.Connection, row: tuple[Any, ...]) -> Note:
    values = dict(zip(_COLUMNS, row, strict=True))
    number = values.pop("number")
    links = connection.execute("SELECT kind, hash FROM links WHERE number = ?", (number,))
    values["tags"] = tuple(json.loads(values["tags"]))
    values["metadata"] = json.loads(values["metadata"])
    return Note(links=tuple(Link(kind=kind, hash=name) for kind, name in links), **values)
