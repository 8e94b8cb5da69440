"""API keys, which other machines need, and the local token, which web pages need.

Of a key only its SHA-256 is kept: it is made of 256 random bits, so there is nothing to guess.
"""

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from toolfold.config.paths import Directories
from toolfold.errors import BadInput, ConfigError, NotFound
from toolfold.storage.files import make_private, read_file, replace_file
from toolfold.storage.locks import wait_for_lock

_MARK: Final = "tf_"
_SECRET_BYTES: Final = 32
_MAX_NAME_CHARS: Final = 100
_MAX_NAMESPACE_CHARS: Final = 1_000
_TOKEN: Final = re.compile(rb"[\w-]{43}")

_Stamp = tuple[int, int, int] | None


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


class Keys:
    """The keys of one user, in one file. Whoever uses it sees changes of others at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: _Stamp = None
        self._keys: tuple[Key, ...] = ()

    @classmethod
    def of(cls, directories: Directories) -> "Keys":
        """Return those that are kept in a user's directories."""
        return cls(directories.data / "keys.json")

    def all(self) -> tuple[Key, ...]:
        """Return every key, revoked or not, the eldest first.

        Raises:
            ConfigError: The file cannot be read.
        """
        stamp = _stamp_of(self._path)
        if stamp != self._stamp:
            self._keys = self._read() if stamp is not None else ()
            self._stamp = stamp
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
        raise NotFound(f"The key {key_id!r} is not known here, or was revoked.")

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
        self._change(lambda keys: (*keys, key))
        return key, secret

    def revoke(self, named: str, *, now: float) -> Key:
        """Revoke a key, by its id or its holder's name.

        Raises:
            NotFound: No valid key is called that, or several are.
            ConfigError: The file cannot be read or written.
        """
        matching = [key for key in self.valid() if named in (key.id, key.name)]
        if len(matching) != 1:
            several = f"{len(matching)} keys are named {named!r}: say its id instead."
            none = f"No valid key has the id or the name {named!r}. `toolfold keys list` lists all."
            raise NotFound(several if matching else none)
        [key] = matching
        revoked = replace(key, revoked=now)
        self._change(lambda keys: tuple(revoked if each.id == key.id else each for each in keys))
        return revoked

    def _change(self, change: Callable[[tuple[Key, ...]], tuple[Key, ...]]) -> None:
        with _changing(self._path):
            self._stamp = None
            kept = [asdict(key) for key in change(self.all())]
            replace_file(self._path, json.dumps({"keys": kept}, indent=2).encode())

    def _read(self) -> tuple[Key, ...]:
        try:
            content = read_file(self._path, max_bytes=None) or b'{"keys": []}'
            return tuple(Key(**key) for key in json.loads(content)["keys"])
        except (ConfigError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise ConfigError(f"The keys in {self._path} cannot be read: {error}.") from error


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
