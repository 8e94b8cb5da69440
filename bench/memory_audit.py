"""Measure what an audit of memory finds of faults that were planted, and how long it takes.

A plant file has one fault in each line, as JSON:

    {"kind": "secret", "notes": [{"content": "…", "created": "2026-03-01", "thread": "…"}]}

`kind` is one of: duplicate, near_duplicate, contradiction, stale, secret, injection, unused, junk.
`notes` are stored in this order; of `created` (ISO 8601, optional) that of a pair decides which is
later. For duplicates and contradictions, `of` may be the number of a real note instead of the first
note. Everything but the notes of `unused` counts as found by searches.

A fault is found if a finding of its kind names its last note. Findings of a kind that name no
planted note of that kind count against its precision, unless the real notes had them before.
"""

import argparse
import gzip
import json
import re
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
from discovery import DATA, Remembered
from notes import notes as made_up
from targets import TARGETS

from toolfold.embedding import BuiltinEmbedder, Embedder
from toolfold.memory.audit.service import NoteAudit
from toolfold.memory.models import CHANGES, AuditFinding
from toolfold.memory.note_vectors import NoteUse, NoteVectorizer
from toolfold.memory.service import Memory
from toolfold.memory.sql.consolidation import SqlConsolidations
from toolfold.memory.sqlite.connection import SqliteFile
from toolfold.memory.sqlite.store import SqliteStore
from toolfold.privacy.detect import find

NAMESPACE: Final = "bench"
REAL: Final = 20_000
MANY: Final = 100_000
_DAY_S: Final = 86_400.0
_BATCH: Final = 5_000
_ALL: Final = 1_000


class Opened(NamedTuple):
    """A memory and what audits it."""

    memory: Memory
    audits: NoteAudit
    uses: SqlConsolidations


def main() -> int:
    """Print recall and precision of each kind; fail where one misses its target."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plants", type=Path, metavar="FILE", help="faults, a JSON object a line")
    parser.add_argument("--notes", type=Path, metavar="FILE", help="real notes, a JSON text a line")
    parser.add_argument("--cache", type=Path, default=tempfile.gettempdir(), metavar="DIR")
    parser.add_argument("--scale", action="store_true", help="audit 100,000 notes, without vectors")
    arguments = parser.parse_args()
    embedder = Remembered(BuiltinEmbedder(), Path(arguments.cache))
    good = True
    if arguments.plants is not None:
        plants = [json.loads(line) for line in arguments.plants.read_text().splitlines() if line]
        real = _real(arguments.notes)
        good = print_table(anyio.run(measure, real, plants, embedder))
        embedder.save()
    if arguments.scale or arguments.plants is None:
        good = anyio.run(measure_scale) and good
    return 0 if good else 1


class Tally(NamedTuple):
    """What became of the plants of one kind."""

    planted: int
    found: int
    false: int

    @property
    def recall(self) -> float:
        return self.found / max(1, self.planted)

    @property
    def precision(self) -> float:
        return self.found / max(1, self.found + self.false)


def print_table(tallies: dict[str, Tally]) -> bool:
    """Print a row for each kind; tell whether all are as they must be."""
    least = TARGETS["memory-audit-recall"].limit, TARGETS["memory-audit-precision"].limit
    print(f"{'kind':16} planted   recall >= {least[0]}   precision >= {least[1]}")
    for kind, tally in tallies.items():
        print(f"{kind:16} {tally.planted:7}   {tally.recall:6.3f}          {tally.precision:.3f}")
    return all((each.recall, each.precision) >= least for each in tallies.values())


async def measure(
    real: Sequence[str], plants: Sequence[dict[str, Any]], embedder: Embedder
) -> dict[str, Tally]:
    """Store real notes, audit them, plant the faults, audit again; count by kind."""
    now = time.time()
    old = now - 200 * _DAY_S
    async with opened(embedder, now=lambda: now) as (memory, audits, uses):
        names = await _store(memory, [{"content": text, "created": old} for text in real])
        await _use(uses, names, now)
        await memory.until_ready()
        before = {finding.id for finding in await _audit(audits)}
        planted = [await _plant(memory, each, real, old) for each in plants]
        used = [each for plant, hashes in zip(plants, planted, strict=True) for each in hashes
                if plant["kind"] != "unused"]  # fmt: skip
        await _use(uses, used, now)
        await memory.until_ready()
        after = [each for each in await _audit(audits) if each.id not in before]
    return {kind: _tally(kind, plants, planted, after) for kind in CHANGES}


def _tally(
    kind: str,
    plants: Sequence[dict[str, Any]],
    planted: Sequence[Sequence[str]],
    found: Sequence[AuditFinding],
) -> Tally:
    wanted = [
        each for plant, each in zip(plants, planted, strict=True) if plant["kind"] == kind and each
    ]
    named = {name for each in found if each.kind == kind for name in each.hashes}
    own = {name for each in wanted for name in each}
    false = sum(own.isdisjoint(each.hashes) for each in found if each.kind == kind)
    return Tally(len(wanted), sum(each[-1] in named for each in wanted), false)


async def _plant(
    memory: Memory, plant: dict[str, Any], real: Sequence[str], old: float
) -> list[str]:
    """Store the notes of a fault, without whatever they would supersede by themselves."""
    fields = ("content", "created", "thread", "position", "tags")
    notes = [{key: each[key] for key in fields if key in each} for each in plant["notes"]]
    for place, note in enumerate(notes):
        note.setdefault("created", old + place * _DAY_S)
    names = [await memory.store(**note) for note in notes]
    for name in names:
        await memory.reinstate(name)
    return names


async def _store(memory: Memory, notes: list[dict[str, Any]]) -> list[str]:
    names: list[str] = []
    for start in range(0, len(notes), _BATCH):
        names += await memory.store_batch(notes[start : start + _BATCH])
    return names


async def _use(uses: SqlConsolidations, names: Sequence[str], now: float) -> None:
    await uses.add_uses([NoteUse(NAMESPACE, name, 0, 1, now) for name in names])


async def _audit(audits: NoteAudit) -> Sequence[AuditFinding]:
    return (await audits.audit(limit=_ALL)).findings


async def measure_scale() -> bool:
    """Audit 100,000 notes; count processor time, which a busy machine does not stretch."""
    async with opened(_Nearby(), now=time.time) as (memory, audits, _):
        await _store(memory, [{"content": text} for text in made_up(MANY)])
        await memory.until_ready()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        report = await audits.audit(limit=1)
        seconds = time.process_time() - start
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1_024
    print(f"{MANY:,} notes: {seconds:.1f} s of processor time, {grown:.0f} MB more memory")
    print(dict(Counter(report.counts)))
    return TARGETS["memory-audit-s"].holds(seconds) and TARGETS["memory-audit-mb"].holds(grown)


class _Nearby:
    """An embedder for scale alone: texts that share words are near each other, in no time."""

    name = "bench-words"
    dimensions = 384

    def embed(self, texts: Sequence[str]) -> Any:
        import zlib

        import numpy as np

        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in re.findall(r"\w+", text.lower()):
                row[zlib.crc32(word.encode()) % self.dimensions] += 1
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


@asynccontextmanager
async def opened(embedder: Any, *, now: Any) -> AsyncIterator[Opened]:
    """Open a memory that forgets all when it ends."""
    with tempfile.TemporaryDirectory() as directory:
        file = SqliteFile(Path(directory) / "notes.db")
        store = SqliteStore(file)
        consolidations = SqlConsolidations(file)
        meaning = NoteVectorizer(store, embedder)
        async with file.running(), store.running(), meaning.running():
            memory = Memory(store, meaning, namespace=NAMESPACE, clock=now)
            audits = NoteAudit(
                store, consolidations, namespace=NAMESPACE, find_personal=find, clock=now
            )
            yield Opened(memory, audits, consolidations)


def _real(given: Path | None) -> list[str]:
    """Return real notes: sentences that people wrote in conversations."""
    if given is not None:
        return [json.loads(line) for line in given.read_text().splitlines() if line][:REAL]
    path = DATA / "beam-dev.json.gz"
    if not path.is_file():
        return list(made_up(REAL))
    with gzip.open(path) as file:
        samples = json.load(file)
    said = (each["text"] for sample in samples for each in sample["messages"])
    sentences = (part for text in said for part in re.split(r"(?<=[.!?])\s+|\n+", text))
    return list(dict.fromkeys(each for each in sentences if 40 < len(each) < 300))[:REAL]


if __name__ == "__main__":
    sys.exit(main())
