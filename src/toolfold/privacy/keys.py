"""The key of all vaults, in the system's keyring or in a file, and sealing by it."""

import hmac
import logging
import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from toolfold.errors import StoreError
from toolfold.storage.secrets import Keyring

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12


class Seal:
    """What belongs to one scope, sealed so that it fits nowhere else."""

    def __init__(self, master: bytes, scope: str) -> None:
        self.id = _derived(master, "scope", scope)[:16]
        self._cipher = AESGCM(_derived(master, "key", scope))

    def seal(self, plain: bytes, *, page: int) -> bytes:
        """Return what only this scope's key opens, and only as this page."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, plain, self._place(page))

    def open(self, sealed: bytes, *, page: int) -> bytes:
        """Return what was sealed.

        Raises:
            StoreError: It was changed, or stands in another place than it was written for.
        """
        nonce, body = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            return self._cipher.decrypt(nonce, body, self._place(page))
        except (InvalidTag, ValueError) as error:
            raise StoreError(
                f"Page {page} of a vault was changed since it was written, so nothing of that "
                "vault is used. Restore a backup, or run `toolfold privacy forget`."
            ) from error

    def _place(self, page: int) -> bytes:
        return self.id + page.to_bytes(8)


def fingerprint(master: bytes) -> bytes:
    """Return what tells one key from another and says nothing of it."""
    return _derived(master, "fingerprint", "")[:16]


def _derived(master: bytes, use: str, scope: str) -> bytes:
    message = f"toolfold vault 1\0{use}\0{scope}".encode("utf-8", "surrogatepass")
    return hmac.digest(master, message, sha256)


_log = logging.getLogger(__name__)

IN_KEYRING, IN_FILE = "keyring", "file"


class KeyStore:
    """Where the key of one database is. Whoever uses it holds the lock of that database."""

    def __init__(self, file: Path, keyring: Keyring | None) -> None:
        self.file = file
        self._keyring = keyring
        self._name = f"vault:{file.parent}"

    def find(self, place: str) -> bytes:
        """Return the key that was put into this place.

        Raises:
            StoreError: It is not there, or cannot be read.
        """
        key = self._from_keyring() if place == IN_KEYRING else self._from_file()
        if key is None:
            where = "the system's keyring" if place == IN_KEYRING else str(self.file)
            raise StoreError(
                f"The key of the vaults is missing from {where}. Without it nothing in "
                f"{self.file.parent} can be revealed: restore it, or move the vaults away."
            )
        return key

    def look(self) -> bytes | None:
        """Return the key that is here, in whichever place; None if there is none.

        Raises:
            StoreError: It cannot be read.
        """
        return self._from_file() or (self._from_keyring() if self._keyring is not None else None)

    def make(self) -> tuple[str, bytes]:
        """Return a key for new vaults, and where it is: one that is there already, or a fresh one.

        Raises:
            StoreError: It cannot be kept anywhere.
        """
        if (key := self._from_file()) is not None:
            return IN_FILE, key
        if self._keyring is not None:
            try:
                return IN_KEYRING, self._from_keyring() or self._into_keyring(self._keyring)
            except StoreError as error:
                _log.warning("The key of the vaults goes into a file (mode 0600): %s", error)
        return IN_FILE, self._into_file()

    def _from_keyring(self) -> bytes | None:
        if self._keyring is None:
            raise StoreError(
                "The key of the vaults is in the system's keyring, which is not there now. Install "
                "the package `keyring` and start a session that has one."
            )
        kept = self._keyring.get(self._name)
        return None if kept is None else _decoded(kept, "the system's keyring")

    def _into_keyring(self, keyring: Keyring) -> bytes:
        key = os.urandom(KEY_BYTES)
        keyring.put(self._name, key.hex())
        if keyring.get(self._name) != key.hex():
            raise StoreError("The system's keyring does not keep its entries.")
        return key

    def _from_file(self) -> bytes | None:
        try:
            if self.file.stat().st_mode & 0o077:
                _log.warning("%s could be read by others; closed to them now.", self.file)
                self.file.chmod(0o600)
            return _decoded(self.file.read_text(encoding="ascii"), str(self.file))
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"The key of the vaults cannot be read: {error}") from error

    def _into_file(self) -> bytes:
        key = os.urandom(KEY_BYTES)
        fresh = self.file.with_name(f"{self.file.name}.new")
        try:
            with suppress(FileNotFoundError):
                fresh.unlink()
            with os.fdopen(
                os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w"
            ) as file:
                file.write(key.hex())
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self.file)
        except OSError as error:
            raise StoreError(f"The key of the vaults cannot be written: {error}") from error
        return key


def _decoded(written: str, place: str) -> bytes:
    with suppress(ValueError):
        key = bytes.fromhex(written.strip())
        if len(key) == KEY_BYTES:
            return key
    raise StoreError(f"What is in {place} is not a key of vaults: bring back the right one.")
