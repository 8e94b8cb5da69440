"""A process of its own that consolidates: `consolidation_process.py DIRECTORY`.

Prints a line just before it begins to write, and another when it has written.
"""

import sys
from pathlib import Path
from typing import Any

import anyio
from consolidating import running_world


async def main(directory: Path) -> None:
    async with running_world(directory) as world:
        apply = world.kept.apply

        async def told(*arguments: Any) -> Any:
            print("writing", flush=True)
            return await apply(*arguments)

        world.kept.apply = told  # type: ignore[method-assign]
        found = await world.consolidation.consolidate("minimal")
        print("written", found.id, flush=True)


anyio.run(main, Path(sys.argv[1]))
