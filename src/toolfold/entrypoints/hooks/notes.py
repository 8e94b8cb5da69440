"""Which notes a conversation begins with, and how much of them fits. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from toolfold.memory.models import CompactMemory, ExplainedMemory

SESSION_TAG: Final = "session"
"""The tag of records of conversations."""

_MAX_SESSIONS: Final = 2

AnyNote = CompactMemory | ExplainedMemory


@dataclass(frozen=True, slots=True)
class NoteCandidates:
    """Notes from one source, best first, and how many of them come before others may have more."""

    notes: Sequence[AnyNote]
    share: int


def choose(sources: Sequence[NoteCandidates], *, most: int) -> list[AnyNote]:
    """Return the share of each source, then what else there is, each note once, if it holds."""
    chosen: dict[str, AnyNote] = {}
    said: set[str] = set()
    sessions = 0
    for note in _in_turn(sources):
        is_session = SESSION_TAG in note.tags
        if note.hash in chosen or note.preview in said or len(chosen) == most:
            continue
        if note.superseded:
            continue
        if is_session and sessions == _MAX_SESSIONS:
            continue
        sessions += is_session
        chosen[note.hash] = note
        said.add(note.preview)
    return list(chosen.values())


def _in_turn(sources: Sequence[NoteCandidates]) -> Iterator[AnyNote]:
    for source in sources:
        yield from source.notes[: source.share]
    for source in sources:
        yield from source.notes[source.share :]


def line(note: AnyNote) -> str:
    """Return a note in one line: its hash, by which it can be had whole, its day, its tags."""
    day = datetime.fromtimestamp(note.created).astimezone().date()
    tags = f" [{', '.join(note.tags)}]" if note.tags else ""
    return f"{note.hash} {day}{tags} {note.preview}"


def fitted(
    lines: Sequence[str],
    write: Callable[[Sequence[str]], str],
    most_tokens: int,
    count: Callable[[str], int],
) -> tuple[str, int]:
    """Return the text of as many lines as fit, and how many those are."""
    for taken in range(len(lines), 0, -1):
        text = write(lines[:taken])
        if count(text) <= most_tokens:
            return text, taken
    return "", 0
