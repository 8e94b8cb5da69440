"""MontyChecker: the interpreter's own type checker, kept warm in a process of its own.

A first check costs some 20 ms and later ones under one, so one session serves all checks. It is fed
each program behind an import that the host refuses: the checker has read the whole program by then,
and not one statement of it has run.
"""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import anyio
import pydantic_monty as monty

from toolfold.errors import CodeRejected
from toolfold.sandbox.sandbox import Diagnostic, GuestModule, Modules, Verdict
from toolfold.sandbox.threads import Threads, native_modules

_GATE: Final = "_toolfold_gate"
_CHECKS_PER_SESSION: Final = 500  # a session's memory grows with each check
_QUOTED_NAME: Final = re.compile(r"`(\w+)`")

# Builtins that the interpreter runs and its own stubs lack.
_UNDECLARED: Final = frozenset(
    {
        *("filter", "format", "getattr", "hasattr", "map", "open", "setattr"),
        *("FileExistsError", "FileNotFoundError", "ImportError", "IsADirectoryError"),
        *("ModuleNotFoundError", "NotADirectoryError", "PermissionError", "UnboundLocalError"),
        *("UnicodeDecodeError", "UnicodeEncodeError"),
    }
)


class MontyChecker:
    """Checks programs, one at a time."""

    def __init__(
        self, *, time_limit_s: float, memory_bytes: int, binary: Path | None = None
    ) -> None:
        self._time_limit_s = time_limit_s
        self._memory_bytes = memory_bytes
        self._modules: Modules = {}
        self._session: monty.MontySession | None = None
        self._checks = 0
        self._turn = anyio.Lock(fast_acquire=True)
        self._threads = Threads(1)
        self._pool = monty.Monty(
            binary_path=binary, min_processes=0, max_processes=1, request_timeout=time_limit_s
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the checker's process for the length of this context."""
        with self._threads:
            await self._threads.run(self._pool.__enter__)
            try:
                yield
            finally:
                await self._threads.run(self._close)

    def use(self, modules: Modules) -> None:
        """Check against `modules` from now on."""
        self._modules = {**modules, _GATE: _gate}
        self._checks = _CHECKS_PER_SESSION

    async def check(self, source: str, *, prelude: str = "") -> Verdict:
        """Check `source`, with the names that `prelude` declares already there.

        Raises:
            CodeRejected: The check needs more time or memory than it may have.
        """
        async with self._turn:
            # A thread cannot be cancelled, so this waits; the time limit bounds it.
            return await self._threads.run(self._check, source, prelude)

    async def warm(self) -> None:
        """Pay the cost of the first check now."""
        await self.check("")

    def _check(self, source: str, prelude: str) -> Verdict:
        before = f"import {_GATE}\n{prelude}"
        if not before.endswith("\n"):
            before += "\n"
        try:
            self._feed_twice(before + source)
        except monty.MontyTypingError as error:
            return Verdict(diagnostics=_diagnostics(error.display(), before.count("\n")))
        except monty.MontyCrashedError as error:
            raise CodeRejected(
                f"The code could not be checked within {self._time_limit_s:g} s. "
                "Split it into smaller runs."
            ) from error
        except (monty.MontyRuntimeError, monty.MontySyntaxError) as error:
            return self._refused(error)
        return Verdict()

    def _feed_twice(self, code: str) -> None:
        """As `_feed`; a process that was killed from outside is not the code's fault."""
        try:
            self._feed(code)
        except monty.MontyCrashedError as error:
            self._session = None
            if error.timed_out:
                raise
            self._feed(code)

    def _feed(self, code: str) -> None:
        """Have `code` checked, and refuse the import that it begins with."""
        session = self._ready_session()
        snapshot = session.feed_start(code, print_callback=_no_output)
        while isinstance(snapshot, monty.FunctionSnapshot):
            if snapshot.function_name == "import":
                snapshot = snapshot.resume({"exc_type": "SystemExit"})
            else:
                snapshot = snapshot.resume_auto()

    def _refused(self, error: monty.MontyRuntimeError | monty.MontySyntaxError) -> Verdict:
        message = error.display("type-msg")
        if message.startswith("SystemExit"):
            return Verdict()
        if message.startswith("MemoryError"):
            self._drop_session()
            raise CodeRejected(
                f"The code could not be checked within {self._memory_bytes >> 20} MB of memory. "
                "Split it into smaller runs."
            ) from error
        return Verdict(refusal=message)

    def _ready_session(self) -> monty.MontySession:
        self._checks += 1
        if self._session is None or self._checks > _CHECKS_PER_SESSION:
            self._drop_session()
            self._checks = 1
            self._session = self._pool.checkout(
                type_check=True,
                type_check_format="json",
                limits={"max_memory": self._memory_bytes, "max_suspensions": 1_000_000},
                external_modules=native_modules(self._modules),
            )
            self._session.__enter__()
        return self._session

    def _drop_session(self) -> None:
        if self._session is not None:
            with suppress(monty.MontyError):
                self._session.__exit__(None, None, None)
            self._session = None

    def _close(self) -> None:
        self._drop_session()
        self._pool.__exit__(None, None, None)


def _gate() -> GuestModule:
    return GuestModule(functions=(), stub="")


def _no_output(_stream: str, _text: str) -> None:
    """Nothing runs, so nothing is printed."""


def _diagnostics(report: str, offset: int) -> tuple[Diagnostic, ...]:
    found: list[dict[str, Any]] = json.loads(report)
    return tuple(
        Diagnostic(
            rule=entry["code"],
            message=entry["message"],
            line=entry["location"]["row"] - offset,
            column=entry["location"]["column"],
        )
        for entry in found
        if not _is_undeclared(entry)
    )


def _is_undeclared(entry: dict[str, Any]) -> bool:
    return entry["code"] == "unresolved-reference" and not _UNDECLARED.isdisjoint(
        _QUOTED_NAME.findall(entry["message"])
    )
