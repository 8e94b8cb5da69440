"""`toolfold demo`: the main job on an embedded server, and what it saved. Nothing else changes."""

import json
import sys
import tempfile
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Final

from toolfold.app import App
from toolfold.config.config import environment, load_config
from toolfold.entrypoints.commands.local import with_app
from toolfold.entrypoints.screen import Cell, print_line, working
from toolfold.errors import count
from toolfold.journal.ledger import sums
from toolfold.journal.reader import read_journal
from toolfold.journal.runs import Origin

_CODE: Final = """\
import shop

upgraded, revenue = [], 0
for number in shop.list_customers()["ids"]:
    customer = shop.get_customer(id=number)
    total = sum(order["total"] for order in customer["orders"])
    revenue += total
    if customer["plan"] == "trial" and total > 1500:
        shop.set_plan(id=number, plan="paid")
        upgraded.append(customer["name"])
print(f"{len(upgraded)} upgraded: {', '.join(upgraded)}")
print(f"revenue: {revenue:,}")
"""


def demo(_arguments: Namespace) -> int:
    """Run a job over 50 customers as code, and compare its tokens with direct calls."""
    with tempfile.TemporaryDirectory(prefix="toolfold-demo-") as directory:
        home = Path(directory)
        server = {
            "command": sys.executable,
            "args": ["-P", "-m", "toolfold.entrypoints.demo_server"],
        }
        file = home / "mcp.json"
        file.write_text(json.dumps({"mcpServers": {"shop": server}}), encoding="utf-8")
        environ = {**environment(), "TOOLFOLD_HOME": str(home)}
        config = load_config(config_file=file, cwd=home, environ=environ)
        print_line(Cell("The task:", "strong"), " upgrade every trial customer who ordered a lot.")
        print_line(Cell("The agent sends one program to execute_code:", "strong"))
        print()
        print("\n".join(f"    {line}" for line in _CODE.splitlines()))
        print()
        return with_app(replace(config, project=None), _run)


async def _run(app: App) -> int:
    with working("running"):
        result = await app.runtime.run(_CODE, origin=Origin(client="demo"))
    if not result.success:
        print(result.text, file=sys.stderr)
        return 1
    print_line(Cell("The model reads:", "strong"))
    print("\n".join(f"    {line}" for line in result.text.splitlines()))
    print()
    path = app.config.directories.data / "runs.db"
    found = read_journal(path, lambda journal: journal.accounts())
    total = sums(found.all if found else ())
    print(f"{count(total.calls, 'tool call')} were made in the sandbox. Tokens through the model:")
    print_line("    direct calls   ", Cell(f"{total.deferred:>7,}", "bad"))
    share = 1 - total.passed / total.deferred
    print_line("    with toolfold  ", Cell(f"{total.passed:>7,}", "good"), f"   {share:.0%} saved")
    print()
    print("`toolfold install claude --dry-run` shows what this takes on your machine.")
    return 0
