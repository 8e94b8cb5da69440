"""Logins of HTTP servers: kept on disk, sent with every request, renewed when they end."""

import base64
import hashlib
import json
import logging
import re
import shlex
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

import anyio
import httpx2
from mcp.client.auth.utils import extract_field_from_www_auth, union_scopes

from toolfold.config.paths import Directories
from toolfold.config.servers import ServerConfig
from toolfold.errors import ConfigError, StoreError
from toolfold.jsontypes import JsonObject
from toolfold.storage.files import read_file, replace_file, try_lock

_LOCK_POLL_S: Final = 0.02
_MAX_LIFETIME_S: Final = 1e10
_EXPIRY_SLACK_S: Final = 2.0  # so that a token does not end on its way


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """What one server let us have on the user's behalf, and how to renew it."""

    url: str
    """The server that it is for, and no other."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None
    """In seconds since 1970; None if the server did not say."""

    scope: str | None = None
    """What was granted."""

    wanted_scope: str | None = None
    """What the server asked for since: the next login asks for it too."""

    resource: str | None = None
    """The resource indicator (RFC 8707) that renewals must carry."""

    token_endpoint: str
    revocation_endpoint: str | None = None
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    auth_method: str | None = None
    """How the client shows its secret at these endpoints, as RFC 7591 names it."""

    is_refused: bool = False
    """Whether the authorization server has refused to renew it."""

    def is_expired(self, now: float) -> bool:
        """Whether the access token has ended, as far as we were told."""
        return self.expires_at is not None and now >= self.expires_at - _EXPIRY_SLACK_S

    @property
    def can_renew(self) -> bool:
        """Whether renewing is worth a try."""
        return self.refresh_token is not None and not self.is_refused


class Logins:
    """The logins of one user, by server. Several processes may use the same directory."""

    def __init__(self, directories: Directories) -> None:
        self._directory = directories.data / "logins"

    def path(self, server: ServerConfig) -> Path:
        """Return where the login is kept; another URL is another server."""
        name = re.sub(r"[^A-Za-z0-9._-]", "_", server.name)
        return self._directory / f"{name}-{_digest(server.url)[:8]}.json"

    def load(self, server: ServerConfig) -> Login | None:
        """Return the login, or None. A damaged file counts as none: a new login replaces it."""
        try:
            content = read_file(self.path(server))
            login = None if content is None else _parse(content)
        except (ConfigError, ValueError, TypeError):
            return None
        return login if login is not None and login.url == server.url else None

    def save(self, server: ServerConfig, login: Login) -> None:
        """Write the file whole; to be called with the lock held.

        Raises:
            StoreError: It cannot be written.
        """
        path = self.path(server)
        try:
            replace_file(path, json.dumps(asdict(login), indent=2).encode())
        except OSError as error:
            raise StoreError(f"Cannot write the login to {path}: {error.strerror}.") from error

    def remove(self, server: ServerConfig) -> None:
        """Forget the login; to be called with the lock held.

        Raises:
            StoreError: The file cannot be removed.
        """
        path = self.path(server)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"Cannot remove the login {path}: {error.strerror}.") from error

    @asynccontextmanager
    async def locked(self, server: ServerConfig) -> AsyncIterator[None]:
        """Keep out whoever else would change this login: a renewal spends the refresh token.

        Raises:
            StoreError: The directory cannot be written.
        """
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._directory.chmod(0o700)
            lock = self.path(server).with_suffix(".lock").open("a")
        except OSError as error:
            raise StoreError(f"Cannot write to {self._directory}: {error.strerror}.") from error
        with lock:
            # The holder may be another process, so no event tells; and waiting would block.
            while not try_lock(lock.fileno()):  # noqa: ASYNC110
                await anyio.sleep(_LOCK_POLL_S)
            yield

    def stamp(self, server: ServerConfig) -> tuple[int, int, int] | None:
        """Return what changes whenever the file does, so that it need not be read again."""
        with suppress(OSError):
            status = self.path(server).stat()
            return status.st_ino, status.st_mtime_ns, status.st_size
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginState:
    """How it stands with the login of one server, from what is on disk."""

    status: Literal["unused", "absent", "valid", "ended"]
    """`unused`: the server is a program, or the user wrote its `Authorization` header.
    `absent`: there is no login; whether one is needed only the server can tell.
    `valid`: there is one, or it renews itself. `ended`: there was one.
    """
    expires_at: float | None = None
    renews_itself: bool = False

    def __str__(self) -> str:
        """Say it in a few words, after the server's name."""
        if self.status == "valid" and self.renews_itself:
            return "logged in, renewed automatically"
        if self.status == "valid":
            return (
                f"logged in until {shown_time(self.expires_at)}" if self.expires_at else "logged in"
            )
        return {"absent": "not logged in", "ended": "its login has ended"}.get(self.status, "")


def login_state(server: ServerConfig, directories: Directories) -> LoginState:
    """Say how it stands with the login of a server, without asking anybody."""
    if not server.may_log_in:
        return LoginState(status="unused")
    login = Logins(directories).load(server)
    if login is None:
        return LoginState(status="absent")
    is_over = login.is_refused or (login.is_expired(time.time()) and not login.can_renew)
    return LoginState(
        status="ended" if is_over else "valid",
        expires_at=login.expires_at,
        renews_itself=login.can_renew,
    )


def is_sendable(token: str) -> bool:
    """Whether a token can stand in a header."""
    return bool(token) and token.isascii() and token.isprintable()


def expiry(lifetime: object, now: float) -> float | None:
    """Return when a token ends of which a server says that it lasts so many seconds, if it does."""
    try:
        seconds = float(str(lifetime))
    except ValueError:
        return None
    return now + seconds if 0 <= seconds < _MAX_LIFETIME_S else None


def shown_time(timestamp: float) -> str:
    """Return a time as the user's clock shows it."""
    return datetime.fromtimestamp(timestamp, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def _parse(content: bytes) -> Login:
    """Read a login that we wrote.

    Raises:
        ValueError, TypeError: It is not one.
    """
    entries: Any = json.loads(content)
    known = {each.name for each in fields(Login)}
    login = Login(**{key: entries[key] for key in known.intersection(entries)})
    texts = (login.url, login.access_token, login.token_endpoint, login.client_id)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a text is missing")
    if not is_sendable(login.access_token):
        raise ValueError("the token cannot be sent")
    if not isinstance(login.expires_at, int | float | None):
        raise TypeError("the time is not a number")
    return login


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


_MAX_BYTES: Final = 256 * 1024


async def ask(request: httpx2.Request, *, timeout_s: float) -> httpx2.Response:
    """Send a request; return status and body of the answer.

    Raises:
        httpx2.HTTPError: Nobody answers, or with too much.
    """
    async with httpx2.AsyncClient(timeout=timeout_s) as http:
        response = await http.send(request, stream=True)
        try:
            body = await _body(response)
        finally:
            await response.aclose()
    return httpx2.Response(response.status_code, content=body, request=request)


async def _body(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > _MAX_BYTES:
            raise httpx2.ReadError(f"The answer has more than {_MAX_BYTES:,} bytes.")
    return bytes(body)


_log = logging.getLogger(__name__)

_RENEWAL_TIMEOUT_S: Final = 15.0
_PAUSE_S: Final = 1.0
_MAX_SCOPE_CHARS: Final = 2000
_NOT_THE_LOGINS_FAULT: Final = frozenset({"server_error", "temporarily_unavailable", "slow_down"})


class StoredLogin(httpx2.Auth):
    """Authorizes the requests to one server.

    It never raises: an error here would end the connection with every call that is on it. What is
    wrong shows as the server's refusal, and is said by `fault`.
    """

    def __init__(self, server: ServerConfig, logins: Logins) -> None:
        self._server = server
        self._logins = logins
        self._login: Login | None = None
        self._stamp: tuple[int, int, int] | None = None
        self._trouble: str | None = None
        self._try_again_at = 0.0
        self.fault: str | None = None
        """Why requests are refused, as a sentence without the server's name; None if none is."""

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send the request with the login; once more with a renewed one if it is refused."""
        login = self._current()
        if login is None:
            self._trouble = None
        elif login.can_renew and login.is_expired(time.time()):
            login = await self._renewed(login) or login
        response = yield _authorized(request, login)
        if response.status_code == 401 and login is not None:
            renewed = await self._renewed(login)
            if renewed is not None:
                response = yield _authorized(request, renewed)
        await self._judge(response)

    def _current(self) -> Login | None:
        """Return the login as it is on disk, whoever wrote it."""
        stamp = self._logins.stamp(self._server)
        if stamp is None or stamp != self._stamp:
            self._login = self._logins.load(self._server)
            self._stamp = stamp
        return self._login

    async def _renewed(self, used: Login) -> Login | None:
        """Return a login newer than `used`: another process's if there is one, else a renewal."""
        try:
            async with self._logins.locked(self._server):
                login = self._logins.load(self._server)
                if login is None:
                    return None
                if login.access_token != used.access_token and not login.is_expired(time.time()):
                    return login
                if not login.can_renew:
                    self._trouble = None
                    return None
                # Whoever waited for the lock need not wait for the same silence once more.
                return await self._renew(login) if time.monotonic() >= self._try_again_at else None
        except StoreError as error:
            self._trouble = f"its login cannot be renewed: {error}"
            return None

    async def _renew(self, login: Login) -> Login | None:
        self._trouble = None
        reason = f"no answer within {_RENEWAL_TIMEOUT_S:g} s"
        # Shielded: an answer that nobody keeps may hold the only refresh token that still works.
        with anyio.move_on_after(_RENEWAL_TIMEOUT_S, shield=True):
            try:
                response = await ask(renewal_request(login), timeout_s=_RENEWAL_TIMEOUT_S)
                return self._take(login, response)
            except httpx2.HTTPError as error:
                reason = str(error) or type(error).__name__
        self._put_off(login, reason)
        return None

    def _take(self, login: Login, response: httpx2.Response) -> Login | None:
        """Keep what the authorization server answered."""
        answer = _json_object(response)
        token = answer.get("access_token")
        if response.status_code == 200 and isinstance(token, str) and is_sendable(token):
            self._login = renewed = replace(login, **_granted(answer, time.time()))
            try:
                self._logins.save(self._server, renewed)
            except StoreError as error:
                _log.warning("%s It lasts as long as this process.", error)
            return renewed
        if _is_refusal(response.status_code, answer):
            self._logins.save(self._server, replace(login, is_refused=True))
        else:
            self._put_off(login, f"it answered with status {response.status_code}")
        return None

    async def _judge(self, response: httpx2.Response) -> None:
        """Note what a refusal means for the user."""
        run = f"Run: toolfold login {shlex.quote(self._server.name)}"
        if response.is_success:
            self.fault = None
        elif response.status_code == 401:
            self.fault = self._trouble or f"it needs a login. {run}"
        elif (
            response.status_code == 403
            and extract_field_from_www_auth(response, "error") == "insufficient_scope"
        ):
            self.fault = f"it needs a login that allows more. {run}"
            await self._want(extract_field_from_www_auth(response, "scope"))

    async def _want(self, scope: str | None) -> None:
        """Remember a scope that was found missing, for the next login to ask for."""
        login = self._current()
        if scope is None or login is None or len(scope) > _MAX_SCOPE_CHARS:
            return
        wanted = union_scopes(login.wanted_scope, scope)
        if wanted == login.wanted_scope or len(wanted or "") > _MAX_SCOPE_CHARS:
            return
        try:
            async with self._logins.locked(self._server):
                latest = self._logins.load(self._server)
                if latest is not None:
                    self._logins.save(self._server, replace(latest, wanted_scope=wanted))
        except StoreError as error:
            self.fault = f"{self.fault} ({error})"

    def _put_off(self, login: Login, reason: str) -> None:
        """Note that renewing did not work, and may work later."""
        host = httpx2.URL(login.token_endpoint).host
        self._try_again_at = time.monotonic() + _PAUSE_S
        self._trouble = (
            f"its login has ended and {host} did not renew it: {reason}. It will be tried again."
        )


def renewal_request(login: Login) -> httpx2.Request:
    """Return the request that turns the refresh token into new tokens."""
    form = {"grant_type": "refresh_token", "refresh_token": login.refresh_token or ""}
    if login.resource:
        form["resource"] = login.resource
    return client_request(login, login.token_endpoint, form)


def client_request(login: Login, endpoint: str, form: dict[str, str]) -> httpx2.Request:
    """Return a request to the authorization server, by the client that was registered there."""
    form = {**form, "client_id": login.client_id}
    headers = {"Accept": "application/json"}
    if login.client_secret and login.auth_method == "client_secret_post":
        form["client_secret"] = login.client_secret
    elif login.client_secret and login.auth_method == "client_secret_basic":
        pair = f"{quote(login.client_id, safe='')}:{quote(login.client_secret, safe='')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return httpx2.Request("POST", endpoint, data=form, headers=headers)


def _granted(answer: JsonObject, now: float) -> dict[str, Any]:
    """Return what an answer of the token endpoint changes in a login: what it leaves out stays."""
    texts = {
        name: answer[name]
        for name in ("access_token", "refresh_token", "scope")
        if isinstance(answer.get(name), str)
    }
    return {**texts, "expires_at": expiry(answer.get("expires_in"), now)}


def _is_refusal(status: int, answer: JsonObject) -> bool:
    """Whether a failed renewal is the authorization server's last word, not a passing trouble."""
    error = answer.get("error")
    return (
        status in {400, 401, 403} and isinstance(error, str) and error not in _NOT_THE_LOGINS_FAULT
    )


def _json_object(response: httpx2.Response) -> JsonObject:
    try:
        answer = response.json()
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _authorized(request: httpx2.Request, login: Login | None) -> httpx2.Request:
    if login is not None:
        request.headers["Authorization"] = f"Bearer {login.access_token}"
    return request
