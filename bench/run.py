"""Measure toolfold beside direct calls; write the ratios, or hold them against the targets."""

import argparse
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import report
from cases import CASES, Case
from pairing import Comparison, compare
from stage import ROOT, Stage, Unavailable
from targets import TARGETS


def main() -> int:
    """Run the benchmarks that were asked for."""
    arguments = _arguments()
    tools = Path(arguments.tools)
    cases = [case for case in CASES if _is_wanted(case, arguments)]
    print(report.heading(), flush=True)
    if arguments.check:
        return _check(cases, tools, arguments.pairs)
    was_quiet = report.is_quiet()
    found = _measure_all(cases, tools, arguments.pairs)
    if arguments.only:
        return 0
    missing = [case for case in cases if case.is_ours and case not in found]
    if reasons := report.reasons_against(
        found, missing, was_quiet=was_quiet, pairs=arguments.pairs
    ):
        print(f"\nNothing is written: {'; '.join(reasons)}.", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as directory:
        report.save(found, Stage(tools, Path(directory)))
    print(f"\nWritten to {report.RESULTS.relative_to(ROOT)}.")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail where a target is missed"
    )
    parser.add_argument("--pairs", type=_pairs, default=31, metavar="N", help="default: 31")
    parser.add_argument(
        "--only",
        action="append",
        choices=[case.name for case in CASES],
        metavar="NAME",
        help=f"only this, and write nothing; one of {', '.join(case.name for case in CASES)}",
    )
    parser.add_argument(
        "--tools", default=ROOT / ".tools", metavar="DIR", help="where `make tools` put things"
    )
    return parser.parse_args()


def _pairs(text: str) -> int:
    if (pairs := int(text)) < 2:
        raise argparse.ArgumentTypeError("it takes at least 2 pairs")
    return pairs


def _is_wanted(case: Case, arguments: argparse.Namespace) -> bool:
    if arguments.only:
        return case.name in arguments.only
    return case.is_ours or not arguments.check


def _measure_all(cases: Iterable[Case], tools: Path, pairs: int) -> dict[Case, Comparison]:
    found = {case: _measure(case, tools, pairs) for case in cases}
    return {case: comparison for case, comparison in found.items() if comparison is not None}


def _measure(case: Case, tools: Path, pairs: int) -> Comparison | None:
    """Measure and print one case; None where it cannot run here."""
    with tempfile.TemporaryDirectory() as directory:
        try:
            baseline, subject = case.parts(Stage(tools, Path(directory)))
        except Unavailable as reason:
            print(f"{case.title}: skipped, {reason}", flush=True)
            return None
        found = compare(baseline, subject, pairs=min(pairs, case.most_pairs or pairs))
    print(report.row(case, found), flush=True)
    return found


def _check(cases: Iterable[Case], tools: Path, pairs: int) -> int:
    """Return 1 if a ratio misses its target, or cannot be measured to know."""
    held = [case for case in cases if case.name in TARGETS]
    missed = [case for case in held if not _holds(case, tools, pairs)]
    if missed:
        names = ", ".join(case.name for case in missed)
        print(f"\nTargets missed, or not measured: {names}.", file=sys.stderr)
        return 1
    print("\nEvery ratio is within its target.")
    return 0


def _holds(case: Case, tools: Path, pairs: int) -> bool:
    """Measure once, and once more if that misses the target: a busy moment is not a change."""
    for _ in range(2):
        found = _measure(case, tools, pairs)
        if found is None:
            return False
        if TARGETS[case.name].holds(found.ratio.median):
            return True
    return False


if __name__ == "__main__":
    sys.exit(main())
