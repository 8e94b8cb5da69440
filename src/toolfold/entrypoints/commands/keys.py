"""`toolfold keys`: who may use toolfold over HTTP."""

import sys
import time
from argparse import Namespace
from typing import Final

from toolfold.config.config import Config, load_config
from toolfold.entrypoints.commands.daemon import use_data_directory
from toolfold.entrypoints.http.keys import Key, Keys, LocalToken
from toolfold.entrypoints.parser import confirm
from toolfold.entrypoints.screen import Cell, Column, moment, print_json, print_table, tell
from toolfold.errors import shown

_COLUMNS: Final = (
    Column("KEY"),
    Column("NAME"),
    Column("STATE"),
    Column("CREATED"),
    Column("NAMESPACE", is_wide=True),
)
_STYLES: Final = {True: "dim", False: "good"}


def keys_create(arguments: Namespace) -> int:
    """Make a key, and print it for the only time."""
    config = _config(arguments)
    namespace = arguments.namespace or config.namespace
    keys = Keys.of(config)
    others = [each.id for each in keys.valid() if each.name == arguments.name]
    key, secret = keys.create(arguments.name, namespace, now=time.time())
    if arguments.json:
        print_json({**_as_json(key), "key": secret})
        return 0
    print(secret)
    print(
        f"Key {key.id} of {shown(key.name)!r}, for notes of {shown(key.namespace)!r}. "
        "It is not shown again. Send it with each request as `Authorization: Bearer KEY`; in "
        "Python: `toolfold.Client(URL, key=KEY)`.",
        file=sys.stderr,
    )
    if others:
        print(
            f"{shown(key.name)!r} has another that is valid: `toolfold keys revoke {others[0]}` "
            "ends it.",
            file=sys.stderr,
        )
    return 0


def keys_list(arguments: Namespace) -> int:
    """List all keys, revoked ones included."""
    keys = Keys.of(_config(arguments)).all()
    if arguments.json:
        print_json([_as_json(key) for key in keys])
    elif keys:
        print_table(_COLUMNS, map(_row, keys))
    else:
        print("No keys yet. `toolfold keys create NAME` makes one.")
    return 0


def keys_revoke(arguments: Namespace) -> int:
    """Revoke a key; who is connected with it is refused from now on."""
    keys = Keys.of(_config(arguments))
    found = keys.named(arguments.key)
    if not confirm(f"Revoke the key {found.id} of {shown(found.name)!r}?", yes=arguments.yes):
        print("Nothing was revoked.", file=sys.stderr)
        return 1
    key = keys.revoke(found.id, now=time.time())
    tell(arguments, f"Key {key.id} of {shown(key.name)!r} is revoked.", **_as_json(key))
    return 0


def keys_token(arguments: Namespace) -> int:
    """Print the token that pages in your browser need to change something."""
    token = LocalToken(_config(arguments).directories)
    text = token.renew() if arguments.renew else token.get()
    print_json({"token": text}) if arguments.json else print(text)
    return 0


def _config(arguments: Namespace) -> Config:
    """Return the configuration, with the data where `--data-dir` says, as `serve` takes it."""
    if arguments.data_dir is not None:
        use_data_directory(arguments.data_dir)
    return load_config()


def _row(key: Key) -> tuple[str | Cell, ...]:
    is_revoked = key.revoked is not None
    return (
        Cell(key.id, "name"),
        shown(key.name),
        Cell(f"revoked {moment(key.revoked)}" if key.revoked else "valid", _STYLES[is_revoked]),
        Cell(moment(key.created), "dim"),
        shown(key.namespace),
    )


def _as_json(key: Key) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "namespace": key.namespace,
        "created": key.created,
        "revoked": key.revoked,
    }
