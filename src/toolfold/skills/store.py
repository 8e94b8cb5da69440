"""The book of skills: their versions, how they did, and runs to test them by.

It lies beside the journal, not in the folders, which people commit.
"""

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from toolfold.config.config import Config
from toolfold.errors import shown
from toolfold.jsontypes import JsonObject
from toolfold.skills.models import SkillTexts, SkillUsage, Version
from toolfold.storage.migrations import CopiedColumns, DatabaseSchema
from toolfold.storage.tables import SqlTransaction, Tables, open_tables

MAX_RECORDED_BYTES: Final = 256 << 10
_MAX_VERSIONS: Final = 100
_MAX_VERSIONS_IN_ALL: Final = 5_000
_MAX_ERROR_CHARS: Final = 500

_VERSIONS: Final = """
    CREATE TABLE {prefix}versions (
        root TEXT NOT NULL,
        name TEXT NOT NULL,
        number INTEGER NOT NULL,
        saved_at REAL NOT NULL,
        how TEXT NOT NULL,
        digest TEXT NOT NULL,
        manifest TEXT,
        source TEXT,
        PRIMARY KEY (root, name, number)
    )
"""
_USES: Final = """
    CREATE TABLE {prefix}uses (
        root TEXT NOT NULL,
        name TEXT NOT NULL,
        used INTEGER NOT NULL DEFAULT 0,
        succeeded INTEGER NOT NULL DEFAULT 0,
        last_used_at REAL,
        last_error TEXT,
        PRIMARY KEY (root, name)
    )
"""
_RECORDINGS: Final = """
    CREATE TABLE {prefix}recordings (
        root TEXT NOT NULL,
        name TEXT NOT NULL,
        recorded_at REAL NOT NULL,
        digest TEXT NOT NULL,
        content TEXT NOT NULL,
        PRIMARY KEY (root, name)
    )
"""
_NAMES: Final = ("versions", "uses", "recordings")
_CREATE: Final = (_VERSIONS, _USES, _RECORDINGS)

SCHEMA: Final = DatabaseSchema(
    "the book of skills",
    0x746F6C73,
    (
        tuple(each.format(prefix="") for each in _CREATE),
        # As where they share a database with others.
        tuple(f"ALTER TABLE {name} RENAME TO skill_{name}" for name in _NAMES),
    ),
    postgres=(tuple(each.format(prefix="skill_") for each in _CREATE),),
    tables=(
        CopiedColumns(
            "skill_versions", "root, name, number, saved_at, how, digest, manifest, source", 3
        ),
        CopiedColumns("skill_uses", "root, name, used, succeeded, last_used_at, last_error", 2),
        CopiedColumns("skill_recordings", "root, name, recorded_at, digest, content", 2),
    ),
)

_LEAVE_NEWEST: Final = """
    DELETE FROM skill_versions WHERE root = ? AND (name, number) IN (
        SELECT name, number FROM skill_versions WHERE root = ? ORDER BY saved_at, number LIMIT ?
    )
"""

_USED: Final = """
    INSERT INTO skill_uses (root, name, used, succeeded, last_used_at, last_error)
    VALUES (?, ?, 1, ?, ?, ?)
    ON CONFLICT (root, name) DO UPDATE SET
        used = skill_uses.used + 1,
        succeeded = skill_uses.succeeded + excluded.succeeded,
        last_used_at = excluded.last_used_at,
        last_error = coalesce(excluded.last_error, skill_uses.last_error)
"""

_RECORD: Final = """
    INSERT INTO skill_recordings VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (root, name) DO UPDATE SET recorded_at = excluded.recorded_at,
        digest = excluded.digest, content = excluded.content
"""


class SkillStore:
    """What is kept of the skills of all roots. Any thread may use it."""

    def __init__(self, tables: Tables, *, clock: Callable[[], float] = time.time) -> None:
        self._tables = tables
        self._clock = clock

    def close(self) -> None:
        """Let go of the file; it is opened again when it is needed."""
        self._tables.close()

    def note(self, root: str, name: str, texts: SkillTexts | None, *, how: str) -> int:
        """Keep a version unless the newest is the same; return its number.

        None as `texts` says that the skill is gone.
        """
        return self._tables.write(partial(self._note, root, name, texts, how))

    def _note(
        self, root: str, name: str, texts: SkillTexts | None, how: str, tables: SqlTransaction
    ) -> int:
        digest = texts.digest if texts else ""
        newest = tables.execute(
            "SELECT number, digest FROM skill_versions WHERE root = ? AND name = ? "
            "ORDER BY number DESC LIMIT 1",
            (root, name),
        ).fetchone()
        if newest and newest[1] == digest:
            return int(newest[0])
        number = newest[0] + 1 if newest else 1
        tables.execute(
            "INSERT INTO skill_versions VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (root, name, number, self._clock(), how, digest, *(texts or (None, None))),
        )
        tables.execute(
            "DELETE FROM skill_versions WHERE root = ? AND name = ? AND number <= ?",
            (root, name, number - _MAX_VERSIONS),
        )
        [(count,)] = tables.execute(
            "SELECT count(*) FROM skill_versions WHERE root = ?", (root,)
        ).fetchall()
        if count > _MAX_VERSIONS_IN_ALL:
            tables.execute(_LEAVE_NEWEST, (root, root, count - _MAX_VERSIONS_IN_ALL))
        if texts is None:
            tables.execute("DELETE FROM skill_recordings WHERE root = ? AND name = ?", (root, name))
        return int(number)

    def versions(self, root: str, name: str) -> list[Version]:
        """Return what is known of a skill's past, oldest first."""
        rows = self._rows(
            "SELECT number, saved_at, how, manifest, source FROM skill_versions "
            "WHERE root = ? AND name = ? ORDER BY number",
            (root, name),
        )
        return [
            Version(number, at, how, None if source is None else SkillTexts(manifest, source))
            for number, at, how, manifest, source in rows
        ]

    def count(self, root: str, name: str, *, error: str | None) -> None:
        """Count a run that used a skill, and how it ended."""
        told = None if error is None else shown(error, max_chars=_MAX_ERROR_CHARS)
        values = (root, name, int(error is None), self._clock(), told)
        self._tables.write(lambda tables: tables.execute(_USED, values))

    def usage(self, root: str, name: str) -> SkillUsage:
        """Return how a skill has done."""
        rows = self._rows(
            "SELECT used, succeeded, last_used_at, last_error FROM skill_uses "
            "WHERE root = ? AND name = ?",
            (root, name),
        )
        return SkillUsage(*rows[0]) if rows else SkillUsage()

    def record(self, root: str, name: str, *, digest: str, content: JsonObject) -> bool:
        """Keep a run to test a skill by, in place of the last; False if it is too large."""
        text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
        if len(text) > MAX_RECORDED_BYTES:
            return False
        values = (root, name, self._clock(), digest, text)
        self._tables.write(lambda tables: tables.execute(_RECORD, values))
        return True

    def recording(self, root: str, name: str) -> tuple[str, JsonObject] | None:
        """Return the digest of a skill as it was when it was recorded, and what was."""
        rows = self._rows(
            "SELECT digest, content FROM skill_recordings WHERE root = ? AND name = ?", (root, name)
        )
        return (rows[0][0], json.loads(rows[0][1])) if rows else None

    def _rows(self, statement: str, values: tuple[str, ...]) -> list[Any]:
        return self._tables.read(lambda tables: tables.execute(statement, values).fetchall())


def skill_store_of(config: Config) -> SkillStore:
    """Return the book of a configuration, which is opened when it is needed."""
    path, url = config.directories.data / "skills.db", config.settings.database_url
    return SkillStore(open_tables(path, SCHEMA, url, stays_open=True))
