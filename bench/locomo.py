"""Measure search of notes on LoCoMo conversations, by labelled evidence; fail where it must lead.

Each turn is a note and each session a conversation. The baselines are computed in the same run:
SQLite's FTS5 over the turns (porter, stop words out, OR query), the same over each turn joined with
the one before and after, our embedder alone, and its fusion with the first by reciprocal rank
(k = 10).
"""

import argparse
import json
import re
import sys
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from discovery import DATA, DEPTH, Remembered, bm25, fused, interval
from numpy.typing import NDArray
from targets import limit

from toolfold.embedding import BuiltinEmbedder, dequantize, quantize
from toolfold.jsontypes import Json
from toolfold.memory.note_vectors import NoteVectorizer
from toolfold.memory.service import Memory
from toolfold.memory.sqlite.connection import SqliteFile
from toolfold.memory.sqlite.store import SqliteStore

MEASURES = ("R@5", "R@10", "R@20", "MRR")
BASELINES = ("BM25", "BM25 with neighbours", "cosine", "plain hybrid")
OURS = "ours"
NAMESPACE = "locomo"
DAY_S = 86_400
# Of turns, over the best baseline in each measure; MRR must be above.
MUST_GAIN = {"R@5": 0.0, "R@10": 0.03, "R@20": 0.0, "MRR": 0.001}
SESSIONS_LEAST = {"R@5": limit("locomo-sessions-r5"), "R@10": limit("locomo-sessions-r10")}


@dataclass(frozen=True)
class Conversation:
    turns: list[str]
    sessions: list[int]
    created: list[float]
    questions: list[tuple[str, set[int]]]


def main() -> int:
    """Print the tables; fail where the ranking is not as much better as promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, metavar="FILE", help="other conversations")
    parser.add_argument("--cache", type=Path, default=tempfile.gettempdir(), metavar="DIR")
    parser.add_argument("--database-url", default="", metavar="URL", help="search in PostgreSQL")
    arguments = parser.parse_args()
    data = arguments.data or DATA / "locomo-dev.json"
    if not data.is_file():
        print("locomo: skipped, the labelled conversations are not on this machine")
        return 2 if arguments.data else 0
    conversations = load(data)
    embedder = Remembered(BuiltinEmbedder(), Path(arguments.cache))
    rankings = [rankings_of(each, embedder, arguments.database_url) for each in conversations]
    embedder.save()
    faults = [*compare_turns(conversations, rankings), *compare_sessions(conversations, rankings)]
    print("\n".join(["", *faults]) if faults else "\nBetter by as much as promised, worse on none.")
    return 1 if faults else 0


def load(path: Path) -> list[Conversation]:
    """Read conversations, with those questions whose evidence is among their turns."""
    return [_conversation(each) for each in json.loads(path.read_text(encoding="utf-8"))]


def rankings_of(
    conversation: Conversation, embedder: Remembered, database_url: str = ""
) -> dict[str, list[list[int]]]:
    """Return the turns, best first, that each way of searching finds for each question."""
    questions = [question for question, _ in conversation.questions]
    vectors = dequantize(quantize(embedder.embed(conversation.turns)))
    cosines = embedder.embed(questions) @ vectors.T
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :DEPTH].tolist()
    by_words = bm25(conversation.turns, questions)
    return {
        "BM25": by_words,
        "BM25 with neighbours": bm25(_windows(conversation), questions),
        "cosine": nearest,
        "plain hybrid": [fused(*pair) for pair in zip(nearest, by_words, strict=True)],
        OURS: anyio.run(search, conversation, questions, embedder, database_url),
    }


async def search(
    conversation: Conversation,
    questions: Sequence[str],
    embedder: Remembered,
    database_url: str = "",
) -> list[list[int]]:
    """Remember the turns, and find them as any user of memory does."""
    now = max(conversation.created) + DAY_S
    namespace = f"{NAMESPACE} {uuid.uuid4()}"
    with tempfile.TemporaryDirectory() as directory:
        database, store = open_store(Path(directory), database_url)
        meaning = NoteVectorizer(store, embedder)
        async with database.running(), store.running(), meaning.running():
            memory = Memory(store, meaning, namespace=namespace, clock=lambda: now, zone=UTC)
            hashes = await memory.store_batch(notes(conversation))
            turns = {name: turn for turn, name in enumerate(hashes)}
            await meaning.until_done()
            await store.warm(namespace)
            found = [await memory.search(question, limit=DEPTH) for question in questions]
            return [[turns[note.hash] for note in result.memories] for result in found]


def open_store(directory: Path, database_url: str) -> tuple[Any, Any]:
    """Return the database of a directory, or that of an address, and the notes in it."""
    if database_url:
        from toolfold.memory.postgres.connection import PostgresMemory
        from toolfold.memory.postgres.store import PostgresStore

        database = PostgresMemory(database_url)
        return database, PostgresStore(database)
    file = SqliteFile(directory / "notes.db")
    return file, SqliteStore(file)


def compare_turns(
    conversations: list[Conversation], rankings: list[dict[str, list[list[int]]]]
) -> list[str]:
    """Print how much of the evidence is found; return in words what falls short of the promise."""
    wanted = [turns for each in conversations for _, turns in each.questions]
    count = sum(len(each.turns) for each in conversations)
    print(f"\nTurns: {len(conversations)} conversations, {count} turns, {len(wanted)} questions")
    results = print_table(rankings, wanted)
    faults = []
    for place, name in enumerate(MEASURES):
        best = max((results[each][:, place] for each in BASELINES), key=lambda each: each.mean())
        gain = results[OURS][:, place] - best
        print(f"{name:5} against the best baseline: {interval(gain)}")
        least = MUST_GAIN[name]
        if gain.mean() < least:
            faults.append(f"{name} of turns is {gain.mean():+.3f}, not {least:+.3f} or more.")
    return faults


def compare_sessions(
    conversations: list[Conversation], rankings: list[dict[str, list[list[int]]]]
) -> list[str]:
    """Do the same for sessions, each as good as its best turn."""
    wanted = []
    by_session: list[dict[str, list[list[int]]]] = []
    for conversation, found in zip(conversations, rankings, strict=True):
        sessions = conversation.sessions
        wanted += [{sessions[turn] for turn in turns} for _, turns in conversation.questions]
        by_session.append(
            {name: [_sessions(each, sessions) for each in lists] for name, lists in found.items()}
        )
    print("\nSessions, by their best turn")
    means = print_table(by_session, wanted)[OURS].mean(axis=0)
    return [
        f"{name} of sessions is {means[MEASURES.index(name)]:.3f}, not {least} or more."
        for name, least in SESSIONS_LEAST.items()
        if means[MEASURES.index(name)] < least
    ]


def _conversation(sample: dict[str, Any]) -> Conversation:
    said = sample["conversation"]
    numbers = [int(key[8:]) for key in said if re.fullmatch(r"session_\d+", key)]
    turns = [(number, turn) for number in numbers for turn in said[f"session_{number}"]]
    places = {turn["dia_id"]: place for place, (_, turn) in enumerate(turns)}
    times = {number: _time(said[f"session_{number}_date_time"]) for number in numbers}
    evidence = (
        (each["question"], re.findall(r"D\d+:\d+", " ".join(each.get("evidence", []))))
        for each in sample["qa"]
    )
    asked = (
        (question, {places[id_] for id_ in ids if id_ in places}) for question, ids in evidence
    )
    return Conversation(
        turns=[_text(turn) for _, turn in turns],
        sessions=[number for number, _ in turns],
        created=[times[number] for number, _ in turns],
        questions=[(question, wanted) for question, wanted in asked if wanted],
    )


def _text(turn: dict[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['speaker']}: {turn['text']}" + (
        f" [shares a photo of {caption}]" * bool(caption)
    )


def _time(written: str) -> float:
    return datetime.strptime(written, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).timestamp()


def _windows(conversation: Conversation) -> list[str]:
    windows = []
    for _, session in groupby(enumerate(conversation.turns), lambda e: conversation.sessions[e[0]]):
        turns = [turn for _, turn in session]
        windows += [" ".join(turns[max(0, at - 1) : at + 2]) for at in range(len(turns))]
    return windows


def notes(conversation: Conversation) -> list[dict[str, Json]]:
    """Return the turns as notes, each at its place in its session."""
    return [
        {"content": turn, "thread": f"session {session}", "position": place, "created": created}
        for place, (turn, session, created) in enumerate(
            zip(conversation.turns, conversation.sessions, conversation.created, strict=True)
        )
    ]


def _sessions(turns: Sequence[int], sessions: Sequence[int]) -> list[int]:
    return list(dict.fromkeys(sessions[turn] for turn in turns))


def print_table(
    rankings: list[dict[str, list[list[int]]]], wanted: Sequence[set[int]]
) -> dict[str, NDArray[np.float64]]:
    """Print the measures of every way of searching; return them for each question."""
    print(f"{'':22}" + "".join(f"{name:>8}" for name in MEASURES))
    results = {}
    for name in (*BASELINES, OURS):
        found = [ranking for each in rankings for ranking in each[name]]
        results[name] = np.array([measured(*pair) for pair in zip(found, wanted, strict=True)])
        print(f"{name:22}" + "".join(f"{value:8.3f}" for value in results[name].mean(axis=0)))
    return results


def measured(ranking: Sequence[int], wanted: set[int]) -> list[float]:
    """Return the measures of what was found for one question."""
    places = [place for place, key in enumerate(ranking, start=1) if key in wanted]
    recalls = [sum(place <= depth for place in places) / len(wanted) for depth in (5, 10, 20)]
    return [*recalls, 1 / places[0] if places else 0.0]


if __name__ == "__main__":
    sys.exit(main())
