"""Measure search beside BM25 and the plain hybrid, on labelled queries; fail where it must lead.

The baselines are computed in the same run: SQLite's FTS5 (porter, stop words out, OR query), and
its fusion by reciprocal rank (k = 10) with our embedder over the same text.
"""

import argparse
import hashlib
import json
import os
import re
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stage import ROOT

from toolfold.catalog.names import function_names, module_names
from toolfold.catalog.search.discovery import ToolIndex
from toolfold.catalog.search.vectors import EmbeddingText, ToolVectors, VectorTable
from toolfold.catalog.tool import ListedTool, Tool
from toolfold.embedding import BuiltinEmbedder, Embedder

DATA = ROOT.parent / "shared" / "data"
FILES = ("livemcp-tools", "livemcp-tasks-dev", "metatool-tools", "metatool-queries-dev")
MEASURES = ("R@5", "R@10", "MRR")
DEPTH = 100
RESAMPLES = 2_000
SEED = 7

STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a an the of to in on for and or is are was were be been do does did what when where who
        whom which how why with at by from as it its this that these those i you he she they we my
        your his her their our me him them us has have had will would can could should about into
        than then there so if not no any some""",
    )
)
SHORT_QUERIES = (
    "open an issue",
    "send a message to a channel",
    "list files in a folder",
    "create a pull request",
    "search the web",
    "read a spreadsheet",
    "take a screenshot of the page",
    "what time is it in Tokyo",
    "add a comment to a ticket",
    "run a SQL query",
    "delete a calendar event",
    "upload a file to drive",
)


@dataclass(frozen=True)
class Labelled:
    name: str
    tools: list[Tool]
    texts: list[str]  # what the baselines read of each tool
    queries: list[tuple[str, set[int]]]
    must_gain: float  # in R@10, over the better baseline
    may_lose: float  # in any measure


class Remembered:
    """An embedder that keeps what it embedded in a file between runs of this benchmark."""

    def __init__(self, embedder: Embedder, directory: Path) -> None:
        self._embedder = embedder
        self.name, self.dimensions = embedder.name, embedder.dimensions
        model = hashlib.sha256(embedder.name.encode()).hexdigest()[:12]
        self._path = directory / f"toolfold-bench-vectors-{model}.npz"
        stored = np.load(self._path) if self._path.is_file() else {"keys": [], "rows": []}
        self._rows = dict(zip(list(stored["keys"]), stored["rows"], strict=True))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        keys = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        wanted = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._rows}
        rows = self._embedder.embed(list(wanted.values()))
        self._rows.update(zip(wanted, rows, strict=True))
        return np.array([self._rows[key] for key in keys], np.float32)

    def save(self) -> None:
        np.savez(self._path, keys=np.array(list(self._rows)), rows=np.array([*self._rows.values()]))


def main() -> int:
    """Print the tables; fail where the ranking is not as much better as promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, metavar="DIR", help="labelled queries")
    parser.add_argument("--cache", type=Path, default=tempfile.gettempdir(), metavar="DIR")
    arguments = parser.parse_args()
    if not all((arguments.data / f"{name}.json").is_file() for name in FILES):
        print("discovery: skipped, the labelled queries are not on this machine")
        return 0
    embedder = BuiltinEmbedder()
    remembered = Remembered(embedder, Path(arguments.cache))
    faults = [fault for each in load(arguments.data) for fault in measure(each, remembered)]
    remembered.save()
    if (arguments.data / "catalogue").is_dir():
        print_times(catalogue(arguments.data), embedder)
    print("\n".join(["", *faults]) if faults else "\nBetter by as much as promised, worse on none.")
    return 1 if faults else 0


def load(data: Path) -> list[Labelled]:
    """Return the three sets: tasks, their steps, and single-tool queries."""
    listed = [
        (server["name"], tool)
        for server in _read(data / "livemcp-tools.json")
        for part in server["tools"].values()
        for tool in part.get("tools") or []
    ]
    tools = make_tools(listed)
    texts = [_baseline_text(server, tool) for server, tool in listed]
    numbers: dict[str, set[int]] = {}
    for number, (_, tool) in enumerate(listed):
        numbers.setdefault(tool["name"], set()).add(number)
    annotated = _read(data / "livemcp-tasks-dev.json")
    described = _read(data / "metatool-tools.json")
    plugins = [("", {"name": name, "description": text}) for name, text in described.items()]
    places = {name: place for place, name in enumerate(described)}
    asked = [
        (each["Query"], {places[each["Tool"]]})
        for each in _read(data / "metatool-queries-dev.json")
        if each["Tool"] in places
    ]
    return [
        Labelled("LiveMCP tasks", tools, texts, list(_tasks(annotated, numbers)), 0.025, 0.03),
        Labelled("LiveMCP steps", tools, texts, list(_steps(annotated, numbers)), -0.03, 0.03),
        Labelled(
            "MetaTool",
            make_tools(plugins),
            [f"{_split(tool['name'])}: {tool['description']}" for _, tool in plugins],
            asked,
            0.015,
            0.01,
        ),
    ]


def catalogue(data: Path) -> list[Tool]:
    """Return the tools of all recorded servers."""
    recorded = [_read(path) for path in sorted((data / "catalogue").glob("*.json"))]
    return make_tools((each["server"], tool) for each in recorded for tool in each["tools"])


def make_tools(listed: Iterable[tuple[str, dict[str, Any]]]) -> list[Tool]:
    """Return each listed tool of a server under the names that guest code uses."""
    listed = list(listed)
    modules = module_names(server for server, _ in listed)
    functions = {
        server: function_names(tool["name"] for owner, tool in listed if owner == server)
        for server in modules
    }
    return [
        Tool(
            server=server,
            module=modules[server],
            function=functions[server][tool["name"]],
            listed=ListedTool(
                name=tool["name"],
                description=tool.get("description") or "",
                input_schema=tool.get("inputSchema") or {"type": "object"},
            ),
        )
        for server, tool in listed
    ]


def measure(labelled: Labelled, embedder: Remembered) -> list[str]:
    """Print one set's table; return in words what falls short of the promise."""
    queries = [query for query, _ in labelled.queries]
    by_words = bm25(labelled.texts, queries)
    likeness = embedder.embed(queries) @ embedder.embed(labelled.texts).T
    by_vectors = np.argsort(-likeness, axis=1, kind="stable")[:, :DEPTH].tolist()
    index = ToolIndex(labelled.tools)
    meaning = index.with_vectors(ToolVectors(index.tools, _embedded(index.tools, embedder)))
    rankings = {
        "BM25": by_words,
        "plain hybrid": [fused(*pair) for pair in zip(by_vectors, by_words, strict=True)],
        "ours, words only": ranked(index, labelled, None),
        "ours, with vectors": ranked(meaning, labelled, embedder),
    }
    results = {name: _measured(found, labelled.queries) for name, found in rankings.items()}
    print(f"\n{labelled.name}: {len(labelled.tools)} tools, {len(queries)} queries")
    print(f"{'':20}" + "".join(f"{name:>8}" for name in MEASURES))
    for name, result in results.items():
        print(f"{name:20}" + "".join(f"{value:8.3f}" for value in result.mean(axis=0)))
    return _compared(labelled, results)


def _compared(labelled: Labelled, results: dict[str, NDArray[np.float64]]) -> list[str]:
    baselines = [results["BM25"], results["plain hybrid"]]
    faults = []
    for place, name in enumerate(MEASURES):
        better = max((each[:, place] for each in baselines), key=lambda column: column.mean())
        gains = {
            ours: results[ours][:, place] - better
            for ours in ("ours, words only", "ours, with vectors")
        }
        shown = ";  ".join(f"{ours} {interval(gain)}" for ours, gain in gains.items())
        print(f"{name:5} against the better baseline:  {shown}")
        gain = gains["ours, with vectors"].mean()
        least = labelled.must_gain if name == "R@10" else -labelled.may_lose
        if gain < least:
            faults.append(f"{labelled.name}: {name} is {gain:+.3f}, not {least:+.3f} or more.")
    return faults


def interval(gain: NDArray[np.float64]) -> str:
    """Write a mean difference with its paired bootstrap interval of 95 %."""
    low, high = bounds(gain)
    return f"{gain.mean():+.3f} ({low:+.3f} … {high:+.3f})"


def bounds(gain: NDArray[np.float64]) -> tuple[float, float]:
    """Return the paired bootstrap interval of 95 % of a mean difference."""
    random = np.random.default_rng(SEED)
    picks = random.integers(0, len(gain), (RESAMPLES, len(gain)))
    low, high = np.quantile(gain[picks].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def bm25(texts: Sequence[str], queries: Sequence[str]) -> list[list[int]]:
    """Rank `texts` for each query with SQLite's full-text search."""
    connection = sqlite3.connect(":memory:")
    connection.execute("create virtual table f using fts5(t, tokenize='porter unicode61')")
    connection.executemany("insert into f(rowid, t) values (?, ?)", enumerate(texts))
    found = []
    for query in queries:
        spoken = re.findall(r"\w+", query.lower())
        telling = [word for word in spoken if word not in STOP_WORDS] or spoken
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(telling))
        rows = connection.execute(
            "select rowid from f where f match ? order by bm25(f) limit ?", (match, DEPTH)
        )
        found.append([row[0] for row in rows] if match else [])
    return found


def fused(*rankings: Sequence[int]) -> list[int]:
    """Fuse by reciprocal rank, k = 10."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for place, number in enumerate(ranking, start=1):
            scores[number] = scores.get(number, 0) + 1 / (10 + place)
    return sorted(scores, key=lambda number: -scores[number])[:DEPTH]


def ranked(index: ToolIndex, labelled: Labelled, embedder: Remembered | None) -> list[list[int]]:
    """Rank the tools for each query by our search."""
    numbers = {id(tool): number for number, tool in enumerate(labelled.tools)}
    embed = embedder.embed if embedder else None
    results = [index.search(query, limit=DEPTH, embed=embed) for query, _ in labelled.queries]
    return [[numbers[id(hit)] for hit in result.hits] for result in results]


def print_times(tools: list[Tool], embedder: Embedder) -> None:
    """Print how long building, loading and searching take, over real and synthetic tools."""
    print(f"\nTimes in ms, load {os.getloadavg()[0]:.1f}; searches: p50 of short queries, warm")
    print(f"{'':26}{'build':>8}{'load':>8}{'words':>8}{'vectors':>9}{'of it embedding':>17}")
    for count, set_ in ((len(tools), tools), (10_000, synthetic(tools, 10_000))):
        print(f"{count:>6} tools{'':14}" + "".join(_times(set_, embedder)))


def synthetic(tools: Sequence[Tool], count: int) -> list[Tool]:
    """Return as many tools as asked, each a real one under another server and name."""
    listed = []
    for number in range(count):
        real, turn = tools[number % len(tools)], number // len(tools)
        schema = real.listed.input_schema
        description = f"{real.listed.description} Variant {turn}."
        tool = {"name": f"{real.listed.name}_{turn}", "description": description}
        listed.append((f"{real.server}-{turn}", {**tool, "inputSchema": schema}))
    return make_tools(listed)


def _times(tools: list[Tool], embedder: Embedder) -> list[str]:
    started = time.perf_counter()
    index = ToolIndex(tools)
    built = time.perf_counter() - started
    stored = json.dumps(index.to_json())
    loads = _median_ms(lambda _: ToolIndex.from_json(json.loads(stored)), range(5))
    random = np.random.default_rng(SEED)
    texts = VectorTable().missing(index.tools)
    rows = random.standard_normal((len(texts), embedder.dimensions)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    meaning = index.with_vectors(ToolVectors(index.tools, VectorTable().extended(texts, rows)))
    queries = SHORT_QUERIES * 5
    embedder.embed(SHORT_QUERIES)
    words = _median_ms(lambda query: index.search(query, limit=5), queries)
    vectors = _median_ms(
        lambda query: meaning.search(query, limit=5, embed=embedder.embed), queries
    )
    embedding = _median_ms(lambda query: embedder.embed([query]), queries)
    return [
        *(f"{value:8.1f}" for value in (built * 1_000, loads, words)),
        f"{vectors:9.1f}{embedding:17.1f}",
    ]


def _median_ms(work: Callable[[Any], object], arguments: Iterable[Any]) -> float:
    times = []
    for argument in arguments:
        started = time.perf_counter()
        work(argument)
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1_000


def _embedded(tools: Sequence[Tool], embedder: Remembered) -> VectorTable:
    texts: list[EmbeddingText] = VectorTable().missing(tools)
    return VectorTable().extended(texts, embedder.embed([text.text for text in texts]))


def _measured(
    rankings: Sequence[Sequence[int]], queries: Sequence[tuple[str, set[int]]]
) -> NDArray[np.float64]:
    rows = []
    for ranking, (_, wanted) in zip(rankings, queries, strict=True):
        places = [place for place, number in enumerate(ranking, start=1) if number in wanted]
        recalls = [sum(place <= depth for place in places) / len(wanted) for depth in (5, 10)]
        rows.append([*recalls, 1 / places[0] if places else 0.0])
    return np.array(rows)


def _tasks(
    annotated: Iterable[dict[str, Any]], numbers: dict[str, set[int]]
) -> Iterable[tuple[str, set[int]]]:
    for task in annotated:
        named = _lines(task["Annotator Metadata"]["Tools"])
        wanted = set().union(*(numbers.get(name, set()) for name in named))
        if wanted:
            yield task["Question"], wanted


def _steps(
    annotated: Iterable[dict[str, Any]], numbers: dict[str, set[int]]
) -> Iterable[tuple[str, set[int]]]:
    for task in annotated:
        notes = task["Annotator Metadata"]
        steps, named = _lines(notes["Steps"]), _lines(notes["Tools"])
        if len(steps) == len(named):
            for step, name in zip(steps, named, strict=True):
                if name in numbers:
                    yield step, numbers[name]


def _lines(numbered: str) -> list[str]:
    lines = (re.sub(r"^\s*\d+\s*[.)]\s*", "", line).strip() for line in numbered.splitlines())
    return [line for line in lines if line]


def _baseline_text(server: str, tool: dict[str, Any]) -> str:
    description = (tool.get("description") or "")[:600]
    return f"{_split(tool['name'])}: {description} (server: {_split(server)})"


def _split(name: str) -> str:
    return re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name).replace("_", " ").replace("-", " ")


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    raise SystemExit(main())
