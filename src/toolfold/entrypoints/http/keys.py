"""API keys, which other machines need, and the local token, which web pages need.

Of a key only its SHA-256 is kept: it is made of 256 random bits, so there is nothing to guess.
"""

import hashlib
import hmac
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Final, Protocol

from toolfold.config.config import Config
from toolfold.config.paths import Directories
from toolfold.errors import BadInput, ConfigError, NotFound
from toolfold.storage.files import make_private, read_file, replace_file, wait_for_lock
from toolfold.storage.migrations import DatabaseSchema
from toolfold.storage.tables import SqlTransaction, open_tables

_MARK: Final = "tf_"
_SECRET_BYTES: Final = 32
_MAX_NAME_CHARS: Final = 100
_MAX_NAMESPACE_CHARS: Final = 1_000
_TOKEN: Final = re.compile(rb"[\w-]{43}")

_Stamp = tuple[int, int, int] | None
_NEVER: Final = object()

FRESH_S: Final = 2.0

_SCHEMA: Final = DatabaseSchema(
    "the keys",
    0x746F6C6B,
    (
        (
            """
            CREATE TABLE api_keys (
                id TEXT PRIMARY KEY,
                name TEXT NOT NULL,
                namespace TEXT NOT NULL,
                sha256 TEXT NOT NULL,
                created REAL NOT NULL,
                revoked REAL
            )
            """,
        ),
    ),
)
_SELECT_KEYS: Final = """
    SELECT id, name, namespace, sha256, created, revoked FROM api_keys ORDER BY created, id
"""
_PUT_KEY: Final = """
    INSERT INTO api_keys (id, name, namespace, sha256, created, revoked) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET revoked = excluded.revoked
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What is kept of a key."""

    id: str
    name: str
    """Who has it."""

    namespace: str
    """Where the notes of its holder belong to."""

    sha256: str
    created: float
    revoked: float | None = None


KeyChange = Callable[[tuple[Key, ...]], tuple[Key, ...]]


class ApiKeyStore(Protocol):
    """Where keys are kept. All but `stamp` may wait for a disk or a network."""

    def stamp(self) -> object:
        """Return what differs once keys may have changed. It takes no time."""

    def load(self) -> tuple[Key, ...]:
        """Return every key, the eldest first.

        Raises:
            ConfigError: They cannot be read.
            StoreError: The database does not answer.
        """

    def change(self, change: KeyChange) -> None:
        """Put what `change` makes of all keys in their place; nobody else does so meanwhile.

        Raises:
            ConfigError: They cannot be read or written.
            StoreError: The database does not answer.
        """


class KeyFile:
    """Implements `ApiKeyStore` in one file. Whoever uses it sees changes of others at once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def stamp(self) -> object:
        return _stamp_of(self._path)

    def load(self) -> tuple[Key, ...]:
        try:
            content = read_file(self._path, max_bytes=None) or b'{"keys": []}'
            return tuple(Key(**key) for key in json.loads(content)["keys"])
        except (ConfigError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise ConfigError(f"The keys in {self._path} cannot be read: {error}.") from error

    def change(self, change: KeyChange) -> None:
        with _changing(self._path):
            kept = [asdict(key) for key in change(self.load())]
            replace_file(self._path, json.dumps({"keys": kept}, indent=2).encode())


class KeyTable:
    """Implements `ApiKeyStore` in PostgreSQL, for all who have the same one.

    Changes of others are seen after `FRESH_S` at most: not every request is to ask the database.
    """

    def __init__(self, url: str) -> None:
        self._tables = open_tables(Path(), _SCHEMA, url)

    def stamp(self) -> object:
        return int(time.monotonic() / FRESH_S)

    def load(self) -> tuple[Key, ...]:
        return self._tables.read(_read_rows)

    def change(self, change: KeyChange) -> None:
        def work(transaction: SqlTransaction) -> None:
            for key in change(_read_rows(transaction)):
                transaction.execute(_PUT_KEY, tuple(asdict(key).values()))

        self._tables.write(work)


def _read_rows(transaction: SqlTransaction) -> tuple[Key, ...]:
    rows = transaction.execute(_SELECT_KEYS)
    names = [each.name for each in fields(Key)]
    return tuple(Key(**dict(zip(names, row, strict=True))) for row in rows)


def key_store(directories: Directories, database_url: str) -> ApiKeyStore:
    """Return where keys are kept: in that PostgreSQL, or in a file where there is none."""
    return KeyTable(database_url) if database_url else KeyFile(directories.data / "keys.json")


def copy_keys(source: ApiKeyStore, target: ApiKeyStore) -> int:
    """Have all keys of one store in another too, revoked where either has it; return how many.

    Raises:
        ConfigError: They cannot be read or written.
        StoreError: A database does not answer.
    """
    found = source.load()

    def merged(keys: tuple[Key, ...]) -> tuple[Key, ...]:
        there = {key.id: key for key in keys}
        ours = {key.id: replace(key, revoked=_revoked(key, there)) for key in found}
        return tuple((there | ours).values())

    target.change(merged)
    return len(found)


def _revoked(key: Key, there: Mapping[str, Key]) -> float | None:
    return key.revoked or (there[key.id].revoked if key.id in there else None)


class Keys:
    """The keys that are valid here, whoever made them."""

    def __init__(self, store: ApiKeyStore) -> None:
        self._store = store
        self._stamp: object = _NEVER
        self._keys: tuple[Key, ...] = ()

    @classmethod
    def of(cls, config: Config) -> "Keys":
        """Return those of a configuration."""
        return cls(key_store(config.directories, config.settings.database_url))

    def is_fresh(self) -> bool:
        """Whether looking for a key waits for nothing."""
        return self._stamp == self._store.stamp()

    def all(self) -> tuple[Key, ...]:
        """Return every key, revoked or not, the eldest first.

        Raises:
            ConfigError: The file cannot be read.
            StoreError: The database does not answer.
        """
        stamp = self._store.stamp()
        if stamp != self._stamp:
            self._keys, self._stamp = self._store.load(), stamp
        return self._keys

    def valid(self) -> tuple[Key, ...]:
        """Return those that are not revoked.

        Raises:
            ConfigError: The file cannot be read.
        """
        return tuple(key for key in self.all() if key.revoked is None)

    def find(self, secret: str) -> Key | None:
        """Return the key that this is, unless there is none or it is revoked.

        Raises:
            ConfigError: The file cannot be read.
        """
        digest = _digest(secret)
        for key in self.valid():
            if hmac.compare_digest(key.sha256, digest):
                return key
        return None

    def get(self, key_id: str) -> Key:
        """Return a valid key by its id.

        Raises:
            NotFound: There is none, or it was revoked.
            ConfigError: The file cannot be read.
        """
        for key in self.valid():
            if key.id == key_id:
                return key
        raise NotFound(f"The key {key_id!r} is unknown or was revoked.")

    def create(self, name: str, namespace: str, *, now: float) -> tuple[Key, str]:
        """Make a key; return it, and the secret, which nobody can be told a second time.

        Raises:
            BadInput: The name or the namespace is empty, or too long.
            ConfigError: The file cannot be read or written.
        """
        key_id = secrets.token_hex(4)
        secret = f"{_MARK}{key_id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
        key = Key(
            id=key_id,
            name=_clean(name, "name", _MAX_NAME_CHARS),
            namespace=_clean(namespace, "namespace", _MAX_NAMESPACE_CHARS),
            sha256=_digest(secret),
            created=now,
        )
        self._store.change(lambda keys: (*keys, key))
        self._stamp = _NEVER
        return key, secret

    def named(self, named: str) -> Key:
        """Return a valid key, by its id, how that begins, or its holder's name.

        Raises:
            NotFound: No valid key is called that, or several are.
            ConfigError: The file cannot be read.
        """
        valid = self.valid()
        matching = [key for key in valid if named in (key.id, key.name)]
        matching = matching or [key for key in valid if named and key.id.startswith(named)]
        if len(matching) > 1:
            ids = ", ".join(key.id for key in matching)
            raise NotFound(f"{len(matching)} keys are named {named!r}: say which, {ids}.")
        if not matching:
            raise NotFound(
                f"No valid key has the id or the name {named!r}. `toolfold keys list` lists all."
            )
        return matching[0]

    def revoke(self, named: str, *, now: float) -> Key:
        """Revoke a key, by its id or its holder's name.

        Raises:
            NotFound: No valid key is called that, or several are.
            ConfigError: The file cannot be read or written.
        """
        key = self.named(named)
        revoked = replace(key, revoked=now)
        self._store.change(
            lambda keys: tuple(revoked if each.id == key.id else each for each in keys)
        )
        self._stamp = _NEVER
        return revoked


class LocalToken:
    """A secret of the user that is always there, in a file that only they can read."""

    def __init__(self, directories: Directories) -> None:
        self._path = directories.state / "token"
        self._stamp: _Stamp = None
        self._token = ""

    def get(self) -> str:
        """Return it; it is made the first time.

        Raises:
            ConfigError: It cannot be read or written.
        """
        stamp = _stamp_of(self._path)
        if stamp is None or stamp != self._stamp:
            self._token = self._read() or self._make()
            self._stamp = stamp
        return self._token

    def renew(self) -> str:
        """Make another one, so that the one before opens nothing any more, and return it.

        Raises:
            ConfigError: It cannot be written.
        """
        with _changing(self._path):
            token = secrets.token_urlsafe(_SECRET_BYTES)
            replace_file(self._path, token.encode())
        return token

    def _make(self) -> str:
        with _changing(self._path):
            token = self._read() or secrets.token_urlsafe(_SECRET_BYTES)  # others may be faster
            replace_file(self._path, token.encode())
        return token

    def _read(self) -> str:
        try:
            content = (read_file(self._path) or b"").strip()
        except ConfigError as error:
            raise ConfigError(f"The token in {self._path} {error}.") from error
        return content.decode() if _TOKEN.fullmatch(content) else ""


def _stamp_of(path: Path) -> _Stamp:
    """Return what differs once a file was replaced; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


@contextmanager
def _changing(path: Path) -> Iterator[None]:
    """Be the only one who changes a file."""
    try:
        make_private(path.parent)
        lock = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            wait_for_lock(lock)
            yield
        finally:
            os.close(lock)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.") from error


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _clean(text: str, what: str, most: int) -> str:
    text = text.strip()
    if not text or len(text) > most or not text.isprintable():
        raise BadInput(f"The {what} of a key is a line of at most {most} characters.")
    return text
