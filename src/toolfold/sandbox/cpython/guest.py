"""What runs inside: take programs from the host, run them, say what came of them.

Nothing here is trusted by the host. It is written for code that means well, and bounds nothing:
the walls and the host do. Standard library only.
"""

import ast
import asyncio
import atexit
import builtins
import inspect
import io
import linecache
import os
import resource
import sys
import threading
import traceback
import types
import warnings
import weakref
from concurrent.futures import thread as pools
from contextlib import suppress
from typing import Any, Final

from toolfold.errors import ValueRejected
from toolfold.sandbox.cpython import calls, files, frames
from toolfold.sandbox.cpython.bridge import Bridge, GuestLoop, run
from toolfold.sandbox.cpython.calls import PROGRAM, CallSites, HostFunctions, to_show
from toolfold.sandbox.cpython.frames import write_json
from toolfold.sandbox.cpython.hostfile import FileHost
from toolfold.sandbox.values import ValueBudget

_HERE: Final = os.path.dirname(__file__)
_MESSAGE_CHARS: Final = 4_000
_TRACEBACK_CHARS: Final = 8_000
_FRAMES: Final = 30  # how deep our own functions are below the program's first line

GuestError = tuple[str, str, str, int]
"""Kind, message, traceback, line."""


_REHEARSAL: Final = """
import asyncio
class Rehearsal(Exception): pass
async def rehearse():
    await asyncio.sleep(0)
    return [f"{number:>3}" for number in range(3)]
print({"a": 1}, await rehearse())
raise Rehearsal("all is well")
"""


def serve(descriptor: int, *, base_bytes: int) -> None:
    """Run what the host sends, until it is gone."""
    bridge = Bridge(descriptor)
    guest = _Guest(bridge)
    guest.rehearse()
    bridge.send(frames.READY)
    _, opening = bridge.receive()
    guest.open(opening[0], base_bytes)
    while True:
        program = bridge.next_program()
        number, source, awaited, modules, names = program
        guest.offer(modules, names)
        bridge.send(frames.END, guest.run(number, source, awaited))


class _Guest:
    """One session: the variables of its programs, and what they reach."""

    def __init__(self, bridge: Bridge) -> None:
        self._loop = GuestLoop(bridge)
        asyncio.events.new_event_loop = asyncio.new_event_loop = lambda: GuestLoop(bridge)
        asyncio.set_event_loop(self._loop)
        asyncio.run = run
        self._budget = ValueBudget(nodes=1_000, depth=10, size_bytes=10_000)
        self._sites = CallSites()
        self._output = _Output(bridge)
        self._caller = HostFunctions(bridge, self._sites, self._budget)
        self._host: FileHost | None = None
        self._reserve = bytearray(1 << 20)
        self._main = types.ModuleType("__main__")
        for name in ("exit", "quit"):
            setattr(builtins, name, sys.exit)
        sys.argv = [""]

    def rehearse(self) -> None:
        """Run something, so that what every program needs is at hand when one comes.

        Memory is shared with other guests until it is first written to, and copying takes time.
        """
        _forget_exits()  # those of the libraries: they are for the end of a process
        self.run(0, _REHEARSAL, frozenset())
        if numpy := sys.modules.get("numpy"):
            numpy.random.seed()  # as `random` does by itself after a fork

    def open(self, told: dict[str, Any], base_bytes: int) -> None:
        """Begin the session: take its limits, and what the host offers."""
        memory = base_bytes + told["memory_bytes"]
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        sys.setrecursionlimit(2 * told["recursion_depth"] + _FRAMES)
        self._budget = self._caller.budget = ValueBudget(**told["budget"])
        self._output.limit = told["output_bytes"]
        calls.install(self._caller)
        if told["has_files"]:
            self._host = FileHost(self._caller.ask_file)
            files.install(self._host)
        self._main = sys.modules["__main__"] = types.ModuleType("__main__")
        self._main.__builtins__ = builtins  # type: ignore[attr-defined]

    def offer(self, modules: list[str], names: list[str]) -> None:
        """Let the next program import `modules` and call `names`."""
        calls.offer(self._caller, modules, names)

    def run(self, number: int, source: str, awaited: frozenset[tuple[int, int]]) -> bytes:
        """Run a program to its end, and return what came of it."""
        file_name = f"{PROGRAM}{number}>"
        lines = source.splitlines(keepends=True)
        linecache.cache[file_name] = (len(source), None, lines, file_name)
        self._sites.add(file_name, awaited)
        self._output.attach()
        shown, failure = None, None
        try:
            try:
                value = self._execute(source, file_name)
            finally:
                self._leave()
            shown = to_show(value, self._budget)
        except ValueRejected as error:
            failure = ("value", f"The value of the last line cannot be shown. {error}", "", 0)
        except SystemExit as error:
            if error.code not in (None, 0):
                failure = _failure(error, file_name)
        except MemoryError as error:
            self._reserve = bytearray()
            failure = _failure(error, file_name)
        except BaseException as error:  # noqa: BLE001  # whatever it is, it is the guest's
            failure = _failure(error, file_name)
        payload = write_json([shown, failure, self._output.finish()])
        if len(payload) > frames.largest(self._budget.size_bytes):
            failure = ("value", "The value of the last line is too large to be shown.", "", 0)
            payload = write_json([None, failure, self._output.finish()])
        return payload

    def _leave(self) -> None:
        """Do what Python does before it ends: wait for threads, then call what wants to be.

        The process goes on for the next program, so both must work once more.
        """
        _await_threads()
        self._loop.let_go_of_threads()
        atexit._run_exitfuncs()  # noqa: SLF001
        _forget_exits()
        if self._host is not None:
            self._host.flush()

    def _execute(self, source: str, file_name: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            tree = ast.parse(source, file_name)
            last = tree.body[-1] if tree.body else None
            if isinstance(last, ast.Expr):
                del tree.body[-1]
            body = _compile(tree, file_name, "exec")
            tail = None
            if isinstance(last, ast.Expr):
                tail = _compile(ast.Expression(last.value), file_name, "eval")
        value = None
        parts = [body] if tail is None else [body, tail]
        if any(code.co_flags & inspect.CO_COROUTINE for code in parts):
            asyncio.set_event_loop(self._loop)
            value = self._loop.run_until_complete(self._evaluate_in_loop(parts))
        else:
            for code in parts:
                value = eval(code, self._main.__dict__)  # noqa: S307  # the walls are for that
        return None if tail is None else value

    async def _evaluate_in_loop(self, parts: list[types.CodeType]) -> Any:
        value = None
        for code in parts:
            value = eval(code, self._main.__dict__)  # noqa: S307  # the walls are for that
            if code.co_flags & inspect.CO_COROUTINE:
                value = await value
        return value


def _await_threads() -> None:
    """Wait for every thread that is no daemon, those of executors last: others may use them."""
    ours = {threading.current_thread(), threading.main_thread()}
    while True:
        left = [each for each in threading.enumerate() if not each.daemon and each not in ours]
        workers: Any = pools._threads_queues  # noqa: SLF001
        if plain := [each for each in left if each not in workers]:
            for thread in plain:
                thread.join()
        elif left:
            try:
                pools._python_exit()  # noqa: SLF001
            finally:
                pools._shutdown = False  # noqa: SLF001
        else:
            return


def _forget_exits() -> None:
    atexit._clear()  # noqa: SLF001
    finalize: Any = weakref.finalize
    finalize._shutdown = finalize._registered_with_atexit = False  # noqa: SLF001


def _compile(tree: ast.AST, file_name: str, mode: str) -> types.CodeType:
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code: types.CodeType = compile(tree, file_name, mode, flags=flags, dont_inherit=True)  # type: ignore[call-overload]
    return code


class _Output(io.RawIOBase):
    """Takes what is printed to the host, up to a limit; the rest is counted and dropped."""

    def __init__(self, bridge: Bridge) -> None:
        self.limit = 0
        self._bridge = bridge
        self._room = 0
        self._dropped = 0

    def attach(self) -> None:
        """Become standard output and standard error."""
        self._room, self._dropped = self.limit, 0
        for name in ("stdout", "stderr"):
            buffer = io.BufferedWriter(self, frames.OUTPUT_BYTES)
            text = io.TextIOWrapper(buffer, "utf-8", "replace", line_buffering=True)
            setattr(sys, name, text)
            setattr(sys, f"__{name}__", text)

    def finish(self) -> int:
        """Send what is left, and return how many characters were dropped."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # the guest may have put anything there
                stream.flush()
        return self._dropped

    def close(self) -> None:
        """Stay open: whatever the guest does to its standard output, the next program has one."""

    def writable(self) -> bool:
        """Say yes."""
        return True

    def write(self, data: Any, /) -> int:
        """Send bytes as far as there is room."""
        content = bytes(data)
        kept = content[: self._room]
        self._room -= len(kept)
        if len(kept) < len(content):
            self._dropped += len(content[len(kept) :].decode("utf-8", "ignore"))
        for start in range(0, len(kept), frames.OUTPUT_BYTES):
            self._bridge.send(frames.OUTPUT, kept[start : start + frames.OUTPUT_BYTES])
        return len(content)


def _failure(error: BaseException, file_name: str) -> GuestError:
    kind = "memory" if isinstance(error, MemoryError) else "error"
    try:
        told = traceback.TracebackException.from_exception(error, compact=True)
        _leave_out_ours(told)
        message = "".join(told.format_exception_only())
        if isinstance(error, SyntaxError):
            message = message.rstrip().rpartition("\n")[2]
        text = "".join(told.format())
    except BaseException:  # noqa: BLE001  # its words are the guest's too, and may raise
        message, text = type(error).__name__, ""
    line = error.lineno if isinstance(error, SyntaxError) else _line(error, file_name)
    return kind, message.strip()[:_MESSAGE_CHARS], text[-_TRACEBACK_CHARS:], line or 0


def _leave_out_ours(told: traceback.TracebackException | None) -> None:
    """Leave out the frames of this package, which nobody can do anything about."""
    while told is not None:
        told.stack[:] = [frame for frame in told.stack if not frame.filename.startswith(_HERE)]
        told = told.__cause__ or told.__context__


def _line(error: BaseException, file_name: str) -> int:
    """Return the last line of the program on the way to the error; 0 if there is none."""
    line = 0
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == file_name:
            line = number
    return line
