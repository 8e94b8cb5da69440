"""The key of all vaults: in the system's keyring where there is one that works, else in a file."""

import importlib
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, Final, Protocol

from toolfold.errors import StoreError
from toolfold.privacy.seal import KEY_BYTES

_log = logging.getLogger(__name__)

IN_KEYRING, IN_FILE = "keyring", "file"
_SERVICE: Final = "toolfold"
_PATIENCE_S: Final = 30.0


class Keyring(Protocol):
    """Where the system keeps passwords."""

    def get(self, name: str) -> str | None:
        """Return what is kept under a name; None if nothing is.

        Raises:
            StoreError: It does not answer.
        """

    def put(self, name: str, value: str) -> None:
        """Keep a value under a name.

        Raises:
            StoreError: It does not take it.
        """


class SystemKeyring:
    """The keyring of the desktop, by the package `keyring`."""

    def __init__(self, package: Any) -> None:
        self._package = package

    def get(self, name: str) -> str | None:
        """Return what is kept under a name; None if nothing is."""
        found: str | None = self._asked(lambda: self._package.get_password(_SERVICE, name))
        return found

    def put(self, name: str, value: str) -> None:
        """Keep a value under a name."""
        self._asked(lambda: self._package.set_password(_SERVICE, name, value))

    def _asked(self, question: Callable[[], Any]) -> Any:
        """Ask in a thread that may be left behind: a locked keyring waits for the user."""
        answers: list[Any] = []
        faults: list[Exception] = []

        def ask() -> None:
            try:
                answers.append(question())
            except Exception as error:  # noqa: BLE001  # backends raise what they like
                faults.append(error)

        asking = Thread(target=ask, daemon=True)
        asking.start()
        asking.join(_PATIENCE_S)
        if not answers:
            reason = faults[0] if faults else f"no answer in {_PATIENCE_S:g} s; is it locked?"
            raise StoreError(f"The system's keyring does not work: {reason}") from (
                faults[0] if faults else None
            )
        return answers[0]


def find_keyring() -> Keyring | None:
    """Return the system's keyring; None without the package `keyring` or a backend that works."""
    try:
        package = importlib.import_module("keyring")
    except ImportError:
        return None
    backend = package.get_keyring()
    return SystemKeyring(package) if getattr(backend, "priority", 0) > 0 else None


class KeyStore:
    """Where the key of one database is. Whoever uses it holds the lock of that database."""

    def __init__(self, file: Path, keyring: Keyring | None) -> None:
        self._file = file
        self._keyring = keyring
        self._name = f"vault:{file.parent}"

    def find(self, place: str) -> bytes:
        """Return the key that was put into this place.

        Raises:
            StoreError: It is not there, or cannot be read.
        """
        key = self._from_keyring() if place == IN_KEYRING else self._from_file()
        if key is None:
            where = "the system's keyring" if place == IN_KEYRING else str(self._file)
            raise StoreError(
                f"The key of the vaults is not in {where} any more. Without it nothing in "
                f"{self._file.parent} can be revealed: bring it back, or move the vaults away."
            )
        return key

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
            raise StoreError("The system's keyring forgets what it is given.")
        return key

    def _from_file(self) -> bytes | None:
        try:
            if self._file.stat().st_mode & 0o077:
                _log.warning("%s could be read by others; closed to them now.", self._file)
                self._file.chmod(0o600)
            return _decoded(self._file.read_text(encoding="ascii"), str(self._file))
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"The key of the vaults cannot be read: {error}") from error

    def _into_file(self) -> bytes:
        key = os.urandom(KEY_BYTES)
        fresh = self._file.with_name(f"{self._file.name}.new")
        try:
            with suppress(FileNotFoundError):
                fresh.unlink()
            with os.fdopen(
                os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w"
            ) as file:
                file.write(key.hex())
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._file)
        except OSError as error:
            raise StoreError(f"The key of the vaults cannot be written: {error}") from error
        return key


def _decoded(written: str, place: str) -> bytes:
    with suppress(ValueError):
        key = bytes.fromhex(written.strip())
        if len(key) == KEY_BYTES:
            return key
    raise StoreError(f"What is in {place} is not a key of vaults: bring back the right one.")
