"""Read databases of mcp-memory-service: every memory becomes a note with its tags and times."""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from toolfold.errors import BadInput
from toolfold.jsontypes import JsonObject
from toolfold.memory.graph.models import Fault
from toolfold.memory.inputs import (
    check_moment,
    clean_content,
    clean_metadata,
    clean_name,
    clean_tags,
)
from toolfold.memory.models import DEFAULT_TYPE, Link, Note, note_hash
from toolfold.memory.ranking.rank import estimated_quality
from toolfold.memory.transfer.records import NoteRecord
from toolfold.storage.foreign import ForeignConnection, open_foreign

# Of these, older versions lack some.
_COLUMNS: Final = (
    *("content_hash", "content", "tags", "memory_type", "metadata", "created_at", "updated_at"),
    *("deleted_at", "superseded_by", "store"),
)
_NEEDED: Final = {"content_hash", "content"}
_TABLE: Final = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'memories'"


def is_memory_service(connection: ForeignConnection) -> bool:
    """Whether a database holds memories as that program keeps them."""
    row = connection.execute(_TABLE).fetchone()
    # Only a plain table is read: a virtual one, or a view, could do anything at all.
    if row is None or not str(row[0]).upper().startswith("CREATE TABLE"):
        return False
    return _columns(connection) >= _NEEDED


def count_memories(path: Path) -> int:
    """Return how many memories there are.

    Raises:
        StoreError: The database cannot be read.
    """
    with open_foreign(path) as connection:
        found: int = connection.execute("SELECT count(*) FROM memories").fetchone()[0]
    return found


def read_memories(path: Path, *, now: float) -> Iterator[tuple[int, NoteRecord | Fault]]:
    """Give every memory as a note, or why it cannot be one, with its place from 1 on.

    Deleted and superseded ones come as deleted notes; those that supersede them are linked.

    Raises:
        StoreError: The database cannot be read.
    """
    with open_foreign(path) as connection:
        superseded = _superseded(connection)
        for number, row in enumerate(_rows(connection), start=1):
            yield number, _taken(number, row, superseded, now)


def _taken(
    number: int, row: dict[str, Any], superseded: dict[str, list[str]], now: float
) -> NoteRecord | Fault:
    try:
        return NoteRecord(_note(row, superseded, now))
    except BadInput as error:
        return Fault(number, str(error))


def _columns(connection: ForeignConnection) -> set[str]:
    return {row[1] for row in connection.execute("PRAGMA table_info(memories)")}


def _rows(connection: ForeignConnection) -> Iterator[dict[str, Any]]:
    names = [name for name in _COLUMNS if name in _columns(connection)]
    # Texts may be broken; what is not UTF-8 in them is replaced.
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    # What is there comes before what is deleted: of two that say the same, it is the one.
    first = "deleted_at IS NOT NULL, " if "deleted_at" in names else ""
    statement = f"SELECT {', '.join(names)} FROM memories ORDER BY {first}rowid"  # noqa: S608
    for row in connection.execute(statement):
        yield dict.fromkeys(_COLUMNS) | dict(zip(names, row, strict=True))


def _superseded(connection: ForeignConnection) -> dict[str, list[str]]:
    """Return the hashes, as they are here, of what each memory supersedes."""
    found: dict[str, list[str]] = defaultdict(list)
    if "superseded_by" in _columns(connection):
        rows = connection.execute(
            "SELECT superseded_by, content FROM memories WHERE superseded_by != '' ORDER BY rowid"
        )
        for newer, content in rows:
            if isinstance(content, str):
                found[str(newer)].append(note_hash(content))
    return found


def _note(row: dict[str, Any], superseded: dict[str, list[str]], now: float) -> Note:
    content = clean_content(row["content"])
    name = note_hash(content)
    created = _time(row["created_at"], now)
    updated = max(created, _time(row["updated_at"], created))
    deleted = _time(row["deleted_at"], None)
    if deleted is None and row["superseded_by"]:
        deleted = updated
    metadata = _metadata(row)
    older = [each for each in superseded.get(str(row["content_hash"]), ()) if each != name]
    return Note(
        content=content,
        hash=name,
        type=clean_name(row["memory_type"] or DEFAULT_TYPE, "type"),
        tags=clean_tags(row["tags"] or ()),
        metadata=metadata,
        source="mcp-memory-service",
        quality=_quality(metadata, content),
        created=created,
        updated=updated,
        deleted=deleted,
        links=tuple(Link(kind="supersedes", hash=each) for each in older),
        namespace="",
    )


def _metadata(row: dict[str, Any]) -> JsonObject:
    try:
        found = json.loads(row["metadata"] or "{}")
    except (ValueError, TypeError, RecursionError) as error:
        raise BadInput(f"Its metadata is not JSON: {error}.") from error
    found = found if isinstance(found, dict) else {"metadata": found}
    if row["store"] not in (None, "", "default"):
        found["store"] = row["store"]
    return clean_metadata(found)


def _quality(metadata: JsonObject, content: str) -> float:
    told = metadata.get("quality_score")
    if isinstance(told, int | float) and not isinstance(told, bool) and 0 <= told <= 1:
        return float(told)
    return estimated_quality(content)


def _time(value: object, default: "float | None") -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        return check_moment(value, "time") if is_number else default  # type: ignore[arg-type]
    except BadInput:
        return default
