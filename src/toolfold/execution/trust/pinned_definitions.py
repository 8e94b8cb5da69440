"""definitions.db: what tools said of themselves when they were used, and when that changed."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, Final

from toolfold.catalog.tool import Tool, self_contained
from toolfold.storage.migrations import CopiedColumns, DatabaseSchema
from toolfold.storage.tables import SqlTransaction, Tables

SCHEMA: Final = DatabaseSchema(
    "the file of definitions",
    0x746F6C64,
    (
        (
            """
            CREATE TABLE definitions (
                number INTEGER PRIMARY KEY,
                scope TEXT NOT NULL,
                tool TEXT NOT NULL,
                definition TEXT NOT NULL,
                since REAL NOT NULL
            )
            """,
            "CREATE INDEX definitions_by_tool ON definitions (scope, tool)",
        ),
    ),
    tables=(
        CopiedColumns("definitions", "number, scope, tool, definition, since", numbered="number"),
    ),
)
_LATEST: Final = (
    "SELECT definition FROM definitions WHERE scope = ? AND tool = ? ORDER BY number DESC LIMIT 1"
)
_ALL_LATEST: Final = """
    SELECT tool, definition FROM definitions WHERE number IN (
        SELECT max(number) FROM definitions WHERE scope = ? GROUP BY tool)
"""
_MAX_VERSIONS: Final = 20
"""Of one tool: a server that changes at every start shall not fill the disk."""
_TRIM: Final = """
    DELETE FROM definitions WHERE scope = ? AND tool = ? AND number NOT IN (
        SELECT number FROM definitions WHERE scope = ? AND tool = ?
        ORDER BY number DESC LIMIT ?
    )
"""
_SHOWN_CHARS: Final = 80


def definition_of(tool: Tool) -> str:
    """Return what a tool says of itself, as one text; empty for what is built in."""
    if tool.is_built_in:
        return ""
    listed = tool.listed
    said = {
        "description": listed.description,
        "parameters": self_contained(listed.input_schema),
        "returns": listed.output_schema and self_contained(listed.output_schema),
        "read-only": listed.read_only,
        "destructive": listed.destructive,
        "idempotent": listed.idempotent,
    }
    return json.dumps(said, sort_keys=True)


def digest(definition: str) -> str:
    """Return what stands for a definition where it is only compared; empty for none."""
    return hashlib.sha256(definition.encode()).hexdigest() if definition else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionChange:
    """One change of what a tool says of itself."""

    tool: str
    before: str
    after: str
    at: float | None
    """When the tool was first used with what it says since; None if it was not yet."""

    @property
    def ends_read_only(self) -> bool:
        """Whether the tool was read-only, and is so no more."""
        return (
            bool(json.loads(self.before)["read-only"]) and not json.loads(self.after)["read-only"]
        )

    def lines(self) -> list[str]:
        """Say what changed, part by part."""
        before, after = json.loads(self.before), json.loads(self.after)
        return [
            line
            for part in after
            if before.get(part) != after[part]
            for line in _changed(part, before.get(part), after[part])
        ]


class PinnedDefinitions:
    """Keeps the definitions with which tools were used, in a scope of the user's approvals."""

    def __init__(self, tables: Tables, *, clock: Callable[[], float] = time.time) -> None:
        self._tables = tables
        self._clock = clock
        self._known: set[tuple[str, str, str]] = set()

    def knows(self, scope: str, tool: str, definition: str) -> bool:
        """Whether this process has seen the tool used with just this definition."""
        return (scope, tool, definition) in self._known

    def compare(self, scope: str, tool: str, definition: str) -> DefinitionChange | None:
        """Return how a tool differs from what it was used with last; None if it never was.

        Raises:
            StoreError: The database does not answer.
        """
        row = self._tables.read(
            lambda connection: connection.execute(_LATEST, (scope, tool)).fetchone()
        )
        if row is None or row[0] == definition:
            return None
        return DefinitionChange(tool=tool, before=row[0], after=definition, at=None)

    def compare_all(self, scope: str, definitions: Mapping[str, str]) -> list[DefinitionChange]:
        """Return which of these tools differ from what they were used with last, by path.

        Raises:
            StoreError: The database does not answer.
        """
        latest = dict(
            self._tables.read(lambda tables: tables.execute(_ALL_LATEST, (scope,)).fetchall())
        )
        return [
            DefinitionChange(tool=tool, before=latest[tool], after=definition, at=None)
            for tool, definition in definitions.items()
            if latest.get(tool, definition) != definition
        ]

    def pin(self, scope: str, tool: str, definition: str) -> None:
        """Keep that a tool is used with this definition from now on.

        Raises:
            StoreError: The database does not answer.
        """

        def work(connection: SqlTransaction) -> None:
            row = connection.execute(_LATEST, (scope, tool)).fetchone()
            if row is None or row[0] != definition:
                connection.execute(
                    "INSERT INTO definitions (scope, tool, definition, since) VALUES (?, ?, ?, ?)",
                    (scope, tool, definition, self._clock()),
                )
                connection.execute(_TRIM, (scope, tool, scope, tool, _MAX_VERSIONS))

        self._tables.write(work)
        self._known = {each for each in self._known if each[:2] != (scope, tool)}
        self._known.add((scope, tool, definition))

    def changes(self, scope: str) -> list[DefinitionChange]:
        """Return every change that is kept, the newest first.

        Raises:
            StoreError: The database does not answer.
        """
        rows = self._tables.read(
            lambda connection: connection.execute(
                "SELECT tool, definition, since FROM definitions WHERE scope = ? "
                "ORDER BY tool, number",
                (scope,),
            ).fetchall()
        )
        found = [
            DefinitionChange(tool=tool, before=before[1], after=after[1], at=after[2])
            for tool, versions in groupby(rows, key=lambda row: row[0])
            for before, after in pairwise(versions)
        ]
        return sorted(found, key=lambda change: -(change.at or 0))


def _changed(part: str, before: Any, after: Any) -> list[str]:
    """Say how one part changed: texts and hints as they are, schemas by their properties."""
    if isinstance(before, dict) and isinstance(after, dict):
        return _properties(part, before, after)
    return [f"{part}: {_short(before)} -> {_short(after)}"]


def _properties(part: str, before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    old, new = (each.get("properties") or {} for each in (before, after))
    lines = [f"{part}: {name} was removed" for name in sorted(old.keys() - new.keys())]
    lines += [f"{part}: {name} is new" for name in sorted(new.keys() - old.keys())]
    lines += [
        f"{part}: {name}: {_short(old[name])} -> {_short(new[name])}"
        for name in sorted(old.keys() & new.keys())
        if old[name] != new[name]
    ]
    others = [key for key in before | after if key != "properties"]
    lines += [
        f"{part}: {key}: {_short(before.get(key))} -> {_short(after.get(key))}"
        for key in sorted(others)
        if before.get(key) != after.get(key)
    ]
    return lines


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
