"""The routes of the dashboard. Without a browser session nothing but the way in is served."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2s
from importlib.resources import files
from typing import Final
from urllib.parse import parse_qsl

import anyio.to_thread
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from toolfold.app import App
from toolfold.entrypoints.dashboard.asker import Asker, View
from toolfold.entrypoints.dashboard.live import ChangeStream
from toolfold.entrypoints.dashboard.memory_pages import MEMORY_VIEWS
from toolfold.entrypoints.dashboard.owner_pages import OWNER_VIEWS
from toolfold.entrypoints.dashboard.pages import VIEWS, show_missing
from toolfold.entrypoints.dashboard.render import HEADERS, page
from toolfold.entrypoints.dashboard.sessions import COOKIE, SESSION_S, BrowserSessions
from toolfold.entrypoints.rest.answers import INTERNAL, STATUSES
from toolfold.entrypoints.rest.operations import Operation, RestRequest
from toolfold.entrypoints.rest.runs import read_runs
from toolfold.errors import Denied, ToolfoldError
from toolfold.execution.trust.approvals import approvals_of

_log = logging.getLogger(__name__)

PREFIX: Final = "/ui/"
_MAX_FIELDS: Final = 200
_FOREIGN: Final = "Only pages of this dashboard may change something here."
_STATIC: Final = {
    "style.css": "text/css",
    "page.js": "text/javascript",
    "htmx.min.js": "text/javascript",
    "graph.js": "text/javascript",
    "uPlot.iife.min.js": "text/javascript",
    "uPlot.min.css": "text/css",
}
_CLOSED: Final = (
    "This browser has no access to the dashboard, or it expired. Run `toolfold ui` in a terminal, "
    "or log in."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardAccess:
    """Who may see the pages, and what serves them."""

    sessions: BrowserSessions
    visit_as: Callable[[Scope, str], Awaitable[RestRequest | None]]
    """Finds what serves the local user, or the holder of a key; None once that is revoked."""

    recognize: Callable[[Scope, str], Awaitable[str | None]]
    """Returns the id of the key that a secret is; empty for the local token, None for neither."""

    async def visit(self, scope: Scope) -> RestRequest | None:
        """Return what serves the browser that sends a request; None if it has no session."""
        session = self.sessions.find(scope)
        return None if session is None else await self.visit_as(scope, session.key)


def dashboard_routes(operations: Sequence[Operation], access: DashboardAccess) -> list[BaseRoute]:
    """Return every route below `/ui/`, and the redirect from `/`."""
    by_key = {(each.method, each.path): each for each in operations}

    async def watch(request: Request) -> Response:
        visit = await access.visit(request.scope)
        if visit is None:
            return _closed()
        visit.release()  # a page may stay open while files change again and again
        shown = request.query_params.get("shown", "")
        return ChangeStream(lambda: _version(visit.app), shown)

    async def go_to_pages(_request: Request) -> Response:
        return RedirectResponse(PREFIX, headers=HEADERS)

    by_path: dict[str, dict[str, View]] = {}
    missing = {("GET", "/ui/{rest:path}"): show_missing}  # last: it fits everything
    for (method, path), view in {**VIEWS, **MEMORY_VIEWS, **OWNER_VIEWS, **missing}.items():
        by_path.setdefault(path, {})[method] = view
    return [
        Route("/", go_to_pages),
        Route("/ui", go_to_pages),
        *_ways_in(access),
        Route("/ui/live", watch),
        *(Route(f"/ui/static/{name}", _static(name, media)) for name, media in _STATIC.items()),
        *(
            Route(path, _Page(views, by_key, access), methods=[*views])
            for path, views in by_path.items()
        ),
    ]


def _ways_in(access: DashboardAccess) -> list[BaseRoute]:
    """Return how a browser gets a session, and loses it."""
    sessions = access.sessions

    async def enter(request: Request) -> Response:
        session = sessions.redeem(request.query_params.get("ticket", ""))
        return _closed() if session is None else _entered(session, request)

    async def log_in(request: Request) -> Response:
        if _is_foreign(request.scope):
            return _closed(_FOREIGN)
        form = dict(parse_qsl((await request.body()).decode("utf-8", "replace"), max_num_fields=5))
        key = await access.recognize(request.scope, form.get("secret", "").strip())
        if key is None:
            return _closed("This is neither the local token nor a key that is valid here.")
        return _entered(sessions.begin(key), request)

    async def log_out(request: Request) -> Response:
        if _is_foreign(request.scope):
            return _closed(_FOREIGN)
        sessions.end(request.scope)
        return _closed("You are logged out.", 200)

    return [
        Route("/ui/open", enter),
        Route("/ui/login", log_in, methods=["POST"]),
        Route("/ui/logout", log_out, methods=["POST"]),
    ]


def _closed(message: str = _CLOSED, status: int = 403) -> Response:
    return page("closed", status, message=message)


def _entered(session: str, request: Request) -> Response:
    response = RedirectResponse(PREFIX, status_code=303, headers=HEADERS)
    response.set_cookie(
        COOKIE,
        session,
        max_age=int(SESSION_S),
        path="/ui",
        httponly=True,
        samesite="strict",
        secure=request.headers.get("origin", "").startswith("https://"),
    )
    return response


async def _version(app: App) -> str:
    """Return a digest that differs once a run, an approval or a server is in another state."""
    runs = await read_runs(app, lambda journal: journal.version())
    waiting = await anyio.to_thread.run_sync(approvals_of(app.config).pending)
    servers = [(each.name, each.state, each.fault) for each in app.shared.upstreams.upstreams]
    state = (runs, app.shared.journal.under_way(), [each.id for each in waiting], servers)
    return blake2s(repr(state).encode(), digest_size=12).hexdigest()


def _static(name: str, media: str) -> Callable[[Request], Awaitable[Response]]:
    content = (files("toolfold.entrypoints.dashboard") / "static" / name).read_bytes()
    headers = {**HEADERS, "cache-control": "max-age=600"}

    async def serve(_request: Request) -> Response:
        return Response(content, headers=headers, media_type=media)

    return serve


class _Page:
    """Answers all methods of one path with a page."""

    def __init__(
        self,
        views: dict[str, View],
        operations: dict[tuple[str, str], Operation],
        access: DashboardAccess,
    ) -> None:
        self._views = views
        self._operations = operations
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; every failure is a page with a sentence."""
        response = await self._answer(scope, (await receive())["body"])
        await response(scope, receive, send)

    async def _answer(self, scope: Scope, body: bytes) -> Response:
        visit = await self._access.visit(scope)
        if visit is None:
            return _closed()
        ask = self._asker(visit, scope, body)
        try:
            ask = replace(ask, version=await _version(visit.app))
            if _is_foreign(scope):
                raise Denied(_FOREIGN)
            view = self._views.get(scope["method"]) or self._views["GET"]
            return await view(ask)
        except ToolfoldError as error:
            return ask.page("failure", STATUSES.get(error.code, 500), message=str(error))
        except Exception:  # noqa: BLE001  # the outer edge
            _log.exception("The page %s ended with an error.", scope["path"])
            return ask.page("failure", 500, message=INTERNAL)

    def _asker(self, visit: RestRequest, scope: Scope, body: bytes) -> Asker:
        fields = parse_qsl(body.decode("utf-8", "replace"), max_num_fields=_MAX_FIELDS)
        return Asker(
            self._operations,
            visit,
            query=dict(parse_qsl(scope["query_string"].decode("latin-1"))),
            form=dict(fields),
            path=scope["path_params"],
            chosen=[value for name, value in fields if name == "hash"],
        )


def _is_foreign(scope: Scope) -> bool:
    """Whether a page of another origin asks for a change.

    Ports do not count for `SameSite`, so pages of other local programs would send our cookie.
    """
    headers = Headers(scope=scope)
    host = headers.get("host", "")
    is_ours = headers.get("origin", "") in {f"http://{host}", f"https://{host}"}
    return scope["method"] not in {"GET", "HEAD"} and not is_ours
