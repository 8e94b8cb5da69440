"""The terminal goes by the daemon: servers exist once, and a command is as it would be alone."""

import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from relay.conftest import User, using
from relay.peer import PATIENCE_S, is_alive, kill, toolfold_command, wait_until
from support import entry, node_server, test_server

pytestmark = pytest.mark.timeout(240)  # it starts many processes

CREATES = """
import graph_server
for number in range({count}):
    graph_server.create_entities(entities=[
        {{"name": f"{who}-{{number}}", "entityType": "row", "observations": ["one"]}}
    ])
"""
SLOW = "import records\nfor n in range(500):\n    records.slow_update(id=n, seconds=0.05)\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    """One for all that only looks at what a command says."""
    with using(tmp_path_factory.mktemp("place")) as user:
        user.environ["TOOLFOLD_LINGER_S"] = "600"
        yield user


@pytest.fixture
def updates(user: User) -> Path:
    path = user.home / "updates.jsonl"
    user.configure(records=test_server("records", path, "60"))
    return path


def begin(user: User, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        toolfold_command(*arguments),
        env=user.environ,
        cwd=user.project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_a_terminal_and_a_client_share_one_server(place: User) -> None:
    told = place.connect().run("import world\nworld.where()['pid']")
    ran = place.toolfold("run", "-c", "import world\nworld.where()['pid']")

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == told.strip()
    assert place.servers == {int(told)}
    assert len(place.daemons) == 1


@pytest.mark.parametrize(
    ("arguments", "typed", "status", "stdout", "stderr"),
    [
        (("run",), "print('typed')", 0, "typed\n", ""),
        (("run", "-"), "print('typed')", 0, "typed\n", ""),
        (("run", "/dev/stdin"), "print('typed')", 0, "typed\n", ""),
        (("run", "-c", "1 / 0"), "", 1, "", "ZeroDivisionError"),
        (("run",), "", 2, "", "No code was given."),
        (("run", "-c", " "), "", 2, "", "No code was given."),
        (("run", "no/such.py"), "", 2, "", "Cannot read no/such.py"),
        (("run", "--nonsense"), "", 2, "", "--nonsense"),
        (("run", "--config", "none.json", "-c", "1"), "", 2, "", "none.json"),
        (("run", "--set", "limits.reply_chars=x", "-c", "1"), "", 2, "", "reply_chars"),
        (("runs", "show", "zzz"), "", 2, "", "No run has an id"),
        (("approve", "zzz"), "", 2, "", "No run 'zzz' waits"),
        (("memory", "store"), "a note that was typed: ä", 0, "", ""),
        (("memory", "search", "typed"), "", 0, "a note that was typed: ä", ""),
        (("tools", "search", "double", "a", "number"), "", 0, "world.double(number", ""),
        (("policy", "check", "world.double"), "", 0, "world.double: allow", ""),
        (("savings",), "", 0, "run", ""),
    ],
)
def test_a_command_is_as_it_would_be_alone(
    place: User, arguments: tuple[str, ...], typed: str, status: int, stdout: str, stderr: str
) -> None:
    done = subprocess.run(
        toolfold_command(*arguments),
        input=typed,
        env=place.environ,
        cwd=place.project,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (done.returncode, stdout in done.stdout, stderr in done.stderr) == (
        status,
        True,
        True,
    ), done
    assert len(place.daemons) == 1


def test_what_is_printed_may_be_longer_than_a_line_of_the_wire(place: User) -> None:
    """JSON writes each of these characters as six."""
    done = place.toolfold(
        *("run", "--set", "limits.output_bytes=60000000", "--set", "limits.reply_chars=20000000"),
        *("-c", "print('ä' * 12_000_000)"),
    )

    assert done.returncode == 0, done.stderr[:1000]
    assert done.stdout.strip() == "ä" * 12_000_000


def test_the_callers_directory_and_environment_count(place: User, tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(
        json.dumps({"mcpServers": {"own": place.world(env={"MARK": "${OWN_MARK}"})}})
    )
    (tmp_path / "program.py").write_text("import own\nown.where()['mark']")
    done = subprocess.run(
        toolfold_command("run", "--config", "mcp.json", "program.py"),
        env={**place.environ, "OWN_MARK": "of this terminal"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.stdout == "of this terminal\n", done.stderr


def test_without_the_daemon_only_where_that_is_said(user: User) -> None:
    done = user.toolfold("run", "--no-daemon", "-c", "1 + 1")

    assert done.stdout == "2\n", done.stderr
    assert not user.daemons


def test_commands_at_once_start_one_daemon(user: User) -> None:
    with ThreadPoolExecutor(4) as threads:
        jobs = [threads.submit(user.toolfold, "run", "-c", f"{n} + 1") for n in range(4)]
        assert [job.result().stdout for job in jobs] == ["1\n", "2\n", "3\n", "4\n"]
    assert len(user.daemons) == 1


def test_interrupted_the_run_ends_and_what_completed_is_said(user: User, updates: Path) -> None:
    process = begin(user, "run", "-c", SLOW)
    wait_until(lambda: lines(updates) >= 3, "three calls")
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=PATIENCE_S)
    made = lines(updates)

    assert process.returncode == 130, stderr
    assert "Calls completed before it stopped: records.slow_update" in stderr
    assert "toolfold runs resume" in stderr
    assert is_alive(user.daemon())
    time.sleep(0.3)  # nothing is to happen in it
    assert lines(updates) == made


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_command_that_waits_for_code_ends_at_a_signal(place: User, number: int) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        toolfold_command("run"), env=place.environ, cwd=place.project,
        stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        assert process.stderr.readline() == "Type Python, then Ctrl-D.\n"
        process.send_signal(number)

        assert process.wait(PATIENCE_S) == 128 + number
    finally:
        process.kill()
        process.communicate()
        os.close(ours)
        os.close(theirs)


def test_a_terminal_that_is_closed_ends_its_run(user: User, updates: Path) -> None:
    process = begin(user, "run", "-c", SLOW)
    wait_until(lambda: lines(updates) >= 3, "three calls")
    process.kill()
    process.communicate()
    wait_until(lambda: "running" not in user.toolfold("runs").stdout, "the end of the run")

    assert lines(updates) < 100


def test_lost_with_the_daemon_a_run_says_what_it_had_done(user: User, updates: Path) -> None:
    process = begin(user, "run", "-c", SLOW)
    wait_until(lambda: lines(updates) >= 3, "three calls")
    kill(user.daemon())
    _, stderr = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 2
    assert "The toolfold daemon ended, and with it this run" in stderr
    assert "records.slow_update" in stderr
    assert "toolfold runs resume" in stderr


def test_an_older_daemon_makes_room_and_that_is_said(user: User) -> None:
    old = subprocess.Popen(toolfold_command("daemon", version="0.0.9"), env=user.environ)
    wait_until(user.status, "the old daemon answers")
    done = user.toolfold("run", "-c", "1 + 2")

    assert done.stdout == "3\n", done.stderr
    assert "The daemon was of toolfold 0.0.9" in done.stderr
    assert old.wait(PATIENCE_S) == 0
    assert user.toolfold("run", "-c", "1 + 3").stderr == ""


def test_two_terminals_two_clients_and_rest_lose_nothing(user: User) -> None:
    kept = user.home / "graph.jsonl"
    user.configure(graph_server=entry(node_server("memory"), env={"MEMORY_FILE_PATH": str(kept)}))
    serving = begin(user, "serve", "--port", "0")
    assert serving.stdout is not None
    address = serving.stdout.readline().split()[-1].removesuffix("/mcp")
    code = {who: CREATES.format(who=who, count=60) for who in ("t1", "t2", "c1", "c2", "rest")}

    def by_rest() -> None:
        body = json.dumps({"code": code["rest"]}).encode()
        request = Request(f"{address}/execute", body, {"Content-Type": "application/json"})
        with urlopen(request, timeout=120) as answer:
            assert json.load(answer)["success"]

    try:
        peers = {name: user.connect() for name in ("c1", "c2")}
        with ThreadPoolExecutor(5) as threads:
            jobs = [threads.submit(user.toolfold, "run", "-c", code[name]) for name in ("t1", "t2")]
            jobs += [threads.submit(peers[name].run, code[name]) for name in peers]
            jobs.append(threads.submit(by_rest))
            for job in jobs:
                job.result()
    finally:
        serving.terminate()
        serving.communicate(timeout=PATIENCE_S)

    names = {json.loads(line)["name"] for line in kept.read_text().splitlines()}
    assert names == {f"{who}-{number}" for who in code for number in range(60)}
