"""The audit log as lines of JSON: what it starts from, then every entry with its row."""

import json
import sqlite3
from collections.abc import Iterator
from typing import Any, Final

from toolfold.errors import StoreError
from toolfold.journal.audit.chain import AUDITED
from toolfold.journal.audit.verify import AuditEntry, entries, read_anchor, row_reader

FORMAT: Final = "toolfold-audit-1"

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_BEFORE: Final = "SELECT seq, substr(link, 33) FROM audit WHERE seq < ? ORDER BY seq DESC LIMIT 1"


def lines(connection: sqlite3.Connection, *, since: float = 0.0) -> Iterator[str]:
    """Yield the log from the first entry on that is not older than `since`, in a snapshot.

    Raises:
        StoreError: The log has no anchor, or holds what is no entry.
    """
    anchor = read_anchor(connection)
    if anchor is None:
        raise StoreError("The audit log has lost its anchor. `toolfold runs verify` says more.")
    first = _first(connection, since)
    seq, chain = connection.execute(_BEFORE, (first,)).fetchone() or (anchor.seq, anchor.chain)
    yield _encode(
        {
            "format": FORMAT,
            "before": {"seq": seq, "chain": _hex(chain)},
            "first_run": anchor.since,
            "pruned_below": anchor.below,
        }
    )
    run_ids = dict(connection.execute("SELECT number, id FROM beginnings"))
    row_of = row_reader(connection)
    for entry in entries(connection, first=first):
        if not entry.is_sound:
            raise StoreError(f"Entry {entry.seq} is damaged. `toolfold runs verify` says more.")
        yield _encode(_entry(entry, row_of(entry), run_ids.get(entry.number)))


def _first(connection: sqlite3.Connection, since: float) -> int:
    """Return the first entry that is to be there; entries behind it stay together."""
    found = connection.execute(
        "SELECT ifnull((SELECT seq FROM audit WHERE at >= ? ORDER BY seq LIMIT 1),"
        " (SELECT ifnull(max(seq), 0) + 1 FROM audit))",
        (since,),
    ).fetchone()
    return int(found[0])


def _entry(entry: AuditEntry, row: tuple[Any, ...] | None, run_id: str | None) -> dict[str, object]:
    columns = AUDITED[entry.kind].columns
    return {
        "seq": entry.seq,
        "at": entry.at,
        "kind": entry.kind,
        "run": run_id,
        "ref": entry.ref,
        "digest": _hex(entry.link.digest),
        "chain": _hex(entry.link.chain),
        "row": None if row is None else dict(zip(columns, map(_plain, row), strict=True)),
    }


def _hex(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else ""


def _plain(value: object) -> object:
    """Return a value as JSON has it. One that is no text, or no UTF-8, was never written by us."""
    if isinstance(value, bytes):
        return f"blob:{value.hex()}"
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return value
