"""The log of hooks: why one of them failed, and how long it took where that is wanted."""

import os
import time

from toolfold.relay.paths import DaemonPaths, NoUsableDirectory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_MAX_LOG_BYTES = 1_000_000
_MAX_LINE = 1_000


class HookLog:
    """Writes lines about one hook. Where that is not possible, nobody is troubled with it."""

    def __init__(self, environ: "Mapping[str, str]", hook: str) -> None:
        self._environ = environ
        self._hook = hook

    def failed(self, where: str, reason: str) -> None:
        """Write why something did not work."""
        self._write(f"{where} failed: {reason}")

    def remarked(self, where: str, words: str) -> None:
        """Write what did not work, and was done without."""
        self._write(f"{where} remarks: {words}")

    def served(self, way: str, seconds: float, answer: "dict[str, Any]") -> None:
        """Write who answered, and what that cost."""
        figures = {key: answer[key] for key in ("notes", "tokens", "saved") if key in answer}
        told = "".join(f" {key}={value}" for key, value in figures.items())
        self._write(f"{way} served: ms={seconds * 1000:.1f}{told}")

    def _write(self, words: str) -> None:
        try:
            path = log_path(self._environ)
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            if os.path.exists(path) and os.path.getsize(path) > _MAX_LOG_BYTES:
                os.replace(path, f"{path}.1")
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(file, f"{_now()} {self._hook}: {_line(words)}\n".encode())
            finally:
                os.close(file)
        except (OSError, NoUsableDirectory):
            return


def log_path(environ: "Mapping[str, str]") -> str:
    """Return where the log is.

    Raises:
        Misplaced: There is no place for it.
    """
    return os.path.join(os.path.dirname(DaemonPaths(environ).log), "hooks.log")


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")


def _line(words: str) -> str:
    """Return words on one line, whatever is in them."""
    shown = " ".join(words[:_MAX_LINE].split())
    return "".join(char if char.isprintable() else "?" for char in shown)
