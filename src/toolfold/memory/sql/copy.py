"""Copy all of memory from one database into another, and see that it is the same."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from toolfold.errors import StoreError, count
from toolfold.memory.graph.encoding import unpacked
from toolfold.memory.sql.connection import SqlConnection
from toolfold.storage.migrations import CopiedColumns
from toolfold.storage.tables import CopiedTable, compare, copy_rows

_NOTE: Final = (
    "number, namespace, hash, version, type, source, thread, position, quality, created, updated, "
    "deleted, tags, metadata, content, archived"
)


_TABLES: Final = (
    CopiedColumns("namespaces", "id, name, notes"),
    CopiedColumns("threads", "id, namespace, name"),
    CopiedColumns("notes", _NOTE),
    CopiedColumns("tags", "namespace, tag, number", 3),
    CopiedColumns("links", "number, kind, hash", 3),
    CopiedColumns(
        "versions",
        "number, version, namespace, hash, type, source, quality, created, updated, tags, "
        "metadata, content",
        2,
    ),
    CopiedColumns(
        "points",
        "number, namespace, changed, is_live, thread, position, created, quality, length, vector",
    ),
    CopiedColumns("graphs", "id, namespace, changed"),
    CopiedColumns(
        "graph_parts",
        "number, graph, entity, name, type, spoken, observations",
    ),
    CopiedColumns(
        "graph_relations",
        "number, graph, source, target, type",
    ),
    CopiedColumns(
        "events",
        "number, namespace, id, type, content, outcome, duration_ms, session_id, metadata, at",
    ),
    CopiedColumns("uses", "number, gets, shown, last"),
    CopiedColumns(
        "consolidations", "number, namespace, place, at, undone, strategy, days_back, counts"
    ),
    CopiedColumns(
        "consolidation_changes",
        "id, consolidation, number, kind, before, after, other, link, hash",
    ),
    CopiedColumns("consolidation_findings", "namespace, name, consolidation", 2),
    CopiedColumns(
        "documents",
        "namespace, path, kind, title, pages, size, modified_ns, digest, reader, tags, chunks, "
        "ingested",
        2,
    ),
)


_NAMES: Final = {"graph_parts": (3, 4), "graph_relations": (2, 3, 4)}
"""Columns that each database holds in a form of its own; see `SqlConnection.stored`."""


def copy_memory(
    source: SqlConnection, target: SqlConnection, progress: Callable[[str, int], None]
) -> list[CopiedTable]:
    """Put all that is in `source` in the place of all that is in `target`.

    Raises:
        StoreError: The copy is not what was copied, or `target` has what `source` has not.
    """
    check_nothing_lost(source, target)
    target.clear()
    for table in _TABLES:
        names = _NAMES.get(table.name, ())
        plain, stored = partial(_plain, names), partial(_stored, target, names)
        count = copy_rows(source, target, table, plain=plain, stored=stored)
        progress(table.name, count)
    _copy_state(source, target)
    _index_notes(target)
    _index_graphs(target)
    target.finish_copy()
    return [
        compare(source, target, table, plain=partial(_plain, _NAMES.get(table.name, ())))
        for table in _TABLES
    ]


def check_nothing_lost(source: SqlConnection, target: SqlConnection) -> None:
    """Refuse where the target holds what came from elsewhere.

    Raises:
        StoreError: It does.
    """
    for what, statement in {
        "notes": "SELECT name, hash FROM notes JOIN namespaces ON namespaces.id = namespace",
        "events": "SELECT name, events.id FROM events JOIN namespaces ON namespaces.id = namespace",
        "graphs": "SELECT namespace, '' FROM graphs",
    }.items():
        there = {tuple(row) for row in target.stream(statement)}
        there -= {tuple(row) for row in source.stream(statement)} if there else set()
        if what == "notes" and there:
            there -= {tuple(row) for row in source.stream(_FORMER_HASHES)}
        if there:
            found = count(len(there), what.removesuffix("s"))
            raise StoreError(
                f"The target has {found} that the source has not, which would be lost. "
                "Take them over with `toolfold export` and `toolfold import` first, or name "
                "an empty database."
            )


_FORMER_HASHES: Final = """
    SELECT name, versions.hash FROM versions JOIN namespaces ON namespaces.id = versions.namespace
"""


def _plain(names: tuple[int, ...], row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        value.decode("utf-8", "surrogatepass")
        if place in names and isinstance(value, bytes)
        else value
        for place, value in enumerate(row)
    )


def _stored(target: SqlConnection, names: tuple[int, ...], row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        target.stored(value) if place in names and value is not None else value
        for place, value in enumerate(row)
    )


def _copy_state(source: SqlConnection, target: SqlConnection) -> None:
    [state] = source.execute("SELECT changed, embedder, dimensions FROM state").fetchall()
    target.execute("UPDATE state SET changed = ?, embedder = ?, dimensions = ?", state)


def _index_notes(target: SqlConnection) -> None:
    for (namespace,) in target.execute("SELECT id FROM namespaces ORDER BY id").fetchall():
        target.words.begin(namespace)
    for namespace, number, content in target.stream(
        "SELECT namespace, number, content FROM notes WHERE deleted IS NULL ORDER BY number"
    ):
        target.words.add(namespace, number, content)


def _index_graphs(target: SqlConnection) -> None:
    for (graph,) in target.execute("SELECT id FROM graphs ORDER BY id").fetchall():
        target.parts.begin(graph)
    for graph, number, name, kind, told in target.stream(
        "SELECT graph, number, name, type, observations FROM graph_parts ORDER BY number"
    ):
        [observations] = unpacked(told)
        target.parts.add(graph, number, (_text(name), _text(kind), observations))


def _text(value: str | bytes | None) -> str:
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value or ""
