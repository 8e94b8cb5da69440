"""A user of toolfold with a home, a project and a daemon that is gone when the test is."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from relay.peer import (
    MODERN,
    Peer,
    is_alive,
    kill,
    processes_with,
    toolfold_command,
    wait_until,
)
from support import test_server, write_config

from toolfold import __version__


class User:
    """Starts relays, and sees what runs."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.project = root / "project"
        (self.project / ".toolfold").mkdir(parents=True)
        (self.home / "config").mkdir(parents=True)
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "TOOLFOLD_HOME": str(self.home),
            "TOOLFOLD_LINGER_S": "0.2",
        }
        self.peers: list[Peer] = []

    def configure(self, **servers: Any) -> None:
        """Write the user's servers; by default one that tells where it runs."""
        write_config(self.home / "config" / "mcp.json", servers or {"world": self.world()})

    def world(self, **more: Any) -> dict[str, Any]:
        """Return the entry of a server whose command line holds our home."""
        return {**test_server("world", self.home), **more}

    def settings(self, text: str) -> None:
        (self.home / "config" / "config.toml").write_text(text)

    def connect(
        self,
        *arguments: str,
        era: str = MODERN,
        cwd: Path | None = None,
        version: str = __version__,
        **environ: str,
    ) -> Peer:
        environ = {**self.environ, **environ}
        peer = Peer(environ, cwd or self.project, *arguments, era=era, version=version)
        self.peers.append(peer)
        return peer

    def toolfold(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            toolfold_command(*arguments),
            env=self.environ,
            cwd=self.project,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def status(self) -> dict[str, Any] | None:
        found: dict[str, Any] = json.loads(self.toolfold("status", "--json").stdout)
        return found if found["running"] else None

    @property
    def daemons(self) -> set[int]:
        """Not what a daemon is about to start: until then it looks like the daemon itself."""
        found = {pid for pid in processes_with(str(self.home)) if _is_daemon(pid)}
        return {pid for pid in found if _parent(pid) not in found}

    @property
    def servers(self) -> set[int]:
        """The processes of `world.py`."""
        return {pid for pid in processes_with(str(self.home)) if "world.py" in _command(pid)}

    def daemon(self) -> int:
        (pid,) = self.daemons
        return pid


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def _parent(pid: int) -> int | None:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(status.rpartition(")")[2].split()[1])


def _is_daemon(pid: int) -> bool:
    return "toolfold\0daemon" in _command(pid)


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    with using(tmp_path) as user:
        yield user


@pytest.fixture
def near_user() -> Iterator[User]:
    """One whose socket is in a directory of its own: not in that of all whose paths are long."""
    with TemporaryDirectory(prefix="near-") as root, using(Path(root)) as user:
        yield user


@contextmanager
def using(root: Path) -> Iterator[User]:
    user = User(root)
    user.configure()
    yield user
    for peer in user.peers:
        if peer.process.poll() is None:
            peer.kill()
        for stream in (peer.process.stdin, peer.process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
    for pid in user.daemons:
        if is_alive(pid):
            with suppress(ProcessLookupError):
                kill(pid)
    wait_until(lambda: not user.servers, "the servers of a killed daemon end")
