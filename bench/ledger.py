"""Measure what the ledger costs: a run with it and without it, in turns, and reading it.

The job is 51 calls in one run, over an upstream that is not there, so that what remains is what
toolfold itself does. Without the ledger means that the journal is told nothing of definitions and
counts no long text; all else is the same.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio
from targets import limit

from toolfold.journal.reader import read_journal
from toolfold.journal.rows import LedgerWriter

sys.path.insert(0, str(Path(__file__).parent / "workers"))

CODE = "import null\nfor number in range(51):\n    null.call(number=number)\n"
MAX = limit("ledger")
ANSWER = {"name": "Ada", "facts": ["a fact of some length"] * 5}


class Silence(LedgerWriter):
    """Books that nothing is written into."""

    def count(self, *_: Any) -> None:
        """Forget it."""

    def offer(self, *_: Any) -> None:
        """Forget it."""


async def measure(directory: Path, pairs: int) -> int:
    """Print the ratio of times, and the time that reading takes; fail if it is noticeable."""
    from nullstage import null_runtime

    ratios, times = [], []
    async with null_runtime(directory, ANSWER) as (runtime, journal):
        ledger_writer, silence = journal._ledger_writer, Silence(journal._tables)  # noqa: SLF001
        for turn in range(pairs + 1):
            taken = {}
            order = [ledger_writer, silence] if turn % 2 else [silence, ledger_writer]
            for each in order:
                journal._ledger_writer = each  # noqa: SLF001
                started = time.perf_counter()
                result = await runtime.run(f"# {turn}\n{CODE}")
                taken[isinstance(each, Silence)] = time.perf_counter() - started
                assert result.success, result.text
            if turn:
                ratios.append(taken[False] / taken[True])
                times.append(taken[True])
        journal._ledger_writer = ledger_writer  # noqa: SLF001
    ratio = statistics.median(ratios)
    spread = statistics.quantiles(ratios, n=20)
    print(f"a run of 51 calls without the ledger: {statistics.median(times) * 1000:.1f} ms")
    print(f"with it: x {ratio:.3f} (90 % of {pairs} pairs: {spread[0]:.3f} to {spread[-1]:.3f})")
    _print_reading(directory / "data" / "runs.db")
    if ratio > MAX:
        print(f"that is more than x {MAX}")
    return int(ratio > MAX)


def _print_reading(path: Path) -> None:
    for title in ("counting all texts", "again, from what was counted"):
        started = time.perf_counter()
        found = read_journal(path, lambda journal: journal.accounts())
        taken_ms = (time.perf_counter() - started) * 1000
        assert found is not None
        calls = sum(account.calls for account in found.all)
        print(f"the ledger of {len(found.all):,} runs, {calls:,} calls, {title}: {taken_ms:.0f} ms")


def main() -> int:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=200)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        return anyio.run(measure, Path(directory), arguments.pairs)


if __name__ == "__main__":
    sys.exit(main())
