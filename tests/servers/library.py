"""An MCP server to read from, several calls at a time: `python library.py LOG [TOGETHER]`.

Each call is a line of the log. `meet` answers when `TOGETHER` calls of it are there, and says
"alone" if no others come: who calls one after the other waits in vain.
"""

import sys
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

from stdio import StdioServer, text, tool, words

ALONE_S = 20.0


def main(log: Path, together: int) -> None:
    barrier = Barrier(together)
    counts = {"writes": 0}

    def call(name: str, given: dict[str, Any]) -> dict[str, Any]:
        with log.open("a") as file:
            file.write(f"{name} {given['id']}\n")
        if name == "write":
            counts["writes"] += 1
        if name == "meet":
            try:
                barrier.wait(ALONE_S)
            except BrokenBarrierError:
                return words("alone")
            return words("together")
        if name == "read" and str(given["id"]).endswith("3"):
            raise ValueError(f"There is no book {given['id']}.")
        return text({"id": given["id"], "pages": len(str(given["id"])) * 10, **counts})

    tools = [
        tool("read", "id", read_only=True),
        tool("look", "id", read_only=True),
        tool("meet", "id", read_only=True),
        tool("write", "id", read_only=False),
    ]
    StdioServer("library", tools, call, is_concurrent=True).serve()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
