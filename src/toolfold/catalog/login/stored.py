"""Send a stored login with every request, and renew it when it has ended. Never asks the user."""

import base64
import logging
import shlex
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

import anyio
import httpx2
from mcp.client.auth.utils import extract_field_from_www_auth, union_scopes

from toolfold.catalog.login.exchange import ask
from toolfold.catalog.login.logins import Login, Logins, expiry, is_sendable
from toolfold.config.servers import ServerConfig
from toolfold.errors import StoreError
from toolfold.jsontypes import JsonObject

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
