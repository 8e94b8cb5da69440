"""A fresh process that imports a memory's functions and searches once. Runs in its environment.

Is told the module and the query. Writes one line of JSON: seconds of the import and of the search,
seconds of processor time since the start, MB of memory at most, and the replies of the functions as
a program would print them.
"""

import importlib
import json
import os
import resource
import sys
import time


def main() -> None:
    """Import, search, report."""
    name, query = sys.argv[1:]
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
        "peak_mb": spent.ru_maxrss / 1024,
        "search, print(found)": str(found),
        "search, print(found.memories)": str(found.memories),
        "search, hash and preview of each": "\n".join(
            f"{one.hash}: {one.preview}" for one in found.memories
        ),
    }
    print(json.dumps(report), file=answers, flush=True)
    # What a process does at its end is nobody's wait.
    os._exit(0)


main()
