"""Measure what the audit log costs: rows and runs with it and without it, in turns.

A row is one call of a tool, as the journal writes it. The run is the 51-call job over a real
server. Without the log means that only rows are written, and that no head is moved as runs end; all
else is the same.
"""

import argparse
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
from jobs import BATCH, RECORDS
from stage import ROOT, Stage, Unavailable
from targets import limit

from toolfold.app import running_app, running_shared
from toolfold.config.config import load_config
from toolfold.journal.audit.chain import AUDITED, EntryKind, trigger
from toolfold.journal.audit.writer import _ROWS, AuditWriter
from toolfold.journal.audit_check import check_log
from toolfold.journal.journal import Journal
from toolfold.journal.runs import Origin

ANSWER = {"name": "Ada", "facts": ["a fact of some length"] * 5}
ROWS = 50
MAX = limit("audit")


@contextmanager
def without_log(journal: Journal) -> Iterator[None]:
    """Write nothing to the log for the length of this context."""
    rows, add = journal._rows, AuditWriter.add  # noqa: SLF001
    seal, path = rows._seal, journal._path  # noqa: SLF001

    def add_row(writer: AuditWriter, kind: EntryKind, row: tuple[Any, ...]) -> None:
        writer._transaction.execute(_ROWS[kind], row)  # noqa: SLF001

    with closing(sqlite3.connect(path)) as connection:
        for kind in AUDITED:
            connection.execute(f"DROP TRIGGER audit_{kind}")
        rows._seal = lambda: None  # type: ignore[method-assign]  # noqa: SLF001
        AuditWriter.add = add_row  # type: ignore[method-assign,assignment]
        yield
        AuditWriter.add = add  # type: ignore[method-assign]
        rows._seal = seal  # type: ignore[method-assign]  # noqa: SLF001
        for kind in AUDITED:
            connection.execute(trigger(kind))


def measure_rows(directory: Path, pairs: int) -> None:
    """Print what a row costs, in the quickest turns: the rest is the machine's."""
    path = directory / "rows.db"
    journal = Journal(path, days=30, max_bytes=1 << 30, code_bytes=1000)

    def write() -> None:
        for _ in range(ROWS):
            with run.call("null.call", {"number": 1}) as call:
                call.answer = ANSWER

    with journal.opened(), journal.begin(Origin(), "code") as run:
        plain_s, logged_s = in_turns(journal, write, pairs)
        run.end(failure=None, reply="")
    plain_us, logged_us = (min(times) / ROWS * 1e6 for times in (plain_s, logged_s))
    ratio = statistics.median(b / a for a, b in zip(plain_s, logged_s, strict=True))
    print(
        f"a row: {plain_us:.1f} us without the log, {logged_us:.1f} us with it "
        f"(+ {logged_us - plain_us:.1f} us; median of ratios x {ratio:.2f})"
    )


def in_turns(
    journal: Journal, work: Callable[[], None], pairs: int
) -> tuple[list[float], list[float]]:
    """Return the times without the log and with it."""
    plain, logged = [], []
    for turn in range(pairs + 1):
        for is_plain in (True, False) if turn % 2 else (False, True):
            if is_plain:
                with without_log(journal):
                    work()  # prepares its statements anew
                    plain.append(timed(work))
            else:
                work()
                logged.append(timed(work))
    return plain[1:], logged[1:]


def timed(work: Callable[[], None]) -> float:
    """Return how long it took."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


async def measure_runs(directory: Path, pairs: int) -> float:
    """Print the ratio of the times of runs, and return it."""
    side = Stage(ROOT / ".tools", directory).side("side")
    environ = {"PATH": os.environ["PATH"], "HOME": str(directory), "TOOLFOLD_HOME": str(directory)}
    config = load_config(cwd=directory, environ=environ, config_file=side.config)
    plain: list[float] = []
    logged: list[float] = []
    async with running_shared(config) as shared, running_app(config, shared) as app:

        async def run(times: list[float]) -> None:
            side.reset()
            started = time.perf_counter()
            result = await app.runtime.run(f"# {len(plain)} {len(logged)}\n{BATCH}")
            times.append(time.perf_counter() - started)
            assert str(len(RECORDS)) in result.text, result.text

        for turn in range(pairs + 1):
            for is_plain in (True, False) if turn % 2 else (False, True):
                if is_plain:
                    with without_log(shared.journal):
                        await run(plain)
                else:
                    await run(logged)
    ratios = [b / a for a, b in zip(plain[1:], logged[1:], strict=True)]
    ratio, spread = statistics.median(ratios), statistics.quantiles(ratios, n=20)
    print(f"a run of 51 calls without the log: {statistics.median(plain) * 1000:.1f} ms")
    print(f"with it: x {ratio:.3f} (90 % of {pairs} pairs: {spread[0]:.3f} to {spread[-1]:.3f})")
    return ratio


def measure_verifying(directory: Path) -> None:
    """Print how long verifying takes."""
    path = directory / "verified.db"
    journal = Journal(path, days=30, max_bytes=1 << 30, code_bytes=1000)
    with journal.opened():
        for _ in range(100):
            with journal.begin(Origin(), BATCH) as run:
                for number in range(51):
                    with run.call("null.call", {"number": number}) as call:
                        call.answer = ANSWER
                run.end(failure=None, reply="")
    started = time.perf_counter()
    verified = check_log(path)
    taken_s = time.perf_counter() - started
    assert verified.fault is None, verified.fault
    print(f"verifying {verified.entries:,} entries: {verified.entries / taken_s:,.0f} a second")


def main() -> int:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=60)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        measure_rows(directory, arguments.pairs)
        measure_verifying(directory)
        try:
            ratio = anyio.run(measure_runs, directory, arguments.pairs)
        except Unavailable as reason:
            print(f"the 51-call job is not measured: {reason}")
            return 0
    if ratio > MAX:
        print(f"that is more than x {MAX}")
    return int(ratio > MAX)


if __name__ == "__main__":
    sys.exit(main())
