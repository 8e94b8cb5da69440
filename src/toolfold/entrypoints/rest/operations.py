"""What the REST API offers, as values: routes and their description are made of the same ones."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from starlette.responses import Response

from toolfold.app import App
from toolfold.config.config import Config
from toolfold.errors import Denied
from toolfold.execution.access import VerbAccess
from toolfold.journal.runs import DASHBOARD, Origin
from toolfold.jsontypes import Json, JsonObject

JSON_TYPE: Final = "application/json"
EVENTS_TYPE: Final = "text/event-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestRequest:
    """One request: what serves it, and for whom."""

    app: App
    app_of: Callable[[str], Awaitable[App]]
    """Finds what serves the holder of a key, by its id."""

    key: str = ""
    """The id of the key that was shown; empty for the local user."""

    is_known: bool = True
    """Whether they may learn more than that we are there."""

    has_token: bool = False
    """Whether they have shown the local token, which only the user can read."""

    is_page: bool = False
    """Whether a page asks, for a person who looks at it."""

    is_look: bool = False
    """Whether a page reads it for a person, not a program."""

    is_ending: Callable[[], bool] = bool
    """Whether the process finishes what it has begun, and then ends."""

    release: Callable[[], None] = lambda: None
    """Lets go of what serves it: for an answer that may last for days."""

    @property
    def client(self) -> str:
        """Under which name the journal knows the caller."""
        if self.key:
            return f"key:{self.key}"
        return DASHBOARD if self.is_look else "rest"

    @property
    def origin(self) -> Origin:
        """Who asks for a run."""
        config = self.app.config
        return Origin(client=self.client, project=str(config.project or config.start_directory))


Respond: TypeAlias = Callable[[RestRequest, JsonObject], Awaitable[Any]]
"""Answers a request with JSON, or with a response. It raises a `ToolfoldError` if it cannot."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Operation:
    """One method of one path."""

    method: str
    path: str
    summary: str
    answer: Respond
    tag: str
    takes: JsonObject = field(default_factory=lambda: closed_object({}))
    """JSON Schema of all arguments. Those named in the path come there; the others in the query of
    what only reads or deletes, and in the body of the rest."""

    returns: JsonObject = field(default_factory=dict)
    """JSON Schema of the answer."""

    status: int = 200
    media: str = JSON_TYPE
    stream: Callable[[RestRequest, JsonObject], Response] | None = None
    """Answers those who accept a stream of events."""

    calls_tools: bool = False
    """Whether a server that we call can have a part in its failure."""

    @property
    def has_body(self) -> bool:
        """Whether arguments come in the body."""
        return self.method in {"POST", "PATCH", "PUT"}


def owned(request: RestRequest) -> Config:
    """Return the configuration of the local user.

    Raises:
        Denied: Somebody else asks.
    """
    if request.key or not request.has_token:
        raise Denied(
            "Only the local user sees this, with the token that `toolfold keys token` prints."
        )
    return request.app.config


async def call_verb(
    request: RestRequest,
    path: str,
    arguments: JsonObject,
    *,
    form: Callable[[Any], Json],
    **options: Any,
) -> Json:
    """Call what is built in, for whoever asks; `form` makes JSON of its answer.

    Raises:
        ToolfoldError: A rule forbids it, or it failed.
    """
    access = VerbAccess(request.app.reach, path, arguments, form=form, **options)
    code = f"# A client called {path} over REST."
    answer: Json = await request.app.border.single(access, request.origin, "rest", code=code)
    return answer


def closed_object(properties: JsonObject, *, required: tuple[str, ...] = ()) -> JsonObject:
    """Return the schema of an object that has these properties and no others."""
    schema: JsonObject = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    return schema | {"required": list(required)} if required else schema


def whole_object(properties: JsonObject) -> JsonObject:
    """Return the schema of an object that has all of these properties and no others."""
    return closed_object(properties, required=tuple(properties))


def page_of(name: str, item: JsonObject, **others: JsonObject) -> JsonObject:
    """Return the schema of a page of a longer list."""
    return whole_object(
        {
            name: {"type": "array", "items": item},
            "total": {"type": "integer"},
            "next_offset": {"type": ["integer", "null"]},
            **others,
        }
    )


def paging(default: int, most: int) -> JsonObject:
    """Return the schemas of the arguments that choose a page."""
    return {
        "limit": {"type": "integer", "minimum": 1, "maximum": most, "default": default},
        "offset": {"type": "integer", "minimum": 0, "maximum": 2**53, "default": 0},
    }
