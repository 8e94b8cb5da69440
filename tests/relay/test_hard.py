"""What clients, other users and bad luck do to a relay."""

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from relay.conftest import User
from relay.peer import LEGACY, Peer, is_alive, kill, text_of, toolfold_command, wait_until
from support import test_server

from toolfold.relay.daemon import DaemonHandle
from toolfold.relay.paths import NoUsableDirectory

pytestmark = pytest.mark.timeout(180)


def test_a_burst_of_calls_is_answered_though_neither_side_reads_at_once(user: User) -> None:
    peer = user.connect()
    count = 700
    sending = threading.Thread(target=lambda: [peer.begin(f"{n} * 2") for n in range(count)])
    sending.start()
    sending.join()

    answers = sorted(int(text_of(peer.receive())) for _ in range(count))

    assert answers == [n * 2 for n in range(count)]


def test_a_daemon_killed_under_a_burst_has_nothing_done_twice(user: User, tmp_path: Path) -> None:
    peer = user.connect()
    assert peer.run("1 + 1") == "2"
    count = 400
    marks = [tmp_path / f"mark-{n}" for n in range(count)]

    def begin() -> None:
        for mark in marks:
            peer.begin(f"import world\nworld.append(path={str(mark)!r})")

    sending = threading.Thread(target=begin)
    sending.start()
    wait_until(lambda: any(mark.exists() for mark in marks), "some are done")
    kill(user.daemon())
    sending.join()
    texts = [text_of(peer.receive()) for _ in range(count)]

    lost = [text for text in texts if text != "appended"]
    assert all("daemon ended, and with it this run" in t or "outcome is unknown" in t for t in lost)
    done = [mark.read_text() for mark in marks if mark.exists()]
    assert set(done) == {"x"}
    assert count - len(lost) <= len(done)


def test_a_lost_run_is_told_once_however_many_daemons_die(user: User, tmp_path: Path) -> None:
    peer = user.connect()
    begun = tmp_path / "begun"
    run = peer.begin(f"import world, time\nworld.append(path={str(begun)!r})\ntime.sleep(60)")
    wait_until(begun.exists, "the run works")
    kill(user.daemon())
    lost = text_of(peer.answer_to(run))
    kill(user.daemon())

    assert "daemon ended, and with it this run" in lost
    assert peer.run("1 + 1") == "2"


ODD = {
    "an id that is null": {"id": None, "method": "ping"},
    "an id that is a fraction": {"id": 1.5, "method": "ping"},
    "an id that is a boolean": {"id": True, "method": "ping"},
    "a method that is an object": {"id": 5, "method": {}},
    "params that are a list": {"id": 5, "method": "tools/list", "params": [1]},
    "params that are a string": {"id": 5, "method": "initialize", "params": "x"},
    "half a character": {
        "id": 5,
        "method": "tools/call",
        "params": {"name": "execute_code", "arguments": {"code": "'\ud83d'"}},
    },
    "arguments that are a list": {
        "id": 5,
        "method": "tools/call",
        "params": {"name": "execute_code", "arguments": [1]},
    },
}


@pytest.mark.parametrize("message", ODD.values(), ids=ODD)
def test_an_odd_message_is_answered_and_harms_nothing(user: User, message: dict[str, Any]) -> None:
    peer = user.connect(era=LEGACY)
    peer.initialize()
    peer.send(message)

    answer = peer.receive()

    assert "error" in answer or answer["result"]["isError"] is True
    assert peer.run("1 + 1") == "2"


def test_odd_notifications_and_nesting_harm_nothing(user: User) -> None:
    peer = user.connect()
    peer.send({"method": "notifications/cancelled", "params": {}})
    deep: Any = {}
    for _ in range(300):
        deep = {"a": deep}
    request = peer.request("tools/call", {"name": "execute_code", "arguments": deep})

    assert peer.answer_to(request)["id"] == request
    assert peer.run("1 + 1") == "2"


def test_a_line_without_end_is_refused_and_other_runs_go_on(user: User, tmp_path: Path) -> None:
    peer = user.connect()
    go = tmp_path / "go"
    run = peer.begin(f"import world\nworld.wait_for(path={str(go)!r})")
    wait_until(Path(f"{go}.waiting").exists, "a run is under way")
    long = peer.begin("'" + "x" * 17_000_000 + "'")

    refused = peer.receive()
    go.touch()

    assert refused["id"] is None
    assert "at most 16,777,216 bytes" in refused["error"]["message"]
    assert text_of(peer.answer_to(run)) == "seen"
    assert long != run


def test_an_option_that_no_daemon_can_read_is_said(user: User) -> None:
    deep = "[" * 50_000
    peer = user.connect("--set", f"limits.calls={deep}")

    assert "limits.calls" in peer.run("1 + 1")


def test_an_answer_to_a_dead_daemons_question_is_not_taken_for_another(user: User) -> None:
    user.configure(curious=test_server("curious", user.home / "log", "2025"))
    peer = user.connect(era=LEGACY)
    peer.initialize({"elicitation": {}})
    code = "import curious\ncurious.sign(document='a will')"
    first_run = peer.begin(code)
    first = peer.receive()
    kill(user.daemon())
    withdrawn = peer.receive()
    lost = peer.answer_to(first_run)
    second_run = peer.begin(code)
    second = peer.receive()

    assert first["method"] == second["method"] == "elicitation/create"
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"]["requestId"] == first["id"] != second["id"]
    assert "daemon ended, and with it this run" in text_of(lost)
    for question, name in ((first, "Eve"), (second, "Ada")):
        peer.send({"id": question["id"], "result": {"action": "accept", "content": {"name": name}}})
    assert json.loads(text_of(peer.answer_to(second_run)))["content"] == {"name": "Ada"}


def test_a_socket_that_others_could_have_put_there_is_not_used(near_user: User) -> None:
    handle = DaemonHandle(near_user.environ)
    handle.places.make()
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(handle.places.socket)
        stranger.listen()
        directory = Path(handle.places.socket).parent

        directory.chmod(0o777)
        assert handle.connect() is None
        directory.chmod(0o700)
        found = handle.connect()

    assert found is not None
    found[0].close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a directory somebody else's")
def test_a_directory_of_somebody_else_is_refused(near_user: User) -> None:
    handle = DaemonHandle(near_user.environ)
    handle.places.make()
    directory = Path(handle.places.socket).parent
    assert directory.is_relative_to(near_user.home)
    os.chown(directory, 65534, 65534)

    assert handle.connect() is None
    with pytest.raises(NoUsableDirectory, match="belongs to another user"):
        handle.start()
    peer = near_user.connect()
    assert "belongs to another user" in peer.run("1 + 1")
    os.chown(directory, 0, 0)


def test_a_stranger_at_the_daemons_port_gets_no_variables(user: User) -> None:
    user.environ["TOOLFOLD_LOOPBACK"] = "1"
    handle = DaemonHandle(user.environ)
    handle.places.make()
    heard: list[bytes] = []

    def pretend(listener: socket.socket) -> None:
        stream, _ = listener.accept()
        heard.append(stream.recv(65_536))
        greeting = {"wire": 1, "version": "9.9", "needs": ["SECRET"], "proof": "guessed"}
        stream.sendall(json.dumps(greeting).encode() + b"\n")
        while chunk := stream.recv(65_536):
            heard.append(chunk)
        stream.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        Path(handle.places.port_file).write_text(f"{port} token-of-a-dead-daemon")
        stranger = threading.Thread(target=pretend, args=(listener,))
        stranger.start()
        peer = user.connect(SECRET="hidden")
        text = peer.run("1 + 1")
        stranger.join()

    assert "Another process answers" in text
    assert b"hidden" not in b"".join(heard)
    assert b"token-of" not in b"".join(heard)


def test_modules_of_the_project_are_never_run_by_us(user: User) -> None:
    for name in ("select", "json", "anyio"):
        trap = f"open({str(user.project / 'sprung')!r}, 'w').close()\n"
        (user.project / f"{name}.py").write_text(trap)

    said = user.toolfold("doctor")

    assert "daemon: answered" in said.stdout
    assert not (user.project / "sprung").exists()


def test_a_daemon_keeps_no_file_of_the_client_open(user: User) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    relay = subprocess.Popen(
        toolfold_command("mcp"),
        env=user.environ,
        cwd=user.project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[writing],
    )
    os.close(writing)
    wait_until(lambda: user.status() is not None, "the daemon runs")
    relay.communicate()

    assert os.read(reading, 1) == b""
    os.close(reading)


def test_no_place_for_a_daemon_is_said_to_the_client(user: User) -> None:
    (user.home / "state").write_text("in the way")
    peer = user.connect(era=LEGACY)

    assert "result" in peer.initialize()
    assert "cannot be used" in peer.run("1 + 1")


def test_variables_of_the_desktop_and_the_home_are_the_clients(user: User, tmp_path: Path) -> None:
    user.configure(world=user.world(env={"MARK": "${XDG_SESSION_TYPE:-none}"}))

    def seen(peer: Peer) -> tuple[str, str]:
        found = json.loads(peer.run("import world\nworld.where()"))
        return found["mark"], found["environ"]["HOME"]

    one = seen(user.connect(XDG_SESSION_TYPE="wayland"))
    other = seen(user.connect(HOME=str(tmp_path / "other")))

    assert one == ("wayland", user.environ["HOME"])
    assert other == ("none", str(tmp_path / "other"))


REFUSING = """
from toolfold.entrypoints.daemon import client_context
from toolfold.errors import ConfigError
def load_config(**_): raise ConfigError("an older toolfold does not know this setting")
client_context.load_config = client_context.variables_named = load_config
"""


def test_an_older_daemon_that_refuses_the_configuration_is_replaced(user: User) -> None:
    command = toolfold_command("daemon", version="0.0.9", patch=REFUSING)
    old = subprocess.Popen(command, env=user.environ)
    wait_until(Path(DaemonHandle(user.environ).places.socket).exists, "the old daemon listens")

    assert user.connect().run("1 + 1") == "2"
    assert old.wait(60) == 0


def test_what_a_server_started_itself_is_left_alone(user: User, tmp_path: Path) -> None:
    """Only processes that a killed daemon had started itself are ended by the next one."""
    script = tmp_path / "launcher.py"
    script.write_text(
        "import subprocess, sys, runpy\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'],\n"
        "    start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0])\n"
    )
    arguments = [str(script), *user.world()["args"]]
    user.configure(world={"command": sys.executable, "args": arguments})
    peer = user.connect()
    never = tmp_path / "never"
    run = peer.begin(f"import world\nworld.wait_for(path={str(never)!r})")
    wait_until(Path(f"{never}.waiting").exists, "the server is stuck")
    stuck = user.servers
    launched = int((tmp_path / "pid").read_text())

    kill(user.daemon())
    peer.answer_to(run)

    wait_until(lambda: not any(map(is_alive, stuck)), "the stuck server is ended")
    assert is_alive(launched)
    kill(launched)
