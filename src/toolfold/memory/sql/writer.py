"""Write notes into memory's tables, inside of a transaction."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from toolfold.errors import BadInput
from toolfold.jsontypes import JsonObject
from toolfold.memory.inputs import clean_metadata
from toolfold.memory.models import Draft, Link, LinkKind, Note, note_hash, shown
from toolfold.memory.sql.connection import SqlConnection
from toolfold.memory.sql.rows import FoundNote, find_live, make_namespace, namespace_id, read_note
from toolfold.memory.store import NoteChange

_INSERT: Final = """
    INSERT INTO notes (namespace, hash, version, type, source, thread, position, quality, created,
        updated, tags, metadata, content)
    VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number
"""
_KEEP_VERSION: Final = """
    INSERT INTO versions SELECT number, version, namespace, hash, type, source, quality, created,
        updated, tags, metadata, content
    FROM notes WHERE number = ?
"""
_REWRITE: Final = """
    UPDATE notes SET hash = ?, version = version + 1, type = ?, source = ?, quality = ?,
        created = ?, updated = ?, deleted = NULL, archived = NULL, tags = ?, metadata = ?,
        content = ?
    WHERE number = ?
"""
_TAKE_BACK: Final = """
    UPDATE notes SET (hash, version, type, source, quality, created, updated, tags, metadata,
        content) = (SELECT hash, version, type, source, quality, created, updated, tags, metadata,
        content FROM versions WHERE versions.number = notes.number
        ORDER BY versions.version DESC LIMIT 1)
    WHERE number = ?
"""
_FORGET_VERSION: Final = """
    DELETE FROM versions WHERE number = ? AND version = (SELECT version FROM notes WHERE number = ?)
"""
_REPLACE: Final = """
    UPDATE notes SET hash = ?, version = ?, type = ?, source = ?, quality = ?, created = ?,
        updated = ?, deleted = ?, archived = NULL, tags = ?, metadata = ?, content = ?
    WHERE number = ?
"""
_LINK: Final = "INSERT INTO links VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_FOLLOW: Final = """
    UPDATE links SET hash = ? WHERE kind = 'supersedes' AND hash = ?
        AND number IN (SELECT number FROM notes WHERE namespace = ?)
        AND NOT EXISTS (SELECT 1 FROM links AS other WHERE other.number = links.number
            AND other.kind = links.kind AND other.hash = ?)
"""
_POINT: Final = """
    INSERT INTO points (number, namespace, changed, is_live, thread, position, created, quality,
        length)
    SELECT number, namespace, ?, 1, thread, position, created, quality, ?
    FROM notes WHERE number = ?
    ON CONFLICT (number) DO UPDATE SET changed = excluded.changed, is_live = 1,
        created = excluded.created, quality = excluded.quality, length = excluded.length
"""


class NoteWriter:
    """Writes notes of one namespace within one transaction."""

    def __init__(self, connection: SqlConnection, name: str, *, now: float) -> None:
        self._connection = connection
        self._now = now
        found = namespace_id(connection, name)
        self.namespace = make_namespace(connection, name) if found is None else found
        self._changed = connection.next_change()

    def add(self, draft: Draft) -> int:
        """Keep a note and return its number; see `Store.add`."""
        row = self._connection.execute(
            "SELECT number, deleted FROM notes WHERE namespace = ? AND hash = ?",
            (self.namespace, draft.hash),
        ).fetchone()
        if row is None:
            number = self._insert(draft)
        else:
            number = row[0]
            self._add_again(number, draft, is_deleted=row[1] is not None)
        if any(link.kind == "supersedes" for link in draft.links):
            self.reinstate(draft.hash, keep="associated")  # whoever says so says that it holds
        self._link(number, draft.links)
        return number

    def take_over(self, note: Note) -> int:
        """Keep a note that is new here as it is elsewhere, deleted or not; return its number."""
        number = self._insert(note)
        self._connection.execute(
            "UPDATE notes SET version = ?, updated = ?, deleted = ? WHERE number = ?",
            (note.version, note.updated, note.deleted, number),
        )
        if note.deleted is not None:
            self._hide(number, note)
        return number

    def free_hash(self, number: int) -> None:
        """Have a note give up its hash, so that another one can have it; `replace` is to follow."""
        self._connection.execute(
            "UPDATE notes SET hash = ? WHERE number = ?", (f"freed {number}", number)
        )

    def replace(self, number: int, note: Note) -> None:
        """Have a note be what it is elsewhere, deleted or not; its versions stay as they are."""
        before = read_note(self._connection, number)
        if before.deleted is None:
            self._hide(number, before)
        self._connection.execute(
            _REPLACE,
            (
                *(note.hash, note.version, note.type, note.source, note.quality, note.created),
                *(note.updated, note.deleted, _dumped(note.tags), _dumped(note.metadata)),
                *(note.content, number),
            ),
        )
        if note.deleted is None:
            self._show(number, note)
        if note.content != before.content:
            self._connection.execute("UPDATE points SET vector = NULL WHERE number = ?", (number,))

    def absorb(self, number: int) -> None:
        """Take out a note that has become part of another one, which has its versions."""
        self._erase(number, read_note(self._connection, number))

    def update(self, number: int, change: NoteChange) -> None:
        """Change a note, and keep how it was; see `Store.update`."""
        before = read_note(self._connection, number)
        given = {
            name: value
            for name in ("content", "tags", "type", "metadata", "source", "quality")
            if (value := getattr(change, name)) is not None
        }
        if change.metadata is not None:
            given["metadata"] = _merged(before.metadata, change.metadata)
        after = replace(before, **given)
        after = replace(after, hash=_hash_of(after))
        if after != before:
            self._check_unique(after, number)
            self._rewrite(number, before, after)

    def delete(self, number: int) -> None:
        """Take a note out of sight; one that is archived, out of reach as well."""
        note = read_note(self._connection, number)
        self._connection.execute(
            "UPDATE notes SET deleted = ?, archived = NULL WHERE number = ?", (self._now, number)
        )
        if note.deleted is None:
            self._hide(number, note)

    def archive(self, number: int) -> None:
        """Take a note out of sight, but not out of reach of those who know its hash."""
        self.delete(number)
        self._connection.execute("UPDATE notes SET archived = deleted WHERE number = ?", (number,))

    def restore(self, number: int) -> None:
        """Bring a deleted note back into sight."""
        self._connection.execute(
            "UPDATE notes SET deleted = NULL, archived = NULL WHERE number = ?", (number,)
        )
        self._show(number, read_note(self._connection, number))

    def supersede(self, number: int, other: FoundNote) -> None:
        """Have a note take the place of another, which no longer holds."""
        self._connection.execute(_LINK, (number, "supersedes", other.hash))

    def reinstate(self, name: str, *, keep: LinkKind = "distinct") -> bool:
        """Have a note hold that was superseded; tell whether it was.

        Whatever superseded it is linked to it in another way from then on.
        """
        newer = self._connection.execute(
            "SELECT links.number FROM links JOIN notes USING (number) "
            "WHERE kind = 'supersedes' AND links.hash = ? AND namespace = ?",
            (name, self.namespace),
        ).fetchall()
        for (each,) in newer:
            self._connection.execute(
                "DELETE FROM links WHERE number = ? AND kind = 'supersedes' AND hash = ?",
                (each, name),
            )
            self._connection.execute(_LINK, (each, keep, name))
        return bool(newer)

    def take_back(self, number: int) -> None:
        """Have the last change of what a note is never have been made. What it says is the same."""
        note = read_note(self._connection, number)
        if note.deleted is None:
            self._hide(number, note)
        self._connection.execute(_TAKE_BACK, (number,))
        self._connection.execute(_FORGET_VERSION, (number, number))
        if note.deleted is None:
            self._show(number, read_note(self._connection, number))

    def purge(self, numbers: Sequence[int]) -> None:
        """Erase notes from all tables; only their numbers stay, for others to learn of it."""
        for number in numbers:
            self._purge(number)
        if numbers:
            self._connection.words.erase(self.namespace)

    def _insert(self, draft: Draft) -> int:
        [made] = self._connection.execute(
            _INSERT,
            (
                *(self.namespace, draft.hash, draft.type, draft.source, self._thread(draft.thread)),
                *(draft.position, draft.quality, draft.created, self._now),
                *(_dumped(draft.tags), _dumped(draft.metadata), draft.content),
            ),
        ).fetchone()
        number: int = made
        self._show(number, draft)
        return number

    def _add_again(self, number: int, draft: Draft, *, is_deleted: bool) -> None:
        before = read_note(self._connection, number)
        if is_deleted:
            after = replace(
                before,
                **{name: getattr(draft, name) for name in ("type", "tags", "metadata", "source")},
                quality=draft.quality,
                created=draft.created,
            )
        else:
            after = replace(before, tags=tuple(dict.fromkeys((*before.tags, *draft.tags))))
            if before.until is not None and draft.created > before.until:  # so it is again
                self.reinstate(before.hash, keep="associated")
                after = replace(after, created=draft.created)
        if is_deleted or after != before:
            self._rewrite(number, before, after)

    def _rewrite(self, number: int, before: Note, after: Note) -> None:
        if before.deleted is None:
            self._hide(number, before)
        self._connection.execute(_KEEP_VERSION, (number,))
        self._connection.execute(
            _REWRITE,
            (
                *(after.hash, after.type, after.source, after.quality, after.created, self._now),
                *(_dumped(after.tags), _dumped(after.metadata), after.content, number),
            ),
        )
        self._show(number, after)
        if after.hash != before.hash:  # what supersedes it still does
            values = (after.hash, before.hash, self.namespace, after.hash)
            self._connection.execute(_FOLLOW, values)
        if after.content != before.content:
            self._connection.execute("UPDATE points SET vector = NULL WHERE number = ?", (number,))

    def _show(self, number: int, note: Draft) -> None:
        """Have a note found: by words, by tags, and by whoever holds points in memory."""
        length = self._connection.words.add(self.namespace, number, note.content)
        self._connection.executemany(
            "INSERT INTO tags VALUES (?, ?, ?)",
            [(self.namespace, tag, number) for tag in note.tags],
        )
        self._connection.execute(_POINT, (self._changed, length, number))
        self._count(1)

    def _hide(self, number: int, note: Note) -> None:
        self._connection.words.remove(self.namespace, number, note.content)
        self._connection.executemany(
            "DELETE FROM tags WHERE namespace = ? AND tag = ? AND number = ?",
            [(self.namespace, tag, number) for tag in note.tags],
        )
        self._connection.execute(
            "UPDATE points SET is_live = 0, changed = ? WHERE number = ?", (self._changed, number)
        )
        self._count(-1)

    def _count(self, step: int) -> None:
        self._connection.execute(
            "UPDATE namespaces SET notes = notes + ? WHERE id = ?", (step, self.namespace)
        )

    def _thread(self, name: str | None) -> int | None:
        if name is None:
            return None
        key = (self.namespace, name)
        self._connection.execute(
            "INSERT INTO threads (namespace, name) VALUES (?, ?) ON CONFLICT DO NOTHING", key
        )
        [number] = self._connection.execute(
            "SELECT id FROM threads WHERE namespace = ? AND name = ?", key
        ).fetchone()
        found: int = number
        return found

    def _link(self, number: int, links: Iterable[Link]) -> None:
        for link in links:
            target, full = find_live(self._connection, self.namespace, link.hash)
            if target == number:
                continue
            self._connection.execute(_LINK, (number, link.kind, full))

    def _check_unique(self, note: Note, number: int) -> None:
        other = self._connection.execute(
            "SELECT deleted FROM notes WHERE namespace = ? AND hash = ? AND number != ?",
            (self.namespace, note.hash, number),
        ).fetchone()
        if other is not None:
            name = shown(note.hash)
            remedy = "Delete one of the two" if other[0] is None else "Purge it, or restore it"
            state = "Another note" if other[0] is None else "A deleted note"
            raise BadInput(f"{state}, {name}, has exactly this content already. {remedy}.")

    def _purge(self, number: int) -> None:
        note = read_note(self._connection, number)
        hashes = [note.hash, *self._version_hashes(number)]
        for name in hashes:
            self._connection.execute(
                "DELETE FROM links WHERE hash = ? AND number IN "
                "(SELECT number FROM notes WHERE namespace = ?)",
                (name, self.namespace),
            )
        self._erase(number, note)

    def _erase(self, number: int, note: Note) -> None:
        if note.deleted is None:
            self._hide(number, note)
        self._connection.execute("DELETE FROM consolidation_changes WHERE other = ?", (number,))
        for table in ("links", "versions", "uses", "consolidation_changes", "notes"):
            self._connection.execute(f"DELETE FROM {table} WHERE number = ?", (number,))
        self._connection.execute(
            "UPDATE points SET is_live = 0, changed = ?, thread = NULL, position = NULL, "
            "created = 0, quality = 0, length = 0, vector = ? WHERE number = ?",
            (self._changed, b"", number),
        )
        if note.thread is not None:
            self._connection.execute(
                "DELETE FROM threads WHERE namespace = ? AND name = ? AND NOT EXISTS "
                "(SELECT 1 FROM notes WHERE thread = threads.id)",
                (self.namespace, note.thread),
            )

    def _version_hashes(self, number: int) -> list[str]:
        rows = self._connection.execute("SELECT hash FROM versions WHERE number = ?", (number,))
        return [name for (name,) in rows]


def _hash_of(note: Note) -> str:
    return note_hash(note.content, thread=note.thread, position=note.position)


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _merged(before: JsonObject, change: JsonObject) -> JsonObject:
    merged = {key: value for key, value in (before | change).items() if value is not None}
    return clean_metadata(merged)  # together they may be too much
