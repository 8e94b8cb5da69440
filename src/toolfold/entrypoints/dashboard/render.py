"""Pages from templates. Everything that is put into one is escaped."""

import ast
import difflib
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import dropwhile
from typing import Any, Final

import jinja2
from starlette.responses import Response

from toolfold.errors import count

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # without any, browsers send `Origin: null` with forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_CHANGES: Final = (
    ("old_text", "new_text"),
    ("oldText", "newText"),
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("before", "after"),
)
"""How tools name what is to be replaced, and by what."""
_DIFF_LINES: Final = 400
_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def page(name: str, status: int = 200, *, version: str = "", **values: Any) -> Response:
    """Return the page that the template `name` makes of these values."""
    template = _templates().get_template(f"{name}.html")
    text = template.render(now=time.time(), page=name, version=version, **values)
    return Response(text, status_code=status, headers=HEADERS, media_type="text/html")


@cache
def _templates() -> jinja2.Environment:
    templates = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(
        ago=ago,
        arguments=arguments,
        clock=clock,
        day=day,
        duration=duration,
        number=number,
        plural=count,
        pretty=pretty,
        program=program,
    )
    return templates


def _source(name: str) -> str:
    source = files("toolfold.entrypoints.dashboard") / "templates" / name
    return source.read_text(encoding="utf-8")


def ago(at: float, now: float) -> str:
    """Return how long ago a moment was, in words: `3 minutes ago`."""
    seconds = max(0, int(now - at))
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{count(seconds // size, unit)} ago"
    return "just now"


def duration(seconds: float) -> str:
    """Return a length of time as people read it: `12 ms`, `3.4 s`, `2 min 5 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def number(value: float) -> str:
    """Return a number with separators for thousands."""
    return f"{value:,.0f}"


def program(code: str) -> str:
    """Return what a program does, in a list of programs: without the imports before it."""
    lines = code.strip().splitlines()
    does = dropwhile(lambda line: line.startswith(("import ", "from ")) or not line.strip(), lines)
    return "\n".join(does) or code


def pretty(text: str) -> str:
    """Return JSON indented, and any other text as it is."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


@dataclass(frozen=True, slots=True)
class ShownArgument:
    """One argument as people read it."""

    name: str
    text: str
    diff: Sequence[str] = ()
    """The lines of what it changes, each after `+`, `-` or a blank; empty where it is no change."""


def arguments(text: str) -> list[ShownArgument]:
    """Return the arguments of a call; an old and a new text as one difference."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        return [ShownArgument("", text)]
    shown = []
    for old, new in _CHANGES:
        if isinstance(given.get(old), str) and isinstance(given.get(new), str):
            diff = _diff(given.pop(old), given.pop(new))
            shown.append(ShownArgument(f"{old}, {new}", "", diff))
    return [*(_shown(name, value) for name, value in given.items()), *shown]


def _shown(name: str, value: Any) -> ShownArgument:
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        for old, new in _CHANGES:
            if all(isinstance(each.get(old), str) and isinstance(each.get(new), str)
                   for each in value):  # fmt: skip
                lines = [line for each in value for line in _diff(each[old], each[new])]
                return ShownArgument(name, "", lines)
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    return ShownArgument(name, text)


def _diff(before: str, after: str) -> list[str]:
    lines = difflib.ndiff(before.splitlines()[:_DIFF_LINES], after.splitlines()[:_DIFF_LINES])
    return [f"{line[0]} {line[2:]}" for line in lines if not line.startswith("?")]


@dataclass(frozen=True, slots=True)
class ProgramLine:
    """A line of a program, and the tools that it calls with how often they were called."""

    text: str
    calls: Sequence[str] = ()


def program_lines(code: str, counts: Mapping[str, int]) -> list[ProgramLine]:
    """Return the lines of a program with the calls that stand on them."""
    called = _called_lines(code)
    places = Counter(tool for tools in called.values() for tool in tools)

    def told(tool: str) -> str:
        if tool not in counts:
            return f"{tool}, not called"
        return f"{tool}, {count(counts[tool], 'call')}" if places[tool] == 1 else tool

    return [
        ProgramLine(line, [told(tool) for tool in sorted(called.get(number, ()))])
        for number, line in enumerate(code.splitlines(), start=1)
    ]


def _called_lines(code: str) -> dict[int, set[str]]:
    """Return which tools each line calls by name; none where the program cannot be parsed."""
    try:
        nodes = [*ast.walk(ast.parse(code))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    names: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {each.asname or each.name: each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = "" if node.module == "toolfold" else f"{node.module}."
            names |= {each.asname or each.name: f"{module}{each.name}" for each in node.names}
    called: dict[int, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Call) and (tool := _tool(node.func, names)):
            called.setdefault(node.lineno, set()).add(tool)
    return called


def _tool(function: ast.expr, names: Mapping[str, str]) -> str:
    """Return the path of the tool that an expression names; empty if it names none."""
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        module = names.get(function.value.id, "")
        return f"{module}.{function.attr}" if module and "." not in module else ""
    path = names.get(function.id, "") if isinstance(function, ast.Name) else ""
    return path if "." in path else ""


def day(at: float) -> str:
    """Return a moment as its local date in words: `Monday, 3 March 2025`."""
    found = time.localtime(at)
    return f"{time.strftime('%A', found)}, {found.tm_mday} {time.strftime('%B %Y', found)}"


def clock(at: float) -> str:
    """Return a moment as local date and time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
