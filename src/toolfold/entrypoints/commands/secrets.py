"""`toolfold secrets`: give, list and forget what servers need and no file should hold."""

import difflib
import sys
from argparse import Namespace
from typing import Final

from toolfold.config.config import Config, load_config
from toolfold.config.servers import ServerConfig
from toolfold.entrypoints.parser import confirm
from toolfold.entrypoints.screen import Cell, Column, print_json, print_table, tell
from toolfold.entrypoints.terminal import read_hidden
from toolfold.errors import BadInput, NotFound, shown
from toolfold.storage.secrets import MAX_CHARS, SecretStore, check_name

_COLUMNS: Final = (Column("SECRET"), Column("KEPT IN"), Column("USED BY", is_wide=True))


def secrets_set(arguments: Namespace) -> int:
    """Keep a secret that is typed or piped in; without a name, ask for all that are missing."""
    config = load_config()
    if arguments.name is None:
        return _ask_for_all(config)
    name = check_name(arguments.name)
    value = _typed(f"Value of {name} (not shown): ") if _is_person() else _piped()
    place, sentence = _keep(config, name, value)
    tell(arguments, sentence, name=name, kept_in=place, used_by=_users(config, name))
    return 0


def secrets_list(arguments: Namespace) -> int:
    """List secrets by name, and the servers that use them; never a value."""
    config = load_config()
    kept = {name: each.place for name, each in _store(config).kept().items()}
    rows: list[dict[str, object]] = [
        {"name": name, "kept_in": kept.get(name), "used_by": _users(config, name)}
        for name in sorted({*kept, *(each for server in config.servers for each in server.missing)})
    ]
    if arguments.json:
        print_json(rows)
    elif rows:
        print_table(_COLUMNS, map(_row, rows))
    else:
        print("No secrets yet. `toolfold secrets set NAME` keeps one, for ${keyring:NAME}.")
    return 0


def secrets_remove(arguments: Namespace) -> int:
    """Forget a secret."""
    config = load_config()
    store, name = _store(config), arguments.name
    if name not in store.kept():
        nearest = difflib.get_close_matches(name, store.kept(), n=1)
        hint = f"Did you mean {nearest[0]!r}?" if nearest else "`toolfold secrets` lists them."
        raise NotFound(f"No secret is named {shown(name)!r}. {hint}")
    users = _users(config, name)
    needed = f" {', '.join(users)} cannot start without it." if users else ""
    if not confirm(f"Remove the secret {name!r}?{needed}", yes=arguments.yes):
        tell(arguments, "Nothing was removed.", name=name, removed=False)
        return 1
    store.remove(name)
    tell(arguments, f"The secret {name!r} is removed.{needed}", name=name, removed=True)
    return 0


def ask_for_missing(config: Config) -> bool:
    """Ask the person at the terminal for what servers lack; return whether anything was given.

    Where nobody is there, nothing is asked: each server says itself what it needs.
    """
    if not _is_person():
        return False
    is_given = False
    for server in config.servers:
        for name in server.missing:
            if name not in _store(config).kept():
                value = _typed(f"{server.name} needs {_about(server, name)}. Enter to skip: ")
                is_given |= bool(value)
                if value:
                    print(_keep(config, name, value)[1], file=sys.stderr)
    return is_given


def _ask_for_all(config: Config) -> int:
    if not _is_person():
        raise BadInput("Say which: `toolfold secrets set NAME`; `toolfold secrets` lists them.")
    if not any(server.missing for server in config.servers):
        print("No secret is missing.")
        return 0
    return 0 if ask_for_missing(config) else 1


def _about(server: ServerConfig, name: str) -> str:
    about = next((each for each in server.inputs if each.id == name), None)
    words = shown(about.description.rstrip(".")) if about and about.description else ""
    choice = f"; one of {shown(', '.join(about.options))}" if about and about.options else ""
    return f"the secret {name!r}" + (f" ({words}{choice})" if words or choice else "")


def _keep(config: Config, name: str, value: str) -> tuple[str, str]:
    """Keep a secret; return where it is, and what to say of it."""
    place = _store(config).put(name, value)
    file = f"{SecretStore.path(config.directories.data)} (mode 0600, not encrypted)"
    kept = f"{name!r} is kept in {'the system keyring' if place == 'keyring' else file}."
    users = _users(config, name)
    if users:
        return place, f"{kept}\nUsed by {', '.join(users)}; no restart is needed."
    return place, f"{kept}\nNo server uses it yet: write ${{keyring:{name}}} where it belongs."


def _users(config: Config, name: str) -> list[str]:
    return [server.name for server in config.servers if name in dict(server.revisions)]


def _row(row: dict[str, object]) -> tuple[str | Cell, ...]:
    users = row["used_by"]
    names = ", ".join(map(shown, users)) if isinstance(users, list) else ""
    place = row["kept_in"]
    return (
        Cell(str(row["name"]), "name"),
        Cell(str(place), "good") if place else Cell("missing", "bad"),
        names or Cell("no server", "dim"),
    )


def _store(config: Config) -> SecretStore:
    return SecretStore(config.directories.data)


def _is_person() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _typed(prompt: str) -> str:
    return read_hidden(prompt).strip("\r\n")


def _piped() -> str:
    value = sys.stdin.read(MAX_CHARS + 2).removesuffix("\n").removesuffix("\r")
    if not value:
        raise BadInput("Nothing was given. Type it at a terminal, or pipe it in.")
    return value
