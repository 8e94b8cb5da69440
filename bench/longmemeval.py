"""Measure search of notes on LongMemEval-S, by labelled turns, and fail where it must lead.

Each turn is a note, by its role, and each session a conversation; every question has a history of
its own. The baselines are those of `locomo.py`. Our embedder was trained on other questions.
"""

import argparse
import gzip
import json
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from discovery import DATA, Remembered, interval
from locomo import BASELINES, OURS, Conversation, print_table, rankings_of

from toolfold.embedding import BuiltinEmbedder

MUST_GAIN = 0.03
SESSIONS_LEAST = 0.98
R10 = 1


def main() -> int:
    """Print the table; fail where the ranking is not as good as promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, metavar="FILE", help="other questions")
    parser.add_argument("--cache", type=Path, default=tempfile.gettempdir(), metavar="DIR")
    arguments = parser.parse_args()
    data = arguments.data or DATA / "longmemeval-dev.json.gz"
    if not data.is_file():
        print("longmemeval: skipped, the labelled questions are not on this machine")
        return 2 if arguments.data else 0
    with gzip.open(data) as file:
        histories = [_conversation(each) for each in json.load(file)]
    histories = [each for each in histories if each.questions]
    embedder = Remembered(BuiltinEmbedder(), Path(arguments.cache))
    rankings = [rankings_of(each, embedder) for each in histories]
    embedder.save()
    faults = compare(histories, rankings)
    print("\n".join(["", *faults]) if faults else "\nAs good as promised.")
    return 1 if faults else 0


def compare(histories: list[Conversation], rankings: list[dict[str, list[list[int]]]]) -> list[str]:
    """Print how much of the evidence is found; return in words what falls short of the promise."""
    wanted = [turns for each in histories for _, turns in each.questions]
    print(f"\n{len(wanted)} questions, each with a history of its own")
    results = print_table(rankings, wanted)
    best = max((results[each][:, R10] for each in BASELINES), key=np.mean)
    gain = results[OURS][:, R10] - best
    print(f"R@10 of turns against the best baseline: {interval(gain)}")
    found = [
        any(history.sessions[turn] in sessions for turn in _first(ranking[OURS][0], history))
        for history, ranking in zip(histories, rankings, strict=True)
        for sessions in [{history.sessions[turn] for turn in history.questions[0][1]}]
    ]
    share = float(np.mean(found))
    print(f"A session of the evidence among the first five: {share:.3f}")
    faults = []
    if gain.mean() < MUST_GAIN:
        faults.append(f"R@10 of turns is {gain.mean():+.3f}, not {MUST_GAIN:+} or more.")
    if share < SESSIONS_LEAST:
        faults.append(f"Sessions within five: {share:.3f}, not {SESSIONS_LEAST} or more.")
    return faults


def _first(ranking: list[int], history: Conversation) -> list[int]:
    """Return the best turn of each of the first five sessions."""
    best: dict[int, int] = {}
    for turn in ranking:
        best.setdefault(history.sessions[turn], turn)
    return list(best.values())[:5]


def _conversation(sample: dict[str, Any]) -> Conversation:
    turns = [
        (number, turn)
        for number, session in enumerate(sample["haystack_sessions"])
        for turn in session
    ]
    times = [_time(written) for written in sample["haystack_dates"]]
    wanted = {place for place, (_, turn) in enumerate(turns) if turn.get("has_answer")}
    return Conversation(
        turns=[f"{turn['role']}: {turn['content']}" for _, turn in turns],
        sessions=[number for number, _ in turns],
        created=[times[number] + place for place, (number, _) in enumerate(turns)],
        questions=[(sample["question"], wanted)] if wanted else [],
    )


def _time(written: str) -> float:
    return datetime.strptime(written, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC).timestamp()


if __name__ == "__main__":
    sys.exit(main())
