"""A worker that uses a memory by its Python functions. Runs in the environment of that memory.

The spec: `module` with `search`, `store` and `health`; `work`, one of these; `texts` to do it with,
of which `turns` belong to each start: whoever has stored a text may refuse it the second time.
Each `go` is answered with the seconds that the next of them took, `peak` with the most memory that
the process had, in MB. Needs the standard library alone besides the module.
"""

import importlib
import itertools
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any


def main() -> None:
    """Serve until the input ends."""
    told: dict[str, Any] = json.loads(sys.argv[1])
    # Some libraries write to standard output, which belongs to the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    work = _work(importlib.import_module(told["module"]), told["work"])
    texts = itertools.islice(itertools.cycle(told["texts"]), int(sys.argv[2]) * told["turns"], None)
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        if line.strip() == "go":
            text = next(texts)
            begun = time.perf_counter()
            work(text)
            print(f"{time.perf_counter() - begun:.9f}", file=answers, flush=True)
        else:
            peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"{peak_mb:.1f}", file=answers, flush=True)


def _work(module: Any, name: str) -> Callable[[str], object]:
    def search(text: str) -> None:
        found = module.search(text, limit=5)
        assert len(found.memories) == 5, found

    def store(text: str) -> None:
        assert len(module.store(text, tags=["bench"])) == 8

    def health(_text: str) -> None:
        assert module.health().count > 0

    return {"search": search, "store": store, "health": health}[name]


main()
