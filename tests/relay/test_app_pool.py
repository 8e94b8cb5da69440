"""One daemon, many clients, each in a world of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from http_daemon import serve_command, serving
from relay.conftest import User
from relay.peer import LEGACY, Peer, is_alive, text_of, toolfold_command, wait_until
from support import python, write_config

from toolfold import __version__
from toolfold.relay.daemon import DaemonHandle

pytestmark = pytest.mark.timeout(180)


def where(peer: Peer, server: str = "world") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(peer.run(f"import {server}\n{server}.where()"))
    return found


def test_variables_are_those_of_the_client_that_asks(user: User) -> None:
    user.configure(world=user.world(env={"MARK": "${MARK:-none}"}))

    marks = [where(user.connect(MARK=mark))["mark"] for mark in ("one", "two")]

    assert marks == ["one", "two"]
    assert where(user.connect())["mark"] == "none"
    assert len(user.daemons) == 1


def test_a_daemon_and_its_servers_see_no_variable_that_is_not_named(user: User) -> None:
    user.configure(world=user.world(env={"MARK": "${MARK}"}))

    seen = where(user.connect(MARK="shown", SECRET="hidden"))["environ"]

    assert seen["MARK"] == "shown"
    assert "SECRET" not in seen
    daemon = Path(f"/proc/{user.daemon()}/environ").read_bytes()
    assert b"hidden" not in daemon
    assert b"shown" not in daemon


def test_a_server_starts_in_the_project_of_its_client(user: User, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    deep = other / "a" / "b"
    deep.mkdir(parents=True)
    (other / ".git").mkdir()

    places = [where(user.connect())["cwd"], where(user.connect(cwd=deep))["cwd"]]

    assert places == [str(user.project), str(other)]


def test_a_command_is_found_in_the_path_of_its_client(user: User, tmp_path: Path) -> None:
    for name in ("one", "two"):
        script = tmp_path / name / "my-server"
        script.parent.mkdir()
        arguments = " ".join(user.world()["args"])
        script.write_text(f"#!/bin/sh\nMARK={name} exec {sys.executable} {arguments}\n")
        script.chmod(0o755)
    user.configure(world={"command": "my-server"})
    path = user.environ["PATH"]

    marks = [where(user.connect(PATH=f"{tmp_path / n}:{path}"))["mark"] for n in ("one", "two")]

    assert marks == ["one", "two"]


def test_equal_servers_are_shared_among_different_configurations(user: User) -> None:
    write_config(user.project / "more.json", {"world": user.world(), "moon": user.world()})

    first = where(user.connect())
    second = where(user.connect("--config", "more.json"))

    assert first["pid"] == second["pid"]


def test_a_server_of_session_scope_is_each_clients_own(user: User) -> None:
    user.settings('[servers.world]\nscope = "session"\n')
    one, two = user.connect(), user.connect()

    assert where(one)["pid"] != where(two)["pid"]
    assert where(one)["pid"] == where(one)["pid"]
    gone = where(one)["pid"]
    one.close()
    wait_until(lambda: not is_alive(gone), "its own server ends with it")
    assert is_alive(where(two)["pid"])


def test_a_project_file_waits_for_trust_and_then_serves_that_project_only(
    user: User, tmp_path: Path
) -> None:
    write_config(user.project / ".mcp.json", {"ours": user.world()})
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)

    before = user.connect().run("import tools\nprint(tools.servers())")
    user.toolfold("trust")
    after = user.connect()

    assert "toolfold trust" in before
    assert where(after, "ours")["cwd"] == str(user.project)
    assert "ours" not in user.connect(cwd=other).run("import tools\nprint(tools.servers())")


def test_an_older_daemon_finishes_its_runs_and_is_replaced(user: User, tmp_path: Path) -> None:
    go = tmp_path / "go"
    old = subprocess.Popen(toolfold_command("daemon", version="0.0.9"), env=user.environ)
    wait_until(Path(DaemonHandle(user.environ).places.socket).exists, "the old daemon listens")
    early = user.connect(version="0.0.9")
    run = early.begin(f"import world\nworld.wait_for(path={str(go)!r})")
    wait_until(Path(f"{go}.waiting").exists, "a run is under way")

    late = user.connect()

    assert late.run("1 + 1") == "2"
    assert old.poll() is None
    go.touch()
    assert text_of(early.answer_to(run)) == "seen"
    assert old.wait(60) == 0
    assert early.run("2 + 2") == "4"
    status = user.status()
    assert status is not None
    assert (status["version"], len(status["clients"])) == (__version__, 2)


def test_a_loopback_port_serves_where_there_are_no_sockets(user: User) -> None:
    user.environ["TOOLFOLD_LOOPBACK"] = "1"
    peer = user.connect(era=LEGACY)
    peer.initialize()

    assert peer.run("import world\nworld.double(number=2)") == "4"
    places = DaemonHandle(user.environ).places
    port_file = Path(places.port_file)
    assert port_file.stat().st_mode & 0o777 == 0o600
    assert not Path(places.socket).exists()
    port_file.write_text(port_file.read_text().split()[0] + " wrong-token")
    assert json.loads(user.toolfold("status", "--json").stdout) == {"running": False}


def test_a_path_too_long_for_a_socket_is_no_obstacle(user: User, tmp_path: Path) -> None:
    home = tmp_path / ("long" * 30)
    (home / "config").mkdir(parents=True)
    user.home = home
    user.environ["TOOLFOLD_HOME"] = str(home)
    user.configure()

    peer = user.connect()

    assert peer.run("import world\nworld.double(number=2)") == "4"
    socket = Path(DaemonHandle(user.environ).places.socket)
    assert socket.exists()
    assert socket.stat().st_mode & 0o777 == 0o600
    assert socket.parent.stat().st_mode & 0o777 == 0o700
    assert user.toolfold("stop").returncode == 0
    assert not socket.exists()


def test_status_stop_and_logs_tell_what_is_going_on(user: User) -> None:
    assert "not running" in user.toolfold("status").stdout
    peer = user.connect()
    where(peer)

    said = user.toolfold("status").stdout

    assert f"process {peer.process.pid} in {user.project}" in said
    assert "world: online" in said
    assert "started" in user.toolfold("logs").stdout
    assert "has ended" in user.toolfold("stop").stdout
    assert not user.daemons
    assert peer.run("1 + 1") == "2"


def test_a_daemon_that_is_just_starting_can_be_stopped(user: User) -> None:
    peer = user.connect()
    peer.ask("tools/list")  # which a relay answers by itself while the daemon starts
    peer.close()

    said = user.toolfold("stop")

    assert "has ended" in said.stdout
    assert not user.daemons


def test_a_stop_waits_for_runs_and_now_does_not(user: User, tmp_path: Path) -> None:
    for now in (False, True):
        peer = user.connect()
        go = tmp_path / f"go-{now}"
        run = peer.begin(f"import world\nworld.wait_for(path={str(go)!r})")
        wait_until(Path(f"{go}.waiting").exists, "the run waits")
        stop = subprocess.Popen(
            [python(), "-m", "toolfold", "stop", *(["--now"] if now else [])],
            env=user.environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert stop.stderr is not None
        if not now:
            assert "Waiting for 1 request" in stop.stderr.readline()
            go.touch()
        answer = peer.answer_to(run)
        assert stop.wait(60) == 0
        stop.stderr.close()
        text = text_of(answer)
        assert ("The run was ended with the daemon" in text) if now else (text == "seen")


def test_serve_takes_the_daemons_place_and_relays_find_it(user: User) -> None:
    peer = user.connect()
    before = where(peer)
    background = user.daemon()

    command = serve_command(user.home / "config" / "mcp.json", interpreter=sys.executable)
    with (
        serving(command, home=user.home) as first,
        serving(command, home=user.home) as second,
    ):
        again = where(peer)
        status = user.status()
        assert first.url != second.url

        assert status is not None
        assert (status["pid"], status["foreground"]) == (first.process.pid, True)
        assert not is_alive(background)
        assert again["pid"] != before["pid"]
        assert user.toolfold("stop").returncode == 0
        assert first.process.wait(30) == 0
        assert second.process.poll() is None
    assert peer.run("1 + 1") == "2"


def test_a_newer_daemon_serves_an_older_client_and_doctor_names_it(user: User) -> None:
    new = subprocess.Popen(toolfold_command("daemon", version="9.9.9"), env=user.environ)
    wait_until(Path(DaemonHandle(user.environ).places.socket).exists, "the new daemon listens")
    client = user.connect()  # of this version, which is the older one here
    assert client.run("x = 20\nx + 1") == "21"

    seen_by_new = subprocess.run(
        toolfold_command("doctor", version="9.9.9"),
        env=user.environ, cwd=user.project, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    seen_by_old = user.toolfold("doctor")

    [line] = [each for each in seen_by_new.stdout.splitlines() if "versions:" in each]
    assert f"process {client.process.pid} in {user.project} is {__version__}" in line
    assert "fix: Restart that client. It is served meanwhile." in seen_by_new.stdout
    older = [each for each in seen_by_old.stdout.splitlines() if "versions:" in each]
    assert len(older) == 2  # the client, and the terminal that asks
    assert all(each.endswith(f" is {__version__}") for each in older)
    assert (seen_by_new.returncode, seen_by_old.returncode) == (1, 1)
    assert client.run("x + 2") == "22"  # and is served as before
    assert new.poll() is None
    new.terminate()
    new.wait(60)
