"""Reads the blocks of the documents, and runs them as a reader would, in a home of their own."""

import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support import ROOT, python

_FENCE = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*) -->\n)?"
    r"^ *```(?P<kind>console|python)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^ *```$"
    r"(?:\n\n```text\n(?P<shown>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
_COMMAND = re.compile(r"^\$ (.*(?:\n> .*)*)$((?:\n(?!\$ ).*)*)", re.MULTILINE)
_RUN = re.compile(r"\b[0-9a-f]{16}\b")
_ANSWER = re.compile(r"\[y/N[^]]*\] (\w+)$", re.MULTILINE)
_STOPS = ("Error", "Needs approval", "Nothing was run")
"""What is shown of a command that does not end well."""
NOT_RUN = "not run: "
"""What a comment before a block, or one near the head of a page, begins with; then a reason."""
HOME = "/home/ada"
"""What pages show as the home of their reader."""
AN_EXAMPLE = "run: the output is an example"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block of a page that is a program or commands."""

    kind: str
    line: int
    note: str
    title: str | None
    text: str
    shown: str | None
    """What stands below a program as its output."""

    @property
    def is_run(self) -> bool:
        return not self.note.startswith(NOT_RUN)

    def commands(self) -> list[tuple[str, str]]:
        """Return each command with the output that the page shows."""
        found = _COMMAND.findall(self.text.rstrip("\n"))
        return [(typed.replace("\n> ", "\n"), shown.strip("\n")) for typed, shown in found]


def blocks(page: Path) -> list[Block]:
    """Return the programs and commands of a page; a comment near its head speaks for all."""
    text = page.read_text(encoding="utf-8")
    general = re.search(rf"^<!-- blocks {NOT_RUN}(.*) -->$", text, re.MULTILINE)
    return [
        Block(
            kind=each["kind"],
            line=text.count("\n", 0, each.start()) + 1,
            note=each["note"] or (NOT_RUN + general[1] if general else ""),
            title=each["title"],
            text=each["text"],
            shown=each["shown"],
        )
        for each in _FENCE.finditer(text)
    ]


def matches(expected: str, printed: str) -> bool:
    """Whether output is as a page shows it; `…` stands for anything."""
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    parts = (re.escape(part) for part in expected.strip("\n").split("…"))
    return re.fullmatch(".*".join(parts), "\n".join(lines), re.DOTALL) is not None


class Reader:
    """Somebody at a terminal, with an empty home: `~`, which pages show as `HOME`."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "ada"
        self._bin = folder / "bin"
        self._run = ""  # the id that was printed last, which pages call RUN
        self.home.mkdir()
        self._bin.mkdir()
        self._put("toolfold", f'exec {python()} -P -m toolfold "$@"')
        self._put("python", f'exec {sys.executable} "$@"')
        npm = ROOT / ".tools" / "npm" / "node_modules" / "@modelcontextprotocol"
        # npx -y PACKAGE and uvx PACKAGE start the servers that `make tools` has downloaded.
        start = f'node {npm}/"${{name##*/}}"/dist/index.js "$@"'
        self._put("npx", f"shift; name=$1; shift; exec {start}")
        tools = ROOT / ".tools"
        choose = f"case $name in *sqlite) at={tools}/sqlite ;; *) at={tools}/servers ;; esac"
        self._put("uvx", f'name=$1; shift; {choose}; exec "$at/bin/$name" "$@"')

    def _put(self, name: str, script: str) -> None:
        path = self._bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)

    def type(self, command: str, answers: Sequence[str] = ()) -> tuple[int, str]:
        """Run a command; return its status and what it prints. With `answers`, at a terminal."""
        start = _at_terminal if answers else _in_pipe
        status, printed = start(
            ["/bin/bash", "-c", command], list(answers), cwd=self.home, env=self._environ()
        )
        return status, printed.replace(str(self.home), HOME)

    def _environ(self) -> dict[str, str]:
        node = shutil.which("node")
        path = [str(self._bin), *([str(Path(node).parent)] if node else []), "/usr/bin", "/bin"]
        return {
            "PATH": ":".join(path),
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "COLUMNS": "120",
            **{f"GIT_{who}_{what}": "ada@example.org" for who in ("AUTHOR", "COMMITTER")
               for what in ("NAME", "EMAIL")},
            **{name: os.environ[name] for name in ("TOOLFOLD_TEST_WARM",) if name in os.environ},
        }  # fmt: skip

    def read(self, block: Block) -> Iterator[str]:
        """Do what a block says; yield a sentence for all that is not as its page shows it."""
        if block.kind == "python":
            text = block.text.replace(HOME, str(self.home))
            (self.home / (block.title or "program.py")).write_text(text, encoding="utf-8")
            if not block.title:
                yield from self._try("toolfold run program.py", block.shown or "", block)
        else:
            for command, shown in block.commands():
                yield from self._try(command, shown, block)

    def _try(self, command: str, shown: str, block: Block) -> Iterator[str]:
        if command.startswith("pip install"):
            return  # tests/test_package.py installs the wheel that is built
        typed = re.sub(r"\bRUN\b", self._run, command.replace(HOME, str(self.home)))
        status, printed = self.type(typed, _ANSWER.findall(shown))
        self._run = [self._run, *_RUN.findall(printed)][-1]
        if status and not shown.startswith(_STOPS):
            yield f"line {block.line}: {command}: status {status}: {printed}"
        elif shown and block.note != AN_EXAMPLE and not matches(shown, printed):
            yield f"line {block.line}: {command}\n--- page\n{shown}\n--- printed\n{printed}"


def _in_pipe(command: list[str], answers: list[str], **options: Any) -> tuple[int, str]:
    done = subprocess.run(
        command,
        **options,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
        check=False,
    )
    return done.returncode, done.stdout


def _at_terminal(command: list[str], answers: list[str], **options: Any) -> tuple[int, str]:
    """Type each of `answers` when the next question has been printed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, **options, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65_536):
            shown += chunk
            if answers and re.search(rb"\[y/N[^]]*\] $", shown):
                os.write(ours, answers.pop(0).encode() + b"\n")
    except OSError:
        pass  # the other end is closed
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).replace("\r\n", "\n")
    # A line that says what is in progress is drawn over.
    return process.wait(60), re.sub(r"[^\n]*\r(\x1b\[2?K)?", "", text)
