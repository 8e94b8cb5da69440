"""Find notes by the beginnings of their hashes, inside of a transaction."""

import sqlite3
from typing import Final, Literal, NamedTuple, TypeAlias

from toolfold.errors import NotFound
from toolfold.memory.hashes import shown
from toolfold.memory.models import preview

_State: TypeAlias = Literal["live", "archived", "deleted", "kept"]

_CANDIDATES: Final = 5
_CANDIDATE_CHARS: Final = 16
_PREVIEW_CHARS: Final = 60
_AFTER_HEX: Final = "g"

_CONDITIONS: Final[dict[_State, str]] = {
    "live": "deleted IS NULL",
    "archived": "archived IS NOT NULL",
    "deleted": "deleted IS NOT NULL",
    "kept": "1",
}


class FoundNote(NamedTuple):
    """A note by its number, and its whole hash."""

    number: int
    hash: str


def find_live(connection: sqlite3.Connection, namespace: int | None, prefix: str) -> FoundNote:
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


def find_readable(connection: sqlite3.Connection, namespace: int | None, prefix: str) -> FoundNote:
    """Return the note that a prefix means, also one that is archived.

    Raises:
        NotFound: As `find_live`.
    """
    found = seek(connection, namespace, prefix, "live")
    found = found or seek(connection, namespace, prefix, "archived")
    return found or find_live(connection, namespace, prefix)


def find_kept(connection: sqlite3.Connection, namespace: int | None, prefix: str) -> FoundNote:
    """Return the note that a prefix means, deleted or not.

    Raises:
        NotFound: There is none, or there are several.
    """
    found = seek(connection, namespace, prefix, "kept")
    if found is None:
        raise NotFound(f"No note has a hash that begins with {prefix}, not even a deleted one.")
    return found


def seek(
    connection: sqlite3.Connection, namespace: int | None, prefix: str, state: _State
) -> FoundNote | None:
    """Return the note in that state which a prefix means, or None.

    Hashes that notes have go before those that they had.

    Raises:
        NotFound: There are several.
    """
    if namespace is None:
        return None
    span = (namespace, prefix, prefix + _AFTER_HEX, _CANDIDATES)
    rows = connection.execute(
        "SELECT number, hash, content FROM notes WHERE namespace = ? AND hash >= ? AND hash < ? "
        f"AND {_CONDITIONS[state]} LIMIT ?",
        span,
    ).fetchall()
    if not rows:
        rows = connection.execute(
            "SELECT DISTINCT notes.number, notes.hash, notes.content "
            "FROM versions JOIN notes USING (number) WHERE versions.namespace = ? "
            f"AND versions.hash >= ? AND versions.hash < ? AND {_CONDITIONS[state]} LIMIT ?",
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
