"""Benches say what is true, and cannot rot: each of what is here once ended in an exception."""

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT, node_server

BENCH = ROOT / "bench"
sys.path += [str(BENCH), str(ROOT / "scripts")]

from cases import CASES  # noqa: E402
from memory_sides import Side  # noqa: E402
from pairing import Comparison, Spread, compare  # noqa: E402
from profile_run import PHASES  # noqa: E402
from report import reasons_against  # noqa: E402
from targets import TARGETS  # noqa: E402

CHOOSY = """
stored = __import__("pathlib").Path(__import__("os").environ["STORED"])

def store(text, tags):
    known = stored.read_text().splitlines() if stored.exists() else []
    assert text not in known, f"stored before: {text}"
    stored.write_text("\\n".join([*known, text]))
    return "12345678"
"""


def test_a_peer_that_refuses_repeated_text_can_be_measured_over_many_starts(tmp_path: Path) -> None:
    (tmp_path / "choosy.py").write_text(CHOOSY)
    side = Side(
        title="choosy",
        python=Path(sys.executable),
        module="choosy",
        server=[],
        installed=(),
        env_at=lambda home: {"PYTHONPATH": str(tmp_path), "STORED": str(home)},
        fill=lambda _directory, _size: None,
    )

    found = compare(
        side.warm("store", tmp_path / "one"), side.warm("store", tmp_path / "other"), pairs=10
    )

    assert found.pairs == 10


def test_a_case_is_measured_beside_its_baseline() -> None:
    node_server("memory")
    command = [sys.executable, str(BENCH / "run.py"), "--only", "single-call", "--pairs", "2"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=100)

    assert done.returncode == 0, done.stderr
    assert "one call by execute_code / direct" in done.stdout
    assert f"{TARGETS['single-call'].limit}" in done.stdout


def test_agentdojo_is_replayed_in_short() -> None:
    if not (ROOT / ".tools" / "agentdojo" / "bin" / "python").exists():
        pytest.skip("AgentDojo is not installed: `make agentdojo` does that, and replays all of it")
    command = [sys.executable, str(BENCH / "agentdojo.py"), "--short"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=300)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "a replay, an upper bound" in done.stdout
    assert "0 not refused" in done.stdout
    assert "every bar is held" in done.stdout


@pytest.mark.timeout(600)
def test_looking_at_the_dashboard_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCH / "dashboard.py"), "--untimed", "--kept", str(tmp_path)]
    command += ["--size", "1000", "--turns", "1", "--views", "100"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=600)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "descriptors left by 100 watchers" in done.stdout


@pytest.mark.soak
@pytest.mark.parametrize("name", [case.name for case in CASES if case.is_ours])
def test_every_case_of_ours_can_be_measured(name: str) -> None:
    node_server("memory")
    command = [sys.executable, str(BENCH / "run.py"), "--only", name, "--pairs", "2"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=600)

    assert done.returncode == 0, done.stderr
    assert "skipped" not in done.stdout


def compared(ratio: float) -> Comparison:
    spread = Spread(median=ratio, q1=ratio, q3=ratio)
    return Comparison(ratio=spread, baseline_s=spread, subject_s=spread, pairs=31)


def test_only_a_whole_run_on_a_quiet_machine_may_be_committed() -> None:
    control, job = CASES[0], CASES[1]
    good = {control: compared(1.02), job: compared(1.9)}

    assert reasons_against(good, [], was_quiet=True, pairs=31) == []
    assert reasons_against(good, [job], was_quiet=True, pairs=31) == ["not measured: job-1"]
    assert reasons_against(good, [], was_quiet=False, pairs=31)
    assert reasons_against(good, [], was_quiet=True, pairs=30)
    uneven = good | {control: compared(1.04)}
    assert reasons_against(uneven, [], was_quiet=True, pairs=31)


def test_a_target_is_held_to_its_limit_and_says_since_when() -> None:
    most, least = TARGETS["job-1"], TARGETS["graph-write"]

    assert most.holds(most.limit)
    assert not most.holds(most.limit + 0.01)
    assert least.holds(least.limit)
    assert not least.holds(least.limit - 0.01)
    assert {len(target.set_on) for target in TARGETS.values()} == {10}


def test_every_bench_is_run_by_make() -> None:
    benches = (
        (ROOT / "Makefile").read_text().partition("BENCHES :=")[2].partition("\n\n")[0].split()
    )
    parts = {"build_peer_model", "cases", "jobs", "memory_ours", "memory_sides", "notes", "pairing"}
    parts |= {"chains", "report", "stage", "targets"}

    assert {path.stem for path in BENCH.glob("*.py")} - parts == {*benches} - {"\\"}


def test_every_phase_of_a_run_that_is_profiled_is_there() -> None:
    for path in (path for paths in PHASES.values() for path in paths):
        assert callable(pkgutil.resolve_name(f"toolfold.{path}")), path
