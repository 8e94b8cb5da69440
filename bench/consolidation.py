"""Consolidate the LoCoMo conversations, and hold what search finds after against before.

Each turn is a note: once as a part of its session, as `bench/locomo.py` has it, and twice as a note
of its own, which may be superseded too. Once that is 400 days after the last turn, the evidence of
every other question has just been read, and all else has faded. Fails where the evidence is found
less well than before, where a second consolidation finds anything, or where undoing does not bring
back every row.
"""

import argparse
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import locomo
import numpy as np
from discovery import DATA, DEPTH, Remembered, interval
from numpy.typing import NDArray
from targets import limit

from toolfold.embedding import BuiltinEmbedder
from toolfold.memory.consolidation.models import Consolidated, ConsolidationCounts
from toolfold.memory.consolidation.service import Consolidation
from toolfold.memory.note_vectors import NoteVectorizer, UsageCounter
from toolfold.memory.service import Memory
from toolfold.memory.sql.consolidation import SqlConsolidations
from toolfold.memory.sqlite.connection import SqliteFile
from toolfold.memory.sqlite.store import SqliteStore

# Below this, a mean difference is a tie that fell to the other side.
TOLERANCE = limit("consolidation-loss")


@dataclass(frozen=True)
class Case:
    name: str
    strategy: str
    has_threads: bool
    days_later: float


@dataclass
class Outcome:
    counts: list[ConsolidationCounts] = field(default_factory=list)
    seconds: float = 0.0
    before: list[list[int]] = field(default_factory=list)
    after: list[list[int]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    shown: Consolidated | None = None


@dataclass
class Clock:
    now: float

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Tried:
    memory: Memory
    service: Consolidation
    conversation: locomo.Conversation
    turns: dict[str, int]


CASES = (
    Case("parts of sessions, a day later", "balanced", has_threads=True, days_later=1),
    Case("notes of their own, a day later", "quality", has_threads=False, days_later=1),
    Case(
        "notes of their own, some read 400 days later",
        "balanced",
        has_threads=False,
        days_later=400,
    ),
)


def main() -> int:
    """Print what was found and how search did; fail where it must not get worse."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, metavar="FILE", help="other conversations")
    parser.add_argument("--cache", type=Path, default=tempfile.gettempdir(), metavar="DIR")
    parser.add_argument("--show", action="store_true", help="print what was found in the first")
    arguments = parser.parse_args()
    data = arguments.data or DATA / "locomo-dev.json"
    if not data.is_file():
        print("consolidation: skipped, the labelled conversations are not on this machine")
        return 2 if arguments.data else 0
    conversations = locomo.load(data)
    embedder = Remembered(BuiltinEmbedder(), Path(arguments.cache))
    faults = []
    for case in CASES:
        faults += measure(conversations, embedder, case, is_shown=arguments.show)
    embedder.save()
    print("\n".join(["", *faults]) if faults else "\nNo worse, found once, and undone exactly.")
    return 1 if faults else 0


def measure(
    conversations: Sequence[locomo.Conversation],
    embedder: Remembered,
    case: Case,
    *,
    is_shown: bool,
) -> list[str]:
    """Print one table; return in words what must not be."""
    outcome = Outcome()
    for conversation in conversations:
        anyio.run(consolidate, conversation, embedder, case, outcome)
    wanted = [turns for each in conversations for _, turns in each.questions]
    total = ConsolidationCounts(*(sum(column) for column in zip(*outcome.counts, strict=True)))
    print(f"\n{case.strategy}, {case.name}: {total!r}; {outcome.seconds:.1f} s in all")
    if is_shown:
        print(outcome.shown)
    before, after = measured(outcome.before, wanted), measured(outcome.after, wanted)
    for place, name in enumerate(locomo.MEASURES):
        gain = after[:, place] - before[:, place]
        means = before[:, place].mean(), after[:, place].mean()
        print(f"  {name:5} {means[0]:.3f} before, {means[1]:.3f} after: {interval(gain)}")
        if case.days_later > 1:
            unread = np.concatenate(
                [np.arange(len(each.questions)) % 2 == 1 for each in conversations]
            )
            print(f"        of questions whose evidence was not read: {interval(gain[unread])}")
        if gain.mean() < -TOLERANCE:
            outcome.faults.append(
                f"{case.strategy}, {case.name}: {name} is worse: {gain.mean():+.3f}"
            )
    return outcome.faults


async def consolidate(
    conversation: locomo.Conversation, embedder: Remembered, case: Case, outcome: Outcome
) -> None:
    """Remember a conversation, and try consolidation on it."""
    clock = Clock(max(conversation.created) + locomo.DAY_S)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "notes.db"
        file = SqliteFile(path)
        store, kept = SqliteStore(file), SqlConsolidations(file)
        meaning, usage = NoteVectorizer(store, embedder), UsageCounter(kept, clock=clock)
        names: dict[str, Any] = {"namespace": locomo.NAMESPACE, "clock": clock}
        async with file.running(), store.running(), meaning.running():
            memory = Memory(store, meaning, usage=usage, **names)
            turns = await remember(memory, conversation, has_threads=case.has_threads)
            await memory.until_ready()
            if case.days_later > 1:
                clock.now += case.days_later * locomo.DAY_S
                await read_some(memory, conversation, turns)
                await usage.write()
            tried = Tried(memory, Consolidation(store, kept, **names), conversation, turns)
            await attempt(tried, path, case, outcome)


async def attempt(tried: Tried, path: Path, case: Case, outcome: Outcome) -> None:
    """Search, consolidate, search, consolidate again, undo; take down what happened."""
    dump = rows(path)
    outcome.before += await rankings(tried)
    started = time.perf_counter()
    found = await tried.service.consolidate(case.strategy)  # type: ignore[arg-type]
    outcome.seconds += time.perf_counter() - started
    outcome.counts.append(found.counts)
    outcome.shown = outcome.shown or found
    outcome.after += await rankings(tried)
    again = await tried.service.consolidate(case.strategy)  # type: ignore[arg-type]
    if any(again.counts[1:]):
        outcome.faults.append(f"{case.strategy}, {case.name}: again {again.counts!r}")
    await tried.service.undo(found.id)
    if rows(path) != dump:
        outcome.faults.append(f"{case.strategy}, {case.name}: undoing left something")


async def remember(
    memory: Memory, conversation: locomo.Conversation, *, has_threads: bool
) -> dict[str, int]:
    """Store the turns; of equal ones the first counts. Return which turn each hash is."""
    notes: list[Any] = locomo.notes(conversation)
    if not has_threads:
        notes = [{**note, "thread": None, "position": None} for note in notes]
    turns: dict[str, int] = {}
    for turn, name in enumerate(await memory.store_batch(notes)):
        turns.setdefault(name, turn)
    return turns


async def read_some(
    memory: Memory, conversation: locomo.Conversation, turns: dict[str, int]
) -> None:
    """Read the evidence of every other question."""
    hashes = {turn: name for name, turn in turns.items()}
    for _, wanted in conversation.questions[::2]:
        for turn in sorted(wanted & hashes.keys()):
            await memory.get(hashes[turn])


async def rankings(tried: Tried) -> list[list[int]]:
    """Return the turns, best first, that are found for each question."""
    questions = [question for question, _ in tried.conversation.questions]
    found = [await tried.memory.search(question, limit=DEPTH) for question in questions]
    return [[tried.turns[note.hash] for note in result.memories] for result in found]


def measured(found: Sequence[Sequence[int]], wanted: Sequence[set[int]]) -> NDArray[np.float64]:
    """Return the measures of each question."""
    return np.array([locomo.measured(*pair) for pair in zip(found, wanted, strict=True)])


def rows(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row that is of notes, without the numbers of transactions."""
    selects = {
        "notes": "*",
        "versions": "*",
        "links": "*",
        "tags": "*",
        "threads": "*",
        "namespaces": "*",
        "vocabulary_1": "*",
        "points": "number, is_live, thread, position, created, quality, length, vector",
        "consolidation_findings": "*",
        "consolidation_changes": "*",
    }
    with closing(sqlite3.connect(path)) as connection:
        return {
            table: sorted(connection.execute(f"SELECT {columns} FROM {table}"), key=repr)
            for table, columns in selects.items()
        }


if __name__ == "__main__":
    sys.exit(main())
