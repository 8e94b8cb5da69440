"""GraphQL: a schema into a specification, calls of it into requests, and answers into values.

The specification is read as those of OpenAPI are, so that names, stubs and bounds are the same.
What reads schemas is an extra, and loaded where it is used.
"""

import importlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

import mcp_types as types

from toolfold.catalog.openapi.model import GraphQLField
from toolfold.catalog.sanitize import plain
from toolfold.errors import BadCall, ConfigError, ToolFailed
from toolfold.jsontypes import Json, JsonObject

_MAX_BYTES: Final = 16 * 1024 * 1024
_MAX_TOKENS: Final = 500_000
_MAX_TYPES: Final = 20_000
_MAX_MEMBERS: Final = 50
_MAX_DEFAULT_FIELDS: Final = 60
_MAX_LOOKED_AT: Final = 200
_MAX_ROOT_FIELDS: Final = 20_000
_MAX_SHOWN_CHARS: Final = 300
_MAX_WANTED_CHARS: Final = 20_000
_MAX_WANTED_TOKENS: Final = 5_000
_MAX_ERRORS: Final = 5
_NAME: Final = re.compile(r"[_A-Za-z][_0-9A-Za-z]*")
_SCALARS: Final[Mapping[str, JsonObject]] = {
    "Int": {"type": "integer"},
    "Float": {"type": "number"},
    "String": {"type": "string"},
    "ID": {"type": "string"},
    "Boolean": {"type": "boolean"},
}
_WRAPPERS: Final = frozenset({"node", "nodes", "edges"})
"""Fields that stand between a list and what it is of: they are not a level of their own."""


class GraphQLSpec(NamedTuple):
    """A schema as a specification, and by path what each operation asks for."""

    document: JsonObject
    fields: dict[str, GraphQLField]


def introspection() -> bytes:
    """Return the request that asks a server for its schema; ConfigError without the extra."""
    query: str = _library().get_introspection_query(descriptions=True)
    return json.dumps({"query": query}).encode()


def read_schema(content: bytes, url: str) -> GraphQLSpec:
    """Read a schema: what a server says of itself, or a file in the schema language.

    Raises:
        ConfigError: It is none; the message does not name it.
    """
    library = _library()
    if len(content) > _MAX_BYTES:
        raise ConfigError(f"is larger than {_MAX_BYTES:,} bytes")
    try:
        schema = _schema(library, content.decode())
        if len(schema.type_map) > _MAX_TYPES:
            raise ConfigError(f"has more than {_MAX_TYPES:,} types")
        return _Converter(library, schema).spec(url)
    except (library.GraphQLError, RecursionError, ValueError, TypeError, LookupError) as error:
        said = plain(str(error))[:_MAX_SHOWN_CHARS] or type(error).__name__
        raise ConfigError(f"is not a GraphQL schema: {said}") from error


def _library() -> Any:
    try:
        return importlib.import_module("graphql")
    except ImportError as error:
        raise ConfigError(
            "needs what reads GraphQL: install it with `pip install 'toolfold[graphql]'`"
        ) from error


def _schema(library: Any, text: str) -> Any:
    if not text.lstrip("\ufeff \t\r\n").startswith("{"):
        document = library.parse(text, no_location=True, max_tokens=_MAX_TOKENS)
        return library.build_ast_schema(document, assume_valid=True, assume_valid_sdl=True)
    told = json.loads(text)
    if isinstance(told, dict) and told.get("errors") and not told.get("data"):
        raise ConfigError(f"was refused: {_messages(told['errors'])}")
    found = told.get("data", told) if isinstance(told, dict) else told
    return library.build_client_schema(found, assume_valid=True)


class _Converter:
    """Writes a schema as a specification."""

    def __init__(self, library: Any, schema: Any) -> None:
        self._library = library
        self._schema = schema
        self._selections: dict[str, str] = {}

    def spec(self, url: str) -> GraphQLSpec:
        paths: JsonObject = {}
        fields: dict[str, GraphQLField] = {}
        # `query` is the method of HTTP that only reads.
        for kind, method in (("query", "query"), ("mutation", "post")):
            root = getattr(self._schema, f"{kind}_type")
            for name, field in islice(root.fields.items() if root else (), _MAX_ROOT_FIELDS):
                path = f"/{kind}/{name}"
                operation_id = name if f"/query/{name}" not in fields else f"{name}_{kind}"
                fields[path] = self._field(kind, name, field)
                operation = self._operation(operation_id, field, fields[path])
                paths[path] = {method: operation}
        if not paths:
            raise ConfigError("is a GraphQL schema without queries and mutations")
        schemas: JsonObject = {
            name: self._definition(each)
            for name, each in self._schema.type_map.items()
            if not name.startswith("__")
        }
        document: JsonObject = {
            "openapi": "3.1.0",
            "info": {"title": ""},
            "servers": [{"url": url}] if url else [],
            "paths": paths,
            "components": {"schemas": schemas},
        }
        return GraphQLSpec(document, fields)

    def _field(self, kind: str, name: str, field: Any) -> GraphQLField:
        returned = self._library.get_named_type(field.type)
        has_fields = self._library.is_composite_type(returned)
        free = (each for each in ("fields", "selection", "fields_") if each not in field.args)
        return GraphQLField(
            kind=kind,
            name=name,
            arguments=tuple((each, str(value.type)) for each, value in field.args.items()),
            selection=self._selection(returned) if has_fields else "",
            selector=next(free) if has_fields else "",
        )

    def _selection(self, returned: Any) -> str:
        name = returned.name
        if name not in self._selections:
            self._selections[name] = _Selection(self._library).text(returned)
        return self._selections[name]

    def _operation(self, name: str, field: Any, asked: GraphQLField) -> JsonObject:
        properties: JsonObject = {each: self._given(value) for each, value in field.args.items()}
        if asked.selector:
            properties[asked.selector] = {
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
                "description": (
                    "Which fields to return: GraphQL (`id owner { login }`) or a list "
                    f"(['id', 'owner.login']). By default: {asked.selection[:_MAX_SHOWN_CHARS]}"
                ),
            }
        needed: list[Json] = [each for each, value in field.args.items() if self._needs(value)]
        schema: JsonObject = {
            "type": "object",
            "properties": properties,
            "required": needed,
            "additionalProperties": False,
        }
        body: JsonObject = {"required": bool(needed), "content": _json(schema)}
        answer: JsonObject = {"content": _json(self._reference(field.type))}
        about = field.description or f"The {asked.kind} {asked.name}."
        if field.deprecation_reason:
            about += f"\nDeprecated: {field.deprecation_reason}"
        return {
            "operationId": name,
            "description": about,
            "responses": {"200": answer},
            **({"requestBody": body} if properties else {}),
        }

    def _definition(self, each: Any) -> JsonObject:
        library = self._library
        if library.is_enum_type(each):
            return {"type": "string", "enum": list(each.values)}
        if library.is_input_object_type(each):
            return {
                "type": "object",
                "properties": {name: self._given(field) for name, field in each.fields.items()},
                "required": [name for name, field in each.fields.items() if self._needs(field)],
                "additionalProperties": False,
            }
        if library.is_union_type(each):
            members = [self._reference(one) for one in each.types[:_MAX_MEMBERS]]
            return {"anyOf": [*members]} if members else {}
        if library.is_scalar_type(each):
            return dict(_SCALARS.get(each.name, {}))
        # Which of them an answer has is for the caller to say, so none is required.
        properties = {name: self._reference(field.type) for name, field in each.fields.items()}
        return {"type": "object", "properties": dict(properties)}

    def _given(self, value: Any) -> JsonObject:
        """Return the schema of an argument or of a field of an input."""
        schema = self._reference(value.type)
        if not self._library.is_non_null_type(value.type):
            schema = {"anyOf": [schema, {"type": "null"}]}
        return schema | ({"description": value.description} if value.description else {})

    def _needs(self, value: Any) -> bool:
        return bool(self._library.is_required_argument(value))

    def _reference(self, each: Any) -> JsonObject:
        library = self._library
        if library.is_non_null_type(each):
            return self._reference(each.of_type)
        if library.is_list_type(each):
            return {"type": "array", "items": self._reference(each.of_type)}
        if library.is_scalar_type(each):
            return dict(_SCALARS.get(each.name, {}))
        return {"$ref": f"#/components/schemas/{each.name}"}


def _json(schema: JsonObject) -> JsonObject:
    return {"application/json": {"schema": schema}}


class _Selection:
    """The fields of a type that are returned where nobody says which: at most two levels."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._left = _MAX_DEFAULT_FIELDS

    def text(self, each: Any, *, levels: int = 1, wraps: int = 2) -> str:
        """Return its values, and those of the objects in it; without braces."""
        if self._library.is_union_type(each):
            return " ".join(["__typename", *self._members(each)])
        found: list[str] = []
        objects: list[tuple[str, Any, int, int]] = []
        for name, field in islice(each.fields.items(), _MAX_LOOKED_AT):
            if field.deprecation_reason or any(map(self._is_needed, field.args.values())):
                continue
            inner = self._library.get_named_type(field.type)
            if not self._library.is_composite_type(inner):
                found.append(name)
            elif name in _WRAPPERS and wraps:
                objects.insert(0, (name, inner, levels, wraps - 1))  # it is what was asked for
            elif levels:
                objects.append((name, inner, levels - 1, wraps))
        found = found[: self._left]
        self._left -= len(found)
        found += self._nested(objects)
        return " ".join(found) or "__typename"

    def _nested(self, objects: Iterable[tuple[str, Any, int, int]]) -> Iterator[str]:
        for name, inner, levels, wraps in objects:
            if self._left <= 0:
                return
            self._left -= 1
            if not self._library.is_union_type(inner):
                yield f"{name} {{ {self.text(inner, levels=levels, wraps=wraps)} }}"

    def _members(self, union: Any) -> Iterator[str]:
        for member in union.types[:_MAX_MEMBERS]:
            if self._left <= 0:
                return
            yield f"... on {member.name} {{ {self.text(member, levels=0, wraps=0)} }}"

    def _is_needed(self, argument: Any) -> bool:
        return bool(self._library.is_required_argument(argument))


def request_content(field: GraphQLField, arguments: JsonObject) -> bytes:
    """Return the body of the request that a call asks for.

    Raises:
        BadCall: The fields that are wanted cannot be read.
    """
    kinds = dict(field.arguments)
    given = {name: value for name, value in arguments.items() if name in kinds}
    declared = ", ".join(f"${name}: {kinds[name]}" for name in given)
    passed = ", ".join(f"{name}: ${name}" for name in given)
    asked = field.name + (f"({passed})" if passed else "")
    if field.selector:
        wanted = arguments.get(field.selector)
        asked += f" {{ {field.selection if wanted is None else _wanted(wanted, field.selector)} }}"
    head = field.kind + (f"({declared})" if declared else "")
    body = {"query": f"{head} {{ {asked} }}", "variables": given}
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def _wanted(wanted: Json, argument: str) -> str:
    """Return the fields that a caller wants, in the language of queries, and nothing else."""
    if isinstance(wanted, list):
        return _listed(wanted, argument)
    text = str(wanted).strip()
    if not text:
        raise BadCall(f"{argument!r} is empty: name a field, or leave it out.")
    try:
        library = _library()
    except ConfigError as error:
        raise ToolFailed(
            f"A text in {argument!r} {error}; a list of names needs nothing."
        ) from error
    if len(text) > _MAX_WANTED_CHARS:
        raise BadCall(f"{argument!r} has more than {_MAX_WANTED_CHARS:,} characters.")
    whole = text if text.startswith("{") else f"{{ {text} }}"
    try:
        definitions = library.parse(
            whole, no_location=True, max_tokens=_MAX_WANTED_TOKENS
        ).definitions
        printed = library.print_ast(definitions[0].selection_set)
    except (library.GraphQLError, RecursionError, AttributeError) as error:
        said = str(error).partition("\n")[0]
        raise BadCall(f"{argument!r} is not a list of GraphQL fields: {said}") from error
    if len(definitions) != 1:  # the text would end our braces and begin something of its own
        raise BadCall(f"{argument!r} must be the fields alone: `id owner {{ login }}`.")
    return str(printed).strip().removeprefix("{").removesuffix("}").strip()


def _listed(wanted: list[Json], argument: str) -> str:
    tree: dict[str, Any] = {}
    for each in wanted[:_MAX_WANTED_TOKENS]:
        names = str(each).split(".")
        if len(names) > _MAX_MEMBERS or not all(map(_NAME.fullmatch, names)):
            raise BadCall(
                f"{argument!r} holds {str(each)[:80]!r}: write names, such as owner.login."
            )
        at = tree
        for name in names:
            at = at.setdefault(name, {})
    if not tree:
        raise BadCall(f"{argument!r} is empty: name a field, or leave it out.")
    return _written(tree)


def _written(tree: dict[str, Any]) -> str:
    return " ".join(
        f"{name} {{ {_written(inner)} }}" if inner else name for name, inner in tree.items()
    )


def read_answer(field: GraphQLField, text: str) -> tuple[bool, Json]:
    """Return whether a call was answered, and with which value; else what was said instead.

    Raises:
        ValueError: It is no answer of a GraphQL server.
    """
    told = json.loads(text)
    if not isinstance(told, dict) or not {"data", "errors"} & told.keys():
        raise ValueError("neither data nor errors")
    if not told.get("errors"):
        data = told.get("data")
        return True, data.get(field.name) if isinstance(data, dict) else None
    words = f"{field.name}: {_messages(told['errors'])}"
    if isinstance(told.get("data"), dict) and told["data"].get(field.name) is not None:
        words += " (the rest was answered: ask for other `fields`"
        words += ")" if field.kind == "query" else "; it was done)"
    return False, words


def _messages(errors: Any) -> str:
    found = errors if isinstance(errors, list) else [errors]
    said = [
        plain(str(each.get("message") if isinstance(each, dict) else each))[:_MAX_SHOWN_CHARS]
        for each in found[:_MAX_ERRORS]
    ]
    return "; ".join(said)


def unwrapped(field: GraphQLField, result: types.CallToolResult) -> tuple[bool, Json] | None:
    """Return what `read_answer` says of a result; None where it is kept in a file, or is none."""
    block = result.content[0] if result.content else None
    if result.is_error or not isinstance(block, types.TextContent):
        return None
    try:
        return read_answer(field, block.text)
    except (ValueError, RecursionError):
        return None
