"""A time limit that stands still while a person is asked."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import anyio


class PausableClock:
    """How long something may take, from now on; waiting for a person does not count."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._left_s = limit_s
        self._since = anyio.current_time()
        self._pauses = 0
        self._scopes: list[anyio.CancelScope] = []

    @contextmanager
    def limiting(self) -> Iterator[anyio.CancelScope]:
        """Cancel what runs in this context when the time is over; its scope tells."""
        with anyio.CancelScope() as scope:
            self.attach(scope)
            yield scope

    def attach(self, scope: anyio.CancelScope) -> None:
        """Cancel `scope` when the time is over."""
        self._scopes.append(scope)
        scope.deadline = self._deadline

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stand still for the length of this context, and of any other that overlaps it."""
        if not self._pauses:
            self._left_s -= anyio.current_time() - self._since
        self._pauses += 1
        self._move()
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                self._since = anyio.current_time()
            self._move()

    def restart(self) -> None:
        """Give the whole time again."""
        self._left_s = self.limit_s
        self._since = anyio.current_time()
        self._move()

    @property
    def _deadline(self) -> float:
        return math.inf if self._pauses else self._since + self._left_s

    def _move(self) -> None:
        for scope in self._scopes:
            scope.deadline = self._deadline
