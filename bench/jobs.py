"""The work that both sides of a benchmark do, and the code that does it."""

import json

RECORDS = [f"Record_{number:03}" for number in range(1, 51)]
OBSERVATION = "seen: yes"
REPEATS = {"batch": 1, "reads": 1, "single": 10}
"""How often a job is done in one turn; the time is the mean."""
NULL_CALLS = 2_000
NULL_STUB = "def call(*, number: int) -> dict[str, bool]: ..."
NULL_ANSWER = {"ok": True}

SETTLE = "import tools\nprint(tools.servers())"

BATCH = f"""\
import records
found = records.search_nodes(query="Record_")
for entity in found["entities"]:
    addition = {{"entityName": entity["name"], "contents": ["{OBSERVATION}"]}}
    records.add_observations(observations=[addition])
len(found["entities"])
"""

SINGLE = """\
import records
found = records.search_nodes(query="$RECORD")
len(found["entities"])
"""

READS = """\
import slow
found = []
for number in range(50):
    found.append(slow.read(number=number)["number"])
len(found)
"""

NULL = f"""\
import null
for number in range({NULL_CALLS}):
    null.call(number=number)
"""

CODEMODE_SETTLE = "return 'all are mounted'"

CODEMODE_BATCH = f"""\
found = await call_tool("records_search_nodes", {{"query": "Record_"}})
for entity in found["entities"]:
    addition = {{"entityName": entity["name"], "contents": ["{OBSERVATION}"]}}
    await call_tool("records_add_observations", {{"observations": [addition]}})
return len(found["entities"])
"""


RULES = """\
[[policy]]
action = "deny"
tools = ["*.delete_*", "*.drop_*"]

[[policy]]
action = "ask"
upstreams = ["payments"]
when = "amount > 100"

[[policy]]
action = "allow"
upstreams = ["records"]
"""


def graph(*, is_done: bool) -> str:
    """Return the data file of server-memory, before the batch job or after it."""
    return "\n".join(_entity(number, name, is_done) for number, name in enumerate(RECORDS))


def _entity(number: int, name: str, is_done: bool) -> str:
    status = "active" if number < 34 else "closed"
    observations = ["count: 0", f"status: {status}", f"category: {'abc'[number % 3]}"]
    entity = {
        "type": "entity",
        "name": name,
        "entityType": "record",
        "observations": observations + [OBSERVATION] * is_done,
    }
    return json.dumps(entity, separators=(",", ":"))
