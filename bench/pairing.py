"""Two workers taking turns, and what their times say."""

import itertools
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

WORKERS = Path(__file__).parent / "workers"
_WARM_UPS = 3
_PAIRS_A_START = 8
TURNS_A_START = _WARM_UPS + _PAIRS_A_START
_PATIENCE_S = 180.0


def nothing() -> None:
    """Stand for a step that is not needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one worker does in a comparison; it is told as well how often it was started before."""

    script: str
    spec: dict[str, Any]
    python: str = sys.executable
    env: dict[str, str] | None = None
    before: Callable[[], None] = nothing
    after: Callable[[], None] = nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A median with its quartiles."""

    median: float
    q1: float
    q3: float

    @classmethod
    def of(cls, values: list[float]) -> "Spread":
        """Summarise at least two values."""
        q1, median, q3 = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median=median, q1=q1, q3=q3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How long the subject took beside the baseline."""

    ratio: Spread
    baseline_s: Spread
    subject_s: Spread
    pairs: int


def compare(baseline: Part, subject: Part, *, pairs: int) -> Comparison:
    """Time the two in turns, each going first in every other pair.

    They are started anew for every so many pairs: of two equal processes, one is often quicker by
    some hundredths for as long as it lives.
    """
    times: list[tuple[float, float]] = []
    for start in itertools.count():
        if len(times) >= pairs:
            break
        few = min(_PAIRS_A_START, pairs - len(times))
        times += _take_turns(baseline, subject, pairs=few, start=start)
    return Comparison(
        ratio=Spread.of([mine / other for other, mine in times]),
        baseline_s=Spread.of([other for other, _ in times]),
        subject_s=Spread.of([mine for _, mine in times]),
        pairs=pairs,
    )


def _take_turns(
    baseline: Part, subject: Part, *, pairs: int, start: int
) -> list[tuple[float, float]]:
    with worker(baseline, start) as time_baseline, worker(subject, start) as time_subject:
        for _ in range(_WARM_UPS):
            time_baseline()
            time_subject()
        return [_pair(time_baseline, time_subject, number) for number in range(pairs)]


def _pair(
    time_baseline: Callable[[], float], time_subject: Callable[[], float], number: int
) -> tuple[float, float]:
    if number % 2:
        mine = time_subject()
        return time_baseline(), mine
    return time_baseline(), time_subject()


@contextmanager
def worker(part: Part, start: int = 0) -> Iterator[Callable[[], float]]:
    """Run a worker for the length of this context; yield what times one turn of it."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        process = subprocess.Popen(
            [part.python, str(WORKERS / part.script), json.dumps(part.spec), str(start)],
            env=part.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        try:
            _line(process, errors)

            def turn() -> float:
                part.before()
                assert process.stdin is not None
                process.stdin.write("go\n")
                process.stdin.flush()
                seconds = float(_line(process, errors))
                part.after()
                return seconds

            yield turn
        finally:
            _end(process)


def _line(process: subprocess.Popen[str], errors: IO[str]) -> str:
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], _PATIENCE_S)
    if readable and (line := process.stdout.readline()):
        return line
    errors.seek(0)
    why = errors.read()[-6_000:] if readable else f"no answer within {_PATIENCE_S:g} s"
    raise RuntimeError(f"A worker failed:\n{why}")


def _end(process: subprocess.Popen[str]) -> None:
    """Let a worker end by itself, and its servers with it; insist after a while."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    process.stdout.close()
