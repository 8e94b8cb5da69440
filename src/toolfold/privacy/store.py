"""Vaults that last: sealed pages in one SQLite file, shared by threads and processes."""

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final

from toolfold.errors import StoreError
from toolfold.privacy.detect import Detectors
from toolfold.privacy.keys import Keyring, KeyStore
from toolfold.privacy.placeholder_table import (
    MAX_VALUES,
    HiddenValue,
    PlaceholderEntry,
    PlaceholderTable,
)
from toolfold.privacy.placeholders import Placeholder
from toolfold.privacy.schema import bring_up_to_date, connect
from toolfold.privacy.seal import Seal, fingerprint
from toolfold.privacy.vault import Vault
from toolfold.storage.files import make_private, make_private_file
from toolfold.storage.locks import locked
from toolfold.storage.sqlite_file import transaction

_DAMAGED: Final = (
    " It stays as it is: put a backup in its place, or move it away to begin anew. What it"
    " concealed cannot be revealed then."
)

Now = Callable[[], float]


class VaultStore:
    """The vaults of one data directory: `vaults.db`, and `vaults.key` unless a keyring has it."""

    def __init__(
        self, directory: Path, *, keyring: Keyring | None = None, clock: Now = time.time
    ) -> None:
        self.path = directory / "vaults.db"
        self._key = KeyStore(directory / "vaults.key", keyring)
        self._clock = clock
        self._using = Lock()
        self._connection: sqlite3.Connection | None = None
        self._master = b""

    def open(self) -> None:
        """Make the file and its key if there is none, both for this user alone.

        Raises:
            StoreError: It cannot be opened, is damaged or not ours, a newer toolfold wrote it, or
                its key is not to be had.
        """
        with self._translated("cannot be opened"), self._opening():
            connection = connect(self.path)
            try:
                bring_up_to_date(connection, self.path)
                self._master = self._found_key(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection

    def close(self) -> None:
        """Close the file; vaults of this store keep nothing any more."""
        with self._using:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def vault(self, scope: str, *, detectors: Detectors | None = None) -> Vault:
        """Return the vault of a scope, with all that any process has kept in it.

        Raises:
            StoreError: It cannot be read, or was changed by somebody without the key.
        """
        seal = Seal(self._master, scope)
        with self.writing() as connection:
            base = _used(connection, seal.id, self._clock())
        entries_store = StoredEntries(self, seal, self._clock)
        table = PlaceholderTable(base=base)
        entries_store.follow(table)
        return Vault(detectors=detectors, entries_store=entries_store, table=table)

    def base(self, scope: str) -> int:
        """Return after which number those of a scope begin: another one when it was forgotten.

        Raises:
            StoreError: The file does not answer.
        """
        with self.reading() as connection:
            row = connection.execute(
                "SELECT base FROM scopes WHERE id = ?", (Seal(self._master, scope).id,)
            ).fetchone()
        return 0 if row is None else int(row[0])

    def forget(self, scope: str) -> None:
        """Erase what is kept for a scope. Its numbers are not given again.

        Raises:
            StoreError: The file does not take it; nothing has changed.
        """
        with self.writing() as connection:
            _emptied(connection, Seal(self._master, scope).id)

    def forget_unused(self, *, since: float) -> int:
        """Erase all that was not used since a time; return how many scopes that were. Raises so."""
        with self.writing() as connection:
            unused = connection.execute(
                "SELECT id FROM scopes WHERE used_at < ? AND id IN (SELECT scope FROM pages)",
                (since,),
            ).fetchall()
            for (scope,) in unused:
                _emptied(connection, scope)
            return len(unused)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Change the file wholly or not at all; what was written is on the disk after this.

        Raises:
            StoreError: The file does not take it; nothing has changed.
        """
        with self._using, self._translated("does not take this, and is as it was before"):
            connection = self._opened()
            # SQLite skips the busy timeout when a read turns into a write.
            with transaction(connection, "BEGIN IMMEDIATE"):
                yield connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read the file.

        Raises:
            StoreError: It does not answer.
        """
        with self._using, self._translated("cannot be read"):
            yield self._opened()

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreError(f"The vaults in {self.path} are closed: open the store first.")
        return self._connection

    @contextmanager
    def _opening(self) -> Iterator[None]:
        """Let one process at a time make the file and its key."""
        make_private(self.path.parent)
        with locked(self.path, None):
            make_private_file(self.path)
            yield

    def _found_key(self, connection: sqlite3.Connection) -> bytes:
        kept = connection.execute("SELECT place, fingerprint FROM keys").fetchone()
        if kept is None:
            place, key = self._key.make()
            connection.execute("INSERT INTO keys VALUES (?, ?)", (place, fingerprint(key)))
            return key
        key = self._key.find(kept[0])
        if fingerprint(key) != kept[1]:
            raise StoreError(
                f"The key of the vaults is not the one that {self.path} was written with. Bring "
                "back the right one, or move the vaults away to begin anew."
            )
        return key

    @contextmanager
    def _translated(self, trouble: str) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
            advice = _DAMAGED if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB} else ""
            raise StoreError(
                f"The file of vaults {self.path} {trouble}: {error}.{advice}"
            ) from error


class StoredEntries:
    """Keeps the entries of one vault as sealed pages; each page is what was new at one time."""

    def __init__(self, store: VaultStore, seal: Seal, clock: Now) -> None:
        self._store = store
        self._seal = seal
        self._clock = clock
        self._pages = 0

    def keep(self, table: PlaceholderTable, wanted: Iterable[HiddenValue]) -> None:
        """Have an entry in the book for each value; when this returns, they are on the disk.

        Raises:
            StoreError: They could not be kept, or the vault is full.
        """
        with self._store.writing() as connection:
            if _used(connection, self._seal.id, self._clock()) != table.base:
                raise StoreError(
                    "This vault was forgotten while it was in use. Begin a new session."
                )
            self._read(connection, table)
            new = table.draft(wanted)
            if new:
                page = self._pages + 1
                sealed = self._seal.seal(_encoded(new), page=page)
                connection.execute(
                    "INSERT INTO pages VALUES (?, ?, ?)", (self._seal.id, page, sealed)
                )
        for entry in new:
            table.add(entry)
        self._pages += bool(new)

    def follow(self, table: PlaceholderTable) -> None:
        """Take over what other processes have kept meanwhile.

        Raises:
            StoreError: It cannot be read, or was changed by somebody without the key.
        """
        with self._store.reading() as connection:
            self._read(connection, table)

    def _read(self, connection: sqlite3.Connection, table: PlaceholderTable) -> None:
        rows = connection.execute(
            "SELECT number, sealed FROM pages WHERE scope = ? AND number > ? ORDER BY number",
            (self._seal.id, self._pages),
        )
        for number, sealed in rows:
            for entry in _decoded(self._seal.open(sealed, page=number)):
                table.add(entry)
            self._pages = number


def _used(connection: sqlite3.Connection, scope: bytes, now: float) -> int:
    """Write down that a scope is used; return after which number its own begin."""
    [base] = connection.execute(
        "INSERT INTO scopes VALUES (?, 0, ?)"
        " ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at RETURNING base",
        (scope, now),
    ).fetchone()
    return int(base)


def _emptied(connection: sqlite3.Connection, scope: bytes) -> None:
    connection.execute("DELETE FROM pages WHERE scope = ?", (scope,))
    connection.execute("UPDATE scopes SET base = base + ? WHERE id = ?", (MAX_VALUES, scope))


def _encoded(entries: list[PlaceholderEntry]) -> bytes:
    return json.dumps([[*placeholder, value] for placeholder, value in entries]).encode()


def _decoded(plain: bytes) -> Iterator[PlaceholderEntry]:
    for kind, number, variant, value in json.loads(plain):
        yield PlaceholderEntry(Placeholder(kind, number, variant), value)
