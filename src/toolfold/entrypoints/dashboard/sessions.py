"""Which browsers may see the dashboard: a one-time ticket in the address becomes a cookie."""

import hmac
import secrets
import time
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

COOKIE: Final = "toolfold_dashboard"
TICKET_S: Final = 120.0
SESSION_S: Final = 12 * 3600.0
MAX_SESSIONS: Final = 50


class BrowserSessions:
    """Issues tickets, turns each into a session once, and knows the sessions until they expire."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tickets: dict[str, float] = {}
        self._sessions: dict[str, float] = {}

    def issue_ticket(self) -> str:
        """Return a secret that opens one session within two minutes."""
        self._tickets = self._fresh(self._tickets)
        ticket = secrets.token_urlsafe(24)
        self._tickets[ticket] = self._clock() + TICKET_S
        return ticket

    def redeem(self, ticket: str) -> str | None:
        """Return the secret of a new session; None for a ticket that is used, old or unknown."""
        self._tickets = self._fresh(self._tickets)
        if self._tickets.pop(ticket, None) is None:
            return None
        session = secrets.token_urlsafe(32)
        self._sessions = dict([*self._fresh(self._sessions).items()][1 - MAX_SESSIONS :])
        self._sessions[session] = self._clock() + SESSION_S
        return session

    def knows(self, scope: Scope) -> bool:
        """Tell whether a request comes from a browser with a session."""
        shown = _cookie(scope).encode()
        known = self._fresh(self._sessions)
        return bool(shown) and any(hmac.compare_digest(shown, each.encode()) for each in known)

    def _fresh(self, secrets_until: dict[str, float]) -> dict[str, float]:
        now = self._clock()
        return {secret: until for secret, until in secrets_until.items() if until > now}


def _cookie(scope: Scope) -> str:
    cookies = SimpleCookie()
    for header in Headers(scope=scope).getlist("cookie"):
        try:
            cookies.load(header)
        except CookieError:
            continue
    return cookies[COOKIE].value if COOKIE in cookies else ""
