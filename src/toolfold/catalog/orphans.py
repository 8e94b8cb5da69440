"""Servers that outlived a process of ours which was killed.

A server sees its input end when we die, and ends too. One that is stuck in a call does not look. So
we write down which processes we started, and the next daemon ends those of them that are still
there though we are gone. What servers started themselves is none of our business. Only where
`/proc` tells of processes.
"""

import json
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio

from toolfold.storage.files import replace_file

_log = logging.getLogger(__name__)

_GRACE_S: Final = 2.0


class Children:
    """The processes that this one has started, kept in a file for as long as it lives."""

    def __init__(self, state: Path) -> None:
        self._path = self.directory(state) / f"{os.getpid()}.json"

    @staticmethod
    def directory(state: Path) -> Path:
        """Return where such files are kept."""
        return state / "children"

    @asynccontextmanager
    async def remembered(self) -> AsyncIterator[None]:
        """Forget them when this context ends: whoever ends in order ends them itself."""
        try:
            yield
        finally:
            self._forget()

    def _forget(self) -> None:
        self._path.unlink(missing_ok=True)

    def note(self) -> None:
        """Write down which there are now."""
        ours = {str(pid): _born(pid) for pid in _children()}
        about = {"owner": [os.getpid(), _born(os.getpid()), _namespace()], "children": ours}
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._path, json.dumps(about).encode())
        except OSError as error:
            _log.warning("Servers could not be written down: %s", error)


def living_orphans(directory: Path) -> list[int]:
    """Return the processes that outlived the toolfold which started them."""
    found = [_orphans_in(path) or {} for path in _files_in(directory)]
    return sorted(pid for each in found for pid, born in each.items() if _born(pid) == born)


async def end_orphans(directory: Path) -> None:
    """Ask those to end whose owner is gone, and make those that do not."""
    for path in _files_in(directory):
        orphans = _orphans_in(path)
        if orphans is None:
            continue
        for kind in (signal.SIGTERM, signal.SIGKILL):
            for pid in [pid for pid, born in orphans.items() if _born(pid) == born]:
                _log.warning("Process %d outlived the toolfold that started it: ending it.", pid)
                _signal(pid, kind)
            await anyio.sleep(_GRACE_S)
        path.unlink(missing_ok=True)


def _files_in(directory: Path) -> list[Path]:
    return list(directory.glob("*.json"))


def _orphans_in(path: Path) -> dict[int, str] | None:
    """Return the processes that a file tells of; None while their owner may live."""
    try:
        about = json.loads(path.read_bytes())
        pid, born, namespace = about["owner"]
        if namespace != _namespace() or _born(pid) == born:
            return None
        return {int(child): str(when) for child, when in about["children"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _children() -> list[int]:
    found: list[int] = []
    for path in Path("/proc/self/task").glob("*/children"):
        try:
            found += map(int, path.read_text().split())
        except OSError:
            continue  # a thread that has just ended
    return found


def _signal(pid: int, kind: signal.Signals) -> None:
    try:
        os.kill(pid, kind)
    except (ProcessLookupError, PermissionError):
        return


def _born(pid: int) -> str:
    """Return when a process began, in the kernel's ticks; "" when it does not live."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in {"Z", "X"} else fields[19]


def _namespace() -> str:
    """Return in which numbering of processes we are."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
