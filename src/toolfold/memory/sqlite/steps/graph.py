"""The tables of the knowledge graph."""

from typing import Final

STEP: Final[tuple[str, ...]] = (
    "CREATE TABLE graphs (id INTEGER PRIMARY KEY, namespace TEXT NOT NULL UNIQUE)",
    # An entity is its texts: the name, whose number is that of the entity, then the type, then the
    # observations, in the order of their numbers. What UTF-8 or SQLite would not take is a blob.
    # Numbers are not used again, so they are also the order of making. `spoken` is for names.
    """
    CREATE TABLE graph_texts (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        graph INTEGER NOT NULL REFERENCES graphs,
        entity INTEGER NOT NULL,
        place TEXT NOT NULL,
        text NOT NULL,
        spoken TEXT
    )
    """,
    "CREATE INDEX graph_texts_by_graph ON graph_texts (graph)",
    "CREATE INDEX graph_texts_by_entity ON graph_texts (entity, text)",
    "CREATE INDEX graph_names ON graph_texts (graph, text) WHERE place = 'name'",
    "CREATE INDEX graph_names_spoken ON graph_texts (graph, spoken) WHERE spoken IS NOT NULL",
    """
    CREATE TABLE graph_relations (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        graph INTEGER NOT NULL REFERENCES graphs,
        source NOT NULL,
        target NOT NULL,
        type NOT NULL
    )
    """,
    "CREATE INDEX graph_relations_by_source ON graph_relations (graph, source, target, type)",
    # With all columns, as the other: SQLite would rather go through a whole index that has them.
    "CREATE INDEX graph_relations_by_target ON graph_relations (graph, target, source, type)",
)
