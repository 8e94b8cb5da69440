"""Find notes by words and meaning, with arrays in memory that follow the file."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from toolfold.memory.ranking.index import Index, Mask, Point, as_matches
from toolfold.memory.ranking.rank import telling_words
from toolfold.memory.sql.connection import SqlConnection, condition
from toolfold.memory.sql.store import VectorState
from toolfold.memory.sqlite.steps import vocabulary_table
from toolfold.memory.store import Filter, Matches, Query
from toolfold.storage.database import Tokenizer


def occurrences(
    connection: SqlConnection, namespace: int, terms: Sequence[str]
) -> dict[str, NDArray[np.int64]]:
    """Return for each term the notes that have it, ascending, as often as they have it.

    Scores made from this are those of FTS5's own `bm25`, at a tenth of its price: that looks up the
    length of each note in a table.
    """
    # One long text is several times quicker than a row for each occurrence.
    statement = f"SELECT group_concat(doc) FROM {vocabulary_table(namespace)} WHERE term = ?"
    found = {}
    for term in terms:
        [numbers] = connection.execute(statement, (term,)).fetchone()
        found[term] = np.sort(np.fromstring(numbers or "", np.int64, sep=","))
    return found


# Some 500 bytes each. When there are more, the namespaces that were not searched for longest go.
_MAX_POINTS: Final = 400_000
_POINTS_AT_ONCE: Final = 4_096

_COLUMNS: Final = "number, is_live, thread, position, created, quality, length, vector"


@dataclass(slots=True)
class _Held:
    index: Index
    embedder: str | None
    lock: Lock = field(default_factory=Lock)


class Matcher:
    """Holds what is known of the namespaces that are searched. Any thread may use it."""

    def __init__(self) -> None:
        self._tokenizer = Tokenizer()
        self._lock = Lock()
        self._held: dict[int, _Held] = {}

    def is_loaded(self, namespace: int) -> bool:
        """Whether a search by meaning would find the vectors in memory."""
        return namespace in self._held

    def load(self, connection: SqlConnection, namespace: int, state: VectorState) -> None:
        """Read all points of a namespace. Until this returns, it counts as not loaded."""
        index = Index(state.dimensions)
        rows = connection.execute(
            f"SELECT {_COLUMNS} FROM points INDEXED BY points_by_namespace "
            "WHERE namespace = ? ORDER BY number",
            (namespace,),
        )
        points = iter(rows)
        while some := list(islice(points, _POINTS_AT_ONCE)):
            index.apply([Point(*point) for point in some])
        index.changed = state.changed
        with self._lock:
            self._held[namespace] = _Held(index, state.embedder)
            self._make_room()

    def match(
        self,
        connection: SqlConnection,
        namespace: int,
        state: VectorState,
        query: Query,
        *,
        depth: int,
    ) -> Matches | None:
        """Return what matches; None without a vector, or if the namespace is not in memory."""
        held = self._use(namespace, state.embedder)
        if held is None or query.vector is None:
            return None
        vector = np.array(query.vector(), np.float32)
        terms = self._tokenizer.terms(telling_words(query.text))
        index = held.index
        with held.lock:
            _follow(connection, namespace, index, state.changed)
            known = index.known_terms(terms)
        found = occurrences(connection, namespace, [term for term in terms if term not in known])
        with held.lock:
            # Others may have gone ahead of what this transaction sees.
            is_current = index.changed == state.changed
            for term, numbers in found.items():
                known[term] = index.learn_term(term, numbers, is_current=is_current)
            among = _among(connection, namespace, index, query.wanted)
            scores = index.score_words(known.values())
            return as_matches(index, index.match(scores, vector, among, depth=depth))

    def _use(self, namespace: int, embedder: str | None) -> _Held | None:
        with self._lock:
            held = self._held.pop(namespace, None)
            if held is None or held.embedder != embedder:
                return None
            self._held[namespace] = held  # now the one that was used last
            return held

    def _make_room(self) -> None:
        while len(self._held) > 1 and sum(len(each.index) for each in self._held.values()) > (
            _MAX_POINTS
        ):
            del self._held[next(iter(self._held))]


def _follow(connection: SqlConnection, namespace: int, index: Index, changed: int) -> None:
    """Take over what was written since, by whichever process."""
    if index.changed >= changed:
        return
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM points INDEXED BY points_by_change "
        "WHERE namespace = ? AND changed > ?",
        (namespace, index.changed),
    ).fetchall()
    index.apply(sorted(Point(*row) for row in rows))
    index.changed = changed


def _among(connection: SqlConnection, namespace: int, index: Index, wanted: Filter) -> Mask:
    """Return which rows pass a filter."""
    among = np.ones(len(index), np.bool_)
    if wanted.after is not None:
        among &= index.points["created"] >= wanted.after
    if wanted.before is not None:
        among &= index.points["created"] < wanted.before
    if wanted.tags or wanted.type is not None:
        listed = np.zeros(len(index), np.bool_)
        meets = condition(namespace, wanted)
        [numbers] = connection.execute(
            f"SELECT group_concat(number) FROM notes WHERE {meets.sql}", meets.values
        ).fetchone()
        listed[index.rows_of(np.fromstring(numbers or "", np.int64, sep=","))] = True
        among &= listed
    return among
