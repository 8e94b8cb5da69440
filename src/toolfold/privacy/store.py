"""Vaults that last: sealed pages in one database, shared by threads and processes."""

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from threading import Lock
from typing import Final

from toolfold.config.config import Config
from toolfold.errors import StoreError
from toolfold.privacy.detect import Detectors
from toolfold.privacy.detectors.custom import CustomDetector
from toolfold.privacy.keys import KeyStore, Seal, fingerprint
from toolfold.privacy.placeholder_table import (
    MAX_VALUES,
    HiddenValue,
    PlaceholderEntry,
    PlaceholderTable,
)
from toolfold.privacy.schema import SCHEMA
from toolfold.privacy.spans import Placeholder
from toolfold.privacy.vault import Vault
from toolfold.storage.files import make_private
from toolfold.storage.kept_file import KeptFile
from toolfold.storage.secrets import Keyring, find_keyring
from toolfold.storage.tables import SqlTransaction, Tables, open_tables

_FIND_KEY: Final = "SELECT place, fingerprint FROM keys"
_PUT_KEY: Final = "INSERT INTO keys VALUES (?, ?)"

Now = Callable[[], float]


class VaultStore:
    """The vaults of one data directory, or of a PostgreSQL that replicas share.

    Their key is in `vaults.key` of the directory unless a keyring has it, and never in them.
    """

    def __init__(
        self,
        directory: Path,
        *,
        database_url: str = "",
        keyring: Keyring | None = None,
        clock: Now = time.time,
    ) -> None:
        self.path = directory / "vaults.db"
        self._file = None if database_url else KeptFile(self.path, SCHEMA)
        self.tables: Tables = self._file or open_tables(self.path, SCHEMA, database_url)
        self._key = KeyStore(directory / "vaults.key", keyring)
        self._clock = clock
        self._master = b""

    def open(self) -> None:
        """Make the tables and their key if there is none, both for this user alone.

        Raises:
            StoreError: They cannot be opened, are damaged or not ours, a newer toolfold wrote
                them, or their key is not to be had.
        """
        if self._file is not None:
            self._master = self._file.open(self._found_key)
        else:
            make_private(self.path.parent)
            self._master = self.tables.write(self._found_key)

    def close(self) -> None:
        """Close the file; vaults of this store keep nothing any more."""
        self.tables.close()

    def vault(self, scope: str, *, detectors: Detectors | None = None) -> Vault:
        """Return the vault of a scope, with all that any process has kept in it.

        Raises:
            StoreError: It cannot be read, or was changed by somebody without the key.
        """
        seal = Seal(self._master, scope)
        base = self.tables.write(lambda tables: _used(tables, seal.id, self._clock()))
        entries_store = StoredEntries(self, seal, self._clock)
        table = PlaceholderTable(base=base)
        entries_store.follow(table)
        return Vault(detectors=detectors, entries_store=entries_store, table=table)

    def base(self, scope: str) -> int:
        """Return after which number those of a scope begin: another one when it was forgotten.

        Raises:
            StoreError: The file does not answer.
        """
        values = (Seal(self._master, scope).id,)
        row = self.tables.read(
            lambda tables: tables.execute("SELECT base FROM scopes WHERE id = ?", values).fetchone()
        )
        return 0 if row is None else int(row[0])

    def forget(self, scope: str) -> None:
        """Erase what is kept for a scope. Its numbers are not given again.

        Raises:
            StoreError: The file does not take it; nothing has changed.
        """
        self.tables.write(lambda tables: _emptied(tables, Seal(self._master, scope).id))

    def forget_unused(self, *, since: float) -> int:
        """Erase all that was not used since a time; return how many scopes that were. Raises so."""

        def work(connection: SqlTransaction) -> int:
            unused = connection.execute(
                "SELECT id FROM scopes WHERE used_at < ? AND id IN (SELECT scope FROM pages)",
                (since,),
            ).fetchall()
            for (scope,) in unused:
                _emptied(connection, scope)
            return len(unused)

        return self.tables.write(work)

    def _found_key(self, connection: SqlTransaction) -> bytes:
        kept = connection.execute(_FIND_KEY).fetchone()
        if kept is None:
            place, key = self._key.make()
            connection.execute(_PUT_KEY, (place, fingerprint(key)))
            return key
        # Each replica has the key where it likes.
        found = self._key.look() if self._file is None else self._key.find(kept[0])
        if found is None or fingerprint(found) != kept[1]:
            raise StoreError(self._wrong_key())
        return found

    def _wrong_key(self) -> str:
        if self._file is None:
            return (
                f"The vaults in the database were written with a key that {self._key.file} does "
                "not hold. Copy that file from the data directory of the process that first used "
                "them."
            )
        return (
            f"The key of the vaults is not the one that {self.path} was written with. "
            "Restore the right one, or move the vaults away to start empty."
        )


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
            StoreError: They could not be kept, or are too many at once.
        """
        wanted = list(wanted)

        def work(connection: SqlTransaction) -> tuple[PlaceholderTable, list[PlaceholderEntry]]:
            if _used(connection, self._seal.id, self._clock()) != table.base:
                raise StoreError(
                    "This vault was forgotten, or gave up its oldest values, while it was in use. "
                    "Run the code again."
                )
            self._read(connection, table)
            current = table
            if not table.has_room(wanted):
                current = self._rolled_over(connection, table, wanted)
            new = current.draft(wanted)
            if new:
                page = self._pages + 1
                sealed = self._seal.seal(_encoded(new), page=page)
                connection.execute(
                    "INSERT INTO pages VALUES (?, ?, ?)", (self._seal.id, page, sealed)
                )
            return current, new

        current, new = self._store.tables.write(work)
        if current is not table:
            table.become(current)
        for entry in new:
            table.add(entry)
        self._pages += bool(new)

    def _rolled_over(
        self,
        connection: SqlTransaction,
        table: PlaceholderTable,
        wanted: Collection[HiddenValue],
    ) -> PlaceholderTable:
        """Give up the older half of what is kept, or more. What stays is one page, the newest."""
        current = table.rolled_over(wanted)
        scope = self._seal.id
        connection.execute("DELETE FROM pages WHERE scope = ?", (scope,))
        connection.execute("UPDATE scopes SET base = ? WHERE id = ?", (current.base, scope))
        kept = list(current.newest_first)[::-1]
        sealed = self._seal.seal(_encoded(kept), page=self._pages)
        connection.execute("INSERT INTO pages VALUES (?, ?, ?)", (scope, self._pages, sealed))
        return current

    def follow(self, table: PlaceholderTable) -> None:
        """Take over what other processes have kept meanwhile.

        Raises:
            StoreError: It cannot be read, or was changed by somebody without the key.
        """
        self._store.tables.read(lambda tables: self._read(tables, table))

    def _read(self, connection: SqlTransaction, table: PlaceholderTable) -> None:
        rows = connection.execute(
            "SELECT number, sealed FROM pages WHERE scope = ? AND number > ? ORDER BY number",
            (self._seal.id, self._pages),
        )
        for number, sealed in rows:
            for entry in _decoded(self._seal.open(sealed, page=number)):
                table.add(entry)
            self._pages = number


def _used(connection: SqlTransaction, scope: bytes, now: float) -> int:
    """Write down that a scope is used; return after which number its own begin."""
    [base] = connection.execute(
        "INSERT INTO scopes VALUES (?, 0, ?)"
        " ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at RETURNING base",
        (scope, now),
    ).fetchone()
    return int(base)


def _emptied(connection: SqlTransaction, scope: bytes) -> None:
    connection.execute("DELETE FROM pages WHERE scope = ?", (scope,))
    connection.execute("UPDATE scopes SET base = base + ? WHERE id = ?", (MAX_VALUES, scope))


def _encoded(entries: list[PlaceholderEntry]) -> bytes:
    return json.dumps([[*placeholder, value] for placeholder, value in entries]).encode()


def _decoded(plain: bytes) -> Iterator[PlaceholderEntry]:
    for kind, number, variant, value in json.loads(plain):
        yield PlaceholderEntry(Placeholder(kind, number, variant), value)


Patterns = tuple[tuple[str, str], ...]


class Vaults:
    """Hands out vaults by scope. Blocks; to be used in a thread."""

    def __init__(self, directory: Path, database_url: str = "") -> None:
        self._directory = directory
        self._database_url = database_url
        self._opening = Lock()
        self._store: VaultStore | None = None
        self._vaults: dict[tuple[str, Patterns], tuple[int, Vault]] = {}

    @property
    def is_there(self) -> bool:
        """Whether anything can be in them."""
        return bool(self._database_url) or (self._directory / "vaults.db").exists()

    def vault(self, scope: str, patterns: Patterns = ()) -> Vault:
        """Return the vault of a scope, as it is now, which finds these patterns too.

        Raises:
            ConfigError: A pattern cannot be used.
            StoreError: The vault cannot be opened.
        """
        with self._opening:
            store = self._opened()
            base = store.base(scope)
            known = self._vaults.get((scope, patterns))
            if known is None or known[0] != base:
                detectors = Detectors([CustomDetector(*pattern) for pattern in patterns])
                known = base, store.vault(scope, detectors=detectors)
                self._vaults[scope, patterns] = known
            return known[1]

    def forget(self, scope: str) -> int:
        """Erase what is kept for a scope; return how many values that were. Raises StoreError."""
        with self._opening:
            store = self._opened()
            count = len(store.vault(scope))
            store.forget(scope)
            return count

    def forget_unused(self, *, since: float) -> int:
        """Erase all that was not used since a time; return how many scopes that were."""
        with self._opening:
            return self._opened().forget_unused(since=since)

    def close(self) -> None:
        """Close the file, if it was opened."""
        with self._opening:
            if self._store is not None:
                self._store.close()
            self._store = None
            self._vaults.clear()

    def _opened(self) -> VaultStore:
        if self._store is None:
            store = VaultStore(
                self._directory, database_url=self._database_url, keyring=find_keyring()
            )
            store.open()
            self._store = store
        return self._store


def vaults_of(config: Config) -> Vaults:
    """Return the vaults of a configuration."""
    return Vaults(config.directories.data, config.settings.database_url)
