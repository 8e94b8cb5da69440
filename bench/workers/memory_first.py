"""A fresh process that imports a memory's functions and searches once. Runs in its environment.

Is told the module and the query. Writes one line of JSON: seconds of the import and of the search,
seconds of processor time since the start, MB of memory at most. Told a note too, it also stores it
and writes the replies of all functions, as a program would print them.
"""

import importlib
import json
import os
import resource
import sys
import time
from typing import Any


def main() -> None:
    """Import, search, report."""
    name, query, *note = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    begun = time.perf_counter()
    module = importlib.import_module(name)
    imported = time.perf_counter()
    found = module.search(query, limit=5)
    done = time.perf_counter()
    assert len(found.memories) == 5, found
    spent = resource.getrusage(resource.RUSAGE_SELF)
    report = {
        "import_s": imported - begun,
        "search_s": done - imported,
        "cpu_s": spent.ru_utime + spent.ru_stime,
        "peak_mb": _peak_mb(),
        "replies": _replies(module, found, *note) if note else {},
    }
    print(json.dumps(report), file=answers, flush=True)
    # What a process does at its end is nobody's wait.
    os._exit(0)


def _peak_mb() -> float:
    """Return the most memory that this process had; `getrusage` would count its parent's too."""
    with open("/proc/self/status") as file:  # noqa: PTH123
        [peak] = [line for line in file if line.startswith("VmHWM")]
    return int(peak.split()[1]) / 1024


def _replies(module: Any, found: Any, note: str) -> dict[str, str]:
    lines = (f"{one.hash}: {one.preview}" for one in found.memories)
    return {
        "search of 5 results, print(found)": str(found),
        "search of 5 results, print(found.memories)": str(found.memories),
        "search of 5 results, hash and preview of each": "\n".join(lines),
        "store": str(module.store(note)),
        "health": str(module.health()),
    }


main()
