"""Count the modules of the package, and those that one warm call passes through.

python scripts/rooms.py              counts of the source
python scripts/rooms.py tree         every module with its first line
python scripts/rooms.py path         modules and switches between them on the path of warm calls
python scripts/rooms.py check        fail where switches are a tenth above those in rooms.json
"""

import ast
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/toolfold"
KNOWN = Path(__file__).with_suffix(".json")
GROWTH = 1.1
WARM_RUNS = 3
TURNS = 4
JOBS = {
    "execute_code": "import crm\nprint(crm.add(a=1))",
    "memory.search": "import memory\nprint(memory.search('ports of staging'))",
}

# Runs in place of `toolfold`, and notes which functions of ours are called, in order.
TRACER = """
import atexit, json, os, sys, threading
ROOT, calls = os.environ["ROOMS_ROOT"], []

def profile(frame, event, _argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(ROOT):
        is_resumed = code.co_flags & 0x2A0 and frame.f_lasti > 4
        if not is_resumed:
            calls.append((threading.get_ident(), code.co_filename[len(ROOT) + 1:-3]))

def take_marks():
    while True:
        with open(os.environ["ROOMS_MARKS"]) as marks:
            calls.extend((0, "#" + line.strip()) for line in marks)

threading.Thread(target=take_marks, daemon=True).start()
atexit.register(lambda: json.dump(calls, open(os.environ["ROOMS_CALLS"], "w")))
threading.setprofile(profile)
sys.setprofile(profile)
sys.argv[0] = "toolfold"
from toolfold.__main__ import main
sys.exit(main())
"""

UPSTREAM = """
import json, sys
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
RESULTS = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                   "serverInfo": {"name": "crm", "version": "0"}},
    "tools/list": {"tools": [{"name": "add", "inputSchema": SCHEMA,
                              "annotations": {"readOnlyHint": True}},
                             {"name": "change", "inputSchema": SCHEMA}]},
    "tools/call": {"content": [{"type": "text", "text": "3"}]},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        found = RESULTS.get(message["method"])
        failed = {"error": {"code": -32601, "message": "no"}}
        answer = failed if found is None else {"result": found}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


class Peer:
    """A client of `toolfold mcp`, which runs under a tracer that is told of marks."""

    def __init__(
        self, home: Path, tracer: str, options: Sequence[str] = ("--no-daemon",), **environ: str
    ) -> None:
        self._marks = home / "marks"
        os.mkfifo(self._marks)
        (home / "tracer.py").write_text(tracer)
        (home / "upstream.py").write_text(UPSTREAM)
        server = {"command": sys.executable, "args": [str(home / "upstream.py")]}
        (home / "mcp.json").write_text(json.dumps({"mcpServers": {"crm": server}}))
        command = [sys.executable, home / "tracer.py", "mcp", *options]
        self._process = subprocess.Popen(
            [*command, "--config", home / "mcp.json"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ  # noqa: TID251
            | {
                "HOME": str(home),
                "TOOLFOLD_HOME": str(home / "home"),
                "PYTHONPATH": str(ROOT / "src"),
            }
            | {"ROOMS_ROOT": str(SOURCE), "ROOMS_CALLS": str(home / "calls.json")}
            | {"ROOMS_MARKS": str(self._marks)}
            | environ,
        )
        self._count = 0

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self._count += 1
        self._send({"id": self._count, "method": method, "params": params})
        for line in _open(self._process.stdout):
            message = json.loads(line)
            if message.get("id") == self._count and "method" not in message:
                return message
        raise EOFError("toolfold ended")

    def begin(self) -> None:
        client = {"name": "rooms", "version": "0"}
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        self.ask("initialize", about)
        self._send({"method": "notifications/initialized"})
        self.ask("tools/list", {})

    def run(self, code: str) -> None:
        answer = self.ask("tools/call", {"name": "execute_code", "arguments": {"code": code}})
        if answer["result"].get("isError"):
            sys.exit(f"rooms: {answer['result']}")

    def mark(self, name: str) -> None:
        self._marks.write_text(f"{name}\n")
        time.sleep(0.5)  # until the tracer has read it

    def close(self) -> None:
        _open(self._process.stdin).close()
        self._process.wait(60)

    def _send(self, message: dict[str, Any]) -> None:
        stdin = _open(self._process.stdin)
        stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        stdin.flush()


def _open(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def walks() -> dict[str, list[str]]:
    """Return by job the modules of the functions that a warm call calls, in order."""
    with tempfile.TemporaryDirectory() as directory:
        peer = Peer(Path(directory), TRACER)
        peer.begin()
        peer.run("import memory\nmemory.store('Staging runs on port 5434')")
        for code in JOBS.values():
            for _ in range(WARM_RUNS):
                peer.run(code)
        for turn in range(TURNS):
            for name, code in JOBS.items():
                peer.mark(f"{turn} {name}")
                peer.run(code)
                peer.mark("")
        peer.close()
        calls = json.loads((Path(directory) / "calls.json").read_text())
    found: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    job = ""
    for thread, module in calls:
        if module.startswith("#"):
            job = module[1:]
        elif job:
            found[job][thread].append(module)
    # What goes on in the background meanwhile only adds to a walk.
    turns = {name: [_walk(found[f"{turn} {name}"]) for turn in range(TURNS)] for name in JOBS}
    return {name: min(walked, key=switches) for name, walked in turns.items()}


def _walk(by_thread: dict[int, list[str]]) -> list[str]:
    """Return what threads called, one after the other: how they take turns is chance."""
    return [module for calls in by_thread.values() for module in calls]


def switches(walk: list[str]) -> int:
    return sum(before != after for before, after in pairwise(walk))


def print_path() -> None:
    for name, walk in walks().items():
        entered = Counter(after for before, after in pairwise(["", *walk]) if before != after)
        most = ", ".join(f"{module} {count}" for module, count in entered.most_common(6))
        print(f"{name}: {len(set(walk))} modules, {switches(walk)} switches; entered most: {most}")


def check() -> None:
    known = json.loads(KNOWN.read_text())
    found = {name: switches(walk) for name, walk in walks().items()}
    grown = [name for name, count in found.items() if count > GROWTH * known[name]]
    for name in grown:
        print(f"{name} passes {found[name]} switches between modules; {known[name]} were known.")
    sys.exit(1 if grown else 0)


def print_counts() -> None:
    names: dict[str, set[str]] = defaultdict(set)
    lengths: list[int] = []
    sqlite, lines = set(), 0
    modules = [path for path in sorted(SOURCE.rglob("*.py")) if path.name != "__init__.py"]
    for path in modules:
        module, text = path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8")
        lines += text.count("\n")
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lengths.append((node.end_lineno or 0) - node.lineno + 1)
            if isinstance(node, ast.Import) and any(each.name == "sqlite3" for each in node.names):
                sqlite.add(module)
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                names[node.name].add(module)
    twice = sorted(name for name, where in names.items() if len(where) > 1)
    print(f"{len(modules)} modules, {lines} lines")
    p95 = sorted(lengths)[int(len(lengths) * 0.95)]
    print(f"functions: median {statistics.median(lengths):g} lines, p95 {p95}")
    print(f"{len(sqlite)} modules import sqlite3")
    print(f"{len(twice)} type names in several modules: {' '.join(twice)}")


def print_tree() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        about = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n")[
            0
        ]
        print(f"{path.relative_to(SOURCE).as_posix():<50} {about}")


if __name__ == "__main__":
    actions = {"": print_counts, "tree": print_tree, "path": print_path, "check": check}
    actions[" ".join(sys.argv[1:])]()
