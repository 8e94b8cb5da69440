"""The corpus: programs as agents write them, each a file that ends in what it must give.

    #: prints
    #| what it writes, line by line
    #: value
    #| the value of its last line, as JSON

A snippet that lacks one of the two prints nothing, or has no value.
"""

import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
EXTRAS = ("numpy", "pandas")


@dataclass(frozen=True, slots=True)
class Snippet:
    """One program and what it must give."""

    name: str
    path: Path
    code: str
    output: str
    value: Any

    @property
    def missing_extra(self) -> str | None:
        """The package that this snippet needs and this environment lacks."""
        topic = self.name.partition("/")[0]
        absent = topic in EXTRAS and importlib.util.find_spec(topic) is None
        return topic if absent else None


def snippets() -> list[Snippet]:
    """Return the whole corpus, by name."""
    root = HERE / "snippets"
    return [_read(path, root) for path in sorted(root.rglob("*.py"))]


def run_plainly(chosen: list[Snippet]) -> list[dict[str, Any]]:
    """Return what the interpreter itself makes of each, without any sandbox."""
    command = [sys.executable, "-I", str(HERE / "plain.py"), *(str(each.path) for each in chosen)]
    done = subprocess.run(
        command,
        env={"OPENBLAS_NUM_THREADS": "1"},  # it forks, so it may have one thread only
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def _read(path: Path, root: Path) -> Snippet:
    code = path.read_text(encoding="utf-8")
    expected: dict[str, list[str]] = {}
    current: list[str] = []
    for line in code.splitlines():
        if line.startswith("#: "):
            current = expected.setdefault(line[3:], [])
        elif line.startswith("#|"):
            current.append(line[3:])
    assert expected, f"{path} does not say what it must give"
    assert set(expected) <= {"prints", "value"}, path
    return Snippet(
        name=str(path.relative_to(root).with_suffix("")),
        path=path,
        code=code,
        output="".join(f"{line}\n" for line in expected.get("prints", [])),
        value=json.loads("".join(expected["value"])) if "value" in expected else None,
    )
