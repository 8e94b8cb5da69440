"""Delete the oldest runs of the journal, and the entries of the audit log that only they had."""

import json
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from toolfold.journal.audit.chain import RUN_KEYS, Signer
from toolfold.journal.audit.verify import read_anchor
from toolfold.journal.runs import CALLS_BITS
from toolfold.journal.runsdb import RESUMING
from toolfold.storage.tables import SqlTransaction, Tables

_T = TypeVar("_T")

_CALLS_AT_ONCE: Final = 50
_ENTRIES_AT_ONCE: Final = 500
_OLDEST: Final = "SELECT number, began_at FROM beginnings ORDER BY number LIMIT 1"
_AT_MOST: Final = "SELECT min(began_at) FROM beginnings WHERE number >= ?"
_SOME_CALLS: Final = (
    "DELETE FROM calls WHERE id IN (SELECT id FROM calls WHERE id < ? ORDER BY id LIMIT ?)"
)
_RUN_TABLES: Final = ("ends", "offers", "progress")
_KEYED_TABLES: Final = (*RESUMING, "decisions", "reveals")
"""The tables in which the run is the upper part of the key, and that are short."""
_COUNTED: Final = ("beginnings", "calls", "ends", *_KEYED_TABLES, "listings", "tokens", "audit")

# A run has no entry before that of its beginning. Entries of runs that nobody pruned stay, though
# their rows are gone; and so does the last one, after which the next is numbered.
_FIRST_OF_RUN: Final = (
    "SELECT seq FROM audit WHERE kind = 'begin' AND ref >= ? ORDER BY seq LIMIT 1"
)
_LAST: Final = "SELECT max(seq) FROM audit"
_SOME_ENTRIES: Final = (
    "SELECT seq, link FROM audit WHERE seq < ? ORDER BY seq LIMIT 1 OFFSET ?",
    "SELECT seq, link FROM audit WHERE seq < ? ORDER BY seq DESC LIMIT 1 OFFSET ?",
)


class Retention(NamedTuple):
    """What stays: runs that began since `oldest`, as far as there is room, and since `spared`."""

    oldest: float
    spared: float
    max_bytes: int


def prune(tables: Tables, signer: Signer, kept: Retention) -> None:
    """Delete the runs that are too old, and then the oldest while there is too much.

    Other writers get their turn in between.

    Raises:
        StoreError: The database does not answer.
    """
    below = 0
    while found := tables.write(lambda transaction: _prune_one(transaction, signer, kept)):
        below, is_more = found
        _delete_calls(tables, below)
        if not is_more:
            break
    tables.write(_delete_unused_listings)
    first_left = tables.read(lambda transaction: _first_left(transaction, below))
    while _taking_turns(lambda: tables.write(lambda each: _trim(each, signer, first_left))):
        pass


def _prune_one(transaction: SqlTransaction, signer: Signer, kept: Retention) -> tuple[int, bool]:
    """Delete the oldest run if it is to go, and what is left of those before.

    Return below which number nothing is to be left, and whether more may have to go.
    """
    first = transaction.execute(_OLDEST).fetchone()
    if first is None:
        below = _below(transaction)
        _sweep(transaction, below)
        return below, False
    number, began_at = first
    _sweep(transaction, number)
    if began_at > kept.spared:  # or a clock was ahead: none began after those that came later
        began_at = transaction.execute(_AT_MOST, (number,)).fetchone()[0]
    if began_at >= kept.oldest and not (
        began_at < kept.spared and transaction.used_bytes(_COUNTED) > kept.max_bytes
    ):
        return number, False
    _move_below(transaction, signer, number + 1)  # or a row would seem to be missing
    transaction.execute("DELETE FROM beginnings WHERE number = ?", (number,))
    _sweep(transaction, number + 1)
    return number + 1, True


def _sweep(transaction: SqlTransaction, below: int) -> None:
    """Delete what belongs to runs whose beginning is deleted, but for their calls."""
    for table in _RUN_TABLES:
        transaction.execute(f"DELETE FROM {table} WHERE number < ?", (below,))  # noqa: S608
    for table in _KEYED_TABLES:
        transaction.execute(f"DELETE FROM {table} WHERE id < ?", (below << CALLS_BITS,))  # noqa: S608
    for first, end in ((0, below), (RUN_KEYS, below << CALLS_BITS)):
        transaction.execute("DELETE FROM tokens WHERE id >= ? AND id < ?", (first, end))


def _delete_calls(tables: Tables, below: int) -> None:
    def some(transaction: SqlTransaction) -> int:
        return transaction.execute(_SOME_CALLS, (below << CALLS_BITS, _CALLS_AT_ONCE)).rowcount

    while _taking_turns(lambda: tables.write(some)) > 0:
        pass


def _taking_turns(work: Callable[[], _T]) -> _T:
    """Do `work`, and leave others as much time: the lock goes to the first who asks."""
    started = time.perf_counter()
    found = work()
    time.sleep(time.perf_counter() - started)
    return found


def _delete_unused_listings(transaction: SqlTransaction) -> None:
    used: set[Any] = set()
    for listings, shown in transaction.execute("SELECT DISTINCT listings, shown FROM offers"):
        used.update((*json.loads(listings), shown))
    known = [row[0] for row in transaction.execute("SELECT id FROM listings").fetchall()]
    unused = [(each,) for each in known if each not in used]
    transaction.executemany("DELETE FROM listings WHERE id = ?", unused)


def _below(transaction: SqlTransaction) -> int:
    found = transaction.execute("SELECT below FROM anchor").fetchone()
    return found[0] if found else 0


def _move_below(transaction: SqlTransaction, signer: Signer, below: int) -> None:
    """Have the anchor say that rows of runs below may be gone. One of others is never signed."""
    anchor = read_anchor(transaction, signer)
    if anchor is not None and anchor.below < below:
        seal = signer.anchor(anchor.seq, anchor.chain, anchor.since, below)
        transaction.execute("UPDATE anchor SET below = ?, seal = ?", (below, seal))


def _first_left(transaction: SqlTransaction, below: int) -> int:
    """Return the first entry that stays."""
    least = min(below, _below(transaction))
    first = transaction.execute(_FIRST_OF_RUN, (least,)).fetchone()
    found = first or transaction.execute(_LAST).fetchone()
    return found[0] or 0


def _trim(transaction: SqlTransaction, signer: Signer, first_left: int) -> bool:
    """Delete some entries that come before, and move the anchor there."""
    last = None
    for statement, offset in zip(_SOME_ENTRIES, (_ENTRIES_AT_ONCE - 1, 0), strict=True):
        last = last or transaction.execute(statement, (first_left, offset)).fetchone()
    anchor = read_anchor(transaction, signer)
    if last is None or anchor is None:
        return False
    seq, chain = last[0], bytes(last[1])[32:]
    seal = signer.anchor(seq, chain, anchor.since, anchor.below)
    transaction.execute("UPDATE anchor SET seq = ?, chain = ?, seal = ?", (seq, chain, seal))
    transaction.execute("DELETE FROM audit WHERE seq <= ?", (seq,))
    return True
