"""One callable of an upstream, as the catalog knows it, its definition and its answers."""

import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from toolfold.errors import NotFound, ToolFailed, ToolfoldError
from toolfold.jsontypes import Json, JsonObject, plain


class Returned(NamedTuple):
    """What a tool returns, as Python has it."""

    type: str
    classes: tuple[str, ...]
    """The named tuples that the type is made of, as source, each after those that it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTool:
    """A tool as its server listed it. The MCP defaults hold where the server said nothing."""

    name: str
    description: str = ""
    input_schema: JsonObject
    output_schema: JsonObject | None = None
    read_only: bool = False
    destructive: bool | None = None
    idempotent: bool = False
    may_be_task: bool = False
    """Whether a call of it may be made a task, where the client has to ask for that."""
    positional: tuple[str, ...] | None = None
    """The parameters that may be given by position; None for those that are required."""

    returned: Returned | None = None
    """Known of our own tools, in place of an output schema."""


def built_in_server(module: str) -> str:
    """Return what stands for the server of a module that is built in."""
    return f"toolfold:{module.removeprefix('toolfold.')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A listed tool under the names that guest code uses."""

    server: str
    module: str
    function: str
    listed: ListedTool
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Of required parameters, those that are known from how the server was started."""

    path: str = field(init=False, compare=False)
    """How guest code and people write it: `github.create_issue`."""
    is_built_in: bool = field(init=False, compare=False)
    """Whether no server is behind it."""

    def __post_init__(self) -> None:
        # Every call asks for both several times.
        object.__setattr__(self, "path", f"{self.module}.{self.function}")
        object.__setattr__(self, "is_built_in", self.server == built_in_server(self.module))

    @property
    def own_path(self) -> str:
        """How a built-in tool is called where no server has the name of its module."""
        return self.path.removeprefix("toolfold.")


_DEFS = "$defs"


class SharedSchemas(dict[str, Json]):
    """The `$defs` of every tool of one upstream; each tool's schema holds this same object."""


def self_contained(schema: JsonObject) -> JsonObject:
    """Return `schema` with no more of the shared schemas than it refers to."""
    shared = schema.get(_DEFS)
    if not isinstance(shared, SharedSchemas):
        return schema
    own = without_shared(schema)
    needed: JsonObject = {}
    waiting = list(_names(own))
    while waiting:
        name = waiting.pop()
        if name not in needed and name in shared:
            needed[name] = shared[name]
            waiting.extend(_names(shared[name]))
    return own | {_DEFS: dict(sorted(needed.items()))} if needed else own


def without_shared(schema: JsonObject) -> JsonObject:
    """Return `schema` without the shared schemas, whose names then stand for them."""
    if not isinstance(schema.get(_DEFS), SharedSchemas):
        return schema
    return {key: value for key, value in schema.items() if key != _DEFS}


def _names(schema: Json) -> Iterator[str]:
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            reference = each.get("$ref")
            if isinstance(reference, str) and reference.startswith(f"#/{_DEFS}/"):
                yield reference.removeprefix(f"#/{_DEFS}/")
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """An image, a sound or a file that a tool returned; guest code holds only a reference."""

    mime_type: str
    base64: str

    @property
    def size_bytes(self) -> int:
        """About how large it is when decoded."""
        return len(self.base64) * 3 // 4


@dataclass(frozen=True, slots=True)
class Answer:
    """A tool's result as a value, and about how many characters it weighs."""

    value: Json
    size: int


@dataclass(frozen=True, slots=True)
class LargeAnswer:
    """A result that is not parsed, because it is too large to be a value."""

    size: int
    """About how many bytes it has."""
    chunks: Callable[[], Iterable[bytes]]
    """Yields it in UTF-8, piece by piece."""
    others: tuple[Json, ...] = ()
    """What came with it and is not text: references."""


Redact = Callable[[Callable[[], Iterable[bytes]]], Iterable[bytes]]
"""Changes a text, which can be read more than once, before it is handed on."""


class ArtifactSink(Protocol):
    """Takes what is no value, and returns what stands for it."""

    def blob(self, blob: Blob, cover: Redact | None = None) -> Json:
        """Take an image or a binary; if it is text, `cover` changes it."""

    async def large(self, tool: Tool, answer: LargeAnswer) -> Json:
        """Take what is too large."""


class DefinitionText(NamedTuple):
    """The definitions of one server as a text, and what tells the text from any other."""

    id: str
    text: str


def listing(
    server: str, tools: Mapping[str, JsonObject], *, is_built_in: bool = False
) -> DefinitionText:
    """Return the definitions of a server; `tools` has them by path: `github.create_issue`."""
    content = {"server": server, "is_built_in": is_built_in, "tools": tools}
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    encoded = text.encode("utf-8", "replace")
    return DefinitionText(hashlib.sha256(encoded).hexdigest()[:32], encoded.decode())


def definition(name: str, description: str | None, input_schema: JsonObject) -> JsonObject:
    """Return what clients put before a model of a tool."""
    return {"name": name, "description": description or "", "inputSchema": input_schema}


class Definitions:
    """Those of all tools that are known at one moment. They are written when they are asked for."""

    def __init__(self, tools: Mapping[str, Iterable[Tool]]) -> None:
        """Take the tools of each module."""
        self._tools = tools

    @cached_property
    def listings(self) -> tuple[DefinitionText, ...]:
        """A listing for each module; may be asked for from any thread."""
        return tuple(_listing(module, tools) for module, tools in sorted(self._tools.items()))


def _listing(module: str, tools: Iterable[Tool]) -> DefinitionText:
    known = list(tools)
    server = known[0].server if known else module
    return listing(
        server,
        {
            tool.path: definition(
                tool.listed.name,
                tool.listed.description,
                without_shared(tool.listed.input_schema),
            )
            for tool in known
        },
        is_built_in=server == built_in_server(module),
    )


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """Tools that this process answers by itself."""

    name: str
    """The module; no server can have it."""

    tools: tuple[ListedTool, ...]
    serve: Callable[..., Awaitable[Any]]
    """Answers the tool of a name as its service does, or raises a `ToolfoldError`."""

    form: Callable[[Any], Any] = lambda value: value
    """Returns such an answer as JSON and named tuples."""

    show: Callable[[Any], str]
    """Returns that as text, for clients that call the tool by itself."""

    async def text(self, name: str, arguments: JsonObject) -> str:
        """Answer one call with what is shown of the answer; raises as the service does."""
        return self.show(self.form(await self.serve(name, arguments)))

    async def call(self, name: str, arguments: JsonObject) -> Answer:
        """Answer one call.

        Raises:
            ToolfoldError: There is no answer; the message says why.
        """
        try:
            value = self.form(await self.serve(name, arguments))
        except NotFound as error:  # which would say that there is no such tool
            raise ToolFailed(str(error)) from error
        except ToolfoldError:
            raise
        except Exception as error:
            _log.exception("%s.%s ended with an error.", self.name, name)
            raise ToolFailed(f"{self.name}.{name} failed; see `toolfold logs`.") from error
        return Answer(value, len(json.dumps(plain(value))))
