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
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import Any

import anyio
from demo_conversation import Conversation, Entry, Spent, conversing, toolfold_over

ROOT = Path(__file__).resolve().parents[1]
NPM_SERVER = ROOT / ".tools/npm/node_modules/@modelcontextprotocol/server-memory/dist/index.js"
MODEL_S_PER_CALL = 4.27  # assumed; used for the column that is marked as a projection, only
BATCH = 40  # so many records fit into one reply of toolfold

Records = list[dict[str, Any]]


class Disagreement(Exception):
    """The two ways did not come to the same end."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One thing to do, both ways; each ends with the same answer."""

    title: str
    directly: Callable[[Conversation, int], Awaitable[str]]
    code: str


async def increment(model: Conversation, size: int) -> str:
    """Find each record, then add one to its count; the older counts stay, as a history."""
    for number in range(1, size + 1):
        name = f"Record_{number:03}"
        record = (await model.ask("open_nodes", names=[name]))["entities"][0]
        counts = [int(o[7:]) for o in record["observations"] if o.startswith("count: ")]
        update = {"entityName": name, "contents": [f"count: {max(counts) + 1}"]}
        await model.call("add_observations", observations=[update])
    return f"{size} records updated"


INCREMENT = """\
import records

for number in range(1, SIZE + 1):
    name = f"Record_{number:03}"
    record = records.open_nodes(names=[name])["entities"][0]
    counts = [int(o[7:]) for o in record["observations"] if o.startswith("count: ")]
    update = {"entityName": name, "contents": [f"count: {max(counts) + 1}"]}
    records.add_observations(observations=[update])
f"{number} records updated"
"""


async def five_steps(model: Conversation, _size: int) -> str:
    """Read the graph, create three people, search for them, add a fact to each, delete one."""
    before = (await model.ask("read_graph"))["entities"]
    people = [{"name": n, "entityType": "person", "observations": []} for n in ("Ada", "Bo", "Cy")]
    await model.call("create_entities", entities=people)
    found = (await model.ask("search_nodes", query="person"))["entities"]
    facts = [{"entityName": p["name"], "contents": ["team: blue"]} for p in found]
    await model.call("add_observations", observations=facts)
    await model.call("delete_entities", entityNames=["Cy"])
    return f"{len(before)} before, {len(found)} people found, Cy deleted"


FIVE_STEPS = """\
import records

before = records.read_graph()["entities"]
people = [{"name": n, "entityType": "person", "observations": []} for n in ("Ada", "Bo", "Cy")]
records.create_entities(entities=people)
found = records.search_nodes(query="person")["entities"]
facts = [{"entityName": p["name"], "contents": ["team: blue"]} for p in found]
records.add_observations(observations=facts)
records.delete_entities(entity_names=["Cy"])
f"{len(before)} before, {len(found)} people found, Cy deleted"
"""


async def count_active(model: Conversation, _size: int) -> str:
    """Have the model read all that are active; it would have to count them itself."""
    return str(len((await model.ask("search_nodes", query="status: active"))["entities"]))


COUNT_ACTIVE = """\
import records

len(records.search_nodes(query="status: active")["entities"])
"""

UPDATE = Job(title="update SIZE records", directly=increment, code=INCREMENT)
OTHERS = [
    Job(title="five steps among SIZE", directly=five_steps, code=FIVE_STEPS),
    Job(title="how many of SIZE active?", directly=count_active, code=COUNT_ACTIVE),
]
# A model that does not know the tools yet looks them up: once, whatever the jobs.
LOOK_UP = [
    'import tools\ntools.search("open nodes, add observations")',
    'import tools\ntools.describe("records.open_nodes", "records.add_observations")',
]


def some_records(size: int, *, counts: Iterable[int] = (0,)) -> Records:
    """Return records of which 34 in 50 are active."""

    def facts(number: int) -> list[str]:
        status = "active" if number * 34 % 50 < 34 else "inactive"
        category = ("orders", "people", "places")[number % 3]
        first, *later = [f"count: {count}" for count in counts]
        return [first, f"status: {status}", f"category: {category}", *later]

    return [
        {"name": f"Record_{n:03}", "entityType": "record", "observations": facts(n)}
        for n in range(1, size + 1)
    ]


async def fill(direct: Conversation | None, by_code: Conversation, records: Records) -> None:
    """Put the same records into the graph of each way."""
    for at in range(0, len(records), BATCH):
        batch = records[at : at + BATCH]
        await by_code.execute(f"import records\nrecords.create_entities(entities={batch})\n'done'")
        if direct:
            await direct.call("create_entities", entities=batch)


async def read_by_code(by_code: Conversation) -> Records:
    """Return all records of the code way's graph, read in parts that fit into a reply."""
    records: Records = []
    while True:
        part = f"records.read_graph()['entities'][{len(records)}:{len(records) + BATCH}]"
        batch = json.loads(await by_code.execute(f"import records\n{part}"))
        if not batch:
            return records
        records += batch


def check(title: str, what: str, *found: object) -> None:
    """Hold what was found each way, and what is expected where that is known, side by side.

    Raises:
        Disagreement: They are not all equal.
    """
    if any(one != found[0] for one in found):
        listing = "\n".join(f"  {str(one)[:500]}" for one in found)
        raise Disagreement(f"{title}: the {what} are not the same:\n{listing}")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table."""

    title: str
    way: str
    spent: Spent

    def __str__(self) -> str:
        calls, tokens, tool_s = self.spent.calls, self.spent.tokens, self.spent.tool_s
        projected_s = tool_s + calls * MODEL_S_PER_CALL
        return (
            f"{self.title:<26} {self.way:<6} {calls:>6,} {tokens:>9,} {tool_s:>9.2f} s"
            f" {projected_s:>14,.1f} s"
        )


async def compare(
    job: Job, size: int, direct: Conversation | None, by_code: Conversation
) -> list[Row]:
    """Do a job each way, and make sure that the ends are the same."""
    title = job.title.replace("SIZE", f"{size:,}")
    by_code.begin()
    answers = [await by_code.execute(job.code.replace("SIZE", str(size)))]
    rows = [Row(title=title, way="code", spent=by_code.spent)]
    graphs = [await read_by_code(by_code)]
    if direct:
        direct.begin()
        answers.append(await job.directly(direct, size))
        rows.insert(0, Row(title=title, way="direct", spent=direct.spent))
        graphs.append((await direct.ask("read_graph"))["entities"])
    if job is UPDATE:
        graphs.append(some_records(size, counts=(0, 1)))
    check(title, "answers", *answers)
    check(title, "graphs", *graphs)
    return rows


async def look_up(by_code: Conversation) -> Row:
    """Learn by code what the tools are called and what they take."""
    by_code.begin()
    for code in LOOK_UP:
        await by_code.execute(code)
    return Row(title="look up the tools, once", way="code", spent=by_code.spent)


async def measure(server: str, size: int, jobs: list[Job], *, code_only: bool = False) -> list[Row]:
    """Do the jobs on new graphs of `size` records, one for each way."""
    print(f"{size:,} records ...", flush=True)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toolfold-demo-")))

        async def connect(way: str, entry: Entry) -> Conversation:
            return await stack.enter_async_context(conversing(entry, folder / f"{way}.log"))

        inner = server_entry(server, folder / "code.jsonl")
        by_code = await connect("code", toolfold_over(inner, folder))
        direct = None
        if not code_only:
            direct = await connect("direct", server_entry(server, folder / "direct.jsonl"))
        await fill(direct, by_code, some_records(size))
        rows = [] if code_only else [await look_up(by_code)]
        for job in jobs:
            rows += await compare(job, size, direct, by_code)
        return rows


def server_entry(server: str, graph_file: Path) -> Entry:
    """Return how to start a server with a graph of its own."""
    if server == "npm":
        env = {"MEMORY_FILE_PATH": str(graph_file)}
        return {"command": "node", "args": [str(NPM_SERVER)], "env": env}
    return {"command": sys.executable, "args": [str(ROOT / "examples/records_server.py")]}


def choose_server() -> str:
    """Take the npm server where it can run, and say so where it cannot."""
    node = shutil.which("node")
    if node and NPM_SERVER.exists():
        return "npm"
    missing = "npm's server-memory is not in .tools/npm" if node else "Node.js is not installed"
    print(f"{missing}: running the same on examples/records_server.py.\n")
    return "python"


async def measure_all(server: str, *, quick: bool) -> list[Row]:
    """Return the rows of the table."""
    if quick:
        return await measure(server, 5, [UPDATE, *OTHERS])
    rows = await measure(server, 5, [UPDATE])
    rows += await measure(server, 50, [UPDATE, *OTHERS])
    rows += await measure(server, 1000, [UPDATE], code_only=True)
    return rows


HEADER = f"""\
                                    calls    tokens                  PROJECTION
                                   by the   through       tool   with {MODEL_S_PER_CALL} s of
task                       way      model       it        work   model per call
"""
FORMULAS = """
tokens       tool definitions + each call's name and arguments + each reply's text (o200k),
             each counted once; an agent that reads its history again at each call pays more
tool work    measured from call to reply, servers already running
projection   tool work + calls x the seconds assumed; no model was called
"""


def print_report(rows: list[Row], size: int) -> None:
    """Print what the model would send, and what that costs."""
    print("\nBy direct calls, the model sends two for each record, and reads the replies:\n")
    print('    open_nodes        {"names": ["Record_001"]}')
    print('    add_observations  {"observations": [{"entityName": "Record_001", "contents": ...')
    print("\nBy code, it sends this once, with execute_code; the same calls happen in toolfold:\n")
    print(indent(INCREMENT.replace("SIZE", str(size)), "    "))
    print(HEADER + "\n".join(map(str, rows)))
    print(FORMULAS)
    print("After each job both ways had the same answer and left the same graph (checked).")


def print_next() -> None:
    """Print what to try now."""
    toolfold = os.path.relpath(Path(sys.executable).with_name("toolfold"))
    config = os.path.relpath(ROOT / "examples/mcp.json")
    print("\nNext, run Python of your own over the servers of a file, or have it checked:\n")
    print(f"    {toolfold} run --config {config} -c 'import tools; tools.search(\"add facts\")'")
    print(f"    {toolfold} doctor --config {config}")


def main() -> int:
    """Run the demo; return 1 if the two ways disagree."""
    parser = argparse.ArgumentParser(description="A batch job by direct MCP calls and by code.")
    parser.add_argument("--quick", action="store_true", help="with 5 records only")
    parser.add_argument("--server", choices=["npm", "python"], help="npm's where it can run")
    arguments = parser.parse_args()
    server = arguments.server or choose_server()
    rows: list[Row] = []
    try:
        rows = anyio.run(partial(measure_all, server, quick=arguments.quick))
    except* Disagreement as group:
        print(f"demo: {group.exceptions}", file=sys.stderr)
    if rows:
        print_report(rows, 5 if arguments.quick else 50)
        print_next()
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
