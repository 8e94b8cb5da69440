"""The benchmarks: which two parts each compares, and what is expected of them."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jobs
from pairing import WORKERS, Part
from stage import Side, Stage

Parts = Callable[[Stage], tuple[Part, Part]]
"""Makes the baseline and the subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One comparison."""

    name: str
    title: str
    parts: Parts
    most_pairs: int | None = None
    """For what is slow."""
    is_ours: bool = True
    """Whether the subject is toolfold."""
    calls: int = 1
    """How many calls share the time of one turn, where the time of a single one is of interest."""


def _job(servers: int, *, progress: bool = False, daemon: bool = False) -> Parts:
    def parts(stage: Stage) -> tuple[Part, Part]:
        baseline = _direct(stage.side("direct"), "batch")
        side = stage.side("toolfold", servers=servers)
        door = {**_toolfold(side, daemon=daemon), "progress": progress}
        return baseline, _execute(side, jobs.BATCH, door)

    return parts


def _guarded(stage: Stage) -> tuple[Part, Part]:
    """Compare toolfold with itself: with rules and a vault, and without."""
    plain, guarded = stage.side("toolfold"), stage.side("guarded")
    door = _toolfold(guarded)
    door["env"] |= {"TOOLFOLD_PRIVACY_MODE": "on"}
    rules = guarded.home / "toolfold" / "config" / "policy.toml"
    rules.parent.mkdir(parents=True)
    rules.write_text(jobs.RULES, encoding="utf-8")
    return _execute(plain, jobs.BATCH, _toolfold(plain)), _execute(guarded, jobs.BATCH, door)


def _reads(stage: Stage) -> tuple[Part, Part]:
    """Compare toolfold with itself: each read in its turn, and some of them before."""
    serial, ahead = stage.reads("serial"), stage.reads("ahead")
    door = _toolfold(serial)
    door["env"] |= {"TOOLFOLD_LIMITS_READ_AHEAD": "0"}
    return _execute(serial, jobs.READS, door), _execute(ahead, jobs.READS, _toolfold(ahead))


def _codemode(servers: int) -> Parts:
    def parts(stage: Stage) -> tuple[Part, Part]:
        python = stage.codemode()
        baseline = _direct(stage.side("direct"), "batch")
        side = stage.side("codemode", servers=servers)
        return baseline, _execute(side, jobs.CODEMODE_BATCH, _fastmcp(side, python))

    return parts


def _control(stage: Stage) -> tuple[Part, Part]:
    return _direct(stage.side("direct"), "batch"), _direct(stage.side("also-direct"), "batch")


def _single(stage: Stage) -> tuple[Part, Part]:
    side = stage.side("toolfold")
    return _direct(stage.side("direct"), "single"), _execute(side, jobs.SINGLE, _toolfold(side))


def _null(_stage: Stage) -> tuple[Part, Part]:
    spec = {"code": jobs.NULL, "stub": jobs.NULL_STUB, "answer": jobs.NULL_ANSWER}
    return Part(script="null_bare.py", spec=spec), Part(script="null_run.py", spec=spec)


def _direct(side: Side, job: str) -> Part:
    entry = side.entries["records"]
    command = [entry["command"], *entry["args"]]
    spec = {"command": command, "env": entry["env"], "observation": jobs.OBSERVATION}
    return _part("direct.py", side, job, spec)


def _execute(side: Side, code: str, door: dict[str, Any]) -> Part:
    job = {jobs.SINGLE: "single", jobs.READS: "reads"}.get(code, "batch")
    expected = "1" if job == "single" else "50"
    return _part("execute.py", side, job, {**door, "code": code, "expected": expected})


def _part(script: str, side: Side, job: str, spec: dict[str, Any]) -> Part:
    spec = {**spec, "job": job, "records": jobs.RECORDS, "repeats": jobs.REPEATS[job]}
    if job == "batch":
        return Part(script=script, spec=spec, before=side.reset, after=side.verify)
    return Part(script=script, spec=spec)


def _toolfold(side: Side, *, daemon: bool = False) -> dict[str, Any]:
    command = [sys.executable, "-m", "toolfold", "mcp", "--config", str(side.config)]
    home = {"TOOLFOLD_HOME": str(side.home / "toolfold"), "TOOLFOLD_DAEMON_IDLE_S": "1"}
    return {
        "command": command if daemon else [*command, "--no-daemon"],
        "env": home,
        "tool": "execute_code",
        "settle": jobs.SETTLE,
    }


def _fastmcp(side: Side, python: Path) -> dict[str, Any]:
    return {
        "command": [str(python), str(WORKERS / "codemode_server.py"), str(side.config)],
        "env": {"FASTMCP_CHECK_FOR_UPDATES": "off"},
        # It speaks to its servers as its client speaks to it, and these know no newer way.
        "mode": "legacy",
        "tool": "execute",
        "settle": jobs.CODEMODE_SETTLE,
    }


CASES = (
    Case(
        name="control",
        title="51-call job, direct beside direct",
        parts=_control,
        is_ours=False,
    ),
    Case(name="job-1", title="51-call job, 1 server", parts=_job(1)),
    Case(name="job-10", title="51-call job, 10 servers", parts=_job(10)),
    Case(
        name="job-1-daemon",
        title="51-call job, 1 server, relay and daemon",
        parts=_job(1, daemon=True),
    ),
    Case(
        name="job-1-progress",
        title="51-call job, 1 server, progress shown",
        parts=_job(1, progress=True),
    ),
    Case(
        name="job-1-guarded",
        title="51-call job, with rules and a vault / without",
        parts=_guarded,
    ),
    Case(
        name="codemode-1",
        title="51-call job, FastMCP CodeMode, 1 server",
        parts=_codemode(1),
        most_pairs=9,
        is_ours=False,
    ),
    Case(
        name="codemode-10",
        title="51-call job, FastMCP CodeMode, 10 servers",
        parts=_codemode(10),
        most_pairs=5,
        is_ours=False,
    ),
    Case(
        name="null-call",
        title="a call to a null upstream / bare sandbox",
        parts=_null,
        calls=jobs.NULL_CALLS,
    ),
    Case(name="reads-50", title="50 reads of 20 ms in a plain loop / in turn", parts=_reads),
    Case(name="single-call", title="one call by execute_code / direct", parts=_single),
)
