"""The verbs of the graph behind a bare stdio door: `graph_service.py DIRECTORY`.

It shows what the graph itself takes, without relay, daemon and SDK.
"""

import json
import sys
from pathlib import Path
from typing import Any

import anyio

from toolfold.memory.graph.service import Graph
from toolfold.memory.graph.tools import call_as_json
from toolfold.memory.sql.graph import SqlGraphStore
from toolfold.memory.sqlite.connection import SqliteFile
from toolfold.memory.sqlite.store import SqliteStore


async def _serve(directory: Path) -> None:
    file = SqliteFile(directory / "memory.db")
    async with file.running():
        graph = Graph(SqlGraphStore(file), SqliteStore(file), namespace="bench")
        for line in sys.stdin:
            message = json.loads(line)
            if "id" in message:
                result = await _result(graph, message)
                print(f'{{"jsonrpc":"2.0","id":{message["id"]},"result":{result}}}', flush=True)


async def _result(graph: Graph, message: dict[str, Any]) -> str:
    if message["method"] != "tools/call":
        return "{}"
    return await call_as_json(graph, message["params"]["name"], message["params"]["arguments"])


if __name__ == "__main__":
    anyio.run(_serve, Path(sys.argv[1]))
