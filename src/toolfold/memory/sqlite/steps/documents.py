"""The tables of ingested documents."""

from typing import Final

STEP: Final[tuple[str, ...]] = (
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
