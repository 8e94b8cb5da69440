"""Files that change while clients are connected: nothing needs a restart."""

import json
import random
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from relay.conftest import User
from relay.peer import LEGACY, MODERN, Peer, kill, wait_until
from support import test_server

pytestmark = pytest.mark.timeout(180)

SERVERS = "import tools; print(tools.servers())"


@pytest.mark.parametrize("era", [MODERN, LEGACY])
def test_servers_come_and_go_and_variables_stay(user: User, era: str) -> None:
    peer = user.connect(era=era)
    if era == LEGACY:
        peer.initialize()
    peer.run("kept = 41")
    assert "second:" not in peer.run(SERVERS)

    user.configure(world=user.world(), second=user.world())
    wait_until(lambda: "second:" in peer.run(SERVERS), "the added server is there")
    assert peer.run("kept + 1") == "42"

    user.configure(world=user.world())
    wait_until(lambda: "second:" not in peer.run(SERVERS), "the removed server is gone")


def test_a_broken_edit_keeps_the_last_good_state(user: User) -> None:
    peer = user.connect()
    assert "world:" in peer.run(SERVERS)
    (user.home / "config" / "mcp.json").write_text('{"mcpServers": {')
    assert "world:" in peer.run("import time; time.sleep(1)\n" + SERVERS)
    assert "world:" in peer.run(SERVERS)

    user.configure(other=user.world())
    wait_until(lambda: "other:" in peer.run(SERVERS), "the mended file counts")
    assert "world:" not in peer.run(SERVERS)


def test_a_run_under_way_keeps_what_it_began_with(user: User) -> None:
    peer = user.connect()
    peer.run("1")
    code = "import time, world; time.sleep(2); print('still', len(str(world.where())))"
    under_way = peer.begin(code)
    user.configure(other=user.world())
    assert peer.answer_to(under_way)["result"]["content"][0]["text"].startswith("still ")
    wait_until(lambda: "other:" in peer.run(SERVERS), "the next run has the new server")


@pytest.mark.parametrize(
    ("name", "broken"), [("mcp.json", '{"mcpServers": {'), ("config.toml", "workers = ")]
)
def test_a_broken_edit_is_told_once_and_found_by_doctor(user: User, name: str, broken: str) -> None:
    peer = user.connect()
    assert "world:" in peer.run(SERVERS)
    (user.home / "config" / name).write_text(broken)
    told: list[str] = []

    def is_told() -> bool:
        told.append(peer.run(SERVERS))
        return "is not in force" in told[-1]

    wait_until(is_told, "the next reply says that the edit does not count")
    assert "world:" in told[-1]
    assert name in told[-1]
    assert "is not in force" not in peer.run(SERVERS)
    status = user.status()
    assert status is not None
    [edit] = status["unusable"]
    assert name in edit
    if name == "config.toml":  # doctor says no more where there are no settings
        done = user.toolfold("doctor", "--json")
        checks = json.loads(done.stdout)["checks"]
        assert [each["name"] for each in checks] == ["files", "settings"]
        assert done.returncode == 1


def listed(peer: Peer) -> str:
    tools: str = peer.ask("tools/list")["result"]["tools"][0]["description"]
    return tools


def next_notification(peer: Peer) -> dict[str, Any]:
    return peer.notifications.pop(0) if peer.notifications else peer.receive()


def test_a_changed_definition_is_announced_to_older_clients(user: User) -> None:
    peer = user.connect(era=LEGACY)
    peer.initialize()
    peer.run("1")
    assert "second" not in listed(peer)
    user.configure(world=user.world(), second=user.world())
    while next_notification(peer)["method"] != "notifications/tools/list_changed":
        pass
    wait_until(lambda: "second" in listed(peer), "the new definition is listed")


def test_a_changed_definition_is_announced_to_clients_that_listen(user: User) -> None:
    peer = user.connect()
    peer.run("1")
    assert "second" not in listed(peer)
    listening = peer.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    assert next_notification(peer)["method"] == "notifications/subscriptions/acknowledged"
    user.configure(world=user.world(), second=user.world())
    told = next_notification(peer)
    assert told["method"] == "notifications/tools/list_changed"
    assert told["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": listening}
    assert "second" in listed(peer)


WATCHED = "toolfold://memos/memo://plain"


def updated(peer: Peer) -> dict[str, Any]:
    """Wait for the next word of a resource."""
    while (told := next_notification(peer))["method"] != "notifications/resources/updated":
        pass
    params: dict[str, Any] = told["params"]
    return params


@pytest.mark.parametrize("era", [MODERN, LEGACY])
def test_a_subscription_outlives_edits_and_the_daemon(user: User, era: str, tmp_path: Path) -> None:
    memos = test_server("curious", tmp_path / "log", "2025")
    user.configure(memos=memos)
    peer = user.connect(era=era)
    if era == LEGACY:
        peer.initialize()
        peer.ask("resources/subscribe", {"uri": WATCHED})
    else:
        peer.request(
            "subscriptions/listen", {"notifications": {"resourceSubscriptions": [WATCHED]}}
        )
        acknowledged = next_notification(peer)["params"]["notifications"]
        assert acknowledged == {"resourceSubscriptions": [WATCHED]}
    peer.run("memos.touch(uri='memo://plain')")
    assert updated(peer)["uri"] == WATCHED

    user.configure(memos=memos, world=user.world())
    assert updated(peer)["uri"] == WATCHED  # it may have changed meanwhile
    peer.run("memos.touch(uri='memo://plain')")
    assert updated(peer)["uri"] == WATCHED

    (tmp_path / "log").write_text("")
    kill(user.daemon())
    peer.run("1")
    wait_until(lambda: "watch memo://plain" in (tmp_path / "log").read_text(), "watched again")
    peer.run("memos.touch(uri='memo://plain')")
    assert updated(peer)["uri"] == WATCHED


SOAK = [pytest.mark.soak, pytest.mark.timeout(3000)]


@pytest.mark.parametrize("edits", [8, pytest.param(200, marks=SOAK)])
def test_random_edits_harm_no_run_and_leave_no_process(user: User, edits: int) -> None:
    peers = [user.connect(), user.connect()]
    load = Load(peers)
    load.start()
    edit_at_random(user, load, edits)
    user.configure(world=user.world(), last=user.world())
    load.stop()

    assert load.failures == []
    for peer in peers:
        wait_until(partial(has_servers, peer, {"world", "last"}), "the file counts")
    wait_until(lambda: len(user.servers) <= 2, "no server is left over")


class Load:
    """Runs that use one server, one after another, of several clients at once."""

    def __init__(self, peers: list[Peer]) -> None:
        self.runs = 0
        self.failures: list[str] = []
        self._is_over = threading.Event()
        self._peers = peers
        self._threads = [threading.Thread(target=self._keep_running, args=(p,)) for p in peers]

    def start(self) -> None:
        for peer in self._peers:
            peer.run("1")
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def has_run_since(self, runs: int) -> bool:
        return self.runs > runs or not any(thread.is_alive() for thread in self._threads)

    def _keep_running(self, peer: Peer) -> None:
        while not self._is_over.is_set():
            text = peer.run("import world; print('there', len(str(world.where())))")
            self.runs += 1
            if not text.startswith("there "):
                self.failures.append(text)


def edit_at_random(user: User, load: Load, edits: int) -> None:
    chance = random.Random(edits)
    path = user.home / "config" / "mcp.json"
    for _ in range(edits):
        runs = load.runs
        names = chance.sample(["one", "two", "three"], k=chance.randrange(3))
        others = {name: user.world(env={"TURN": str(chance.random())}) for name in names}
        user.configure(world=user.world(), **others)
        if chance.random() < 0.4:
            content = path.read_bytes()
            path.write_bytes(content[: chance.randrange(len(content))])
        wait_until(partial(load.has_run_since, runs), "runs go on")


def has_servers(peer: Peer, names: set[str]) -> bool:
    known = {line.partition(":")[0] for line in peer.run(SERVERS).splitlines()}
    return known & {"world", "one", "two", "three", "last"} == names
