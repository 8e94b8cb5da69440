"""The entry by which a client starts this toolfold."""

import shutil
import sys
import sysconfig
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from toolfold.entrypoints.install.clients import ClientName
from toolfold.jsontypes import JsonObject

NAME = "toolfold"


# Where our files are is decided by these; other clients pass on their whole environment.
_PLACES = (
    *("TOOLFOLD_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"),
    *("XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TOOLFOLD_DATA_DIR"),
)


def own_entry(client: ClientName, environ: Mapping[str, str]) -> JsonObject:
    """Return what a client's file shall say: by name if PATH leads here, else by its full path."""
    entry: JsonObject = {"type": "stdio"} if client in {"claude", "vscode"} else {}
    command, *arguments = own_command(environ)
    return {**entry, "command": command, "args": [*arguments, "mcp"]}


def passing_on(
    client: ClientName, entry: JsonObject, variables: Sequence[str], environ: Mapping[str, str]
) -> JsonObject:
    """Return our entry so that toolfold gets the variables that its servers need.

    Codex gives a server the variables that its entry names, and hardly any other.
    """
    passed = entry.get("env_vars", [])
    is_plain = all(isinstance(value, str | list) for value in entry.values())
    if client != "codex" or not isinstance(passed, list) or not is_plain:
        return entry
    needed = [*(name for name in _PLACES if name in environ), *variables]
    missing = [name for name in needed if name not in passed]
    return {**entry, "env_vars": [*passed, *missing]} if missing else entry


def own_command(environ: Mapping[str, str]) -> list[str]:
    """Return how this toolfold is started: by name if PATH leads here, else by its full path.

    A virtual environment is in PATH only while it is active, which it is not for a client.
    """
    script = shutil.which(NAME, path=sysconfig.get_path("scripts"))
    if script is None:
        return [sys.executable, "-P", "-m", NAME]
    in_path = shutil.which(NAME, path=environ.get("PATH", ""))
    if in_path and Path(in_path).resolve() == Path(script).resolve():
        is_active_only = sys.prefix != sys.base_prefix and Path(in_path) == Path(script)
        return [script] if is_active_only else [NAME]
    return [script]


def free_name(taken: Collection[str]) -> str:
    """Return a name for our entry that no other server has."""
    number, name = 1, NAME
    while name in taken:
        number += 1
        name = f"{NAME}_{number}"
    return name
