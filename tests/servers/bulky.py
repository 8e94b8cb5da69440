"""An MCP server whose answers are as large as one asks for: `python bulky.py`."""

import base64
import json
from collections.abc import Iterator
from typing import Any

from stdio import StdioServer, text, tool, words

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(64)).decode()


def row(number: int) -> dict[str, Any]:
    """Return one record of about a hundred bytes as JSON."""
    return {
        "id": number,
        "name": f"Zoë {number} \U0001f600",
        "note": 'say "hi"\n',
        "tags": ["a", "b"],
    }


def rows_of(size_bytes: int) -> Iterator[dict[str, Any]]:
    """Yield records that have about so many bytes as a list of JSON."""
    return map(row, range(size_bytes // 98))


def both(size: int) -> dict[str, Any]:
    found = {"rows": list(rows_of(size))}
    return text(found) | {"structuredContent": found}


ANSWERS = {
    "rows": lambda size: text(list(rows_of(size))),
    "wrapped": lambda size: text({"rows": list(rows_of(size)), "total": 7}),
    "both": both,
    "structured": lambda size: {
        "content": [],
        "structuredContent": {"rows": list(rows_of(size))},
    },
    "words": lambda size: words("word " * (size // 5)),
    "lines": lambda size: words("".join(json.dumps(each) + "\n" for each in rows_of(size))),
    "failing": lambda size: words("It went wrong. " * (size // 15), is_error=True),
}


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if name == "picture":
        return {"content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]}
    return ANSWERS[name](int(arguments["size_bytes"]))


if __name__ == "__main__":
    tools = [tool(name, "size_bytes", read_only=True) for name in ANSWERS]
    StdioServer("bulky", [*tools, tool("picture", read_only=True)], call).serve()
