"""State that lasts, through the relay and over the death of the daemon."""

import json
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from relay.conftest import User
from relay.peer import kill, text_of, wait_until
from support import test_server

BATCH = """
import records
rows = records.list_records()
for number, row in enumerate(rows):
    records.update(id=row["id"], value=f"amount {row['amount']}")
    progress(number + 1, len(rows))
len(rows)
"""


def updated(path: Path) -> list[int]:
    """Return which records the upstream has updated, as it wrote them down itself."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]  # the last may be half written
    return [json.loads(line)["id"] for line in lines]


def test_variables_survive_kill_9(user: User) -> None:
    client = user.connect()
    assert client.run("import json\nrows = [1, 2, 3]\ndef f():\n    return sum(rows)\nf()") == "6"
    for _ in range(3):
        kill(user.daemon())
        assert client.run("rows.append(4)\njson.dumps(rows), f()").startswith('["[1, 2, 3, 4')


def test_each_relay_has_variables_of_its_own(user: User) -> None:
    one, other = user.connect(), user.connect()

    one.run("x = 1")
    assert "'x' is not defined" in other.run("x")
    shared = {"name": "execute_code", "arguments": {"code": "y = 5", "session": "shared"}}
    one.ask("tools/call", shared)
    shared["arguments"] = {"code": "y", "session": "shared"}
    assert text_of(other.ask("tools/call", shared)) == "5"
    listed = user.toolfold("sessions").stdout
    assert re.search(r"^shared .* monty +2 ", listed, re.MULTILINE), listed


def resume_batch(user: User, count: int) -> None:
    """Kill the daemon in the middle of a batch: each record is updated in the end, none twice."""
    updates = user.home / "updates.jsonl"
    user.configure(records=test_server("records", updates, str(count)))
    client = user.connect()
    request = client.begin(BATCH)
    wait_until(lambda: len(updated(updates)) >= count // 2, "half of the updates")
    kill(user.daemon())
    text = text_of(client.answer_to(request))
    found = re.search(r"toolfold runs resume (\w+)", text)
    assert found, text
    run_id = found[1]
    before = updated(updates)
    assert count // 2 <= len(before) < count

    # The model goes on with it; what was under way is the user's business.
    said = client.run(f"import runs\nruns.resume({run_id!r})")
    if "outcome is unknown" in said:
        assert updated(updates) == before
        decide(user, said, run_id, before)
    else:
        wait_until(lambda: len(updated(updates)) == count, "the rest of the updates")

    counts = Counter(updated(updates))
    assert set(counts) == set(range(count))
    assert set(counts.values()) == {1}


def decide(user: User, said: str, run_id: str, before: list[int]) -> None:
    """Look whether what was in doubt was done, as a user would, and go on."""
    doubt = re.search(r"call (\d+), records.update (\{.*\})", said)
    assert doubt, said
    decision = "--skip" if json.loads(doubt[2])["id"] in before else "--repeat"
    resumed = user.toolfold("runs", "resume", run_id, decision)
    assert resumed.returncode == 0, resumed.stderr
    assert "calls answered from the record" in resumed.stderr


def test_a_batch_that_was_killed_is_gone_on_with(user: User) -> None:
    resume_batch(user, count=1_000)


@pytest.mark.soak
@pytest.mark.parametrize("round_", range(5))
def test_a_batch_of_two_thousand_that_was_killed_is_gone_on_with(user: User, round_: int) -> None:
    resume_batch(user, count=2_000)


def test_runs_show_their_progress_and_session(user: User) -> None:
    client = user.connect()
    client.run("progress(3, 7, 'rows')\nx = 1")

    listed = user.toolfold("runs").stdout
    assert "[3/7 rows]" in listed
    run_id = listed.splitlines()[1].split()[0]  # below the heads of the columns
    shown = user.toolfold("runs", "show", run_id).stdout
    assert "session: " in shown
    assert "progress: [3/7 rows]" in shown
    wrong = user.toolfold("runs", "resume", run_id)
    assert wrong.returncode == 2
    assert "has ended" in wrong.stderr


def job_with_two_calls(user: User, seconds: float) -> None:
    """Have a job take that long: the model makes two calls, and asks for nothing in between."""
    log = user.home / "jobs.log"
    user.configure(ci=test_server("task_jobs", "tasks", "--log", log))
    client = user.connect()
    text = text_of(
        client.answer_to(
            client.begin(f"import ci\nci.run_tests(seconds={seconds})", progressToken=1)
        )
    )
    found = re.search(r"Its id is (\w+)", text)
    assert found, text

    wait = f"import runs\nruns.wait({found[1]!r})['text']"
    picked = text_of(client.answer_to(client.begin(wait, progressToken=2)))
    assert json.loads(picked) == {"passed": 7, "reply": None}


def test_a_job_of_thirty_minutes_costs_two_calls(user: User) -> None:
    """All clocks are compressed: a run has 2 s, a client waits for 1 s, the job takes 8 s."""
    user.settings("call_timeout_s = 1\n[limits]\nwall_time_s = 2\nanswer_s = 1\n")
    job_with_two_calls(user, seconds=8)


@pytest.mark.soak
@pytest.mark.timeout(2_400)
def test_a_job_of_thirty_minutes_costs_two_calls_in_real_time(user: User) -> None:
    job_with_two_calls(user, seconds=1_800)


def test_a_task_goes_on_where_its_daemon_was_killed(user: User) -> None:
    """The client asks for it as before; no call that completed is made again."""
    updates = user.home / "updates.jsonl"
    user.settings("[limits]\nanswer_s = 1\n")
    user.configure(records=test_server("records", updates, "60"))
    client = user.connect()
    tasks: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    declared = {"io.modelcontextprotocol/clientCapabilities": tasks}
    slow = BATCH.replace("    progress", "    time.sleep(0.1)\n    progress")
    answer = client.answer_to(client.begin(f"import time{slow}", **declared))
    task_id = answer["result"]["taskId"]

    def state() -> dict[str, Any]:
        asked = {"taskId": task_id, "_meta": declared}
        result: dict[str, Any] = client.ask("tasks/get", asked)["result"]
        return result

    assert state()["status"] == "working"
    wait_until(lambda: updated(updates), "an update")
    before = len(updated(updates))
    kill(user.daemon())
    assert state()["status"] == "working"
    wait_until(lambda: state()["status"] == "completed", "the end of the task")

    assert text_of({"result": state()["result"]}).startswith("60\nNote: This resumed run")
    assert before < 60
    assert sorted(updated(updates)) == sorted(set(updated(updates)))
    assert len(updated(updates)) == 60
    assert client.run("1") == "1"  # the client has asked for it: there is no more to tell


def test_a_run_that_had_gone_on_when_the_daemon_was_killed_is_not_forgotten(user: User) -> None:
    user.settings("[limits]\nanswer_s = 1\n")
    user.configure(ci=test_server("task_jobs", "tasks", "--log", user.home / "jobs.log"))
    client = user.connect()
    found = re.search(
        r"Its id is (\w+)", client.run("import ci\nci.run_tests(seconds=4)['passed']")
    )
    assert found
    run_id = found[1]
    kill(user.daemon())

    told = client.run("1")
    assert told.startswith("1\n")
    assert f"runs.resume('{run_id}')" in told
    assert client.run("2") == "2"  # once
    resumed = json.loads(client.run(f"import runs\nruns.resume({run_id!r}, wait_s=0)"))
    assert resumed["state"] == "running"
    time.sleep(5)
    told = client.run("3")
    assert told.startswith(
        f"3\nThe run {resumed['id']}, which continued in the background, has ended:\n7\n"
    )
