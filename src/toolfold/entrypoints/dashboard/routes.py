"""The routes of the dashboard. Without a browser session nothing but the way in is served."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Final
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from toolfold.app import App
from toolfold.entrypoints.dashboard.live import ChangeStream
from toolfold.entrypoints.dashboard.pages import VIEWS, Asker, View
from toolfold.entrypoints.dashboard.render import HEADERS, page
from toolfold.entrypoints.dashboard.sessions import COOKIE, SESSION_S, BrowserSessions
from toolfold.entrypoints.rest.answers import INTERNAL, STATUSES
from toolfold.entrypoints.rest.operations import Operation, RestRequest
from toolfold.entrypoints.rest.runs import read_runs
from toolfold.errors import Denied, ToolfoldError
from toolfold.execution.trust.approvals import approvals_of

_log = logging.getLogger(__name__)

PREFIX: Final = "/ui/"
_STATIC: Final = {
    "style.css": "text/css",
    "page.js": "text/javascript",
    "htmx.min.js": "text/javascript",
    "uPlot.iife.min.js": "text/javascript",
    "uPlot.min.css": "text/css",
}
_CLOSED: Final = (
    "This browser has no access to the dashboard, or it expired. Run `toolfold ui` in a terminal."
)

FindRequest = Callable[[Scope], Awaitable[RestRequest]]


def dashboard_routes(
    operations: Sequence[Operation], find_visit: FindRequest, sessions: BrowserSessions
) -> list[BaseRoute]:
    """Return every route below `/ui/`, and the redirect from `/`."""
    by_key = {(each.method, each.path): each for each in operations}

    async def enter(request: Request) -> Response:
        session = sessions.redeem(request.query_params.get("ticket", ""))
        if session is None:
            return page("closed", 403, message=_CLOSED)
        response = RedirectResponse(PREFIX, status_code=303, headers=HEADERS)
        response.set_cookie(
            COOKIE, session, max_age=int(SESSION_S), path="/ui", httponly=True, samesite="strict"
        )
        return response

    async def watch(request: Request) -> Response:
        if not sessions.knows(request.scope):
            return page("closed", 403, message=_CLOSED)
        visit = await find_visit(request.scope)
        return ChangeStream(lambda: _version(visit.app))

    async def go_to_pages(_request: Request) -> Response:
        return RedirectResponse(PREFIX, headers=HEADERS)

    by_path: dict[str, dict[str, View]] = {}
    for (method, path), view in VIEWS.items():
        by_path.setdefault(path, {})[method] = view
    return [
        Route("/", go_to_pages),
        Route("/ui", go_to_pages),
        Route("/ui/open", enter),
        Route("/ui/live", watch),
        *(Route(f"/ui/static/{name}", _static(name, media)) for name, media in _STATIC.items()),
        *(
            Route(path, _Page(views, by_key, find_visit, sessions), methods=[*views])
            for path, views in by_path.items()
        ),
    ]


async def _version(app: App) -> object:
    """Return what differs once a run, an approval or a server is in another state."""
    runs = await read_runs(app, lambda journal: journal.version())
    waiting = approvals_of(app.config).pending()
    servers = [(each.name, each.state, each.fault) for each in app.shared.upstreams.upstreams]
    return runs, [each.id for each in waiting], servers


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
        find_visit: FindRequest,
        sessions: BrowserSessions,
    ) -> None:
        self._views = views
        self._operations = operations
        self._find_visit = find_visit
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; every failure is a page with a sentence."""
        response = await self._answer(scope, (await receive())["body"])
        await response(scope, receive, send)

    async def _answer(self, scope: Scope, body: bytes) -> Response:
        if not self._sessions.knows(scope):
            return page("closed", 403, message=_CLOSED)
        try:
            _refuse_foreign(scope)
            view = self._views.get(scope["method"]) or self._views["GET"]
            return await view(await self._asker(scope, body))
        except ToolfoldError as error:
            return page("failure", STATUSES.get(error.code, 500), message=str(error))
        except Exception:  # noqa: BLE001  # the outer edge
            _log.exception("The page %s ended with an error.", scope["path"])
            return page("failure", 500, message=INTERNAL)

    async def _asker(self, scope: Scope, body: bytes) -> Asker:
        visit = await self._find_visit(scope)
        return Asker(
            self._operations,
            replace(visit, has_token=True, is_known=True),
            query=dict(parse_qsl(scope["query_string"].decode("latin-1"))),
            form=dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=50)),
            path=scope["path_params"],
        )


def _refuse_foreign(scope: Scope) -> None:
    """Raise `Denied` for a change that a page of another origin asks for.

    Ports do not count for `SameSite`, so pages of other local programs would send our cookie.
    """
    if scope["method"] in {"GET", "HEAD"}:
        return
    headers = Headers(scope=scope)
    if headers.get("origin", "") != f"http://{headers.get('host', '')}":
        raise Denied("Only pages of this dashboard may change something here.")
