"""The shop that snippets of the corpus work with; also an MCP server over stdio.

Standard library only: it runs in the plain interpreter, and as `python shop.py` for the app.
"""

import csv
import io
import json
import sys
from typing import Any

CUSTOMERS: list[dict[str, Any]] = [
    {"id": 1, "name": "Ada Byron", "email": "ada@example.org", "city": "London", "vip": True},
    {"id": 2, "name": "Bo Chen", "email": "bo@example.com", "city": "Taipei", "vip": False},
    {"id": 3, "name": "Cy Dorn", "email": "cy@example.net", "city": "Berlin", "vip": False},
    {"id": 4, "name": "Di Eriksen", "email": "di@example.org", "city": "Oslo", "vip": True},
]

_ORDERS = """\
id,customer,item,quantity,price,placed,status
101,1,lamp,2,39.90,2026-01-05T09:15:00,shipped
102,2,desk,1,249.00,2026-01-07T14:02:00,shipped
103,1,chair,4,89.50,2026-01-19T08:40:00,open
104,3,lamp,1,39.90,2026-02-02T17:25:00,cancelled
105,4,shelf,3,64.25,2026-02-03T11:00:00,open
106,2,chair,2,89.50,2026-02-14T19:45:00,shipped
107,4,desk,1,249.00,2026-02-28T07:30:00,open
108,3,rug,1,120.00,2026-03-01T12:00:00,shipped
109,1,rug,2,120.00,2026-03-11T16:20:00,open
110,4,lamp,5,39.90,2026-03-29T10:10:00,shipped
111,2,shelf,1,64.25,2026-04-02T13:37:00,cancelled
112,3,chair,6,89.50,2026-04-20T15:55:00,open
"""

ORDERS: list[dict[str, Any]] = [
    {
        **row,
        "id": int(row["id"]),
        "customer": int(row["customer"]),
        "quantity": int(row["quantity"]),
        "price": float(row["price"]),
    }
    for row in csv.DictReader(io.StringIO(_ORDERS))
]

LOG = """\
2026-04-01 08:00:01 INFO  api     started version=2.4.1
2026-04-01 08:00:07 WARN  db      slow query ms=812 table=orders
2026-04-01 08:01:12 ERROR payment card refused order=103 code=51
2026-04-01 08:01:40 INFO  api     GET /orders 200 ms=35
2026-04-01 08:02:02 ERROR payment timeout order=105 code=0
2026-04-01 08:02:30 INFO  api     GET /orders/105 404 ms=4
2026-04-01 08:03:59 WARN  db      slow query ms=1204 table=customers
2026-04-01 08:04:00 INFO  api     stopped
"""

PAGE = """\
<html><body><h1>Price list</h1>
<table><tr><th>Item</th><th>Price</th></tr>
<tr><td>Lamp &amp; bulb</td><td>39.90</td></tr>
<tr><td>Desk</td><td>249.00</td></tr></table>
<a href="/rugs?size=xl&amp;lang=en">Rugs</a> <a href="https://example.org/about">About</a>
</body></html>
"""

FEED = """\
<?xml version="1.0"?>
<feed xmlns:s="urn:shop"><entry id="a1"><title>New lamps</title><s:stock>12</s:stock></entry>
<entry id="a2"><title>Desks are back</title><s:stock>3</s:stock></entry></feed>
"""

TEXTS = {"orders.csv": _ORDERS, "app.log": LOG, "prices.html": PAGE, "feed.xml": FEED}


class Refused(Exception):
    """The shop said no; snippets see its words."""


def list_orders(status: str | None = None) -> Any:
    return [order for order in ORDERS if status in (None, order["status"])]


def get_order(order_id: int) -> Any:
    return _one(ORDERS, order_id, "order")


def get_customer(customer_id: int) -> Any:
    return _one(CUSTOMERS, customer_id, "customer")


def page_of_orders(page: int, size: int = 5) -> Any:
    start = page * size
    more = start + size < len(ORDERS)
    return {"orders": ORDERS[start : start + size], "next": page + 1 if more else None}


def rates() -> Any:
    return {"EUR": 1.0, "USD": 1.1, "GBP": 0.85, "NOK": 11.5}


def read_text(name: str) -> Any:
    if name not in TEXTS:
        raise Refused(f"There is no file {name}.")
    return TEXTS[name]


def ship(order_id: int) -> Any:
    order = _one(ORDERS, order_id, "order")
    if order["status"] != "open":
        raise Refused(f"Order {order_id} is {order['status']}.")
    return {"order_id": order_id, "parcel": f"P{order_id * 7}"}


def _one(rows: list[dict[str, Any]], wanted: int, what: str) -> dict[str, Any]:
    for row in rows:
        if row["id"] == wanted:
            return row
    raise Refused(f"There is no {what} {wanted}.")


_INTEGER = {"type": "integer"}
_TEXT = {"type": "string"}
TOOLS: dict[str, tuple[Any, dict[str, Any], list[str]]] = {
    "list_orders": (list_orders, {"status": _TEXT}, []),
    "get_order": (get_order, {"order_id": _INTEGER}, ["order_id"]),
    "get_customer": (get_customer, {"customer_id": _INTEGER}, ["customer_id"]),
    "page_of_orders": (page_of_orders, {"page": _INTEGER, "size": _INTEGER}, ["page"]),
    "rates": (rates, {}, []),
    "read_text": (read_text, {"name": _TEXT}, ["name"]),
    "ship": (ship, {"order_id": _INTEGER}, ["order_id"]),
}


def _listed(name: str) -> dict[str, Any]:
    _, properties, required = TOOLS[name]
    schema = {"type": "object", "properties": properties, "required": required}
    return {
        "name": name,
        "inputSchema": schema,
        "annotations": {"readOnlyHint": name != "ship"},
    }


def _answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "shop", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [_listed(name) for name in TOOLS]}
    if method == "tools/call":
        return _called(params["name"], params.get("arguments") or {})
    return {}


def _called(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        value = TOOLS[name][0](**arguments)
    except Refused as refusal:
        return {"content": [{"type": "text", "text": str(refusal)}], "isError": True}
    text = value if isinstance(value, str) else json.dumps(value)
    return {"content": [{"type": "text", "text": text}]}


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            result = _answer(request["method"], request.get("params") or {})
            reply = {"jsonrpc": "2.0", "id": request["id"], "result": result}
            print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
