import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import python

from toolfold.errors import ToolFailed
from toolfold.journal.journal import Journal
from toolfold.journal.runs import Origin, RunStart

Toolfold = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment(tmp_path: Path, home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TOOLFOLD_HOME": str(home),
        "TOOLFOLD_NO_DAEMON": "1",
    }


@pytest.fixture
def toolfold(tmp_path: Path, environment: dict[str, str]) -> Toolfold:
    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [python(), "-m", "toolfold", *arguments],
            capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=55,
        )  # fmt: skip

    return run


@pytest.fixture
def ids(home: Path) -> list[str]:
    """The ids of three runs in the journal, oldest first: fine, failed, and without an end."""
    journal = Journal(home / "data" / "runs.db", days=30, max_bytes=1 << 29, code_bytes=100)
    with journal.opened():
        with journal.begin(Origin(project="/home/shop"), "\n1 + 1\n2 + 2") as fine:
            fine.end(failure=None, reply="4")
        with journal.begin(Origin(client="relay-1", request="7"), "import crm\x1b[31m") as failed:
            with failed.call("crm.find", {"name": "Ada"}) as call:
                call.answer = {"id": 7}
            with pytest.raises(ToolFailed), failed.call("crm.delete", {"id": 7}):
                raise ToolFailed("crm.delete failed: no rights")
            failed.end(failure="error", reply="RuntimeError\nno rights")
        unended = journal.begin(Origin(), "#" * 150)
    return [fine.id, failed.id, unended.id]


def test_runs_are_listed_newest_first(toolfold: Toolfold, ids: list[str]) -> None:
    done = toolfold("runs")

    assert done.returncode == 0, done.stderr
    when = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    titles, newest, failed, fine = done.stdout.splitlines()
    assert titles.split() == ["RUN", "STARTED", "PROJECT", "STATE", "CALLS", "CODE"]
    assert re.fullmatch(rf"{ids[0]}  {when}  shop +done +0  1 \+ 1", fine)
    assert re.fullmatch(rf"{ids[1]}  {when}  - +failed +2  import crm\\x1b\[31m", failed)
    assert re.fullmatch(rf"{ids[2]}  {when}  - +running +0  #{{60}}…", newest)
    assert len(toolfold("runs", "--limit", "2").stdout.splitlines()) == 3


def test_one_run_is_shown_with_its_calls(toolfold: Toolfold, ids: list[str]) -> None:
    lines = toolfold("runs", ids[1]).stdout.splitlines()

    assert re.fullmatch(rf"{ids[1]}  .*  failed", lines[0])
    assert lines[1:3] == ["client: relay-1", "failure: error"]
    assert lines[3:6] == ["code:", "    import crm\\x1b[31m", "2 calls:"]
    found = r' +1  crm\.find  ok  \d+\.\d ms  {"name":"Ada"} -> {"id":7}'
    assert re.fullmatch(found, lines[6])
    assert re.fullmatch(r" +2  crm\.delete  failed  .* -> crm.delete failed: no rights", lines[7])
    assert lines[8:] == ["reply:", "    RuntimeError", "    no rights"]


def test_what_has_no_end_is_running_while_its_process_lives_and_lost_then(
    toolfold: Toolfold, home: Path, ids: list[str]
) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom toolfold.journal.journal import Journal\n"
        "from toolfold.journal.runs import Origin\n"
        "journal = Journal(Path(sys.argv[1]), days=30, max_bytes=1 << 29, code_bytes=100)\n"
        "with journal.opened():\n    print(journal.begin(Origin(), '1').id, end='')\n"
    )
    command = [sys.executable, "-c", code, str(home / "data" / "runs.db")]
    lost = subprocess.run(command, capture_output=True, text=True, timeout=55).stdout

    ours, theirs = toolfold("runs", ids[2]).stdout, toolfold("runs", lost).stdout
    journal = Journal(home / "data" / "runs.db", days=30, max_bytes=1 << 29, code_bytes=100)
    with journal.opened(), journal.begin(Origin(), "1", start=RunStart(resumes=lost)) as run:
        run.end(failure=None, reply="")
    resumed = toolfold("runs", lost).stdout

    assert ours.splitlines()[0].endswith("running")
    assert theirs.splitlines()[0].endswith("lost")
    assert "The run has not ended" in ours
    assert theirs.splitlines()[-1] == (
        "The run was lost with its process: calls that were in progress are not listed. "
        f"`toolfold runs resume {lost}` resumes it."
    )
    assert f"resumed as: {run.id}, done\n" in resumed
    assert resumed.endswith(f"are not listed. {run.id} resumed it.\n")
    assert json.loads(toolfold("runs", lost, "--json").stdout)["resumed_as"] == run.id
    assert "150 bytes in all; the rest is not kept." in ours


def test_programs_get_json(toolfold: Toolfold, ids: list[str]) -> None:
    listed = json.loads(toolfold("runs", "--json").stdout)
    one = json.loads(toolfold("runs", ids[1], "--json").stdout)

    assert [entry["id"] for entry in listed] == ids[::-1]
    assert [entry["calls"] for entry in listed] == [0, 2, 0]
    assert (one["state"], one["client"], one["request"]) == ("failed", "relay-1", "7")
    assert [call["tool"] for call in one["calls"]] == ["crm.find", "crm.delete"]
    assert one["calls"][0]["answer"] == {"head": '{"id":7}', "size_bytes": 8}
    assert one["ending"]["reply"]["head"] == "RuntimeError\nno rights"


def test_without_a_journal_there_are_no_runs(toolfold: Toolfold, home: Path) -> None:
    assert toolfold("runs").stdout == "No runs yet. `toolfold run -c '1 + 1'` makes one.\n"
    assert json.loads(toolfold("runs", "--json").stdout) == []
    assert not (home / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("ffff",), "No run has an id that begins with 'ffff'"),
        (("6",), "Several runs have an id that begins with '6'"),
        (("--limit", "0"), "--limit takes a number above 0"),
    ],
)
def test_mistakes_get_one_clear_line(
    toolfold: Toolfold, ids: list[str], arguments: tuple[str, ...], complaint: str
) -> None:
    done = toolfold("runs", *arguments)

    assert done.returncode == 2
    assert complaint in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_damaged_journal_is_left_as_it_is(toolfold: Toolfold, home: Path) -> None:
    (home / "data").mkdir(parents=True)
    path = home / "data" / "runs.db"
    path.write_bytes(b"no database" * 500)
    done = toolfold("runs")

    assert done.returncode == 2
    assert "runs.db cannot be read: file is not a database" in done.stderr
    assert path.read_bytes() == b"no database" * 500


def test_runs_are_read_without_anything_heavy(environment: dict[str, str], ids: list[str]) -> None:
    code = (
        "import sys, toolfold.__main__ as m\n"
        "sys.argv = ['toolfold', 'runs']\n"
        "try:\n    m.main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'mcp', 'mcp_types', 'pydantic', 'anyio', 'asyncio', 'pydantic_monty', 'numpy',\n"
        "    'rich'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=55
    )

    assert done.stdout.splitlines()[1].startswith(ids[2])
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_run_belongs_to_its_folder_and_is_listed_by_what_it_does(
    toolfold: Toolfold, tmp_path: Path
) -> None:
    toolfold("run", "-c", "import json\n# a comment\njson.dumps(1)")
    listed = toolfold("runs", "--limit", "1")
    newest = toolfold("runs", "show", "last")

    assert f"  {tmp_path.name[:20]}" in listed.stdout
    assert listed.stdout.splitlines()[-1].endswith("json.dumps(1)")
    assert "These are the newest; --limit N shows more." in listed.stderr
    assert f"project: {tmp_path}" in newest.stdout


def test_the_last_run_is_shown_with_its_calls(toolfold: Toolfold) -> None:
    toolfold("run", "-c", "import memory\nmemory.list()")
    shown = toolfold("runs", "show", "last").stdout

    assert "1 call:" in shown
    assert "memory.list  ok" in shown
    assert "step 1: memory.list" in toolfold("runs", "replay", "last").stdout


def test_a_file_and_code_exclude_each_other(toolfold: Toolfold) -> None:
    both = toolfold("run", "sum.py", "-c", "1")

    assert both.returncode == 2
    assert "Give a file or -c CODE, not both: sum.py was not run." in both.stderr


def test_an_empty_log_is_told(toolfold: Toolfold, home: Path) -> None:
    logs = home / "state" / "logs"
    logs.mkdir(parents=True)
    (logs / "broken-0123abcd.log").touch()

    hooks, broken = toolfold("logs", "hooks"), toolfold("logs", "broken")

    assert (hooks.returncode, hooks.stdout) == (0, "")
    assert "No hook has failed so far." in hooks.stderr
    assert (broken.returncode, broken.stdout) == (0, "")
    assert "The log is empty" in broken.stderr
