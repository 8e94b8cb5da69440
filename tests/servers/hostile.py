"""List tools as no honest server would: `python hostile.py MODE`; the modes are below.

Each lists the tool `good` beside what is hostile, which answers every call with `heard`, but fails
with a terminal's sequences where it is told to.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

Object = dict[str, Any]
GOOD: Object = {"name": "good", "description": "A good one.", "inputSchema": {"type": "object"}}
STEERING = "\x1b[2J\x1b]0;owned\x07\u202egnp.exe\x00\U000e0041"


def tool(name: Any, **members: Any) -> Object:
    return {"name": name, "inputSchema": {"type": "object"}, **members}


def nested(levels: int) -> Object:
    schema: Object = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


def parameters(**properties: Any) -> Object:
    return {"type": "object", "properties": properties}


LISTINGS: dict[str, Callable[[], list[Any]]] = {
    "surrogate": lambda: [tool("bad", description="half \ud800 of a pair")],
    "surrogate-name": lambda: [tool("bad\ud800")],
    "deep-input": lambda: [tool("bad", inputSchema=nested(400))],
    "deep-output": lambda: [tool("bad", outputSchema=nested(400))],
    "names": lambda: [tool("__class__"), tool(""), tool("a" * 10_000), tool("b\x1b[2J"), tool(7)],
    "no-tools": lambda: [12, None, "tool", {}, tool("bad", annotations=3, title=4, icons="none")],
    "parameter": lambda: [tool("bad", inputSchema=parameters(**{"a\x1b[2J": {}}))],
    "steering": lambda: [
        tool(
            "bad",
            description=f"Says {STEERING}.",
            title=STEERING,
            inputSchema=parameters(
                a={"type": "string", "description": STEERING},
                line={"enum": ["\r\n", "\n"]},
                default={"type": "string", "description": STEERING},
            ),
        )
    ],
    "huge": lambda: [tool("bad", description="x" * 50_000_000)],
    "many": lambda: [tool(f"bad{n}", description="x" * 1_000) for n in range(50_000)],
    "long": lambda: [tool("bad", inputSchema=parameters(a={"description": "x" * 2_000_000}))],
}


def listed(mode: str, params: Object) -> Object:
    if mode == "silent":
        time.sleep(1_000)
    if mode in {"pages", "slow-pages"}:
        time.sleep(0.3 if mode == "slow-pages" else 0)
        page = int(params.get("cursor") or 0)
        return {"tools": [tool(f"good{page}")], "nextCursor": str(page + 1)}
    return {"tools": [GOOD, *LISTINGS[mode]()]}


def called(name: str) -> Object:
    content = [{"type": "text", "text": "heard" if name == "good" else STEERING}]
    return {"content": content, "isError": name != "good"}


def main(mode: str) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        params = request.get("params") or {}
        error = {"code": -32601, "message": f"No such method. {STEERING}"}
        answer: Object = {"error": error}
        if request["method"] == "initialize":
            about = {"name": "hostile", "version": "1"}
            answer = {
                "result": {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": about,
                }
            }
        elif request["method"] == "tools/list":
            answer = {"result": listed(mode, params)}
        elif request["method"] == "tools/call" and mode != "refuses":
            answer = {"result": called(params["name"])}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)


LISTINGS["refuses"] = list

if __name__ == "__main__":
    main(sys.argv[1])
