"""Keys that we make for ourselves, each in a file of its own, mode 0600."""

import os
import secrets
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

_BYTES: Final = 32


@cache
def read_key(path: Path) -> bytes:
    """Return the key of a file, made if it is not there; of several who make one the first wins.

    Raises:
        OSError: It cannot be read or made.
    """
    if path.exists():
        return path.read_bytes()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_BYTES))
        with suppress(FileExistsError):
            os.link(made, path)  # whole from the first moment on
    finally:
        made.unlink()
    return path.read_bytes()
