"""`toolfold runs verify`, `replay` and `export`, as a user has them."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from support import ROOT, python

from toolfold.errors import ToolFailed
from toolfold.journal.decisions import DecisionEvent, RevealEvent
from toolfold.journal.journal import Journal
from toolfold.journal.runs import Origin, RunStart

APPROVED = DecisionEvent(
    position=2, tool="crm.delete", rule="ask crm.*", action="approved", by="user"
)
DENIED = DecisionEvent(
    position=3, tool="crm.wipe", rule="deny crm.wipe", action="deny", by="policy"
)

Toolfold = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def toolfold(tmp_path: Path, home: Path) -> Toolfold:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TOOLFOLD_HOME": str(home),
        "TOOLFOLD_NO_DAEMON": "1",
    }

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [python(), "-m", "toolfold", "runs", *arguments],
            capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=55,
        )  # fmt: skip

    return run


@pytest.fixture
def path(home: Path) -> Path:
    return home / "data" / "runs.db"


@pytest.fixture
def ids(path: Path) -> list[str]:
    """The ids of a run that was cut short and of the one that went on with it: nine entries."""
    journal = Journal(path, days=30, max_bytes=1 << 29, code_bytes=100)
    with journal.opened():
        lost = journal.begin(Origin(), "import crm")
        with lost.call("crm.find", {"name": "[PERSON_1]"}) as call:
            call.answer = {"id": 7, "nöte": "\x1b[31m"}
        lost.end(failure="crash", reply="")
        with journal.begin(Origin(), "import crm", start=RunStart(resumes=lost.id)) as run:
            run.decide(APPROVED)
            run.reveal(RevealEvent(position=2, upstream="crm", kind="PERSON", count=1))
            call = run.call("crm.delete", {"id": 7})
            call.position = 2
            with pytest.raises(ToolFailed), call:
                raise ToolFailed("crm.delete failed: no rights")
            run.decide(DENIED)
            run.end(failure="error", reply="RuntimeError")
    return [lost.id, run.id]


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)


def test_a_log_that_holds_is_said_to(toolfold: Toolfold, ids: list[str]) -> None:
    done = toolfold("verify")

    assert done.stdout == "Audit log verified: 9 entries of 2 runs.\n"
    assert done.returncode == 0, done.stderr


def test_one_changed_byte_is_named_with_its_entry_and_its_run(
    toolfold: Toolfold, path: Path, ids: list[str]
) -> None:
    change(path, "UPDATE calls SET answer = replace(answer, '7', '8')")
    done, told = toolfold("verify"), json.loads(toolfold("verify", "--json").stdout)

    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "The audit log does not verify: calls, the row of entry 2 (call), was changed."
        f" It belongs to run {ids[0]}."
    ]
    assert (told["fault"]["seq"], told["fault"]["run"]) == (2, ids[0])


def test_a_missing_end_is_named_and_can_be_accepted(
    toolfold: Toolfold, path: Path, ids: list[str]
) -> None:
    change(path, "DELETE FROM ends WHERE number = 2")
    change(path, "DELETE FROM audit WHERE seq = 9")
    done = toolfold("verify")
    assert done.returncode == 1
    assert "entries 9 to 9, the last ones, are missing" in done.stdout
    assert "--accept" in done.stdout

    assert toolfold("verify", "--accept").returncode == 0
    assert toolfold("verify").returncode == 0


def test_nothing_but_the_end_can_be_accepted(
    toolfold: Toolfold, path: Path, ids: list[str]
) -> None:
    change(path, "DELETE FROM audit WHERE seq = 4")

    assert toolfold("verify", "--accept").returncode == 1
    assert toolfold("verify").returncode == 1


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda path: path.unlink(), "runs.db is missing"),
        (lambda path: path.with_name("runs.db-key").unlink(), "runs.db-key is missing"),
        (lambda path: path.with_name("runs.db-head").unlink(), "the head is missing"),
        (lambda path: path.with_name("runs.db-head").write_text("x"), "runs.db-head is damaged"),
        (lambda path: path.write_bytes(b"no database" * 500), "file is not a database"),
        (lambda path: path.with_name("runs.db.broken-1").touch(), "runs.db.broken-1 was set aside"),
    ],
)
def test_what_is_missing_or_damaged_is_an_alarm(
    toolfold: Toolfold,
    path: Path,
    ids: list[str],
    break_it: Callable[[Path], object],
    said: str,
) -> None:
    break_it(path)
    done = toolfold("verify")

    assert done.returncode == 1
    assert said in done.stdout


def test_without_a_journal_there_is_nothing_to_verify(toolfold: Toolfold, home: Path) -> None:
    done = toolfold("verify")

    assert (done.returncode, done.stdout) == (0, "Audit log verified: 0 entries of 0 runs.\n")
    assert not (home / "data").exists()
    assert "Nothing has run yet" in toolfold("export").stderr


def test_a_run_is_shown_once_more_with_all_attempts(toolfold: Toolfold, ids: list[str]) -> None:
    done = toolfold("replay", ids[1])

    assert done.returncode == 0, done.stderr
    shown = re.sub(r"\d{4}-\S+ \S+", "WHEN", re.sub(r"\d+\.\d+ (m?s)", r"N \1", done.stdout))
    assert shown.splitlines() == [
        f"run {ids[0]}  WHEN  failed",
        "code:",
        "    import crm",
        "step 1: crm.find",
        '    arguments: {"name":"[PERSON_1]"}',
        '    ok, after N s, in N ms: {"id":7,"nöte":"\\u001b[31m"}',
        "reply:",
        f"run {ids[1]}  WHEN  failed",
        "code:",
        "    import crm",
        "step 2: crm.delete",
        '    arguments: {"id":7}',
        "    approved by user: ask crm.*",
        "    revealed to crm: 1 PERSON",
        "    failed, after N s, in N ms: crm.delete failed: no rights",
        "step 3: crm.wipe",
        "    deny by policy: deny crm.wipe",
        "    no answer is recorded",
        "reply:",
        "    RuntimeError",
        "Nothing was called: these are recorded answers.",
    ]
    steps = json.loads(toolfold("replay", ids[1], "--json").stdout)[1]["steps"]
    assert [step["position"] for step in steps] == [2, 3]
    assert steps[0]["reveals"][0]["count"] == 1


def recipe(tmp_path: Path) -> Path:
    """Return the script that stands in the documents."""
    [code] = re.findall(r"```python\n(.*?)```", (ROOT / "docs/audit.md").read_text(), re.DOTALL)
    path = tmp_path / "recipe.py"
    path.write_text(code)
    return path


def follow_recipe(tmp_path: Path, *arguments: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(recipe(tmp_path)), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=55)


def test_an_export_is_verified_as_the_documents_say(
    toolfold: Toolfold, path: Path, ids: list[str], tmp_path: Path
) -> None:
    out, key = tmp_path / "log.jsonl", path.with_name("runs.db-key")
    done = toolfold("export", "--out", str(out))

    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert out.stat().st_mode & 0o777 == 0o600
    assert out.read_text() == toolfold("export").stdout
    _, *entries = map(json.loads, out.read_text().splitlines())
    assert [entry["kind"] for entry in entries] == [
        "begin", "call", "end", "begin", "decision", "reveal", "call", "decision", "end",
    ]  # fmt: skip
    assert {entry["run"] for entry in entries} == set(ids)
    for arguments in ((out,), (out, key)):
        assert follow_recipe(tmp_path, *arguments).stdout == "All entries up to 9 hold.\n"


@pytest.mark.parametrize(
    ("old", "new", "entry"),
    [
        ('"id\\":7', '"id\\":8', 2),
        ('"seq":5', '"seq":6', 5),
        ('"action":"approved"', '"action":"rejected"', 5),
        ('"count":1', '"count":2', 6),
    ],
)
def test_a_changed_export_is_found_without_the_key(
    toolfold: Toolfold, ids: list[str], tmp_path: Path, old: str, new: str, entry: int
) -> None:
    text = toolfold("export").stdout
    assert old in text
    out = tmp_path / "log.jsonl"
    out.write_text(text.replace(old, new, 1))

    assert f"Entry {entry} of run" in follow_recipe(tmp_path, out).stderr


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("crm.wipe", "crm.wash", "was changed"),
        ('"chain":"', '"chain":"00', "does not follow"),
        ('"kind":"decision"', '"kind":"reveal"', "does not follow"),
    ],
    ids=["a row", "a chain", "a kind"],
)
def test_an_export_is_verified_by_a_command(
    toolfold: Toolfold, tmp_path: Path, ids: list[str], before: str, after: str, said: str
) -> None:
    export, changed = tmp_path / "log.jsonl", tmp_path / "changed.jsonl"
    assert toolfold("export", "--out", str(export)).returncode == 0
    head, *entries = export.read_text().splitlines()
    sound = toolfold("verify", str(export))
    as_json = json.loads(toolfold("verify", str(export), "--json").stdout)
    changed.write_text("\n".join([head, *entries]).replace(before, after, 2))
    broken = toolfold("verify", str(changed))
    changed.write_text("\n".join([head, *entries[:2], *entries[3:]]))
    cut = toolfold("verify", str(changed))

    assert (sound.returncode, sound.stdout) == (0, f"Export verified: {len(entries)} entries.\n")
    assert as_json == {"entries": len(entries), "fault": ""}
    assert broken.returncode == 1
    assert broken.stdout.startswith("The export does not verify: line ")
    assert cut.returncode == 1
    assert "line 4: entry 3 is missing" in cut.stdout


def test_what_is_no_export_is_named(toolfold: Toolfold, tmp_path: Path, ids: list[str]) -> None:
    (tmp_path / "other.txt").write_text("hello\n")
    done = toolfold("verify", str(tmp_path / "other.txt"))

    assert done.returncode == 1
    assert "line 1: this is not an export of the audit log" in done.stdout


def test_an_export_of_the_last_days_starts_in_the_middle(
    toolfold: Toolfold, path: Path, ids: list[str], tmp_path: Path
) -> None:
    clock = iter([4_000_000_000.0 + number for number in range(100)])
    journal = Journal(
        path, days=30, max_bytes=1 << 29, code_bytes=100, clock=lambda: next(clock)
    )  # fmt: skip
    with journal.opened(), journal.begin(Origin(), "later") as run:
        run.end(failure=None, reply="")
    out = tmp_path / "log.jsonl"
    toolfold("export", "--since", "2096-01-01", "--out", str(out))

    first, *entries = map(json.loads, out.read_text().splitlines())
    assert first["before"]["seq"] == 9
    assert [entry["seq"] for entry in entries] == [10, 11]
    key = path.with_name("runs.db-key")
    assert follow_recipe(tmp_path, out, key).stdout == "All entries up to 11 hold.\n"


def test_a_database_is_never_exported_over(toolfold: Toolfold, path: Path, ids: list[str]) -> None:
    before = path.read_bytes()
    done = toolfold("export", "--out", str(path))

    assert done.returncode == 2
    assert path.read_bytes() == before
