"""The tables of vaults."""

from typing import Final

from toolfold.storage.migrations import CopiedColumns, DatabaseSchema

# Each step brings a database of the version that is its index to the next.
SCHEMA: Final = DatabaseSchema(
    "the file of vaults",
    0x746F6C76,
    (
        (
            "CREATE TABLE keys (place TEXT NOT NULL, fingerprint BLOB NOT NULL)",
            """
        CREATE TABLE scopes (
            id BLOB PRIMARY KEY,
            base INTEGER NOT NULL,
            used_at REAL NOT NULL
        ) WITHOUT ROWID
        """,
            """
        CREATE TABLE pages (
            scope BLOB NOT NULL,
            number INTEGER NOT NULL,
            sealed BLOB NOT NULL,
            PRIMARY KEY (scope, number)
        ) WITHOUT ROWID
        """,
        ),
    ),
    is_kept=True,
    tables=(
        CopiedColumns("keys", "place, fingerprint"),
        CopiedColumns("scopes", "id, base, used_at"),
        CopiedColumns("pages", "scope, number, sealed", 2),
    ),
)
