"""Fill a database of mcp-memory-service. Runs in its environment.

Reads a JSON list of `[text, created]` on standard input. They go through its own `store_batch`, so
every vector is its own; only in bulk, because one by one takes the better part of an hour.
"""

import asyncio
import json
import sys

from mcp_memory_service.api.client import get_storage_async
from mcp_memory_service.models.memory import Memory
from mcp_memory_service.utils.hashing import generate_content_hash

BATCH = 32


async def main() -> None:
    """Store them all, or fail."""
    storage = await get_storage_async()
    notes = json.load(sys.stdin)
    for first in range(0, len(notes), BATCH):
        batch = [
            Memory(
                content=text,
                content_hash=generate_content_hash(text),
                tags=["bench"],
                memory_type="note",
                metadata={},
                created_at=created,
            )
            for text, created in notes[first : first + BATCH]
        ]
        results = await storage.store_batch(batch)
        refused = [why for is_stored, why in results if not is_stored]
        assert not refused, refused[0]
    await storage.close()


asyncio.run(main())
