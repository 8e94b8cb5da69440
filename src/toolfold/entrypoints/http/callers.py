"""Who sends a request: the local user, a web page on their machine, or the holder of a key."""

import hmac
import logging
import math
import re
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Final, NamedTuple

import anyio
import anyio.to_thread
from starlette.datastructures import Headers
from starlette.types import Scope

from toolfold.entrypoints.http.keys import Key, Keys, LocalToken
from toolfold.errors import NotFound, StoreError

_log = logging.getLogger(__name__)

CALLER: Final = "toolfold.caller"
"""Where a request's scope says who sends it."""

_PUBLIC: Final = frozenset({"/health", "/health/live", "/health/ready"})
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_KEY_ID: Final = re.compile(r"tf_[0-9a-f]{8}_")
_KEY_ID_CHARS: Final = 11
_FREE_SLIPS: Final = 3
_SLOWEST_S: Final = 5.0
_MOST_WAITING: Final = 20
_FORGET_S: Final = 600.0
_MOST_ADDRESSES: Final = 10_000
_MARKS_OF_BROWSERS: Final = ("origin", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest")


@dataclass(frozen=True, slots=True)
class Caller:
    """Whom we serve."""

    key: str = ""
    """The id of the key that they showed; empty for the local user."""

    namespace: str | None = None
    """The key's; None for the one of the project in which we were started."""

    is_known: bool = True
    """Whether they may learn more than that we are there."""

    has_token: bool = False
    """Whether they have shown the local token, which only the user can read."""

    @property
    def client(self) -> str:
        """How the journal names the holder of a key; empty for the local user."""
        return f"key:{self.key}" if self.key else ""


class Refused(NamedTuple):
    """Why a request goes no further."""

    status: int
    code: str
    message: str
    retry_after_s: int | None = None


_NO_KEY: Final = Refused(
    401,
    "key_required",
    "This needs an API key, as `Authorization: Bearer tf_...`. `toolfold keys create` makes one.",
)
_BAD_KEY: Final = Refused(
    401,
    "bad_key",
    "This key is unknown or was revoked. `toolfold keys list` lists those that are valid.",
)
_NO_TOKEN: Final = Refused(
    401,
    "token_required",
    "A web page may change something only with the local token, as `Authorization: Bearer ...`. "
    "`toolfold keys token` prints it.",
)
_TOO_MANY_WRONG: Final = Refused(
    429,
    "too_many_requests",
    "Too many wrong keys come from this address. Wait; `toolfold keys list` lists those that are "
    "valid.",
    5,
)
_CROSS_SITE: Final = Refused(
    403, "forbidden", "Requests that pages of other sites make are refused."
)


class Callers:
    """Tells who sends a request, and what must be refused for that.

    A browser marks what it sends for a page, and pages cannot take the marks off. So whatever bears
    one, and would change something, must show that the user is behind it.
    """

    def __init__(
        self, keys: Keys, token: LocalToken, *, must_have_key: bool, per_minute: int
    ) -> None:
        self._keys = keys
        self._token = token
        self._must_have_key = must_have_key
        self._pace = RequestPace(per_minute)
        self._wrong_keys = WrongKeys()

    async def identify(self, scope: Scope) -> Caller | Refused:
        """Return who it is; nobody, while the keys cannot be had.

        Raises:
            ConfigError: The keys cannot be read.
        """
        if is_dashboard(scope["path"]):
            return Caller(is_known=False)  # its pages know browsers by their cookie
        headers = Headers(scope=scope)
        shown = _shown(headers)
        if shown:
            try:
                caller = await self.recognize(shown)
            except StoreError as error:
                return Refused(503, error.code, str(error))
            if caller is None:
                return await self._wrong_keys.refuse(scope, shown)
            return (self._pace.objection(caller.key) if caller.key else None) or caller
        if self._must_have_key:
            # Browsers ask whether they may before they show anything.
            is_open = scope["path"] in _PUBLIC or scope["method"] == "OPTIONS"
            return Caller(is_known=False) if is_open else _NO_KEY
        return _objection_to_page(scope, headers) or Caller()

    async def recognize(self, secret: str) -> Caller | None:
        """Return who shows a secret: the local user, or the holder of a key; None for nobody.

        Raises:
            ConfigError, StoreError: The keys cannot be had.
        """
        if not secret:
            return None
        if (key := await self._find(secret)) is not None:
            return Caller(key.id, key.namespace)
        shown = secret.encode("utf-8", "replace")
        is_token = hmac.compare_digest(shown, self._token.get().encode())
        return Caller(has_token=True) if is_token else None

    async def recognize_slowly(self, scope: Scope, secret: str) -> Caller | None:
        """Do as `recognize`; who shows what is wrong waits for that, as for any request."""
        caller = await self.recognize(secret)
        if caller is None:
            await self._wrong_keys.refuse(scope, secret)
        return caller

    async def holder(self, key_id: str) -> Caller | None:
        """Return the holder of a key; None once it is revoked."""
        try:
            key = await anyio.to_thread.run_sync(self._keys.get, key_id)
        except NotFound:
            return None
        return Caller(key.id, key.namespace)

    async def _find(self, shown: str) -> Key | None:
        if self._keys.is_fresh():
            return self._keys.find(shown)
        return await anyio.to_thread.run_sync(self._keys.find, shown)


class RequestPace:
    """How often each key may ask: as often as a minute allows, and no more after that."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._spent: dict[str, tuple[float, float]] = {}
        """How many requests count at a time, by key: that many less a moment later."""

    def objection(self, key: str) -> Refused | None:
        """Count a request; return why it comes too soon, if it does."""
        now, per_s = time.monotonic(), self._per_minute / 60
        spent, at = self._spent.get(key, (0.0, now))
        spent = max(0.0, spent - (now - at) * per_s)
        if spent + 1 > self._per_minute:
            wait_s = math.ceil((spent + 1 - self._per_minute) / per_s)
            return Refused(
                429,
                "too_many_requests",
                f"This key has sent as many requests as it may in a minute, {self._per_minute} "
                f"(`keys.per_minute`). Try again in {wait_s} s.",
                wait_s,
            )
        self._spent[key] = spent + 1, now
        return None


class WrongKeys:
    """Answers keys that nobody has: the later the more of them came from an address."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._waiting: Counter[str] = Counter()

    async def refuse(self, scope: Scope, shown: str) -> Refused:
        """Log it, wait, and return the refusal."""
        address = (scope.get("client") or ("an unknown address",))[0]
        count = self._count(address)
        if count.bit_count() == 1:  # the first, the second, the fourth: logs stay short
            hint = shown[:_KEY_ID_CHARS] if _KEY_ID.match(shown) else "not of our form"
            _log.warning("%s has shown a wrong API key (%s), %d so far.", address, hint, count)
        if self._waiting[address] >= _MOST_WAITING:
            return _TOO_MANY_WRONG
        self._waiting[address] += 1
        try:
            await anyio.sleep(delay_s(count))
        finally:
            self._waiting[address] -= 1
            if not self._waiting[address]:
                del self._waiting[address]
        return _BAD_KEY

    def _count(self, address: str) -> int:
        now = time.monotonic()
        count, at = self._seen.pop(address, (0, now))
        count = count + 1 if now - at < _FORGET_S else 1
        self._seen[address] = count, now
        if len(self._seen) > _MOST_ADDRESSES:
            self._seen.popitem(last=False)
        return count


def delay_s(count: int) -> float:
    """Return how long the answer to so many wrong keys is held back: a slip costs nothing."""
    return 0.0 if count <= _FREE_SLIPS else min(_SLOWEST_S, 0.1 * 2.0 ** min(count, 16))


def is_dashboard(path: str) -> bool:
    """Tell whether a path is one of the dashboard's pages."""
    return path in {"/", "/ui"} or path.startswith("/ui/")


def _objection_to_page(scope: Scope, headers: Headers) -> Refused | None:
    """Return why a page that shows no secret must not do this, if it is a page."""
    is_page = any(mark in headers for mark in _MARKS_OF_BROWSERS)
    if not is_page or scope["path"] == "/mcp":  # which pages of allowed origins may use
        return None
    if scope["method"] not in _SAFE:
        return _NO_TOKEN
    is_foreign = headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}
    is_visit = headers.get("sec-fetch-mode") == "navigate"
    is_allowed = "origin" in headers  # the doorkeeper knew it
    return _CROSS_SITE if is_foreign and not (is_visit or is_allowed) else None


def _shown(headers: Headers) -> str:
    """Return the secret that a request shows, if any."""
    if key := headers.get("x-api-key", ""):
        return key
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""
