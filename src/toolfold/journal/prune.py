"""Delete the oldest runs from the journal, and their entries from the front of the audit log."""

import sqlite3
import time
from typing import Final

from toolfold.journal.runs import CALLS_BITS
from toolfold.journal.runsdb import RESUMING
from toolfold.storage.migrations import pragma

_CALLS_AT_ONCE: Final = 50
_ENTRIES_AT_ONCE: Final = 500

_UNUSED_LISTINGS: Final = """
    DELETE FROM listings WHERE id NOT IN (
        SELECT value FROM offers, json_each(offers.listings) UNION SELECT shown FROM offers
    )
"""

_AT_MOST: Final = "SELECT min(began_at) FROM beginnings WHERE number >= ?"

_RUN_KEYS: Final = (*RESUMING, "decisions", "reveals")
"""The tables in which the run is the upper part of the key, and that are short."""

# An anchor that somebody else wrote is never signed.
_OURS: Final = "seal = audit_anchor(seq, chain, since, below)"
_PRUNED: Final = f"""
    UPDATE anchor SET below = ?1, seal = audit_anchor(seq, chain, since, ?1)
    WHERE below < ?1 AND {_OURS}
"""  # noqa: S608
_MOVED: Final = f"""
    UPDATE anchor SET seq = ?1, chain = ?2, seal = audit_anchor(?1, ?2, since, below)
    WHERE {_OURS}
"""  # noqa: S608
# A run has no entry before that of its beginning. Entries of runs that nobody pruned stay, though
# their rows are gone; and so does the last one, after which the next is numbered.
_FIRST_LEFT: Final = """
    SELECT ifnull(
        (SELECT seq FROM audit WHERE kind = 'begin'
            AND ref >= min(?, (SELECT below FROM anchor)) ORDER BY seq LIMIT 1),
        (SELECT max(seq) FROM audit)
    )
"""


def prune(connection: sqlite3.Connection, *, oldest: float, spared: float, max_bytes: int) -> None:
    """Delete the runs that began before `oldest`, and then the oldest while there is too much.

    Runs that began after `spared` stay. Others who write get their turn in between.

    Raises:
        sqlite3.Error: The database does not answer.
    """
    below = _prune_runs(connection, oldest=oldest, spared=spared, max_bytes=max_bytes)
    connection.execute(_UNUSED_LISTINGS)
    _trim(connection, below=below)


def _prune_runs(
    connection: sqlite3.Connection, *, oldest: float, spared: float, max_bytes: int
) -> int:
    """Delete runs, and return the number below which nothing is left of any."""
    while first := connection.execute(
        "SELECT number, began_at FROM beginnings ORDER BY number LIMIT 1"
    ).fetchone():
        number, began_at = first
        _sweep(connection, below=number)
        if began_at > spared:  # or a clock was ahead: none began after those that came later
            began_at = connection.execute(_AT_MOST, (number,)).fetchone()[0]
        is_too_much = began_at < spared and _used_bytes(connection) > max_bytes
        if began_at >= oldest and not is_too_much:
            return int(number)
        connection.execute(_PRUNED, (number + 1,))  # first, or a row would seem to be missing
        connection.execute("DELETE FROM beginnings WHERE number = ?", (number,))
    below: int = connection.execute("SELECT below FROM anchor").fetchone()[0]
    _sweep(connection, below=below)
    return below


def _sweep(connection: sqlite3.Connection, *, below: int) -> None:
    """Delete what belongs to runs whose beginning is deleted: all that is older than the oldest."""
    connection.execute("DELETE FROM ends WHERE number < ?", (below,))
    connection.execute("DELETE FROM offers WHERE number < ?", (below,))
    connection.execute("DELETE FROM progress WHERE number < ?", (below,))
    for table in _RUN_KEYS:
        connection.execute(f"DELETE FROM {table} WHERE id < ?", (below << CALLS_BITS,))  # noqa: S608
    for first, end in ((0, below), (1 << CALLS_BITS, below << CALLS_BITS)):
        connection.execute("DELETE FROM tokens WHERE id >= ? AND id < ?", (first, end))
    is_more = True
    while is_more:
        started = time.perf_counter()
        deleted = connection.execute(
            "DELETE FROM calls WHERE id IN (SELECT id FROM calls WHERE id < ? ORDER BY id LIMIT ?)",
            (below << CALLS_BITS, _CALLS_AT_ONCE),
        )
        is_more = deleted.rowcount > 0
        # The lock goes to whoever asks first, and we would ask at once: leave others half the time.
        time.sleep(time.perf_counter() - started)


def _trim(connection: sqlite3.Connection, *, below: int) -> None:
    """Delete the entries that come before any of a run that is left, and move the anchor there.

    Nothing else may be left of the runs before.
    """
    first_left = connection.execute(_FIRST_LEFT, (below,)).fetchone()[0] or 0
    is_more = True
    while is_more:
        started = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        try:
            is_more = _trim_some(connection, first_left)
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
        time.sleep(time.perf_counter() - started)


def _trim_some(connection: sqlite3.Connection, first_left: int) -> bool:
    last = (
        connection.execute(
            "SELECT seq, substr(link, 33) FROM audit WHERE seq < ? ORDER BY seq LIMIT 1 OFFSET ?",
            (first_left, _ENTRIES_AT_ONCE - 1),
        ).fetchone()
        or connection.execute(
            "SELECT seq, substr(link, 33) FROM audit WHERE seq < ? ORDER BY seq DESC LIMIT 1",
            (first_left,),
        ).fetchone()
    )
    if last is None or not connection.execute(_MOVED, last).rowcount:
        return False
    connection.execute("DELETE FROM audit WHERE seq <= ?", (last[0],))
    return True


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages = pragma(connection, "page_count") - pragma(connection, "freelist_count")
    return pages * pragma(connection, "page_size")
