"""Conceal what is too large to be a value: piece by piece, as it is written to a file. Pure.

A JSON text is never held whole: of its lists some items at a time are concealed, each batch within
the objects that lead to it, so that rules by path fit as they would in the whole. Beside the keys
of such an object nothing else is known of it, so its `name` counts as a person's. Other texts are
cut between lines; lines that are JSON by themselves are concealed as values.
"""

import io
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from toolfold.errors import BadInput
from toolfold.jsontypes import Json, JsonObject
from toolfold.workspace.jsonstream import JsonStream

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Conceal = Callable[[Json], Json]
Chunks = Callable[[], Iterable[bytes]]
"""Yields a text in UTF-8 from its beginning, each time it is called."""

MAX_STREAM_BYTES: Final = 128 * 1024 * 1024
"""What can be concealed within the wall time of a run, as a rule: a second for each megabyte."""

_BATCH: Final = 200
_BLOCK_CHARS: Final = 1 << 19
_LINE_CHARS: Final = 1 << 20
_SURE_CHARS: Final = 1 << 16
_KEY_BEGINS, _KEY_ENDS = "-----BEGIN", "-----END"
# Stands beside the keys of an object that is not known whole.
_TELLING: Final[JsonObject] = {"email": None}

_dump: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode


def redact_stream(chunks: Chunks, conceal: Conceal) -> Iterator[bytes]:
    """Yield a text with everything personal in it concealed.

    Raises:
        BadInput: It cannot be told apart into pieces; nothing was yielded.
    """
    if _is_json(chunks):
        pieces = _values(JsonStream(_opened(chunks())), (), conceal)
    else:
        _refuse_long_lines(chunks)
        pieces = _lines(chunks(), conceal)
    return (piece.encode("utf-8", "replace") for piece in pieces)


class _Raw(io.RawIOBase):
    """Chunks as a file."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._held = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        while not self._held and (chunk := next(self._chunks, None)) is not None:
            self._held = chunk
        taken = self._held[: len(memoryview(buffer))]
        self._held = self._held[len(taken) :]
        memoryview(buffer)[: len(taken)] = taken
        return len(taken)


def _opened(chunks: Iterable[bytes]) -> io.BufferedReader:
    return io.BufferedReader(_Raw(chunks), _BLOCK_CHARS)


def _is_json(chunks: Chunks) -> bool:
    stream = JsonStream(_opened(chunks()))
    if not (stream.is_object or stream.is_list):
        return False
    try:
        for _ in _values(stream, (), lambda value: value):
            pass
        return stream.is_over
    except BadInput as error:
        if stream.place < _SURE_CHARS:
            return False
        raise BadInput(
            f"it begins as JSON, and its fields cannot be told apart to its end ({error})"
        ) from error


def _values(stream: JsonStream, path: tuple[str, ...], conceal: Conceal) -> Iterator[str]:
    if stream.is_object:
        separator = "{"
        for key in stream.members():
            yield f"{separator}{_dump(conceal(key))}: "
            yield from _values(stream, (*path, key), conceal)
            separator = ", "
        yield "}" if separator == ", " else "{}"
    elif stream.is_list:
        items, separator = stream.items(), "["
        while batch := list(islice(items, _BATCH)):
            yield separator + _dump(_within(path, batch, conceal))[1:-1]
            separator = ", "
        yield "]" if separator == ", " else "[]"
    else:
        yield _dump(_within(path, stream.value(), conceal))


def _within(path: tuple[str, ...], value: Json, conceal: Conceal) -> Json:
    """Conceal a value as it would be at a path."""
    if not path:
        return conceal(value)
    whole = value
    for key in reversed(path):
        whole = {**_TELLING, key: whole}
    found = conceal(whole)
    for key in path:
        assert isinstance(found, dict)  # noqa: S101
        found = list(found.values())[list({**_TELLING, key: None}).index(key)]
    return found


def _refuse_long_lines(chunks: Chunks) -> None:
    length = 0
    for chunk in chunks():
        first, *rest = chunk.split(b"\n")
        longest = max([length + len(first), *map(len, rest)])
        length = len(rest[-1]) if rest else length + len(first)
        if longest > _LINE_CHARS:
            raise BadInput(f"it has a line of more than {_LINE_CHARS:,} bytes")


def _lines(chunks: Iterable[bytes], conceal: Conceal) -> Iterator[str]:
    reader, held, is_over = _opened(chunks), b"", False
    while not is_over:
        more = reader.read(_BLOCK_CHARS)
        is_over, held = not more, held + more
        end = len(held) if is_over else _safe_end(held)
        yield from _block(held[:end].decode("utf-8", "replace"), conceal)
        held = held[end:]


def _safe_end(held: bytes) -> int:
    """Return where a line ends, and no key of several lines is cut in two."""
    begins = held.rfind(_KEY_BEGINS.encode())
    if begins > held.rfind(_KEY_ENDS.encode()) and len(held) - begins < _LINE_CHARS:
        return held.rfind(b"\n", 0, begins) + 1
    return held.rfind(b"\n") + 1


def _block(text: str, conceal: Conceal) -> Iterator[str]:
    plain: list[str] = []
    for line in text.split("\n"):
        value = _parsed(line)
        if value is None:
            plain.append(line)
            continue
        concealed = conceal(value)
        yield str(conceal("".join(f"{each}\n" for each in plain)))
        yield line if concealed == value else _dump(concealed)
        plain = [""]
    yield str(conceal("\n".join(plain)))


def _parsed(line: str) -> Json:
    """Return the object or list that a line is; None if it is neither."""
    if line.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        value: Json = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None
