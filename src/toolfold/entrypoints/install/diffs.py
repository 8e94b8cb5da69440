"""Show how files would change, without the secrets that stand in them."""

import difflib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from toolfold.entrypoints.install import jsonedit, tomledit

MASK = "•••"
_MAX_LINE = 400
_WITH_SECRETS = {"env", "headers", "http_headers", "oauth"}
_SECRET = r"(?:token|key|secret|passw|auth|credential|bearer)"  # noqa: S105
_REFERENCE = re.compile(r'"(?:Bearer )?\$\{[^}"]*\}"')
# What can be told a secret by the text before it, in arguments, addresses and other keys.
_FLAG_AND_VALUE = re.compile(rf'("-[\w-]*{_SECRET}[\w-]*"\s*,\s*")([^"]+)', re.IGNORECASE)
_TELLTALES = [
    _FLAG_AND_VALUE,
    re.compile(rf"(-[\w-]*{_SECRET}[\w-]*=)([^\"'\s]+)", re.IGNORECASE),
    re.compile(rf"([?&][\w-]*{_SECRET}[\w-]*=)([^&\"'#\s]+)", re.IGNORECASE),
    re.compile(rf'(["\w-]*{_SECRET}\w*"?\s*[:=]\s*")([^"]+)', re.IGNORECASE),
    re.compile(r"(://[^/\s:@\"]*:)([^@/\s\"]+)(?=@)"),
]
_TOML_VALUE = re.compile(
    r'(=\s*)("""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\r\n]|\\.)*"|\'[^\'\r\n]*\')',
    re.DOTALL,
)


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
        is_long = len(line) > _MAX_LINE
        yield _mask_telltales(line[:_MAX_LINE]) + "…" * is_long


def _mask_json(text: str) -> str:
    """Mask what `env` and `headers` hold, wherever servers stand."""
    if not text.strip():
        return text
    return _mask_members(text, depth=5)  # projects, path, mcpServers, server, env


def _mask_members(text: str, *, depth: int) -> str:
    return _with_values(text, lambda name, value: _masked(name, value, depth=depth))


def _masked(name: str, value: str, *, depth: int) -> str:
    if name == "args":
        return _FLAG_AND_VALUE.sub(_keep_reference, value)  # they stand on two lines, often
    if depth == 0 or not value.startswith("{"):
        return value
    return _mask_values(value) if name in _WITH_SECRETS else _mask_members(value, depth=depth - 1)


def _mask_values(text: str) -> str:
    return _with_values(
        text, lambda _, value: value if _REFERENCE.fullmatch(value) else f'"{MASK}"'
    )


def _with_values(text: str, change: Callable[[str, str], str]) -> str:
    parts, at = [], 0
    for member in jsonedit.members(text):
        parts += [text[at : member.value], change(member.name, text[member.value : member.end])]
        at = member.end
    return "".join([*parts, text[at:]])


def _mask_toml(text: str) -> str:
    for section in reversed(tomledit.sections(text)):
        body = text[section.start : section.end]
        for statement in reversed(list(tomledit.statements(body))):
            written = body[statement.start : statement.end]
            key = re.split(r"[\s.=]", written.lstrip(), maxsplit=1)[0]
            if not statement.is_header and _WITH_SECRETS & {key, *section.path[2:]}:
                masked = _TOML_VALUE.sub(_mask_toml_value, written)
                body = body[: statement.start] + masked + body[statement.end :]
        text = text[: section.start] + body + text[section.end :]
    return text


def _mask_toml_value(match: re.Match[str]) -> str:
    return match[0] if _REFERENCE.fullmatch(match[2]) else f'{match[1]}"{MASK}"'


def _mask_telltales(line: str) -> str:
    for pattern in _TELLTALES:
        line = pattern.sub(_keep_reference, line)
    return line


def _keep_reference(match: re.Match[str]) -> str:
    return match[0] if match[2].startswith(("${", "Bearer ${", MASK)) else match[1] + MASK
