"""The state of a session as a file that is surely ours: signed, and replaced whole."""

import hashlib
import hmac
import json
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from toolfold.errors import StateLost
from toolfold.storage.files import replace_file
from toolfold.storage.keyfile import read_key

_FORMAT: Final = b"toolfold session 1\n"
_MAX_HEADER_BYTES: Final = 4 * 1024 * 1024


class StateFiles:
    """Writes and reads such files. Whoever cannot read the key cannot make one."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file

    def write(self, path: Path, header: dict[str, Any], state: bytes) -> None:
        """Replace the file at once; it survives the death of this process.

        Raises:
            OSError: It cannot be written; what was there is there still.
        """
        head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        content = b"".join((_FORMAT, self._sign(path, head, state), b"\n", head, state))
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, content, is_durable=False)

    def read(self, path: Path, *, signed_as: Path | None = None) -> tuple[dict[str, Any], bytes]:
        """Return the header and the state; `signed_as` says under which path it was written.

        Raises:
            FileNotFoundError: There is none.
            StateLost: It cannot be read, or somebody else wrote it.
        """
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StateLost(f"The file {path.name} cannot be read: {error.strerror}.") from error
        form, signature, head, state = _parts(content)
        if form != _FORMAT or not hmac.compare_digest(
            signature, self._sign(signed_as or path, head, state)
        ):
            raise StateLost(f"The file {path.name} was changed by somebody else.")
        header: dict[str, Any] = json.loads(head)
        return header, state

    def header(self, path: Path) -> dict[str, Any] | None:
        """Return the header alone, not verified: to show, never to go by."""
        try:
            with path.open("rb") as file:
                file.readline(100)
                file.readline(100)
                header: dict[str, Any] = json.loads(file.readline(_MAX_HEADER_BYTES))
        except (OSError, ValueError, RecursionError):
            return None
        return header if isinstance(header, dict) else None

    def _sign(self, path: Path, head: bytes, state: bytes) -> bytes:
        """Bind what is kept to its place: a file is good for one session only."""
        place = f"{path.parent.name}/{path.name}\n".encode()
        digest = hmac.new(read_key(self._key_file), place + head, hashlib.sha256)
        digest.update(hashlib.sha256(state).digest())
        return digest.hexdigest().encode()


def _parts(content: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    ends = [0]
    for _ in range(3):
        ends.append(content.find(b"\n", ends[-1]) + 1)
        if not ends[-1]:
            return b"", b"", b"", b""
    form, signature, head = (content[a:b] for a, b in pairwise(ends))
    return form, signature.rstrip(b"\n"), head, content[ends[-1] :]
