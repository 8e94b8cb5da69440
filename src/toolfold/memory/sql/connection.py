"""What a database of memory offers: transactions, and the indexes that each makes its own way.

Statements are written once, in the SQL that SQLite and PostgreSQL have in common, with `?` for
values. What they have not in common is a method here.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

from toolfold.memory.graph.encoding import MatchField
from toolfold.memory.graph.models import has_halves, writable
from toolfold.memory.store import EVERYTHING, Filter
from toolfold.storage.tables import SqlStatements


class SqlCondition(NamedTuple):
    """What stands after WHERE, and its values."""

    sql: str
    values: tuple[object, ...]


def condition(namespace: int, wanted: Filter, *, are_many: bool = False) -> SqlCondition:
    """Return the condition that exactly the live notes of a namespace meet which pass a filter.

    `are_many` says that many do, so that the newest of them are soon found among all.
    """
    # Few notes have a tag: the plus keeps SQLite from going through all of the namespace instead.
    plus = "+" if wanted.tags and not are_many else ""
    parts = [f"{plus}notes.namespace = ?", "notes.deleted IS NULL"]
    values: list[object] = [namespace]
    for sql, value in (
        ("notes.type = ?", wanted.type),
        ("notes.created >= ?", wanted.after),
        ("notes.created < ?", wanted.before),
    ):
        if value is not None:
            parts.append(sql)
            values.append(value)
    if wanted.tags:
        tagged, tags = _tagged(namespace, wanted)
        parts.append(f"notes.number IN ({tagged})")
        values.extend(tags)
    return SqlCondition(" AND ".join(parts), tuple(values))


def counting(namespace: int, wanted: Filter) -> SqlCondition:
    """Return the statement that counts the live notes of a namespace which pass a filter."""
    if wanted.tags and replace(wanted, tags=(), tag_match=EVERYTHING.tag_match) == EVERYTHING:
        tagged, values = _tagged(namespace, wanted)  # which has only live notes
        return SqlCondition(
            f"SELECT count(*) FROM (SELECT DISTINCT number FROM ({tagged}) AS tagged) AS found",
            values,
        )
    meets = condition(namespace, wanted)
    return SqlCondition(f"SELECT count(*) FROM notes WHERE {meets.sql}", meets.values)


def _tagged(namespace: int, wanted: Filter) -> SqlCondition:
    tags = tuple(dict.fromkeys(wanted.tags))
    marks = ", ".join("?" * len(tags))
    sql = f"SELECT number FROM tags WHERE namespace = ? AND tag IN ({marks})"
    if wanted.tag_match == "all":
        return SqlCondition(
            f"{sql} GROUP BY number HAVING count(*) = ?", (namespace, *tags, len(tags))
        )
    return SqlCondition(sql, (namespace, *tags))


_T = TypeVar("_T")

Stored: TypeAlias = str | bytes
"""A name or type of a graph as it is in the database."""

PartTexts: TypeAlias = tuple[str, str, Sequence[str]]
"""Name, type and observations of a part of an entity."""


class NoteWordIndex(Protocol):
    """Finds notes by words. Holds the live notes of each namespace, and nothing else."""

    def begin(self, namespace: int) -> None:
        """Make the index of a namespace that is new."""

    def add(self, namespace: int, number: int, content: str) -> int:
        """Have a note found, whose row is there; return how many words it has."""

    def remove(self, namespace: int, number: int, content: str) -> None:
        """Have it found no more. It must be told as it was added."""

    def erase(self, namespace: int) -> None:
        """Leave nothing of what was removed."""


class GraphIndex(Protocol):
    """Finds parts of entities by words, and by any three characters that stand in a row.

    Its conditions are over the table `graph_parts`, and hold for parts of that graph alone.
    """

    def begin(self, graph: int) -> None:
        """Make the index of a graph that is new."""

    def add(self, graph: int, number: int, texts: PartTexts) -> None:
        """Have a part found, whose row is there."""

    def remove(self, graph: int, number: int, texts: PartTexts) -> None:
        """Have it found no more; it must be told as it was added, and its row be there still."""

    def containing(self, graph: int, query: str) -> SqlCondition:
        """Return what parts meet that may contain a text; all that do are among them."""

    def with_word(self, graph: int, word: str, place: MatchField) -> SqlCondition:
        """Return what the parts meet that have a word in one place."""


class SqlConnection(SqlStatements, Protocol):
    """One transaction of memory's tables."""

    @property
    def words(self) -> NoteWordIndex:
        """The words of notes."""

    @property
    def parts(self) -> GraphIndex:
        """What entities say."""

    def written(self) -> int:
        """Return a number that grows with every row that this connection writes."""

    def next_change(self) -> int:
        """Return the number of this transaction among all that write, where anybody asks for it."""

    def next_part(self) -> int:
        """Return the number of the part of an entity that is added next."""

    def stored(self, text: str) -> Stored:
        """Return a name as the database holds it: the same text always in the same form."""

    def clear(self) -> None:
        """Empty all tables, for what is copied into them next."""

    def finish_copy(self) -> None:
        """Have numbers go on after the highest, and make what is derived from vectors."""


class SqlDatabase(Protocol):
    """The tables of memory, for tasks: all that waits for them happens in worker threads."""

    async def read(self, work: Callable[[SqlConnection], _T]) -> _T:
        """Do `work` on the database as it is at one moment.

        Raises:
            StoreError: It does not answer.
        """

    async def write(self, work: Callable[[SqlConnection], _T], namespace: str | None = None) -> _T:
        """Do `work` wholly or not at all. What it wrote is kept when this returns.

        Nobody else writes to `namespace` meanwhile; with None, to none at all. `work` may be done
        again from the start where the database asks for it, and what counts is the last time.

        Raises:
            StoreError: The database does not take it; nothing has changed.
        """

    async def erase(self) -> None:
        """Leave nothing of purged rows in the files, as far as the database can.

        Raises:
            StoreError: It cannot now.
        """


GRAM: Final = 3

_MAX_GRAMS: Final = 24


def index_words(texts: PartTexts) -> tuple[str, str, str]:
    """Return the texts of a part in which words are looked for: name, type, observations."""
    name, kind, observations = texts
    return writable(name), writable(kind), writable("\n".join(observations))


def index_text(texts: PartTexts) -> str:
    """Return the text of a part of which all grams are kept."""
    name, kind, observations = texts
    # Each by itself: what a sigma becomes depends on what stands beside it.
    return writable("\n".join(text.lower() for text in (name, kind, *observations)))


def query_grams(query: str) -> list[str]:
    """Return grams that every part has which contains `query`.

    None if grams cannot tell: of too short a query, and of one with halves of surrogate pairs,
    which JavaScript finds in whole ones.
    """
    needle = query.lower()
    if len(needle) < GRAM or has_halves(needle):
        return []
    needle = writable(needle)
    starts = range(0, len(needle) - GRAM + 1, 1 + (len(needle) - GRAM) // _MAX_GRAMS)
    return list(dict.fromkeys(needle[start : start + GRAM] for start in starts))
