"""Keep events in a SQLite file."""

import json
import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from toolfold.errors import NotFound
from toolfold.memory.events.models import Event
from toolfold.memory.events.store import EventFilter, EventListing
from toolfold.memory.sqlite.file import SqliteFile
from toolfold.memory.sqlite.filters import SqlCondition
from toolfold.memory.sqlite.rows import namespace_id
from toolfold.memory.sqlite.schema import make_namespace

_COLUMNS: Final = "id, type, content, outcome, duration_ms, session_id, metadata, at"
_INSERT: Final = f"""
    INSERT INTO events (namespace, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING
"""


class SqliteEvents:
    """Implements `EventStore` over one file, which is to be running."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def record(self, namespace: str, events: Sequence[Event]) -> int:
        def work(connection: sqlite3.Connection) -> int:
            known = namespace_id(connection, namespace)
            if known is None:
                known = make_namespace(connection, namespace)
            rows = [_row(known, event) for event in events]
            return sum(connection.execute(_INSERT, row).rowcount for row in rows)

        return await self._file.write(work)

    async def get_event(self, namespace: str, id: str) -> Event:
        def work(connection: sqlite3.Connection) -> Event:
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM events WHERE namespace = ? AND id = ?",
                (namespace_id(connection, namespace), id),
            ).fetchone()
            if row is None:
                raise NotFound(f"No event has the id {id!r}. `recall_events` shows ids.")
            return _event(row)

        return await self._file.read(work)

    async def latest(
        self, namespace: str, wanted: EventFilter, *, limit: int, offset: int = 0
    ) -> EventListing:
        def work(connection: sqlite3.Connection) -> EventListing:
            meets = _condition(namespace_id(connection, namespace), wanted)
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM events WHERE {meets.sql} "
                "ORDER BY at DESC, number DESC LIMIT ? OFFSET ?",
                (*meets.values, limit, offset),
            ).fetchall()
            [total] = connection.execute(
                f"SELECT count(*) FROM events WHERE {meets.sql}", meets.values
            ).fetchone()
            return EventListing([_event(row) for row in rows], total)

        return await self._file.read(work)


def _condition(namespace: int | None, wanted: EventFilter) -> SqlCondition:
    given = {
        "namespace = ?": namespace,
        "session_id = ?": wanted.session_id,
        "type = ?": wanted.type,
        "at >= ?": wanted.since,
        "at < ?": wanted.until,
    }
    said = {sql: value for sql, value in given.items() if value is not None}
    return (
        SqlCondition(" AND ".join(said), tuple(said.values()))
        if namespace
        else SqlCondition("0", ())
    )


def _row(namespace: int, event: Event) -> tuple[object, ...]:
    metadata = json.dumps(event.metadata, ensure_ascii=False, separators=(",", ":"))
    return (
        *(namespace, event.id, event.type, event.content, event.outcome, event.duration_ms),
        *(event.session_id, metadata, event.at),
    )


def _event(row: tuple[Any, ...]) -> Event:
    id_, kind, content, outcome, duration_ms, session_id, metadata, at = row
    return Event(
        id=id_,
        type=kind,
        content=content,
        outcome=outcome,
        duration_ms=duration_ms,
        session_id=session_id,
        metadata=json.loads(metadata),
        at=at,
    )
