"""An authorization server and the MCP server that it guards: `authorization.py [KEY=VALUE …]`.

The line `listening on http://127.0.0.1:PORT/mcp` says it is ready. `lifetime=SECONDS` is what
access tokens are said to last; they end only when told to. With `guard=calls` only calls need a
login. `POST /control/NAME` gives an order; `GET /control` tells what has happened.
"""

import base64
import hashlib
import json
import secrets
import socket
import sys
from collections import Counter
from typing import Any
from urllib.parse import urlencode

import uvicorn
from http_server import replaying
from null import make_server
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
            Route("/control", self.tell),
            Route("/control/{order}", self.obey, methods=["POST"]),
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
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "registration_endpoint": f"{self.issuer}/register",
                "revocation_endpoint": f"{self.issuer}/revoke",
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
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.access.add(access)
        self.refresh[refresh] = login
        return JSONResponse(
            {
                "access_token": access,
                "token_type": "bearer",
                "expires_in": self.lifetime,
                "refresh_token": refresh,
            }
        )

    async def revoke(self, request: Request) -> Response:
        token = str((await request.form()).get("token"))
        self.seen["revocations"] += 1
        self.refresh.pop(token, None)
        self.access.discard(token)
        return Response(status_code=200)

    async def tell(self, request: Request) -> Response:
        return JSONResponse({**self.seen, "asked": self.asked})

    async def obey(self, request: Request) -> Response:
        order = request.path_params["order"]
        if order in {"expire", "end"}:
            self.access.clear()
        if order == "end":
            self.refresh.clear()
        if order in {"deny", "allow"}:
            self.denies = order == "deny"
        if order in {"break", "mend"}:
            self.is_broken = order == "break"
        return Response(status_code=204)


class Guard:
    """Lets pass what carries a valid access token."""

    def __init__(self, app: ASGIApp, authority: Authority, *, only_calls: bool) -> None:
        self._app = app
        self._authority = authority
        self._only_calls = only_calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        body = await request.body()
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        is_open = self._only_calls and not (body and json.loads(body).get("method") == "tools/call")
        if is_open or token in self._authority.access:
            await self._app(scope, replaying(body, receive), send)
            return
        metadata = f"{self._authority.base}/.well-known/oauth-protected-resource/mcp"
        challenge = f'Bearer error="invalid_token", resource_metadata="{metadata}"'
        refusal = Response("who are you?", 401, headers={"WWW-Authenticate": challenge})
        await refusal(scope, receive, send)


def _refusal(error: str, *, status: int = 400) -> Response:
    return JSONResponse({"error": error}, status_code=status)


def _challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def main(*pairs: str) -> None:
    options = dict(pair.split("=", 1) for pair in pairs)
    listener = socket.create_server(("127.0.0.1", 0))
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    authority = Authority(base, int(options.get("lifetime", "3600")))
    server = make_server().streamable_http_app()
    guard = Guard(server, authority, only_calls=options.get("guard") == "calls")
    app = Starlette(
        routes=[*authority.routes(), Mount("/", app=guard)],
        lifespan=lambda _: server.router.lifespan_context(server),
    )
    print(f"listening on {authority.resource}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])
