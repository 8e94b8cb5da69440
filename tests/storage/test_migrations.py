"""Every version of every file becomes the present one, and a newer one is refused."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from toolfold.execution.trust import approvals
from toolfold.journal import runsdb
from toolfold.memory.sqlite.steps import SCHEMA as MEMORY
from toolfold.privacy.schema import SCHEMA as VAULTS
from toolfold.skills import store
from toolfold.storage.files import make_private_file
from toolfold.storage.migrations import (
    DatabaseSchema,
    ForeignDatabase,
    NewerDatabase,
    is_current,
    migrate,
    pragma,
)
from toolfold.storage.sqlite_file import transaction

SCHEMAS = [runsdb.SCHEMA, approvals.SCHEMA, store.SCHEMA, VAULTS, MEMORY]
VERSIONS = [(each, number) for each in SCHEMAS for number in range(len(each.steps))]


def connect(path: Path, schema: DatabaseSchema) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    if schema.prepare is not None:
        schema.prepare(connection, path)
    return connection


def bring_to(connection: sqlite3.Connection, schema: DatabaseSchema) -> None:
    with transaction(connection, "BEGIN IMMEDIATE"):
        migrate(connection, schema)


def tables(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    found = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name")
    return found.fetchall()


@pytest.mark.parametrize(
    ("schema", "version"), VERSIONS, ids=lambda each: getattr(each, "name", each)
)
def test_a_file_of_any_version_becomes_what_a_new_one_is(
    schema: DatabaseSchema, version: int, tmp_path: Path
) -> None:
    with (
        closing(connect(tmp_path / "old.db", schema)) as old,
        closing(connect(tmp_path / "new.db", schema)) as new,
    ):
        bring_to(old, schema._replace(steps=schema.steps[:version]))
        assert not is_current(old, schema)

        bring_to(old, schema)
        bring_to(new, schema)

        assert is_current(old, schema)
        assert tables(old) == tables(new)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda each: each.name)
def test_a_newer_file_and_one_of_another_program_stay_as_they_are(
    schema: DatabaseSchema, tmp_path: Path
) -> None:
    newer = schema._replace(steps=(*schema.steps, ("CREATE TABLE later (id INTEGER)",)))
    with closing(connect(tmp_path / "newer.db", schema)) as connection:
        bring_to(connection, newer)
        with pytest.raises(NewerDatabase):
            bring_to(connection, schema)
        assert pragma(connection, "user_version") == len(newer.steps)
    with closing(sqlite3.connect(tmp_path / "foreign.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE theirs (id INTEGER)")
        with pytest.raises(ForeignDatabase):
            bring_to(connection, schema)
        assert [name for _, name, _ in tables(connection)] == ["theirs"]


def test_a_private_file_is_closed_to_others_and_never_emptied(tmp_path: Path) -> None:
    path = tmp_path / "inner" / "file.db"
    make_private_file(path)
    path.write_bytes(b"kept")
    path.chmod(0o644)

    make_private_file(path)

    assert (path.stat().st_mode & 0o777, path.read_bytes()) == (0o600, b"kept")
    assert path.parent.stat().st_mode & 0o777 == 0o700
