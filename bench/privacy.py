"""Measure the detectors of personal data beside presidio-rs and plain regular expressions.

Precision and recall by kind on labelled texts, then megabytes a second in ordinary and in hostile
text. Fails where a kind is below what is promised, or where any text is read more slowly.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discovery import DATA
from stage import ROOT
from targets import limit

from toolfold.jsontypes import Json
from toolfold.privacy.detect import find
from toolfold.privacy.spans import Span
from toolfold.privacy.vault import Vault

PEER = ROOT / ".tools" / "presidio" / "bin" / "python"
LABELS = {
    "EMAIL_ADDRESS": "EMAIL",
    "CREDIT_CARD": "CARD",
    "IBAN_CODE": "IBAN",
    "US_SSN": "US_SSN",
    "IP_ADDRESS": "IP",
    "PHONE_NUMBER": "PHONE",
}
# Precision and recall. Of fewer than FEW spans, one may be missed.
PROMISED = dict.fromkeys(LABELS.values(), (0.98, 0.97)) | {"PHONE": (0.85, 0.75)}
FEW = 50
PROMISED_MB_S = limit("privacy-mb-s")

# What people write at first: no check digits, no words around.
PLAIN = {
    "EMAIL": r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}",
    "IBAN": r"\b[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}\b",
    "CARD": r"\b(?:[0-9][ -]?){13,16}\b",
    "US_SSN": r"\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b",
    "IP": r"\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b",
    "PHONE": r"\+?[0-9]?[ .-]?\(?[0-9]{3}\)?[ .-]?[0-9]{3}[ .-]?[0-9]{4}\b",
}
HOSTILE = {
    "one long number": "1",
    "digits and blanks": "1 ",
    "groups of digits": "12 34 56 ",
    "cards with a wrong digit": "4111 1111 1111 1112 ",
    "@ without end": "a@",
    "labels without end": "a.a.",
    "colons": "ab:cd:",
    "beginnings of tokens": "eyJ",
    "beginnings of keys": "SG.aaaaaaaaaaaaaaaa.",
    "beginnings of logins": "://a:",
    "beginnings of IBANs": "GB12 ",
    "names of secrets": 'password="',
    "brackets": "(1)",
    "one long word": "a",
    "phones one after another": "phone 1234567, ",
}
Spans = Sequence[Sequence[tuple[str, int, int]]]


@dataclass
class Side:
    name: str
    read: Callable[[Sequence[str]], tuple[float, Spans]]
    found: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    touched: Counter[str] = field(default_factory=Counter)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, default=DATA / "pii-dev.json")
    options.add_argument("--show", action="store_true", help="print what ours got wrong")
    arguments = options.parse_args()
    if not arguments.data.is_file():
        print(f"privacy: {arguments.data} is not there, so nothing is measured")
        return
    rows = json.loads(arguments.data.read_text(encoding="utf-8"))
    sides = [Side("toolfold", ours), Side("plain", plain)]
    if PEER.is_file():
        sides.append(Side("presidio-rs", Peer()))
    else:
        print("presidio-rs is not in .tools/presidio (`make bench` puts it there): no comparison")
    faults = [*measure(sides, rows, show=arguments.show), *measure_speed(sides, rows)]
    for fault in faults:
        print(f"! {fault}")
    sys.exit(bool(faults))


def ours(texts: Sequence[str]) -> tuple[float, Spans]:
    started = time.process_time()
    found: list[list[Span]] = [find(text) for text in texts]
    return time.process_time() - started, found


def plain(texts: Sequence[str]) -> tuple[float, Spans]:
    patterns = {kind: re.compile(pattern) for kind, pattern in PLAIN.items()}
    started = time.process_time()
    found = [
        [(kind, *match.span()) for kind, each in patterns.items() for match in each.finditer(text)]
        for text in texts
    ]
    return time.process_time() - started, found


class Peer:
    """presidio-rs, in a process and an environment of its own."""

    def __init__(self) -> None:
        script = ROOT / "bench" / "workers" / "presidio.py"
        self._process = subprocess.Popen(
            [PEER, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, texts: Sequence[str]) -> tuple[float, Spans]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(texts) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        spans = [
            [(LABELS[kind], start, end) for kind, start, end in one] for one in answer["spans"]
        ]
        return answer["seconds"], spans


def measure(sides: Sequence[Side], rows: Sequence[dict[str, Any]], *, show: bool) -> list[str]:
    """Print the table of kinds; return what is below what is promised."""
    texts = [row["full_text"] for row in rows]
    labelled = [
        {
            Span(LABELS[span["entity_type"]], span["start_position"], span["end_position"])
            for span in row["spans"]
            if span["entity_type"] in LABELS
        }
        for row in rows
    ]
    for side in sides:
        _, found = side.read(texts)
        for text, spans, wanted in zip(texts, found, labelled, strict=True):
            count(side, {Span(*span) for span in spans if span[0] in PROMISED}, wanted)
            if show and side.name == "toolfold":
                show_wrong(text, {Span(*span) for span in spans if span[0] in PROMISED}, wanted)
    total = Counter(kind for wanted in labelled for kind, _, _ in wanted)
    print(f"{'kind':8} {'spans':>5}  " + "  ".join(f"{side.name:>27}" for side in sides))
    print(f"{'':14} " + "  ".join(f"{'P':>8} {'R':>8} {'R (part)':>9}" for _ in sides))
    for kind in PROMISED:
        cells = []
        for side in sides:
            precision = side.right[kind] / side.found[kind] if side.found[kind] else 0
            recall, part = side.right[kind] / total[kind], side.touched[kind] / total[kind]
            cells.append(f"{precision:8.3f} {recall:8.3f} {part:9.3f}")
        print(f"{kind:8} {total[kind]:5}  " + "  ".join(cells))
    return [fault for kind in PROMISED for fault in below(sides[0], kind, total[kind])]


def count(side: Side, found: set[Span], wanted: set[Span]) -> None:
    for kind, _, _ in found:
        side.found[kind] += 1
    for kind, start, end in wanted:
        side.right[kind] += (kind, start, end) in found
        side.touched[kind] += any(
            kind == other and first < end and start < last for other, first, last in found
        )


def show_wrong(text: str, found: set[Span], wanted: set[Span]) -> None:
    for word, spans in (("found", found - wanted), ("missed", wanted - found)):
        for kind, start, end in spans:
            print(f"  {word} {kind}: {text[max(0, start - 40) : end + 15]!r}")


def below(side: Side, kind: str, total: int) -> list[str]:
    precision, recall = PROMISED[kind]
    faults = []
    if side.right[kind] < precision * side.found[kind]:
        faults.append(f"precision of {kind} is below {precision}")
    missed = total - side.right[kind]
    if missed > (max(1, (1 - recall) * total) if total < FEW else (1 - recall) * total):
        faults.append(f"recall of {kind} is below {recall}")
    return faults


def measure_speed(sides: Sequence[Side], rows: Sequence[dict[str, Any]]) -> list[str]:
    """Print megabytes a second; return what is read too slowly by ours."""
    labelled = "\n".join(row["full_text"] for row in rows)
    texts = {
        "the labelled texts": labelled,
        "the same as JSON": json.dumps(rows),
        "source code": (ROOT / "src/toolfold/app.py").read_text(encoding="utf-8"),
    }
    texts |= {name: unit * (40_000 // len(unit)) for name, unit in HOSTILE.items()}
    print(f"\n{'MB/s':26} " + "  ".join(f"{side.name:>12}" for side in sides))
    faults = []
    for name, text in texts.items():
        speeds = [speed(side, text) for side in sides]
        print(f"{name:26} " + "  ".join(f"{each:12.2f}" for each in speeds))
        if speeds[0] < PROMISED_MB_S:
            faults.append(f"{name}: read with {speeds[0]:.2f} MB/s, {PROMISED_MB_S:g} is promised")
    table: Json = [
        {"name": f"A{n} King", "email": f"a{n}@example.org", "id": n} for n in range(5_000)
    ]
    started = time.process_time()
    Vault().conceal(table)
    seconds = time.process_time() - started
    print(f"\na vault conceals 5,000 rows with a name, an address and a number in {seconds:.2f} s")
    return faults


def speed(side: Side, text: str) -> float:
    """Return the best of up to five times; once is enough for what takes a second."""
    times: list[float] = []
    while len(times) < 5 and sum(times) < 1:
        times.append(side.read([text])[0])
    return len(text.encode()) / 1e6 / max(min(times), 1e-6)


main()
