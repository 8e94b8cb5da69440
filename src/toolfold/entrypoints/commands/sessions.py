"""`toolfold sessions`: the sessions of the project that one is in."""

import dataclasses
from argparse import Namespace

from toolfold.config.config import load_config
from toolfold.entrypoints.parser import confirm, unknown
from toolfold.entrypoints.screen import Cell, Column, moment, print_json, print_table, size
from toolfold.errors import NotFound, count, shown
from toolfold.execution.sessions.bindings import SessionInfo
from toolfold.execution.sessions.sessions import Sessions, sessions_of

_COLUMNS = (
    Column("SESSION"),
    Column("USED"),
    Column("SANDBOX"),
    Column("RUNS", is_number=True),
    Column("SIZE", is_number=True),
    Column("NAMES", is_wide=True),
)
_SHOWN_NAMES_CHARS = 60


def sessions_list(arguments: Namespace) -> int:
    """List all, the last used first."""
    found = _sessions().list()
    if arguments.json:
        print_json([_as_json(info) for info in found])
    elif found:
        print_table(_COLUMNS, map(_row, found))
    else:
        print("No sessions in this project. `toolfold run --session NAME` starts one.")
    return 0


def sessions_show(arguments: Namespace) -> int:
    """Show what one holds."""
    info = _find(arguments.name)
    if arguments.json:
        print_json(_as_json(info))
        return 0
    print_table(_COLUMNS, [_row(info)])
    bound = info.bindings
    for statement in sorted(set(bound.imports.values())):
        print(f"    {shown(statement)}")
    for name in bound.names:
        if name not in bound.imports:
            text = bound.definitions.get(name, "").split("\n")[0]
            print(f"    {shown(text or name)}")
    return 0


def sessions_reset(arguments: Namespace) -> int:
    """Clear the variables of one."""
    info = _find(arguments.name)
    names = count(len(info.bindings.names), "name")
    if not confirm(f"Clear the {names} of session {info.name!r}?", yes=arguments.yes):
        print("Nothing was cleared.")
        return 1
    _sessions().reset(info.name)
    return _told(arguments, info, f"Session {info.name!r} is empty now.")


def sessions_delete(arguments: Namespace) -> int:
    """Delete one."""
    info = _find(arguments.name)
    if not confirm(f"Delete session {info.name!r}?", yes=arguments.yes):
        print("Nothing was deleted.")
        return 1
    _sessions().reset(info.name)
    return _told(arguments, info, f"Session {info.name!r} deleted.")


def sessions_fork(arguments: Namespace) -> int:
    """Copy one."""
    _find(arguments.name)
    info = _sessions().fork(arguments.name, arguments.copy)
    names = count(len(info.bindings.names), "name")
    return _told(arguments, info, f"Session {info.name!r} has the {names} of {arguments.name!r}.")


def _find(name: str) -> SessionInfo:
    """Return a session.

    Raises:
        NotFound: There is none; the nearest name is told.
    """
    names = [info.name for info in _sessions().list()]
    if name not in names:
        raise NotFound(unknown("session", name, names, see="`toolfold sessions` lists them."))
    return _sessions().show(name)


def _told(arguments: Namespace, info: SessionInfo, text: str) -> int:
    if arguments.json:
        print_json(_as_json(info))
    else:
        print(text)
    return 0


def _sessions() -> Sessions:
    return sessions_of(load_config())


def _row(info: SessionInfo) -> tuple[str | Cell, ...]:
    return (
        Cell(info.name, "name"),
        Cell(moment(info.used_at), "dim"),
        info.tier,
        f"{info.runs:,}",
        size(info.size_bytes),
        shown(", ".join(info.bindings.names), max_chars=_SHOWN_NAMES_CHARS),
    )


def _as_json(info: SessionInfo) -> dict[str, object]:
    return dataclasses.asdict(info)
