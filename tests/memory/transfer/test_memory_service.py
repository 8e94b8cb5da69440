"""Databases of mcp-memory-service come in with all that is in them."""

import json
import os
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support import ROOT
from worlds import World, running_world

from toolfold.memory.models import note_hash

PLACE = ROOT / ".tools" / "memory-service"
SCRIPT = Path(__file__).with_name("memory_service_fill.py")

# As mcp-memory-service 12.4.0 makes it, with the columns that its migrations add.
SCHEMA = """
    CREATE TABLE memories (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        content_hash TEXT UNIQUE NOT NULL,
        content TEXT NOT NULL,
        tags TEXT,
        memory_type TEXT,
        metadata TEXT,
        created_at REAL,
        updated_at REAL,
        created_at_iso TEXT,
        updated_at_iso TEXT,
        deleted_at REAL DEFAULT NULL
    );
    ALTER TABLE memories ADD COLUMN parent_id TEXT;
    ALTER TABLE memories ADD COLUMN version INTEGER DEFAULT 1;
    ALTER TABLE memories ADD COLUMN confidence REAL DEFAULT 1.0;
    ALTER TABLE memories ADD COLUMN last_accessed INTEGER;
    ALTER TABLE memories ADD COLUMN superseded_by TEXT;
    ALTER TABLE memories ADD COLUMN store TEXT DEFAULT 'default';
"""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running_world(tmp_path / "data") as world:
        yield world


def make(path: Path, *rows: dict[str, Any], schema: str = SCHEMA) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(schema)
        for number, row in enumerate(rows):
            values = {"content_hash": f"hash{number}", **row}
            connection.execute(
                f"INSERT INTO memories ({', '.join(values)}) "
                f"VALUES ({', '.join('?' * len(values))})",
                tuple(values.values()),
            )
        connection.commit()
    return path


async def test_memories_come_with_tags_types_metadata_and_times(
    world: World, tmp_path: Path
) -> None:
    path = make(
        tmp_path / "theirs.db",
        {
            "content": "We chose SQLite.",
            "tags": "db,decision, choice",
            "memory_type": "decision",
            "metadata": '{"who": "Ada", "quality_score": 0.75}',
            "created_at": 1_700_000_000.25,
            "updated_at": 1_700_000_500.5,
        },
        {"content": "Bare."},
    )

    found = await world.transfer.import_file(str(path))

    assert (found.source, found.changes[0][:2]) == ("mcp-memory-service", ("notes", 2))
    note = await world.memory.get(note_hash("We chose SQLite."))
    assert (note.type, note.tags) == ("decision", ("db", "decision", "choice"))
    assert note.metadata == {"who": "Ada", "quality_score": 0.75}
    assert (note.created, note.updated, note.quality) == (1_700_000_000.25, 1_700_000_500.5, 0.75)
    bare = await world.memory.get(note_hash("Bare."))
    assert (bare.type, bare.tags, bare.created) == ("note", (), world.clock.now)


async def test_deleted_and_superseded_ones_are_hidden_and_can_be_restored(
    world: World, tmp_path: Path
) -> None:
    path = make(
        tmp_path / "theirs.db",
        {"content": "old port is 80", "created_at": 5.0, "superseded_by": "hash1"},
        {"content": "new port is 81", "created_at": 6.0},
        {"content": "gone", "created_at": 5.0, "deleted_at": 9.0},
        {"content": "of a team", "created_at": 5.0, "store": "team"},
    )

    await world.transfer.import_file(str(path))

    assert (await world.memory.list()).total == 2
    newer = await world.memory.get(note_hash("new port is 81"))
    assert [(link.kind, link.hash) for link in newer.links] == [
        ("supersedes", note_hash("old port is 80"))
    ]
    assert await world.memory.restore(note_hash("gone"))
    assert (await world.memory.get(note_hash("of a team"))).metadata == {"store": "team"}


async def test_importing_twice_changes_nothing_and_bad_rows_are_named(
    world: World, tmp_path: Path
) -> None:
    path = make(
        tmp_path / "theirs.db",
        {"content": "fine"},
        {"content": " "},
        {"content": "bad metadata", "metadata": "{nope"},
        {"content": b"\xff\xfe\x00binary"},
        {"content": "x" * 2_000_000},
        {"content": "odd times", "created_at": "yesterday", "updated_at": float("inf")},
    )

    first = await world.transfer.import_file(str(path))
    before = world.rows()
    world.clock.now += 100
    again = await world.transfer.import_file(str(path))

    assert [fault.line for fault in first.faults] == [2, 3, 4, 5]
    assert first.changes[0][1:] == (2, 0, 0)
    assert again.changes[0][1:] == (0, 0, 2)
    assert world.rows() == before


async def test_an_old_database_without_later_columns_comes_in_too(
    world: World, tmp_path: Path
) -> None:
    schema = "CREATE TABLE memories (id INTEGER, content_hash TEXT, content TEXT, tags TEXT);"
    path = make(tmp_path / "theirs.db", {"content": "old one", "tags": "a"}, schema=schema)

    assert (await world.transfer.import_file(str(path))).changes[0].added == 1


async def test_a_view_that_only_looks_like_memories_is_not_read(
    world: World, tmp_path: Path
) -> None:
    path = tmp_path / "trap.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE VIEW memories AS WITH RECURSIVE n(content_hash, content) AS "
            "(SELECT 1, 2 UNION ALL SELECT content_hash + 1, 2 FROM n) SELECT * FROM n"
        )

    with pytest.raises(Exception, match="another kind"):
        await world.transfer.import_file(str(path))


@pytest.mark.skipif(
    not (PLACE / "homes" / "unpadded").is_dir(),
    reason="mcp-memory-service is not installed; `make bench-memory` does that",
)
async def test_a_database_made_by_the_package_itself_comes_in_whole(
    world: World, tmp_path: Path
) -> None:
    told = [
        {
            "content": f"Fact {number} of the Ångström project: value {number * 7}.",
            "tags": ["project", f"n{number % 3}"],
            "memory_type": ["note", "decision", "error"][number % 3],
            "metadata": {"number": number, "nested": {"a": [1, None]}},
            "created": 1_700_000_000.5 + 86_400 * number,
            "deleted": number == 7,
        }
        for number in range(12)
    ]
    path = tmp_path / "theirs.db"
    fill(path, told)

    found = await world.transfer.import_file(str(path))

    assert found.changes[0][:2] == ("notes", 12)
    assert not found.faults
    for each in told:
        if each["deleted"]:
            assert await world.memory.restore(note_hash(each["content"]))
        note = await world.memory.get(note_hash(each["content"]))
        assert (note.type, note.created) == (each["memory_type"], each["created"])
        assert set(note.tags) == set(each["tags"])
        assert note.metadata["number"] == each["metadata"]["number"]
        assert note.metadata["nested"] == {"a": [1, None]}
    assert (await world.transfer.import_file(str(path))).changes[0][1:3] == (0, 0)


def fill(path: Path, told: list[dict[str, Any]]) -> None:
    done = subprocess.run(
        [PLACE / "bin" / "python", SCRIPT],
        input=json.dumps(told),
        capture_output=True,
        text=True,
        timeout=50,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(PLACE / "homes" / "unpadded"),
            "MCP_MEMORY_STORAGE_BACKEND": "sqlite_vec",
            "MCP_MEMORY_ONNX_ALLOW_DOWNLOAD": "0",
            "HF_HUB_OFFLINE": "1",
            "MCP_MEMORY_BASE_DIR": str(path.parent),
            "MCP_MEMORY_SQLITE_PATH": str(path),
        },
    )
    assert done.returncode == 0, done.stderr[-3000:]
