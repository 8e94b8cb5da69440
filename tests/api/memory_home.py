"""A toolfold with a memory, and a daemon that is gone when the test is; scripts that use it."""

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from relay.conftest import User
from relay.peer import is_alive, kill, wait_until
from support import python

WAYS = ("daemon", "own")
"""How a script reaches memory: through the daemon, or into the store itself."""

PATIENCE_S = 50


class MemoryHome(User):
    """A user whose scripts remember."""

    def directory(self, name: str) -> Path:
        """Return a project of this name; it has notes of its own."""
        project = self.project.parent / name
        (project / ".git").mkdir(parents=True, exist_ok=True)
        return project

    def environ_for(self, way: str) -> dict[str, str]:
        return {**self.environ, "TOOLFOLD_NO_DAEMON": str(int(way == "own"))}

    def start(
        self, way: str, code: str, *arguments: str, cwd: Path | None = None
    ) -> "subprocess.Popen[str]":
        """Start a script in which every warning is an error."""
        return subprocess.Popen(
            [python(), "-W", "error", "-c", code, *arguments],
            env=self.environ_for(way),
            cwd=cwd or self.project,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def script(self, way: str, code: str, *arguments: str, cwd: Path | None = None) -> list[str]:
        """Run a script to its end and return the lines it prints; it may complain of nothing."""
        process = self.start(way, code, *arguments, cwd=cwd)
        output, errors = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, errors) == (0, ""), errors
        return output.splitlines()

    @property
    def database(self) -> Path:
        return self.home / "data" / "memory.db"

    def read(self, sql: str) -> list[Any]:
        """Read the file of the store, as no door of ours does."""
        with closing(sqlite3.connect(self.database)) as connection:
            return connection.execute(sql).fetchall()

    def kill_daemon(self) -> None:
        """Kill the daemon, and wait until its connections are closed: its last thread does that."""
        pid = self.daemon()
        kill(pid)
        threads = Path(f"/proc/{pid}/task")
        wait_until(lambda: not threads.exists() or len([*threads.iterdir()]) <= 1, "it is gone")

    def end_daemons(self) -> None:
        for pid in self.daemons:
            if is_alive(pid):
                kill(pid)

    def end_daemon_politely(self) -> None:
        assert self.toolfold("stop").returncode == 0
        wait_until(lambda: not self.daemons, "the daemon ends")


@contextmanager
def memory_home(root: Path) -> Iterator[MemoryHome]:
    """Have a toolfold at `root` for the length of this context."""
    home = MemoryHome(root)
    try:
        yield home
    finally:
        home.end_daemons()


def in_this_process(home: MemoryHome, way: str, cwd: Path, monkeypatch: Any) -> None:
    """Have `toolfold.api` of this very process use that memory."""
    for name in [*os.environ]:
        if name.startswith(("TOOLFOLD_", "XDG_")):
            monkeypatch.delenv(name)
    for name, value in home.environ_for(way).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(cwd)
