"""The tables of notes, and what all others lean on."""

from typing import Final

STEP: Final = (
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
