"""Vectors as rows of a SQLite store, and who made them; inside of a transaction."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from toolfold.errors import StoreError
from toolfold.memory.sqlite.writer import next_change
from toolfold.memory.store import Embedded, Unembedded


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorState:
    """Who made the vectors of a store, and the number of the last transaction that wrote."""

    changed: int
    embedder: str | None
    dimensions: int


def read_state(connection: sqlite3.Connection, *, expected: str | None) -> VectorState:
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


def made_by(connection: sqlite3.Connection) -> str | None:
    """Return which embedder the vectors are from; None while there are none."""
    [found] = connection.execute("SELECT embedder FROM state").fetchone()
    name: str | None = found
    return name


def adopt(connection: sqlite3.Connection, embedder: str, dimensions: int) -> None:
    """Note which embedder the vectors are from, and drop those of another; see `Store.adopt`."""
    found = made_by(connection)
    if found == embedder:
        return
    connection.execute("UPDATE state SET embedder = ?, dimensions = ?", (embedder, dimensions))
    if found is not None:
        connection.execute(
            "UPDATE points SET vector = NULL, changed = ? WHERE length(vector) > 0",
            (next_change(connection),),
        )


def unembedded(connection: sqlite3.Connection) -> list[int]:
    """Return the numbers of the notes that have no vector, oldest first."""
    rows = connection.execute("SELECT number FROM points WHERE vector IS NULL ORDER BY number")
    return [number for (number,) in rows]


def texts_of(connection: sqlite3.Connection, numbers: Sequence[int]) -> list[Unembedded]:
    """Return what is to be embedded, of those among these notes that have no vector yet."""
    rows = connection.execute(
        "SELECT number, hash, content FROM points JOIN notes USING (number) "
        f"WHERE vector IS NULL AND number IN ({', '.join('?' * len(numbers))}) ORDER BY number",
        tuple(numbers),
    )
    return [Unembedded(*row) for row in rows]


def embed(connection: sqlite3.Connection, embedder: str, vectors: Sequence[Embedded]) -> None:
    """Keep vectors, of notes that still say what they were made from; see `Store.embed`."""
    read_state(connection, expected=embedder)
    changed = next_change(connection)
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
