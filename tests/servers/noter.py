"""An MCP server that remembers in a file, and starts at once: `python noter.py FILE [silent]`."""

import json
import sys
import time
from pathlib import Path
from typing import Any

TOOLS = [
    {"name": name, "inputSchema": {"type": "object", "properties": {key: {} for key in takes}}}
    for name, takes in {"memory_search": ["query", "limit"], "memory_store": ["content"]}.items()
]


def answer(request: dict[str, Any], kept: Path) -> dict[str, Any]:
    match request["method"]:
        case "initialize":
            about = {"name": "noter", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": about}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call" if request["params"]["name"] == "memory_store":
            with kept.open("a") as file:
                file.write(json.dumps(request["params"]["arguments"]) + "\n")
            return {"content": [{"type": "text", "text": "stored"}]}
        case _:
            return {"content": [{"type": "text", "text": kept.read_text()}]}


def main(kept: Path, *, is_silent: bool) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if is_silent:
            time.sleep(3600)
        if "id" in request:
            reply = {"jsonrpc": "2.0", "id": request["id"], "result": answer(request, kept)}
            print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), is_silent=sys.argv[2:] == ["silent"])
