"""The data of the stage: an observatory with database, files, graph and repository."""

import json
import random
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

TELESCOPES = ("Kestrel", "Merlin", "Osprey", "Harrier")
OBSERVERS = ("Ines", "Jonas", "Keiko", "Luca", "Mara", "Noor")
TARGETS = ("M31", "M42", "M45", "NGC 7000", "Vega", "Altair", "Deneb", "Mizar", "Saturn", "Titan")
_RUNS = 900


def observations() -> list[dict[str, Any]]:
    """Return the rows of the table `observations`."""
    dice = random.Random(2026)  # data, not secrets
    return [
        {
            "id": number,
            "telescope": dice.choice(TELESCOPES),
            "observer": dice.choice(OBSERVERS),
            "target": dice.choice(TARGETS),
            "minutes": dice.randrange(5, 120),
            "seeing": round(dice.uniform(0.6, 3.2), 2),
            "cloud": round(dice.random(), 2),
            "night": f"2026-{dice.randrange(1, 10):02}-{dice.randrange(1, 28):02}",
        }
        for number in range(1, _RUNS + 1)
    ]


def calibration() -> list[tuple[str, float, float]]:
    """Return the rows of `calibration.csv`: the lamp, the offset, the drift."""
    dice = random.Random(7)
    lamps = ("neon", "argon", "xenon")
    return [
        (dice.choice(lamps), round(dice.gauss(0, 2), 3), round(dice.random(), 3))
        for _ in range(240)
    ]


def logs() -> dict[str, list[str]]:
    """Return the lines of each log."""
    dice = random.Random(11)
    levels = ("INFO", "INFO", "INFO", "WARN", "ERROR")
    return {
        f"dome-{number}.log": [
            f"2026-05-{number:02}T{hour % 24:02}:00 {dice.choice(levels)} shutter step {hour}"
            for hour in range(60 + 40 * number)
        ]
        for number in range(1, 6)
    }


REPORTS = {
    "january.md": "# Clear nights in January\n\nEleven of them.\n",
    "february.draft.md": "# Snow on the dome\n\nUnfinished.\n",
    "march.md": "# A new mirror for Osprey\n\nFitted on the 9th.\n",
    "april.draft.md": "# Guiding errors\n\nUnfinished.\n",
    "may.md": "# The comet campaign\n\nForty exposures.\n",
    "june.draft.md": "# Short nights\n\nUnfinished.\n",
}
GRAPH: list[dict[str, Any]] = [
    *(
        {"type": "entity", "name": name, "entityType": "telescope", "observations": [said]}
        for name, said in zip(
            TELESCOPES, ("1.2 m", "0.8 m", "2.0 m, new mirror", "0.5 m"), strict=True
        )
    ),
    *(
        {"type": "entity", "name": name, "entityType": "star", "observations": []}
        for name in ("Vega", "Altair", "Deneb", "Mizar", "Alcyone", "Electra", "Maia")
    ),
    {"type": "entity", "name": "Pleiades", "entityType": "cluster", "observations": ["M45"]},
    *(
        {"type": "relation", "from": name, "to": "Pleiades", "relationType": "member_of"}
        for name in ("Alcyone", "Electra", "Maia")
    ),
    {"type": "relation", "from": "Vega", "to": "Altair", "relationType": "obsolete_link"},
    {"type": "relation", "from": "Deneb", "to": "Altair", "relationType": "obsolete_link"},
    {"type": "relation", "from": "Kestrel", "to": "Vega", "relationType": "guides_on"},
]
COMMITS = (
    ("Ines", "Add the guider"),
    ("Jonas", "Fix drift of the guider"),
    ("Ines", "Calibrate neon lamps"),
    ("Keiko", "Park Harrier in wind"),
    ("Ines", "Log the seeing"),
    ("Jonas", "Close the dome at dawn"),
)


def build(root: Path) -> None:
    """Write everything below `root`."""
    _database(root / "observatory.db")
    _files(root / "papers")
    (root / "graph.jsonl").write_text("\n".join(map(json.dumps, GRAPH)), encoding="utf-8")
    _repository(root / "control")


def _database(path: Path) -> None:
    rows = observations()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE telescopes (name TEXT PRIMARY KEY, metres REAL)")
        database.executemany(
            "INSERT INTO telescopes VALUES (?, ?)",
            zip(TELESCOPES, (1.2, 0.8, 2.0, 0.5), strict=True),
        )
        columns = ", ".join(rows[0])
        database.execute(f"CREATE TABLE observations ({columns})")
        database.executemany(
            f"INSERT INTO observations VALUES ({', '.join(f':{name}' for name in rows[0])})",
            rows,
        )
    database.close()


def _files(root: Path) -> None:
    for name, text in REPORTS.items():
        _write(root / "reports" / name, text)
    for name, lines in logs().items():
        _write(root / "logs" / name, "\n".join(lines) + "\n")
    rows = [f"{lamp},{offset},{drift}" for lamp, offset, drift in calibration()]
    _write(root / "calibration.csv", "\n".join(["lamp,offset,drift", *rows]) + "\n")
    settings = {"camera": {"gain": 8, "cooling": -20}, "guider": {"rate": 0.5}}
    _write(root / "settings.json", json.dumps(settings, indent=2))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _repository(root: Path) -> None:
    root.mkdir()

    def git(*words: str) -> None:
        subprocess.run(["git", "-C", root, *words], check=True, capture_output=True)

    git("init", "-b", "main")
    for number, (author, message) in enumerate(COMMITS):
        _write(root / f"part_{number % 3}.py", f"STEP = {number}\n")
        git("add", ".")
        who = ["-c", f"user.name={author}", "-c", f"user.email={author.lower()}@example.org"]
        git(*who, "commit", "-m", message)
    git("branch", "winter")
    _write(root / "part_1.py", "STEP = 99\n")
