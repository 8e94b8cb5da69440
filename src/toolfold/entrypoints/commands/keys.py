"""`toolfold keys`: who may use toolfold over HTTP."""

import json
import sys
import time
from argparse import Namespace
from datetime import UTC, datetime

from toolfold.config.config import load_config
from toolfold.config.faults import shown
from toolfold.entrypoints.http.keys import Key, Keys, LocalToken


def keys_create(arguments: Namespace) -> int:
    """Make a key, and print it for the only time."""
    config = load_config()
    namespace = arguments.namespace or config.namespace
    keys = Keys.of(config.directories)
    key, secret = keys.create(arguments.name, namespace, now=time.time())
    if arguments.json:
        print(json.dumps({**_as_json(key), "key": secret}))
        return 0
    print(secret)
    print(
        f"Key {key.id} of {shown(key.name)!r}, for notes of {shown(key.namespace)!r}. "
        "It is not shown again.",
        file=sys.stderr,
    )
    return 0


def keys_list(arguments: Namespace) -> int:
    """List all keys that there are and were."""
    keys = Keys.of(load_config().directories).all()
    if arguments.json:
        print(json.dumps([_as_json(key) for key in keys], indent=2))
    else:
        print("\n".join(map(_line, keys)) or "There is no key. `toolfold keys create` makes one.")
    return 0


def keys_revoke(arguments: Namespace) -> int:
    """Have a key open nothing any more; whoever is connected with it is refused from now on."""
    keys = Keys.of(load_config().directories)
    key = keys.revoke(arguments.key, now=time.time())
    print(f"Key {key.id} of {shown(key.name)!r} is revoked.")
    return 0


def keys_token(arguments: Namespace) -> int:
    """Print the token that pages in your browser need to change something."""
    token = LocalToken(load_config().directories)
    print(token.renew() if arguments.renew else token.get())
    return 0


def _line(key: Key) -> str:
    state = f"revoked {_day(key.revoked)}" if key.revoked is not None else "valid"
    return (
        f"{key.id}  {_day(key.created)}  {state:<18}  {shown(key.namespace):<20}  {shown(key.name)}"
    )


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, tz=UTC).astimezone().strftime("%Y-%m-%d")


def _as_json(key: Key) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "namespace": key.namespace,
        "created": key.created,
        "revoked": key.revoked,
    }
