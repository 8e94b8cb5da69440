"""An API as it is called: its operations, where they are, and how arguments travel."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from toolfold.catalog.tool import ListedTool
from toolfold.jsontypes import JsonObject

GRAPHQL: Final = "GraphQL"
"""The version of an API whose specification is a GraphQL schema."""

Place = Literal["path", "query", "header", "cookie"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiParameter:
    """One value of a request outside of its body."""

    name: str
    """As it is sent."""
    argument: str
    """As callers name it."""
    place: Place
    style: str
    explode: bool
    allow_reserved: bool = False
    media: str = ""
    """The kind of content that the value is written as, where it is not written by its style."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """How one field of a form is written."""

    style: str = "form"
    explode: bool = True
    media: str = ""
    is_binary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What a request holds."""

    media: str
    argument: str
    """The argument that is the whole body; "" where each of `fields` is an argument."""
    fields: tuple[str, ...] = ()
    is_required: bool = False
    takes_others: bool = False
    """Whether arguments that are nowhere declared belong to it."""
    encodings: tuple[tuple[str, Encoding], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """How the pages of an answer follow each other."""

    parameter: str
    """The argument that names the next page."""
    field: tuple[str, ...]
    """Where the answer says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphQLField:
    """What an operation asks of a GraphQL server."""

    kind: str
    """`query` or `mutation`."""
    name: str
    arguments: tuple[tuple[str, str], ...] = ()
    """Their types, by name."""
    selection: str = ""
    """The fields that are returned where nobody says which."""
    selector: str = ""
    """The argument in which callers say which; "" where there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOperation:
    """One thing that can be asked of an API."""

    name: str
    method: str
    path: str
    servers: tuple[str, ...] = ()
    """Where it is, if elsewhere than the rest: URLs with their variables filled in."""
    parameters: tuple[ApiParameter, ...] = ()
    body: Body | None = None
    security: tuple[tuple[str, ...], ...] | None = None
    """The alternatives, each with all schemes that it needs; None for those of the API."""
    accept: str = "*/*"
    cursor: Cursor | None = None
    graphql: GraphQLField | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """One way in which callers prove who they are."""

    kind: Literal["key", "basic", "bearer", "oauth", "other"]
    name: str = ""
    """Of the header, query parameter or cookie that a key goes into."""
    place: str = ""
    authorize_url: str = ""
    token_url: str = ""
    scopes: tuple[str, ...] = ()


# Event loops write what tasks return when they are asked to stop, and this one may be megabytes.
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Api:
    """A specification, ready to be called."""

    title: str
    version: str
    servers: tuple[str, ...]
    """Absolute or relative URLs, their variables filled in."""
    operations: Mapping[str, ApiOperation]
    """By name."""
    tools: tuple[ListedTool, ...]
    """The tool of each operation under the same name, and those that belong to none."""
    security: tuple[tuple[str, ...], ...] = ()
    schemes: tuple[tuple[str, Scheme], ...] = ()
    faults: tuple[str, ...] = ()
    """What of the specification cannot be used, in one line each."""
    sent: JsonObject
    answered: JsonObject
    """The schemas that tools share."""

    @property
    def protocol(self) -> str:
        """What it speaks."""
        return self.version if self.version == GRAPHQL else f"OpenAPI {self.version}"
