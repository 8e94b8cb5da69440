"""The SDK's login flow, bent to what a user's entry says, for one login of one server."""

import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from anyio.abc import SocketAttribute, SocketStream
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    is_valid_client_metadata_url,
    union_scopes,
)
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, PrivateAttr

from toolfold.catalog.login.logins import Login, expiry, is_sendable
from toolfold.config.servers import LoginOptions, ServerConfig
from toolfold.errors import LoginFailed, shown

_MAX_HEAD_BYTES: Final = 16 * 1024
_REQUEST_TIMEOUT_S: Final = 10.0
_PATH: Final = "/callback"
_PAGE: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>toolfold</title>'
    "<body><p>{text}</p></body></html>"
)


class Callback:
    """What the browser brings back. Only an answer with the expected `state` counts."""

    def __init__(self, redirect_uri: str) -> None:
        self.redirect_uri = redirect_uri
        self._state: str | None = None
        self._answer: dict[str, str] | None = None
        self._answered = anyio.Event()

    def expect(self, authorization_url: str) -> None:
        """Take the answer to this request, and to no other."""
        self._state = _query(authorization_url).get("state")

    async def wait(self) -> AuthorizationCodeResult:
        """Return what the authorization server granted.

        Raises:
            LoginFailed: It refused.
        """
        await self._answered.wait()
        answer = self._answer or {}
        if error := answer.get("error"):
            words = " ".join(filter(None, [error, answer.get("error_description")]))
            raise LoginFailed(f"The login was refused: {shown(words)}.")
        return AuthorizationCodeResult(
            code=answer.get("code", ""), state=answer.get("state"), iss=answer.get("iss")
        )

    async def handle(self, stream: SocketStream) -> None:
        """Answer one request of a browser."""
        async with stream:
            with anyio.move_on_after(_REQUEST_TIMEOUT_S):
                try:
                    status, text = self._consider(await _target(stream))
                    await stream.send(_response(status, text))
                except (anyio.EndOfStream, anyio.BrokenResourceError, ValueError):
                    pass  # not a browser, or one that did not stay for the page
        if self._answer is not None:
            self._answered.set()

    def _consider(self, target: str) -> tuple[str, str]:
        """Take what a request brings, if it is what we wait for; return what to answer."""
        if urlsplit(target).path != _PATH:
            return "404 Not Found", "There is nothing here."
        answer = _query(target)
        given = answer.get("state", "")
        if self._state is None or not secrets.compare_digest(given.encode(), self._state.encode()):
            return "400 Bad Request", "This does not belong to the login that toolfold waits for."
        if self._answer is None:
            self._answer = answer
        if "error" in answer:
            return "200 OK", "The login was refused. See the terminal."
        return "200 OK", "toolfold has what it needs. You can close this page."


@asynccontextmanager
async def listening(port: int | None) -> AsyncIterator[Callback]:
    """Listen for a browser on loopback, on a free port unless one is given.

    Raises:
        LoginFailed: The port is taken.
    """
    try:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port or 0)
    except OSError as error:
        raise LoginFailed(
            f"The browser cannot come back to port {port}: {error.strerror}. "
            "Free it, or change `callbackPort` in the server's entry."
        ) from error
    # A port chosen beforehand was registered beforehand, as other clients write it: by name.
    host = "127.0.0.1" if port is None else "localhost"
    taken = listener.extra(SocketAttribute.local_port)  # noqa: S610  # not Django's
    callback = Callback(f"http://{host}:{taken}{_PATH}")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, callback.handle)
        yield callback
        tasks.cancel_scope.cancel()


async def _target(stream: SocketStream) -> str:
    """Read the head of a GET request; return what it asks for.

    Raises:
        ValueError: It is something else.
    """
    head = b""
    while b"\r\n\r\n" not in head:
        if len(head) > _MAX_HEAD_BYTES:
            raise ValueError("the head of the request is too long")
        head += await stream.receive()
    method, target, _ = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
    if method != "GET":
        raise ValueError("not a GET")
    return target


def _response(status: str, text: str) -> bytes:
    page = _PAGE.format(text=text).encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
        f"Content-Length: {len(page)}\r\nCache-Control: no-store\r\n"
        "Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + page


def _query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})

VisitPage = Callable[[str], Awaitable[None]]
"""Has the user visit a page, without waiting until that is done."""


class NotOffered(OAuthFlowError):
    """The server does not publish where to log in."""


class LoginProvider(OAuthClientProvider):
    """Logs in once, when the server asks for it."""

    def __init__(
        self,
        server: ServerConfig,
        callback: Callback,
        visit: VisitPage,
        metadata: OAuthMetadata | None,
        earlier: Login | None,
    ) -> None:
        options = server.oauth
        is_document = is_valid_client_metadata_url(options.client_id)
        super().__init__(
            server.url,
            _client_metadata(options, callback.redirect_uri, earlier),
            _Memory(None if is_document else _registered(options, callback.redirect_uri)),
            redirect_handler=self._visit,
            callback_handler=callback.wait,
            client_metadata_url=options.client_id if is_document else None,
        )
        self.is_forced = False
        """Whether to log in although the server has not asked for it."""
        self.was_shown = False
        """Whether the user was sent to a page."""
        self._server = server
        self._callback = callback
        self._show = visit
        self._metadata = metadata

    def login(self) -> Login:
        """Return what was granted.

        Raises:
            LoginFailed: Nothing was.
        """
        context = self.context
        tokens, client = context.current_tokens, context.client_info
        if tokens is None or client is None:
            raise LoginFailed(f"{self._server.name!r} granted nothing.")
        insist_on_sendable(tokens)
        with_resource = context.should_include_resource_param(context.protocol_version)
        metadata = context.oauth_metadata
        revocation = metadata.revocation_endpoint if metadata else None
        return Login(
            url=self._server.url,
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token,
            expires_at=expiry(tokens.expires_in, time.time()),
            scope=tokens.scope,
            resource=context.get_resource_url() if with_resource else None,
            token_endpoint=self._get_token_endpoint(),
            revocation_endpoint=_if_private(revocation),
            client_id=client.client_id,
            client_secret=client.client_secret,
            auth_method=client.token_endpoint_auth_method,
        )

    async def _auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Run the SDK's flow, until it has given tokens: nobody is to log in twice."""
        if self.context.current_tokens is not None:
            self._add_auth_header(request)
            yield request
            return
        flow = super()._auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                response = self._stand_in(outgoing, request)
                if response is None:
                    response = yield outgoing
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    def _stand_in(self, outgoing: httpx2.Request, asked: httpx2.Request) -> httpx2.Response | None:
        """Answer in place of others what the user's entry, or our own wish to log in, decides."""
        if outgoing is asked and self.is_forced and self.context.current_tokens is None:
            return httpx2.Response(401, request=outgoing)
        if self._metadata is not None and str(outgoing.url) in self._metadata_urls():
            content = self._metadata.model_dump_json(exclude_none=True)
            return httpx2.Response(200, content=content, request=outgoing)
        return None

    def _metadata_urls(self) -> list[str]:
        return build_oauth_authorization_server_metadata_discovery_urls(
            self.context.auth_server_url, self.context.server_url
        )

    def _expected_issuer(self) -> str:
        """Return who has to be the issuer; by now all that the server publishes has been read."""
        if self.is_forced and self.context.protected_resource_metadata is None:
            raise NotOffered
        return str(self._metadata.issuer) if self._metadata else super()._expected_issuer()

    async def _perform_authorization(self) -> httpx2.Request:
        client, metadata = self.context.client_info, self.context.oauth_metadata
        if client and client.client_secret and client.token_endpoint_auth_method is None:
            client.token_endpoint_auth_method = _secret_method(metadata)
        insist_on_privacy(self._get_token_endpoint())
        return await super()._perform_authorization()

    async def _visit(self, authorization_url: str) -> None:
        insist_on_privacy(authorization_url)
        self._callback.expect(authorization_url)
        self.was_shown = True
        await self._show(authorization_url)


class _Metadata(OAuthClientMetadata):
    """What we say of ourselves; the SDK sets `scope` to what the server names."""

    _only: str | None = PrivateAttr(default=None)
    _also: str | None = PrivateAttr(default=None)

    def settle_scope(self, *, only: str | None, also: str | None) -> None:
        """Have the scope be `only`, or else include `also`, whatever it is set to."""
        self._only, self._also = only, also

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "scope":
            value = self._only or union_scopes(self._also, value)
        super().__setattr__(name, value)


class _Memory:
    """Keeps tokens for the length of one login, so that nothing half-done is stored."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self._client = client

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Refuse what cannot be used; the provider's context holds the others."""
        insist_on_sendable(tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


def _client_metadata(options: LoginOptions, redirect_uri: str, earlier: Login | None) -> _Metadata:
    metadata = _Metadata(redirect_uris=[AnyUrl(redirect_uri)], client_name="toolfold")
    also = union_scopes(earlier.scope, earlier.wanted_scope) if earlier else None
    metadata.settle_scope(
        only=" ".join(options.scopes) or None,
        also=also if earlier and earlier.wanted_scope else None,
    )
    return metadata


def _registered(options: LoginOptions, redirect_uri: str) -> OAuthClientInformationFull | None:
    """Return the client that the user registered, if so."""
    if not options.client_id:
        return None
    return OAuthClientInformationFull(
        client_id=options.client_id,
        client_secret=options.client_secret or None,
        redirect_uris=[AnyUrl(redirect_uri)],
        token_endpoint_auth_method=None if options.client_secret else "none",
    )


def _secret_method(metadata: OAuthMetadata | None) -> str:
    """Choose how to show the secret: Basic is what every server has to take (RFC 6749)."""
    supported = metadata.token_endpoint_auth_methods_supported if metadata else None
    is_basic = supported is None or "client_secret_basic" in supported
    return "client_secret_basic" if is_basic else "client_secret_post"


def is_private(url: str) -> bool:
    """Whether what is sent there is encrypted, or stays on this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or parts.hostname in _LOOPBACK


def _if_private(url: AnyUrl | None) -> str | None:
    return str(url) if url is not None and is_private(str(url)) else None


def insist_on_sendable(tokens: OAuthToken) -> None:
    """Refuse tokens that no header could carry.

    Raises:
        LoginFailed: The access token is not printable ASCII.
    """
    if not is_sendable(tokens.access_token):
        raise LoginFailed("The authorization server granted a token that is not printable ASCII.")


def insist_on_privacy(url: str) -> None:
    """Refuse to have tokens travel where others can read them.

    Raises:
        LoginFailed: The URL is neither encrypted nor on this machine.
    """
    if not is_private(url):
        parts = urlsplit(url)
        raise LoginFailed(
            f"{parts.scheme}://{parts.hostname} is not encrypted: a login sent there could be read "
            "by others. Use https."
        )
