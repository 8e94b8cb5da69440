"""A worker that starts a process for each `go`, and answers with the seconds until it ends.

The spec: `command`, to which one of `texts` is appended each time.
"""

import itertools
import json
import subprocess
import sys
import time
from typing import Any


def main() -> None:
    """Serve until the input ends."""
    told: dict[str, Any] = json.loads(sys.argv[1])
    texts = itertools.cycle(told["texts"])
    print("ready", flush=True)
    for _ in sys.stdin:
        command = [*told["command"], next(texts)]
        begun = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        print(f"{time.perf_counter() - begun:.9f}", flush=True)


main()
