"""The tables of a SQLite store, and what brings them from one version to the next."""

from typing import Final

from toolfold.storage.migrations import DatabaseSchema

# The tables of notes, and what all others lean on.
NOTES: Final[tuple[str, ...]] = (
    # One row: who made the vectors, and a number that grows with every transaction that writes.
    """
    CREATE TABLE state (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        changed INTEGER NOT NULL,
        embedder TEXT,
        dimensions INTEGER
    )
    """,
    "INSERT INTO state VALUES (1, 0, NULL, NULL)",
    # How many notes are not deleted: counting 100,000 takes longer than all else in a search.
    """
    CREATE TABLE namespaces (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        notes INTEGER NOT NULL DEFAULT 0
    )
    """,
    """
    CREATE TABLE threads (
        id INTEGER PRIMARY KEY,
        namespace INTEGER NOT NULL REFERENCES namespaces,
        name TEXT NOT NULL,
        UNIQUE (namespace, name)
    )
    """,
    # The numbers of purged notes are not used again: other processes may still hold them.
    """
    CREATE TABLE notes (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        namespace INTEGER NOT NULL REFERENCES namespaces,
        hash TEXT NOT NULL,
        version INTEGER NOT NULL,
        type TEXT NOT NULL,
        source TEXT NOT NULL,
        thread INTEGER REFERENCES threads,
        position INTEGER,
        quality REAL NOT NULL,
        created REAL NOT NULL,
        updated REAL NOT NULL,
        deleted REAL,
        tags TEXT NOT NULL,
        metadata TEXT NOT NULL,
        content TEXT NOT NULL,
        UNIQUE (namespace, hash)
    )
    """,
    "CREATE INDEX notes_by_time ON notes (namespace, created, number) WHERE deleted IS NULL",
    "CREATE INDEX notes_by_type ON notes (namespace, type, created) WHERE deleted IS NULL",
    # Of notes that are not deleted, as are the words.
    """
    CREATE TABLE tags (
        namespace INTEGER NOT NULL,
        tag TEXT NOT NULL,
        number INTEGER NOT NULL REFERENCES notes,
        PRIMARY KEY (namespace, tag, number)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE links (
        number INTEGER NOT NULL REFERENCES notes,
        kind TEXT NOT NULL,
        hash TEXT NOT NULL,
        PRIMARY KEY (number, kind, hash)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE versions (
        number INTEGER NOT NULL REFERENCES notes,
        version INTEGER NOT NULL,
        namespace INTEGER NOT NULL,
        hash TEXT NOT NULL,
        type TEXT NOT NULL,
        source TEXT NOT NULL,
        quality REAL NOT NULL,
        created REAL NOT NULL,
        updated REAL NOT NULL,
        tags TEXT NOT NULL,
        metadata TEXT NOT NULL,
        content TEXT NOT NULL,
        PRIMARY KEY (number, version)
    )
    """,
    "CREATE INDEX versions_by_hash ON versions (namespace, hash)",
    # What the index in memory holds of each note, in one narrow table that is read as a whole.
    # No vector: to be made. An empty one: the note is purged.
    """
    CREATE TABLE points (
        number INTEGER PRIMARY KEY,
        namespace INTEGER NOT NULL,
        changed INTEGER NOT NULL,
        is_live INTEGER NOT NULL,
        thread INTEGER,
        position INTEGER,
        created REAL NOT NULL,
        quality REAL NOT NULL,
        length INTEGER NOT NULL,
        vector BLOB
    )
    """,
    "CREATE INDEX points_by_namespace ON points (namespace)",
    "CREATE INDEX points_by_change ON points (namespace, changed)",
    "CREATE INDEX points_unembedded ON points (number) WHERE vector IS NULL",
)

# The tables of the knowledge graph.
GRAPH: Final[tuple[str, ...]] = (
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

EVENTS_STAY: Final = """
    CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'an event is never deleted'); END
"""

# The table of events.
EVENTS: Final[tuple[str, ...]] = (
    """
    CREATE TABLE events (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        namespace INTEGER NOT NULL REFERENCES namespaces,
        id TEXT NOT NULL,
        type TEXT NOT NULL,
        content TEXT NOT NULL,
        outcome TEXT,
        duration_ms REAL,
        session_id TEXT,
        metadata TEXT NOT NULL,
        at REAL NOT NULL,
        UNIQUE (namespace, id)
    )
    """,
    "CREATE INDEX events_by_time ON events (namespace, at, number)",
    "CREATE INDEX events_by_session ON events (namespace, session_id, at, number)",
    "CREATE INDEX events_by_type ON events (namespace, type, at, number)",
    # What happened has happened, whoever has the file open.
    """
    CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'an event is never changed'); END
    """,
    EVENTS_STAY,
)

# The tables of consolidations.
CONSOLIDATION: Final[tuple[str, ...]] = (
    # When a note was archived: it counts as deleted, but can still be had by its hash.
    "ALTER TABLE notes ADD COLUMN archived REAL",
    """
    CREATE TABLE uses (
        number INTEGER PRIMARY KEY REFERENCES notes,
        gets INTEGER NOT NULL,
        shown INTEGER NOT NULL,
        last REAL NOT NULL
    )
    """,
    # `place` counts the consolidations of a namespace, and is the id that people see.
    """
    CREATE TABLE consolidations (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        namespace INTEGER NOT NULL REFERENCES namespaces,
        place INTEGER NOT NULL,
        at REAL NOT NULL,
        undone REAL,
        strategy TEXT NOT NULL,
        days_back REAL,
        counts TEXT NOT NULL,
        UNIQUE (namespace, place)
    )
    """,
    # What each consolidation did to notes, in the order in which it did. See `sql.changes` for
    # what the columns mean in each kind. None holds what a note says.
    """
    CREATE TABLE consolidation_changes (
        id INTEGER PRIMARY KEY,
        consolidation INTEGER NOT NULL REFERENCES consolidations,
        number INTEGER NOT NULL REFERENCES notes,
        kind TEXT NOT NULL,
        before REAL,
        after REAL,
        other INTEGER REFERENCES notes,
        link TEXT,
        hash TEXT
    )
    """,
    "CREATE INDEX changes_by_consolidation ON consolidation_changes (consolidation, id)",
    "CREATE INDEX changes_by_note ON consolidation_changes (number, consolidation)",
    "CREATE INDEX changes_by_other ON consolidation_changes (other) WHERE other IS NOT NULL",
    # The names of patterns and clusters: what was found before is not new.
    """
    CREATE TABLE consolidation_findings (
        namespace INTEGER NOT NULL REFERENCES namespaces,
        name BLOB NOT NULL,
        consolidation INTEGER NOT NULL REFERENCES consolidations,
        PRIMARY KEY (namespace, name)
    ) WITHOUT ROWID
    """,
    # Which process may consolidate by itself, and until when.
    """
    CREATE TABLE consolidation_turns (
        namespace INTEGER PRIMARY KEY REFERENCES namespaces,
        holder TEXT NOT NULL,
        until REAL NOT NULL
    )
    """,
)

# The tables of ingested documents.
DOCUMENTS: Final[tuple[str, ...]] = (
    # Their chunks are the notes of type `document` in the thread that is named by the path.
    """
    CREATE TABLE documents (
        namespace INTEGER NOT NULL REFERENCES namespaces,
        path TEXT NOT NULL,
        kind TEXT NOT NULL,
        title TEXT NOT NULL,
        pages INTEGER,
        size INTEGER NOT NULL,
        modified_ns INTEGER NOT NULL,
        digest TEXT NOT NULL,
        reader INTEGER NOT NULL,
        tags TEXT NOT NULL,
        chunks INTEGER NOT NULL,
        ingested REAL NOT NULL,
        PRIMARY KEY (namespace, path)
    ) WITHOUT ROWID
    """,
    # A thread is a small part of all notes, and there is no other way to find it.
    "CREATE INDEX notes_by_thread ON notes (thread, position) WHERE thread IS NOT NULL",
)

# Which notes supersede others is among the links; this finds those that are superseded.
SUPERSESSION: Final[tuple[str, ...]] = (
    "CREATE INDEX links_superseding ON links (hash) WHERE kind = 'supersedes'",
)


# Each step brings a database of the version that is its index to the next.
SCHEMA: Final = DatabaseSchema(
    "the memory",
    0x746F6C6D,
    (NOTES, GRAPH, EVENTS, CONSOLIDATION, DOCUMENTS, SUPERSESSION),
)


def words_table(namespace: int) -> str:
    """Return the name of the table of words of a namespace."""
    return f"words_{namespace:d}"


def vocabulary_table(namespace: int) -> str:
    """Return the name of the table that gives each occurrence of each word."""
    return f"vocabulary_{namespace:d}"
