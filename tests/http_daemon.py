"""Run what serves HTTP as a process of its own."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support import python


@dataclass(frozen=True)
class Serving:
    """A process that serves MCP at `url`."""

    process: subprocess.Popen[str]
    url: str

    @property
    def root(self) -> str:
        return self.url.removesuffix("/mcp")

    def children(self) -> set[int]:
        """Return the processes that it has started and that still run, and theirs."""
        return descendants(self.process.pid)


@contextmanager
def serving(command: list[str], *, home: Path) -> Iterator[Serving]:
    """Start `command`, which prints its address when it is ready; end it afterwards."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / "stderr").open("w") as stderr:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={"PATH": os.environ["PATH"], "HOME": str(home), "TOOLFOLD_HOME": str(home)},
        )
    with process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            assert "http://" in line, (home / "stderr").read_text()
            yield Serving(process, line.split()[-1])
        finally:
            process.terminate()
            process.wait(timeout=60)


def serve_command(config: Path, *arguments: str, interpreter: str = "") -> list[str]:
    """Return the command of `toolfold serve` on a free port."""
    program = [interpreter or python(), "-m", "toolfold", "serve", "--port", "0"]
    return [*program, "--config", str(config), *arguments]


def descendants(pid: int) -> set[int]:
    """Return the processes below `pid` in the tree of processes."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields[0] != "Z":
            parents[int(stat.parent.name)] = int(fields[1])
    found: set[int] = set()
    grown = {child for child, parent in parents.items() if parent == pid}
    while grown - found:
        found |= grown
        grown = {child for child, parent in parents.items() if parent in found}
    return found
