"""Write what relays say of memory's tools before any daemon runs; a test holds it up to date."""

import json
from pathlib import Path

from toolfold.entrypoints.mcp.memory import memory_tools

SURFACE = Path(__file__).parents[1] / "src/toolfold/relay/surfaces/memory.json"


def main() -> None:
    SURFACE.write_text(json.dumps({"tools": memory_tools()}, indent=2) + "\n")


if __name__ == "__main__":
    main()
