"""Measure search of notes on the long conversations of BEAM, and fail where it must lead.

Each message is a note, by its role, and each session a conversation. The baselines are those of
`locomo.py`, with the same embedder. No ability may be worse than the best baseline beyond doubt.
"""

import argparse
import gzip
import json
import sys
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from discovery import DATA, Remembered, bounds, interval
from locomo import BASELINES, OURS, Conversation, print_table, rankings_of

from toolfold.embedding import BuiltinEmbedder

FACTUAL = {
    "contradiction_resolution",
    "information_extraction",
    "knowledge_update",
    "multi_session_reasoning",
    "temporal_reasoning",
}
MUST_GAIN = 0.04
MAY_LOSE = -0.02
R10 = 1


def main() -> int:
    """Print the tables; fail where the ranking is not as much better as promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, metavar="FILE", help="other conversations")
    parser.add_argument("--cache", type=Path, default=tempfile.gettempdir(), metavar="DIR")
    parser.add_argument("--tier", help="only conversations of this size, as 100K")
    arguments = parser.parse_args()
    data = arguments.data or DATA / "beam-dev.json.gz"
    if not data.is_file():
        print("beam: skipped, the labelled conversations are not on this machine")
        return 2 if arguments.data else 0
    with gzip.open(data) as file:
        samples = [each for each in json.load(file) if arguments.tier in (None, each["tier"])]
    embedder = Remembered(BuiltinEmbedder(), Path(arguments.cache))
    gains: dict[str, list[float]] = {}
    faults = []
    for tier in sorted({each["tier"] for each in samples}):
        chosen = [each for each in samples if each["tier"] == tier]
        faults += measure(tier, chosen, embedder, gains)
    embedder.save()
    faults += compare_abilities(gains)
    print("\n".join(["", *faults]) if faults else "\nBetter by as much as promised, worse on none.")
    return 1 if faults else 0


def measure(
    tier: str, samples: list[dict[str, Any]], embedder: Remembered, gains: dict[str, list[float]]
) -> list[str]:
    """Print the table of one size, and add to `gains`; return what falls short of the promise."""
    conversations = [_conversation(each) for each in samples]
    abilities = [question["ability"] for each in samples for question in _asked(each)]
    wanted = [messages for each in conversations for _, messages in each.questions]
    print(f"\n{tier}: {len(conversations)} conversations, {len(wanted)} questions")
    rankings = [rankings_of(each, embedder) for each in conversations]
    results = print_table(rankings, wanted)
    ours = results[OURS][:, R10]
    faults = []
    for label, chosen in (
        ("all", np.ones(len(abilities), bool)),
        ("factual", np.array([each in FACTUAL for each in abilities])),
    ):
        best = max((results[each][chosen, R10] for each in BASELINES), key=np.mean)
        gain = ours[chosen] - best
        shown = f"{ours[chosen].mean():.3f}, best baseline {best.mean():.3f}"
        print(f"R@10, {label}: {shown}, gain {interval(gain)}")
        if gain.mean() < MUST_GAIN:
            faults.append(
                f"{tier}, {label}: R@10 is {gain.mean():+.3f}, not {MUST_GAIN:+} or more."
            )
    best = max((results[each][:, R10] for each in BASELINES), key=np.mean)
    for ability, gain in zip(abilities, ours - best, strict=True):
        gains.setdefault(ability, []).append(float(gain))
    return faults


def compare_abilities(gains: dict[str, list[float]]) -> list[str]:
    """Print the gain of each ability, all sizes together; return those that are surely worse."""
    faults = []
    print("\nR@10 against the best baseline, by ability")
    for ability, found in sorted(gains.items()):
        gain = np.array(found)
        print(f"{ability:28}{len(gain):5}  {interval(gain)}")
        if bounds(gain)[1] < MAY_LOSE:
            faults.append(f"{ability}: R@10 is below the best baseline by more than 2 points.")
    return faults


def _asked(sample: dict[str, Any]) -> Iterable[dict[str, Any]]:
    known = {message["id"] for message in sample["messages"]}
    return [each for each in sample["questions"] if known & set(each["evidence"])]


def _conversation(sample: dict[str, Any]) -> Conversation:
    messages = sample["messages"]
    places = {message["id"]: place for place, message in enumerate(messages)}
    return Conversation(
        turns=[f"{each['role']}: {each['text']}" for each in messages],
        sessions=[each["session"] for each in messages],
        created=list(_times(messages)),
        questions=[
            (each["question"], {places[id_] for id_ in each["evidence"] if id_ in places})
            for each in _asked(sample)
        ],
    )


def _times(messages: list[dict[str, Any]]) -> Iterable[float]:
    """Give the time of each message: its day, or that of the last one that has any."""
    last = datetime(2024, 1, 1, tzinfo=UTC).timestamp()
    for message in messages:
        if message["time"]:
            day = datetime.strptime(message["time"], "%B-%d-%Y").replace(tzinfo=UTC)
            last = max(last, day.timestamp())
        yield last
        last += 1


if __name__ == "__main__":
    sys.exit(main())
