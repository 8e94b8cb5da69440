"""What is printed, what is kept, and what is held against it."""

import json
import os
import platform
import subprocess
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cases import Case
from pairing import Comparison, Spread
from stage import Stage

RESULTS = Path(__file__).parent / "results.json"
WORSE = 1.15
"""By how much a ratio may grow before that counts."""

_ROW = "{:<46} {:>7} {:>16} {:>7} {:>11} {:>11} {:>6}"
_HEADING = _ROW.format("benchmark", "ratio", "quartiles", "target", "subject", "baseline", "pairs")


def heading() -> str:
    """Return what stands above the table: how busy the machine is, and what the columns are."""
    cores, load = os.cpu_count() or 1, os.getloadavg()[0]
    busy = ": others are at work here, so expect noise" if load > cores / 4 else ""
    return f"{cores} cores, load {load:.1f}{busy}\n\n{_HEADING}"


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
    if case.target is None:
        return ""
    return f"{case.target}{'' if found.ratio.median <= case.target else ' !'}"


def _time(spread: Spread, calls: int) -> str:
    seconds = spread.median / calls
    return f"{seconds * 1e3:.2f} ms" if seconds > 1e-3 else f"{seconds * 1e6:.1f} µs"


def save(found: dict[Case, Comparison], stage: Stage) -> None:
    """Write the ratios that are committed; times are there for information only."""
    content = {
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
        "target": case.target,
        "pairs": found.pairs,
        "subject_ms": _rounded(found.subject_s, 1e3 / case.calls),
        "baseline_ms": _rounded(found.baseline_s, 1e3 / case.calls),
    }


def _rounded(spread: Spread, factor: float) -> dict[str, float]:
    return {key: float(f"{value * factor:.4g}") for key, value in asdict(spread).items()}


def committed() -> dict[str, float]:
    """Return the committed median of each ratio, by name."""
    entries = json.loads(RESULTS.read_text(encoding="utf-8"))["benchmarks"]
    return {name: float(entry["ratio"]["median"]) for name, entry in entries.items()}


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
