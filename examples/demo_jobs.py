"""The demo's jobs, each written twice: as the calls of a model, and as the code it would send."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

Records = list[dict[str, Any]]
Ask = Callable[..., Awaitable[Any]]
"""Calls the tool that is named first with the keyword arguments; returns its answer."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """Something to do with SIZE records; each way ends with the same answer."""

    title: str
    directly: Callable[[Ask, int], Awaitable[str]]
    code: str


def some_records(size: int, *, counts: tuple[int, ...] = (0,)) -> Records:
    """Return records of which 34 in 50 are active."""

    def facts(number: int) -> list[str]:
        status = "active" if number * 34 % 50 < 34 else "inactive"
        category = ("orders", "people", "places")[number % 3]
        first, *later = [f"count: {count}" for count in counts]
        return [first, f"status: {status}", f"category: {category}", *later]

    return [
        {"name": f"Record_{number:03}", "entityType": "record", "observations": facts(number)}
        for number in range(1, size + 1)
    ]


async def _increment(ask: Ask, size: int) -> str:
    for number in range(1, size + 1):
        name = f"Record_{number:03}"
        record = (await ask("open_nodes", names=[name]))["entities"][0]
        counts = [int(o[7:]) for o in record["observations"] if o.startswith("count: ")]
        update = {"entityName": name, "contents": [f"count: {max(counts) + 1}"]}
        await ask("add_observations", observations=[update])
    return f"{size} records updated"


# Finds each record and increments its count; the older counts stay, as a history.
INCREMENT = Job(
    title="update SIZE records",
    directly=_increment,
    code="""\
import records

for number in range(1, SIZE + 1):
    name = f"Record_{number:03}"
    record = records.open_nodes(names=[name])["entities"][0]
    counts = [int(o[7:]) for o in record["observations"] if o.startswith("count: ")]
    update = {"entityName": name, "contents": [f"count: {max(counts) + 1}"]}
    records.add_observations(observations=[update])
f"{number} records updated"
""",
)


async def _five_steps(ask: Ask, _size: int) -> str:
    before = (await ask("read_graph"))["entities"]
    people: Records = [
        {"name": n, "entityType": "person", "observations": []} for n in ("Ada", "Bo", "Cy")
    ]
    await ask("create_entities", entities=people)
    found = (await ask("search_nodes", query="person"))["entities"]
    facts = [{"entityName": p["name"], "contents": ["team: blue"]} for p in found]
    await ask("add_observations", observations=facts)
    await ask("delete_entities", entityNames=["Cy"])
    return f"{len(before)} before, {len(found)} people found, Cy deleted"


FIVE_STEPS = Job(
    title="five steps among SIZE",
    directly=_five_steps,
    code="""\
import records

before = records.read_graph()["entities"]
people = [{"name": n, "entityType": "person", "observations": []} for n in ("Ada", "Bo", "Cy")]
records.create_entities(entities=people)
found = records.search_nodes(query="person")["entities"]
facts = [{"entityName": p["name"], "contents": ["team: blue"]} for p in found]
records.add_observations(observations=facts)
records.delete_entities(entityNames=["Cy"])
f"{len(before)} before, {len(found)} people found, Cy deleted"
""",
)


async def _count_active(ask: Ask, _size: int) -> str:
    # The model would read them all, and have to count them itself.
    return str(len((await ask("search_nodes", query="status: active"))["entities"]))


COUNT_ACTIVE = Job(
    title="how many of SIZE active?",
    directly=_count_active,
    code="""\
import records

len(records.search_nodes(query="status: active")["entities"])
""",
)

# What a model sends first by code when it does not know the tools yet.
LOOK_UP = (
    'import tools\ntools.search("open nodes, add observations")',
    'import tools\ntools.describe("records.open_nodes", "records.add_observations")',
)
