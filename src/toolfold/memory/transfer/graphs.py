"""Take the lines of a knowledge graph to it, and rehearse that."""

from collections.abc import Sequence
from typing import NamedTuple

from toolfold.memory.graph import jsonl
from toolfold.memory.graph.models import Fault, Subgraph
from toolfold.memory.graph.service import Graph
from toolfold.memory.transfer.outcomes import Outcomes


class NumberedLine(NamedTuple):
    """A line and where it stands in its file."""

    number: int
    text: str


async def take_graph(
    graph: Graph, lines: Sequence[NumberedLine], outcomes: Outcomes, *, dry_run: bool
) -> None:
    """Have the graph take over what it lacks, or only count that; what came of it is in `outcomes`.

    Raises:
        StoreError: The store does not take it.
    """
    texts = [line.text for line in lines]
    given, faults = jsonl.read(texts)
    if dry_run:
        known, _ = jsonl.read((await graph.export_jsonl()).split("\n"))
        new = lacking(known, given)
    else:
        report = await graph.import_jsonl(texts)
        new = MissingCounts(report.entities, report.observations, report.relations)
    outcomes.count("entities", added=new.entities, of=len(given.entities))
    outcomes.count("observations", added=new.observations, of=new.observations)
    outcomes.count("relations", added=new.relations, of=len(given.relations))
    for fault in faults:
        outcomes.add_fault(Fault(lines[fault.line - 1].number, fault.reason))


class MissingCounts(NamedTuple):
    """How much of a graph is not in another."""

    entities: int
    observations: int
    """Of entities that are."""

    relations: int


def lacking(known: Subgraph, given: Subgraph) -> MissingCounts:
    """Return what `GraphStore.merge` would keep of a graph."""
    observations: dict[str, set[str]] = {}
    for entity in known.entities:
        observations.setdefault(entity.name, set()).update(entity.observations)
    new = 0
    for entity in given.entities:
        if entity.name in observations:
            added = set(entity.observations) - observations[entity.name]
            observations[entity.name] |= added
            new += len(added)
    names = {entity.name for entity in known.entities}
    relations = set(known.relations)
    return MissingCounts(
        sum(entity.name not in names for entity in given.entities),
        new,
        sum(relation not in relations for relation in given.relations),
    )
