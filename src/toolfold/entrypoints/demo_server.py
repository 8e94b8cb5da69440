"""The MCP server of `toolfold demo`: customers of a shop, over stdio. Standard library only."""

import json
import sys
from typing import Any

_TEXT = {"type": "string"}
_CUSTOMERS = {
    number: {
        "id": number,
        "name": f"Customer {number:03}",
        "city": ("Lisbon", "Oslo", "Turin", "Ghent")[number % 4],
        "plan": "trial" if number % 5 == 0 else "paid",
        "orders": [
            {"order": 1000 * number + each, "total": (number * 37 + each * 11) % 400 + 20}
            for each in range(1, 9)
        ],
    }
    for number in range(1, 51)
}


def _tool(name: str, about: str, *, reads: bool, **takes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "description": about,
        "inputSchema": {"type": "object", "properties": takes, "required": list(takes)},
        "annotations": {"readOnlyHint": reads, "destructiveHint": False, "idempotentHint": True},
    }


_TOOLS = [
    _tool("list_customers", "List the ids of all customers.", reads=True),
    _tool("get_customer", "Return a customer with all orders.", reads=True, id={"type": "integer"}),
    _tool(
        "set_plan", "Set the plan of a customer.", reads=False, id={"type": "integer"}, plan=_TEXT
    ),
]


def _call(name: str, given: dict[str, Any]) -> Any:
    if name == "list_customers":
        return {"ids": list(_CUSTOMERS)}
    customer: dict[str, Any] = _CUSTOMERS[int(given["id"])]
    if name == "set_plan":
        customer["plan"] = str(given["plan"])
        return {"id": customer["id"], "plan": customer["plan"]}
    return customer


def _result(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        return {
            "protocolVersion": params.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "shop", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": _TOOLS}
    if method == "tools/call":
        value = _call(params["name"], params.get("arguments", {}))
        text = json.dumps(value)
        return {"content": [{"type": "text", "text": text}], "structuredContent": value}
    return {}


def main() -> None:
    """Answer requests, a line each, until standard input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            reply["result"] = _result(request["method"], request.get("params") or {})
        except (KeyError, ValueError) as error:
            reply["error"] = {"code": -32602, "message": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
