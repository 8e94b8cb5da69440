"""Files of our own: private, read and written whole."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from toolfold.errors import ConfigError

MAX_BYTES = 1024 * 1024


def read_file(path: Path, *, max_bytes: int | None = MAX_BYTES) -> bytes | None:
    """Return what a regular file holds, or None when there is no file.

    With None as `max_bytes` it may be of any size.

    Raises:
        ConfigError: It cannot be read, is no regular file, or is larger than `max_bytes`.
            The message leaves it to the caller to name the file.
    """
    try:
        # A repository we do not trust may hold a pipe, or a link to a device that never ends.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError("is not a regular file")
        with path.open("rb") as file:
            content = file.read(-1 if max_bytes is None else max_bytes + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}") from error
    if max_bytes is not None and len(content) > max_bytes:
        raise ConfigError(f"is larger than {max_bytes} bytes")
    return content


def replace_file(path: Path, content: bytes, *, is_durable: bool = True) -> None:
    """Write a file of mode 0600 so that a reader sees the old content or the new, never a part.

    Several may write at the same time: the last one counts. What is not durable may be the old
    content again after the power failed, or none, and costs no wait for the disk.

    Raises:
        OSError: The directory cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if is_durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def make_file(path: Path, content: bytes) -> None:
    """Write a file of mode 0600 to the disk, unless there is one already: the first one counts.

    Raises:
        OSError: The directory cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    replace_file(temporary, content)
    try:
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink()


def make_private(directory: Path) -> None:
    """Make a directory, and close it to other users (mode 0700) even if it exists already.

    Raises:
        OSError: It cannot be made, or belongs to someone else.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.chmod(0o700)


def make_private_file(path: Path) -> None:
    """Make an empty file of mode 0600 in a private directory; one that is there gets the mode.

    It is never opened if it is there: closing it would drop the locks of this process on it.

    Raises:
        OSError: It cannot be made, or belongs to someone else.
    """
    make_private(path.parent)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    path.chmod(0o600)
