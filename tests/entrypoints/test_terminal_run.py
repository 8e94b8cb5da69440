"""`toolfold run` as a person at a terminal and a pipe see it."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from support import test_server, write_config

RULES = '[[policy]]\naction = "ask"\ntools = "records.update"\n'
CODE = "import records\nfor n in (1, 2):\n    records.update(id=n, value='new')\nprint('both')"


@pytest.fixture
def environ(tmp_path: Path, home: Path) -> dict[str, str]:
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "policy.toml").write_text(RULES)
    servers = {"records": test_server("records", tmp_path / "updates")}
    write_config(home / "config" / "mcp.json", servers)
    return {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "TOOLFOLD_HOME": str(home),
        "TOOLFOLD_NO_DAEMON": "1", "TERM": "xterm",
    }  # fmt: skip


def at_terminal(
    environ: dict[str, str], cwd: Path, types: bytes, *words: str, interrupt_at: bytes = b""
) -> str:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "toolfold", *words],
        env=environ, cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, types)
    shown = b""
    try:
        while chunk := os.read(ours, 65_536):
            shown += chunk
            if interrupt_at and interrupt_at in shown:
                interrupt_at = b""
                process.send_signal(signal.SIGINT)
    except OSError:  # how a terminal says that nobody writes any more
        pass
    os.close(ours)
    process.wait(60)
    return shown.decode()


def left_standing(shown: str) -> list[str]:
    """Return the lines that a terminal ends with: progress is wiped."""
    lines = [line.rstrip("\r").rpartition("\r\x1b[K")[2] for line in shown.split("\n")]
    return [line for line in lines if line]


def updated(tmp_path: Path) -> list[int]:
    file = tmp_path / "updates"
    return (
        [json.loads(line)["id"] for line in file.read_text().splitlines()] if file.exists() else []
    )


@pytest.mark.parametrize(
    ("types", "made", "asked"),
    [
        (b"y\ny\n", [1, 2], 2),
        (b"all\n", [1, 2], 1),
        (b"y\nn\n", [1], 2),
        (b"n\n", [], 1),
        (b"\x04", [], 1),
        (b"maybe\nall\n", [1, 2], 2),
    ],
    ids=["each", "all", "the first", "none", "end of input", "neither"],
)
def test_a_person_is_asked_where_the_run_waits(
    environ: dict[str, str], tmp_path: Path, types: bytes, made: list[int], asked: int
) -> None:
    shown = at_terminal(environ, tmp_path, types, "run", "-c", CODE)

    assert shown.count("Allow? [y/N/all]") == asked, shown
    assert "records.update" in shown
    assert updated(tmp_path) == made
    assert ("both" in left_standing(shown)[-1]) == (made == [1, 2])


def test_control_c_at_the_question_calls_nothing_and_says_so(
    environ: dict[str, str], tmp_path: Path
) -> None:
    del environ["TOOLFOLD_NO_DAEMON"]
    try:
        shown = at_terminal(environ, tmp_path, b"", "run", "-c", CODE, interrupt_at=b"Allow? [")
    finally:
        in_pipe(environ, tmp_path, "stop")

    assert "Interrupted. No tool had been called." in shown
    assert "outcome not known" not in shown
    assert updated(tmp_path) == []


def test_only_a_person_makes_rules_less_strict_and_the_log_has_it(
    environ: dict[str, str], tmp_path: Path, home: Path
) -> None:
    rules = home / "config" / "policy.toml"
    before = rules.read_text()
    piped = in_pipe(environ, tmp_path, "policy", "allow", "records.update")
    assert piped.returncode == 2
    assert "Only a person at a terminal can make rules less strict" in piped.stderr
    assert rules.read_text() == before

    denied = in_pipe(environ, tmp_path, "policy", "deny", "records.update", "records.*")
    assert denied.returncode == 0
    assert in_pipe(environ, tmp_path, "policy", "unset", "records.*").returncode == 2
    shown = at_terminal(environ, tmp_path, b"", "policy", "unset", "records.update", "records.*")
    assert "the other rules decide about records.update, records.* now" in shown
    assert rules.read_text().strip() == ""
    shown = at_terminal(environ, tmp_path, b"", "policy", "allow", "records.update")
    assert "called without asking from now on" in shown

    listed = in_pipe(environ, tmp_path, "runs").stdout
    assert "The user changed rules: allow records.update." in listed
    assert "The user changed rules: unset records.update, records.*." in listed
    assert "The user changed rules: deny records.update, records.*." in listed
    assert "Audit log verified" in in_pipe(environ, tmp_path, "runs", "verify").stdout


def test_control_d_at_approve_decides_nothing(environ: dict[str, str], tmp_path: Path) -> None:
    waits = in_pipe(environ, tmp_path, "run", "-c", CODE)
    run = re.search(r"toolfold approve (\w+)", waits.stderr)
    assert run is not None
    shown = at_terminal(environ, tmp_path, b"\x04", "approve", run[1])
    last = in_pipe(environ, tmp_path, "reject", "last")
    none = in_pipe(environ, tmp_path, "reject", "last")

    assert "Nothing was decided." in shown
    assert "Rejected: records.update was not called." in last.stdout
    assert "No run 'last' waits for approval." in none.stderr
    assert updated(tmp_path) == []


def test_times_are_those_of_the_terminal_and_not_of_the_daemon(
    environ: dict[str, str], tmp_path: Path
) -> None:
    del environ["TOOLFOLD_NO_DAEMON"]
    far, near = environ | {"TZ": "Pacific/Kiritimati"}, environ | {"TZ": "Pacific/Pago_Pago"}
    try:
        in_pipe(far, tmp_path, "run", "-c", "1")
        there, here = (in_pipe(each, tmp_path, "runs").stdout.split() for each in (far, near))
    finally:
        in_pipe(environ, tmp_path, "stop")

    moments = [datetime.fromisoformat(f"{each[7]} {each[8]}") for each in (there, here)]
    assert moments[0] - moments[1] == timedelta(hours=25)


def in_pipe(environ: dict[str, str], cwd: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-P", "-m", "toolfold", *words],
        env=environ, cwd=cwd, capture_output=True, text=True, timeout=55,
    )  # fmt: skip


def test_output_goes_to_a_pipe_whole_and_trouble_to_standard_error(
    environ: dict[str, str], tmp_path: Path
) -> None:
    done = in_pipe(environ, tmp_path, "run", "-c", "print('x' * 200_000)\nprint('y')\n1 / 0")

    assert done.returncode == 1
    assert done.stdout == "x" * 200_000 + "\ny\n"
    assert "ZeroDivisionError" in done.stderr
    assert "xxx" not in done.stderr


def test_what_prints_nothing_prints_nothing(environ: dict[str, str], tmp_path: Path) -> None:
    done = in_pipe(environ, tmp_path, "run", "-c", "x = 1")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_misspelt_setting_is_told_when_code_runs(
    environ: dict[str, str], tmp_path: Path, home: Path
) -> None:
    (home / "config" / "config.toml").write_text('[privacy]\nmod = "on"\n')
    done = in_pipe(environ, tmp_path, "run", "-c", "1")

    assert "`privacy.mod` is not a setting; did you mean `privacy.mode`?" in done.stderr
    assert done.stdout == "1\n"


def test_a_broken_policy_is_what_doctor_finds_and_nothing_of_it_is_among_the_runs(
    environ: dict[str, str], tmp_path: Path, home: Path
) -> None:
    (home / "config" / "policy.toml").write_text("[[policy")
    done = in_pipe(environ, tmp_path, "doctor")

    lines = done.stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("FAILED")] == ["policy:"]
    assert any(line.startswith("ok        sandbox:") for line in lines)
    assert lines[-1].startswith("1 problem: policy")
    assert in_pipe(environ, tmp_path, "runs").stdout.startswith("No runs yet")


def test_an_import_that_was_made_is_not_advertised(
    environ: dict[str, str], tmp_path: Path, home: Path
) -> None:
    kept = {"rules": [{"list": "allow", "rule": "mcp__records__put", "scope": "user"}]}
    (home / "config" / "imported-rules.json").write_text(json.dumps(kept))
    before = in_pipe(environ, tmp_path, "policy").stdout
    in_pipe(environ, tmp_path, "policy", "import")
    after = in_pipe(environ, tmp_path, "policy").stdout

    assert "toolfold policy import" in before
    assert "toolfold policy import" not in after
    assert "records.put" in after
