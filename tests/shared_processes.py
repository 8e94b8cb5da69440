"""What every app of a test process would start or load anew, once for all of them.

An app has a model and a process that forks guests from its start to its end, and neither knows
which app it serves. What is said of them stands in `test_embedding.py` and below `sandbox`, where
each has its own.
"""

from functools import cache
from threading import Lock
from typing import Any

import pytest

import toolfold.app
from toolfold.embedding import BuiltinEmbedder
from toolfold.sandbox.cpython import pool
from toolfold.sandbox.cpython.pool import Level, Zygote

_started: dict[tuple[Any, ...], "SharedZygote"] = {}
_starting = Lock()


class SharedZygote(Zygote):
    """One that stays when the app that uses it ends."""

    is_started = False

    def close(self) -> None:
        if not (self.is_started and self.is_alive):
            super().close()

    def kill(self) -> None:
        self.is_started = False
        super().kill()


def zygote(level: Level, *, cpu_s: int) -> SharedZygote:
    """Return one that is there already, or start it."""
    like = (level, cpu_s, pool._BOOT)
    with _starting:
        found = _started.get(like)
        if found is None or not found.is_alive:
            found = _started[like] = SharedZygote(level, cpu_s=cpu_s)
            found.is_started = True
        return found


def share() -> None:
    """Have all apps use one model and one zygote of each kind."""
    toolfold.app.BuiltinEmbedder = cache(BuiltinEmbedder)  # type: ignore[assignment, misc]
    pool.Zygote = zygote  # type: ignore[assignment, misc]


def unshare_zygotes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "Zygote", Zygote)


def stop() -> None:
    while _started:
        _started.popitem()[1].kill()
