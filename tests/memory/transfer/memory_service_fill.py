"""Fill a database of mcp-memory-service with its own functions. Runs in its environment.

Reads a JSON list of memories on standard input; deletes those that say so, and supersedes.
"""

import asyncio
import json
import sys

from mcp_memory_service.api.client import get_storage_async  # type: ignore[import-not-found]
from mcp_memory_service.models.memory import Memory  # type: ignore[import-not-found]
from mcp_memory_service.utils.hashing import generate_content_hash  # type: ignore[import-not-found]


async def main() -> None:
    storage = await get_storage_async()
    memories = json.load(sys.stdin)
    for each in memories:
        memory = Memory(
            content=each["content"],
            content_hash=generate_content_hash(each["content"]),
            tags=each["tags"],
            memory_type=each["memory_type"],
            metadata=each["metadata"],
            created_at=each["created"],
        )
        is_stored, why = await storage.store(memory, skip_semantic_dedup=True)
        assert is_stored, why
    for each in memories:
        if each.get("deleted"):
            is_deleted, why = await storage.delete(generate_content_hash(each["content"]))
            assert is_deleted, why
    await storage.close()


asyncio.run(main())
