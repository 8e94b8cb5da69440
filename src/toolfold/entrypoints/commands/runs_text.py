"""What the commands about runs share: reading the journal, and showing texts of it."""

from collections.abc import Callable
from typing import Final, TypeVar

from toolfold.config.config import load_config
from toolfold.entrypoints.screen import Cell, print_line
from toolfold.errors import shown
from toolfold.journal import reader
from toolfold.journal.reader import JournalReader
from toolfold.journal.runs import Run, State, Text, state_of

_Found = TypeVar("_Found")

_SHOWN_LINE_CHARS: Final = 2_000
_STYLES: Final[dict[State, str]] = {
    "running": "name",
    "waiting": "warn",
    "done": "good",
    "failed": "bad",
    "invalid": "bad",
    "denied": "bad",
    "cancelled": "dim",
    "lost": "bad",
}


def read_journal(read: Callable[[JournalReader], _Found]) -> _Found | None:
    """Ask the journal; None if there is none."""
    return reader.read_journal(load_config().directories.data / "runs.db", read)


def state_cell(run: Run) -> Cell:
    """Return the state of a run in its colour."""
    state = state_of(run)
    return Cell(state, _STYLES[state])


def print_text(name: str, text: Text) -> None:
    """Print what is kept of a text, with its name."""
    print_line(Cell(f"{name}:", "strong"))
    for line in text.head.splitlines():
        print(f"    {shown(line, max_chars=_SHOWN_LINE_CHARS)}")
    if not text.is_whole:
        print(f"    ... {text.size_bytes:,} bytes in all; the rest is not kept.")
