"""Keep consolidations in tables."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from toolfold.errors import BadInput, NotFound
from toolfold.memory.consolidation.models import ConsolidationCounts, PastConsolidation, Undone
from toolfold.memory.consolidation.store import (
    Applied,
    ConsolidationLease,
    ConsolidationPlan,
    Occasion,
    StoredNote,
)
from toolfold.memory.models import shown
from toolfold.memory.note_vectors import NoteUse
from toolfold.memory.sql.changes import Applier, Reverser
from toolfold.memory.sql.connection import SqlConnection, SqlDatabase
from toolfold.memory.sql.rows import AFTER_HEX, namespace_id

_SELECT: Final = """
    SELECT notes.number, notes.hash, notes.version, notes.content, notes.type, threads.name,
        notes.tags, notes.metadata, notes.created, notes.updated, notes.quality, points.quality,
        points.vector, uses.gets, uses.last
    FROM notes JOIN points USING (number) LEFT JOIN threads ON threads.id = notes.thread
        LEFT JOIN uses ON uses.number = notes.number
    WHERE notes.number > ? AND +notes.namespace = ? AND notes.deleted IS NULL
        AND notes.created >= coalesce(?, notes.created)
    ORDER BY notes.number LIMIT ?
"""
_ADD_USES: Final = """
    INSERT INTO uses (number, gets, shown, last)
    SELECT number, ?, ?, ? FROM notes WHERE namespace = ? AND hash >= ? AND hash < ?
    ON CONFLICT (number) DO UPDATE SET gets = uses.gets + excluded.gets,
        shown = uses.shown + excluded.shown,
        last = CASE WHEN uses.last > excluded.last THEN uses.last ELSE excluded.last END
"""
_RECORD: Final = """
    INSERT INTO consolidations (namespace, place, at, strategy, days_back, counts)
    VALUES (?, ?, ?, ?, ?, '{}') RETURNING number
"""
_COLUMNS: Final = "number, place, at, undone, strategy, days_back, counts"
_LATER: Final = """
    SELECT max(consolidations.place) FROM consolidation_changes AS mine
    JOIN consolidation_changes AS theirs ON theirs.number = mine.number
        AND theirs.consolidation > mine.consolidation
    JOIN consolidations ON consolidations.number = theirs.consolidation
    WHERE mine.consolidation = ?
"""


class SqlConsolidations:
    """Implements `ConsolidationStore` and `UseStore` over one database, which is to be running."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def notes_after(
        self, namespace: str, key: int, *, limit: int, since: float | None = None
    ) -> list[StoredNote]:
        def work(connection: SqlConnection) -> list[StoredNote]:
            known = namespace_id(connection, namespace)
            rows = connection.execute(_SELECT, (key, known, since, limit)).fetchall()
            return [_kept(connection, row) for row in rows]

        return await self._database.read(work)

    async def known_findings(self, namespace: str, names: Sequence[bytes]) -> set[bytes]:
        def work(connection: SqlConnection) -> set[bytes]:
            known = namespace_id(connection, namespace)
            select = "SELECT 1 FROM consolidation_findings WHERE namespace = ? AND name = ?"
            return {name for name in names if connection.execute(select, (known, name)).fetchone()}

        return await self._database.read(work)

    async def apply(self, namespace: str, plan: ConsolidationPlan, occasion: Occasion) -> Applied:
        def work(connection: SqlConnection) -> Applied:
            known = namespace_id(connection, namespace)
            number = _record(connection, known, occasion)
            applier = Applier(connection, namespace, number, now=occasion.at)
            did, skipped = applier.apply(plan)
            connection.executemany(
                "INSERT INTO consolidation_findings VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                [(known, name, number) for name in plan.findings],
            )
            counts = _together(occasion.counts, did)
            connection.execute(
                "UPDATE consolidations SET counts = ? WHERE number = ?",
                (json.dumps(counts._asdict()), number),
            )
            [place] = connection.execute(
                "SELECT place FROM consolidations WHERE number = ?", (number,)
            ).fetchone()
            return Applied(str(place), counts, skipped)

        return await self._database.write(work, namespace)

    async def undo(self, namespace: str, id: str | None, *, now: float) -> Undone:
        def work(connection: SqlConnection) -> Undone:
            known = namespace_id(connection, namespace)
            number, place = _to_undo(connection, known, id)
            [later] = connection.execute(_LATER, (number,)).fetchone()
            if later is not None:
                raise BadInput(
                    f"Consolidation {later} came after {place} and changed some of the same notes. "
                    f"Undo it first: undo('{later}')."
                )
            counts, left = Reverser(connection, namespace, number, now=now).reverse()
            hashes = tuple(shown(name) for name in _hashes(connection, left))
            for table in ("consolidation_changes", "consolidation_findings"):
                connection.execute(f"DELETE FROM {table} WHERE consolidation = ?", (number,))
            connection.execute(
                "UPDATE consolidations SET undone = ? WHERE number = ?", (now, number)
            )
            return Undone(str(place), counts, hashes)

        return await self._database.write(work, namespace)

    async def past(self, namespace: str, *, limit: int) -> list[PastConsolidation]:
        def work(connection: SqlConnection) -> list[PastConsolidation]:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM consolidations WHERE namespace = ? "
                "ORDER BY place DESC LIMIT ?",
                (namespace_id(connection, namespace), limit),
            )
            return [_past(row) for row in rows]

        return await self._database.read(work)

    async def namespaces(self) -> list[str]:
        def work(connection: SqlConnection) -> list[str]:
            rows = connection.execute("SELECT name FROM namespaces ORDER BY name")
            return [name for (name,) in rows]

        return await self._database.read(work)

    async def take_turn(self, turn: ConsolidationLease, *, now: float, every_s: float) -> float:
        def wait(connection: SqlConnection) -> float:
            known = namespace_id(connection, turn.namespace)
            return _wait_s(connection, known, turn, now=now, every_s=every_s)

        def take(connection: SqlConnection) -> float:
            wait_s = wait(connection)
            if wait_s <= 0:
                connection.execute(
                    "INSERT INTO consolidation_turns VALUES (?, ?, ?) ON CONFLICT (namespace) "
                    "DO UPDATE SET holder = excluded.holder, until = excluded.until",
                    (namespace_id(connection, turn.namespace), turn.holder, turn.until),
                )
            return wait_s

        wait_s = await self._database.read(wait)
        return wait_s if wait_s > 0 else await self._database.write(take, turn.namespace)

    async def end_turn(self, turn: ConsolidationLease) -> None:
        def work(connection: SqlConnection) -> None:
            connection.execute(
                "DELETE FROM consolidation_turns WHERE namespace = ? AND holder = ?",
                (namespace_id(connection, turn.namespace), turn.holder),
            )

        await self._database.write(work, turn.namespace)

    async def add_uses(self, uses: Sequence[NoteUse]) -> None:
        def work(connection: SqlConnection) -> None:
            for use in uses:
                known = namespace_id(connection, use.namespace)
                connection.execute(
                    _ADD_USES,
                    (use.gets, use.shown, use.last, known, use.hash, use.hash + AFTER_HEX),
                )

        await self._database.write(work)


def _kept(connection: SqlConnection, row: tuple[Any, ...]) -> StoredNote:
    number, name, version, content, kind, thread, tags, metadata, *rest = row
    created, updated, quality, influence, vector, gets, last = rest
    links = connection.execute("SELECT hash FROM links WHERE number = ?", (number,))
    return StoredNote(
        key=number,
        hash=name,
        version=version,
        content=content,
        type=kind,
        thread=thread,
        tags=tuple(json.loads(tags)),
        metadata=json.loads(metadata),
        created=created,
        updated=updated,
        quality=quality,
        influence=influence,
        vector=vector,
        links=frozenset(target for (target,) in links),
        gets=gets or 0,
        last_used=last,
    )


def _record(connection: SqlConnection, namespace: int | None, occasion: Occasion) -> int:
    [last] = connection.execute(
        "SELECT coalesce(max(place), 0) FROM consolidations WHERE namespace = ?", (namespace,)
    ).fetchone()
    [number] = connection.execute(
        _RECORD, (namespace, last + 1, occasion.at, occasion.strategy, occasion.days_back)
    ).fetchone()
    made: int = number
    return made


def _together(planned: ConsolidationCounts, did: ConsolidationCounts) -> ConsolidationCounts:
    """Return what was found, as it was counted, and what was done to notes."""
    return did._replace(
        looked_at=planned.looked_at, patterns=planned.patterns, clusters=planned.clusters
    )


def _to_undo(connection: SqlConnection, namespace: int | None, id_: str | None) -> tuple[int, int]:
    if id_ is None:
        rows = connection.execute(
            f"SELECT {_COLUMNS} FROM consolidations WHERE namespace = ? AND undone IS NULL "
            "ORDER BY place DESC",
            (namespace,),
        )
        found = next((row for row in rows if _has_changed_notes(_past(row))), None)
    else:
        found = connection.execute(
            f"SELECT {_COLUMNS} FROM consolidations WHERE namespace = ? AND place = ?",
            (namespace, int(id_) if id_.isdecimal() and len(id_) < 18 else -1),
        ).fetchone()
    if found is None:
        which = (
            "No consolidation can be undone" if id_ is None else f"There is no consolidation {id_}"
        )
        raise NotFound(f"{which}. `consolidations` lists those that were made.")
    if found[3] is not None:
        raise BadInput(f"Consolidation {id_} is undone already.")
    return found[0], found[1]


def _has_changed_notes(past: PastConsolidation) -> bool:
    counts = past.counts
    return any((counts.associations, counts.superseded, counts.archived, counts.faded))


def _hashes(connection: SqlConnection, numbers: Iterable[int]) -> Iterable[str]:
    for number in numbers:
        row = connection.execute("SELECT hash FROM notes WHERE number = ?", (number,)).fetchone()
        if row is not None:
            yield row[0]


def _past(row: tuple[Any, ...]) -> PastConsolidation:
    _, place, at, undone, strategy, days_back, counts = row
    return PastConsolidation(
        id=str(place),
        at=at,
        strategy=strategy,
        days_back=days_back,
        counts=ConsolidationCounts(**json.loads(counts)),
        undone=undone,
    )


def _wait_s(
    connection: SqlConnection,
    namespace: int | None,
    turn: ConsolidationLease,
    *,
    now: float,
    every_s: float,
) -> float:
    last, undone = connection.execute(
        "SELECT max(at), max(undone) FROM consolidations WHERE namespace = ?", (namespace,)
    ).fetchone()
    if last is not None and undone is not None and undone >= last:
        return every_s
    held = connection.execute(
        "SELECT until FROM consolidation_turns WHERE namespace = ? AND holder != ? AND until > ?",
        (namespace, turn.holder, now),
    ).fetchone()
    if held is not None:
        until: float = held[0]
        return max(until - now, 1.0)
    due: float = now if last is None else last + every_s
    return max(0.0, due - now)
