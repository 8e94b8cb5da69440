"""What a tool's input schema asks for, and a Python call turned into the arguments it wants."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NoReturn

from toolfold.catalog.names import parameter_names
from toolfold.catalog.tool import Tool
from toolfold.errors import BadCall, count
from toolfold.jsontypes import Json, JsonObject

_MAX_HOPS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One property of an input schema, under the identifier that guest code uses."""

    name: str
    identifier: str
    schema: Json
    required: bool
    default: str | None = None
    """What is sent where it is left out: known from how the server was started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters of one tool, ready to bind calls."""

    path: str
    # Required ones first, in the schema's order.
    listed: tuple[Parameter, ...]
    required: tuple[str, ...]
    positional: tuple[str, ...]
    all_positional: tuple[str, ...]
    """The same with those that have a default, for calls that give them all."""
    defaults: Mapping[str, str]
    spellings: Mapping[str, str]
    left_out_when_none: frozenset[str]
    takes_others: bool

    def signature(self, *, max_chars: int | None = None) -> str:
        """Write the call in one line: `github.create_issue(owner, repo, title, body=…)`.

        What does not fit into `max_chars` is shown as `…`.
        """
        shown: list[str] = []
        room = None if max_chars is None else max_chars - len(self.path) - len("(, …)")
        for parameter in self.listed:
            text = parameter.identifier if parameter.required else f"{parameter.identifier}=…"
            if room is not None and len(", ".join([*shown, text])) > room:
                return f"{self.path}({', '.join([*shown, '…'])})"
            shown.append(text)
        if self.takes_others:
            shown.append("**others")
        return f"{self.path}({', '.join(shown)})"


def bind(tool: Tool, args: Sequence[Json], kwargs: Mapping[str, Json]) -> JsonObject:
    """Return the arguments to send to `tool` for the call `tool(*args, **kwargs)`.

    Positional values fill the required parameters in the schema's order, and those that our own
    tools name beyond them. Keywords may be identifiers or the schema's own spelling. `None` leaves
    an optional parameter out unless its schema admits null. Values are not validated.

    Raises:
        BadCall: A parameter is unknown, missing or given twice, or there are too many positions.
    """
    parameters = parameters_of(tool)
    by_position = _by_position(parameters, len(args))
    bound: JsonObject = {
        name: value
        for name, value in zip(by_position, args, strict=False)
        if value is not None or name not in parameters.left_out_when_none
    }
    for keyword, value in kwargs.items():
        name = parameters.spellings.get(keyword)
        if name is None:
            if not parameters.takes_others:
                _refuse(parameters, _unknown(parameters, keyword))
            name = keyword
        if name in bound:
            _refuse(parameters, f"{parameters.path}() got parameter {keyword!r} twice.")
        if value is not None or name not in parameters.left_out_when_none:
            bound[name] = value
    bound = {**parameters.defaults, **bound}
    missing = [name for name in parameters.required if name not in bound]
    if missing:
        _refuse(parameters, _missing(parameters, missing))
    return bound


def _by_position(parameters: Parameters, given: int) -> tuple[str, ...]:
    """Return what arguments are by their position; known values may be among them, or not."""
    if given <= len(parameters.positional):
        return parameters.positional
    if given > len(parameters.all_positional):
        _refuse(parameters, _too_many(parameters, given))
    return parameters.all_positional


def parameters_of(tool: Tool) -> Parameters:
    """Return the parameters of `tool`, computed once for as long as it is in use.

    A schema that makes no sense gives a tool that takes any keyword; nothing is raised.
    """
    return _parameters(_Identity(tool))


def resolve(schema: Json, root: Json) -> Json:
    """Follow the `$ref` of `schema` within `root`.

    A reference that leads nowhere, in a circle or out of the document gives `True`, the schema
    that admits everything.
    """
    for _ in range(_MAX_HOPS):
        if not isinstance(schema, dict) or not isinstance(reference := schema.get("$ref"), str):
            return schema
        schema = _pointed_at(reference, root)
    return True


def merged(schema: Json, root: Json) -> Json:
    """Return `schema` with its `$ref` followed and its `allOf` folded in, as far as that is simple.

    Properties and required names are collected. Of two different claims the first stays, so
    the result never refuses what `schema` admits.
    """
    return _merged(schema, root, set(), hops=_MAX_HOPS)


def wrapped_result(schema: JsonObject | None) -> Json:
    """Return the schema of the value that a server wrapped as `{"result": value}`, else None.

    FastMCP wraps what is no object, because a tool's output had to be one, and marks that it did.
    """
    if schema is None or schema.get("x-fastmcp-wrap-result") is not True:
        return None
    properties = schema.get("properties")
    return properties.get("result") if isinstance(properties, dict) else None


def admits_null(schema: Json, root: Json) -> bool:
    """Tell whether null fits `schema`; where that is unclear, it does."""
    return _admits_null(schema, root, {}, hops=_MAX_HOPS)


class _Identity:
    """A tool as a cache key: schemas cannot be hashed, and comparing them would be slow."""

    __slots__ = ("tool",)

    def __init__(self, tool: Tool) -> None:
        self.tool = tool

    def __hash__(self) -> int:
        return id(self.tool)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.tool is other.tool


@lru_cache(maxsize=4096)
def _parameters(key: _Identity) -> Parameters:
    root = key.tool.listed.input_schema
    schema = merged(root, root)
    defaults = key.tool.defaults
    found = _listed(schema if isinstance(schema, dict) else {})
    listed = tuple(replace(each, default=defaults.get(each.name)) for each in found)
    every = tuple(each.name for each in listed if each.required)
    listed = tuple(replace(each, required=False) if each.default else each for each in listed)
    required = tuple(each.name for each in listed if each.required)
    return Parameters(
        path=key.tool.path,
        listed=listed,
        required=required,
        positional=key.tool.listed.positional or required,
        all_positional=key.tool.listed.positional or every,
        defaults=defaults,
        # Identifiers last: where one is also another's original spelling, the stub is right.
        spellings={each.name: each.name for each in listed}
        | {each.identifier: each.name for each in listed},
        left_out_when_none=frozenset(
            each.name for each in listed if not each.required and not admits_null(each.schema, root)
        ),
        takes_others=_takes_others(schema),
    )


def _listed(schema: JsonObject) -> Iterator[Parameter]:
    found = schema.get("properties")
    properties = found if isinstance(found, dict) else {}
    required = _strings(schema.get("required"))
    names = [*required, *(name for name in properties if name not in required)]
    identifiers = parameter_names(names)
    for name in names:
        yield Parameter(
            name=name,
            identifier=identifiers[name],
            schema=properties.get(name, True),
            required=name in required,
        )


def _takes_others(schema: Json) -> bool:
    """Tell whether names that the schema does not list may be sent.

    Where the schema does not say, only one without `properties` takes them: JSON Schema would
    always, but servers ignore what they do not know, and a misspelt name should be heard of.
    """
    if not isinstance(schema, dict):
        return True
    default = not isinstance(schema.get("properties"), dict)
    return schema.get("additionalProperties", default) is not False


def _strings(value: Json) -> dict[str, None]:
    items = value if isinstance(value, list) else []
    return dict.fromkeys(item for item in items if isinstance(item, str))


def _pointed_at(reference: str, root: Json) -> Json:
    document, _, pointer = reference.partition("#")
    if document or (pointer and not pointer.startswith("/")):
        return True
    found = root
    if "%" in pointer:
        from urllib.parse import unquote

        pointer = unquote(pointer)
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        elif isinstance(found, dict) and key in found:
            found = found[key]
        else:
            return True
    return found


def _merged(schema: Json, root: Json, seen: set[int], *, hops: int) -> Json:
    resolved = resolve(schema, root)
    if not isinstance(resolved, dict) or not isinstance(parts := resolved.get("allOf"), list):
        return resolved
    # Each schema is folded in once, or a few references to each other would grow without end.
    if id(resolved) in seen or not hops:
        return True
    seen.add(id(resolved))
    whole = {key: value for key, value in resolved.items() if key != "allOf"}
    for part in parts:
        found = _merged(part, root, seen, hops=hops - 1)
        if isinstance(found, dict):
            _fold(found, into=whole)
    return whole


def _fold(part: JsonObject, *, into: JsonObject) -> None:
    for key, value in part.items():
        mine = into.get(key)
        if isinstance(mine, dict) and isinstance(value, dict) and key == "properties":
            into[key] = value | mine
        elif isinstance(mine, list) and isinstance(value, list) and key == "required":
            into[key] = [*mine, *value]
        else:
            into.setdefault(key, value)


def _admits_null(schema: Json, root: Json, known: dict[int, bool], *, hops: int) -> bool:
    resolved = resolve(schema, root)
    if not isinstance(resolved, dict) or not hops:
        return resolved is not False
    if (answer := known.get(id(resolved))) is not None:
        return answer
    known[id(resolved)] = True

    def admitted(keyword: str) -> list[bool]:
        parts = resolved.get(keyword)
        items = parts if isinstance(parts, list) else []
        return [_admits_null(part, root, known, hops=hops - 1) for part in items]

    known[id(resolved)] = (
        _type_admits_null(resolved)
        and all(admitted("allOf"))
        and all(any(admitted(word)) for word in ("anyOf", "oneOf") if resolved.get(word))
    )
    return known[id(resolved)]


def _type_admits_null(schema: JsonObject) -> bool:
    kind = schema.get("type", "null")
    allowed = schema.get("enum", [None])
    return (
        (kind == "null" or (isinstance(kind, list) and "null" in kind))
        and (not isinstance(allowed, list) or None in allowed)
        and schema.get("const") is None
    )


def _refuse(parameters: Parameters, problem: str) -> NoReturn:
    raise BadCall(f"{problem} Call it as {parameters.signature()}.")


def _too_many(parameters: Parameters, given: int) -> str:
    taken = len(parameters.all_positional)
    return (
        f"{parameters.path}() takes at most {count(taken, 'positional argument')}, {given} were "
        "given; optional parameters go by name."
    )


def _unknown(parameters: Parameters, keyword: str) -> str:
    from difflib import get_close_matches

    nearest = get_close_matches(keyword, parameters.spellings, n=1)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    return f"{parameters.path}() has no parameter {keyword!r}.{hint}"


def _missing(parameters: Parameters, names: Sequence[str]) -> str:
    identifiers = {each.name: each.identifier for each in parameters.listed}
    plural = "s" if len(names) > 1 else ""
    listed = ", ".join(repr(identifiers[name]) for name in names)
    return f"{parameters.path}() needs parameter{plural} {listed}."
