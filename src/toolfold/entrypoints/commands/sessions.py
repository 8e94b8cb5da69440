"""`toolfold sessions`: the sessions of the project that one is in."""

import dataclasses
import json
from argparse import Namespace
from datetime import UTC, datetime

from toolfold.config.config import load_config
from toolfold.config.faults import shown
from toolfold.execution.sessions.info import SessionInfo
from toolfold.execution.sessions.sessions import Sessions, sessions_of

_SHOWN_NAMES_CHARS = 60


def sessions_list(arguments: Namespace) -> int:
    """List all, the last used first."""
    found = _sessions().list()
    if arguments.json:
        print(json.dumps([_as_json(info) for info in found], ensure_ascii=False, indent=2))
    else:
        print("\n".join(map(_line, found)) or "No session is kept for this project.")
    return 0


def sessions_show(arguments: Namespace) -> int:
    """Show what one holds."""
    info = _sessions().show(arguments.name)
    if arguments.json:
        print(json.dumps(_as_json(info), ensure_ascii=False, indent=2))
        return 0
    print(_line(info))
    bound = info.bindings
    for statement in sorted(set(bound.imports.values())):
        print(f"    {shown(statement)}")
    for name in bound.names:
        if name not in bound.imports:
            text = bound.definitions.get(name, "").split("\n")[0]
            print(f"    {shown(text or name)}")
    return 0


def sessions_reset(arguments: Namespace) -> int:
    """Forget the variables of one."""
    _sessions().reset(arguments.name)
    print(f"The variables of session {arguments.name!r} are gone.")
    return 0


def sessions_fork(arguments: Namespace) -> int:
    """Copy one."""
    info = _sessions().fork(arguments.name, arguments.copy)
    print(f"Session {info.name!r} has the {len(info.bindings.names)} names of {arguments.name!r}.")
    return 0


def _sessions() -> Sessions:
    return sessions_of(load_config())


def _line(info: SessionInfo) -> str:
    used = datetime.fromtimestamp(info.used_at, tz=UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    names = shown(", ".join(info.bindings.names), max_chars=_SHOWN_NAMES_CHARS)
    return (
        f"{info.name:<34}  {used}  {info.tier:<7}  {info.runs:>4} runs"
        f"  {info.size_bytes:>10,} bytes  {names}"
    )


def _as_json(info: SessionInfo) -> dict[str, object]:
    return dataclasses.asdict(info)
