"""Filters as conditions of SQL."""

from typing import NamedTuple

from toolfold.memory.store import Filter


class SqlCondition(NamedTuple):
    """What stands after WHERE, over the table `notes`, and its values."""

    sql: str
    values: tuple[object, ...]


def condition(namespace: int, wanted: Filter) -> SqlCondition:
    """Return the condition that exactly the live notes of a namespace meet which pass a filter."""
    # Few notes have a tag: the plus keeps SQLite from going through all of the namespace instead.
    parts = [f"{'+' if wanted.tags else ''}notes.namespace = ?", "notes.deleted IS NULL"]
    values: list[object] = [namespace]
    for sql, value in (
        ("notes.type = ?", wanted.type),
        ("notes.created >= ?", wanted.after),
        ("notes.created < ?", wanted.before),
    ):
        if value is not None:
            parts.append(sql)
            values.append(value)
    if wanted.tags:
        tagged, tags = _tagged(namespace, wanted)
        parts.append(f"notes.number IN ({tagged})")
        values.extend(tags)
    return SqlCondition(" AND ".join(parts), tuple(values))


def _tagged(namespace: int, wanted: Filter) -> SqlCondition:
    tags = tuple(dict.fromkeys(wanted.tags))
    marks = ", ".join("?" * len(tags))
    sql = f"SELECT number FROM tags WHERE namespace = ? AND tag IN ({marks})"
    if wanted.tag_match == "all":
        return SqlCondition(
            f"{sql} GROUP BY number HAVING count(*) = ?", (namespace, *tags, len(tags))
        )
    return SqlCondition(sql, (namespace, *tags))
