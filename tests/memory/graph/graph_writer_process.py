"""A process of its own that makes entities: `graph_writer_process.py DIRECTORY NAME COUNT`.

Prints the name of each entity when it is kept.
"""

import sys
from itertools import count, islice
from pathlib import Path

import anyio

from toolfold.memory.graph.service import Graph
from toolfold.memory.sql.graph import SqlGraphStore
from toolfold.memory.sqlite.connection import SqliteFile
from toolfold.memory.sqlite.store import SqliteStore


async def main(directory: Path, name: str, most: int | None) -> None:
    file = SqliteFile(directory / "memory.db")
    async with file.running():
        graph = Graph(SqlGraphStore(file), SqliteStore(file), namespace="project")
        for number in islice(count(), most):
            each = f"{name}{number}"
            await graph.create_entities(
                [{"name": each, "entityType": name, "observations": [f"fact {number}"]}]
            )
            print(each, flush=True)


if __name__ == "__main__":
    most = int(sys.argv[3])
    anyio.run(main, Path(sys.argv[1]), sys.argv[2], most if most >= 0 else None)
