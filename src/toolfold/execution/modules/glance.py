"""What a server has, shown below its tools: the tables of a database, the files of a directory.

Of some public servers it is known which call shows that (`scripts/record_shapes.py`). It is made
where every call of that tool is allowed without a question, as a run of its own.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from toolfold.catalog.tool import Tool
from toolfold.errors import ToolfoldError
from toolfold.jsontypes import Json, JsonObject

Look = Callable[[Tool, JsonObject], Awaitable[Json]]
"""Makes one call of a tool, and returns its value as guest code would have it."""

_PATIENCE_S: Final = 2.0
_MAX_CHARS: Final = 600


async def glance(tools: list[tuple[Tool, JsonObject]], look: Look) -> str:
    """Return what the first call that works shows, as one line; "" if none does in time."""
    for tool, arguments in tools:
        with anyio.move_on_after(_PATIENCE_S):
            try:
                if line := glance_line(await look(tool, arguments)):
                    return f"# has: {line}"
            except ToolfoldError:
                continue
    return ""


def glance_line(value: Json) -> str:
    """Return the rows or lines of an answer as one line, cut where it gets long."""
    if isinstance(value, str):
        parts = value.split("\n")
    elif isinstance(value, list):
        parts = [_first(each) for each in value]
    else:
        return ""
    line = "; ".join(" ".join(part.split()) for part in parts if part.strip())
    return line if len(line) <= _MAX_CHARS else f"{line[:_MAX_CHARS].rpartition('; ')[0]}; …"


def _first(row: Json) -> str:
    return str(next(iter(row.values()), "")) if isinstance(row, dict) else str(row)
