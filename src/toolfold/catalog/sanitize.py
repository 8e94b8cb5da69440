"""Make what servers send fit to be parsed, kept and read. Pure.

A server may send text that steers a terminal, hides words from the reader, or is refused by our
parser. It is mended here, once, where it enters: what comes after can show any of it. Values that
tools answer with are data, and stay as they are.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from pydantic_core import from_json

from toolfold.catalog.jsonspans import Malformed, Spans, TooMuch
from toolfold.errors import shown

_MAX_NAME_CHARS: Final = 256
_MAX_DESCRIPTION_CHARS: Final = 50_000
_MAX_SCHEMA_CHARS: Final = 1_000_000
_MAX_DEPTH: Final = 100
_MAX_MENDED_BYTES: Final = 8 * 1024 * 1024
_MAX_LEFT_OUT: Final = 50

# Sequences of a terminal, whole; then what cannot be seen: control characters but line breaks and
# tabs, marks of direction, halves of pairs, and letters that only machines read. Joiners of
# letters and of emoji are writing, and stay.
_UNSEEN: Final = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|\x1b[@-Z\\\\^_]"
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e0fff]"
)
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]', re.DOTALL)

_FIELDS: Final = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
_TASK_SUPPORT: Final = frozenset({"forbidden", "optional", "required"})
_OFFERS: Final = {"prompts": "name", "resources": "uri", "resourceTemplates": "uriTemplate"}
_DATA: Final = frozenset({"const", "default", "enum", "examples", "pattern"})
"""What a schema says of values: they are shown escaped, and compared as they are."""


class _Unfit(Exception):
    """A tool cannot be offered; the text says why."""


def plain(text: str) -> str:
    """Return a text of a server without what steers a terminal or cannot be seen."""
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub("", text)


def plain_value(value: Any) -> Any:
    """Return a JSON value with all its texts and keys plain."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        return [plain_value(each) for each in value]
    if isinstance(value, dict):
        return {plain(key): plain_value(each) for key, each in value.items()}
    return value


def readable(line: bytes) -> bytes:
    """Return a message that our parser can read, if it refuses this one for how it is written.

    Halves of surrogate pairs are replaced. Of tools that are listed, members that are nested too
    deeply become null. Any other message that cannot be read becomes an error that answers the same
    request, so that nobody waits for it.
    """
    if _parses(line):
        return line
    line = _ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], line)
    if _parses(line):
        return line
    message = _DeepMessage(line)
    try:
        message.read()
    except Malformed:
        return line  # a piece of a message, or none
    except TooMuch:
        return line if message.id is None else _refusal(message.id)
    mended = b"".join(message.pieces())
    return mended if _parses(mended) or message.id is None else _refusal(message.id)


def clean_message(message: Any) -> list[str]:
    """Make the texts of a message plain, in place; return which listed tools are left out, and why.

    Of answers only those that say of a failure what it was are changed.
    """
    error = getattr(message, "error", None)
    if error is not None:
        error.message = plain_failure(error.message)
    result = getattr(message, "result", None)
    if not isinstance(result, dict):
        return []
    clean_result(result)
    if "task" in result or "statusMessage" in result:
        _clean_texts([result, result.get("task")], "statusMessage")
    for kind in _OFFERS.keys() & result.keys():
        if isinstance(result[kind], list):
            result[kind] = list(_plain_offers(result[kind], _OFFERS[kind]))
    if not isinstance(result.get("tools"), list):
        return []
    # Before 2026 a tool's output had to be an object; results had no type of their own.
    return _clean_listing(result, any_output="resultType" in result)


def plain_failure(text: str) -> str:
    """Return what a server says of a failure, plain and not too long."""
    return plain(text[:_MAX_DESCRIPTION_CHARS])


def clean_result(result: dict[str, Any]) -> None:
    """Make the texts of a tool's result plain, in place, if they say of a failure what it was."""
    if result.get("isError"):
        _clean_texts(result.get("content"), "text")


def _clean_texts(holders: Any, key: str) -> None:
    for holder in holders if isinstance(holders, list) else ():
        if isinstance(holder, dict) and isinstance(holder.get(key), str):
            holder[key] = plain(holder[key])


def _plain_offers(items: list[Any], identity: str) -> Iterator[Any]:
    """Yield what is offered, less what could only be asked for by a name that cannot be shown."""
    for item in items:
        cleaned = plain_value(item)
        if not isinstance(item, dict) or item.get(identity) == cleaned.get(identity):
            yield cleaned


def _clean_listing(result: dict[str, Any], *, any_output: bool) -> list[str]:
    tools, left_out = [], []
    for tool in result["tools"]:
        try:
            tools.append(_clean_tool(tool, any_output=any_output))
        except _Unfit as reason:
            left_out.append(str(reason))
    result["tools"] = tools
    return left_out[:_MAX_LEFT_OUT]


def _clean_tool(tool: Any, *, any_output: bool) -> dict[str, Any]:
    """Return a tool that the SDK takes: it would refuse a whole listing for the sake of one.

    Raises:
        _Unfit: It has no name to be called by, or parameters that nobody could write.
    """
    name = tool.get("name") if isinstance(tool, dict) else None
    if not isinstance(name, str) or not name:
        raise _Unfit("a tool without a name")
    if len(name) > _MAX_NAME_CHARS or not _can_be_written(name):
        raise _Unfit(f"{shown(name, max_chars=60)}: its name is too long, or cannot be shown")
    cleaned: dict[str, Any] = {key: tool[key] for key in _FIELDS if key in tool}
    for key in ("title", "description"):
        text = cleaned.pop(key, None)
        if isinstance(text, str):
            cleaned[key] = plain(text[:_MAX_DESCRIPTION_CHARS])
    cleaned["annotations"] = _hints(cleaned.get("annotations"))
    cleaned |= _execution(tool.get("execution"))
    cleaned["inputSchema"] = _clean_schema(name, _mended(cleaned.get("inputSchema")))
    output = cleaned.pop("outputSchema", None)
    if isinstance(output, dict) and (any_output or output.get("type") == "object"):
        cleaned["outputSchema"] = _clean_schema(name, output)
    return cleaned


def _can_be_written(name: str) -> bool:
    """Whether a name is what it looks like, so that whoever reads it can call it so."""
    return plain(name) == name and not {"\n", "\t", "\ufffd"} & set(name)


def _hints(annotations: Any) -> dict[str, bool]:
    given = annotations.items() if isinstance(annotations, dict) else ()
    return {key: value for key, value in given if isinstance(value, bool)}


def _execution(given: Any) -> dict[str, Any]:
    support = given.get("taskSupport") if isinstance(given, dict) else None
    is_known = isinstance(support, str) and support in _TASK_SUPPORT
    return {"execution": {"taskSupport": support}} if is_known else {}


def _mended(schema: Any) -> dict[str, Any]:
    """Keep of a schema what a schema of arguments can hold."""
    if not isinstance(schema, dict):
        return {"type": "object"}
    mended = {**schema, "type": "object"}
    if "properties" in mended and not _are_schemas(mended["properties"]):
        del mended["properties"]
    required = mended.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        del mended["required"]
    return mended


def _are_schemas(properties: Any) -> bool:
    return isinstance(properties, dict) and all(
        isinstance(schema, dict | bool) for schema in properties.values()
    )


def _clean_schema(tool: str, schema: dict[str, Any]) -> dict[str, Any]:
    if len(json.dumps(schema)) > _MAX_SCHEMA_CHARS:
        raise _Unfit(f"{tool}: its schema has more than {_MAX_SCHEMA_CHARS:,} characters")
    try:
        cleaned: dict[str, Any] = _plain_schema(schema, names=False)
    except _Unfit as reason:
        raise _Unfit(f"{tool}: {reason}") from reason
    return cleaned


def _plain_schema(node: Any, *, names: bool) -> Any:
    """Return a part of a schema with plain texts; with `names`, its keys are names of properties.

    Raises:
        _Unfit: A key cannot be shown, so nobody could write it.
    """
    if isinstance(node, str):
        return plain(node)
    if isinstance(node, list):
        return [_plain_schema(each, names=False) for each in node]
    if not isinstance(node, dict):
        return node
    if not all(map(_can_be_written, node)):
        raise _Unfit("a parameter has a name that cannot be shown")
    return {
        key: each
        if key in _DATA and not names
        else _plain_schema(each, names=key == "properties" and not names)
        for key, each in node.items()
    }


class _DeepMessage:
    """A message of which some member is nested too deeply to be parsed."""

    def __init__(self, line: bytes) -> None:
        self._line = line
        self._spans = Spans(line)
        self._cuts: list[tuple[int, int]] = []
        self.id: bytes | None = None

    def read(self) -> None:
        """Find its id, and what has to be cut out of the tools that it lists.

        Raises:
            Malformed: It is no message.
            TooMuch: It has more parts than can be gone through.
        """
        self._spans.read_object(0, self._member)

    def pieces(self) -> Iterator[bytes]:
        """Yield the message without what is cut out."""
        at = 0
        for start, end in self._cuts:
            yield self._line[at:start]
            yield b"null"
            at = end
        yield self._line[at:]

    def _member(self, key: bytes, start: int) -> int:
        if key == b"result" and self._opens(start, b"{"):
            return self._spans.read_object(start, self._result)
        end = self._spans.value_end(start)
        if key == b"id" and end - start < _MAX_NAME_CHARS:
            self.id = self._line[start:end]
        return end

    def _result(self, key: bytes, start: int) -> int:
        if key == b"tools" and self._opens(start, b"["):
            return self._spans.read_list(start, self._tool)
        return self._spans.value_end(start)

    def _tool(self, start: int) -> int:
        if self._opens(start, b"{"):
            return self._spans.read_object(start, self._field)
        return self._spans.value_end(start)

    def _field(self, _key: bytes, start: int) -> int:
        end = self._spans.value_end(start)
        if len(self._line) <= _MAX_MENDED_BYTES and self._is_deep(start, end):
            self._cuts.append((start, end))
        return end

    def _is_deep(self, start: int, end: int) -> bool:
        depth = 0
        for token in _TOKEN.finditer(self._line, start, end):
            if token[0] in (b"{", b"["):
                depth += 1
                if depth > _MAX_DEPTH:
                    return True
            elif token[0] in (b"}", b"]"):
                depth -= 1
        return False

    def _opens(self, start: int, character: bytes) -> bool:
        return self._line[start : start + 1] == character


def _parses(line: bytes) -> bool:
    try:
        from_json(line, cache_strings=False)
    except ValueError:
        return False
    return True


def _refusal(request: bytes) -> bytes:
    reason = "The answer cannot be read: it is nested too deeply, or is no valid JSON."
    error = json.dumps({"code": -32_000, "message": reason})
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (request, error.encode())
