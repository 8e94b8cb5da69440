"""What the commands about runs share: reading the journal, and showing texts of it."""

import json
import sqlite3
from collections.abc import Callable
from typing import Final, TypeVar

from toolfold.config.config import load_config
from toolfold.config.faults import shown
from toolfold.config.processes import is_alive_since
from toolfold.journal import runsdb
from toolfold.journal.runs import Run, Text

_Found = TypeVar("_Found")

_SHOWN_LINE_CHARS: Final = 2_000


def read_journal(read: Callable[[sqlite3.Connection], _Found]) -> _Found | None:
    """Ask the journal; None if there is none."""
    return runsdb.read_journal(load_config().directories.data / "runs.db", read)


def state_of(run: Run) -> str:
    """Return how it ended, or that it did not."""
    if run.ending:
        return run.ending.failure or "ok"
    return "running" if is_alive_since(run.process, run.began_at) else "lost"


def print_text(name: str, text: Text) -> None:
    """Print what is kept of a text, with its name."""
    print(f"{name}:")
    for line in text.head.splitlines():
        print(f"    {shown(line, max_chars=_SHOWN_LINE_CHARS)}")
    if not text.is_whole:
        print(f"    ... {text.size_bytes:,} bytes in all; the rest is not kept.")


def print_json(value: object) -> None:
    """Print a value for programs."""
    print(json.dumps(value, ensure_ascii=False, indent=2))
