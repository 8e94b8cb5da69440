"""Make a stage for one agent and open its door: `agent_stage.py DIR --door DOOR [--half 1|2]`.

Doors: `toolfold` (its defaults), `direct` (every server by itself), `codemode` (FastMCP's, by the
Python that `--fastmcp` names). Stays until its standard input ends; `brief.md` in DIR is what the
agent is given.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

import agent_tasks
import observatory

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parents[1]
_NPM = _ROOT / ".tools" / "npm" / "node_modules" / "@modelcontextprotocol"
_BRIEF = """\
# Your tasks

The tasks are in {root}/tasks.md. Your only means is the command {root}/tool: one call of one tool \
for each command, no loops around it, no pipes into other programs, no other program, and read \
nothing else on this machine. Begin with `{root}/tool --list`. Then, for task 3 say:

    {root}/tool 3 NAME --json '{{"argument": "value"}}'

or, for a tool that takes `code`, the code on standard input. Finish one task before the next, and \
write each answer as JSON to {root}/answers/NN.json (01.json for task 1). At the end say what \
confused you: quote it, and say what you would change.
"""


def servers(root: Path) -> dict[str, dict[str, object]]:
    """Return the six servers of the stage, as `mcpServers` has them."""
    node = shutil.which("node") or "node"
    python = _ROOT / ".tools"

    def npm(name: str, *arguments: str, **env: str) -> dict[str, object]:
        script = _NPM / f"server-{name}" / "dist" / "index.js"
        return {"command": node, "args": [str(script), *arguments], "env": env}

    sqlite = python / "sqlite" / "bin" / "mcp-server-sqlite"
    binaries = python / "servers" / "bin"
    return {
        "sky": {"command": str(sqlite), "args": ["--db-path", str(root / "observatory.db")]},
        "papers": npm("filesystem", str(root / "papers")),
        "memory": npm("memory", MEMORY_FILE_PATH=str(root / "graph.jsonl")),
        "git": {
            "command": str(binaries / "mcp-server-git"),
            "args": ["--repository", str(root / "control")],
        },
        "time": {"command": str(binaries / "mcp-server-time"), "args": []},
        "everything": npm("everything", "stdio"),
    }


def door_command(door: str, root: Path, fastmcp: str) -> list[str]:
    """Return what the bridge starts."""
    config = root / "mcp.json"
    if door == "toolfold":
        return ["env", f"TOOLFOLD_HOME={root / 'home'}", sys.executable, "-m", "toolfold", "mcp",
                "--no-daemon", "--config", str(config)]  # fmt: skip
    if door == "codemode":
        return [fastmcp, str(_ROOT / "bench" / "workers" / "codemode_server.py"), str(config)]
    words: list[str] = []
    for name, entry in servers(root).items():
        env = [f"{key}={value}" for key, value in dict(entry.get("env") or {}).items()]  # type: ignore[call-overload]
        words += ["--"] if words else []
        words += [f"{name}=env", *env, str(entry["command"]), *map(str, entry["args"])]  # type: ignore[call-overload]
    return words


def make(root: Path, half: int | None) -> None:
    """Write data, tasks and brief; the right answers stay here."""
    (root / "answers").mkdir(parents=True)
    observatory.build(root)
    (root / "mcp.json").write_text(json.dumps({"mcpServers": servers(root)}, indent=1))
    numbered = list(enumerate(agent_tasks.TASKS, start=1))
    middle = len(numbered) // 2
    chosen = {None: numbered, 1: numbered[:middle], 2: numbered[middle:]}[half]
    about = (
        f"The directory `papers` is {root / 'papers'}; the git repository is {root / 'control'}."
    )
    lines = [f"{number}. {task.text}" for number, task in chosen]
    (root / "tasks.md").write_text("\n".join([about, "", *lines]) + "\n", encoding="utf-8")
    (root / "brief.md").write_text(_BRIEF.format(root=root), encoding="utf-8")
    shutil.copy(_HERE / "tool", root / "tool")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--door", choices=["toolfold", "direct", "codemode"], required=True)
    parser.add_argument("--half", type=int, choices=[1, 2])
    parser.add_argument("--fastmcp", default=str(_ROOT / ".tools" / "fastmcp" / "bin" / "python"))
    options = parser.parse_args()
    root = options.root.resolve()
    make(root, options.half)
    command = door_command(options.door, root, options.fastmcp)
    bridge = [sys.executable, str(_HERE / "bridge.py"), str(root), "--", *command]
    sys.exit(subprocess.call(bridge))


if __name__ == "__main__":
    main()
