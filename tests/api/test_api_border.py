"""Scripts, commands and hooks pass the border: by the daemon, and in a process of their own."""

import os
import pty
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hooks.home import PATIENCE_S, HookHome, hook_home, said, transcript

pytestmark = pytest.mark.timeout(240)  # it starts many processes

STORE = """
import sys
from toolfold import api, errors
try:
    print(api.store(sys.argv[1]))
except errors.ToolfoldError as error:
    print(type(error).__name__, error)
"""
UNASKED = "Repeat the command at a terminal, where you are asked."


@pytest.fixture
def home(tmp_path: Path) -> Iterator[HookHome]:
    with hook_home(tmp_path) as home:
        yield home


@pytest.fixture(params=["daemon", "own"])
def way(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


def rule(home: HookHome, action: str, tools: str, more: str = "") -> None:
    text = f'[[policy]]\naction = "{action}"\ntools = "{tools}"\n{more}\n'
    (home.home / "config" / "policy.toml").write_text(text)


def command(home: HookHome, way: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command where nobody can be asked."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "toolfold", *words],
        env=home.environ_for(way),
        cwd=home.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def hook(home: HookHome, way: str, name: str, **told: Any) -> str:
    """Run a hook; return what the model is shown."""
    no_daemon = home.environ_for(way)["TOOLFOLD_NO_DAEMON"]
    return home.hook(name, told, TOOLFOLD_NO_DAEMON=no_daemon).context


def rows(home: HookHome, sql: str) -> list[Any]:
    with closing(sqlite3.connect(home.home / "data" / "runs.db")) as journal:
        return journal.execute(sql).fetchall()


def calls(home: HookHome) -> list[Any]:
    return rows(
        home,
        "SELECT client = 'cli', client = 'hook', tool, outcome FROM calls"
        " JOIN beginnings ON number = calls.id >> 32 WHERE kind = 'request' ORDER BY calls.id",
    )


def test_rules_hold_for_scripts_commands_and_hooks(home: HookHome, way: str) -> None:
    home.remember("We decided that invoices are numbered per customer", way=way)
    path = transcript(home.home / "t.jsonl", [said("user", "Paint it red")])
    ended = {"session_id": "one", "transcript_path": str(path)}
    prompt = "What did we decide about invoices?"
    rule(home, "deny", "memory.*")

    [script] = home.script(way, STORE, "by a script")
    typed = command(home, way, "memory", "store", "by a command")
    shown = [hook(home, way, "session-start"), hook(home, way, "prompt", prompt=prompt)]
    hook(home, way, "pre-compact", **ended)
    decided = rows(home, "SELECT action FROM decisions")
    rule(home, "allow", "memory.*")
    shown_again = hook(home, way, "prompt", prompt=prompt)

    assert script.startswith("Denied memory.store was not called: a rule forbids it")
    assert typed.returncode != 0
    assert "memory.store was not called: a rule forbids it" in typed.stderr
    assert shown == ["", ""]
    assert "per customer" in shown_again
    assert home.log.count("a rule forbids it") == 3
    assert decided == [("deny",)] * 5
    assert [text for (text,) in home.read("SELECT content FROM notes")] == [
        "We decided that invoices are numbered per customer"
    ]


def test_rules_that_cannot_be_read_allow_nothing(home: HookHome, way: str) -> None:
    (home.home / "config" / "policy.toml").write_text("[[policy]]\nnonsense = 1\n")

    [script] = home.script(way, STORE, "by a script")
    typed = command(home, way, "memory", "list")
    shown = hook(home, way, "session-start")

    assert "No tool is called until this is fixed" in script
    assert "No tool is called until this is fixed" in typed.stderr
    assert shown == ""
    assert "No tool is called until this is fixed" in home.log


def test_every_access_has_its_row(home: HookHome, way: str) -> None:
    home.script(way, STORE, "The build needs node 22")
    assert command(home, way, "memory", "list").returncode == 0
    hook(home, way, "prompt", prompt="What did we decide about the build?")

    assert calls(home) == [
        (0, 0, "memory.store", "ok"),
        (1, 0, "memory.list", "ok"),
        (0, 1, "memory.recall", "ok"),
    ]
    verified = command(home, way, "runs", "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_rules_about_many_calls_fit_commands_and_conversations(home: HookHome) -> None:
    home.environ["TOOLFOLD_LINGER_S"] = "60"  # the daemon counts
    home.remember("We decided that invoices are numbered per customer")
    rule(home, "deny", "memory.*", "more_than = 2")

    typed = [command(home, "daemon", "memory", "list").returncode for _ in range(3)]
    told = {"prompt": "What did we decide about invoices?", "session_id": "one"}
    asked = "SELECT outcome FROM calls JOIN beginnings ON number = calls.id >> 32"
    for _ in range(3):
        hook(home, "daemon", "prompt", **told)
    outcomes = rows(home, f"{asked} WHERE client = 'hook' AND kind = 'request' ORDER BY calls.id")
    decided = rows(home, "SELECT action FROM decisions")
    another = hook(home, "daemon", "prompt", **told | {"session_id": "another"})

    assert typed == [0, 0, 2]
    assert outcomes == [("ok",), ("ok",), ("failed",)]
    assert decided == [("deny",)] * 2
    assert "per customer" in another


def at_terminal(home: HookHome, way: str, types: bytes, *words: str) -> str:
    """Run a command for somebody who types an answer."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "toolfold", *words],
        env={**home.environ_for(way), "TERM": "xterm"},
        cwd=home.project, stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, types)
    shown = b""
    try:
        while chunk := os.read(ours, 65_536):
            shown += chunk
    except OSError:  # how a terminal says that nobody writes any more
        pass
    os.close(ours)
    process.wait(PATIENCE_S)
    return shown.decode()


def test_who_is_at_a_terminal_is_asked_and_nobody_else_can_be(home: HookHome, way: str) -> None:
    rule(home, "ask", "memory.store")

    agreed = at_terminal(home, way, b"y\n", "memory", "store", "yes")
    refused = at_terminal(home, way, b"n\n", "memory", "store", "no")
    piped = command(home, way, "memory", "store", "by a pipe")
    [script] = home.script(way, STORE, "by a script")

    assert "Allow? [y/N/all]" in agreed
    assert "Allow? [y/N/all]" in refused
    assert piped.returncode != 0
    assert UNASKED in piped.stderr
    assert script.startswith("NeedsApproval memory.store was not called")
    assert [text for (text,) in home.read("SELECT content FROM notes")] == ["yes"]
    decided = [action for (action,) in rows(home, "SELECT action FROM decisions")]
    assert decided == ["approved", "rejected", "ask", "ask"]


FORK_AMONG_THREADS = """
import os, signal, threading
from toolfold import api

api.store("a note of the parent")
is_over = threading.Event()

def keep_storing(name):
    number = 0
    while not is_over.is_set():
        number += 1
        api.store(f"note {number} of thread {name}")

threads = [threading.Thread(target=keep_storing, args=(name,)) for name in range(2)]
for each in threads:
    each.start()
statuses = []
for number in range(5):
    child = os.fork()
    if child == 0:
        signal.alarm(45)
        api.store(f"a note of child {number}", tags="child")
        assert api.search("parent").total >= 1
        os._exit(0)
    statuses.append(os.waitpid(child, 0)[1])
is_over.set()
for each in threads:
    each.join()
print(statuses, api.search_by_tag("child").total)
"""


def test_a_process_may_fork_while_its_threads_write_the_journal(home: HookHome) -> None:
    assert home.script("own", FORK_AMONG_THREADS) == ["[0, 0, 0, 0, 0] 5"]
    assert command(home, "own", "runs", "verify").returncode == 0
