"""Measure a run that imports a skill beside the same code written out, on both interpreters.

The two are measured in turns within one run and compared by their minima, and so are calls of the
function itself, where a skill must cost what any function costs.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import anyio
from targets import limit

from toolfold.app import App, running_app
from toolfold.config.config import load_config
from toolfold.sandbox.cpython.kernel import missing_walls

ROUNDS = 60
CALLS = 20_000
MAX_MORE_MS = {"monty": 2.0, "cpython": 4.0}
MAX_CALL_RATIO = limit("skill-call")

SKILL = '''
import json
from collections import Counter

LIMIT = 3


def _cleaned(row):
    return {key: str(value).strip() for key, value in row.items() if value is not None}


def tally(rows: list[dict], key: str = "kind", limit: int = LIMIT) -> list:
    """Count rows by a key, most frequent first."""
    counts = Counter(_cleaned(row).get(key, "") for row in rows)
    return json.loads(json.dumps(counts.most_common(limit)))
'''
SMALL = '\n\ndef same(value: int) -> int:\n    """Return a value."""\n    return value\n'
USE = "tally([{'kind': 'a '}, {'kind': 'b'}, {'kind': 'a'}])"
LOOP = f"""
import time
best = 1e9
for _ in range(5):
    began = time.perf_counter()
    for number in range({CALLS}):
        same(number)
    best = min(best, time.perf_counter() - began)
best
"""


def main() -> int:
    """Print the table; fail where a figure is worse than promised."""
    tiers = ["monty"] if missing_walls() else ["monty", "cpython"]
    print(f"{'':<10}{'inline':>12}{'skill':>12}{'more':>12}{'first use':>12}{'a call':>18}")
    return max(anyio.run(measure, tier) for tier in tiers)


async def measure(tier: str) -> int:
    """Measure one interpreter."""
    with tempfile.TemporaryDirectory() as directory:
        project = Path(directory)
        (project / ".toolfold").mkdir()
        environment = {"PATH": os.environ["PATH"], "HOME": directory, "TOOLFOLD_HOME": directory}
        config = load_config(cwd=project, environ=environment, overrides={"sandbox": tier})
        async with running_app(config) as app:
            return await compare(app, tier)


async def compare(app: App, tier: str) -> int:
    """Run both in turns, and print a line."""
    for name, source in (("tally", SKILL), ("same", SMALL)):
        await timed(app, f"import skills\nskills.save({name!r}, {source!r}, 'For measuring')")
    inline, skill = SKILL + USE, f"from skills import tally\n{USE}"
    await timed(app, inline)
    first = await timed(app, skill)
    pairs = [(await timed(app, inline), await timed(app, skill)) for _ in range(ROUNDS)]
    plain, used = (min(times) for times in zip(*pairs, strict=True))
    medians = [statistics.median(times) for times in zip(*pairs, strict=True)]
    calls = [await value(app, f"{head}\n{LOOP}") for head in (SMALL, "from skills import same")]
    more, ratio = (used - plain) * 1000, calls[1] / calls[0]
    times = "".join(f"{each * 1000:>9.2f} ms" for each in (plain, used, used - plain, first))
    print(
        f"{tier:<10}{times}{calls[1] / CALLS * 1e9:>8.0f} ns, {ratio:.2f} times"
        f"   (medians {medians[0] * 1000:.2f}, {medians[1] * 1000:.2f})"
    )
    return int(more > MAX_MORE_MS[tier] or ratio > MAX_CALL_RATIO)


async def timed(app: App, code: str) -> float:
    """Return how long a run takes, from code to reply."""
    began = time.perf_counter()
    result = await app.runtime.run(code)
    taken = time.perf_counter() - began
    if not result.success:
        raise SystemExit(result.text)
    return taken


async def value(app: App, code: str) -> float:
    """Return what a run returns."""
    result = await app.runtime.run(code)
    if not result.success:
        raise SystemExit(result.text)
    return float(str(result.value))


if __name__ == "__main__":
    sys.exit(main())
