"""The description of the door, and a page on which to try it."""

from importlib.resources import files
from typing import Final

from starlette.responses import Response

from toolfold.entrypoints.rest.answers import HEADERS
from toolfold.entrypoints.rest.operations import Operation, RestRequest
from toolfold.jsontypes import Json, JsonObject

# What servers say of their tools is shown there: nothing of it may become code.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FILES: Final = {
    "/docs": ("try.html", "text/html"),
    "/docs/try.js": ("try.js", "text/javascript"),
    "/docs/try.css": ("try.css", "text/css"),
}


def page_operations(description: JsonObject) -> list[Operation]:
    """Return what serves them."""

    async def describe(_request: RestRequest, _arguments: JsonObject) -> Json:
        return description

    return [
        Operation(
            method="GET",
            path="/openapi.json",
            summary="This description.",
            tag="state",
            answer=describe,
        ),
        *(_file(path, name, media) for path, (name, media) in _FILES.items()),
    ]


def _file(path: str, name: str, media: str) -> Operation:
    content = files("toolfold.entrypoints.rest").joinpath(name).read_bytes()

    async def show(_request: RestRequest, _arguments: JsonObject) -> Response:
        headers = {**HEADERS, "content-security-policy": _POLICY, "referrer-policy": "no-referrer"}
        return Response(content, headers=headers, media_type=media)

    return Operation(
        method="GET", path=path, summary="A page to try it.", tag="state", media=media, answer=show
    )
