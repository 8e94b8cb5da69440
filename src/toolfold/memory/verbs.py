"""The table of verbs: all that memory does, and what is said of it at every door."""

import inspect
import re
import types
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from toolfold.jsontypes import Json, JsonObject
from toolfold.memory.audit.service import NoteAudit
from toolfold.memory.consolidation.service import Consolidation
from toolfold.memory.documents.service import Documents
from toolfold.memory.events.service import Events
from toolfold.memory.graph.service import Graph
from toolfold.memory.registry import Effect, Route, options_of
from toolfold.memory.service import Memory
from toolfold.memory.sync.service import Sync
from toolfold.memory.transfer.service import Transfer


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What serves one namespace."""

    notes: Memory
    events: Events
    consolidation: Consolidation
    documents: Documents
    graph: Graph
    transfer: Transfer
    audits: NoteAudit
    syncs: Sync


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One thing that memory does. Its method says what it takes, and how it is described."""

    module: str
    """The module of guest code that it is a function of."""

    name: str
    category: str
    service: str
    """The attribute of `Services` that does it."""

    method: Callable[..., Any]
    effect: Effect
    route: Route | None = None
    is_tool: bool = False
    is_command: bool = True
    is_for_users: bool = False
    file: str = ""

    @property
    def path(self) -> str:
        """How it is called from outside: `memory.search`."""
        return f"{self.module}.{self.name}"

    @property
    def may_repeat(self) -> bool:
        """Whether asking twice does what asking once does, and answers the same."""
        return self.effect in {"reads", "adds"}

    def of(self, services: Services) -> Callable[..., Any]:
        """Return what does it in one namespace."""
        return self.method.__get__(getattr(services, self.service))  # type: ignore[no-any-return]


def verbs_of(kind: type, service: str, category: str, module: str) -> Iterator[Verb]:
    """Yield the methods of a service that are registered as verbs.

    Those of another module that `memory` has too come twice.
    """
    for name, method in vars(kind).items():
        if (options := options_of(method)) is None:
            continue
        for each in dict.fromkeys((module, *(["memory"] if options.is_in_memory else []))):
            yield Verb(
                module=each,
                name=name,
                category=category,
                service=service,
                method=method,
                effect=options.effect,
                route=options.route if each == module else None,
                is_tool=options.is_tool,
                is_command=options.is_command and each == "memory",
                is_for_users=options.is_for_users,
                file=options.file,
            )


VERBS: Final[Mapping[str, Verb]] = {
    verb.path: verb
    for verb in [
        *verbs_of(Memory, "notes", "memory", "memory"),
        *verbs_of(Events, "events", "events", "memory"),
        *verbs_of(Consolidation, "consolidation", "consolidation", "memory"),
        *verbs_of(Documents, "documents", "documents", "memory"),
        *verbs_of(Graph, "graph", "graph", "graph"),
        *verbs_of(Transfer, "transfer", "transfer", "memory"),
        *verbs_of(NoteAudit, "audits", "consolidation", "memory"),
        *verbs_of(Sync, "syncs", "transfer", "memory"),
    ]
}
"""By path: `memory.search`."""


_SECTION = re.compile(r"^Raises:$", re.MULTILINE)
_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean"}


class VerbResult(NamedTuple):
    """What a verb returns, as Python has it."""

    type: str
    classes: tuple[str, ...]
    """The named tuples that the type is made of, as source, each after those that it needs."""


@cache
def description(verb: Verb) -> str:
    """Return what a verb does, in the words of its documentation."""
    text = _SECTION.split(inspect.getdoc(verb.method) or "", maxsplit=1)[0]
    paragraphs = [" ".join(each.split()) for each in text.strip().split("\n\n")]
    return "\n".join(paragraphs)


@cache
def positional(verb: Verb) -> tuple[str, ...]:
    """Return the parameters that may be given by their position."""
    return tuple(each.name for each in _parameters(verb) if each.kind is each.POSITIONAL_OR_KEYWORD)


def input_schema(verb: Verb) -> JsonObject:
    """Return what a verb takes, as JSON Schema."""
    hints = _hints(verb.method)
    properties: JsonObject = {}
    required: list[Json] = []
    for each in _parameters(verb):
        schema = _schema(hints[each.name])
        if each.default is each.empty:
            required.append(each.name)
        elif each.default:
            schema["default"] = each.default
        properties[each.name] = schema
    return {"type": "object", "properties": properties, "required": required}


@cache
def returned(verb: Verb) -> VerbResult:
    """Return what a verb returns, in the form that guest code gets it."""
    classes: dict[str, str] = {}
    text = _written(_hints(verb.method)["return"], classes)
    return VerbResult(text, tuple(classes.values()))


@cache
def _hints(described: Any) -> dict[str, Any]:
    return get_type_hints(described, localns={"Json": Any})  # which names itself


def _parameters(verb: Verb) -> list[inspect.Parameter]:
    _itself, *parameters = inspect.signature(verb.method).parameters.values()
    return [each for each in parameters if each.name != "progress"]


def _schema(hint: Any) -> JsonObject:
    """Return the schema of one parameter. What only Python has is left out."""
    if get_origin(hint) in (Union, types.UnionType):
        parts = [_schema(part) for part in get_args(hint) if part not in (type(None), datetime)]
        return _united(parts)
    if get_origin(hint) is Literal:
        return {"enum": list(get_args(hint))}
    if get_origin(hint) in (list, Sequence, tuple):
        items = _schema(get_args(hint)[0])
        return {"type": "array", "items": items} if items else {"type": "array"}
    if get_origin(hint) in (dict, Mapping):
        return {"type": "object"}
    return {"type": _SIMPLE[hint]} if hint in _SIMPLE else {}


def _united(parts: list[JsonObject]) -> JsonObject:
    if len(parts) == 1:
        return parts[0]
    if any("type" not in part for part in parts):
        return {}
    merged: JsonObject = {}
    for part in parts:
        merged |= part
    return merged | {"type": [part["type"] for part in parts]}


def _written(hint: Any, classes: dict[str, str]) -> str:
    """Write a type as guest code has it, and note the classes that it needs."""
    origin, parts = get_origin(hint), [each for each in get_args(hint) if each is not ...]
    if origin in (Union, types.UnionType):
        return " | ".join(_written(part, classes) for part in parts)
    if origin is Literal:
        return "str"
    if origin is tuple and ... in get_args(hint):
        return f"tuple[{_written(parts[0], classes)}, ...]"
    if origin in (list, Sequence, AsyncIterator):
        return f"list[{_written(parts[0], classes)}]"
    if origin in (dict, Mapping):
        return "dict[str, Any]"
    if hint is type(None):
        return "None"
    if is_dataclass(hint) or hasattr(hint, "_fields"):
        return _declared(hint, classes)
    return hint.__name__ if hint in _SIMPLE else "Any"


def _declared(kind: Any, classes: dict[str, str]) -> str:
    name: str = kind.__name__
    if name not in classes:
        fields = {each: _written(hint, classes) for each, hint in _hints(kind).items()}
        body = "".join(f"    {each}: {text}\n" for each, text in fields.items())
        classes[name] = f"class {name}(NamedTuple):\n{body}"
    return name
