"""The tables of the knowledge graph."""

from typing import Final

STEP: Final[tuple[str, ...]] = (
    # `changed` grows with every transaction that writes.
    """
    CREATE TABLE graphs (
        id INTEGER PRIMARY KEY,
        namespace TEXT NOT NULL UNIQUE,
        changed INTEGER NOT NULL DEFAULT 0
    )
    """,
    # An entity is its parts, in the order of their numbers. What was told of it at once is one: the
    # first has its name and type too, and its number is that of the entity. Numbers are not used
    # again, so they are also the order of making. Observations are packed JSON. Names and types
    # that UTF-8 or SQLite would not take are blobs.
    """
    CREATE TABLE graph_parts (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        graph INTEGER NOT NULL REFERENCES graphs,
        entity INTEGER NOT NULL,
        name,
        type,
        spoken TEXT,
        observations TEXT NOT NULL
    )
    """,
    "CREATE INDEX graph_parts_by_entity ON graph_parts (graph, entity)",
    "CREATE INDEX graph_parts_by_name ON graph_parts (graph, name) WHERE name IS NOT NULL",
    "CREATE INDEX graph_parts_spoken ON graph_parts (graph, spoken) WHERE spoken IS NOT NULL",
    """
    CREATE TABLE graph_relations (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        graph INTEGER NOT NULL REFERENCES graphs,
        source NOT NULL,
        target NOT NULL,
        type NOT NULL
    )
    """,
    # Both with all columns: SQLite would rather go through a whole index that has them.
    "CREATE INDEX graph_relations_by_source ON graph_relations (graph, source, target, type)",
    "CREATE INDEX graph_relations_by_target ON graph_relations (graph, target, source, type)",
)
