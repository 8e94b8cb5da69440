"""An MCP server that answers at once: `python null.py`."""

from typing import Any

from stdio import StdioServer, text, tool

TOOLS = [tool("echo", "value", read_only=True), tool("put", "value", read_only=False)]


class Null:
    """`echo` reads, `put` writes and counts its calls."""

    def __init__(self) -> None:
        self._stored: list[object] = []

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        value = arguments.get("value")
        if name == "echo":
            return text(value)
        self._stored.append(value)
        return text({"value": value, "count": len(self._stored)})


def serve() -> None:
    """Serve over stdin and stdout until the client leaves."""
    StdioServer("null", TOOLS, Null().call).serve()


if __name__ == "__main__":
    serve()
