"""Keys and secrets: in the system's keyring where one works, else in a private file."""

import importlib
import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any, Final, Literal, Protocol

from toolfold.errors import BadInput, ConfigError, StoreError
from toolfold.storage.files import locked, make_file, make_private, read_file, replace_file

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

    def remove(self, name: str) -> None:
        """Forget what is kept under a name, if anything is.

        Raises:
            StoreError: It does not answer.
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

    def remove(self, name: str) -> None:
        """Forget what is kept under a name, if anything is."""
        if self.get(name) is not None:
            self._asked(lambda: self._package.delete_password(_SERVICE, name))

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


_BYTES: Final = 32


@cache
def read_key(path: Path) -> bytes:
    """Return the key of a file, made if it is not there; of several who make one the first wins.

    Raises:
        OSError: It cannot be read or made.
    """
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_file(path, secrets.token_bytes(_BYTES))
    return path.read_bytes()


MAX_CHARS: Final = 65_536
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./@-]{0,99}")

SecretPlace = Literal["keyring", "file"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSecret:
    """What is written down of one secret."""

    place: SecretPlace
    revision: str
    """Another one whenever the value is given anew: who uses it notices."""

    value: str = field(default="", repr=False)
    """Empty where the keyring has it."""


class SecretStore:
    """The secrets of one user, by name. Several processes may use it at a time.

    The file is not encrypted: the key would have to lie beside it. Its mode keeps other users out.
    """

    def __init__(self, data: Path, keyring: Callable[[], Keyring | None] = find_keyring) -> None:
        self._path = self.path(data)
        self._find_keyring = keyring

    @staticmethod
    def path(data: Path) -> Path:
        """Return the file, which is in the data directory."""
        return data / "secrets.json"

    def kept(self) -> Mapping[str, KeptSecret]:
        """Return what is written down, by name; values that the keyring has are not asked for.

        Raises:
            StoreError: Our own file cannot be read.
        """
        try:
            content = read_file(self._path)
            return {} if content is None else _parsed(content)
        except (ConfigError, ValueError, TypeError, AttributeError) as error:
            raise StoreError(
                f"{self._path} is not what `toolfold secrets` wrote. Move it away, and give the "
                "secrets again."
            ) from error

    def get(self, name: str) -> str | None:
        """Return the value of a secret; None if it was never given.

        Raises:
            StoreError: The file cannot be read, or the keyring does not answer.
        """
        kept = self.kept().get(name)
        if kept is None or kept.place == "file":
            return None if kept is None else kept.value
        keyring = self._find_keyring()
        if keyring is None:
            raise StoreError(
                f"The secret {name!r} is in the system's keyring, which is not there now. Start a "
                f"session that has one, or run: toolfold secrets set {name}"
            )
        return keyring.get(name)

    def put(self, name: str, value: str) -> SecretPlace:
        """Keep a value under a name, in the place of any other; return where it is.

        Raises:
            BadInput: The name or the value cannot be kept.
            StoreError: It could not be written.
        """
        check_name(name)
        if not value or len(value) > MAX_CHARS or "\0" in value:
            raise BadInput(f"A secret has from 1 to {MAX_CHARS:,} characters, and no NUL.")
        revision = secrets.token_hex(8)
        place: SecretPlace = "keyring" if self._into_keyring(name, value) else "file"
        kept = KeptSecret(place=place, revision=revision, value=value if place == "file" else "")
        self._change(lambda all_kept: {**all_kept, name: kept})
        return place

    def remove(self, name: str) -> bool:
        """Forget a secret; return whether it was there.

        Raises:
            StoreError: It could not be removed.
        """
        kept = self.kept().get(name)
        if kept is None:
            return False
        keyring = self._find_keyring() if kept.place == "keyring" else None
        if keyring is not None:
            keyring.remove(name)
        self._change(lambda kept: {key: each for key, each in kept.items() if key != name})
        return True

    def _into_keyring(self, name: str, value: str) -> bool:
        """Put a value into the keyring; return whether it is there, as it was given."""
        keyring = self._find_keyring()
        if keyring is None:
            return False
        try:
            keyring.put(name, value)
            return keyring.get(name) == value
        except StoreError:
            return False  # and the file is said to have it

    def _change(
        self, change: Callable[[Mapping[str, KeptSecret]], Mapping[str, KeptSecret]]
    ) -> None:
        try:
            make_private(self._path.parent)
            with locked(self._path):
                kept = {name: asdict(each) for name, each in change(self.kept()).items()}
                replace_file(self._path, json.dumps(kept, indent=1, sort_keys=True).encode())
        except OSError as error:
            raise StoreError(f"{self._path} cannot be written: {error.strerror}.") from error


def check_name(name: str) -> str:
    """Return a name that a secret may have.

    Raises:
        BadInput: It may not.
    """
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"{name[:100]!r} is no name for a secret: letters, digits and any of _ . / @ - are, "
            "at most 100 of them."
        )
    return name


def _parsed(content: bytes) -> dict[str, KeptSecret]:
    found = json.loads(content)
    return {str(name): KeptSecret(**each) for name, each in found.items()}
