"""Measure search among operations of APIs, for questions that share no content word with them.

`operations.json` has the questions by specification and operation; that none shares a word with the
summary of its operation is checked here. The specifications are real ones, not in the repository.
"""

import argparse
import json
import re
import statistics
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
from discovery import (
    DATA,
    SEED,
    SHORT_QUERIES,
    STOP_WORDS,
    Labelled,
    Remembered,
    bm25,
    interval,
    ranked,
)
from targets import TARGETS

from toolfold.catalog.known_tools import KnownTools
from toolfold.catalog.names import words
from toolfold.catalog.openapi.operations import read_api
from toolfold.catalog.openapi.text import parse_text
from toolfold.catalog.search.discovery import ToolIndex
from toolfold.catalog.search.vectors import ToolVectors, VectorTable
from toolfold.catalog.tool import Tool
from toolfold.embedding import BuiltinEmbedder

QUESTIONS: Final = Path(__file__).with_suffix(".json")
MANY: Final = 10_000
FOUND_AT: Final = 5
_ENDING: Final = re.compile(r"(?:ies|es|s|ing|ed|e|y)$")


def main() -> int:
    """Print both figures; fail where one is not as promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, metavar="DIR", help="specifications")
    parser.add_argument("--cache", type=Path, default=tempfile.gettempdir(), metavar="DIR")
    arguments = parser.parse_args()
    archive = arguments.data / "openapi.tar.gz"
    if not archive.is_file():
        print("operations: skipped, the specifications are not on this machine")
        return 0
    embedder = BuiltinEmbedder()
    remembered = Remembered(embedder, Path(arguments.cache))
    labelled = load(archive)
    gain = measure(labelled, remembered)
    remembered.save()
    took_ms = search_ms(list(islice(many(archive), MANY)), embedder)
    print(f"search among {MANY:,} operations: {took_ms:.1f} ms of processor time")
    figures = {"operations-gain": gain, "operations-search-ms": took_ms}
    missed = [name for name, value in figures.items() if not TARGETS[name].holds(value)]
    print("\n".join(f"{name} is not as it must be" for name in missed) or "As they must be.")
    return 1 if missed else 0


def load(archive: Path) -> Labelled:
    """Return the operations of the specifications that are asked about, and the questions."""
    asked = json.loads(QUESTIONS.read_text())
    tools: list[Tool] = []
    queries: list[tuple[str, set[int]]] = []
    for name, document in documents(archive, asked):
        found = operations(name.partition(".")[0].replace("-", "_"), document)
        numbers = {tool.listed.name: len(tools) + at for at, tool in enumerate(found)}
        tools += found
        for operation, questions in asked[name].items():
            for question in questions:
                check(question, tools[numbers[operation]])
                queries.append((question, {numbers[operation]}))
    texts = [f"{_spaced(tool.listed.name)}: {tool.listed.description}" for tool in tools]
    return Labelled("operations", tools, texts, queries, 0, 0)


def check(question: str, tool: Tool) -> None:
    """See that a question shares no content word with the summary of its operation."""
    summary = re.split(r"(?<=[.!?]) ", tool.listed.description, maxsplit=1)[0]
    if shared := _content(question) & _content(summary):
        raise SystemExit(f"{question!r} shares {sorted(shared)} with {summary!r}.")


def _content(text: str) -> set[str]:
    said = re.findall(r"[a-z0-9]+", text.lower())
    return {_ENDING.sub("", word) or word for word in said if word not in STOP_WORDS}


def documents(archive: Path, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Give specifications of the archive, in the order of its names."""
    wanted = set(names)
    with tarfile.open(archive) as opened:
        for member in sorted(opened.getmembers(), key=lambda each: each.name):
            name = Path(member.name).name
            if name in wanted and (file := opened.extractfile(member)) is not None:
                yield name, file.read()


def many(archive: Path) -> Iterator[Tool]:
    """Give operations of all specifications, each API a server of its own."""
    with tarfile.open(archive) as opened:
        members = sorted(opened.getmembers(), key=lambda each: each.name)
        for number, member in enumerate(members):
            if (file := opened.extractfile(member)) is not None and member.size < 3_000_000:
                yield from operations(f"api_{number}", file.read())


def operations(module: str, content: bytes) -> list[Tool]:
    """Return the operations of a specification as the catalog lists them."""
    api = read_api(parse_text(content), variables={})
    return list(KnownTools({module: api.tools}).functions(module).values())


def measure(labelled: Labelled, embedder: Remembered) -> float:
    """Print how many are found by BM25 and by us; return the difference in points."""
    index = ToolIndex(labelled.tools)
    texts = VectorTable().missing(index.tools)
    table = VectorTable().extended(texts, embedder.embed([text.text for text in texts]))
    meaning = index.with_vectors(ToolVectors(index.tools, table))
    queries = [query for query, _ in labelled.queries]
    rankings = {
        "BM25": bm25(labelled.texts, queries),
        "ours, words only": ranked(index, labelled, None),
        "ours, with vectors": ranked(meaning, labelled, embedder),
    }
    found = {
        name: np.array(
            [
                bool(wanted & set(ranking[:FOUND_AT]))
                for ranking, (_, wanted) in zip(each, labelled.queries, strict=True)
            ],
            float,
        )
        for name, each in rankings.items()
    }
    print(f"{len(labelled.tools):,} operations, {len(queries)} questions, R@{FOUND_AT}:")
    for name, hits in found.items():
        print(f"  {name:20}{hits.mean():.3f}  {interval(hits - found['BM25'])} against BM25")
    return 100 * float((found["ours, with vectors"] - found["BM25"]).mean())


def search_ms(tools: list[Tool], embedder: BuiltinEmbedder) -> float:
    """Return the processor time of a search by words and meaning: the median of many."""
    assert len(tools) == MANY, len(tools)
    index = ToolIndex(tools)
    texts = VectorTable().missing(index.tools)
    random = np.random.default_rng(SEED)
    rows = random.standard_normal((len(texts), embedder.dimensions)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)  # what they mean changes no time
    meaning = index.with_vectors(ToolVectors(index.tools, VectorTable().extended(texts, rows)))
    embedder.embed(SHORT_QUERIES)
    times = []
    for query in SHORT_QUERIES * 3:
        began = time.process_time()
        meaning.search(query, limit=5, embed=embedder.embed)
        times.append(time.process_time() - began)
    return statistics.median(times) * 1_000


def _spaced(name: str) -> str:
    return " ".join(words(name)) or name


if __name__ == "__main__":
    sys.exit(main())
