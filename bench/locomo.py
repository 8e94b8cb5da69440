"""Measure search of notes on LoCoMo conversations, by labelled evidence; fail where it must lead.

Each turn is a note and each session a conversation. The baselines are computed in the same run:
SQLite's FTS5 over the turns (porter, stop words out, OR query), the same over each turn joined with
the one before and after, and the fusion by reciprocal rank (k = 10) of the first with MiniLM.
"""

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from discovery import DATA, Remembered, bm25, fused, interval
from numpy.typing import NDArray

from toolfold.embedding import MiniLmEmbedder, dequantize, quantize
from toolfold.memory.hashes import note_hash
from toolfold.memory.meaning import embed_notes
from toolfold.memory.models import Draft
from toolfold.memory.ranking import DEPTH, Hit, estimated_quality, rank
from toolfold.memory.sqlite import SqliteStore
from toolfold.memory.store import EVERYTHING
from toolfold.memory.timewords import find_time

MEASURES = ("R@5", "R@10", "R@20", "MRR")
BASELINES = ("BM25", "BM25 with neighbours", "plain hybrid")
OURS = "ours"
NAMESPACE = "locomo"
MUST_GAIN = 0.03  # in R@10 of turns, over the best baseline
SESSIONS_LEAST = {"R@5": 0.877, "R@10": 0.934}


@dataclass(frozen=True)
class Conversation:
    turns: list[str]
    sessions: list[int]
    created: list[float]
    questions: list[tuple[str, set[int]]]


def main() -> int:
    """Print the tables; fail where the ranking is not as much better as promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA / "locomo-dev.json", metavar="FILE")
    parser.add_argument("--cache", type=Path, default=tempfile.gettempdir(), metavar="DIR")
    parser.add_argument("--explain", action="store_true", help="say why the first hits rank so")
    arguments = parser.parse_args()
    if not arguments.data.is_file():
        print(f"locomo: skipped, {arguments.data.name} is not on this machine")
        return 0
    conversations = load(arguments.data)
    embedder = Remembered(MiniLmEmbedder(), Path(arguments.cache))
    rankings = [
        rankings_of(each, embedder, is_explained=arguments.explain) for each in conversations
    ]
    embedder.save()
    faults = [*compare_turns(conversations, rankings), *compare_sessions(conversations, rankings)]
    print("\n".join(["", *faults]) if faults else "\nBetter by as much as promised, worse on none.")
    return 1 if faults else 0


def load(path: Path) -> list[Conversation]:
    """Read conversations, with those questions whose evidence is among their turns."""
    return [_conversation(each) for each in json.loads(path.read_text(encoding="utf-8"))]


def rankings_of(
    conversation: Conversation, embedder: Remembered, *, is_explained: bool
) -> dict[str, list[list[int]]]:
    """Return the turns, best first, that each way of searching finds for each question."""
    queries = [question for question, _ in conversation.questions]
    vectors = dequantize(quantize(embedder.embed(conversation.turns)))
    cosines = embedder.embed(queries) @ vectors.T
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :100].tolist()
    by_words = bm25(conversation.turns, queries)
    hits = anyio.run(search, conversation, queries, embedder)
    if is_explained:
        for query, found in zip(queries, hits, strict=True):
            print(query, *(_explained(conversation, hit) for hit in found[:3]), sep="\n")
    return {
        "BM25": by_words,
        "BM25 with neighbours": bm25(_windows(conversation), queries),
        "plain hybrid": [fused(*pair) for pair in zip(nearest, by_words, strict=True)],
        OURS: [[hit.key for hit in found] for found in hits],
    }


async def search(
    conversation: Conversation, queries: Sequence[str], embedder: Remembered
) -> list[list[Hit]]:
    """Store the turns and return all that is found for each query; keys of hits are turns."""
    now = datetime.fromtimestamp(max(conversation.created), UTC) + timedelta(days=1)
    with tempfile.TemporaryDirectory() as directory:
        store = SqliteStore(Path(directory) / "notes.db")
        async with store.running():
            await store.adopt(embedder.name, embedder.dimensions)
            keys = await store.add(NAMESPACE, _drafts(conversation), now=now.timestamp())
            turns = {key: turn for turn, key in enumerate(keys)}
            await embed_notes(store, embedder, keys)
            await store.warm(NAMESPACE)
            return [
                [hit._replace(key=turns[hit.key]) for hit in await _hits(store, query, vector, now)]
                for query, vector in zip(queries, embedder.embed(queries).tolist(), strict=True)
            ]


def compare_turns(
    conversations: list[Conversation], rankings: list[dict[str, list[list[int]]]]
) -> list[str]:
    """Print how much of the evidence is found; return in words what falls short of the promise."""
    wanted = [turns for each in conversations for _, turns in each.questions]
    count = sum(len(each.turns) for each in conversations)
    print(f"\nTurns: {len(conversations)} conversations, {count} turns, {len(wanted)} questions")
    results = _print_table(rankings, wanted)
    faults = []
    for place, name in enumerate(MEASURES):
        best = max((results[each][:, place] for each in BASELINES), key=lambda each: each.mean())
        gain = results[OURS][:, place] - best
        print(f"{name:5} against the best baseline: {interval(gain)}")
        least = MUST_GAIN if name == "R@10" else 0
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
    means = _print_table(by_session, wanted)[OURS].mean(axis=0)
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


def _drafts(conversation: Conversation) -> list[Draft]:
    drafts = []
    for position, turn in enumerate(conversation.turns):
        thread = f"session {conversation.sessions[position]}"
        drafts.append(
            Draft(
                content=turn,
                hash=note_hash(turn, thread=thread, position=position),
                thread=thread,
                position=position,
                quality=estimated_quality(turn),
                created=conversation.created[position],
            )
        )
    return drafts


async def _hits(store: SqliteStore, query: str, vector: list[float], now: datetime) -> list[Hit]:
    found = await store.search(NAMESPACE, query, vector, EVERYTHING, depth=DEPTH)
    named = find_time(query, now=now)
    return rank(
        found.lists,
        created=found.created,
        quality=found.quality,
        now=now.timestamp(),
        when=named and (named.range.start.timestamp(), named.range.end.timestamp()),
    )


def _sessions(turns: Sequence[int], sessions: Sequence[int]) -> list[int]:
    return list(dict.fromkeys(sessions[turn] for turn in turns))


def _explained(conversation: Conversation, hit: Hit) -> str:
    return f"    {hit.explain()}\n        {conversation.turns[hit.key][:100]}"


def _print_table(
    rankings: list[dict[str, list[list[int]]]], wanted: Sequence[set[int]]
) -> dict[str, NDArray[np.float64]]:
    print(f"{'':22}" + "".join(f"{name:>8}" for name in MEASURES))
    results = {}
    for name in (*BASELINES, OURS):
        found = [ranking for each in rankings for ranking in each[name]]
        results[name] = np.array([_measured(*pair) for pair in zip(found, wanted, strict=True)])
        print(f"{name:22}" + "".join(f"{value:8.3f}" for value in results[name].mean(axis=0)))
    return results


def _measured(ranking: Sequence[int], wanted: set[int]) -> list[float]:
    places = [place for place, key in enumerate(ranking, start=1) if key in wanted]
    recalls = [sum(place <= depth for place in places) / len(wanted) for depth in (5, 10, 20)]
    return [*recalls, 1 / places[0] if places else 0.0]


if __name__ == "__main__":
    sys.exit(main())
