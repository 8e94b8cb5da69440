"""A backup of a running toolfold, and its restoration: everything is there again."""

import json
import shutil
import threading
from pathlib import Path

import pytest
from relay.conftest import User

pytestmark = pytest.mark.timeout(180)

USE = """
import memory, graph, skills
from pathlib import Path

def triple(n: int) -> int:
    '''Return three times a number.'''
    return 3 * n

memory.store(content="The gate opens at nine.")
graph.create_entities(entities=[{"name": "Ada", "entityType": "person", "observations": ["lives"]}])
print(skills.save("triple", "triple", "Times three", scope="user"))
Path("/workspace/report.txt").write_text("42 rows")
kept = {"answer": 42}
"""
ASK = """
import memory, graph
from pathlib import Path
from skills import triple
[
    "opens at nine" in str(memory.search(query="when does the gate open", limit=1)),
    graph.search_nodes(query="Ada")["entities"][0]["name"],
    Path("/workspace/report.txt").read_text(),
    triple(14),
    kept["answer"],
]
"""


def test_everything_is_there_again_after_a_restoration(user: User, tmp_path: Path) -> None:
    done = user.toolfold("run", "--session", "work", "-c", USE)
    assert done.returncode == 0, done.stderr
    before = user.toolfold("run", "--session", "work", "--json", "-c", ASK)
    assert json.loads(before.stdout)["value"] == [True, "Ada", "42 rows", 42, 42], before.stdout
    writer = threading.Thread(target=store_notes, args=(user, 12))
    writer.start()
    saved = user.toolfold("backup", str(tmp_path / "b.tar.gz"))
    assert "Your own skills are included; skills of a project" in saved.stdout
    writer.join()
    runs = json.loads(user.toolfold("runs", "--json").stdout)
    user.toolfold("stop")
    for lost in ("data", "config/skills"):
        shutil.rmtree(user.home / lost)
    restored = user.toolfold("restore", str(tmp_path / "b.tar.gz"), "--yes")

    after = user.toolfold("run", "--session", "work", "--json", "-c", ASK)

    assert saved.returncode == 0, saved.stderr
    assert "It holds secrets" in saved.stdout
    assert restored.returncode == 0, restored.stderr
    assert "Audit log verified" in restored.stdout
    assert json.loads(after.stdout)["value"] == json.loads(before.stdout)["value"]
    ids = {run["id"] for run in json.loads(user.toolfold("runs", "--json").stdout)}
    assert {run["id"] for run in runs[-2:]} <= ids  # those from before the backup
    assert user.toolfold("runs", "verify").returncode == 0
    assert user.toolfold("doctor").returncode == 0


def store_notes(user: User, count: int) -> None:
    code = (
        f"import memory\nfor n in range({count}):\n    memory.store(content=f'Note {{n}} of many')"
    )
    assert user.toolfold("run", "-c", code).returncode == 0


def test_what_was_there_is_kept_and_a_no_changes_nothing(user: User, tmp_path: Path) -> None:
    user.toolfold("memory", "store", "The old note.")
    user.toolfold("backup", str(tmp_path / "b.tar.gz"))
    user.toolfold("memory", "store", "The new note.")
    user.toolfold("stop")

    asked = user.toolfold("restore", str(tmp_path / "b.tar.gz"))
    unchanged = user.toolfold("memory", "list").stdout
    # The daemon is idle, and is ended for it.
    user.toolfold("restore", str(tmp_path / "b.tar.gz"), "--yes")

    assert asked.returncode != 0
    assert "The new note." in unchanged
    listed = user.toolfold("memory", "list").stdout
    assert "The old note." in listed
    assert "The new note." not in listed
    [aside] = user.home.glob("data.before-restore-*")
    assert (aside / "memory.db").exists()
    assert not list(user.home.glob("*.restore-*"))


def test_a_daemon_at_work_is_not_ended_for_a_restoration(user: User, tmp_path: Path) -> None:
    user.toolfold("backup", str(tmp_path / "b.tar.gz"))
    code = "import asyncio\nawait asyncio.sleep(50)"
    working = threading.Thread(target=user.toolfold, args=("run", "-c", code))
    working.start()
    while "running" not in user.toolfold("runs", "--json").stdout:
        pass

    refused = user.toolfold("restore", str(tmp_path / "b.tar.gz"), "--yes")
    user.toolfold("stop", "--now")
    working.join()

    assert refused.returncode == 2
    assert "The daemon is at work. End it first: `toolfold stop`." in refused.stderr
    (tmp_path / "sum.py").write_text("1 + 1")
    assert "is not a backup" in user.toolfold("restore", str(tmp_path / "sum.py"), "--yes").stderr
