"""Paths as guest code gives them, into names that can be walked one by one. Pure."""

import errno
import re
from typing import Final

NAME_BYTES: Final = 255
DEPTH: Final = 32
_SHOWN_CHARS: Final = 200
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def names_of(path: str) -> tuple[str, ...]:
    """Return the names on the way from the workspace to `path`; none for the workspace itself.

    Raises:
        OSError: The path leads outside, or has a name that no file may have.
    """
    if path.startswith("/"):
        raise refusal(errno.EACCES, "Paths begin in the workspace", path)
    names = tuple(name for name in path.split("/") if name not in {"", "."})
    if len(names) > DEPTH:
        words = f"Directories are nested {DEPTH} deep at most"
        raise refusal(errno.ENAMETOOLONG, words, path)
    for name in names:
        _check(name, path)
    return names


def _check(name: str, path: str) -> None:
    if name == "..":
        raise refusal(errno.EACCES, "Nothing leads out of the workspace", path)
    if _CONTROL.search(name):
        raise refusal(errno.EINVAL, "Names have no control characters", path)
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise refusal(errno.EINVAL, "Names are Unicode text", path) from None
    if size > NAME_BYTES:
        words = f"Names have {NAME_BYTES} bytes at most, this one {size:,}"
        raise refusal(errno.ENAMETOOLONG, words, path)


def is_name(name: str) -> bool:
    """Whether a file may have this name; others have been put there by somebody else."""
    try:
        return names_of(name) == (name,)
    except OSError:
        return False


def refusal(number: int, words: str, path: str) -> OSError:
    """Return an error of the kind that `number` says, which a model can read."""
    shown = path if len(path) <= _SHOWN_CHARS else f"{path[:_SHOWN_CHARS]}…"
    return OSError(number, words, shown.encode("utf-8", "replace").decode())
