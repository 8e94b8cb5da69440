"""A daemon that is killed again and again, under clients that go on working."""

import random
import re
import threading
import time
from pathlib import Path

import pytest
from relay.conftest import User
from relay.peer import LEGACY, MODERN, Peer, kill, text_of, wait_until

from toolfold.relay.daemon import DaemonHandle

CLIENTS = 5
CALLS = 4
AFTERWARDS_S = 60.0
CODE = """
import world
for _ in range({calls}):
    world.append(path={path!r})
{number}
"""


class Worker(threading.Thread):
    """A client that counts what it is told was done."""

    def __init__(self, peer: Peer, path: Path, until: float) -> None:
        super().__init__()
        self._peer = peer
        self._path = path
        self._until = until
        self.certain = 0
        self.lost = 0
        self.finished = 0
        self.strange: list[str] = []

    def run(self) -> None:
        number = 0
        # On a slow machine nothing may come to its end before the kills do; then it must.
        while time.monotonic() < self._until + (0 if self.finished else AFTERWARDS_S):
            number += 1
            code = CODE.format(calls=CALLS, path=str(self._path), number=number)
            self._judge(text_of(self._peer.answer_to(self._peer.begin(code))), number)

    def _judge(self, text: str, number: int) -> None:
        if text == str(number):
            self.finished += 1
            self.certain += CALLS
        elif "daemon ended, and with it this run" in text:
            self.lost += 1
            done = re.search(r"world\.append (\d+)", text)
            self.certain += int(done[1]) if done else 0
        elif "its outcome is unknown" in text:  # taken, and killed before it began
            self.lost += 1
        else:
            self.strange.append(text)


def chaos(user: User, seconds: float) -> None:
    """Every call is answered; what is said to be done was done, and nothing was done twice."""
    rng = random.Random(7)
    until = time.monotonic() + seconds
    workers = []
    for client in range(CLIENTS):
        peer = user.connect(era=LEGACY if client % 2 else MODERN)
        if client % 2:
            peer.initialize()
        workers.append(Worker(peer, user.home / f"done-{client}", until))
    for worker in workers:
        worker.start()
    kills = 0
    while time.monotonic() < until:
        wait_until(lambda: _listens(user), "a daemon listens")
        time.sleep(rng.uniform(0.0, 3.0))  # a kill at any moment
        for pid in user.daemons:
            kill(pid)
            kills += 1
    for worker in workers:
        worker.join()

    assert kills >= 1
    for client, worker in enumerate(workers):
        path = user.home / f"done-{client}"
        done = len(path.read_text()) if path.exists() else 0
        assert worker.strange == []
        assert worker.certain <= done <= worker.certain + worker.lost, (client, vars(worker))
        assert worker.finished > 0


def _listens(user: User) -> bool:
    found = DaemonHandle(user.environ).connect()
    if found is not None:
        found[0].close()
    return found is not None


@pytest.mark.timeout(180)
def test_clients_survive_a_daemon_that_is_killed_at_any_moment(user: User) -> None:
    chaos(user, 12)


@pytest.mark.soak
def test_clients_survive_two_minutes_of_kills(user: User) -> None:
    chaos(user, 120)
