"""Measure memory beside mcp-memory-service: times in pairs, memory, size."""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import report
from cases import Case
from memory_ours import ours
from memory_sides import Side, filled, memory_service
from notes import questions
from pairing import Part, compare
from stage import ROOT, Stage, Unavailable

SIZES = (1_000, 10_000)
FRESH_PAIRS = 9
FRESH_PROCESSES = 5
TITLES = {
    "first": "import and first search",
    "search": "warm search",
    "store": "store one",
    "health": "health",
}


def main() -> int:
    """Print the tables for all that is installed."""
    arguments = _arguments()
    place = arguments.tools / "memory-service"
    try:
        baseline, unpadded = memory_service(place)
    except Unavailable as reason:
        print(f"mcp-memory-service: skipped, {reason}")
        return 0
    subject = ours()
    for side in (baseline, unpadded, subject):
        _print_weight(side, place / "filled", arguments.sizes)
    for one, other in ((baseline, unpadded), (baseline, subject), (unpadded, subject)):
        _print_pairs(one, other, place / "filled", arguments)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=31, metavar="N", help="default: 31")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="NOTES")
    parser.add_argument("--only", nargs="+", choices=TITLES, default=[*TITLES], metavar="WORK")
    parser.add_argument("--tools", default=ROOT / ".tools", type=Path, metavar="DIR")
    return parser.parse_args()


def _print_weight(side: Side, kept: Path, sizes: tuple[int, ...]) -> None:
    """Print how large it is, and what one search in a fresh process takes of the machine."""
    megabytes = sum(_size(path) for path in side.installed) / 1e6
    print(f"\n{side.title}: {megabytes:.0f} MB installed", flush=True)
    for size in sizes:
        with tempfile.TemporaryDirectory() as directory:
            home = filled(side, kept, size, Path(directory))
            reports = [side.report(home, query) for query in questions(FRESH_PROCESSES)]
            served = f" (its daemon {side.served_mb(home):.0f})" if side.served_mb else ""
            side.end(home)
        print(
            f"  one search, {size:,} notes:"
            f" peak memory {_middle(reports, 'peak_mb'):.0f} MB{served},"
            f" processor time {_middle(reports, 'cpu_s'):.2f} s,"
            f" import {_middle(reports, 'import_s'):.2f} s,"
            f" search {_middle(reports, 'search_s'):.2f} s",
            flush=True,
        )


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if not file.is_symlink())


def _middle(reports: list[dict[str, Any]], key: str) -> float:
    return statistics.median(float(one[key]) for one in reports)


def _print_pairs(baseline: Side, subject: Side, kept: Path, arguments: argparse.Namespace) -> None:
    print(f"\n{subject.title} (subject) beside {baseline.title} (baseline)")
    print(report.heading(), flush=True)
    for size in arguments.sizes:
        for work in arguments.only:
            case = _case(baseline, subject, kept, work, size)
            with tempfile.TemporaryDirectory() as directory:
                parts = case.parts(Stage(arguments.tools, Path(directory)))
                pairs = min(arguments.pairs, case.most_pairs or arguments.pairs)
                try:
                    found = compare(*parts, pairs=pairs)
                finally:
                    for side in (baseline, subject):
                        side.end(Path(directory) / side.title)
            print(report.row(case, found), flush=True)


def _case(baseline: Side, subject: Side, kept: Path, work: str, size: int) -> Case:
    def parts(stage: Stage) -> tuple[Part, Part]:
        first, second = (_part(side, work, kept, size, stage) for side in (baseline, subject))
        return first, second

    is_ours = subject.module != baseline.module
    return Case(
        name=f"memory-{work}" if is_ours else f"memory-{work}-peers",
        title=f"{TITLES[work]}, {size:,} notes",
        parts=parts,
        most_pairs=FRESH_PAIRS if work == "first" else None,
        is_ours=is_ours,
    )


def _part(side: Side, work: str, kept: Path, size: int, stage: Stage) -> Part:
    home = filled(side, kept, size, stage.directory)
    return side.fresh(home) if work == "first" else side.warm(work, home)


if __name__ == "__main__":
    sys.exit(main())
