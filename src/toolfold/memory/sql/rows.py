"""Find and read notes in the rows of memory's tables, inside of a transaction."""

import json
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from toolfold.errors import NotFound
from toolfold.memory.models import Link, Note, preview, shown
from toolfold.memory.sql.connection import SqlConnection
from toolfold.memory.store import Superseded

# Keeps statements well below the number of variables that SQLite takes.
_NUMBERS_AT_ONCE: Final = 500

_SELECT: Final = """
    SELECT notes.number, namespaces.name, notes.hash, notes.version, notes.type, notes.source,
        threads.name, notes.position, notes.quality, notes.created, notes.updated, notes.deleted,
        notes.tags, notes.metadata, notes.content
    FROM notes JOIN namespaces ON namespaces.id = notes.namespace
        LEFT JOIN threads ON threads.id = notes.thread
"""
_SELECT_VERSIONS: Final = """
    SELECT versions.number, namespaces.name, versions.hash, versions.version, versions.type,
        versions.source, threads.name, notes.position, versions.quality, versions.created,
        versions.updated, NULL, versions.tags, versions.metadata, versions.content
    FROM versions JOIN notes USING (number) JOIN namespaces ON namespaces.id = notes.namespace
        LEFT JOIN threads ON threads.id = notes.thread
    WHERE versions.number = ? ORDER BY versions.version
"""
_ANY_SUPERSEDES: Final = "SELECT 1 FROM links WHERE kind = 'supersedes' LIMIT 1"
_SUPERSEDED: Final = """
    SELECT older.number, newer.number, newer.hash, newer.created, older.created,
        newer.deleted IS NOT NULL
    FROM notes AS older
        JOIN links ON links.kind = 'supersedes' AND links.hash = older.hash
        JOIN notes AS newer ON newer.number = links.number AND newer.namespace = older.namespace
    WHERE older.number IN ({}) ORDER BY newer.deleted IS NOT NULL DESC, newer.created
"""
_COLUMNS: Final = (
    *("number", "namespace", "hash", "version", "type", "source", "thread", "position", "quality"),
    *("created", "updated", "deleted", "tags", "metadata", "content"),
)


def namespace_id(connection: SqlConnection, name: str) -> int | None:
    """Return the number of a namespace, None if nothing was ever kept in it."""
    found = connection.execute("SELECT id FROM namespaces WHERE name = ?", (name,)).fetchone()
    return None if found is None else found[0]


def make_namespace(connection: SqlConnection, name: str) -> int:
    """Make a namespace that is not there yet, with its index of words; return its number."""
    [made] = connection.execute(
        "INSERT INTO namespaces (name) VALUES (?) RETURNING id", (name,)
    ).fetchone()
    number: int = made
    connection.words.begin(number)
    return number


def read_note(connection: SqlConnection, number: int) -> Note:
    """Return a note, deleted or not.

    Raises:
        NotFound: It is purged.
    """
    row = connection.execute(f"{_SELECT} WHERE notes.number = ?", (number,)).fetchone()
    if row is None:
        raise NotFound("The note has just been purged.")
    return _note(connection, row)


def read_live(connection: SqlConnection, namespace: str, numbers: Sequence[int]) -> dict[int, Note]:
    """Return the notes of a namespace that are not deleted, by number."""
    found = {}
    for start in range(0, len(numbers), _NUMBERS_AT_ONCE):
        some = numbers[start : start + _NUMBERS_AT_ONCE]
        rows = connection.execute(
            # The plus keeps SQLite from going through all notes of the namespace instead.
            f"{_SELECT} WHERE notes.number IN ({', '.join('?' * len(some))}) "
            "AND notes.deleted IS NULL AND +notes.namespace = ?",
            (*some, namespace_id(connection, namespace)),
        ).fetchall()
        found.update({row[0]: _note(connection, row) for row in rows})
    return found


def read_versions(connection: SqlConnection, number: int) -> list[Note]:
    """Return what a note was before, oldest first."""
    rows = connection.execute(_SELECT_VERSIONS, (number,)).fetchall()
    return [_note(connection, row) for row in rows]


def read_superseded(connection: SqlConnection, numbers: Sequence[int]) -> dict[int, Superseded]:
    """Return what takes the place of those among these notes that no longer hold.

    Where that is deleted, it is what takes the place of that in turn.
    """
    if connection.execute(_ANY_SUPERSEDES).fetchone() is None:
        return {}
    found: dict[int, Superseded] = {}
    for start in range(0, len(numbers), _NUMBERS_AT_ONCE):
        some = numbers[start : start + _NUMBERS_AT_ONCE]
        rows = connection.execute(_SUPERSEDED.format(", ".join("?" * len(some))), some).fetchall()
        for number, newer, name, created, own, is_deleted in rows:
            by = _heir(connection, newer) if is_deleted else Superseded(newer, name, created)
            if by is not None and by.by != number:
                found[number] = by._replace(until=max(by.until, own))
    return found


def _heir(connection: SqlConnection, number: int) -> Superseded | None:
    """Return what takes the place of a deleted note."""
    seen = set()
    while number not in seen:
        seen.add(number)
        row = connection.execute(_SUPERSEDED.format("?"), (number,)).fetchone()
        if row is None:
            return None
        _, number, name, created, _, is_deleted = row
        if not is_deleted:
            return Superseded(number, name, created)
    return None


def _note(connection: SqlConnection, row: tuple[Any, ...]) -> Note:
    values = dict(zip(_COLUMNS, row, strict=True))
    number = values.pop("number")
    links = connection.execute(
        "SELECT kind, hash FROM links WHERE number = ? ORDER BY kind, hash", (number,)
    )
    values["tags"] = tuple(json.loads(values["tags"]))
    values["metadata"] = json.loads(values["metadata"])
    if by := read_superseded(connection, [number]).get(number):
        values |= {"until": by.until, "superseded_by": by.hash}
    return Note(links=tuple(Link(kind=kind, hash=name) for kind, name in links), **values)


_State: TypeAlias = Literal["live", "archived", "deleted", "kept"]

AFTER_HEX: Final = "g"
"""What no hash has in the place of a digit, and what sorts after all that do."""

_CANDIDATES: Final = 5
_CANDIDATE_CHARS: Final = 16
_PREVIEW_CHARS: Final = 60

_CONDITIONS: Final[dict[_State, str]] = {
    "live": "deleted IS NULL",
    "archived": "archived IS NOT NULL",
    "deleted": "deleted IS NOT NULL",
    "kept": "TRUE",
}


class FoundNote(NamedTuple):
    """A note by its number, and its whole hash."""

    number: int
    hash: str


def find_live(connection: SqlConnection, namespace: int | None, prefix: str) -> FoundNote:
    """Return the note that a prefix means.

    Raises:
        NotFound: There is none, it is deleted, or there are several, which the message then names.
    """
    found = seek(connection, namespace, prefix, "live")
    if found is None:
        if seek(connection, namespace, prefix, "deleted"):
            raise NotFound(f"The note {prefix} is deleted. Bring it back with restore({prefix!r}).")
        raise NotFound(f"No note has a hash that begins with {prefix}. Search for it instead.")
    return found


def find_readable(connection: SqlConnection, namespace: int | None, prefix: str) -> FoundNote:
    """Return the note that a prefix means, also one that is archived.

    Raises:
        NotFound: As `find_live`.
    """
    found = seek(connection, namespace, prefix, "live")
    found = found or seek(connection, namespace, prefix, "archived")
    return found or find_live(connection, namespace, prefix)


def find_kept(connection: SqlConnection, namespace: int | None, prefix: str) -> FoundNote:
    """Return the note that a prefix means, deleted or not.

    Raises:
        NotFound: There is none, or there are several.
    """
    found = seek(connection, namespace, prefix, "kept")
    if found is None:
        raise NotFound(f"No note has a hash that begins with {prefix}, not even a deleted one.")
    return found


def seek(
    connection: SqlConnection, namespace: int | None, prefix: str, state: _State
) -> FoundNote | None:
    """Return the note in that state which a prefix means, or None.

    Hashes that notes have go before those that they had.

    Raises:
        NotFound: There are several.
    """
    if namespace is None:
        return None
    span = (namespace, prefix, prefix + AFTER_HEX, _CANDIDATES)
    rows = connection.execute(
        "SELECT number, hash, content FROM notes WHERE namespace = ? AND hash >= ? AND hash < ? "
        f"AND {_CONDITIONS[state]} ORDER BY hash LIMIT ?",
        span,
    ).fetchall()
    if not rows:
        rows = connection.execute(
            "SELECT DISTINCT notes.number, notes.hash, notes.content "
            "FROM versions JOIN notes USING (number) WHERE versions.namespace = ? "
            f"AND versions.hash >= ? AND versions.hash < ? AND {_CONDITIONS[state]} "
            "ORDER BY notes.hash LIMIT ?",
            span,
        ).fetchall()
    if len(rows) > 1:
        raise _ambiguous(prefix, rows)
    return FoundNote(*rows[0][:2]) if rows else None


def _ambiguous(prefix: str, rows: list[tuple[int, str, str]]) -> NotFound:
    candidates = "; ".join(
        f"{name[:_CANDIDATE_CHARS]} ({preview(content)[:_PREVIEW_CHARS]})"
        for _, name, content in rows
    )
    several = f"{len(rows)} or more" if len(rows) == _CANDIDATES else f"{len(rows)}"
    return NotFound(
        f"The hash {shown(prefix)} could mean {several} notes. Give more of it: {candidates}."
    )
