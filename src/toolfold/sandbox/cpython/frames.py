"""Frames: how the two sides of the CPython tier talk. The host takes what it receives for hostile.

A frame is a length, a kind and a payload. What the guest sends is JSON, because its parser has
been attacked for years and builds nothing but trees; what the host sends is `marshal`, which is
quick and must never be read from a guest.
"""

import json
import marshal
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

HEADER: Final = struct.Struct("<IB")
CALL_HEAD: Final = struct.Struct("<IBI")  # the call's number, whether it is awaited, its line
_CALL_FRAME: Final = struct.Struct("<IBIBI")

# From the guest.
READY: Final = 1
CALL: Final = 2
IMPORT: Final = 3
SLEEP: Final = 4
OUTPUT: Final = 5
FILE: Final = 6
REFUSE: Final = 7
END: Final = 8
BROKEN: Final = 9  # the walls could not be raised; the payload says why

# From the host.
OPEN: Final = 64
RUN: Final = 65
ANSWER: Final = 66
RAISE: Final = 67

OUTPUT_BYTES: Final = 65_536
"""The most that one frame of output holds."""

SLICE_BYTES: Final = 1 << 20
"""The most of a file that is read or written at once."""

LARGE_BYTES: Final = 262_144
"""What is longer takes long to take apart, so that is done in a thread."""

_SMALL: Final = 8_192
_FLOAT_CHARS: Final = 40  # Python itself writes 24 at most
_OVERHEAD: Final = 65_536
# After an even number of backslashes `u` begins no escape: the text is about surrogates.
_HALF_PAIR: Final = re.compile(rb"(?<!\\)(?:\\\\)*+\\u[dD][89a-fA-F]")


class FrameBreach(Exception):
    """The other side does not keep to the protocol."""


def largest(value_bytes: int) -> int:
    """Return how long a payload may be that carries values.

    A character may take two as JSON (a quote, a backslash) and a control character six; the latter
    do not fill whole values of code that means well.
    """
    return 2 * value_bytes + _OVERHEAD


class FrameReader:
    """Cuts a stream of hostile bytes into frames, none larger than its kind may be."""

    def __init__(self, value_bytes: int) -> None:
        self._largest = {
            **dict.fromkeys((CALL, END), CALL_HEAD.size + largest(value_bytes)),
            **dict.fromkeys((IMPORT, SLEEP), _SMALL),
            FILE: _SMALL + SLICE_BYTES,
            **dict.fromkeys((READY, REFUSE, BROKEN), _SMALL),
            OUTPUT: OUTPUT_BYTES,
        }
        self._buffer = bytearray()

    def feed(self, received: bytes) -> Iterable[tuple[int, bytes]]:
        """Take what was received, and return the frames that are whole.

        Raises:
            FrameBreach: A frame is of no known kind, or too large for its kind.
        """
        if not self._buffer and len(received) >= HEADER.size:
            length, kind = HEADER.unpack_from(received)
            if len(received) == HEADER.size + length and length <= self._largest.get(kind, -1):
                return ((kind, received[HEADER.size :]),)  # as nearly always
        return self._cut(received)

    def _cut(self, received: bytes) -> Iterator[tuple[int, bytes]]:
        buffer = self._buffer
        buffer += received
        start = 0
        try:
            while len(buffer) - start >= HEADER.size:
                length, kind = HEADER.unpack_from(buffer, start)
                if length > self._largest.get(kind, -1):
                    raise FrameBreach(f"a frame of kind {kind} and {length:,} bytes")
                end = start + HEADER.size + length
                if len(buffer) < end:
                    return
                payload = bytes(buffer[start + HEADER.size : end])
                start = end
                yield kind, payload
        finally:
            del buffer[:start]


def frame(kind: int, payload: bytes) -> bytes:
    """Return one frame."""
    return HEADER.pack(len(payload), kind) + payload


def call_frame(call_id: int, is_awaited: bool, line: int, content: bytes) -> bytes:
    """Return the frame of a call."""
    size = CALL_HEAD.size + len(content)
    return _CALL_FRAME.pack(size, CALL, call_id, is_awaited, line) + content


def write_json(value: object) -> bytes:
    """Return `value`, which is plain, as the host takes it."""
    text = "".join(_encode(value, 0))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _make_encoder() -> Callable[[object, int], Iterable[str]]:
    """Return what `json.dumps` makes anew each time, at many times the cost of a small value."""
    made = json.encoder.c_make_encoder  # type: ignore[attr-defined]
    text = json.encoder.encode_basestring
    return made(None, None, text, None, ":", ",", False, False, True)  # type: ignore[no-any-return]


_encode: Final = _make_encoder()


def _refuse_constant(name: str) -> object:
    raise FrameBreach(f"{name}, which is not JSON")


# Without the search for white space around, which is none of ours.
_decode: Final = json.JSONDecoder(parse_constant=_refuse_constant).scan_once  # type: ignore[attr-defined]


def _float(text: str) -> float:
    if len(text) > _FLOAT_CHARS:
        raise FrameBreach(f"a number of {len(text):,} characters")
    return float(text)


# The scanner lets no other thread run, unless it calls Python now and then. Numbers cost most.
_decode_in_turns: Final = json.JSONDecoder(
    parse_constant=_refuse_constant,
    parse_float=_float,
    parse_int=lambda text: int(text),
).scan_once  # type: ignore[attr-defined]


def read_json(payload: bytes, *, nodes: int) -> Any:
    """Return what a hostile payload says, if it has no more parts than `nodes`.

    Raises:
        FrameBreach: It is not valid JSON, or has too many parts.
    """
    if b"\\u" in payload and _HALF_PAIR.search(payload):
        raise FrameBreach("half a pair of surrogates")
    if (
        len(payload) > nodes
        and _parts(payload) > nodes
        and _parts(_without_texts(payload, nodes)) > nodes
    ):
        raise FrameBreach(f"more than {nodes:,} parts")
    try:
        text = payload.decode()
        decode = _decode_in_turns if len(payload) > LARGE_BYTES else _decode
        value, end = decode(text, 0)
    except (ValueError, RecursionError, StopIteration) as error:
        raise FrameBreach(f"no JSON: {type(error).__name__}") from error
    if end != len(text):
        raise FrameBreach("more than one value")
    return value


def _without_texts(payload: bytes, nodes: int) -> bytes:
    """Return what stands outside of texts, in time that only the length bounds.

    Up to the first byte that no JSON has, this and the parser agree where texts end.

    Raises:
        FrameBreach: There are more texts than `nodes` parts can hold.
    """
    unescaped = payload.replace(b"\\\\", b"").replace(b'\\"', b"")
    if unescaped.count(b'"') > 4 * nodes:
        raise FrameBreach(f"more than {nodes:,} parts")
    return b"".join(unescaped.split(b'"')[::2])


def _parts(text: bytes) -> int:
    """Return the most parts that JSON can have which is written like this."""
    return 1 + text.count(b",") + text.count(b"[") + text.count(b"{")


def read_call(payload: bytes, *, nodes: int) -> tuple[str, list[Any], dict[str, Any]]:
    """Return the name and the arguments of a call. Written flat: it is read for every call.

    Raises:
        FrameBreach: The payload holds something else.
    """
    if len(payload) > min(nodes, LARGE_BYTES) or b"\\" in payload:
        call = read_json(payload, nodes=nodes)
    else:
        try:
            text = payload.decode()
            call, end = _decode(text, 0)
        except (ValueError, RecursionError, StopIteration) as error:
            raise FrameBreach(f"no JSON: {type(error).__name__}") from error
        if end != len(text):
            raise FrameBreach("more than one value")
    if type(call) is list and len(call) == 3:
        name, args, kwargs = call
        if type(name) is str and type(args) is list and type(kwargs) is dict:
            return name, args, kwargs
    raise FrameBreach("a call of another shape")


def write_question(head: list[object], content: bytes) -> bytes:
    """Return what is asked of a file, and the bytes that go with it."""
    return write_json(head) + b"\n" + content


def split_question(payload: bytes) -> tuple[bytes, bytes]:
    """Return the head of a question, which is JSON in one line, and its content.

    Raises:
        FrameBreach: The head is too long.
    """
    head, _, content = payload.partition(b"\n")
    if len(head) > _SMALL or len(content) > SLICE_BYTES:
        raise FrameBreach("a question of this length")
    return head, content


def read_shape(payload: bytes, *kinds: type | tuple[type, ...], nodes: int) -> list[Any]:
    """Return the list that a payload holds, whose items must be of `kinds`.

    Raises:
        FrameBreach: They are not.
    """
    items = read_json(payload, nodes=nodes)
    if not isinstance(items, list) or len(items) != len(kinds):
        raise FrameBreach("a payload of another shape")
    for item, kind in zip(items, kinds, strict=True):
        if not isinstance(item, kind):
            raise FrameBreach("a payload of other types")
    return items


def write_answer(call_id: int, value: Any) -> bytes:
    """Return the frame that answers a call. Named tuples stay what they are.

    Raises:
        ValueError: The value is nested too deeply.
    """
    try:
        payload = marshal.dumps((call_id, False, value))
    except ValueError:
        try:
            payload = marshal.dumps((call_id, True, _marked(value)))
        except RecursionError as error:
            raise ValueError("the value is nested too deeply") from error
    return HEADER.pack(len(payload), ANSWER) + payload


def write_message(kind: int, *items: Any) -> bytes:
    """Return any other frame to the guest."""
    return frame(kind, marshal.dumps(items))


def read_message(payload: bytes | memoryview) -> Any:
    """Return what the host said. Never to be used on what a guest said."""
    return marshal.loads(payload)  # noqa: S302


def _marked(value: Any) -> Any:
    """Return a value with its tuples spelt out, because `marshal` takes no named ones."""
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None)
        kind = None if names is None else (type(value).__name__, tuple(names))
        return (kind, [_marked(part) for part in value])
    if isinstance(value, list):
        return [_marked(part) for part in value]
    if isinstance(value, dict):
        return {key: _marked(part) for key, part in value.items()}
    return value
