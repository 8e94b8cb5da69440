"""What is printed, what is kept, and what is held against it."""

import json
import os
import platform
import subprocess
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cases import Case
from pairing import Comparison, Spread
from stage import Stage
from targets import TARGETS

RESULTS = Path(__file__).parent / "results.json"
LEAST_PAIRS = 31
MAX_CONTROL = 0.03
"""How far from 1 the ratio of equal work may be before nothing else is believed."""

_ROW = "{:<46} {:>7} {:>16} {:>7} {:>11} {:>11} {:>6}"
_HEADING = _ROW.format("benchmark", "ratio", "quartiles", "target", "subject", "baseline", "pairs")


def heading() -> str:
    """Return what stands above the table: how busy the machine is, and what the columns are."""
    busy = "" if is_quiet() else ": others are at work here, so expect noise"
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}{busy}\n\n{_HEADING}"


def is_quiet() -> bool:
    """Whether nobody else computes on this machine at the moment."""
    return os.getloadavg()[0] <= (os.cpu_count() or 1) / 4


def row(case: Case, found: Comparison) -> str:
    """Return one line of the table."""
    return _ROW.format(
        case.title,
        f"{found.ratio.median:.2f}",
        f"{found.ratio.q1:.2f} to {found.ratio.q3:.2f}",
        _target(case, found),
        _time(found.subject_s, case.calls),
        _time(found.baseline_s, case.calls),
        found.pairs,
    )


def _target(case: Case, found: Comparison) -> str:
    target = TARGETS.get(case.name)
    if target is None:
        return ""
    return f"{target.limit}{'' if target.holds(found.ratio.median) else ' !'}"


def reasons_against(
    found: dict[Case, Comparison], missing: list[Case], *, was_quiet: bool, pairs: int
) -> list[str]:
    """Return why these figures may not become those that are committed."""
    control = next((each for case, each in found.items() if case.name == "control"), None)
    reasons = []
    if missing:
        reasons.append("not measured: " + ", ".join(case.name for case in missing))
    if not was_quiet:
        reasons.append("others were at work on this machine when it began")
    if pairs < LEAST_PAIRS:
        reasons.append(f"{pairs} pairs are fewer than {LEAST_PAIRS}")
    if control is not None and abs(control.ratio.median - 1) > MAX_CONTROL:
        reasons.append(f"equal work differed by more than {MAX_CONTROL:.0%}")
    return reasons


def _time(spread: Spread, calls: int) -> str:
    seconds = spread.median / calls
    return f"{seconds * 1e3:.2f} ms" if seconds > 1e-3 else f"{seconds * 1e6:.1f} µs"


def save(found: dict[Case, Comparison], stage: Stage) -> None:
    """Write the ratios that are committed; times are there for information only."""
    content = {
        "measured_on": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "versions": versions(stage),
        "benchmarks": {case.name: _entry(case, comparison) for case, comparison in found.items()},
    }
    text = json.dumps(content, indent=2, ensure_ascii=False)
    RESULTS.write_text(text + "\n", encoding="utf-8")


def _entry(case: Case, found: Comparison) -> dict[str, Any]:
    return {
        "title": case.title,
        "ratio": _rounded(found.ratio, 1.0),
        "target": target.limit if (target := TARGETS.get(case.name)) else None,
        "pairs": found.pairs,
        "subject_ms": _rounded(found.subject_s, 1e3 / case.calls),
        "baseline_ms": _rounded(found.baseline_s, 1e3 / case.calls),
    }


def _rounded(spread: Spread, factor: float) -> dict[str, float]:
    return {key: float(f"{value * factor:.4g}") for key, value in asdict(spread).items()}


def machine() -> dict[str, Any]:
    """Return what the figures depend on, and nothing that names a machine."""
    return {
        "cores": os.cpu_count(),
        "system": platform.system(),
        "architecture": platform.machine(),
    }


def versions(stage: Stage) -> dict[str, str]:
    """Return the versions of all that took part."""
    found = {"python": platform.python_version()}
    found |= {name: version(name) for name in ("toolfold", "mcp", "pydantic-monty")}
    node, script = stage.npm_server("memory")
    found["node"] = _output([node, "--version"]).removeprefix("v")
    package = json.loads(Path(script).parents[1].joinpath("package.json").read_text("utf-8"))
    found["server-memory"] = package["version"]
    python = stage.tools / "fastmcp" / "bin" / "python"
    if python.exists():
        asked = "from importlib.metadata import version; print(version('fastmcp'))"
        found["fastmcp"] = _output([str(python), "-c", asked])
    return found


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
