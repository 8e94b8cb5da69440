"""The tasks: what an agent is told, the answer that is right, and the state that is left."""

import json
import sqlite3
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import observatory as data

_ROWS = data.observations()


@dataclass(frozen=True, slots=True)
class Task:
    """One task."""

    text: str
    answer: Any
    state: Callable[[Path], bool] = lambda _root: True
    """Whether what the task wanted done was done."""


def _query(root: Path, statement: str) -> list[Any]:
    database = sqlite3.connect(root / "observatory.db")
    try:
        return database.execute(statement).fetchall()
    except sqlite3.Error:
        return []
    finally:
        database.close()


def _graph(root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (root / "graph.jsonl").read_text().splitlines() if line]


def _git(root: Path, *words: str) -> str:
    found = subprocess.run(
        ["git", "-C", root / "control", *words],
        check=True,
        capture_output=True,
        text=True,
    )
    return found.stdout


def _minutes(key: str) -> list[tuple[str, int]]:
    total: Counter[str] = Counter()
    for row in _ROWS:
        total[row[key]] += row["minutes"]
    return sorted(total.items(), key=lambda each: (-each[1], each[0]))


def _means() -> dict[str, float]:
    by_target = defaultdict(list)
    for row in _ROWS:
        by_target[row["target"]].append(row["minutes"])
    return {
        target: round(sum(found) / len(found), 1)
        for target, found in by_target.items()
        if len(found) >= 90
    }


def _lamp_means() -> dict[str, float]:
    lamps = defaultdict(list)
    for lamp, offset, _ in data.calibration():
        lamps[lamp].append(offset)
    return {lamp: round(sum(found) / len(found), 3) for lamp, found in lamps.items()}


_CLOUDED = [row["id"] for row in _ROWS if row["cloud"] > 0.9]
_COUNTS = Counter(row["target"] for row in _ROWS)
_TOP = [name for name, _ in sorted(_COUNTS.items(), key=lambda each: (-each[1], each[0]))[:3]]
_LOGS = data.logs()
_DRAFTS = sorted(name for name in data.REPORTS if ".draft." in name)
_TITLES = [data.REPORTS[name].split("\n")[0].removeprefix("# ") for name in sorted(data.REPORTS)]


def _has_flags(root: Path) -> bool:
    return sorted(row[0] for row in _query(root, "SELECT id FROM clouded")) == _CLOUDED


def _has_moved(root: Path) -> bool:
    archived = sorted(path.name for path in (root / "papers" / "archive").glob("*"))
    left = [path.name for path in (root / "papers" / "reports").glob("*.draft.md")]
    return archived == _DRAFTS and not left


def _has_gain(root: Path) -> bool:
    wanted = {"camera": {"gain": 12, "cooling": -20}, "guider": {"rate": 0.5}}
    try:
        return bool(json.loads((root / "papers" / "settings.json").read_text()) == wanted)
    except (OSError, ValueError):
        return False


def _has_titles(root: Path) -> bool:
    path = root / "papers" / "titles.txt"
    return path.exists() and path.read_text().split("\n")[: len(_TITLES)] == _TITLES


def _said_of(root: Path, name: str) -> list[str]:
    found = [each for each in _graph(root) if each.get("name") == name]
    return list(found[0]["observations"]) if found else []


def _has_counts(root: Path) -> bool:
    counts = Counter(row["telescope"] for row in _ROWS)
    return all(f"{counts[name]} observations" in _said_of(root, name) for name in counts)


def _has_top(root: Path) -> bool:
    path = root / "papers" / "top.json"
    try:
        return bool(json.loads(path.read_text()) == [[name, _COUNTS[name]] for name in _TOP])
    except (OSError, ValueError):
        return False


TASKS = (
    Task(
        "How many observations of the telescope Kestrel have a seeing below 1.2? Answer a number.",
        sum(row["telescope"] == "Kestrel" and row["seeing"] < 1.2 for row in _ROWS),
    ),
    Task(
        "Which three observers have the most minutes altogether? Answer a list of [name, minutes], "
        "the most first.",
        [list(each) for each in _minutes("observer")[:3]],
    ),
    Task(
        "Of every target with at least 90 observations, the mean of the minutes, rounded to one "
        "decimal. Answer an object from target to mean.",
        _means(),
    ),
    Task(
        "Add a telescope named Falcon with 1.6 metres to the database. Answer how many telescopes "
        "there are then.",
        5,
        lambda root: ("Falcon", 1.6) in _query(root, "SELECT name, metres FROM telescopes"),
    ),
    Task(
        "Make a table `clouded` with one column `id`, holding the ids of all observations with a "
        "cloud above 0.9. Answer how many there are.",
        len(_CLOUDED),
        _has_flags,
    ),
    Task(
        "Is there a table `weather` in the database? Answer true or false.",
        False,
    ),
    Task(
        "How many lines with WARN does each log in papers/logs have? Answer an object from file "
        "name to number.",
        {name: sum("WARN" in line for line in lines) for name, lines in _LOGS.items()},
    ),
    Task(
        "Which log in papers/logs is the largest in bytes? Answer its file name.",
        max(_LOGS, key=lambda name: len("\n".join(_LOGS[name]))),
    ),
    Task(
        "Set camera.gain to 12 in papers/settings.json and leave the rest as it is. Answer the "
        "gain that it had before.",
        8,
        _has_gain,
    ),
    Task(
        "Move every file in papers/reports that ends in .draft.md to papers/archive (make it). "
        "Answer the sorted names that you moved.",
        _DRAFTS,
        _has_moved,
    ),
    Task(
        "Of papers/calibration.csv, the mean offset for each lamp, rounded to three decimals. "
        "Answer an object from lamp to mean.",
        _lamp_means(),
    ),
    Task(
        "Write papers/titles.txt with the titles (first lines without `# `) of the six reports "
        "that papers/reports had at first (drafts among them, wherever they are now), a line each, "
        "in the order of their file names. Answer the number of lines.",
        len(_TITLES),
        _has_titles,
    ),
    Task(
        "How many stars (entities of type star) does the knowledge graph have? Answer a number.",
        7,
    ),
    Task(
        "Which entities are member_of Pleiades in the knowledge graph? Answer a sorted list.",
        ["Alcyone", "Electra", "Maia"],
    ),
    Task(
        "Note at the entity Osprey in the knowledge graph the observation `needs recalibration`. "
        "Answer how many observations it has then.",
        2,
        lambda root: "needs recalibration" in _said_of(root, "Osprey"),
    ),
    Task(
        "Delete every relation of type obsolete_link from the knowledge graph. Answer how many "
        "you deleted.",
        2,
        lambda root: (
            not [each for each in _graph(root) if each.get("relationType") == "obsolete_link"]
            and len([each for each in _graph(root) if each["type"] == "relation"]) == 4
        ),
    ),
    Task(
        "How many commits of Ines does the git repository have on main? Answer a number.",
        3,
    ),
    Task(
        "Which file of the git repository has changes that are not staged? Answer its name.",
        "part_1.py",
    ),
    Task(
        "Create a branch `night-shift` from main in the git repository. Answer the sorted names "
        "of all local branches.",
        ["main", "night-shift", "winter"],
        lambda root: "night-shift" in _git(root, "branch"),
    ),
    Task(
        "It is 14:30 in Europe/Zurich. What time is it in Asia/Tokyo on the same day, as the time "
        "server converts it? Answer HH:MM.",
        None,  # depends on the season: see `time_in_tokyo`
    ),
    Task(
        "What is 17.5 + 24, by the sum tool of the server `everything`? Answer a number.",
        41.5,
    ),
    Task(
        "For each telescope that occurs in the observations of the database, note at the entity of "
        "that name in the knowledge graph `N observations`, with its number. Answer the sum of the "
        "numbers.",
        len(_ROWS),
        _has_counts,
    ),
    Task(
        "Write papers/top.json with the three targets that have the most observations, as a JSON "
        "list of [target, number], the most first, by name where equal. Answer the targets.",
        _TOP,
        _has_top,
    ),
    Task(
        "Which observer has the fewest minutes with the telescope Osprey, and how many commits "
        "has an author of that name in the git repository? Answer [name, commits].",
        None,  # see `least_with_osprey`
    ),
)


def time_in_tokyo() -> str:
    """Return the right answer on the day of the measurement."""
    from datetime import datetime
    from zoneinfo import ZoneInfo

    here = datetime.now(ZoneInfo("Europe/Zurich")).replace(hour=14, minute=30)
    return here.astimezone(ZoneInfo("Asia/Tokyo")).strftime("%H:%M")


def least_with_osprey() -> list[Any]:
    """Return the right answer of the last task."""
    total = Counter(dict.fromkeys(data.OBSERVERS, 0))
    for row in _ROWS:
        if row["telescope"] == "Osprey":
            total[row["observer"]] += row["minutes"]
    name = min(sorted(total), key=lambda each: total[each])
    return [name, sum(author == name for author, _ in data.COMMITS)]


def right_answers() -> list[Any]:
    """Return the answers in the order of the tasks."""
    computed = {19: time_in_tokyo(), 23: least_with_osprey()}
    return [computed.get(number, task.answer) for number, task in enumerate(TASKS)]
