"""JSON as people write it: with comments, trailing commas and a byte order mark."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NoReturn, TypeAlias

from toolfold.errors import ConfigError
from toolfold.jsontypes import Json

MAX_DUPLICATES = 20

# `\Z` closes what nobody closed: without it, each opening would be scanned to the end again.
# Characters are taken by the run: one at a time, a file of megabytes takes seconds.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_STRING_OR_COMMENT = re.compile(_STRING + r"|//[^\r\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_STRING_OR_LAST_COMMA = re.compile(_STRING + r"|,(?=\s*+[}\]])", re.DOTALL)
_NOT_LINE_END = re.compile(r"[^\r\n]")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonDocument:
    """A parsed document, and the first keys that are written twice (`mcpServers.github.env`)."""

    value: Json
    duplicates: tuple[str, ...]


def parse_jsonc(content: bytes) -> JsonDocument:
    """Parse JSON with comments; of a key that is written twice, the last one counts.

    Raises:
        ConfigError: It is empty or broken; the message says where, but names no file.
    """
    try:
        text = content.decode(json.detect_encoding(content))
        if not text.strip():
            raise ConfigError("is empty")
        value = json.loads(
            strip_comments(text), object_pairs_hook=_Object, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ConfigError(f"is not valid JSON: {where}: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not text in {error.encoding}: byte {error.start}") from error
    except ValueError as error:
        raise ConfigError(f"is not valid JSON: {error}") from error
    except RecursionError as error:
        raise ConfigError("is nested too deeply") from error
    return JsonDocument(value=value, duplicates=tuple(islice(_duplicates(value), MAX_DUPLICATES)))


def strip_comments(text: str) -> str:
    """Put spaces where comments and trailing commas stand, so that every position stays."""
    return _STRING_OR_LAST_COMMA.sub(_blank, _STRING_OR_COMMENT.sub(_blank, text))


def _blank(match: re.Match[str]) -> str:
    found = match.group()
    is_open_comment = found.startswith("/*") and (len(found) < 4 or not found.endswith("*/"))
    if found.startswith('"') or is_open_comment:
        return found
    return _NOT_LINE_END.sub(" ", found)


class _Object(dict[str, Json]):
    """A JSON object that remembers which of its keys were written more than once."""

    def __init__(self, pairs: list[tuple[str, Json]]) -> None:
        super().__init__(pairs)
        self.duplicates: list[str] = []
        if len(self) != len(pairs):
            times = Counter(name for name, _ in pairs)
            self.duplicates = [name for name in self if times[name] > 1]


# The names from the root down, as a chain: as text, each key would repeat all above it, and a
# small file could take all memory.
_Trail: TypeAlias = "tuple[_Trail, str] | None"


def _duplicates(root: Json) -> Iterator[str]:
    waiting: list[tuple[_Trail, Json]] = [(None, root)]
    while waiting:
        trail, value = waiting.pop()
        if isinstance(value, _Object):
            yield from (_path((trail, name)) for name in value.duplicates)
            waiting.extend(((trail, name), inner) for name, inner in value.items())
        elif isinstance(value, list):
            waiting.extend((trail, inner) for inner in value)


def _path(trail: _Trail) -> str:
    names: list[str] = []
    while trail is not None:
        trail, name = trail
        names.append(name)
    return ".".join(reversed(names))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
