"""Measure how memory follows what changes: what holds now, what held then, what is no update.

The set is that of `chains.py`, and BEAM's questions about updates where they are on this machine;
those name messages that hold many things, so their chains are said by the writer (`supersedes`).
"""

import argparse
import gzip
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
from chains import NOW, Chain, Told, chains, look_alikes
from discovery import DATA, Remembered
from targets import TARGETS

from toolfold.embedding import BuiltinEmbedder, Embedder
from toolfold.memory.models import Note
from toolfold.memory.note_vectors import NoteVectorizer
from toolfold.memory.service import Memory
from toolfold.memory.sqlite.connection import SqliteFile
from toolfold.memory.sqlite.store import SqliteStore

CHAINS: Final = 400
LOOK_ALIKES: Final = 300
FOUND_WITHIN: Final = 3
_NAMESPACE: Final = "bench"


class Result(NamedTuple):
    """Shares of what was asked, and of the supersessions that were found."""

    current_first: float
    past_found: float
    false: float
    updates_found: float


def main() -> int:
    """Print the figures, and fail where one misses its target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, default=tempfile.gettempdir(), metavar="DIR")
    parser.add_argument("--data", type=Path, default=DATA / "beam-dev.json.gz", metavar="FILE")
    arguments = parser.parse_args()
    embedder = Remembered(BuiltinEmbedder(), Path(arguments.cache))
    result = anyio.run(measure, CHAINS, LOOK_ALIKES, embedder)
    print(f"{CHAINS} chains, {2 * LOOK_ALIKES} notes that look like updates")
    print(f"updates found by themselves: {result.updates_found:.3f}")
    is_good = [_judge(*figure) for figure in zip(_FIGURES, result, strict=False)]
    if arguments.data.is_file():
        is_good.append(
            _judge("supersession-beam", anyio.run(measure_beam, arguments.data, embedder))
        )
    embedder.save()
    return 0 if all(is_good) else 1


def _judge(name: str, value: float) -> bool:
    print(f"{name}: {value:.3f}, target {TARGETS[name].limit}", flush=True)
    return TARGETS[name].holds(value)


_FIGURES: Final = ("supersession-now", "supersession-then", "supersession-false")


async def measure(count: int, look_alike_count: int, embedder: Embedder) -> Result:
    """Store all notes in the order of their times, one by one, and ask."""
    sought = list(chains(count))
    told = [note for chain in sought for note in (*chain.notes, *chain.others)]
    told += look_alikes(look_alike_count)
    async with running(embedder) as memory:
        hashes: dict[str, Told] = {}
        for note in sorted(told, key=lambda each: each.created):
            hashes.setdefault(await memory.store(note.text, created=note.created), note)
        await memory.until_ready()
        names = {note.text: name for name, note in hashes.items()}
        pairs = [pair for name in hashes for pair in _pairs(await memory.get(name), hashes)]
        true = [(old, new) for old, new in pairs if _is_true(old, new)]
        firsts, thens = await _ask(memory, sought, names)
    updates = sum(len(chain.notes) - 1 for chain in sought)
    return Result(
        _mean(firsts), _mean(thens), 1 - len(true) / max(1, len(pairs)), len(true) / updates
    )


async def _ask(
    memory: Memory, sought: Sequence[Chain], names: dict[str, str]
) -> tuple[list[bool], list[bool]]:
    firsts, thens = [], []
    for chain in sought:
        for question in chain.now:
            found = await memory.search(question, limit=1)
            current = names[chain.notes[-1].text]
            firsts.append([each.hash for each in found.memories] == [current])
        for question, place in chain.then:
            found = await memory.search(question, limit=FOUND_WITHIN)
            thens.append(names[chain.notes[place].text] in [each.hash for each in found.memories])
    return firsts, thens


async def measure_beam(data: Path, embedder: Embedder) -> float:
    """Return in how many of BEAM's updates the newest message comes before the older ones."""
    with gzip.open(data) as file:
        samples = json.load(file)
    right = []
    for sample in samples:
        asked = [each for each in sample["questions"] if each["ability"] == "knowledge_update"]
        asked = [each for each in asked if len(set(each["evidence"])) > 1]
        async with running(embedder) as memory:
            names = await _tell(memory, sample, asked)
            for question in asked:
                found = await memory.search(question["question"], limit=100)
                chain = [names[each] for each in sorted(set(question["evidence"]))]
                shown = [each.hash for each in found.memories if each.hash in chain]
                right.append(shown[:1] == [chain[-1]])
    print(f"BEAM: {len(right)} updates")
    return _mean(right)


async def _tell(
    memory: Memory, sample: dict[str, Any], asked: list[dict[str, Any]]
) -> dict[int, str]:
    """Store the user's messages, and say which supersede which; return their hashes."""
    start = NOW.timestamp() - 200 * 86_400
    messages = [each for each in sample["messages"] if each["role"] == "user"]
    notes: list[Any] = [
        {"content": each["text"], "created": start + 60 * each["id"]} for each in messages
    ]
    hashes = await memory.store_batch(notes)
    names = dict(zip((each["id"] for each in messages), hashes, strict=True))
    for question in asked:
        ids = sorted(set(question["evidence"]))
        question["evidence"] = ids = [each for each in ids if each in names]
        for old, new in pairwise(ids):
            await memory.supersede(names[old], names[new])
    await memory.until_ready()
    return names


@asynccontextmanager
async def running(embedder: Embedder) -> AsyncIterator[Memory]:
    """Open a memory that forgets all when it ends."""
    with tempfile.TemporaryDirectory() as directory:
        file = SqliteFile(Path(directory) / "notes.db")
        store = SqliteStore(file)
        meaning = NoteVectorizer(store, embedder)
        async with file.running(), store.running(), meaning.running():
            yield Memory(store, meaning, namespace=_NAMESPACE, clock=NOW.timestamp, zone=UTC)


def _pairs(note: Note, hashes: dict[str, Told]) -> list[tuple[Told, Told]]:
    older = [link.hash[:8] for link in note.links if link.kind == "supersedes"]
    return [(hashes[each], hashes[note.hash[:8]]) for each in older]


def _is_true(old: Told, new: Told) -> bool:
    return old.chain is not None and old.chain == new.chain and old.place < new.place


def _mean(values: Sequence[bool]) -> float:
    return sum(values) / max(1, len(values))


if __name__ == "__main__":
    sys.exit(main())
