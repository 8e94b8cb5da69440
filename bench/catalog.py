"""Measure the catalog with every recorded tool: search from the disk, and memory."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from targets import limit
from tokens import CATALOGUE, load

from toolfold.catalog.listing import ListingCache
from toolfold.config.config import load_config
from toolfold.config.servers import config_hash

PAIRS = 21
MAX_MS = limit("catalog-ms")
MAX_MB = limit("catalog-mb")
QUERY = "open an issue about a bug"

_MEASURE_MEMORY = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from tokens import load
from toolfold.catalog.known_tools import KnownTools
from toolfold.catalog.search.discovery import ToolIndex
def peak_mb(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak_mb()
tools = load([])
index = ToolIndex(tools)
index.search("open an issue", limit=5)
print(peak_mb() - before)
"""


def main() -> int:
    """Print the figures; fail where one is larger than promised."""
    if not CATALOGUE.is_dir():
        print("catalog: skipped, the recorded catalogues are not on this machine")
        return 0
    with tempfile.TemporaryDirectory() as directory:
        added_ms = _search_ms(Path(directory))
    memory_mb = _memory_mb()
    print(f"\nthe catalog with {len(load([]))} tools")
    print(f"`toolfold tools search`, the daemon is warm, over `python -c pass`: {added_ms:.0f} ms")
    print(f"memory of the catalog and its index of words: {memory_mb:.0f} MB")
    print(f"promised: under {MAX_MS} ms, under {MAX_MB} MB")
    return 0 if added_ms < MAX_MS and memory_mb < MAX_MB else 1


def _search_ms(home: Path) -> float:
    """Return what a search takes longer than starting the interpreter: the median of pairs."""
    config = _prepare(home)
    environment = {**os.environ, "TOOLFOLD_HOME": str(home / "home")}
    toolfold = str(Path(sys.executable).parent / "toolfold")
    search = [toolfold, "tools", "search", "--config", str(config), QUERY]
    bare = [sys.executable, "-c", "pass"]
    _seconds(search, environment)  # starts the daemon, and builds the index, once
    try:
        differences = [
            _seconds(search, environment) - _seconds(bare, environment) for _ in range(PAIRS)
        ]
    finally:
        subprocess.run([toolfold, "stop"], env=environment, check=True, stdout=subprocess.DEVNULL)
    return statistics.median(differences) * 1000


def _prepare(home: Path) -> Path:
    """Put the listings of all recorded servers on disk, as if they had been connected to."""
    config = home / "mcp.json"
    servers = {path.stem: {"command": "recorded", "args": [path.stem]} for path in _recorded()}
    config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    environment = {"HOME": str(home), "TOOLFOLD_HOME": str(home / "home")}
    loaded = load_config(config_file=config, cwd=home, environ=environment)
    cache = ListingCache(loaded.directories.cache)
    for server in loaded.servers:
        cache.save(config_hash(server), [tool.listed for tool in load([server.name])])
    return config


def _recorded() -> list[Path]:
    return sorted(CATALOGUE.glob("*.json"))


def _seconds(command: list[str], environment: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return time.perf_counter() - started


def _memory_mb() -> float:
    command = [sys.executable, "-c", _MEASURE_MEMORY, str(Path(__file__).parent)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
