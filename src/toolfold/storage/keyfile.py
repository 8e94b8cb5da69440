"""Keys that we make for ourselves, each in a file of its own, mode 0600."""

import secrets
from functools import cache
from pathlib import Path
from typing import Final

from toolfold.storage.files import make_file

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
