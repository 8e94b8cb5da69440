"""An MCP server with tools as people have them: `python tracker.py tracker`, or `... chat`."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "servers"))

from stdio import StdioServer, text, words

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
TEXTS = {"type": "array", "items": TEXT}
ROW = {
    "type": "object",
    "properties": {
        "id": WHOLE,
        "name": TEXT,
        "tags": TEXTS,
        "kind": {"enum": ["bug", "task"]},
        "parent": {"type": "object", "properties": {"id": WHOLE}, "required": ["id"]},
    },
    "required": ["id", "name"],
    "additionalProperties": False,
}


def tool(name: str, required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": required | optional,
        "required": list(required),
        "additionalProperties": False,
    }
    return {"name": name, "description": f"The tool {name}.", "inputSchema": schema}


PLACE = {"owner": TEXT, "repo": TEXT}
TOOLS = {
    "tracker": [
        tool(
            "list_issues",
            PLACE,
            state={"type": "string", "enum": ["open", "closed", "all"]},
            labels=TEXTS,
            limit=WHOLE,
            since={"type": "string", "format": "date-time"},
            archived={"type": "boolean"},
        ),
        tool("get_issue", PLACE | {"number": WHOLE}),
        tool(
            "create_issue",
            PLACE | {"title": TEXT},
            body={"type": ["string", "null"]},
            labels=TEXTS,
            priority={"enum": ["low", "medium", "high"]},
            estimate={"type": "number"},
            milestone={"anyOf": [WHOLE, {"type": "null"}]},
            assignee={"anyOf": [TEXT, WHOLE]},
        ),
        tool("add_comment", {"number": WHOLE, "body": TEXT}),
        tool("put_rows", {"rows": {"type": "array", "items": ROW}}),
        tool("set_fields", {"number": WHOLE, "fields": {"type": "object"}}),
        tool("fail", {"words": TEXT}),
        tool("getUser", {"name": TEXT}, **{"page-size": WHOLE, "from": TEXT}),
    ],
    "chat": [tool("send_message", {"channel": TEXT, "text": TEXT})],
}


def issue(number: int) -> dict[str, Any]:
    return {
        "number": number,
        "title": f"Issue {number}",
        "state": "open" if number % 2 else "closed",
        "labels": [{"name": "bug"}] if number % 3 else [],
        "user": {"login": "ada"} if number % 2 else None,
        "updated_at": f"2026-01-{number:02}T10:00:00Z",
        "points": number * 1.5,
    }


def answer(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if name == "fail":
        return words(arguments["words"], is_error=True)
    if name == "list_issues":
        return text([issue(number) for number in range(1, arguments.get("limit", 4) + 1)])
    if name == "get_issue":
        return text(issue(arguments["number"]))
    return text({"ok": True, "called": name, "with": arguments})


if __name__ == "__main__":
    StdioServer(sys.argv[1], TOOLS[sys.argv[1]], answer).serve()
