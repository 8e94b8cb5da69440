"""The entry by which a client starts this toolfold."""

import shutil
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from toolfold.entrypoints.install.clients import Client
from toolfold.jsontypes import JsonObject

NAME = "toolfold"


def own_entry(client: Client, environ: Mapping[str, str]) -> JsonObject:
    """Return what a client's file shall say: by name if PATH leads here, else by its full path."""
    entry: JsonObject = {"type": "stdio"} if client in {"claude", "vscode"} else {}
    command, *arguments = _command(environ)
    return {**entry, "command": command, "args": [*arguments, "mcp"]}


def _command(environ: Mapping[str, str]) -> list[str]:
    script = shutil.which(NAME, path=sysconfig.get_path("scripts"))
    if script is None:
        return [sys.executable, "-m", NAME]
    in_path = shutil.which(NAME, path=environ.get("PATH", ""))
    if in_path and Path(in_path).resolve() == Path(script).resolve():
        return [NAME]
    return [script]


def free_name(taken: Mapping[str, object]) -> str:
    """Return a name for our entry that no other server has."""
    number, name = 1, NAME
    while name in taken:
        number += 1
        name = f"{NAME}_{number}"
    return name
