"""Hooks as the client starts them: what goes in, what comes out, what is kept."""

import json
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hooks.home import HookHome, git, repository, said, transcript

from toolfold.journal.ledger import Account
from toolfold.journal.reader import read_journal
from toolfold.journal.runsdb import SCHEMA
from toolfold.storage.sqlite_file import open_for_reading
from toolfold.tokens import count_tokens

HEAVY = "{'anyio', 'asyncio', 'mcp', 'numpy', 'pydantic', 'sqlite3', 'subprocess', 'tomllib'}"


def test_a_conversation_begins_with_notes_about_the_branch_important_ones_and_the_newest(
    shared_home: HookHome,
) -> None:
    project = repository(shared_home, "api", "feature/login-loop", "Fix the login redirect loop")
    shared_home.remember("We release on Thursdays", tags="important", cwd=project)
    shared_home.remember(
        "The login redirect loop comes from the SameSite attribute of the cookie",
        "The staging database is rebuilt every night",
        *(f"Note number {n} about the warehouse" for n in range(12)),
        cwd=project,
    )

    ran = shared_home.hook("session-start", cwd=project)

    assert (ran.status, ran.err) == (0, "")
    assert ran.output["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    *_, first = [line for line in ran.context.splitlines() if "SameSite" in line]
    assert len(first.split()[0]) == 8  # by its hash the agent can have the whole of it
    assert "[important] We release on Thursdays" in ran.context
    assert "Note number 11" in ran.context
    assert "(branch feature/login-loop)" in ran.context
    assert count_notes(ran.context) == 8
    assert count_tokens(ran.context) <= 900


def count_notes(context: str) -> int:
    return len([line for line in context.splitlines() if line[8:11] == " 20"])


def test_long_notes_in_any_script_stay_within_the_budget(
    shared_home: HookHome, project: Path
) -> None:
    shared_home.remember(*(f"{n} " + "漢字のとても長いメモ" * 40 for n in range(8)), cwd=project)

    ran = shared_home.hook("session-start", cwd=project)

    assert 0 < count_notes(ran.context) < 8
    assert count_tokens(ran.context) <= 900


def test_the_user_is_told_in_a_line_what_was_shown_and_what_that_saves(
    shared_home: HookHome, project: Path
) -> None:
    shared_home.remember("A note", cwd=project)

    ran = shared_home.hook("session-start", cwd=project)

    message = ran.output["systemMessage"]
    shown = count_tokens(ran.context)
    assert message.startswith(f"toolfold: 1 note from memory in {shown:,} tokens; asking for")
    account = booked(shared_home, project)
    assert (account.passed, account.calls) == (shown, 1)  # what brought nothing saved nothing
    assert account.all_loaded == account.all_deferred
    assert message.endswith(f"would take {account.all_deferred:,}.")


def booked(home: HookHome, project: Path) -> Account:
    """Return what the ledger has of a hook, once the daemon has written all of it."""
    while True:
        accounts = read_journal(home.home / "data" / "runs.db", lambda each: each.accounts())
        assert accounts is not None
        found = [
            each for each in accounts.all if each.project == str(project) and each.kind == "hook"
        ]
        if found and found[0].deferred:
            [account] = found
            return account


def test_where_there_are_no_notes_nothing_is_said(shared_home: HookHome, project: Path) -> None:
    assert shared_home.hook("session-start", cwd=project).output == {}


def test_a_prompt_is_answered_when_it_asks_for_memory_or_turns_and_not_otherwise(
    shared_home: HookHome, project: Path
) -> None:
    shared_home.remember(
        "Decision: invoices are numbered per customer, because auditors want that",
        "The login cookie has the attribute SameSite=Lax since the redirect loop",
        "Backups of PostgreSQL are kept for thirty days in the vault",
        cwd=project,
    )

    def prompt(words: str) -> str:
        told = {"session_id": "one conversation", "prompt": words}
        return shared_home.hook("prompt", told, cwd=project).context

    assert "SameSite" in prompt("The login page redirects in a loop when the cookie is missing.")
    assert prompt("now run the tests") == ""
    assert prompt("Why does the login cookie cause a redirect loop on this page?") == ""
    asked = prompt("What did we decide about invoice numbers?")
    assert "numbered per customer" in asked
    assert "SameSite" not in asked  # the model has seen that one
    assert "thirty days" in prompt("Set up a nightly PostgreSQL backup with a retention policy")
    assert count_tokens(asked) <= 300


def test_a_session_that_ends_leaves_an_event_and_a_record_without_secrets(
    shared_home: HookHome, project: Path, tmp_path: Path
) -> None:
    key = "ghp_" + "a1B2" * 9
    lines = [said("user", f"Deploy with {key} please"), said("assistant", "Deployed to staging.")]
    path = transcript(tmp_path / "t.jsonl", lines)
    told = {"session_id": "abc12345-6", "transcript_path": str(path), "reason": "logout"}

    compacted = shared_home.hook("pre-compact", told | {"trigger": "auto"}, cwd=project)
    transcript(path, [*lines, said("user", "Now production"), said("assistant", "Done.")])
    ended = shared_home.hook("session-end", told, cwd=project)
    again = shared_home.hook("session-end", told, cwd=project)

    assert [ran.output for ran in (compacted, ended, again)] == [{}, {}, {}]
    [record] = shared_home.notes(project)  # that of the beginning is replaced
    assert re.match("session,session-[0-9a-f]{16} [|] Conversation in ", record)
    assert "Deploy with [secret removed] please" in record
    assert "It ended with: Done." in record
    end, compaction = shared_home.events(project)
    assert end.startswith("session end logout abc12345-6 Conversation in ")
    assert compaction.startswith("compaction logout abc12345-6 ")
    assert key not in "".join(map(str, shared_home.read("SELECT * FROM notes"))) + end


def test_sessions_whose_ids_begin_alike_keep_a_record_each_and_notes_of_people_stay(
    shared_home: HookHome, project: Path, tmp_path: Path
) -> None:
    def keep(session: str, words: str) -> None:
        path = transcript(tmp_path / "t.jsonl", [said("user", words)])
        told = {"session_id": session, "transcript_path": str(path)}
        shared_home.hook("pre-compact", told, cwd=project)

    keep("abc12345-first", "Paint it red")
    [record] = shared_home.notes(project)
    tag = record.split(" ")[0].split(",")[1]
    shared_home.remember("Mine, about that session", tags=tag, cwd=project)
    keep("abc12345-second", "Paint it blue")
    keep("abc12345-first", "Paint it green")

    notes = " ".join(shared_home.notes(project))
    assert [color in notes for color in ("red", "blue", "green", "Mine")] == [False, *[True] * 3]


def test_the_secrets_of_a_prompt_do_not_get_into_the_journal(
    shared_home: HookHome, project: Path
) -> None:
    key = "ghp_" + "z9Y8" * 9
    shared_home.remember("Decision: deploy tokens are rotated each month", cwd=project)

    told = {"prompt": f"What did we decide about deploy tokens? Mine is {key}."}
    ran = shared_home.hook("prompt", told, cwd=project)

    assert "rotated each month" in ran.context
    booked(shared_home, project)
    files = list((shared_home.home / "data").glob("runs.db*"))
    content = b"".join(file.read_bytes() for file in files)
    assert b"What did we decide about deploy tokens? Mine is [secret removed]" in content
    assert key.encode() not in content


def test_the_ledger_counts_the_notes_that_were_shown_and_no_others(
    shared_home: HookHome, project: Path
) -> None:
    notes = [f"Decision {n}: the invoice numbers of region {n} begin with {n}" for n in range(9)]
    shared_home.remember(*notes, cwd=project)

    told = {"prompt": "What did we decide about invoice numbers?"}
    shown = shared_home.hook("prompt", told, cwd=project).context
    booked(shared_home, project)
    connection = open_for_reading(shared_home.home / "data" / "runs.db", SCHEMA)
    assert connection is not None
    with closing(connection):
        statement = "SELECT arguments, answer FROM calls JOIN beginnings ON number = calls.id >> 32"
        rows = connection.execute(
            f"{statement} WHERE project = ? AND kind = 'hook'", [str(project)]
        ).fetchall()

    [(arguments, answer)] = rows
    assert count_notes(shown) == 3
    assert json.loads(arguments)["limit"] == 3
    assert answer.count("Decision ") == 3


def test_two_projects_do_not_see_each_others_notes(shared_home: HookHome, project: Path) -> None:
    shared_home.remember("Only for the first", cwd=project)
    other = shared_home.directory("quite another")

    assert "Only for the first" in shared_home.hook("session-start", cwd=project).context
    assert shared_home.hook("session-start", cwd=other).context == ""


def test_a_hook_that_is_switched_off_says_and_keeps_nothing(own_home: HookHome) -> None:
    own_home.remember("A note")
    own_home.settings("[hooks]\nsession_start = false\nmessage = false\n")
    off = own_home.hook("session-start")
    own_home.settings("[hooks]\nmessage = false\nmetrics = true\n")
    on = own_home.hook("session-start")
    (own_home.project / ".toolfold" / "config.toml").write_text("[hooks]\nsession_start = false\n")
    off_here = own_home.hook("session-start", {"session_id": "another"})

    assert off.output == {}
    assert list(on.output) == ["hookSpecificOutput"]
    assert off_here.output == {}
    served = [line for line in own_home.log.splitlines() if "notes=1" in line]
    assert len(served) == 1
    assert "session-start: daemon served: ms=" in served[0]


def test_a_hook_imports_next_to_nothing(shared_home: HookHome, project: Path) -> None:
    shared_home.remember("A note", cwd=project)
    code = f"""
import os, sys
from toolfold.relay.hooks.hook import hook
assert hook(["session-start"], os.environ) == 0
print(sorted({HEAVY} & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=b'{"cwd": "%s"}' % str(project).encode(),
        env=shared_home.environ,
        cwd=project,
        capture_output=True,
        timeout=50,
    )

    assert b"A note" in done.stdout
    assert done.stderr.decode().strip() == "[]"


@pytest.mark.parametrize("arguments", [["no-such-hook"], [], ["prompt", "--more"]])
def test_a_name_that_there_is_not_never_stops_the_client(
    shared_home: HookHome, arguments: list[str]
) -> None:
    done = shared_home.toolfold("hook", *arguments)

    assert done.returncode == 1  # 2 would
    assert "session-start, prompt" in done.stderr
    assert done.stdout == ""


def test_git_cannot_be_made_to_run_what_a_repository_names(
    shared_home: HookHome, tmp_path: Path
) -> None:
    project = repository(shared_home, "hostile", "main", "One commit")
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    for key in ("core.fsmonitor", "gpg.program", "core.pager", "core.sshCommand", "diff.external"):
        git(project, "config", key, str(trap))
    git(project, "config", "log.showSignature", "true")
    git(project, "config", "alias.log", f"!{trap}")
    shared_home.remember("A note about one commit", cwd=project)

    ran = shared_home.hook("session-start", cwd=project)

    assert "(branch main)" in ran.context
    assert not (tmp_path / "sprung").exists()
