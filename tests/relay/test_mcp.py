"""The relay as clients see it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from http_daemon import descendants
from relay.conftest import User
from relay.peer import (
    LEGACY,
    MODERN,
    Peer,
    is_alive,
    kill,
    processes_with,
    text_of,
    toolfold_command,
    wait_until,
)
from support import test_server

from toolfold.relay.daemon import DaemonHandle, take_lock

pytestmark = pytest.mark.timeout(180)

HEAVY = {
    "pathlib", "dataclasses", "tomllib", "argparse", "subprocess", "logging", "typing", "socket",
    "asyncio", "anyio", "mcp", "pydantic", "threading", "importlib.metadata",
}  # fmt: skip


@pytest.mark.parametrize("module", ["toolfold.relay.mcp", "toolfold.relay.terminal"])
def test_what_starts_quickly_imports_only_what_is_light(module: str) -> None:
    code = f"import sys, toolfold.__main__, {module}; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path[:0] = "
                              f"{[p for p in sys.path if p]!r}; {code}"],
                             capture_output=True, text=True, check=True).stdout.split()  # fmt: skip

    assert module in modules
    assert not HEAVY & set(modules)
    ours = {name for name in modules if name.startswith("toolfold")}
    assert {name for name in ours if not name.startswith("toolfold.relay")} == {
        "toolfold",
        "toolfold.__main__",
    }


@pytest.mark.parametrize("era", [MODERN, LEGACY])
def test_the_first_answers_do_not_wait_for_a_daemon(user: User, era: str) -> None:
    first = user.connect(era=era)
    greeting = first.initialize() if era == LEGACY else first.ask("server/discover")
    assert first.run("1 + 1") == "2"
    listed = first.ask("tools/list")
    manifests = user.home / "cache" / "manifests"
    wait_until(lambda: list(manifests.glob("*.json")), "the manifest is written")
    first.close()
    kill(user.daemon())
    held = _hold_lock(user)  # so that no daemon can start

    second = user.connect(era=era)
    again = second.initialize() if era == LEGACY else second.ask("server/discover")

    assert again == greeting
    assert second.ask("tools/list")["result"] == listed["result"]
    assert not user.daemons
    os.close(held)
    assert second.run("1 + 1") == "2"


@pytest.mark.parametrize("is_warm", [False, True])
def test_what_is_asked_before_the_input_ends_is_answered(user: User, *, is_warm: bool) -> None:
    user.configure()
    if is_warm:
        assert user.connect().run("1 + 1") == "2"
    about = {"name": "test", "version": "0"}
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": about}
    questions = [("initialize", params), ("tools/list", {})]
    lines = "".join(
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"
        for number, (method, params) in enumerate(questions)
    )

    for _ in range(5):
        shutil.rmtree(user.home / "cache" / "manifests", ignore_errors=True)
        done = subprocess.run(toolfold_command("mcp"), env=user.environ, cwd=user.project,
                              input=lines, capture_output=True, text=True, timeout=60)  # fmt: skip

        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert [answer["id"] for answer in answers if "result" in answer] == [0, 1]


def _hold_lock(user: User) -> int:
    """Take the daemon's lock. The kernel frees that of a killed one a moment after its death."""
    taken: list[int] = []

    def take() -> bool:
        lock = take_lock(DaemonHandle(user.environ).places.lock)
        taken.extend([] if lock is None else [lock])
        return lock is not None

    wait_until(take, "the lock is free")
    return taken[0]


def test_a_client_that_leaves_at_once_leaves_a_manifest_for_the_next(user: User) -> None:
    peer = user.connect()
    assert peer.run("1 + 1") == "2"
    peer.kill()

    manifests = user.home / "cache" / "manifests"
    wait_until(lambda: list(manifests.glob("*.json")), "the manifest is written")


def test_an_older_protocol_is_answered_in_kind(user: User) -> None:
    user.connect().ask("tools/list")
    manifests = user.home / "cache" / "manifests"
    wait_until(lambda: list(manifests.glob("*.json")), "the manifest is written")

    old = user.connect(era="2024-11-05")

    assert old.initialize()["result"]["protocolVersion"] == "2024-11-05"
    assert old.run("1 + 1") == "2"


def test_a_changed_configuration_is_noticed(user: User) -> None:
    user.connect().ask("tools/list")
    manifests = user.home / "cache" / "manifests"
    wait_until(lambda: list(manifests.glob("*.json")), "the manifest is written")
    user.configure(world=user.world(), moon=user.world())

    peer = user.connect(era=LEGACY)
    peer.initialize()

    assert "moon, world" in json.dumps(_tools_in_the_end(peer, "moon, world"))


def test_a_client_where_nothing_is_known_is_answered_before_there_is_a_daemon(user: User) -> None:
    user.environ["PYTHONPATH"] = str(_slow_start(user.home))  # so that no daemon is in time
    peer = user.connect(era=LEGACY)

    greeting = peer.initialize()
    first = peer.ask("tools/list")

    assert greeting["result"]["capabilities"]["tools"] == {"listChanged": True}
    assert "MCP servers are modules, already imported: see tools.servers()" in json.dumps(first)
    assert not Path(DaemonHandle(user.environ).places.socket).exists()
    (user.home / "go").touch()
    servers = "MCP servers are modules, already imported: world"
    assert servers in json.dumps(_tools_in_the_end(peer, servers))
    assert peer.run("import world\nworld.double(number=4)") == "8"


def _slow_start(home: Path) -> Path:
    """Return a place for modules whose `anyio` waits for a file `go` before it is the real one."""
    place = home / "modules"
    place.mkdir()
    (place / "anyio.py").write_text(
        "import pathlib, sys, time\n"
        f"while not pathlib.Path({str(home / 'go')!r}).exists(): time.sleep(0.01)\n"
        f"sys.path.remove({str(place)!r})\n"
        "del sys.modules['anyio']\n"
        "import anyio\n"
    )
    return place


def _tools_in_the_end(peer: Peer, wanted: str) -> dict[str, Any]:
    """Return the tools with these words, asked for again as the relay says that they changed."""
    request = peer.request("tools/list")
    while True:
        listed = peer.answer_to(request)
        if wanted in json.dumps(listed):
            return listed
        while "list_changed" not in (peer.notifications or [peer.receive()])[-1]["method"]:
            peer.notifications.append(peer.receive())
        peer.notifications.clear()
        request = peer.request("tools/list")


@pytest.mark.parametrize("era", [MODERN, LEGACY])
def test_calls_cancellation_and_progress_pass_through(user: User, tmp_path: Path, era: str) -> None:
    peer = user.connect(era=era)
    if era == LEGACY:
        peer.initialize()
    never = tmp_path / "never"

    stuck = peer.begin(f"import world\nworld.wait_for(path={str(never)!r})")
    wait_until(Path(f"{never}.waiting").exists, "the run waits")
    peer.send({"method": "notifications/cancelled", "params": {"requestId": stuck}})
    wait_until(lambda: (user.status() or {})["clients"][0]["in_flight"] == 0, "it is cancelled")
    never.touch()
    told = peer.begin("import world\nworld.double(number=21)", progressToken="t")

    while (answer := peer.receive()).get("id") != told:
        peer.notifications.append(answer)
    assert text_of(answer) == "42"
    progress = [m for m in peer.notifications if m.get("method") == "notifications/progress"]
    assert [m["params"]["progressToken"] for m in progress] == ["t"]
    assert "world.double" in progress[0]["params"]["message"]


def test_ids_come_back_as_they_were(user: User) -> None:
    peer = user.connect()
    for request_id in (7, "7", "seven", 0):
        params = {"name": "execute_code", "arguments": {"code": f"{request_id!r}"}}
        peer.request("tools/call", params, id=request_id)

    answers = [peer.receive() for _ in range(4)]

    assert sorted((repr(a["id"]), text_of(a)) for a in answers) == [
        ("'7'", "7"), ("'seven'", "seven"), ("0", "0"), ("7", "7"),
    ]  # fmt: skip


def test_what_is_not_json_is_said_so_and_harms_nothing(user: User) -> None:
    peer = user.connect()
    assert peer.process.stdin is not None
    peer.process.stdin.write(b"\n   \nhello\n[1, 2]\n")
    peer.process.stdin.flush()

    assert [peer.receive()["error"]["code"] for _ in range(2)] == [-32700, -32700]
    assert peer.run("1 + 1") == "2"


def test_twenty_relays_at_once_share_one_daemon_and_one_server(user: User) -> None:
    peers = [user.connect() for _ in range(20)]
    asked = [
        peer.begin(f"import world\n[world.where()['pid'], {n}]") for n, peer in enumerate(peers)
    ]

    answers = [json.loads(text_of(p.answer_to(i))) for p, i in zip(peers, asked, strict=True)]

    assert [number for _, number in answers] == list(range(20))
    assert {pid for pid, _ in answers} == user.servers
    assert len(user.servers) == len(user.daemons) == 1


def test_a_daemon_killed_while_idle_is_not_missed(user: User) -> None:
    peer = user.connect(era=LEGACY)
    peer.initialize()
    assert peer.run("import world\nworld.double(number=1)") == "2"

    kill(user.daemon())

    assert peer.run("import world\nworld.double(number=2)") == "4"


def test_a_daemon_killed_in_a_run_is_reported_with_what_was_done(
    user: User, tmp_path: Path
) -> None:
    peer = user.connect()
    done, never = tmp_path / "done", tmp_path / "never"
    run = peer.begin(
        "import world\n"
        f"for _ in range(3): world.append(path={str(done)!r})\n"
        "world.double(number=1)\n"
        f"world.wait_for(path={str(never)!r})"
    )
    wait_until(Path(f"{never}.waiting").exists, "four calls are done and one is under way")
    other = peer.begin("while True: pass")
    wait_until(lambda: len(_runs(user)) == 2, "the other run has begun")

    kill(user.daemon())
    answers = {message["id"]: message for message in (peer.receive(), peer.receive())}

    text = text_of(answers[run])
    assert answers[run]["result"]["isError"] is True
    assert "world.append 3" in text
    assert "world.double 1" in text
    assert "No tool had been called" in text_of(answers[other])
    assert peer.run("import world\nworld.double(number=4)") == "8"
    assert done.read_text() == "xxx"
    wait_until(lambda: len(user.servers) == 1, "the server that was stuck is ended")


def _runs(user: User) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(user.toolfold("runs", "--json").stdout)
    return listed


def test_a_client_that_leaves_takes_along_what_only_it_needed(user: User, tmp_path: Path) -> None:
    user.configure(world=user.world(env={"MARK": "${MARK}"}))
    for leave in ("close", "kill"):
        staying, leaving = user.connect(MARK="stays"), user.connect(MARK="leaves")
        here = json.loads(staying.run("import world\nworld.where()"))["pid"]
        there = json.loads(leaving.run("import world\nworld.where()"))["pid"]
        leaving.begin(f"import world\nworld.wait_for(path={str(tmp_path / leave)!r})")
        assert user.servers == {here, there}

        getattr(leaving, leave)()

        wait_until(lambda gone=there: not is_alive(gone), f"{leave}: its server ends")
        assert user.servers == {here}
        assert staying.run("import world\nworld.double(number=3)") == "6"
        staying.close()


def test_a_daemon_without_clients_ends_and_leaves_nothing(user: User) -> None:
    user.settings("daemon_idle_s = 1\nlinger_s = 0.1\n")
    peers = [user.connect() for _ in range(3)]
    for peer in peers:
        assert peer.run("import world\nworld.double(number=2)") == "4"
    daemon = user.daemon()
    family = descendants(daemon) | {daemon}
    places = DaemonHandle(user.environ).places
    assert Path(places.socket).exists()

    for peer in peers:
        peer.close()

    wait_until(lambda: not any(map(is_alive, family)), "every process is gone")
    assert not processes_with(str(user.home))
    assert not Path(places.socket).exists()
    os.close(_hold_lock(user))


def test_two_hundred_calls_of_twenty_clients_are_not_mixed_up(user: User) -> None:
    peers = [user.connect() for _ in range(20)]
    asked = [
        (
            peer,
            peer.begin(f"import world\n[int(world.double(number={client * 100 + n})), {client}]"),
        )
        for n in range(10)
        for client, peer in enumerate(peers)
    ]
    wanted: dict[tuple[int, Any], list[int]] = {
        (id(peer), request): [2 * (client * 100 + n), client]
        for (peer, request), (n, client) in zip(
            asked, [(n, c) for n in range(10) for c in range(20)], strict=True
        )
    }

    answers = {}
    for peer in peers:
        for _ in range(10):
            message = peer.receive()
            answers[id(peer), message["id"]] = json.loads(text_of(message))

    assert answers == wanted
    assert _resident_mb(user.daemon()) < 300


def _resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024


def test_a_relay_that_finds_no_daemon_says_why(user: User, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "anyio.py").write_text("raise RuntimeError('anyio is broken on purpose')\n")

    peer = user.connect(PYTHONPATH=str(broken))

    text = peer.run("1 + 1")
    assert "daemon ended as soon as it was started" in text
    assert "anyio is broken on purpose" in text


def test_a_configuration_that_cannot_be_read_is_said_and_can_be_mended(user: User) -> None:
    user.settings("workers = 'many'\n")
    peer = user.connect()

    assert "config.toml" in peer.run("1 + 1")
    user.settings("workers = 2\n")
    assert peer.run("1 + 1") == "2"


def test_options_that_the_relay_does_not_know_are_refused(user: User) -> None:
    said = user.toolfold("mcp", "--bogus")

    assert said.returncode == 2
    assert "--bogus" in said.stderr


def test_exactly_the_servers_of_a_named_file_are_served(user: User) -> None:
    (user.project / "other.json").write_text(
        json.dumps({"mcpServers": {"alone": test_server("world", user.home)}})
    )

    peer = user.connect("--config", "other.json", "--set", "limits.calls=1")

    assert peer.run("import alone\nalone.double(number=5)") == "10"
    assert "more than 1 tool call" in peer.run(
        "import alone\nfor n in range(2): alone.double(number=n)"
    )
