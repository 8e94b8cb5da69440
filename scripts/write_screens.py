"""Write docs/images/screens/*.svg and docs/screens.md: what ten commands look like at a terminal.

Every screen is what the command printed, run in a terminal of its own over the demo's server.
"""

import io
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from toolfold.config.config import environment

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "images" / "screens"
PAGE = ROOT / "docs" / "screens.md"
COLUMNS = 100
SHOWN_LINES = 16
SHOP = {"command": sys.executable, "args": ["-P", "-m", "toolfold.entrypoints.demo_server"]}
BEFORE = (
    ["memory", "store", "Invoices are sent on the first of the month", "--tags", "billing"],
    ["memory", "store", "The trial plan ends after 30 days", "--tags", "plans"],
    ["policy", "ask", "shop.set_plan"],
    ["run", "-c", "import shop\nlen(shop.list_customers()['ids'])"],
    ["run", "-c", "import shop\n[shop.get_customer(id=n)['plan'] for n in range(1, 6)]"],
    ["run", "-c", "1 / 0"],
    ["run", "-c", "import shop\nshop.set_plan(id=5, plan='paid')"],
)
SCREENS = {
    "welcome": [],
    "doctor": ["doctor"],
    "tools": ["tools", "list", "--server", "shop"],
    "search": ["tools", "search", "change the plan of a customer"],
    "run": ["run", "-c", "import shop\nprint(shop.get_customer(id=7)['city'])\n1 / 0"],
    "runs": ["runs"],
    "memory": ["memory", "list"],
    "policy": ["policy"],
    "approve": ["approve"],
    "savings": ["savings", "--by", "tool"],
}


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    piped: dict[str, str] = {}
    as_json: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="toolfold-screens-") as directory:
        home = Path(directory) / "home"
        (home / "config").mkdir(parents=True)
        project = str(Path(directory) / "shop")
        (Path(project) / ".toolfold").mkdir(parents=True)
        (home / "config" / "mcp.json").write_text(json.dumps({"mcpServers": {"shop": SHOP}}))
        environ = {
            "PATH": environment()["PATH"], "HOME": directory, "TOOLFOLD_HOME": str(home),
            "TERM": "xterm-256color", "COLUMNS": str(COLUMNS),
        }  # fmt: skip
        for words in BEFORE:
            subprocess.run(_command(words), env=environ, cwd=project, capture_output=True)
        for name, words in SCREENS.items():
            shown = at_terminal(words, environ, project).replace(directory, "~")
            (FOLDER / f"{name}.svg").write_text(picture(words, shown), encoding="utf-8")
            piped[name] = in_pipe(words, environ, project)
            if words:
                as_json[name] = in_pipe([*words, "--json"], environ, project)
        subprocess.run(_command(["stop"]), env=environ, cwd=directory, capture_output=True)
    PAGE.write_text(page(piped, as_json), encoding="utf-8")


def in_pipe(words: list[str], environ: dict[str, str], directory: str) -> str:
    """Return the first lines of what a command prints where nobody looks."""
    done = subprocess.run(
        _command(words), env=environ, cwd=directory, capture_output=True, text=True
    )
    lines = (
        (done.stdout + done.stderr).replace(str(Path(directory).parent), "~").rstrip().splitlines()
    )
    cut = [f"{line[:COLUMNS]}…" if len(line) > COLUMNS else line for line in lines[:SHOWN_LINES]]
    return "\n".join([*cut, "…"] if len(lines) > SHOWN_LINES else cut)


def _command(words: list[str]) -> list[str]:
    return [sys.executable, "-P", "-m", "toolfold", *words]


def _typed(words: list[str]) -> str:
    return " ".join(["toolfold", *(json.dumps(each) if " " in each else each for each in words)])


def at_terminal(words: list[str], environ: dict[str, str], directory: str) -> str:
    """Return what a command prints at a terminal, with its colours."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        _command(words), env=environ, cwd=directory, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65_536):
            shown += chunk
    except OSError:
        pass
    process.wait(60)
    text = shown.decode().replace("\r\n", "\n")
    # Lines that show progress are erased by what follows them.
    text = re.sub(r"[^\n]*\n(?:\x1b\[\?25h)?\r\x1b\[1A\x1b\[2K", "", text)
    return re.sub(r"[^\n]*\r(\x1b\[2?K)?", "", re.sub(r"\x1b\[\?25[lh]|\x1b\[1A", "", text))


def picture(words: list[str], shown: str) -> str:
    console = Console(
        record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="256"
    )
    console.print(Text("$ " + _typed(words).replace("\\n", "; "), style="bold"))
    console.print(Text.from_ansi(shown.rstrip("\n")))
    return console.export_svg(title="toolfold", unique_id="toolfold")


def page(piped: dict[str, str], as_json: dict[str, str]) -> str:
    """Return docs/screens.md."""
    parts = [
        "# Screens\n\nMade by `scripts/write_screens.py`. Below each picture is what the same command "
        "prints in a pipe, and\nwith `--json`; what is longer is cut. "
        "[commands.md](commands.md) says what is in each JSON.\n"
    ]
    for name, words in SCREENS.items():
        typed = _typed(words).replace("\\n", "; ").replace('"', "'")
        parts.append(f"## {typed}\n\n![{typed}](images/screens/{name}.svg)\n")
        parts.append(f"```text\n{piped[name]}\n```\n")
        if name in as_json:
            parts.append(f"```text\n{as_json[name]}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    main()
