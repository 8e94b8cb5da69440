"""JSON read through a window: the parts of a file of any length, without ever holding it."""

import codecs
import json
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO, Final

from toolfold.errors import BadInput
from toolfold.jsontypes import Json

RECORD_CHARS: Final = 8 << 20
"""The longest record."""

DEPTH: Final = 100
"""How deeply what is read may be nested."""

TOO_DEEP: Final = f"nested too deeply: more than {DEPTH} levels"

_CHUNK_BYTES: Final = 1 << 14
_TOLD_KEYS: Final = 20
_SPACE: Final = " \t\n\r"


class JsonStream:
    """JSON read through a window, which holds one record and a little more."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
        self._text = ""
        self._at = 0
        self._passed = 0
        self._is_over = False
        self._depth = 0

    def list_at(self, names: list[str]) -> Iterator[Json]:
        """Yield the items of the list that `names` lead to.

        Raises:
            BadInput: There is no list.
        """
        seen: list[str] = []
        for name in names:
            if not self._find(name, seen):
                told = ", ".join(map(repr, seen)) or "none"
                raise BadInput(f"The file has no {name!r}. Its keys: {told}.")
        if self._next() == "{":
            told = ", ".join(repr(key) for key, _ in islice(self.shape(), _TOLD_KEYS))
            raise BadInput(
                f"It is an object, not a list: choose a list with at=…. Its keys: {told}."
            )
        if self._next() != "[":
            raise BadInput("There is no list of records in the file.")
        return self._items()

    def shape(self) -> Iterator[tuple[str, Json]]:
        """Yield the keys of an object and, of what is not large, its values; lists as lengths."""
        for key in self._keys():
            opening = self._next()
            if opening == "[":
                yield key, f"list of {sum(1 for _ in self._items()):,}"
            elif opening == "{":
                yield key, f"dict of {sum(1 for _ in self.shape()):,}"
            else:
                yield key, self._value()

    @property
    def is_object(self) -> bool:
        """Whether an object begins here."""
        return self._next() == "{"

    @property
    def is_list(self) -> bool:
        """Whether a list begins here."""
        return self._next() == "["

    @property
    def is_over(self) -> bool:
        """Whether nothing comes any more."""
        return not self._next()

    @property
    def place(self) -> int:
        """Up to which character it was read."""
        return self._passed + self._at

    def members(self) -> Iterator[str]:
        """Yield the keys of the object that begins here; each value is to be read in between."""
        return self._keys()

    def items(self) -> Iterator[Json]:
        """Yield the items of the list that begins here."""
        return self._items()

    def value(self) -> Json:
        """Return the value that begins here, whole."""
        return self._value()

    def _find(self, name: str, seen: list[str]) -> bool:
        if self._next() != "{":
            return False
        for key in self._keys():
            if key == name:
                return True
            if len(seen) < _TOLD_KEYS:
                seen.append(key)
            self._skip()
        return False

    def _keys(self) -> Iterator[str]:
        self._enter()
        if self._next() == "}":
            self._take("}")
            self._depth -= 1
            return
        while True:
            key = self._value() if self._next() == '"' else None
            if not isinstance(key, str):
                raise self._malformed()
            self._take(":")
            yield key
            if self._take(",}") == "}":
                self._depth -= 1
                return

    def _enter(self) -> None:
        self._take("{")
        self._depth += 1
        if self._depth > DEPTH:
            raise BadInput(f"The file is {TOO_DEEP}.")

    def _items(self) -> Iterator[Json]:
        self._take("[")
        if self._next() == "]":
            self._take("]")
            return
        while True:
            yield self._value()
            if self._take(",]") == "]":
                return

    def _skip(self) -> None:
        opening = self._next()
        if opening == "[":
            for _ in self._items():
                pass
        elif opening == "{":
            for _ in self.shape():
                pass
        else:
            self._value()

    def _value(self) -> Json:
        self._next()
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except RecursionError as error:
                raise BadInput(f"A record of the file is {TOO_DEEP}.") from error
            except (ValueError, StopIteration) as error:
                if not self._read():
                    raise self._malformed() from error
            else:
                length = end - self._at
                if not self._may_go_on(value, end) or not self._read():
                    self._at += length  # reading moves the window, also at the end
                    found: Json = value
                    return found

    def _may_go_on(self, value: Json, end: int) -> bool:
        """Whether a number was cut off by the window, as 1.5 is behind the 1 or the point."""
        is_number = isinstance(value, int | float)
        return end == len(self._text) or (is_number and self._text[end] in ".eE")

    def _next(self) -> str:
        """Return the next character that is no space; none at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if not self._read():
                return ""

    def _take(self, expected: str) -> str:
        found = self._next()
        if not found or found not in expected:
            raise self._malformed()
        self._at += 1
        return found

    def _read(self) -> bool:
        """Read on, as much again as is held; False at the end."""
        if self._is_over:
            return False
        held = len(self._text) - self._at
        if held > RECORD_CHARS:
            raise BadInput(f"A record of the file has more than {RECORD_CHARS:,} characters.")
        content = self._file.read(max(_CHUNK_BYTES, held))
        self._is_over = not content
        self._passed += self._at
        self._text = self._text[self._at :] + self._decode(content, self._is_over)
        self._at = 0
        return bool(content)

    def _malformed(self) -> BadInput:
        return BadInput(
            f"The file is not valid JSON from character {self._passed + self._at:,} on."
        )
