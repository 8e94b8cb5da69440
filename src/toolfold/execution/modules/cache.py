"""`cached(key, ttl, fn)`: what reading calls brought, kept for a while.

The host cannot call guest code. So `cached` itself is guest code, fed before the program, and asks
the host for what there is.
"""

import json
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from toolfold.catalog.tool import Tool
from toolfold.errors import BadCall
from toolfold.jsontypes import Json, JsonObject
from toolfold.sandbox.sandbox import GuestCall

NAME: Final = "cached"
GET: Final = "_cached_get"
PUT: Final = "_cached_put"

SOURCE: Final = f"""
def {NAME}(key, ttl, fn):
    found = {GET}(key, ttl)
    if found:
        return found[0]
    try:
        value = fn()
    except Exception:
        {PUT}(key)
        raise
    return {PUT}(key, value)
"""

_MAX_KEY_CHARS: Final = 200
_MAX_ENTRIES: Final = 1_000
_MAX_CHARS: Final = 32 * 1024 * 1024


class Cache:
    """What was kept, for all runs of one namespace in this process; the last used of it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[str, tuple[float, str]] = OrderedDict()
        self._chars = 0

    def get(self, key: str, max_age_s: float) -> list[Json]:
        """Return the value that was kept, in a list; an empty one if none is, or it is too old.

        Where it came from an untrusted server, it is followed by which that was.
        """
        kept_at, text = self._kept.get(key, (0.0, None))
        if text is None or self._clock() - kept_at > max_age_s:
            return []
        self._kept.move_to_end(key)
        found: list[Json] = json.loads(text)
        return found

    def put(self, key: str, value: Json, origin: str = "") -> None:
        """Keep a value; `origin` says from which untrusted server it came, if it did."""
        text = json.dumps([value, origin] if origin else [value])
        self._drop(key)
        self._kept[key] = self._clock(), text
        self._chars += len(text)
        while len(self._kept) > _MAX_ENTRIES or self._chars > _MAX_CHARS:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: str) -> None:
        _, text = self._kept.pop(key, (0.0, ""))
        self._chars -= len(text)


class RunCache:
    """What one run does with the cache."""

    def __init__(self, cache: Cache, *, may_keep: bool) -> None:
        self._cache = cache
        self._may_keep = may_keep
        self._under_way = 0

    def get(self, arguments: JsonObject) -> Json:
        """Return what is kept, in a list; an empty one lets the code find out."""
        found = self._cache.get(_key(arguments["key"]), float(str(arguments["ttl"])))
        self.go_on(found)
        return found

    def go_on(self, found: object) -> None:
        """Take note of what the code was told."""
        if not found:
            self._under_way += 1

    def put(self, call: GuestCall, origin: str) -> Json:
        """Keep what the code found out, if it did; return it as it will be found."""
        self._under_way = max(0, self._under_way - 1)
        if len(call.args) < 2:  # it did not
            return None
        key, value = _key(call.args[0]), call.args[1]
        if self._may_keep:
            self._cache.put(key, value, origin)
        found: Json = json.loads(json.dumps(value))
        return found

    def check(self, tool: Tool) -> None:
        """Refuse what changes something while a value to be kept is found out.

        Raises:
            BadCall: It does.
        """
        if self._under_way and not tool.listed.read_only:
            raise BadCall(
                f"{tool.path} was not called: cached() is for calls that only read, and its "
                "server does not say so of it. Call it outside of cached()."
            )


def arguments(call: GuestCall) -> JsonObject:
    """Return which value is asked for, and how old it may be.

    Raises:
        BadCall: The call does not say.
    """
    match call.args:
        case (key, (int() | float()) as ttl) if not isinstance(ttl, bool):
            return {"key": key, "ttl": ttl}
    raise BadCall(
        "cached takes a key, a time in seconds and a function: cached('k', 60, lambda: …)"
    )


def _key(key: Json) -> str:
    text = json.dumps(key, sort_keys=True)
    if len(text) > _MAX_KEY_CHARS:
        raise BadCall(f"A key of cached() has at most {_MAX_KEY_CHARS} characters.")
    return text
