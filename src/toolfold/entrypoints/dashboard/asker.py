"""How pages ask: each view turns one request into REST operations, as the local user."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response

from toolfold.entrypoints.dashboard.render import HEADERS, page
from toolfold.entrypoints.rest.operations import Operation, RestRequest


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks REST operations on behalf of one request."""

    operations: Mapping[tuple[str, str], Operation]
    visit: RestRequest
    query: Mapping[str, str]
    form: Mapping[str, str]
    path: Mapping[str, str]
    version: str = ""
    """What the page shows; see `ChangeStream`."""
    chosen: Sequence[str] = ()
    """The hashes of the notes that are ticked in the form."""

    @property
    def is_owner(self) -> bool:
        """Whether the local user looks, and not the holder of a key."""
        return self.visit.has_token

    def page(self, name: str, status: int = 200, **values: Any) -> Response:
        """Return the page that the template `name` makes of these values."""
        return page(name, status, is_owner=self.is_owner, version=self.version, **values)

    async def get(self, path: str, /, **arguments: Any) -> Any:
        """Return the answer to a GET; arguments that are None or empty are left out."""
        return await self.send("GET", path, **arguments)

    async def post(self, path: str, /, **arguments: Any) -> Any:
        """Return the answer to a POST."""
        return await self.send("POST", path, **arguments)

    async def send(self, method: str, path: str, /, **arguments: Any) -> Any:
        """Return the answer to a request; arguments that are None or empty are left out."""
        given = {name: value for name, value in arguments.items() if value not in (None, "")}
        visit = replace(self.visit, is_page=True, is_look=method == "GET")
        return await self.operations[method, path].answer(visit, given)

    @property
    def told(self) -> str:
        """What the page says of the change that led to it."""
        return self.query.get("told", "")

    @property
    def offset(self) -> int:
        """How many entries are before those of this page."""
        offset = self.query.get("offset", "0")
        return int(offset) if offset.isdigit() and len(offset) < 16 else 0


View = Callable[[Asker], Awaitable[Response]]


def see_other(path: str, /, **query: str) -> Response:
    """Send the browser to the page that shows what came of a change."""
    return RedirectResponse(f"{path}?{urlencode(query)}", 303, headers=HEADERS)
