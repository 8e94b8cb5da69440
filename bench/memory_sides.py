"""The memories that are compared: where each lives, how it is filled, how it is worked with.

Every side offers the same Python functions, `search`, `store` and `health`, so the same workers
time all of them, each in an environment and with notes of its own.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from notes import notes, questions
from pairing import TURNS_A_START, WORKERS, Part
from stage import Unavailable

# The service's check for near-duplicates reads the notes of the last 24 hours; ours are older.
_NEWEST_S = 2 * 86_400
_OLDEST_S = 365 * 86_400
_TEXTS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A memory that can be measured."""

    title: str
    python: Path
    module: str
    """Which has the functions."""
    server: list[str]
    """The command of its MCP server."""
    installed: tuple[Path, ...]
    """What had to be installed for it."""
    env_at: Callable[[Path], dict[str, str]]
    """Returns the environment in which it keeps its notes in a directory."""
    fill: Callable[[Path, int], None]
    """Puts so many notes into a directory."""
    begin: Callable[[Path], None] = lambda _: None
    """Makes warm what serves the notes of a directory, if something does."""
    end: Callable[[Path], None] = lambda _: None
    """Ends that."""
    served_mb: Callable[[Path], float] | None = None
    """Returns how much memory that has."""

    def warm(self, work: str, home: Path) -> Part:
        """Return a worker that searches, stores or asks for health with every turn."""
        texts = list(questions(_TEXTS) if work == "search" else notes(_TEXTS, seed="fresh"))
        spec = {"module": self.module, "work": work, "texts": texts, "turns": TURNS_A_START}
        return Part(
            script="memory_api.py", spec=spec, python=str(self.python), env=self.env_at(home)
        )

    def fresh(self, home: Path) -> Part:
        """Return a worker that starts a process with every turn, which searches once."""
        spec = {"command": self.first(), "texts": list(questions(_TEXTS))}
        return Part(script="fresh.py", spec=spec, env=self.env_at(home))

    def report(self, home: Path, *texts: str) -> dict[str, Any]:
        """Return what a fresh process says of itself that searches once; see `memory_first.py`."""
        command = [*self.first(), *texts]
        done = subprocess.run(
            command, env=self.env_at(home), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{self.title} does not answer:\n{done.stderr[-3_000:]}")
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def first(self) -> list[str]:
        """Return the command that searches once, but for the query."""
        return [str(self.python), str(WORKERS / "memory_first.py"), self.module]


def memory_service(place: Path) -> list[Side]:
    """Return mcp-memory-service, with its tokenizer as published and without the padding.

    Raises:
        Unavailable: It is not installed.
    """
    python = place / "bin" / "python"
    if not python.exists() or not (place / "homes").is_dir():
        raise Unavailable("it is not installed; `make bench-memory` tries to")
    names = {"padded": "mcp-memory-service", "unpadded": "mcp-memory-service, texts not padded"}
    return [_service(place, home, title) for home, title in names.items()]


def _service(place: Path, home: str, title: str) -> Side:
    python = place / "bin" / "python"

    def env_at(directory: Path) -> dict[str, str]:
        return _service_env(place / "homes" / home, directory)

    def fill(directory: Path, size: int) -> None:
        # The vectors are the same without padding, and there much sooner.
        env = _service_env(place / "homes" / "unpadded", directory)
        told = json.dumps(dated(size))
        command = [python, WORKERS / "memory_service_fill.py"]
        done = subprocess.run(command, input=told, env=env, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"mcp-memory-service cannot be filled:\n{done.stderr[-3_000:]}")

    return Side(
        title=title,
        python=python,
        module="mcp_memory_service.api",
        server=[str(python), "-m", "mcp_memory_service.server"],
        installed=(place / "lib", place / "homes" / home),
        env_at=env_at,
        fill=fill,
    )


def _service_env(home: Path, directory: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "MCP_MEMORY_STORAGE_BACKEND": "sqlite_vec",
        "MCP_MEMORY_ONNX_ALLOW_DOWNLOAD": "0",
        "HF_HUB_OFFLINE": "1",
        "MCP_MEMORY_BASE_DIR": str(directory),
        "MCP_MEMORY_SQLITE_PATH": str(directory / "notes.db"),
    }


def dated(size: int) -> list[tuple[str, float]]:
    """Return so many notes with the times of their making, spread over a year."""
    first, step_s = time.time() - _OLDEST_S, (_OLDEST_S - _NEWEST_S) / size
    return [(text, first + number * step_s) for number, text in enumerate(notes(size))]


def filled(side: Side, kept: Path, size: int, directory: Path) -> Path:
    """Return a fresh copy, in `directory`, of a memory with so many notes that is made once.

    What serves it is warm; whoever asks for it has it ended.
    """
    place = kept / f"{side.module}-{size}"
    if not place.is_dir():
        print(f"{side.title}: storing {size:,} notes, once", flush=True)
        partial = place.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        side.fill(partial, size)
        partial.rename(place)
    home = Path(shutil.copytree(place, directory / side.title))
    side.begin(home)
    return home
