"""Conditions on the arguments of a call: a small language, read by us and never evaluated. Pure.

```text
condition  = part { "or" part }            part = factor { "and" factor }
factor     = [ "not" ] ( "(" condition ")" | comparison )
comparison = path ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) literal
           | path [ "not" ] "in" "[" literal { "," literal } "]"
           | path [ "not" ] "contains" literal
path       = name { "." name }             literal = number | 'text' | "text" | true | false | null
```

What cannot be compared (an argument that is not there, a text where a number is expected) makes a
condition neither true nor false, but unknown; who asks decides what that means.
"""

import json
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from toolfold.errors import ConfigError
from toolfold.jsontypes import Json, JsonObject

MAX_CHARS: Final = 500
MAX_DEPTH: Final = 20

Truth: TypeAlias = bool | None
Test: TypeAlias = Callable[[JsonObject], Truth]
LiteralValue: TypeAlias = bool | int | float | str | None

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>-?(?:0|[1-9]\d{0,17})(?:\.\d{1,18})?(?![\w.]))|(?P<text>'[^'\\]*'|\"[^\"\\]*\")"
    r"|(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)|(?P<sign>==|!=|<=|>=|[<>()\[\],]))"
)
_KEYWORDS: Final = frozenset(("and", "or", "not", "in", "contains", "true", "false", "null"))
_CONSTANTS: Final[dict[str, LiteralValue]] = {"true": True, "false": False, "null": None}
_ORDER: Final[dict[str, Callable[[float | str, float | str], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class _Absent:
    """What stands at a path that leads nowhere."""


_ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that was read; `text` is how it was written."""

    text: str
    test: Test

    def holds_for(self, arguments: JsonObject) -> Truth:
        """Return whether it holds; None if that cannot be told."""
        return self.test(arguments)


def parse(text: str) -> Condition:
    """Read a condition.

    Raises:
        ConfigError: It is not written in the language above.
    """
    if len(text) > MAX_CHARS:
        raise ConfigError(f"A condition is longer than {MAX_CHARS} characters: {text[:40]!r}…")
    reader = _Reader(text, _tokens(text))
    test = reader.either(0)
    if reader.peek() is not None:
        raise reader.fault("an `and`, an `or` or the end")
    return Condition(text, test)


class _Token(NamedTuple):
    kind: str
    text: str
    place: int


def _tokens(text: str) -> list[_Token]:
    tokens, place = [], 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None:
            raise ConfigError(f"The condition {text!r} cannot be read from {text[place:]!r} on.")
        kind = match.lastgroup or ""
        word = match[kind]
        kind = "keyword" if word in _KEYWORDS else kind
        tokens.append(_Token(kind, word, match.start(match.lastgroup or 0)))
        place = match.end()
    return tokens


class _Reader:
    """Reads tokens from left to right, by the grammar."""

    def __init__(self, text: str, tokens: list[_Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._next = 0

    def peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def fault(self, wanted: str) -> ConfigError:
        token = self.peek()
        found = f"{self._text[token.place :]!r}" if token else "its end"
        return ConfigError(f"The condition {self._text!r} has {found} where {wanted} must be.")

    def either(self, depth: int) -> Test:
        if depth > MAX_DEPTH:
            raise ConfigError(f"The condition {self._text[:40]!r}… is nested too deeply.")
        tests = [self._both(depth)]
        while self._takes("or"):
            tests.append(self._both(depth))
        return tests[0] if len(tests) == 1 else _joined(tests, decisive=True)

    def _both(self, depth: int) -> Test:
        tests = [self._factor(depth)]
        while self._takes("and"):
            tests.append(self._factor(depth))
        return tests[0] if len(tests) == 1 else _joined(tests, decisive=False)

    def _factor(self, depth: int) -> Test:
        if depth > MAX_DEPTH:
            raise ConfigError(f"The condition {self._text[:40]!r}… is nested too deeply.")
        if self._takes("not"):
            return _negated(self._factor(depth + 1))
        if self._takes("("):
            test = self.either(depth + 1)
            self._must_take(")")
            return test
        return self._comparison()

    def _comparison(self) -> Test:
        token = self.peek()
        if token is None or token.kind != "name":
            raise self.fault("the name of an argument")
        self._next += 1
        path = tuple(token.text.split("."))
        if self._takes("not"):
            return _negated(self._membership(path))
        operation = self.peek()
        if operation and operation.text in ("in", "contains"):
            return self._membership(path)
        if operation is None or operation.text not in {"==", "!=", *_ORDER}:
            raise self.fault("a comparison")
        self._next += 1
        return _compared(path, operation.text, self._literal())

    def _membership(self, path: tuple[str, ...]) -> Test:
        if self._takes("contains"):
            wanted = self._literal()
            return lambda arguments: _contains(_found(arguments, path), wanted)
        self._must_take("in")
        self._must_take("[")
        choices = [self._literal()]
        while self._takes(","):
            choices.append(self._literal())
        self._must_take("]")
        return lambda arguments: _is_among(_found(arguments, path), choices)

    def _literal(self) -> LiteralValue:
        token = self.peek()
        if token is None or (token.kind not in {"number", "text"} and token.text not in _CONSTANTS):
            raise self.fault("a number, a text in quotes, true, false or null")
        self._next += 1
        if token.kind == "text":
            return token.text[1:-1]
        if token.kind == "number":
            number: int | float = json.loads(token.text)
            return number
        return _CONSTANTS[token.text]

    def _takes(self, text: str) -> bool:
        token = self.peek()
        is_there = token is not None and token.kind in {"keyword", "sign"} and token.text == text
        self._next += is_there
        return is_there

    def _must_take(self, text: str) -> None:
        if not self._takes(text):
            raise self.fault(f"`{text}`")


def _joined(tests: list[Test], *, decisive: bool) -> Test:
    """Return `or` (True decides) or `and` (False decides); unknown unless one decides."""

    join = _any if decisive else _all
    return lambda arguments: join(test(arguments) for test in tests)


def _negated(inner: Test) -> Test:
    def test(arguments: JsonObject) -> Truth:
        truth = inner(arguments)
        return None if truth is None else not truth

    return test


def _found(arguments: JsonObject, path: tuple[str, ...]) -> "Json | _Absent":
    value: Json | _Absent = arguments
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return _ABSENT
        value = value[name]
    return value


def _compared(path: tuple[str, ...], sign: str, literal: LiteralValue) -> Test:
    def test(arguments: JsonObject) -> Truth:
        value = _found(arguments, path)
        if isinstance(value, _Absent):
            return None
        if sign in _ORDER:
            return _ordered(sign, value, literal)
        is_equal = _is_equal(value, literal)
        return None if is_equal is None else is_equal == (sign == "==")

    return test


def _ordered(sign: str, value: Json, literal: LiteralValue) -> Truth:
    if isinstance(value, str) and isinstance(literal, str):
        return _ORDER[sign](value, literal)
    if _is_number(value) and _is_number(literal):
        return _ORDER[sign](value, literal)  # type: ignore[arg-type]
    return None


def _is_equal(value: Json, literal: LiteralValue) -> Truth:
    """Compare as JSON does: true is not 1. Of another kind it may be the same to its server."""
    if value is None or literal is None:
        return value is literal
    if isinstance(value, str) and isinstance(literal, str):
        return value == literal
    if isinstance(value, bool) and isinstance(literal, bool):
        return value is literal
    return value == literal if _is_number(value) and _is_number(literal) else None


def _is_among(value: "Json | _Absent", choices: list[LiteralValue]) -> Truth:
    """Whether a value is one of these; of a list, whether all of it is."""
    if isinstance(value, _Absent):
        return None
    each = value if isinstance(value, list) else [value]
    return _all(_any(_is_equal(one, choice) for choice in choices) for one in each)


def _contains(value: "Json | _Absent", wanted: LiteralValue) -> Truth:
    if isinstance(value, str) and isinstance(wanted, str):
        return wanted in value
    if isinstance(value, list):
        return _any(_is_equal(one, wanted) for one in value)
    return None


def _any(truths: Iterable[Truth]) -> Truth:
    """Return what `or` makes of truths; unknown unless one decides."""
    found = set(truths)
    return True if True in found else None if None in found else False


def _all(truths: Iterable[Truth]) -> Truth:
    found = set(truths)
    return False if False in found else None if None in found else True


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
