"""An MCP server with records in a file: `python records.py FILE [COUNT]`.

Every update is a line that is written at once, so that a test sees what was done, and how often.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

WHOLE = {"type": "integer"}
READS = {"readOnlyHint": True}


def tool(name: str, hints: dict[str, bool], **takes: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": takes, "required": list(takes)}
    return {
        "name": name,
        "description": f"{name} of records",
        "inputSchema": schema,
        "annotations": hints,
    }


TOOLS = [
    tool("list_records", READS),
    tool("update", {}, id=WHOLE, value={"type": "string"}),
    tool("put", {"idempotentHint": True}, id=WHOLE, value={"type": "string"}),
    tool("slow_update", {}, id=WHOLE, seconds={"type": "number"}),
    tool("fail", {}, words={"type": "string"}),
]


def call(name: str, given: dict[str, Any], updates: Path, count: int) -> Any:
    if name == "list_records":
        cities = ("Rome", "Oslo", "Lima")
        return [{"id": n, "city": cities[n % 3], "amount": n * 7 % 100} for n in range(count)]
    if name == "fail":
        raise ValueError(given["words"])
    with updates.open("a") as file:
        file.write(json.dumps({"tool": name, **given}) + "\n")
    time.sleep(given.get("seconds", 0))
    return {"updated": given["id"]}


def answer(request: dict[str, Any], updates: Path, count: int) -> dict[str, Any]:
    match request["method"]:
        case "initialize":
            about = {"name": "records", "version": "1"}
            can = {"tools": {}}
            return {"protocolVersion": "2025-06-18", "capabilities": can, "serverInfo": about}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            given = request["params"]
            try:
                value = call(given["name"], given.get("arguments", {}), updates, count)
            except ValueError as error:
                return {"content": [{"type": "text", "text": str(error)}], "isError": True}
            return {"content": [{"type": "text", "text": json.dumps(value)}]}
        case _:
            return {}


def main(updates: Path, count: int) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            reply = {
                "jsonrpc": "2.0",
                "id": request["id"],
                "result": answer(request, updates, count),
            }
            print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1_000)
