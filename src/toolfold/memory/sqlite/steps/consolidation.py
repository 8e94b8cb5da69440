"""The tables of consolidations."""

from typing import Final

STEP: Final[tuple[str, ...]] = (
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
    # What each consolidation did to notes, in the order in which it did. See `sqlite.changes` for
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
