"""A small MCP server: a knowledge graph in memory, with the tools of npm's server-memory.

Configure it like any other server, here under the name `records`:

    {"mcpServers": {"records": {"command": "python", "args": ["examples/records_server.py"]}}}

Each tool is a function: its signature becomes the input schema, its return type the output schema,
its docstring what a model reads. Annotations tell a client what it may repeat or should ask about.
"""

from typing import TypeAlias

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from typing_extensions import TypedDict  # Pydantic wants this one on Python 3.11

READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(destructive_hint=False, idempotent_hint=False, open_world_hint=False)
DELETES = ToolAnnotations(destructive_hint=True, idempotent_hint=True, open_world_hint=False)


class Entity(TypedDict):
    """A named thing and what is known about it."""

    name: str
    entityType: str
    observations: list[str]


# `from` is a keyword of Python, so this one cannot be a class.
Relation = TypedDict("Relation", {"from": str, "to": str, "relationType": str})


class Graph(TypedDict):
    """Entities, and the relations that touch them."""

    entities: list[Entity]
    relations: list[Relation]


class Addition(TypedDict):
    """What to add to one entity."""

    entityName: str
    contents: list[str]


class Added(TypedDict):
    """What one entity did not hold before."""

    entityName: str
    addedObservations: list[str]


class Deletion(TypedDict):
    """What to take from one entity."""

    entityName: str
    observations: list[str]


Outcome: TypeAlias = dict[str, bool | str]
server = MCPServer("records", version="1.0.0")
known: dict[str, Entity] = {}
links: list[Relation] = []


@server.tool(annotations=READS)
def read_graph() -> Graph:
    """Read the entire knowledge graph."""
    return {"entities": list(known.values()), "relations": links}


@server.tool(annotations=READS)
def search_nodes(query: str) -> Graph:
    """Search for nodes whose name, type or observations contain the query, in any case."""
    texts = {e["name"]: [e["name"], e["entityType"], *e["observations"]] for e in known.values()}
    return open_nodes([name for name in known if query.lower() in "\n".join(texts[name]).lower()])


@server.tool(annotations=READS)
def open_nodes(names: list[str]) -> Graph:
    """Open specific nodes by their names."""
    wanted = set(names)
    touching = [link for link in links if {link["from"], link["to"]} & wanted]
    return {"entities": [known[name] for name in known if name in wanted], "relations": touching}


@server.tool(annotations=ADDS)
def create_entities(entities: list[Entity]) -> dict[str, list[Entity]]:
    """Create multiple new entities; one whose name is taken stays as it is."""
    created = [entity for entity in entities if entity["name"] not in known]
    known.update({entity["name"]: entity for entity in created})
    return {"entities": created}


@server.tool(annotations=ADDS)
def create_relations(relations: list[Relation]) -> dict[str, list[Relation]]:
    """Create multiple new relations between entities, in active voice."""
    created = [link for link in relations if link not in links]
    links.extend(created)
    return {"relations": created}


@server.tool(annotations=ADDS)
def add_observations(observations: list[Addition]) -> dict[str, list[Added]]:
    """Add new observations to existing entities."""
    # All or nothing: an error after the first entity would leave the caller guessing.
    for name in [addition["entityName"] for addition in observations]:
        if name not in known:
            raise ToolError(f"Entity with name {name} not found")
    results: list[Added] = []
    for addition in observations:
        held = known[addition["entityName"]]["observations"]
        fresh = [text for text in addition["contents"] if text not in held]
        held.extend(fresh)
        results.append({"entityName": addition["entityName"], "addedObservations": fresh})
    return {"results": results}


@server.tool(annotations=DELETES)
def delete_entities(entityNames: list[str]) -> Outcome:  # noqa: N803 (the name on the wire)
    """Delete multiple entities and the relations that touch them."""
    gone = set(entityNames)
    for name in gone & known.keys():
        del known[name]
    links[:] = [link for link in links if not {link["from"], link["to"]} & gone]
    return {"success": True, "message": "Entities deleted successfully"}


@server.tool(annotations=DELETES)
def delete_observations(deletions: list[Deletion]) -> Outcome:
    """Delete specific observations from entities."""
    for entity, gone in [(known.get(d["entityName"]), d["observations"]) for d in deletions]:
        if entity:
            entity["observations"] = [old for old in entity["observations"] if old not in gone]
    return {"success": True, "message": "Observations deleted successfully"}


@server.tool(annotations=DELETES)
def delete_relations(relations: list[Relation]) -> Outcome:
    """Delete multiple relations."""
    links[:] = [link for link in links if link not in relations]
    return {"success": True, "message": "Relations deleted successfully"}


if __name__ == "__main__":
    server.run()
