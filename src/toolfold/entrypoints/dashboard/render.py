"""Pages from templates. Everything that is put into one is escaped."""

import json
import time
from functools import cache
from importlib.resources import files
from typing import Any, Final

import jinja2
from starlette.responses import Response

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def page(name: str, status: int = 200, **values: Any) -> Response:
    """Return the page that the template `name` makes of these values."""
    text = _templates().get_template(f"{name}.html").render(now=time.time(), page=name, **values)
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
        ago=ago, duration=duration, number=number, plural=plural, pretty=pretty, clock=clock
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
            return f"{plural(seconds // size, unit)} ago"
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


def plural(count: int, unit: str) -> str:
    """Return a count with its unit: `1 call`, `2 calls`."""
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


def pretty(text: str) -> str:
    """Return JSON indented, and any other text as it is."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def clock(at: float) -> str:
    """Return a moment as local date and time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
