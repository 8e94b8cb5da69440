"""skills.db: versions of skills, how they did, and runs to test them by.

It lies beside the journal, not in the folders, which people commit.
"""

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from toolfold.config.faults import shown
from toolfold.errors import StoreError
from toolfold.jsontypes import JsonObject
from toolfold.skills.models import SkillTexts, SkillUsage, Version
from toolfold.storage.migrations import DatabaseSchema
from toolfold.storage.sqlite_file import identity_of, open_for_writing

MAX_RECORDED_BYTES: Final = 256 << 10
_MAX_VERSIONS: Final = 100
_MAX_VERSIONS_IN_ALL: Final = 5_000
_MAX_ERROR_CHARS: Final = 500

_SCHEMA: Final = DatabaseSchema(
    "the book of skills",
    0x746F6C73,
    (
        (
            """
            CREATE TABLE versions (
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
            """,
            """
            CREATE TABLE uses (
                root TEXT NOT NULL,
                name TEXT NOT NULL,
                used INTEGER NOT NULL DEFAULT 0,
                succeeded INTEGER NOT NULL DEFAULT 0,
                last_used_at REAL,
                last_error TEXT,
                PRIMARY KEY (root, name)
            )
            """,
            """
            CREATE TABLE recordings (
                root TEXT NOT NULL,
                name TEXT NOT NULL,
                recorded_at REAL NOT NULL,
                digest TEXT NOT NULL,
                content TEXT NOT NULL,
                PRIMARY KEY (root, name)
            )
            """,
        ),
    ),
)

_LEAVE_NEWEST: Final = """
    DELETE FROM versions WHERE rowid IN (
        SELECT rowid FROM versions WHERE root = :root ORDER BY saved_at, number
        LIMIT max(0, (SELECT count(*) FROM versions WHERE root = :root) - :most)
    )
"""

_USED: Final = """
    INSERT INTO uses (root, name, used, succeeded, last_used_at, last_error)
    VALUES (:root, :name, 1, :succeeded, :at, :error)
    ON CONFLICT (root, name) DO UPDATE SET
        used = used + 1,
        succeeded = succeeded + :succeeded,
        last_used_at = :at,
        last_error = coalesce(:error, last_error)
"""


class SkillStore:
    """What is kept of the skills of all roots. Any thread may use it."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._turn = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None

    def close(self) -> None:
        """Let go of the file; it is opened again when it is needed."""
        with self._turn:
            self._close()

    def note(self, root: str, name: str, texts: SkillTexts | None, *, how: str) -> int:
        """Keep a version unless the newest is the same; return its number.

        None as `texts` says that the skill is gone.
        """
        digest = texts.digest if texts else ""
        with self._writing() as connection:
            newest = connection.execute(
                "SELECT number, digest FROM versions WHERE root = ? AND name = ? "
                "ORDER BY number DESC LIMIT 1",
                (root, name),
            ).fetchone()
            if newest and newest[1] == digest:
                return int(newest[0])
            number = newest[0] + 1 if newest else 1
            connection.execute(
                "INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (root, name, number, self._clock(), how, digest, *(texts or (None, None))),
            )
            connection.execute(
                "DELETE FROM versions WHERE root = ? AND name = ? AND number <= ?",
                (root, name, number - _MAX_VERSIONS),
            )
            connection.execute(_LEAVE_NEWEST, {"root": root, "most": _MAX_VERSIONS_IN_ALL})
            if texts is None:
                connection.execute(
                    "DELETE FROM recordings WHERE root = ? AND name = ?", (root, name)
                )
            return int(number)

    def versions(self, root: str, name: str) -> list[Version]:
        """Return what is known of a skill's past, oldest first."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT number, saved_at, how, manifest, source FROM versions "
                "WHERE root = ? AND name = ? ORDER BY number",
                (root, name),
            ).fetchall()
        return [
            Version(number, at, how, None if source is None else SkillTexts(manifest, source))
            for number, at, how, manifest, source in rows
        ]

    def count(self, root: str, name: str, *, error: str | None) -> None:
        """Count a run that used a skill, and how it ended."""
        told = None if error is None else shown(error, max_chars=_MAX_ERROR_CHARS)
        with self._writing() as connection:
            connection.execute(
                _USED,
                {
                    "root": root,
                    "name": name,
                    "succeeded": int(error is None),
                    "at": self._clock(),
                    "error": told,
                },
            )

    def usage(self, root: str, name: str) -> SkillUsage:
        """Return how a skill has done."""
        with self._reading() as connection:
            row = connection.execute(
                "SELECT used, succeeded, last_used_at, last_error FROM uses "
                "WHERE root = ? AND name = ?",
                (root, name),
            ).fetchone()
        return SkillUsage(*row) if row else SkillUsage()

    def record(self, root: str, name: str, *, digest: str, content: JsonObject) -> bool:
        """Keep a run to test a skill by, in place of the last; False if it is too large."""
        text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
        if len(text) > MAX_RECORDED_BYTES:
            return False
        with self._writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO recordings VALUES (?, ?, ?, ?, ?)",
                (root, name, self._clock(), digest, text),
            )
        return True

    def recording(self, root: str, name: str) -> tuple[str, JsonObject] | None:
        """Return the digest of a skill as it was when it was recorded, and what was."""
        with self._reading() as connection:
            row = connection.execute(
                "SELECT digest, content FROM recordings WHERE root = ? AND name = ?", (root, name)
            ).fetchone()
        return (row[0], json.loads(row[1])) if row else None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.execute("COMMIT")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Give the connection to one at a time.

        Raises:
            StoreError: The file cannot be opened, or does not answer.
        """
        with self._turn:
            try:
                yield self._opened()
            except sqlite3.Error as error:
                self._close()
                raise StoreError(f"The book of skills {self._path}: {error}") from error

    def _opened(self) -> sqlite3.Connection:
        """Return the connection; another where the file is not the one that it was."""
        if self._connection is None or identity_of(self._path) != self._identity:
            self._close()
            self._connection, self._identity = open_for_writing(self._path, _SCHEMA)
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
