"""What guest code calls: tools, as functions of modules; and sleeping, which the host does."""

import asyncio
import builtins
import enum
import fractions
import sys
import time
import types
import uuid
from array import array
from collections import deque
from collections.abc import Callable, ItemsView, KeysView, Mapping, Sequence, ValuesView
from importlib.machinery import ModuleSpec
from typing import Any, Final, NoReturn

from toolfold.errors import ValueRejected
from toolfold.jsontypes import Json
from toolfold.sandbox.cpython import frames
from toolfold.sandbox.cpython.bridge import Bridge, PendingCall
from toolfold.sandbox.cpython.frames import write_json
from toolfold.sandbox.values import ValueBudget, Walk, is_light

# Values of guest code as plain JSON, made inside the guest. Standard library only.
#
# The host walks what it receives once more: this walk is for code that means well, and says in
# words what cannot be sent.

_LISTS: Final = (list, deque, range, array, KeysView, ValuesView, ItemsView)
_TEXTS: Final = (uuid.UUID, fractions.Fraction, complex)
_CODE: Final = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)


def to_send(value: object, budget: ValueBudget) -> Json:
    """Return `value` as a tool can receive it.

    Raises:
        ValueRejected: It is over budget, or holds what JSON cannot carry.
    """
    return value if is_light(value) else GuestWalk(budget, strict=True).visit(value, 0)


def to_show(value: object, budget: ValueBudget) -> Json:
    """As `to_send`, but what JSON cannot carry becomes its description."""
    return value if is_light(value) else GuestWalk(budget, strict=False).visit(value, 0)


class GuestWalk(Walk):
    """One pass over one value of real Python."""

    def __init__(self, budget: ValueBudget, *, strict: bool) -> None:
        super().__init__(budget, strict=strict)
        self._open: set[int] = set()

    def _uncommon(self, value: Any, depth: int) -> Json:
        if isinstance(value, enum.Enum):
            return self.visit(value.value, depth)
        if isinstance(value, dict):
            return self._mapping(value, depth)
        if isinstance(value, _LISTS):
            return self._sequence(value, depth)
        if isinstance(value, int):
            return self.visit(int(value), depth)
        if isinstance(value, float):
            return self.visit(float(value), depth)
        if isinstance(value, bytearray | memoryview):
            return self.visit(bytes(value), depth)
        return self._rare(value, depth)

    def _rare(self, value: Any, depth: int) -> Json:
        if isinstance(value, _TEXTS):
            return self.visit(str(value), depth)
        if type(value).__name__ == "NaTType":  # of pandas: it takes itself for a date
            return self._foreign("NaT, which JSON cannot carry", "NaT")
        return super()._uncommon(value, depth)

    def _mapping(self, value: Mapping[object, object], depth: int) -> Json:
        if id(value) in self._open:
            return self._endless("{...}")
        self._open.add(id(value))
        try:
            return super()._mapping(value, depth)
        finally:
            self._open.discard(id(value))

    def _sequence(self, value: Any, depth: int) -> Json:
        if id(value) in self._open:
            return self._endless("[...]")
        self._open.add(id(value))
        try:
            return super()._sequence(value, depth)
        finally:
            self._open.discard(id(value))

    def _endless(self, shown: str) -> Json:
        return self._foreign("a value that contains itself", shown)

    def _object(self, value: Any, depth: int) -> Json:
        if type(value).__module__.partition(".")[0] in {"numpy", "pandas"}:
            return self._numeric(value, depth)
        if isinstance(value, BaseException):
            return super()._object(value, depth)
        if isinstance(value, _CODE):
            return self._foreign_code(value)
        if isinstance(value, Mapping):
            return self._mapping(dict(value), depth)
        attributes = _attributes(value)
        if self._strict and attributes:
            return self._mapping(attributes, depth)
        name = type(value).__name__
        if self._strict:
            return self._foreign(f"<{name}>, which is not data", "")
        if _describes_itself(value):
            return self._text(str(value))
        return {name: self._mapping(attributes, depth)} if attributes is not None else f"<{name}>"

    def _numeric(self, value: Any, depth: int) -> Json:
        """Arrays are lists and numbers are numbers; a table is shown, and sent by its records."""
        if hasattr(value, "tolist") and hasattr(value, "dtype") and hasattr(value, "ndim"):
            if getattr(value, "size", 0) > self._budget.nodes:
                if not self._strict:
                    return self._text(str(value))
                raise ValueRejected(
                    f"The array holds more than {self._budget.nodes:,} numbers. Send fewer."
                )
            if type(value).__module__.startswith("numpy"):
                plain = value.tolist()
                return self._text(str(value)) if plain is value else self.visit(plain, depth)
        name = type(value).__name__
        return self._foreign(
            f"a {name}; convert it, such as .to_dict('records') or .tolist()", str(value)
        )

    def _foreign_code(self, value: Any) -> Json:
        shown = f"<{getattr(value, '__name__', type(value).__name__)}>"
        return self._foreign(f"{shown}, which is not data", shown)


def _attributes(value: object) -> dict[object, object] | None:
    """Return what an object of a guest's class holds; None for what has no attributes at all."""
    found: dict[object, object] = dict(getattr(value, "__dict__", {}))
    slots = [name for kind in type(value).__mro__ for name in _slots(kind)]
    for name in slots:
        if hasattr(value, name) and name not in {"__dict__", "__weakref__"}:
            found[name] = getattr(value, name)
    return found if found or hasattr(value, "__dict__") or slots else None


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _describes_itself(value: object) -> bool:
    kind = type(value)
    if hasattr(kind, "__dataclass_fields__"):
        return False
    return kind.__repr__ is not object.__repr__ or kind.__str__ is not object.__str__


PROGRAM: Final = "<python-input-"
"""How the file names of guest programs begin."""

_longest_sleep_s: Final = 1e8
_TAKE_FUNCTIONS: Final = frozenset({"skills.save", "toolfold.skills.save"})
"""What takes a function by its name, and so the function itself as well."""


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


def _name_of_function(value: Any) -> Any:
    return value.__name__ if isinstance(value, types.FunctionType) else value


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
        if path in _TAKE_FUNCTIONS:
            args = tuple(map(_name_of_function, args))
            kwargs = {name: _name_of_function(value) for name, value in kwargs.items()}
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
