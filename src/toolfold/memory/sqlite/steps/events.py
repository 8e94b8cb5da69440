"""The table of events."""

from typing import Final

STEP: Final[tuple[str, ...]] = (
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
    """
    CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'an event is never deleted'); END
    """,
)
