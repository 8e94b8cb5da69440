"""Who sends a request: the local user, a web page on their machine, or the holder of a key."""

import hmac
from dataclasses import dataclass
from typing import Final, NamedTuple

from starlette.datastructures import Headers
from starlette.types import Scope

from toolfold.entrypoints.http.keys import Keys, LocalToken

CALLER: Final = "toolfold.caller"
"""Where a request's scope says who sends it."""

_PUBLIC: Final = frozenset({"/health"})
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
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


_NO_KEY: Final = Refused(
    401,
    "key_required",
    "This needs an API key, as `Authorization: Bearer tf_...`. `toolfold keys create` makes one.",
)
_BAD_KEY: Final = Refused(
    401,
    "bad_key",
    "This key is not known here, or was revoked. `toolfold keys list` lists those that are valid.",
)
_NO_TOKEN: Final = Refused(
    401,
    "token_required",
    "A web page may change something only with the local token, as `Authorization: Bearer ...`. "
    "`toolfold keys token` prints it.",
)
_CROSS_SITE: Final = Refused(
    403, "forbidden", "Requests that pages of other sites make are refused."
)


class Callers:
    """Tells who sends a request, and what must be refused for that.

    A browser marks what it sends for a page, and pages cannot take the marks off. So whatever bears
    one, and would change something, must show that the user is behind it.
    """

    def __init__(self, keys: Keys, token: LocalToken, *, must_have_key: bool) -> None:
        self._keys = keys
        self._token = token
        self._must_have_key = must_have_key

    def identify(self, scope: Scope) -> Caller | Refused:
        """Return who it is.

        Raises:
            ConfigError: The keys cannot be read.
        """
        if is_dashboard(scope["path"]):
            return Caller(is_known=False)  # its pages know browsers by their cookie
        headers = Headers(scope=scope)
        shown = _shown(headers)
        if shown and (key := self._keys.find(shown)):
            return Caller(key.id, key.namespace)
        has_token = bool(shown) and hmac.compare_digest(
            shown.encode("utf-8", "replace"), self._token.get().encode()
        )
        if shown:
            return Caller(has_token=True) if has_token else _BAD_KEY
        if self._must_have_key:
            # Browsers ask whether they may before they show anything.
            is_open = scope["path"] in _PUBLIC or scope["method"] == "OPTIONS"
            return Caller(is_known=False) if is_open else _NO_KEY
        return _objection_to_page(scope, headers) or Caller()


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
