"""Threads that are kept, for what waits for a worker process.

anyio's own way into a thread looks through limits and scopes, and has the loop turn twice, before
anything is done: that takes several times as long as the way itself.
"""

import asyncio
import faulthandler
import math
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, TypeVar, TypeVarTuple

import anyio
import pydantic_monty as monty

from toolfold.sandbox.sandbox import Modules

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")


class Threads:
    """So many threads at most, each begun when it is first needed, for the length of a context."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> "Threads":
        self._pool = ThreadPoolExecutor(self._most)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        assert self._pool is not None  # noqa: S101
        self._pool.shutdown(wait=False)

    def start(self, work: Callable[[*_Ts], _T], *args: *_Ts) -> "asyncio.Future[_T]":
        """Begin something in a thread."""
        assert self._pool is not None, "not running"  # noqa: S101
        return asyncio.get_running_loop().run_in_executor(self._pool, work, *args)

    async def run(self, work: Callable[[*_Ts], _T], *args: *_Ts) -> _T:
        """Do something in a thread, and wait for its end: cancelling waits too."""
        ended = self.start(work, *args)
        await finished(ended)
        return ended.result()


async def finished(ended: "asyncio.Future[_T]") -> None:
    """Wait for the end of what a thread does, which nothing can cut short."""
    if not ended.done():
        with anyio.CancelScope(shield=True):
            await asyncio.wait([ended])


NativeModules = dict[str, monty.ExternalModule | Callable[[], monty.ExternalModule]]


def native_modules(modules: Modules) -> NativeModules:
    """Return `modules` as the interpreter takes them: made when first imported."""
    return {name: _ModuleFactory(make) for name, make in modules.items()}


class _ModuleFactory:
    """Makes the interpreter's module on first import."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: tuple[Any, monty.ExternalModule] | None = None

    def __call__(self) -> monty.ExternalModule:
        module = self._make()
        if self._made is None or self._made[0] is not module:
            functions = dict.fromkeys(module.functions, _never_called)
            self._made = module, monty.ExternalModule(functions, stubs=module.stub)
        return self._made[1]


def _never_called(*_: object, **__: object) -> None:
    """Stand for a host function. Calls reach `Drive` as snapshots instead."""
    raise AssertionError


# End a host that stands still.
#
# The interpreter's client turns guest values into Python objects before anybody can look at them.
# It takes hours to hash a set of nested tuples, in C and with the interpreter lock held, so that
# no thread of ours can step in. The timer of `faulthandler` needs no lock. The event loop winds
# it up again and again; when the loop stands still for too long, the process ends, and whoever
# needs it starts another.


@asynccontextmanager
async def ending_when_stalled(stall_s: float) -> AsyncIterator[None]:
    """End this process if its event loop stands still for `stall_s` within this context."""

    async def wind_up() -> None:
        while True:
            faulthandler.dump_traceback_later(math.ceil(stall_s), exit=True)
            await anyio.sleep(stall_s / 4)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wind_up)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            tasks.cancel_scope.cancel()
