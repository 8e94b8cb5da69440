"""What the REST API answers, typed."""

from dataclasses import dataclass, field
from typing import NamedTuple

from toolfold.jsontypes import Json, JsonObject


class ToolLine(NamedTuple):
    """A tool in one line; `get_tool(name)` says how to call it."""

    name: str
    description: str
    category: str = ""


class Category(NamedTuple):
    """Tools that belong together."""

    description: str
    count: int  # type: ignore[assignment]  # hides the method of tuples
    tools: tuple[ToolLine, ...]
    """A few of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """What there is."""

    categories: dict[str, Category]
    total_tools: int
    next_offset: int | None


class ToolPage(NamedTuple):
    """Some of many tools."""

    tools: tuple[ToolLine, ...]
    total: int
    next_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterInfo:
    """One parameter of a tool."""

    name: str
    type: str
    required: bool
    description: str = ""
    default: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInfo:
    """How to call a tool."""

    name: str
    category: str
    description: str
    call: str
    parameters: tuple[ParameterInfo, ...]
    takes_others: bool
    returns: str
    example: JsonObject
    read_only: bool
    destructive: bool
    idempotent: bool


class ToolCount(NamedTuple):
    """How often a run called a tool."""

    tool: str
    completed: int
    failed: int
    unknown: int


class RunFault(NamedTuple):
    """Why a run did not reach its end."""

    kind: str
    message: str
    line: int | None


class Image(NamedTuple):
    """An image that the code showed."""

    mime_type: str
    base64: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What came of a run. `text` is what a model is to read."""

    run_id: str
    success: bool
    text: str
    output: str
    value: Json
    error: RunFault | None
    calls: tuple[ToolCount, ...]
    waits: tuple[str, ...]
    images: tuple[Image, ...] = ()
    times: dict[str, float] = field(default_factory=dict)
    session: str = ""
    """Whose variables were kept, if any were."""


class RunLine(NamedTuple):
    """A run in one line."""

    id: str
    kind: str
    """`code`, `rehearsal` for a dry run, or what else was written down as one."""
    began_at: float
    client: str
    project: str
    code: str
    call_count: int
    state: str
    """`running`, `waiting`, `done`, `failed`, `invalid`, `denied`, `cancelled` or `lost`."""
    failure: str | None
    is_ended: bool
