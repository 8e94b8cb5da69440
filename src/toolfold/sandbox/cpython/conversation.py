"""Conversation: one program in one guest. What the guest says is hostile; a breach ends it."""

import asyncio
import codecs
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import anyio

from toolfold.config.settings import Limits
from toolfold.errors import ValueRejected
from toolfold.jsontypes import Json
from toolfold.sandbox.cpython import frames
from toolfold.sandbox.cpython.calls import PROGRAM
from toolfold.sandbox.cpython.frames import CALL_HEAD, FrameBreach, read_call, read_shape
from toolfold.sandbox.cpython.link import FileRequest, FileService, GuestClock, GuestLink
from toolfold.sandbox.cpython.pool import Guest
from toolfold.sandbox.failures import CRASHED, MESSAGE_CHARS, TRACEBACK_CHARS, too_long, too_much
from toolfold.sandbox.sandbox import (
    AHEAD,
    MAX_AHEAD,
    GuestCall,
    GuestFailure,
    GuestOutcome,
    Modules,
    OnPrint,
)
from toolfold.sandbox.values import ValueBudget, admit, admit_for_display, is_light

_log = logging.getLogger(__name__)

_SLACK_NODES: Final = 64
_QUESTIONS: Final = 256  # a thread waits for its answer before it asks again
_AHEAD: Final = f'["{AHEAD}"'.encode()  # how the payload of such a call begins
_ASKED_BESIDES: Final = 1_000_000  # imports and files: far more than any program needs
_ASKED_BYTES: Final = 64 << 20  # to be written, by all its threads together


@dataclass(frozen=True, slots=True)
class HostOffer:
    """What the host offers to the programs of a session."""

    modules: Modules
    names: frozenset[str]
    file_service: FileService | None
    """Answers what is asked of files."""
    on_print: OnPrint | None = None
    imported: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The functions of the modules that were imported so far."""
    paths: set[str] = field(default_factory=set)
    """How they are called."""

    def functions(self, module: str) -> tuple[str, ...] | None:
        """Return the functions of a module; None if there is no such module."""
        if module not in self.imported and module in self.modules:
            functions = self.imported[module] = self.modules[module]().functions
            self.paths.update(f"{module}.{function}" for function in functions)
        return self.imported.get(module)


class GuestConversation:
    """Takes what a guest says while it runs one program."""

    def __init__(
        self,
        guest: Guest,
        link: GuestLink,
        limits: Limits,
        offer: HostOffer,
        post: Callable[[int, bytes, bool, int], None],
    ) -> None:
        self.ended = anyio.Event()
        self._has_ended = False
        self._guest = guest
        self._link = link
        self._limits = limits
        self._offer = offer
        self._post = post
        self._loop = asyncio.get_running_loop()
        self._budget = ValueBudget(
            nodes=limits.value_nodes, depth=limits.value_depth, size_bytes=limits.value_bytes
        )
        self._call_nodes = 2 * limits.value_nodes + _SLACK_NODES
        self._paths = offer.paths
        self._program = ""
        self._lines = 0
        self._calls = 0
        self._ahead = 0
        self._besides = 0
        self._late_bytes = 0
        self._questions: deque[tuple[int, FileRequest]] = deque()
        self._asked_bytes = 0
        self._sleeping = 0
        self._slept_s = 0.0
        self._end: bytes | None = None
        self._stop: GuestFailure | None = None
        self._output = _Output(limits.output_bytes, offer.on_print)
        self._clock = GuestClock(guest, limits.guest_time_s, self._out_of_time)
        self._takes: dict[int, Callable[[bytes], None]] = {
            frames.CALL: self._take_call,
            frames.IMPORT: self._take_import,
            frames.SLEEP: self._take_sleep,
            frames.OUTPUT: self._take_output,
            frames.FILE: self._take_file,
            frames.REFUSE: self._take_refusal,
            frames.END: self._take_end,
        }

    def begin(
        self,
        number: int,
        source: str,
        awaited: frozenset[int],
        offered: tuple[list[str], list[str]] = ([], []),
    ) -> None:
        """Have the guest run a program, which can import and call what is `offered` now."""
        self._program = f"{PROGRAM}{number}>"
        self._lines = source.count("\n") + 1
        self._link.on_frame = self._take
        self._link.on_breach = self._breach
        self._link.on_lost = self._lost
        self._clock.start()
        places = _places(source, awaited)
        self._link.send(frames.write_message(frames.RUN, number, source, places, *offered))

    @property
    def was_stopped(self) -> bool:
        """Whether the run was ended from here, rather than by the code itself."""
        return self._stop is not None

    def stop(self, reason: GuestFailure) -> None:
        """End the guest. The first reason holds."""
        if not self._has_ended:
            self._stop = reason
            self._link.close()
            self._guest.kill()
            self._finish()

    def answer(self, call_id: int, value: Json) -> None:
        """Give the guest the value of a call."""
        try:
            self._reply(frames.write_answer(call_id, value))
        except ValueError as error:
            self.fail(call_id, "ValueError", f"The tool's answer cannot be taken in: {error}.")

    def fail(self, call_id: int, exception: str, message: str) -> None:
        """Have a call raise in the guest."""
        self._reply(frames.write_message(frames.RAISE, call_id, exception, message))

    def call_of(self, payload: bytes, line: int) -> GuestCall | None:
        """Return the call that a payload holds; None if the run ends over it."""
        if len(payload) <= frames.LARGE_BYTES:
            return self._call_of(payload, line)
        began = time.thread_time()
        try:
            return self._call_of(payload, line)
        finally:
            spent = time.thread_time() - began
            self._loop.call_soon_threadsafe(self._clock.charge, spent)

    def _call_of(self, payload: bytes, line: int) -> GuestCall | None:
        budget = self._budget
        try:
            name, args, kwargs = read_call(payload, nodes=self._call_nodes)
            if name not in self._paths and name not in self._offer.names:
                raise FrameBreach("a call of what is not there")
            return GuestCall(
                name,
                tuple([each if is_light(each) else admit(each, budget) for each in args]),
                {key: admit(each, budget) for key, each in kwargs.items()} if kwargs else {},
            )
        except FrameBreach as breach:
            self._stop_soon(_breached(str(breach)))
        except ValueRejected as error:
            message = f"A call was not made. {error}"
            self._stop_soon(GuestFailure(kind="value", message=message, line=self.line(line)))
        return None

    def _stop_soon(self, reason: GuestFailure) -> None:
        """As `stop`, from any thread."""
        self._loop.call_soon_threadsafe(self.stop, reason)

    def line(self, claimed: int) -> int | None:
        """Return a line of the program, if the guest tells one that it has."""
        return claimed if 0 < claimed <= self._lines else None

    @property
    def printed(self) -> str:
        """What the program has printed so far."""
        return self._output.text

    @property
    def is_large(self) -> bool:
        """Whether it takes long to say what came of the program."""
        return self._end is not None and len(self._end) > frames.LARGE_BYTES

    def outcome(self) -> GuestOutcome:
        """Say what came of the program, once it has ended."""
        value: Json = None
        failure, dropped = self._stop, 0
        if failure is None:
            assert self._end is not None  # noqa: S101
            value, failure, dropped = self._read_end(self._end)
        return GuestOutcome(
            output=self._output.text,
            output_dropped=dropped,
            value=value,
            failure=failure,
            guest_s=self._clock.guest_s,
            waiting_s=self._clock.waiting_s,
            program=self._program,
        )

    def _take(self, kind: int, payload: bytes) -> None:
        take = self._takes.get(kind)
        if self._has_ended and kind == frames.OUTPUT:
            self._late_bytes += len(payload)  # a daemon thread prints on: nobody reads that
            if payload and self._late_bytes <= self._limits.output_bytes:
                return
        if take is None or self._has_ended:
            raise FrameBreach(f"a frame of kind {kind} at this time")
        take(payload)

    def _take_call(self, payload: bytes) -> None:
        if len(payload) < CALL_HEAD.size:
            raise FrameBreach("a call without a head")
        call_id, is_awaited, line = CALL_HEAD.unpack_from(payload)
        if self._ahead < MAX_AHEAD and payload.startswith(_AHEAD, CALL_HEAD.size):
            self._ahead += 1
        else:
            self._calls += 1
        if self._calls > self._limits.calls:
            message = f"The run made more than {self._limits.calls:,} tool calls."
            self.stop(GuestFailure(kind="calls", message=message, line=self.line(line)))
            return
        self._clock.wait()
        self._post(call_id, payload[CALL_HEAD.size :], bool(is_awaited), line)

    def _take_import(self, payload: bytes) -> None:
        call_id, name = self._asked(payload, int, str)
        self._clock.wait()
        functions = self._offer.functions(name)
        if functions is None:
            self.fail(call_id, "ModuleNotFoundError", f"No module named {name!r}")
        else:
            self.answer(call_id, list(functions))

    def _take_file(self, payload: bytes) -> None:
        head, content = frames.split_question(payload)
        call_id, what, path, target, offset, size = self._asked(head, int, str, str, str, int, int)
        question = FileRequest(what, path, target, offset, size, content)
        if self._offer.file_service is None:
            raise FrameBreach("a question about files, of which there are none")
        self._offer.file_service.check(question)
        self._questions.append((call_id, question))
        self._asked_bytes += len(content)
        if len(self._questions) > _QUESTIONS or self._asked_bytes > _ASKED_BYTES:
            raise FrameBreach("more questions than it can have threads")
        if len(self._questions) == 1:
            self._answer_question()

    def _answer_question(self) -> None:
        """Have one question answered beside the loop; others have their turn before the next.

        The clock of the guest goes on meanwhile, because it is for the guest that we work.
        """
        assert self._offer.file_service is not None  # noqa: S101
        _, question = self._questions[0]
        answering = self._loop.run_in_executor(None, self._offer.file_service.answer, question)
        answering.add_done_callback(self._give_answer)

    def _give_answer(self, answering: "asyncio.Future[Any]") -> None:
        call_id, question = self._questions.popleft()
        self._asked_bytes -= len(question.content)
        if self._has_ended or answering.cancelled():
            return
        if error := answering.exception():  # ours: the guest would wait for ever
            _log.error("A question about files was not answered.", exc_info=error)
            self.stop(CRASHED)
            return
        self._clock.wait()
        self.answer(call_id, answering.result())
        if self._questions:
            self._answer_question()

    def _asked(self, payload: bytes, *kinds: type) -> list[Any]:
        self._besides += 1
        if self._besides > _ASKED_BESIDES:
            raise FrameBreach("endless questions")
        items = read_shape(payload, *kinds, nodes=_SLACK_NODES)
        if not 0 <= items[0] < 1 << 32:
            raise FrameBreach("a number that no call has")
        return items

    def _take_sleep(self, payload: bytes) -> None:
        call_id, seconds = read_shape(payload, int, float, nodes=_SLACK_NODES)
        if not (0 <= call_id < 1 << 32 and seconds >= 0):
            raise FrameBreach("a sleep of no length")
        self._slept_s += seconds
        self._sleeping += 1
        self._clock.wait()
        if self._sleeping > self._limits.calls:
            raise FrameBreach("endless sleeps")
        if self._slept_s > self._limits.sleep_s:
            message = f"The run may sleep {self._limits.sleep_s:g} s in all."
            self._woken(lambda: self.fail(call_id, "TimeoutError", message))
        else:
            wake = lambda: self._woken(lambda: self.answer(call_id, None))  # noqa: E731
            asyncio.get_running_loop().call_later(seconds, wake)

    def _woken(self, reply: Callable[[], None]) -> None:
        self._sleeping -= 1
        if not self._has_ended:
            reply()

    def _take_output(self, payload: bytes) -> None:
        if not payload or not self._output.take(payload):
            raise FrameBreach("endless output")

    def _take_refusal(self, payload: bytes) -> None:
        message, line = read_shape(payload, str, int, nodes=_SLACK_NODES)
        self.stop(GuestFailure(kind="value", message=message, line=self.line(line)))

    def _take_end(self, payload: bytes) -> None:
        self._end = payload
        self._finish()

    def _read_end(self, payload: bytes) -> tuple[Json, GuestFailure | None, int]:
        nodes = self._budget.nodes + _SLACK_NODES
        kinds = (object, (list, type(None)), int)
        try:
            value, failure, dropped = read_shape(payload, *kinds, nodes=nodes)
            plain = admit_for_display(value, self._budget)
            return plain, self._failure(failure), max(0, min(dropped, 1 << 53))
        except FrameBreach as breach:
            return None, _breached(str(breach)), 0
        except ValueRejected as error:
            message = f"The value of the last line cannot be shown. {error}"
            return None, GuestFailure(kind="value", message=message), 0

    def _failure(self, told: list[Any] | None) -> GuestFailure | None:
        if told is None:
            return None
        match told:
            case ["memory", str(), str(), int(line)]:
                return replace(too_much(self._limits), line=self.line(line))
            case ["error" | "value" as kind, str(message), str(traceback), int(line)]:
                return GuestFailure(
                    kind=kind,
                    message=message[:MESSAGE_CHARS],
                    traceback=traceback[-TRACEBACK_CHARS:],
                    line=self.line(line),
                )
        raise FrameBreach("a failure of another shape")

    def _reply(self, frame: bytes) -> None:
        if not self._has_ended:
            self._clock.resume()
            self._link.send(frame)

    def _breach(self, why: str) -> None:
        self._end_guest(_breached(why))

    def _lost(self) -> None:
        self._end_guest(CRASHED)

    def _end_guest(self, reason: GuestFailure) -> None:
        if self._has_ended:  # between two programs: the next finds the link closed
            self._link.close()
            self._guest.kill()
        else:
            self.stop(reason)

    def _out_of_time(self) -> None:
        self.stop(too_long(self._limits))

    def _finish(self) -> None:
        self._clock.stop()
        self._has_ended = True
        self.ended.set()


def _breached(why: str) -> GuestFailure:
    return GuestFailure(
        kind="crash",
        message=f"The process that ran the code broke the protocol ({why}) and was ended. "
        "The next run starts afresh.",
    )


def _places(source: str, awaited: frozenset[int]) -> frozenset[tuple[int, int]]:
    """Return byte offsets as lines and columns, which is what the guest's own code knows."""
    if not awaited:
        return frozenset()
    found, start = set(), 0
    offsets = sorted(awaited, reverse=True)
    for number, line in enumerate(source.encode().split(b"\n"), 1):
        end = start + len(line) + 1
        while offsets and offsets[-1] < end:
            found.add((number, offsets.pop() - start))
        start = end
    return frozenset(found)


class _Output:
    """What the guest printed, up to a limit."""

    def __init__(self, limit: int, on_print: OnPrint | None) -> None:
        self._on_print = on_print
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._parts: list[str] = []
        self._received = 0
        self._limit = limit

    def take(self, received: bytes) -> bool:
        """Keep what was received; False if it is more than an honest guest sends."""
        self._received += len(received)
        if self._received > self._limit:
            return False
        text = self._decoder.decode(received)
        self._parts.append(text)
        if self._on_print is not None:
            self._on_print(text)
        return True

    @property
    def text(self) -> str:
        return "".join(self._parts)
