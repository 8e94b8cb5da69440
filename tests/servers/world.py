"""An MCP server that tells where it runs: `python world.py [MARK]`. Standard library only.

It starts in milliseconds, so that tests can start many, and speaks the protocol of 2025-11-25.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

NUMBER = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
FILE = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS: dict[str, dict[str, Any]] = {
    "where": {"type": "object", "properties": {}},
    "double": NUMBER,
    "append": FILE,
    "wait_for": FILE,
}


def where(_arguments: dict[str, Any]) -> Any:
    mark = os.environ.get("MARK")
    return {"cwd": str(Path.cwd()), "mark": mark, "pid": os.getpid(), "environ": dict(os.environ)}


def double(arguments: dict[str, Any]) -> Any:
    return arguments["number"] * 2


def append(arguments: dict[str, Any]) -> Any:
    with Path(arguments["path"]).open("a") as file:
        file.write("x")
    return "appended"


def wait_for(arguments: dict[str, Any]) -> Any:
    """Answer when the file is there; until then another file says that we wait."""
    Path(f"{arguments['path']}.waiting").touch()
    while not Path(arguments["path"]).exists():
        time.sleep(0.01)
    return "seen"


def answer(method: str, params: dict[str, Any]) -> Any:
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "world", "version": "1"},
            }
        case "tools/list":
            hints = {"where": True, "double": True}
            return {
                "tools": [
                    {
                        "name": name,
                        "inputSchema": schema,
                        "annotations": {"readOnlyHint": hints.get(name, False)},
                    }
                    for name, schema in TOOLS.items()
                ]
            }
        case "tools/call":
            value = globals()[params["name"]](params.get("arguments") or {})
            text = value if isinstance(value, str) else json.dumps(value)
            return {"content": [{"type": "text", "text": text}]}
    return None


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request["method"], request.get("params") or {})
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        if result is None:
            reply["error"] = {"code": -32601, "message": "no such method"}
        else:
            reply["result"] = result
        print(json.dumps(reply), flush=True)


main()
