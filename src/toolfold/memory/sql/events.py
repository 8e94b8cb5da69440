"""Keep events in tables."""

import json
from collections.abc import Sequence
from typing import Any, Final

from toolfold.errors import NotFound
from toolfold.memory.models import Event
from toolfold.memory.sql.connection import SqlCondition, SqlConnection, SqlDatabase
from toolfold.memory.sql.rows import make_namespace, namespace_id
from toolfold.memory.store import EventFilter, EventListing

_COLUMNS: Final = "id, type, content, outcome, duration_ms, session_id, metadata, at"
_INSERT: Final = f"""
    INSERT INTO events (namespace, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING
"""


class SqlEvents:
    """Implements `EventStore` over one database, which is to be running."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def record(self, namespace: str, events: Sequence[Event]) -> int:
        def work(connection: SqlConnection) -> int:
            known = namespace_id(connection, namespace)
            if known is None:
                known = make_namespace(connection, namespace)
            rows = [_row(known, event) for event in events]
            return sum(connection.execute(_INSERT, row).rowcount for row in rows)

        return await self._database.write(work, namespace)

    async def get_event(self, namespace: str, id: str) -> Event:
        def work(connection: SqlConnection) -> Event:
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM events WHERE namespace = ? AND id = ?",
                (namespace_id(connection, namespace), id),
            ).fetchone()
            if row is None:
                raise NotFound(f"No event has the id {id!r}. `recall_events` shows ids.")
            return _event(row)

        return await self._database.read(work)

    async def latest(
        self, namespace: str, wanted: EventFilter, *, limit: int, offset: int = 0
    ) -> EventListing:
        def work(connection: SqlConnection) -> EventListing:
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

        return await self._database.read(work)


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
        else SqlCondition("FALSE", ())
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
