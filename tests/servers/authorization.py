"""An authorization server, and the MCP server that it guards, in the process of the test."""

import base64
import hashlib
import secrets
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlencode

import anyio
import uvicorn
from servers.sdk import make_server
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

KNOWN_CLIENT = {"client_id": "known-client", "client_secret": "known-secret"}


class Authority:
    """Who may do what. Refresh tokens rotate: one that is used twice ends the whole login."""

    def __init__(self, base: str, lifetime: int) -> None:
        self.base = base
        self.resource = f"{base}/mcp"
        self.issuer = f"{base}/auth"
        self.lifetime = lifetime
        self.clients: dict[str, dict[str, Any]] = {KNOWN_CLIENT["client_id"]: {**KNOWN_CLIENT}}
        self.codes: dict[str, dict[str, str]] = {}
        self.access: set[str] = set()
        self.refresh: dict[str, str] = {}
        self.spent: set[str] = set()
        self.seen: Counter[str] = Counter()
        self.asked: list[dict[str, str]] = []
        self.denies = False
        self.is_broken = False
        self.registers = True
        self.revocation = f"{self.issuer}/revoke"
        self.token_prefix = ""
        self.padding = ""

    def routes(self) -> list[Route]:
        protected = "/.well-known/oauth-protected-resource/mcp"
        authorization = "/.well-known/oauth-authorization-server/auth"
        return [
            Route(protected, self.describe_resource),
            Route(authorization, self.describe),
            Route("/elsewhere.json", self.describe),
            Route("/auth/register", self.register, methods=["POST"]),
            Route("/auth/authorize", self.authorize),
            Route("/auth/token", self.token, methods=["POST"]),
            Route("/auth/revoke", self.revoke, methods=["POST"]),
        ]

    async def describe_resource(self, request: Request) -> Response:
        return JSONResponse(
            {
                "resource": self.resource,
                "authorization_servers": [self.issuer],
                "scopes_supported": ["tools"],
            }
        )

    async def describe(self, request: Request) -> Response:
        registration = {"registration_endpoint": f"{self.issuer}/register"}
        return JSONResponse(
            {
                **(registration if self.registers else {}),
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "revocation_endpoint": self.revocation,
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
                "token_endpoint_auth_methods_supported": ["client_secret_post", "none"],
            }
        )

    async def register(self, request: Request) -> Response:
        client = {**await request.json(), "client_id": f"client-{secrets.token_hex(4)}"}
        client["token_endpoint_auth_method"] = "none"
        self.clients[client["client_id"]] = client
        self.seen["registrations"] += 1
        return JSONResponse(client, status_code=201)

    async def authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        self.asked.append(asked)
        client = self.clients.get(asked.get("client_id", ""))
        back = asked.get("redirect_uri", "")
        if client is None or back not in client.get("redirect_uris", [back]):
            return Response("no such client, or not its page", status_code=400)
        if asked.get("code_challenge_method") != "S256" or asked.get("resource") != self.resource:
            return Response("PKCE by S256 and the resource are required", status_code=400)
        answer = {"state": asked["state"], "iss": self.issuer}
        if self.denies:
            answer |= {"error": "access_denied", "error_description": "not today"}
        else:
            answer["code"] = secrets.token_urlsafe(16)
            self.codes[answer["code"]] = asked
        return RedirectResponse(f"{back}?{urlencode(answer)}", status_code=302)

    async def token(self, request: Request) -> Response:
        form = {key: str(value) for key, value in (await request.form()).items()}
        client = self.clients.get(form.get("client_id", ""))
        if self.is_broken:
            return Response("<p>out of order</p>", status_code=503)
        if client is None or client.get("client_secret") != form.get("client_secret"):
            return _refusal("invalid_client", status=401)
        if form.get("resource") != self.resource:
            return _refusal("invalid_target")
        if form["grant_type"] == "refresh_token":
            return self._renew(form)
        asked = self.codes.pop(form.get("code", ""), None)
        if asked is None or asked["code_challenge"] != _challenge(form.get("code_verifier", "")):
            return _refusal("invalid_grant")
        return self._grant(login=secrets.token_hex(4))

    def _renew(self, form: dict[str, str]) -> Response:
        token = form.get("refresh_token", "")
        if token in self.spent:
            self.seen["reuses"] += 1
            self.refresh.clear()
            self.access.clear()
        login = self.refresh.pop(token, None)
        if login is None:
            self.seen["refused renewals"] += 1
            return _refusal("invalid_grant")
        self.spent.add(token)
        self.seen["renewals"] += 1
        return self._grant(login=login)

    def _grant(self, *, login: str) -> Response:
        access, refresh = self.token_prefix + secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.access.add(access)
        self.refresh[refresh] = login
        return JSONResponse(
            {
                "access_token": access,
                "token_type": "bearer",
                "expires_in": self.lifetime,
                "refresh_token": refresh,
                "padding": self.padding,
            }
        )

    async def revoke(self, request: Request) -> Response:
        token = str((await request.form()).get("token"))
        self.seen["revocations"] += 1
        self.refresh.pop(token, None)
        self.access.discard(token)
        return Response(status_code=200)

    def expire(self) -> None:
        """End every access token; whoever has one has to renew it."""
        self.access.clear()

    def end(self) -> None:
        """Take every login back."""
        self.access.clear()
        self.refresh.clear()


class Guard:
    """Lets pass what carries a valid access token."""

    def __init__(self, app: ASGIApp, authority: Authority, *, only_calls: bool) -> None:
        self._app = app
        self._authority = authority
        self._only_calls = only_calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app: ASGIApp = self._app
        if scope["type"] == "http" and not self._may_pass(Request(scope)):
            metadata = f"{self._authority.base}/.well-known/oauth-protected-resource/mcp"
            challenge = f'Bearer error="invalid_token", resource_metadata="{metadata}"'
            app = Response("who are you?", 401, headers={"WWW-Authenticate": challenge})
        await app(scope, receive, send)

    def _may_pass(self, request: Request) -> bool:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        is_call = request.headers.get("mcp-method") == "tools/call"
        return token in self._authority.access or (self._only_calls and not is_call)


def _refusal(error: str, *, status: int = 400) -> Response:
    return JSONResponse({"error": error}, status_code=status)


def _challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


@asynccontextmanager
async def serving(
    *, lifetime_s: int = 3600, guards_only_calls: bool = False
) -> AsyncIterator[Authority]:
    """Serve both on a port of loopback.

    `lifetime_s` is what access tokens are said to last; they end only when told to.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    authority = Authority(f"http://127.0.0.1:{listener.getsockname()[1]}", lifetime_s)
    protected = make_server().streamable_http_app()
    guard = Guard(protected, authority, only_calls=guards_only_calls)
    app = Starlette(
        routes=[*authority.routes(), Mount("/", app=guard)],
        lifespan=lambda _: protected.router.lifespan_context(protected),
    )
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(server.serve, sockets=[listener]))
        yield authority
        server.should_exit = server.force_exit = True
