"""What guest code calls: tools, as functions of modules; and sleeping, which the host does."""

import asyncio
import builtins
import sys
import time
import types
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from typing import Any, Final, NoReturn

from toolfold.errors import ValueRejected
from toolfold.sandbox.cpython import frames
from toolfold.sandbox.cpython.bridge import Bridge
from toolfold.sandbox.cpython.frames import write_json
from toolfold.sandbox.cpython.loop import PendingCall
from toolfold.sandbox.cpython.plain import to_send
from toolfold.sandbox.values import ValueBudget

PROGRAM: Final = "<python-input-"
"""How the file names of guest programs begin."""

_longest_sleep_s: Final = 1e8


class CallSites:
    """Where in guest programs calls are, and which of them are awaited."""

    def __init__(self) -> None:
        self.program = ""
        """The file name of the program that runs."""
        self._awaited: dict[str, frozenset[tuple[int, int]]] = {}
        self._known: dict[tuple[int, int], tuple[types.CodeType, bool]] = {}

    def add(self, file_name: str, awaited: frozenset[tuple[int, int]]) -> None:
        """Begin a program: note which of its calls are awaited, by line and column."""
        self.program = file_name
        self._awaited[file_name] = awaited

    def is_awaited(self, frame: types.FrameType) -> bool:
        """Whether the call that `frame` is making is one of them."""
        code = frame.f_code
        awaited = self._awaited.get(code.co_filename)
        if not awaited:
            return False
        key = (id(code), frame.f_lasti)
        known = self._known.get(key)
        if known is None:
            position = list(code.co_positions())[frame.f_lasti // 2]
            # Keeping the code keeps its number from being given to another.
            known = self._known[key] = (code, (position[0], position[2]) in awaited)
        return known[1]


def line_of(frame: types.FrameType | None, program: str) -> int:
    """Return the line of a program that led to `frame`; 0 if none did."""
    while frame is not None and frame.f_code.co_filename != program:
        frame = frame.f_back
    return frame.f_lineno if frame is not None else 0


class HostFunctions:
    """Makes functions whose calls the host answers."""

    def __init__(self, bridge: Bridge, sites: CallSites, budget: ValueBudget) -> None:
        self._bridge = bridge
        self._sites = sites
        self.budget = budget

    def function(self, path: str) -> Callable[..., Any]:
        """Return the function that guest code calls as `path`."""

        def call(*args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)  # noqa: SLF001
            is_awaited, line = self._sites.is_awaited(frame), line_of(frame, self._sites.program)
            content = self._content(path, args, kwargs, line)
            call_id = bridge.next_id()
            pending = PendingCall(bridge, call_id) if is_awaited else None
            bridge.send_frame(frames.call_frame(call_id, is_awaited, line, content))
            return bridge.wait_for(call_id) if pending is None else pending

        bridge = self._bridge
        call.__name__ = call.__qualname__ = path.rpartition(".")[2]
        call.__module__ = path.rpartition(".")[0] or "builtins"
        return call

    def _content(
        self, path: str, args: tuple[Any, ...], kwargs: dict[str, Any], line: int
    ) -> bytes:
        budget = self.budget
        try:
            sent = [to_send(value, budget) for value in args]
            named = {name: to_send(value, budget) for name, value in kwargs.items()}
        except ValueRejected as error:
            self.refuse(f"{path} was not called. {error}", line)
        content = write_json([path, sent, named])
        if len(content) > budget.size_bytes and len(content) > frames.largest(budget.size_bytes):
            self.refuse(f"{path} was not called. Its arguments are too large.", line)
        return content

    def refuse(self, message: str, line: int) -> NoReturn:
        """End the run, because it would send what cannot be sent."""
        self._bridge.send(frames.REFUSE, write_json([message[:1_000], line]))
        while True:
            time_sleep(3600)

    def ask(self, kind: int, *items: object) -> Any:
        """Ask the host for anything else, and wait for the answer."""
        call_id = self._bridge.next_id()
        self._bridge.send(kind, write_json([call_id, *items]))
        return self._bridge.wait_for(call_id)

    def ask_file(self, *question: Any) -> Any:
        """Ask the host for a file."""
        *head, content = question
        call_id = self._bridge.next_id()
        self._bridge.send(frames.FILE, frames.write_question([call_id, *head], content))
        return self._bridge.wait_for(call_id)

    def sleep(self, seconds: Any, /) -> None:
        """Stand in for `time.sleep`: the host keeps the time, which is not the code's own."""
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        if _checked(seconds) > 0:
            self.ask(frames.SLEEP, _checked(seconds))

    async def sleep_awaited(self, delay: float, result: Any = None) -> Any:
        """Stand in for `asyncio.sleep`."""
        seconds = _checked(delay)
        if seconds <= 0:
            await asyncio_sleep(0)
            return result
        call_id = self._bridge.next_id()
        pending = PendingCall(self._bridge, call_id)
        self._bridge.send(frames.SLEEP, write_json([call_id, seconds]))
        await pending
        return result


def _checked(seconds: Any) -> float:
    number = float(seconds + 0)
    if number != number:
        raise ValueError("Invalid value NaN (not a number)")
    return min(number, _longest_sleep_s)


time_sleep = time.sleep
asyncio_sleep = asyncio.sleep


class ToolModules:
    """Finds the modules that the host has, and asks for their functions when they are imported."""

    def __init__(self, caller: HostFunctions) -> None:
        self.names: set[str] = set()
        self._caller = caller

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        """Find a module of the host."""
        return ModuleSpec(name, self) if path is None and name in self.names else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to the import system."""

    def exec_module(self, module: types.ModuleType) -> None:
        """Give it its functions."""
        name = module.__name__
        for function in self._caller.ask(frames.IMPORT, name):
            setattr(module, function, self._caller.function(f"{name}.{function}"))


def offer(caller: HostFunctions, modules: Sequence[str], names: Sequence[str]) -> None:
    """Let guest code import `modules` and call `names`, besides what it could so far."""
    finder = next((each for each in sys.meta_path if isinstance(each, ToolModules)), None)
    if finder is None:
        finder = ToolModules(caller)
        sys.meta_path.insert(0, finder)
    finder.names.update(modules)
    for name in names:
        if not hasattr(builtins, name):
            setattr(builtins, name, caller.function(name))


def install(caller: HostFunctions) -> None:
    """Let the host sleep for guest code."""
    time.sleep = caller.sleep
    asyncio.sleep = asyncio.tasks.sleep = caller.sleep_awaited
