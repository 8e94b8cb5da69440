"""`toolfold doctor`: each thing is broken on purpose; the line, its fix and the status are seen."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from support import python, test_server, write_config

from toolfold.catalog.orphans import Children
from toolfold.config.config import load_config
from toolfold.entrypoints.commands.doctor import Findings
from toolfold.entrypoints.commands.state_checks import examine_state

DATABASES = tuple(
    f"{name}.db" for name in ("memory", "runs", "skills", "vaults", "approvals", "definitions")
)
STORE = "import memory\nmemory.store(content='The gate opens at nine.')\nx = 1"


@dataclass
class Patient:
    """A home that was used, and the doctor."""

    home: Path
    environ: dict[str, str]

    @property
    def data(self) -> Path:
        return self.home / "data"

    def toolfold(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python(), "-m", "toolfold", *arguments],
            capture_output=True, text=True, env=self.environ, cwd=self.home, timeout=60,
        )  # fmt: skip

    def doctor(self, *, is_fixing: bool = False) -> "Report":
        """Examine what is on the disk, without starting anything."""
        findings = Findings(is_quiet=True, is_fixing=is_fixing)
        examine_state(load_config(cwd=self.home, environ=self.environ), findings)
        return Report(int(bool(findings.failed)), [asdict(each) for each in findings.checks])

    def whole_doctor(self, *arguments: str) -> "Report":
        done = self.toolfold("doctor", "--json", *arguments)
        assert "Traceback" not in done.stderr, done.stderr
        told = json.loads(done.stdout)
        assert told["ok"] == (done.returncode == 0)
        return Report(done.returncode, told["checks"])


@dataclass
class Report:
    status: int
    checks: list[dict[str, Any]]

    def line(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = next(each for each in self.checks if each["name"] == name)
        return found

    @property
    def wrong(self) -> dict[str, str]:
        return {
            each["name"]: each["fix"] for each in self.checks if each["status"] in {"FAILED", "!"}
        }


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which every database has something."""
    home = tmp_path_factory.mktemp("used") / "home"
    (home / "config").mkdir(parents=True)
    write_config(home / "config" / "mcp.json", {})
    patient = Patient(home, environ_of(home))
    assert patient.toolfold("run", "--session", "s", "-c", STORE).returncode == 0
    make_others(home / "data")
    return home


def make_others(data: Path) -> None:
    """Make the databases that only approvals, vaults and saved skills make."""
    from toolfold.execution.trust.approvals import SCHEMA as APPROVALS
    from toolfold.execution.trust.pinned_definitions import SCHEMA as DEFINITIONS
    from toolfold.privacy.store import Vaults
    from toolfold.skills.store import SCHEMA as SKILLS
    from toolfold.storage.sqlite_file import open_for_writing

    made = {"skills.db": SKILLS, "approvals.db": APPROVALS, "definitions.db": DEFINITIONS}
    for name, schema in made.items():
        open_for_writing(data / name, schema).connection.close()
    vaults = Vaults(data)
    vaults.vault("somebody")
    vaults.close()


def environ_of(home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home.parent),
        "TOOLFOLD_HOME": str(home),
        "TOOLFOLD_NO_DAEMON": "1",
    }


@pytest.fixture
def patient(used: Path, tmp_path: Path) -> Patient:
    home = tmp_path / "home"
    shutil.copytree(used, home)
    return Patient(home, environ_of(home))


def test_a_home_that_works_has_no_problem(patient: Patient) -> None:
    report = patient.whole_doctor()

    assert report.wrong == {}
    assert report.status == 0
    names = {each["name"] for each in report.checks}
    assert names >= {
        *DATABASES, "vocabulary", "model", "disk", "permissions", "audit log", "clock", "sandbox",
    }  # fmt: skip


@pytest.mark.parametrize("name", DATABASES)
def test_a_damaged_database_is_named_with_what_to_do(patient: Patient, name: str) -> None:
    damage(patient.data / name)

    report = patient.doctor()

    assert report.line(name)["status"] == "FAILED"
    assert "toolfold restore FILE" in report.line(name)["fix"]
    assert [each for each in DATABASES if each in report.wrong] == [name]


def test_a_doctor_of_damaged_databases_comes_to_its_end(patient: Patient) -> None:
    for name in DATABASES:
        damage(patient.data / name)

    done = patient.toolfold("doctor")

    for name in DATABASES:
        [line] = [each for each in done.stdout.splitlines() if f" {name}: " in each]
        assert line.startswith("FAILED")
    assert "fix: `toolfold restore FILE` restores a backup." in done.stdout
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_what_reads_and_needs_nothing_is_called_once_to_learn_what_it_returns(
    patient: Patient, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    bank, images = test_server("bank", calls), test_server("faulty", "image")
    write_config(patient.home / "config" / "mcp.json", {"bank": bank, "image": images})
    denied = patient.toolfold("policy", "deny", "image.sound")
    assert denied.returncode == 0, denied.stderr

    first = patient.whole_doctor("--learn")
    made = calls.read_text().splitlines()
    patient.whole_doctor("--learn")

    called = [json.loads(line)["name"] for line in made]
    assert sorted(called) == ["balance", "page"]  # neither `transfer` nor `close`
    assert calls.read_text().splitlines() == made  # what they return is known now
    assert first.line("learned bank.page")["detail"] == "returns str"
    assert "on fire" in first.line("learned nothing of image.fail")["detail"]
    assert "deny" in first.line("learned nothing of image.sound")["detail"]
    described = patient.toolfold("run", "-c", "tools.describe('bank.page')").stdout
    assert "def page() -> str" in described


def damage(path: Path) -> None:
    """Overwrite all but the first page."""
    content = bytearray(path.read_bytes())
    content[4096 : len(content)] = b"\x5a" * (len(content) - 4096)
    path.write_bytes(content)


def test_what_a_newer_toolfold_or_another_program_wrote_is_told_apart(patient: Patient) -> None:
    for name, pragma in (("memory.db", "user_version = 99"), ("vaults.db", "application_id = 7")):
        connection = sqlite3.connect(patient.data / name)
        connection.execute(f"PRAGMA {pragma}")
        connection.close()

    report = patient.doctor()

    assert "a newer toolfold" in report.line("memory.db")["detail"]
    assert report.line("memory.db")["fix"] == "Update this toolfold."
    assert "another program" in report.line("vaults.db")["detail"]
    assert report.status == 1


def test_a_database_that_another_process_holds_is_named(patient: Patient) -> None:
    connection = sqlite3.connect(patient.data / "skills.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        report = patient.doctor()
    finally:
        connection.close()

    assert "kept it locked" in report.line("skills.db")["detail"]
    assert report.status == 1


def test_a_changed_row_of_the_journal_is_a_broken_audit_log(patient: Patient) -> None:
    connection = sqlite3.connect(patient.data / "runs.db")
    connection.execute("UPDATE beginnings SET code = 'another'")
    connection.commit()
    connection.close()

    report = patient.doctor()

    assert report.line("audit log")["status"] == "FAILED"
    assert "toolfold runs verify" in report.line("audit log")["fix"]
    assert report.status == 1


def test_a_lost_head_of_the_audit_log_can_be_accepted(patient: Patient) -> None:
    (patient.data / "runs.db-head").write_text("nonsense")

    report = patient.doctor()

    assert "--accept" in report.line("audit log")["fix"]
    assert patient.toolfold("runs", "verify", "--accept").returncode == 0
    assert patient.doctor().wrong == {}


def test_a_database_that_was_set_aside_is_not_forgotten(patient: Patient) -> None:
    (patient.data / "skills.db.broken-1").write_bytes(b"once a database")

    report = patient.doctor(is_fixing=True)

    assert "skills.db.broken-1" in report.line("set aside")["detail"]
    assert report.status == 1  # what it held is not ours to remove
    assert (patient.data / "skills.db.broken-1").exists()


def test_what_others_may_read_is_closed_by_fix_alone(patient: Patient) -> None:
    key, config = patient.data / "runs.db-key", patient.home / "config" / "mcp.json"
    key.chmod(0o644)
    config.chmod(0o666)
    patient.data.chmod(0o755)

    before = patient.doctor()
    modes = [path.stat().st_mode & 0o777 for path in (key, config)]
    key.chmod(0o644)
    fixed = patient.whole_doctor("--fix")

    assert "chmod go-rwx" in before.wrong["permissions"]
    assert before.status == 1
    assert modes == [0o644, 0o666]
    assert fixed.line("permissions")["status"] == "fixed"
    assert "closed" in fixed.line("permissions")["detail"]
    assert fixed.status == 0
    assert [path.stat().st_mode & 0o777 for path in (key, config)] == [0o600, 0o600]
    assert patient.doctor().wrong == {}


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_a_file_of_another_user_is_named(patient: Patient) -> None:
    os.chown(patient.data / "sessions" / "key", 12345, 12345)

    report = patient.doctor(is_fixing=True)

    assert "sessions/key is of another user" in report.line("permissions")["detail"]
    assert "chown" in report.line("permissions")["fix"]
    assert report.status == 1


def test_what_a_killed_process_left_is_removed_by_fix(patient: Patient) -> None:
    old, young = patient.data / ".token.1a2b.tmp", patient.data / ".token.3c4d.tmp"
    for path in (old, young):
        path.write_bytes(b"half")
        path.chmod(0o600)
    os.utime(old, (time.time() - 7200,) * 2)

    before, fixed = patient.doctor(), patient.doctor(is_fixing=True)

    assert before.wrong == {"leftovers": "Remove them."}
    assert fixed.line("leftovers")["status"] == "fixed"
    assert (old.exists(), young.exists()) == (False, True)


def test_a_clock_behind_what_was_written_is_named(patient: Patient) -> None:
    later = time.time() + 86_400
    os.utime(patient.data / "runs.db", (later, later))

    report = patient.doctor()

    assert "files are of" in report.line("clock")["detail"]
    assert "timedatectl" in report.line("clock")["fix"]
    assert report.status == 1


def test_servers_that_outlived_their_toolfold_are_ended_by_fix(patient: Patient) -> None:
    # The owner notes its child as a daemon does, and is killed.
    code = (
        "import subprocess, sys, time\nfrom pathlib import Path\n"
        "from toolfold.catalog.orphans import Children\n"
        "child = subprocess.Popen(['sleep', '300'], stdout=subprocess.DEVNULL)\n"
        "Children(Path(sys.argv[1])).note()\nprint(child.pid, flush=True)\ntime.sleep(300)\n"
    )
    state = patient.home / "state"
    owner = subprocess.Popen(
        [sys.executable, "-c", code, str(state)], stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    child = int(owner.stdout.readline())
    alive = patient.doctor()
    owner.kill()
    owner.wait()
    owner.stdout.close()
    try:
        before = patient.doctor()
        fixed = patient.doctor(is_fixing=True)
    finally:
        if is_running(child):
            os.kill(child, signal.SIGKILL)

    assert alive.wrong == {}
    assert before.wrong == {"processes": f"`kill {child}`"}
    assert fixed.line("processes")["status"] == "fixed"
    assert fixed.status == 0
    assert not list(Children.directory(state).glob("*.json"))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def in_small_disk(patient: Patient, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command where the data directory is a disk of 2 MB."""
    script = 'mount -t tmpfs -o size=2m tmpfs "$1" || exit 77; shift; exec "$@"'
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", str(patient.data), *command],
        capture_output=True, text=True, env=patient.environ, cwd=patient.home, timeout=60,
    )  # fmt: skip


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
def test_a_full_disk_is_named(patient: Patient) -> None:
    if in_small_disk(patient, "true").returncode:
        pytest.skip("this user may not mount")
    done = in_small_disk(patient, sys.executable, "-m", "toolfold", "doctor")

    [line] = [each for each in done.stdout.splitlines() if " disk: " in each]
    assert line.startswith("FAILED")
    assert "fix: Free some space." in done.stdout
    assert done.returncode == 1


def test_the_summary_says_how_many_fix_would_mend(patient: Patient) -> None:
    patient.data.chmod(0o755)
    (patient.data / "runs.db-key").chmod(0o644)

    done = patient.toolfold("doctor")

    assert "`toolfold doctor --fix` fixes 1 of them." in done.stdout
    assert done.stdout.index("fix: `chmod go-rwx") < done.stdout.index("1 problem: permissions")
