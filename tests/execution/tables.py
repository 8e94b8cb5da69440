"""Read the tables of guest code beside this file."""

import re
from pathlib import Path

_ENTRY = re.compile(r"^=== (.*)\n((?s:.*?))(?=^=== |\Z)", re.MULTILINE)
_BEFORE = re.compile(r"^>>> before, line (\d+): (.*)\n", re.MULTILINE)
_RUN = re.compile(r"^>>> run: (.*)\n", re.MULTILINE)
_CALLS = re.compile(r"^(.*) \((\d+)\)$")

Table = list[tuple[str, str]]


def entries(file: str) -> Table:
    """Return the names and texts of a table."""
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    found = _ENTRY.findall(text)
    assert len({name for name, _ in found}) == len(found), "two entries have one name"
    return found


def correct_code() -> list[tuple[str, str, int]]:
    """Return names, code, and how many calls it completes."""
    rows = []
    for heading, code in entries("correct.txt"):
        match = _CALLS.match(heading)
        assert match, heading
        rows.append((match[1], code.rstrip("\n"), int(match[2])))
    return rows


def mistakes_caught_before() -> list[tuple[str, str, int, list[str]]]:
    """Return names, code, the line of the mistake, and words of the answer."""
    return [
        (name, text[: match.start()], int(match[1]), match[2].split(" | "))
        for name, text in entries("mistakes.txt")
        if (match := _BEFORE.search(text))
    ]


def mistakes_caught_in_the_run() -> list[tuple[str, str, list[str]]]:
    """Return names, code, and words of the answer."""
    return [
        (name, text[: match.start()], match[1].split(" | "))
        for name, text in entries("mistakes.txt")
        if (match := _RUN.search(text))
    ]
