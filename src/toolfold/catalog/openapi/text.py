"""A specification as text, JSON or YAML, into plain values."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import yaml

from toolfold.errors import ConfigError
from toolfold.jsontypes import Json

# Far above the largest published specification (4.1 MB, 360,000 nodes).
MAX_BYTES: Final = 32 * 1024 * 1024
_MAX_NODES: Final = 4_000_000
_MAX_DEPTH: Final = 400

# What YAML forbids, and specifications hold all the same.
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ufffe\uffff]")
_LEADING_TABS: Final = re.compile(r"^([ \t]*\t[ \t]*)", re.MULTILINE)

_BLANK: Final = re.compile(r"^ +$", re.MULTILINE)

_INTEGER: Final = re.compile(r"[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: Final[dict[str, Json]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_STARTS: Final = frozenset("0123456789+-.")
# A longer number is no bound that anything keeps to, and takes long to read.
_MAX_NUMBER_CHARS: Final = 400


def parse_text(content: bytes) -> Json:
    """Return what JSON or YAML says, by the rules of YAML 1.2: `no` and dates stay text.

    Keys are always text. Anchors may be used, but not to make more of a text than it is.

    Raises:
        ConfigError: It is neither, or larger than anything that we read.
    """
    if len(content) > MAX_BYTES:
        raise ConfigError(f"is larger than {MAX_BYTES:,} bytes")
    text = _decoded(content)
    if text.lstrip()[:1] in {"{", "["}:
        try:
            value: Json = json.loads(text)
        except ValueError:
            pass  # flow collections of YAML look the same
        except RecursionError as error:
            raise ConfigError("is nested too deeply") from error
        else:
            return value
    return _parse_yaml(_CONTROL.sub(" ", text))


def _decoded(content: bytes) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    return content.decode("utf-8-sig", "replace")


def _parse_yaml(text: str) -> Json:
    try:
        return _Builder(_events(text)).document()
    except yaml.YAMLError as first:
        if "\t" not in text:
            raise ConfigError(f"is neither JSON nor YAML: {_line(first)}") from first
    try:  # some indent by tabs, which YAML does not have
        spaced = _LEADING_TABS.sub(lambda found: found[0].replace("\t", "  "), text)
        return _Builder(_events(_BLANK.sub("", spaced))).document()
    except yaml.YAMLError as error:
        raise ConfigError(f"is neither JSON nor YAML: {_line(error)}") from error


def _events(text: str) -> Iterator[Any]:
    # PyYAML's own construction of values takes ten times as long as its reading of events.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return iter(yaml.parse(text, Loader=loader))


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


class _Builder:
    """Makes values of the events of YAML; aliases are the values that they name, not copies."""

    def __init__(self, events: Iterator[Any]) -> None:
        self._next: Callable[[], Any] = events.__next__
        self._anchors: dict[str, Json] = {}
        self._left = _MAX_NODES
        self._depth = 0
        self._known: dict[str, Json] = {}
        """Plain texts that were read before: most are."""

    def document(self) -> Json:
        self._next()  # the stream's start
        event = self._next()
        if type(event).__name__ == "StreamEndEvent":
            return None
        return self._value(self._next())

    def _value(self, event: Any) -> Json:
        kind = type(event).__name__
        if kind == "ScalarEvent":
            value = self._scalar(event)
        elif kind == "MappingStartEvent":
            return self._mapping(event)
        elif kind == "SequenceStartEvent":
            return self._sequence(event)
        else:  # an alias
            self._count(_weight(self._anchors.get(event.anchor), self._left))
            return self._anchors.get(event.anchor)
        if event.anchor is not None:
            self._anchors[event.anchor] = value
        return value

    def _count(self, nodes: int = 1) -> None:
        self._left -= nodes
        if self._left < 0:
            raise ConfigError(f"has more than {_MAX_NODES:,} values")

    def _scalar(self, event: Any) -> Json:
        self._left -= 1
        text: str = event.value
        if not event.implicit[0]:
            return text
        known = self._known
        if text in known:
            return known[text]
        value = known[text] = _plain(text)
        return value

    def _mapping(self, event: Any) -> Json:
        found: dict[str, Json] = {}
        if event.anchor is not None:
            self._anchors[event.anchor] = found
        self._enter()
        while type(key := self._next()).__name__ != "MappingEndEvent":
            name = key.value if type(key).__name__ == "ScalarEvent" else str(self._value(key))
            value = self._value(self._next())
            if name == "<<" and isinstance(value, dict):
                for inherited, each in value.items():
                    found.setdefault(inherited, each)
            else:
                found[self._text(name)] = value
        self._depth -= 1
        return found

    def _text(self, name: str) -> str:
        """Return one object for equal keys."""
        known = self._known.setdefault(f"\0{name}", name)
        return known if isinstance(known, str) else name

    def _sequence(self, event: Any) -> Json:
        found: list[Json] = []
        if event.anchor is not None:
            self._anchors[event.anchor] = found
        self._enter()
        while type(item := self._next()).__name__ != "SequenceEndEvent":
            found.append(self._value(item))
        self._depth -= 1
        return found

    def _enter(self) -> None:
        self._count()
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ConfigError(f"is nested more than {_MAX_DEPTH} deep")


def _weight(value: Json, most: int) -> int:
    """Return how many values there are in one, counted no further than `most`."""
    waiting, count = [value], 0
    while waiting and count <= most:
        each = waiting.pop()
        count += 1
        if isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
    return count


def _plain(text: str) -> Json:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _STARTS or len(text) > _MAX_NUMBER_CHARS:
        return text
    if _INTEGER.fullmatch(text):
        return int(text, 0 if text[:2] in {"0x", "0o"} else 10)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
