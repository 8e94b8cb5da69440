"""Show how files would change, without the secrets that stand in them.

Keys are shown, and of the values only those of servers that are surely harmless: whatever nobody
thought of is masked.
"""

import difflib
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from toolfold.config.harmless import MASK, address, argument, program_path, reference
from toolfold.config.serverfile import TABLES
from toolfold.entrypoints.install import tomledit
from toolfold.jsontypes import Json

_MAX_LINE = 400
_Keys: TypeAlias = tuple[str, ...]
# JSON with comments and TOML have the same parts: what only one of them knows cannot stand in the
# other, except in strings and comments, which are taken whole.
_TOKEN = re.compile(
    r'(?P<string>"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"[^"\\\r\n]*+(?:\\.[^"\\\r\n]*+)*+"|\'[^\'\r\n]*\')'
    r"|(?P<comment>//[^\r\n]*|#[^\r\n]*|/\*.*?\*/)"
    r"|(?P<mark>[\[\]{},:=])"
    r"|(?P<space>\s+)"
    r"|(?P<bare>[^\s\[\]{},:=\"'#/]+|/)",
    re.DOTALL,
)
_TIMES = {("hooks", "timeout")} | {
    (key,)
    for key in (
        *("timeout", "timeout_s"),
        *("startup_timeout_ms", "startup_timeout_sec", "tool_timeout_sec"),
    )
}


def diff(path: Path, before: str | None, after: str | None) -> Iterator[str]:
    """Yield the lines of a unified diff in which no secret shows."""
    mask = _mask_toml if path.suffix == ".toml" else _mask_json
    lines = difflib.unified_diff(
        mask((before or "").removeprefix("\ufeff")).splitlines(),
        mask((after or "").removeprefix("\ufeff")).splitlines(),
        fromfile="/dev/null" if before is None else str(path),
        tofile="/dev/null" if after is None else str(path),
        lineterm="",
    )
    for line in lines:
        yield line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]}…"


def _mask_json(text: str) -> str:
    return _masked(text, _Level(keys=(), expects_key=False), json.loads)


def _mask_toml(text: str) -> str:
    """Mask statement by statement; what stands between them is space and comments."""
    parts: list[str] = []
    table: _Keys = ()
    at = 0
    for statement in tomledit.statements(text):
        written = text[statement.start : statement.end]
        parts.append(_without_comments(text[at : statement.start]))
        if statement.is_header:
            table = tomledit.header_path(written)
            parts.append(_without_comments(written))
        else:
            parts.append(_masked(written, _Level(keys=table, expects_key=True), _toml_value))
        at = statement.end
    return "".join([*parts, _without_comments(text[at:])])


def _without_comments(text: str) -> str:
    return _TOKEN.sub(lambda token: _comment(token[0]) if token["comment"] else token[0], text)


def _comment(written: str) -> str:
    opening = "#" if written.startswith("#") else written[:2]
    return f"{opening} {MASK}{' */' if opening == '/*' else ''}"


@dataclass(slots=True)
class _Level:
    """An object, a table or a list that is being read."""

    keys: _Keys
    """Those that lead to it."""

    expects_key: bool
    has_keys: bool = False
    key: list[str] = field(default_factory=list)
    """The last one read in it; a dotted one has several parts."""

    def read_key(self, written: str, value: Json) -> None:
        self.key += [value] if isinstance(value, str) else filter(None, written.split("."))

    def inner(self, mark: str) -> "_Level":
        has_keys = mark == "{"
        return _Level(keys=(*self.keys, *self.key), expects_key=has_keys, has_keys=has_keys)

    def go_on(self) -> None:
        if self.has_keys:
            self.expects_key, self.key = True, []


def _masked(text: str, level: _Level, read: Callable[[str], Json]) -> str:
    """Mask every value of a text that begins at this level; `read` makes a value of a string."""
    levels, parts = [level], []
    for token in _TOKEN.finditer(text):
        written, level = token[0], levels[-1]
        if token["mark"]:
            _follow(written, levels)
        elif token["comment"]:
            written = _comment(written)
        elif not token["space"]:
            value = read(written) if token["string"] else None
            if level.expects_key:
                level.read_key(written, value)
            else:
                written = _shown((*level.keys, *level.key), written, value)
        parts.append(written)
    return "".join(parts)


def _follow(mark: str, levels: list[_Level]) -> None:
    level = levels[-1]
    if mark in "{[":
        levels.append(level.inner(mark))
    elif mark in "}]":
        levels.pop()
    elif mark == ",":
        level.go_on()
    else:
        level.expects_key = False


def _toml_value(written: str) -> Json:
    value: Json = tomllib.loads(f"value = {written}")["value"]
    return value


def _shown(keys: _Keys, written: str, value: Json) -> str:
    keys = _in_server(keys)
    if isinstance(value, str):
        text = _SHOWN.get(keys, reference)(value)
        return written if text == value else json.dumps(text, ensure_ascii=False)
    is_harmless = written in {"true", "false", "null"} or keys in _TIMES
    return written if is_harmless else MASK


def _in_server(keys: _Keys) -> _Keys:
    """Return the keys inside a server's entry or a hook; elsewhere, all below an empty one."""
    inner = keys[2:] if keys[:1] == ("projects",) else keys
    if keys[:1] == ("hooks",):
        return ("hooks", keys[-1])
    return inner[2:] if inner[:1] and inner[0] in TABLES else ("", *keys)


def _if_matches(pattern: str) -> Callable[[str], str]:
    return lambda text: text if re.fullmatch(pattern, text) else MASK


_transport = _if_matches(r"stdio|http|sse|ws|sdk|streamable[-_]?http")
_variable = _if_matches(r"[A-Z]{1,20}(?:_[A-Z]{1,20})*")
_SHOWN: Mapping[_Keys, Callable[[str], str]] = {
    ("type",): _transport,
    ("transport",): _transport,
    ("command",): program_path,
    ("url",): address,
    ("args",): argument,
    ("env_vars",): _variable,
    ("bearer_token_env_var",): _variable,
    ("hooks", "type"): _if_matches(r"command"),
    ("hooks", "command"): _if_matches(r"[\w./-]*toolfold hook [a-z]+(?:-[a-z]+){0,2}"),
    ("hooks", "matcher"): _if_matches(
        r"startup\|clear\|compact|mcp__\(plugin_toolfold_\)\?toolfold__execute_code"
    ),
    ("", "rules", "list"): _if_matches(r"allow|ask|deny"),
    ("", "rules", "rule"): _if_matches(r"mcp__[\w-]+"),
}
