"""One batch job, by direct MCP calls and by code: what the model sends and reads each way.

    python examples/demo.py [--quick] [--server npm|python]

Both ways work on a real MCP server that keeps records. By direct calls, each call is one of the
model's. By code, the model sends one piece of Python to toolfold, and the calls happen there.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import Any

import anyio
from demo_jobs import COUNT_ACTIVE, FIVE_STEPS, INCREMENT, LOOK_UP, Job, some_records
from demo_ways import Code, DirectCalls, Spent, conversing

from toolfold.journal.ledger import Account
from toolfold.journal.reader import JournalReader, read_journal

ROOT = Path(__file__).resolve().parents[1]
NPM_SERVER = ROOT / ".tools/npm/node_modules/@modelcontextprotocol/server-memory/dist/index.js"
MOST_RUNS = 100  # the demo makes a dozen
MODEL_S_PER_CALL = 4.27  # assumed; only the column that is marked as a projection uses it

HEADER = f"""\
                                   calls    tokens                   PROJECTION
                                  by the   through       tool    with {MODEL_S_PER_CALL} s of
task                      way      model       it        work    model per call"""
FORMULAS = """\
tokens      tool definitions + each call's name and arguments + each reply (o200k), as Claude Code
            puts it before the model, counted once; reading the history again costs more
tool work   measured from call to reply, with the servers running
projection  tool work + calls x the seconds assumed; no model was called
direct      one record at a time; an agent that batches sends fewer calls and reads as much
look up     what a model that does not know the tools sends first, once in a conversation"""


class Disagreement(Exception):
    """The two ways did not come to the same end."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table."""

    task: str
    way: str
    spent: Spent
    code: str = ""
    """What was run, where that is one piece of code."""

    def __str__(self) -> str:
        calls, tokens, tool_s = self.spent.calls, self.spent.tokens, self.spent.tool_s
        projected_s = tool_s + calls * MODEL_S_PER_CALL
        return (
            f"{self.task:<25} {self.way:<6} {calls:>7,} {tokens:>9,} {tool_s:>9.2f} s"
            f" {projected_s:>14.1f} s"
        )


async def measure(server: str, *, quick: bool) -> tuple[list[Row], list[Account]]:
    """Do all jobs each way, on a graph for each; return what that took, and what the ledger says.

    Raises:
        Disagreement: The two ways, or they and the ledger, do not come to the same.
    """
    with (
        tempfile.TemporaryDirectory(prefix="toolfold-demo-") as name,
        tempfile.TemporaryFile("w") as greetings,  # npm's server writes one to standard error
    ):
        folder = Path(name)
        direct_server = server_entry(server, folder / "direct.jsonl")
        toolfold = toolfold_over(server_entry(server, folder / "code.jsonl"), folder)
        async with (
            conversing(direct_server, errors=greetings) as one,
            conversing(toolfold, errors=sys.stderr) as other,
        ):
            direct, code = DirectCalls(one), Code(other)
            if quick:
                rows = await compare([INCREMENT, FIVE_STEPS, COUNT_ACTIVE], 5, direct, code)
            else:
                rows = await compare([INCREMENT], 5, direct, code)
                rows += await compare([INCREMENT, FIVE_STEPS, COUNT_ACTIVE], 50, direct, code)
                rows += await compare([INCREMENT], 1000, code)
            rows = [await look_up(code), *rows]
            definitions = one.definition_tokens, other.definition_tokens
        return rows, agree_with_ledger(rows, *definitions, folder / "data" / "runs.db")


def server_entry(server: str, graph_file: Path) -> dict[str, Any]:
    """Return how to start a server with a graph of its own, as in `mcpServers`."""
    if server == "npm":
        environment = {"MEMORY_FILE_PATH": str(graph_file)}
        return {"command": "node", "args": [str(NPM_SERVER)], "env": environment}
    return {"command": sys.executable, "args": [str(ROOT / "examples/records_server.py")]}


def toolfold_over(server: dict[str, Any], home: Path) -> dict[str, Any]:
    """Return how to start toolfold over a server, which code then imports as `records`.

    All that toolfold keeps, it keeps in `home`.
    """
    config = home / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"records": server}}), encoding="utf-8")
    # Tools that say to destroy are asked about, unless a rule allows them.
    (home / "config").mkdir(exist_ok=True)
    allowed = '[[policy]]\naction = "allow"\ntools = "records.*"\n'
    (home / "config" / "policy.toml").write_text(allowed, encoding="utf-8")
    return {
        "command": sys.executable,
        "args": ["-m", "toolfold", "mcp", "--no-daemon", "--config", str(config)],
        "env": {"TOOLFOLD_HOME": str(home)},
    }


async def look_up(code: Code) -> Row:
    """Learn by code what the tools are called and what they take."""
    code.model.begin()
    for piece in LOOK_UP:
        await code.execute(piece)
    return Row(task="look up the tools", way=code.name, spent=code.model.spent)


async def compare(jobs: Sequence[Job], size: int, *ways: DirectCalls | Code) -> list[Row]:
    """Do jobs one after the other on new records, each of them each way.

    Raises:
        Disagreement: The answers, or the graphs that are left, are not the same.
    """
    print(f"{size:,} records ...", flush=True)
    for way in ways:
        await way.fill(some_records(size))
    rows = []
    for job in jobs:
        task = job.title.replace("SIZE", f"{size:,}")
        ends = []
        for way in ways:
            way.model.begin()
            answer = await way.do(job, size)
            code = job.code.replace("SIZE", str(size)) if isinstance(way, Code) else ""
            rows.append(Row(task=task, way=way.name, spent=way.model.spent, code=code))
            ends.append({"answer": answer, "graph": await way.read()})
        if job is INCREMENT:
            expected = some_records(size, counts=(0, 1))
            ends.append({"answer": f"{size} records updated", "graph": expected})
        agree(task, ends)
    return rows


def agree(task: str, ends: Sequence[dict[str, Any]]) -> None:
    """Make sure that all ends are the same.

    Raises:
        Disagreement: They are not.
    """
    if any(end != ends[0] for end in ends):
        listing = "\n".join(f"  {str(end)[:1000]}" for end in ends)
        raise Disagreement(f"{task}: the two ways do not end the same:\n{listing}")


def agree_with_ledger(rows: Sequence[Row], direct: int, ours: int, journal: Path) -> list[Account]:
    """Make sure that toolfold's own accounts of the jobs have the same tokens; return them.

    The ledger counts definitions once in a conversation; `direct` and `ours` are what they take,
    and stand in every row.

    Raises:
        Disagreement: It has others.
    """
    booked_by_code = read_journal(journal, _by_code)
    if booked_by_code is None:
        raise Disagreement("toolfold kept no journal")
    tokens = {(row.task, row.way): row.spent.tokens for row in rows}
    found = []
    for row in filter(lambda row: row.code, rows):
        found.append(account := booked_by_code[row.code])
        counted = {"code": row.spent.tokens, "direct": tokens.get((row.task, "direct"))}
        booked = {"code": account.sent + ours, "direct": account.direct + direct}
        if counted["direct"] is None:
            del counted["direct"], booked["direct"]
        agree(f"{row.task}: counted here, and by toolfold's ledger", [counted, booked])
    return found


def _by_code(reader: JournalReader) -> dict[str, Account]:
    accounts = {account.run: account for account in reader.accounts().all}
    return {run.code.head: accounts[run.id] for run in reader.newest(MOST_RUNS)}


def choose_server() -> str:
    """Take the npm server where it can run, and say so where it cannot."""
    node = shutil.which("node")
    if node and NPM_SERVER.exists():
        return "npm"
    missing = "npm's server-memory is not in .tools/npm" if node else "Node.js is not installed"
    print(f"{missing}, so the same runs on examples/records_server.py.")
    return "python"


def print_report(rows: Sequence[Row], ledger: Sequence[Account], size: int) -> None:
    """Print what the model would send, and what that costs."""
    print("\nBy direct calls, the model sends two for each record and reads the replies:\n")
    print('    open_nodes        {"names": ["Record_001"]}')
    print('    add_observations  {"observations": [{"entityName": "Record_001", "contents": ...')
    print("\nBy code, it sends this once, and the same calls happen inside toolfold:\n")
    print(indent(INCREMENT.code.replace("SIZE", str(size)), "    "))
    print(HEADER, *rows, f"\n{FORMULAS}\n", sep="\n")
    print("Checked: both ways gave the same answers and left the same graph after each job, and")
    print("every record's count went up by one; and toolfold's own ledger has the same tokens for")
    print("each job, both ways: for all of them together, definitions aside,")
    passed, direct = sum(each.sent for each in ledger), sum(each.direct for each in ledger)
    print(f"{passed:,} tokens passed in place of {direct:,}.")


def print_next_steps() -> None:
    """Print commands that work now."""
    toolfold = os.path.relpath(Path(sys.executable).with_name("toolfold"))
    config = os.path.relpath(ROOT / "examples/mcp.json")
    print("\nNext, send code of your own to the servers of a file, or see whether they work:\n")
    print(f"    {toolfold} run --config {config} -c 'import tools; tools.search(\"add facts\")'")
    print(f"    {toolfold} doctor --config {config}")


def main() -> None:
    """Run the demo and print what came of it; exit with 1 where something went wrong."""
    parser = argparse.ArgumentParser(description="A batch job by direct MCP calls and by code.")
    parser.add_argument("--quick", action="store_true", help="5 records only")
    parser.add_argument("--server", choices=["npm", "python"], help="npm's, where it can run")
    arguments = parser.parse_args()
    server = arguments.server or choose_server()
    try:
        rows, ledger = anyio.run(partial(measure, server, quick=arguments.quick))
    except ExceptionGroup as group:
        sys.exit(f"demo: {_innermost(group)}")
    print_report(rows, ledger, size=5 if arguments.quick else 50)
    print_next_steps()


def _innermost(error: BaseException) -> BaseException:
    """Return what went wrong itself: each connection that it passed has put a group around it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


if __name__ == "__main__":
    main()
