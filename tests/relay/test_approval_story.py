"""Approving at a terminal what a client could not be asked: after a restart, exactly once."""

import json
import os
import pty
import re
import select
import subprocess
import time
from pathlib import Path

import pytest
from relay.conftest import User
from relay.peer import kill, text_of, toolfold_command, wait_until
from support import test_server, write_config

pytestmark = pytest.mark.timeout(240)  # it starts many processes

CODE = """
import records
for number in range(50):
    records.update(id=number, value="gone")
"fifty"
"""
RULES = '[[policy]]\naction = "ask"\ntools = "records.update"\n'


@pytest.fixture
def updates(user: User) -> Path:
    path = user.home / "updates.jsonl"
    user.configure(records=test_server("records", path, "60"))
    (user.home / "config" / "policy.toml").write_text(RULES)
    return path


def done(path: Path) -> list[int]:
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line)["id"] for line in lines]


def frozen(user: User) -> tuple[str, str]:
    """Run the code; return the id under which it waits, and what the model read."""
    text = user.connect().run(CODE)
    found = re.search(r"toolfold approve (\w+)", text)
    assert found, text
    return found[1], text


def at_a_terminal(
    user: User, *arguments: str, types: str, cwd: Path | None = None
) -> tuple[int, str]:
    """Run a command as a person does, who types something when asked."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        toolfold_command(*arguments),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=user.environ,
        cwd=cwd or user.project,
    )
    os.close(theirs)
    seen, has_typed, deadline = "", False, time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([ours], [], [], 0.2)[0]:
            continue
        try:
            chunk = os.read(ours, 4096)
        except OSError:
            break
        seen += chunk.decode("utf-8", "replace")
        if "[y/N]" in seen and not has_typed:
            os.write(ours, f"{types}\n".encode())
            has_typed = True
    else:
        process.kill()
    os.close(ours)
    return process.wait(60), seen


def test_approved_after_a_restart_all_fifty_are_made_once(user: User, updates: Path) -> None:
    run_id, text = frozen(user)
    assert done(updates) == []
    assert "Calls completed before it stopped: none" in text or "No tool had been called" in text
    kill(user.daemon())
    assert run_id in user.toolfold("approve").stdout

    status, seen = at_a_terminal(user, "approve", run_id, "--most", "100", types="y")

    assert status == 0, seen
    assert "fifty" in seen
    assert done(updates) == list(range(50))
    told = user.connect().run(f"import runs\nruns.get({run_id!r})")
    assert '"state": "done"' in told
    assert "fifty" in told


def test_approved_elsewhere_it_goes_on_in_its_own_project(user: User, updates: Path) -> None:
    run_id, _ = frozen(user)
    rules = user.project / ".toolfold" / "policy.toml"
    rules.write_text('[[policy]]\naction = "deny"\ntools = "records.*"\nmore_than = 10\n')

    _, seen = at_a_terminal(
        user, "approve", run_id, "--most", "100", "--always", types="y", cwd=user.home
    )

    assert "a rule forbids it" in seen
    assert done(updates) == list(range(10))
    assert re.search(r"allow +records.update +always", user.toolfold("policy").stdout)


def test_approved_it_goes_on_with_the_servers_that_it_had(user: User, tmp_path: Path) -> None:
    file = tmp_path / "own.json"
    servers = {"own": user.world(), "records": test_server("records", tmp_path / "r.jsonl", "60")}
    write_config(file, servers)
    (user.home / "config" / "policy.toml").write_text(RULES)
    client = user.connect("--config", str(file))
    code = (
        "import own, records\nbefore = own.where()['pid']\nrecords.update(id=1, value='')\n"
        "before == own.where()['pid']"
    )
    run_id = re.search(r"toolfold approve (\w+)", client.run(code))
    assert run_id is not None

    status, seen = at_a_terminal(user, "approve", run_id[1], types="y")  # which names no file

    assert status == 0, seen
    assert "true" in seen
    assert done(tmp_path / "r.jsonl") == [1]


def test_resumed_elsewhere_it_goes_on_in_its_own_project(user: User, updates: Path) -> None:
    run_id, _ = frozen(user)
    rules = user.project / ".toolfold" / "policy.toml"
    rules.write_text('[[policy]]\naction = "deny"\ntools = "records.*"\n')

    _, seen = at_a_terminal(user, "runs", "resume", run_id, types="", cwd=user.home)

    assert "a rule forbids it" in seen
    assert done(updates) == []


def test_where_the_daemon_died_an_approved_run_is_gone_on_with(user: User, updates: Path) -> None:
    user.settings('sandbox = "cpython"\n')
    peer = user.connect()
    request = peer.begin(f"import records\nrecords.put(id=99, value='')\n{CODE}")
    wait_until(lambda: "records.update" in user.toolfold("approve").stdout, "a question")
    run_id = user.toolfold("approve").stdout.split()[0]
    kill(user.daemon())

    told = text_of(peer.answer_to(request))
    status, seen = at_a_terminal(user, "approve", run_id, "--most", "100", types="y")

    assert f"toolfold approve {run_id}" in told  # which was said before the daemon died
    assert status == 0, seen
    assert "fifty" in seen
    assert done(updates) == [99, *range(50)]


def test_who_says_no_or_nothing_decides_nothing(user: User, updates: Path) -> None:
    run_id, _ = frozen(user)
    status, seen = at_a_terminal(user, "approve", run_id, types="")

    assert status == 1
    assert "Nothing was decided" in seen
    assert run_id in user.toolfold("approve").stdout
    assert done(updates) == []


def test_without_a_terminal_nobody_approves(user: User, updates: Path) -> None:
    run_id, _ = frozen(user)
    refused = user.toolfold("approve", run_id)

    assert refused.returncode == 2
    assert "Only a person at a terminal can approve" in refused.stderr
    assert done(updates) == []


def test_rejected_the_model_is_told(user: User, updates: Path) -> None:
    run_id, _ = frozen(user)
    rejected = user.toolfold("reject", run_id)

    assert rejected.returncode == 0, rejected.stderr
    for verb in ("get", "resume"):
        told = user.connect().run(f"import runs\nprint(runs.{verb}({run_id!r})['text'])")
        assert "The user rejected records.update" in told
    assert done(updates) == []
    assert "No run is waiting for approval" in user.toolfold("approve").stdout


def test_policy_check_says_which_rule_decides(user: User, updates: Path) -> None:
    checked = user.toolfold("policy", "check", "records.update", '{"id": 1}')

    assert checked.returncode == 0, checked.stderr
    assert "records.update: ask" in checked.stdout
    assert "policy.toml, rule 1" in checked.stdout
    assert re.search(r"ask +records.update", user.toolfold("policy").stdout)


def test_a_denied_tool_is_not_found(user: User, updates: Path) -> None:
    (user.home / "config" / "policy.toml").write_text(
        '[[policy]]\naction = "deny"\ntools = "records.fail"\n'
    )
    found = user.connect().run("import tools\nprint(tools.search('records fail', limit=20))")

    assert "records.update" in found
    assert "records.fail(" not in found


def test_rules_of_the_client_are_taken_over_once(user: User, updates: Path) -> None:
    kept = [
        {"source": "s", "scope": "user", "list": "deny", "rule": "mcp__records__put"},
        {"source": "/repo/.claude/settings.json", "scope": "project", "list": "allow",
         "rule": "mcp__records__update"},
    ]  # fmt: skip
    (user.home / "config" / "imported-rules.json").write_text(json.dumps({"rules": kept}))
    rules = user.home / "config" / "policy.toml"

    shown = user.toolfold("policy", "import", "--dry-run").stdout
    assert 'tools = "records.put"' in shown
    assert "Not imported: allow mcp__records__update" in shown
    assert rules.read_text() == RULES
    for _ in range(2):
        assert user.toolfold("policy", "import").returncode == 0
    assert rules.read_text().count("[[policy]]") == 2
    assert "records.put: deny" in user.toolfold("policy", "check", "records.put").stdout
    assert "records.update: ask" in user.toolfold("policy", "check", "records.update").stdout


def test_rules_that_cannot_be_read_are_named_and_left_as_they_are(
    user: User, updates: Path
) -> None:
    kept = [{"source": "s", "scope": "user", "list": "deny", "rule": "mcp__records__put"}]
    (user.home / "config" / "imported-rules.json").write_text(json.dumps({"rules": kept}))
    rules = user.home / "config" / "policy.toml"
    rules.write_text('[[policy]]\naction = "deny"\nwhen = "amount > 007"\n')

    said = [user.toolfold("policy", *rest) for rest in ((), ("check", "records.put"), ("import",))]
    assert [each.returncode for each in said] == [2, 2, 2]
    assert all("rule 1: The condition 'amount > 007'" in each.stderr for each in said)
    assert "rule 1: The condition" in user.connect().run("1 + 1")
    assert rules.read_text().count("[[policy]]") == 1


@pytest.mark.parametrize("tier", ["monty", "cpython"])
def test_killed_while_a_run_waits_nothing_is_lost_that_a_reply_confirmed(
    user: User, updates: Path, tier: str
) -> None:
    needs = "import enum\n" if tier == "cpython" else ""
    peer = user.connect()
    peer.run(f"{needs}before = [1]")
    told = peer.run(f"{needs}import records\nrecords.update(id=7, value='x')\nlate = 2")
    found = re.search(r"toolfold approve (\w+)", told)
    assert found is not None, told
    confirmed = [peer.run(f"{needs}other_{n} = {n}\nother_{n}") for n in range(3)]
    kill(user.daemon())

    after = peer.run(f"{needs}[before, other_0, other_1, other_2]")
    status, seen = at_a_terminal(user, "approve", found[1], types="y")

    assert confirmed == ["0", "1", "2"]
    assert after.splitlines()[0] == "[[1], 0, 1, 2]"
    assert status == 0, seen
    assert done(updates) == [7]
    assert peer.run(f"{needs}[before, late, other_2]").splitlines()[0] == "[[1], 2, 2]"
