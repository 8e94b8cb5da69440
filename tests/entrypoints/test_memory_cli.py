"""`toolfold memory …`, as a person and a shell script use it."""

import json
import re
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from api.memory_home import MemoryHome, memory_home
from relay.peer import toolfold_command

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def memory_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryHome]:
    with memory_home(tmp_path_factory.mktemp("c")) as home:
        yield home


@pytest.fixture
def memory(request: pytest.FixtureRequest, memory_user: MemoryHome) -> Command:
    """Return `memory("store", "text")`: the command, in a project that has no notes yet."""
    project = memory_user.directory(request.node.name[-60:])

    def run(
        *arguments: str, stdin: bytes = b"", cwd: Path = project, **environ: str
    ) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            toolfold_command("memory", *arguments),
            env={**memory_user.environ, **environ},
            cwd=cwd,
            input=stdin,
            capture_output=True,
            timeout=50,
        )
        assert b"Traceback" not in done.stderr, done.stderr
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return run


def as_json(done: "subprocess.CompletedProcess[str]") -> Any:
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_a_note_is_stored_found_and_shown(memory: Command) -> None:
    stored = memory(
        "store", "Staging runs on port 5433", "--tags", "db", "--tags", "staging", "--type", "fact"
    )
    name = stored.stdout.strip()
    found = memory("search", "which", "port", "is", "staging")
    shown = memory("get", name)

    assert re.fullmatch(r"[0-9a-f]{8}", name)
    heading, line = found.stdout.splitlines()
    assert heading == "1 of 1 note for 'which port is staging':"
    assert re.fullmatch(
        rf"{name} \d{{4}}-\d\d-\d\d \[db, staging\] [01]\.\d\d: Staging runs on port 5433", line
    )
    assert shown.stdout.startswith(f"note {name}\ntype: fact\ntags: db, staging\ncreated: ")
    assert shown.stdout.endswith("\n\nStaging runs on port 5433\n")
    assert [done.returncode for done in (stored, found, shown)] == [0, 0, 0]


def test_everything_can_be_had_as_json(memory: Command) -> None:
    name = as_json(memory("store", "Übung", "--metadata", '{"a": [1]}', "--source", "me", "--json"))
    new = as_json(memory("update", name, "--content", "Übungen", "--json"))
    found = as_json(memory("search", "Übungen", "--explain", "--json"))
    [listed] = as_json(memory("list", "--json"))["memories"]
    note = as_json(memory("get", new, "--json"))

    assert (found["total"], found["query"], found["memories"][0]["hash"]) == (1, "Übungen", new)
    assert "why" in found["memories"][0]
    assert listed["preview"] == "Übungen"
    assert (note["content"], note["metadata"], note["source"]) == ("Übungen", {"a": [1]}, "me")
    assert [each["version"] for each in as_json(memory("history", name, "--json"))] == [1, 2]
    assert as_json(memory("recall", "today", "--json"))["total"] == 1
    assert as_json(memory("delete", new, "--json")) == 1
    assert as_json(memory("restore", new, "--json")) is True
    assert as_json(memory("purge", new, "--json", "--yes")) == 1
    assert as_json(memory("health", "--json")).keys() == {"status", "count", "backend", "ready"}


def test_what_is_said_to_people_is_said_in_words(memory: Command) -> None:
    name = memory("store", "one", "--tags", "t").stdout.strip()
    assert memory("list").stdout.splitlines()[1].endswith(" [t]: one")
    told = [
        memory("health").stdout,
        memory("delete", "--tags", "t").stdout,
        memory("list").stdout,
        memory("restore", name).stdout,
        memory("history", name).stdout.splitlines()[0] + "\n",
        memory("purge", name, "--yes").stdout,
        memory("recall", "yesterday").stdout,
    ]

    assert told[0].startswith("Memory ok: 1 note in sqlite")
    assert told[1:6] == [
        "Deleted 1 note. Undo: `toolfold memory restore HASH`\n",
        "No notes.\n",
        f"Note {name} restored.\n",
        f"note {name}\n",
        "1 note erased.\n",
    ]
    assert told[6].startswith("No notes for 'yesterday (")


def test_filters_narrow_what_is_listed_and_found(memory: Command) -> None:
    memory("store", "foxes in the wood", "--tags", "fox,wood", "--type", "fact")
    memory("store", "foxes in the town", "--tags", "fox")

    def total(*arguments: str) -> int:
        found: int = as_json(memory(*arguments, "--json"))["total"]
        return found

    assert total("list", "--tags", "fox") == 2
    assert total("list", "--tags", "fox,wood", "--match", "all") == 1
    assert total("search", "foxes", "--type", "fact") == 1
    assert total("search", "foxes", "--before", "2020-01-01") == 0
    assert total("list", "--after", "2020-01-01") == 2
    assert len(as_json(memory("list", "--limit", "1", "--offset", "1", "--json"))["memories"]) == 1


def test_content_comes_from_standard_input_too(memory: Command) -> None:
    piped = memory("store", stdin="from a pipe: naïve\nsecond line".encode()).stdout.strip()
    dashed = memory("store", "-", stdin=b"after a dash").stdout.strip()

    assert as_json(memory("get", piped, "--json"))["content"] == "from a pipe: naïve\nsecond line"
    assert as_json(memory("get", dashed, "--json"))["content"] == "after a dash"


def test_a_namespace_can_be_named(memory: Command, memory_user: MemoryHome) -> None:
    memory("store", "of the project")
    memory("store", "of the team", "--namespace", "team")
    elsewhere = memory_user.directory("elsewhere")

    def contents(*arguments: str, **options: Any) -> list[str]:
        found = as_json(memory("list", *arguments, "--json", **options))
        return [each["preview"] for each in found["memories"]]

    assert contents() == ["of the project"]
    assert contents("--namespace", "team") == ["of the team"]
    assert contents(cwd=elsewhere) == []
    assert contents("--namespace", "team", cwd=elsewhere) == ["of the team"]
    assert contents(TOOLFOLD_MEMORY_NAMESPACE="team") == ["of the team"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("store", ""), "there is nothing to remember"),
        (("store", "x", "--metadata", "{"), "--metadata takes a JSON object"),
        (("store", "x", "--metadata", "[1]"), "Metadata is a mapping"),
        (("store", "x", "--tags", ",".join(map(str, range(10_000)))), "10,000 tags are too many"),
        (("store", "x", "--namespace", " "), "The namespace is empty"),
        (("search", "x", "--limit", "-1"), "--limit takes a number above 0, not '-1'"),
        (("search", "x", "--limit", "2000"), "from 0 to 1,000, not 2000"),
        (("search", "x", "--min-score", "7"), "from 0 to 1, not 7.0"),
        (("list", "--after", "whenever"), "`after` is a time such as"),
        (("list", "--offset", "-1"), "from 0 on, not -1"),
        (("get", "00000000"), "00000000"),
        (("get", "not-a-hash"), "not-a-hash"),
        (("delete",), "by their hashes, or by --tags"),
        (("update", "00000000", "--content", "x"), "00000000"),
        (("search",), "QUERY is missing"),
        (("list", "--limit", "many"), "--limit takes a whole number"),
        (("dream",), "`toolfold memory dream` is not a command"),
    ],
)
def test_mistakes_get_one_clear_line_and_status_2(
    memory: Command, arguments: tuple[str, ...], complaint: str
) -> None:
    done = memory(*arguments)

    assert done.returncode == 2
    assert done.stdout == ""
    assert complaint in done.stderr


def test_what_is_not_text_is_refused(memory: Command) -> None:
    latin, binary = memory("store", stdin=b"caf\xe9"), memory("store", stdin=b"a\0b")

    assert (latin.returncode, latin.stdout) == (binary.returncode, binary.stdout) == (2, "")
    assert "Standard input is not text in UTF-8" in latin.stderr
    assert "holds NUL characters, so it is binary" in binary.stderr


def test_nothing_to_restore_is_status_1(memory: Command) -> None:
    name = memory("store", "here").stdout.strip()

    assert memory("restore", name).returncode == 1


def test_it_works_without_a_daemon_on_the_same_notes(memory: Command) -> None:
    name = memory("store", "by the daemon").stdout.strip()
    done = memory("get", name, TOOLFOLD_NO_DAEMON="1")

    assert done.stdout.endswith("by the daemon\n")


def test_a_store_that_another_embedder_filled_is_embedded_anew(
    tmp_path: Path,
) -> None:
    with memory_home(tmp_path) as home:
        home.toolfold("memory", "store", "the red fox")
        home.toolfold("memory", "store", "the grey cat")
        home.end_daemon_politely()
        database = sqlite3.connect(home.database)
        with database:
            database.execute("UPDATE state SET embedder = 'another', dimensions = 7")
            database.execute("UPDATE points SET vector = zeroblob(11)")
        database.close()

        mended = home.toolfold("memory", "reembed")
        found = home.toolfold("memory", "search", "fox")
        again = home.toolfold("memory", "reembed", "--json")

        assert (mended.returncode, mended.stdout) == (0, "2 notes embedded again.\n")
        assert "the red fox" in found.stdout.splitlines()[1]
        assert json.loads(again.stdout) == 0
        assert home.read("SELECT count(*) FROM points WHERE length(vector) = 388") == [(2,)]
