"""`toolfold migrate`: all that is kept from one database into another."""

import os
import sys
from argparse import Namespace
from typing import Final

import anyio

from toolfold.app import migrate_stores
from toolfold.config.config import Config
from toolfold.entrypoints.commands.daemon import find_daemon, take_place
from toolfold.entrypoints.commands.options import config_of
from toolfold.entrypoints.http.keys import copy_keys, key_store
from toolfold.entrypoints.screen import print_json
from toolfold.errors import ConfigError, count

_OWN_FILE: Final = "sqlite"
_CONFIGURED: Final = "postgresql"


def migrate(arguments: Namespace) -> int:
    """Copy what is kept, and say what was copied."""
    config = config_of(arguments)
    source = _address(config, arguments.source)
    target = _address(config, arguments.target)
    if source == target:
        raise ConfigError("--from and --to are the same database.")
    lock = take_place(find_daemon())
    if lock is None:
        raise ConfigError(
            "The daemon is running and may write during the copy. First: `toolfold stop`."
        )
    try:
        copied = anyio.run(migrate_stores, config, source, target, _tell)
        stores = (key_store(config.directories, each) for each in (source, target))
        keys = copy_keys(*stores)
    finally:
        os.close(lock)
    if arguments.json:
        print_json({"tables": [each._asdict() for each in copied], "keys": keys})
        return 0
    for each in copied:
        print(f"{each.name:<24} {each.rows:>9,} rows  sha256 {each.sha256[:16]}")
    print("All rows were copied and compared. Now set `database_url` in config.toml.")
    print(f"API keys: {keys}. Runs, sessions and workspace files stay in local files.")
    return 0


def _address(config: Config, said: str) -> str:
    """Return the address of a database; empty for our own file."""
    if said == _OWN_FILE:
        return ""
    if said == _CONFIGURED:
        if not config.settings.database_url:
            raise ConfigError("No `database_url` is configured. Give the address itself.")
        return config.settings.database_url
    if said.startswith(("postgresql://", "postgres://")):
        return said
    raise ConfigError(
        f"A database is `{_OWN_FILE}`, `{_CONFIGURED}` for the one in config.toml, or an address "
        "that begins with postgresql://"
    )


def _tell(table: str, rows: int) -> None:
    print(f"copied {table}: {count(rows, 'row')}", file=sys.stderr)
