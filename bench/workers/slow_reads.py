"""An MCP server whose one tool only reads, and takes 20 ms for that, however many read at once."""

import json
import sys
import time
from threading import Lock, Thread
from typing import Any

_SCHEMA = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
}
_TOOL = {"name": "read", "inputSchema": _SCHEMA, "annotations": {"readOnlyHint": True}}
_TAKES_S = 0.02
_writing = Lock()


def _answer(request: dict[str, Any]) -> None:
    result: dict[str, Any] = {}
    match request["method"]:
        case "initialize":
            about = {"name": "slow", "version": "1"}
            version = request["params"]["protocolVersion"]
            result = {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": about,
            }
        case "tools/list":
            result = {"tools": [_TOOL]}
        case "tools/call":
            time.sleep(_TAKES_S)
            number = request["params"]["arguments"]["number"]
            result = {"content": [{"type": "text", "text": json.dumps({"number": number})}]}
    with _writing:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


for line in sys.stdin:
    if "id" in (message := json.loads(line)):
        Thread(target=_answer, args=[message], daemon=True).start()
