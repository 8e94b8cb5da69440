"""Serve tools that answer as a file says: `python scripted.py FILE`. The standard library only.

The file holds a list of tools as `tools/list` has them; each also has `answers`, the results of
its calls in turn, the last one again and again. A text stands for a result with that text; without
answers a call returns its name and arguments as JSON, or the request's `_meta` if the tool has
`tells_meta`. What is called is appended to `FILE.log`.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any


def main() -> None:
    path = Path(sys.argv[1])
    tools: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    calls: Counter[str] = Counter()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        params = message.get("params") or {}
        if message["method"] == "tools/call":
            with Path(f"{path}.log").open("a", encoding="utf-8") as log:
                log.write(json.dumps([params["name"], params.get("arguments") or {}]) + "\n")
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        answer = _answer(message["method"], params, tools, calls)
        body = {"error": {"code": -32601, "message": "none"}} if answer is None else answer
        print(json.dumps({**reply, **body}), flush=True)


def _answer(
    method: str, params: dict[str, Any], tools: list[dict[str, Any]], calls: Counter[str]
) -> dict[str, Any] | None:
    if method == "initialize":
        info = {"name": "scripted", "version": "1"}
        version = params["protocolVersion"]
        found: dict[str, Any] = {"protocolVersion": version, "serverInfo": info}
        return {"result": {**found, "capabilities": {"tools": {}}}}
    if method == "tools/list":
        hidden = {"answers", "tells_meta"}
        listed = [{k: v for k, v in tool.items() if k not in hidden} for tool in tools]
        return {"result": {"tools": [{"inputSchema": {"type": "object"}, **t} for t in listed]}}
    if method == "tools/call":
        return {"result": _called(params, tools, calls)}
    return {"result": {}} if method == "ping" else None


def _called(
    params: dict[str, Any], tools: list[dict[str, Any]], calls: Counter[str]
) -> dict[str, Any]:
    tool = next(each for each in tools if each["name"] == params["name"])
    answers = [json.dumps(params.get("_meta"))] if "tells_meta" in tool else tool.get("answers")
    if not answers:
        answers = [json.dumps({"tool": params["name"], "arguments": params.get("arguments") or {}})]
    answer = answers[min(calls[tool["name"]], len(answers) - 1)]
    calls[tool["name"]] += 1
    if isinstance(answer, str):
        return {"content": [{"type": "text", "text": answer}]}
    result: dict[str, Any] = {"content": [], **answer}
    return result


if __name__ == "__main__":
    main()
