"""Which browsers may see the dashboard: a one-time ticket in the address becomes a cookie."""

import hmac
import secrets
import time
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from typing import Final, NamedTuple

from starlette.datastructures import Headers
from starlette.types import Scope

COOKIE: Final = "toolfold_dashboard"
TICKET_S: Final = 120.0
SESSION_S: Final = 12 * 3600.0
MAX_SESSIONS: Final = 50


class BrowserSession(NamedTuple):
    """That a browser may see the dashboard, and as whom."""

    until: float
    key: str = ""
    """The id of the key whose holder it is; empty for the local user."""


class BrowserSessions:
    """Issues tickets, turns each into a session once, and knows the sessions until they expire."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tickets: dict[str, float] = {}
        self._sessions: dict[str, BrowserSession] = {}

    def issue_ticket(self) -> str:
        """Return a secret that opens one session within two minutes."""
        self._drop_expired()
        ticket = secrets.token_urlsafe(24)
        self._tickets[ticket] = self._clock() + TICKET_S
        return ticket

    def redeem(self, ticket: str) -> str | None:
        """Return the secret of a new session; None for a ticket that is used, old or unknown."""
        self._drop_expired()
        return None if self._tickets.pop(ticket, None) is None else self.begin()

    def begin(self, key: str = "") -> str:
        """Return the secret of a new session, of the local user or of the holder of a key."""
        self._drop_expired()
        session = secrets.token_urlsafe(32)
        self._sessions = dict([*self._sessions.items()][1 - MAX_SESSIONS :])
        self._sessions[session] = BrowserSession(self._clock() + SESSION_S, key)
        return session

    def find(self, scope: Scope) -> BrowserSession | None:
        """Return the session of the browser that sends a request; None if it has none."""
        self._drop_expired()
        return self._sessions.get(self._secret(scope))

    def end(self, scope: Scope) -> None:
        """Forget the session of a browser."""
        self._sessions.pop(self._secret(scope), None)

    def _secret(self, scope: Scope) -> str:
        shown = _cookie(scope).encode()
        same = (each for each in self._sessions if hmac.compare_digest(shown, each.encode()))
        return next(same, "")

    def _drop_expired(self) -> None:
        now = self._clock()
        self._tickets = {each: until for each, until in self._tickets.items() if until > now}
        self._sessions = {each: it for each, it in self._sessions.items() if it.until > now}


def _cookie(scope: Scope) -> str:
    cookies = SimpleCookie()
    for header in Headers(scope=scope).getlist("cookie"):
        try:
            cookies.load(header)
        except CookieError:
            continue
    return cookies[COOKIE].value if COOKIE in cookies else ""
