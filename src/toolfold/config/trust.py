"""Which files of projects the user has read and allows to start servers."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolfold.config.paths import locate
from toolfold.errors import ConfigError
from toolfold.storage.files import read_file, replace_file, wait_for_lock


class Trust:
    """Remembers in one file which paths are trusted, and with which content.

    A trusted file that is edited or moved is not trusted any more. What its commands run is the
    user's to judge: a script beside it may change and the trust stays.
    """

    def __init__(self, state: Path) -> None:
        self._path = state / "trust.json"

    def is_trusted(self, path: Path, content: bytes) -> bool:
        """Whether the user trusted this path with this content.

        When our own file is broken nothing is trusted; `trust` then says what is wrong with it.
        """
        try:
            return self._read().get(str(locate(path))) == _digest(content)
        except ConfigError:
            return False

    def trust(self, path: Path) -> bytes:
        """Trust the file as it is now, and return the content that is trusted.

        Raises:
            ConfigError: There is no such file, or our own cannot be read or written.
        """
        try:
            content = read_file(path)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from error
        if content is None:
            raise ConfigError(f"{path}: there is no such file to trust.")
        with self._locked():
            self._write({**self._read(), str(locate(path)): _digest(content)})
        return content

    def revoke(self, path: Path) -> bool:
        """Trust the file no more; return whether it was trusted with any content.

        Raises:
            ConfigError: Our own file cannot be read or written.
        """
        with self._locked():
            trusted = self._read()
            if trusted.pop(str(locate(path)), None) is None:
                return False
            self._write(trusted)
            return True

    def _read(self) -> dict[str, str]:
        try:
            content = read_file(self._path)
            return {} if content is None else _parse(content)
        except ConfigError as error:
            raise ConfigError(
                f"{self._path}: {error}. Until it is fixed, no project is trusted; "
                "delete it to start without any."
            ) from error

    def _write(self, trusted: dict[str, str]) -> None:
        content = json.dumps(trusted, indent=2, sort_keys=True) + "\n"
        try:
            replace_file(self._path, content.encode())
        except OSError as error:
            raise ConfigError(f"{self._path}: cannot be written: {error.strerror}") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep out other processes that change the file, or one would undo the other."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = self._path.with_suffix(".lock").open("a")
        except OSError as error:
            raise ConfigError(f"{self._path}: cannot be written: {error.strerror}") from error
        with lock:
            wait_for_lock(lock.fileno())
            yield


def _parse(content: bytes) -> dict[str, str]:
    try:
        trusted = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ConfigError("is not valid JSON") from error
    if not isinstance(trusted, dict) or not all(isinstance(v, str) for v in trusted.values()):
        raise ConfigError("does not map paths to hashes")
    return trusted


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
