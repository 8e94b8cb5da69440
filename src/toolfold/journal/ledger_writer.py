"""What the ledger needs and no run waits for, written a moment later and in another thread."""

import json
import logging
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final, Protocol

from toolfold.catalog.definitions import DefinitionText
from toolfold.errors import StoreError
from toolfold.journal.rows import RunLocation
from toolfold.journal.runsdb import open_for_writing

_log = logging.getLogger(__name__)

_MAX_WAITING_CHARS: Final = 16 * 1024 * 1024


class OfferedTools(Protocol):
    """What tools there were, as far as that is known by the time it is asked for."""

    @property
    def listings(self) -> Iterable[DefinitionText]:
        """Their definitions, a listing for each server."""


@dataclass(frozen=True, slots=True)
class _Long:
    """A text of which the journal keeps no more than the head."""

    place: RunLocation
    key: Callable[[int], int]
    part: str
    text: str


@dataclass(frozen=True, slots=True)
class _Offered:
    place: RunLocation
    offer: OfferedTools
    shown: DefinitionText | None


class LedgerWriter:
    """Counts texts that the journal does not keep whole, and writes which tools a run had.

    Losing that loses tokens that were saved, never a run: trouble is logged, and forgotten.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting: deque[_Long | _Offered] = deque()
        self._settling = Lock()

    def count(self, place: RunLocation, key: Callable[[int], int], part: str, text: str) -> None:
        """Have a long text counted, unless too many wait for that; `key` is as in rows."""
        longs = [len(each.text) for each in tuple(self._waiting) if isinstance(each, _Long)]
        if sum(longs) + len(text) <= _MAX_WAITING_CHARS:
            self._waiting.append(_Long(place, key, part, text))

    def offer(self, place: RunLocation, offer: OfferedTools, shown: DefinitionText | None) -> None:
        """Have it written which tools a run had, and what the model saw of us."""
        self._waiting.append(_Offered(place, offer, shown))

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting

    def settle(self) -> None:
        """Write all that waits. May be called from any thread, while others add to it."""
        with self._settling:
            waiting = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if not waiting:
                return
            try:
                _write(self._path, waiting)
            except (StoreError, sqlite3.Error) as error:
                _log.warning("The ledger in %s misses something: %s", self._path, error)
            except Exception:  # noqa: BLE001  # the journal goes on whatever is in a text
                _log.exception("The ledger in %s misses something.", self._path)


def _write(path: Path, waiting: Iterable[_Long | _Offered]) -> None:
    opened = open_for_writing(path)
    with closing(opened.connection) as connection:
        # Keys mean nothing in another file, which may have taken the place of the first.
        here = [
            each
            for each in waiting
            if each.place.opened and each.place.opened.identity == opened.identity
        ]
        counts = [_counted(each) for each in here if isinstance(each, _Long)]
        known = {row[0] for row in connection.execute("SELECT id FROM listings")}
        offers = [each for each in here if isinstance(each, _Offered)]
        listings = {
            listing.id: listing.text
            for each in offers
            for listing in (*each.offer.listings, *filter(None, [each.shown]))
            if listing.id not in known
        }
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT OR IGNORE INTO tokens VALUES (?, ?, ?)", counts)
        connection.executemany("INSERT OR IGNORE INTO listings VALUES (?, ?)", listings.items())
        connection.executemany("INSERT OR IGNORE INTO offers VALUES (?, ?, ?)", map(_row, offers))
        connection.execute("COMMIT")


def _counted(long: _Long) -> tuple[int, str, int]:
    from toolfold.tokens import count_tokens  # heavy, and few texts are long

    return long.key(long.place.number), long.part, count_tokens(long.text)


def _row(offered: _Offered) -> tuple[int, str, str]:
    ids = json.dumps([listing.id for listing in offered.offer.listings])
    return offered.place.number, ids, offered.shown.id if offered.shown else ""
