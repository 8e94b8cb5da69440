"""A specification of OpenAPI 3 into the operations and tools of an API. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, count
from types import MappingProxyType
from typing import Final, cast

from toolfold.catalog.openapi.graphql import GraphQLSpec
from toolfold.catalog.openapi.model import (
    GRAPHQL,
    Api,
    ApiOperation,
    ApiParameter,
    Body,
    Encoding,
    GraphQLField,
    Place,
    Scheme,
)
from toolfold.catalog.openapi.pages import find_cursor, pages_tool
from toolfold.catalog.openapi.schemas import BINARY, SchemaSet
from toolfold.catalog.openapi.swagger import from_swagger
from toolfold.catalog.sanitize import plain
from toolfold.catalog.tool import ListedTool
from toolfold.errors import ConfigError
from toolfold.jsontypes import Json, JsonObject

_METHODS: Final = ("get", "head", "post", "put", "patch", "delete", "options", "trace", "query")
_READ_ONLY: Final = frozenset({"get", "head", "options", "trace", "query"})
_PLACES: Final = frozenset({"path", "query", "header", "cookie"})
_STYLES: Final[Mapping[str, str]] = {
    "path": "simple",
    "query": "form",
    "header": "simple",
    "cookie": "form",
}
# Those that the specification says are ignored, and those that would change what is asked of whom.
_UNSENDABLE: Final = frozenset(
    {
        *("accept", "content-type", "authorization", "host", "content-length", "cookie"),
        *("transfer-encoding", "connection", "upgrade", "te", "trailer", "expect", "keep-alive"),
        *("proxy-authorization", "proxy-connection", "forwarded", "x-forwarded-host"),
    }
)
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TEMPLATE: Final = re.compile(r"\{([^{}]*)\}")
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]{0,300}>")
_FORM: Final = "application/x-www-form-urlencoded"
_MAX_DESCRIPTION_CHARS: Final = 1_200
_MAX_OPERATIONS: Final = 20_000
_MAX_FLAT: Final = 60
# A body with any of these cannot be written as one argument for each property.
_WHOLE: Final = frozenset(
    {
        *("allOf", "anyOf", "oneOf", "not", "$ref", "patternProperties", "minProperties"),
        *("maxProperties", "enum", "const", "dependentRequired", "if"),
    }
)


def read_graphql(spec: GraphQLSpec) -> Api:
    """Return the API that a GraphQL schema describes."""
    return replace(_Reader(spec.document, "3.1.0", {}, spec.fields).read(), version=GRAPHQL)


def read_api(document: Json, *, variables: Mapping[str, str]) -> Api:
    """Return the API that a specification describes, Swagger 2 or OpenAPI 3.

    `variables` of its servers stand before their defaults. What is wrong with one operation leaves
    the others alone.

    Raises:
        ConfigError: It is no specification.
    """
    if not isinstance(document, dict):
        raise ConfigError("is not an OpenAPI specification: it must hold an object")
    version = str(document.get("openapi") or document.get("swagger") or "")
    if document.get("swagger") and version.startswith("2"):
        document = from_swagger(document)
    elif not version.startswith("3"):
        raise ConfigError(
            "is not an OpenAPI specification: it has neither `openapi: 3.x` nor `swagger: 2.0`"
        )
    return _Reader(document, version, variables).read()


class _Reader:
    """Reads one specification."""

    def __init__(
        self,
        root: JsonObject,
        version: str,
        variables: Mapping[str, str],
        graphql: Mapping[str, GraphQLField] = MappingProxyType({}),
    ) -> None:
        """`graphql` says by path what operations ask of a GraphQL server."""
        self._root = root
        self._graphql = graphql
        self._version = version
        self._variables = variables
        self._faults: list[str] = []
        self._converted: dict[int, Json] = {}
        """The schemas of parameters, by identity: most are shared by many operations."""
        self._schemas = SchemaSet(root, has_siblings=not version.startswith(("2", "3.0")))

    def read(self) -> Api:
        root, info = self._root, _object(self._root.get("info"))
        found = list(self._operations())
        if not found:
            self._faults.append("it describes no operation")
        names = _names(found)
        pairs = [self._operation(each, name) for each, name in zip(found, names, strict=True)]
        self._schemas.finish()
        operations, tools = [each for each, _ in pairs], [tool for _, tool in pairs]
        if any(each.cursor for each in operations):
            tools.append(pages_tool({each.name for each in operations}))
        return Api(
            title=str(info.get("title") or "")[:200],
            version=self._version,
            servers=self._servers(root),
            operations={each.name: each for each in operations},
            tools=tuple(tools),
            security=_security(root.get("security")) or (),
            schemes=tuple(self._schemes()),
            faults=tuple(self._faults[:50]),
            sent=self._schemas.shared["sent"],
            answered=self._schemas.shared["answered"],
        )

    def _operations(self) -> Iterator["_Found"]:
        left = _MAX_OPERATIONS
        for path, written in _object(self._root.get("paths")).items():
            item = _object(self._schemas.resolved(written))
            if not path.startswith("/"):
                if path.startswith("x-"):
                    continue
                path = f"/{path}"
            for method in _METHODS:
                operation = item.get(method)
                if isinstance(operation, dict) and left:
                    left -= 1
                    yield _Found(path=path, method=method, item=item, operation=operation)

    def _operation(self, found: "_Found", name: str) -> tuple[ApiOperation, ListedTool]:
        described = _Arguments(self._schemas)
        parameters = self._parameters(found, described)
        body = self._body(found.operation, described)
        output, accept = self._answer(found.operation, found.method)
        schema = described.schema(takes_others=body is not None and body.takes_others)
        operation = ApiOperation(
            name=name,
            method=found.method.upper(),
            path=found.path,
            servers=self._servers(found.operation) or self._servers(found.item),
            parameters=tuple(parameters),
            body=body,
            security=_security(found.operation.get("security")),
            accept=accept,
            cursor=find_cursor(found.method, parameters, output, self._schemas.resolved_answer),
            graphql=self._graphql.get(found.path),
        )
        return operation, _tool(operation, found, schema, output, self._schemas)

    def _parameters(self, found: "_Found", described: "_Arguments") -> list[ApiParameter]:
        declared: dict[tuple[str, str], JsonObject] = {}
        for each in (
            *_list(found.item.get("parameters")),
            *_list(found.operation.get("parameters")),
        ):
            parameter = _object(self._schemas.resolved(each))
            name, place = parameter.get("name"), parameter.get("in")
            if isinstance(name, str) and name and isinstance(place, str):
                declared[name, place] = parameter
        in_path = _TEMPLATE.findall(found.path)
        for name in in_path:
            declared.setdefault((name, "path"), {"schema": {"type": "string"}})
        kept = []
        for (name, place), parameter in declared.items():
            if place not in _PLACES or (place == "path" and name not in in_path):
                continue
            if place == "header" and not _is_sendable(name):
                continue
            kept.append(self._parameter(name, place, parameter, described))
        return kept

    def _parameter(
        self, name: str, place: str, parameter: JsonObject, described: "_Arguments"
    ) -> ApiParameter:
        media, schema = "", parameter.get("schema")
        content = _object(parameter.get("content"))
        if schema is None and content:
            media, kind = next(iter(content.items()))
            schema = _object(kind).get("schema")
        style = parameter.get("style")
        style = style if isinstance(style, str) else _STYLES[place]
        explode = parameter.get("explode")
        if id(parameter) not in self._converted:
            self._converted[id(parameter)] = self._schemas.convert(
                _with_description(schema, parameter), "sent", described=True
            )
        converted = self._converted[id(parameter)]
        if place == "path":
            converted = _not_empty(converted)
        is_required = place == "path" or parameter.get("required") is True
        argument = described.add(name, converted, place=place, is_required=is_required)
        return ApiParameter(
            name=name,
            argument=argument,
            place=cast("Place", place),
            style=style,
            explode=explode if isinstance(explode, bool) else style in {"form", "cookie"},
            allow_reserved=parameter.get("allowReserved") is True,
            media=media,
        )

    def _body(self, operation: JsonObject, described: "_Arguments") -> Body | None:
        written = _object(self._schemas.resolved(operation.get("requestBody")))
        content = _object(written.get("content"))
        if not content:
            return None
        media = min(content, key=_media_rank)
        kind = _object(self._schemas.resolved(content[media]))
        if written.get("required") is not True and self._is_empty(kind):
            return None
        return self._body_of(media, kind, written, described)

    def _body_of(
        self, media: str, kind: JsonObject, written: JsonObject, described: "_Arguments"
    ) -> Body:
        is_required = written.get("required") is True
        encodings = _encodings(_object(kind.get("encoding")))
        schema = kind.get("schema", {})
        base = _base(media)
        is_form = base == _FORM or base.startswith("multipart/")
        if not is_form and not _is_json(base):
            return self._raw(media, schema, described, is_required=is_required)
        flat = self._flat(schema, described, is_required=is_required)
        if is_form:
            encodings = _with_binaries(encodings, self._flattened(schema), self._schemas)
        pairs = tuple(sorted(encodings.items()))
        if flat is None:
            converted = self._schemas.convert(
                _with_description(schema, written), "sent", described=True
            )
            if is_form:
                converted = _with_binary_fields(converted, encodings)
            argument = described.add("body", converted, place="body", is_required=is_required)
            return Body(media=media, argument=argument, is_required=is_required, encodings=pairs)
        others = flat.get("additionalProperties")
        for name, each in _object(flat.get("properties")).items():
            property_schema = each
            if is_form and name in encodings and encodings[name].is_binary:
                property_schema = BINARY
            is_needed = name in _list(flat.get("required"))
            described.add(name, property_schema, place="body", is_required=is_needed)
        return Body(
            media=media,
            argument="",
            fields=tuple(_object(flat.get("properties"))),
            is_required=is_required,
            takes_others=others is not None and others is not False,
            encodings=pairs,
        )

    def _raw(self, media: str, schema: Json, described: "_Arguments", *, is_required: bool) -> Body:
        """Read a body that is neither JSON nor a form: callers write it themselves."""
        text: JsonObject = {"type": "string"}
        resolved = _object(self._schemas.resolved(schema))
        is_text = _base(media).startswith("text/") or "xml" in media or "yaml" in media
        if is_text and resolved.get("type") == "string":
            text = _object(self._schemas.convert(schema, "sent"))
        note: JsonObject = {"description": f"The whole body, as {_base(media)}."}
        argument = described.add(
            "body",
            (text if is_text else BINARY) | note,
            place="body",
            is_required=is_required,
        )
        return Body(media=media, argument=argument, is_required=is_required)

    def _is_empty(self, kind: JsonObject) -> bool:
        """Whether a body is declared and may hold nothing, as some are of requests that read."""
        target = self._flattened(kind.get("schema"))
        return target.get("properties") == {} and target.get("additionalProperties") is not True

    def _flattened(self, schema: Json) -> JsonObject:
        target = self._schemas.resolved(schema)
        return target if isinstance(target, dict) else {}

    def _flat(
        self, schema: Json, described: "_Arguments", *, is_required: bool
    ) -> JsonObject | None:
        """Return the body's schema if each of its properties can be an argument of its own."""
        target = self._flattened(schema)
        properties = _object(target.get("properties"))
        kind = target.get("type", "object")
        if not properties or kind != "object" or not _WHOLE.isdisjoint(target):
            return None
        if len(properties) > _MAX_FLAT or target.get("nullable") is True:
            return None
        if not described.are_free(properties):
            return None
        converted = _object(self._schemas.convert(target, "sent"))
        needed = _list(converted.get("required"))
        known = _object(converted.get("properties"))
        if not known or any(name not in known for name in needed) or (needed and not is_required):
            return None
        converted["properties"] = {
            name: self._schemas.convert(properties[name], "sent", described=True) for name in known
        }
        return converted

    def _answer(self, operation: JsonObject, method: str) -> tuple[JsonObject | None, str]:
        """Return the schema of what is answered when all is well, and what is asked for."""
        if method == "head":
            return None, "*/*"
        responses = _object(operation.get("responses"))
        good = sorted(status for status in responses if status.startswith("2"))
        is_empty = bool(good)
        for status in (*good, "default"):
            response = _object(self._schemas.resolved(responses.get(status)))
            content = _object(response.get("content"))
            if not content:
                continue
            is_empty = False
            media = min(content, key=_media_rank)
            if not _is_json(_base(media)):
                return None, f"{media}, */*;q=0.5"
            kind = _object(self._schemas.resolved(content[media]))
            if "schema" not in kind:
                return None, f"{media}, */*;q=0.5"
            converted = self._schemas.convert(kind["schema"], "answered")
            return _output(converted, self._schemas), f"{media}, */*;q=0.5"
        return (_wrapped({"type": "null"}) if is_empty else None), "*/*"

    def _servers(self, holder: JsonObject) -> tuple[str, ...]:
        urls = []
        for each in _list(holder.get("servers")):
            server = _object(each)
            url = server.get("url")
            if isinstance(url, str):
                urls.append(self._filled(url, _object(server.get("variables"))))
        return tuple(url for url in urls if url is not None)

    def _filled(self, url: str, variables: JsonObject) -> str | None:
        for name in _TEMPLATE.findall(url):
            default = _object(variables.get(name)).get("default")
            value = self._variables.get(name, default)
            if value is None or value == "":
                choices = _list(_object(variables.get(name)).get("enum"))
                value = choices[0] if choices else None
            if value is None:
                self._faults.append(
                    f"the server {url[:100]} needs the variable {name!r}: write it in `variables`"
                )
                return None
            url = url.replace(f"{{{name}}}", str(value))
        return url.strip()

    def _schemes(self) -> Iterator[tuple[str, Scheme]]:
        components = _object(self._root.get("components"))
        for name, written in _object(components.get("securitySchemes")).items():
            yield name, _scheme(_object(self._schemas.resolved(written)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    path: str
    method: str
    item: JsonObject
    operation: JsonObject


@dataclass(slots=True)
class _Arguments:
    """The arguments of one operation, as they are put together."""

    schemas: SchemaSet
    properties: JsonObject = field(default_factory=dict)
    required: list[Json] = field(default_factory=list)

    def are_free(self, names: Iterable[str]) -> bool:
        """Whether none of these names is taken."""
        return self.properties.keys().isdisjoint(names)

    def add(self, name: str, schema: Json, *, place: str, is_required: bool) -> str:
        """Add an argument, under another name if its own is taken; return the name."""
        argument = name
        if name in self.properties:
            numbered = (f"{name}_{number}" for number in count(2))
            candidates = chain([f"{name}_{place}"], numbered)
            argument = next(each for each in candidates if each not in self.properties)
        self.properties[argument] = schema
        if is_required:
            self.required.append(argument)
        return argument

    def schema(self, *, takes_others: bool) -> JsonObject:
        whole: JsonObject = {"type": "object", "properties": self.properties}
        if self.required:
            whole["required"] = self.required
        whole["additionalProperties"] = takes_others
        whole["$defs"] = self.schemas.shared["sent"]
        return whole


def _tool(
    operation: ApiOperation,
    found: _Found,
    schema: JsonObject,
    output: JsonObject | None,
    schemas: SchemaSet,
) -> ListedTool:
    method = found.method
    if output is not None:
        output["$defs"] = schemas.shared["answered"]
    return ListedTool(
        name=operation.name,
        description=_description(found),
        input_schema=schema,
        output_schema=output,
        read_only=method in _READ_ONLY,
        destructive=method == "delete",
        idempotent=method in {"put", "delete"},
    )


def _description(found: _Found) -> str:
    texts = [found.operation.get("summary"), found.operation.get("description")]
    texts = texts if any(texts) else [found.item.get("summary"), found.item.get("description")]
    untagged = [_TAG.sub(" ", plain(text)) for text in texts if isinstance(text, str)]
    said = [" ".join(text.split()) for text in untagged if text.strip()]
    if len(said) == 2 and said[1].startswith(said[0].rstrip(".")):
        said = said[1:]
    if said and said[0][-1] not in ".!?:":
        said[0] += "."
    if found.operation.get("deprecated") is True:
        said.insert(0, "Deprecated.")
    said = said or [f"{found.method.upper()} {found.path}"]
    return " ".join(said)[:_MAX_DESCRIPTION_CHARS]


def _names(found: list[_Found]) -> list[str]:
    """Return a name for each operation: its `operationId` where that is its own."""
    given = [each.operation.get("operationId") for each in found]
    counts = Counter(each for each in given if isinstance(each, str))
    taken: set[str] = set()
    names = []
    for each, written in zip(found, given, strict=True):
        spelt = _from_path(each)
        if isinstance(written, str) and re.search(r"[A-Za-z0-9]", written):
            spelt = written if counts[written] == 1 else f"{written}_{spelt}"
        name = spelt
        for number in range(2, len(found) + 2):
            if name not in taken:
                break
            name = f"{spelt}_{number}"
        taken.add(name)
        names.append(name)
    return names


def _from_path(found: _Found) -> str:
    plain = _TEMPLATE.sub(lambda part: f"by {part[1]}", found.path.replace("/{", "/ {"))
    words = re.findall(r"[A-Za-z0-9]+", plain)
    return "_".join([found.method, *words])


def _output(converted: Json, schemas: SchemaSet) -> JsonObject:
    target = schemas.resolved_answer(converted)
    kind = target.get("type") if isinstance(target, dict) else None
    is_value = isinstance(kind, str) and kind not in {"object", "array"}
    return _wrapped(converted) if is_value or not isinstance(converted, dict) else dict(converted)


def _wrapped(schema: Json) -> JsonObject:
    return {"type": "object", "properties": {"result": schema}, "x-fastmcp-wrap-result": True}


def _security(written: Json) -> tuple[tuple[str, ...], ...] | None:
    if not isinstance(written, list):
        return None
    return tuple(tuple(each) for each in written if isinstance(each, dict))


def _scheme(written: JsonObject) -> Scheme:
    kind, scheme = written.get("type"), str(written.get("scheme") or "").lower()
    if kind == "apiKey":
        return Scheme(kind="key", name=str(written.get("name")), place=str(written.get("in")))
    if kind == "http" and scheme == "basic":
        return Scheme(kind="basic")
    if kind == "http" and scheme == "bearer":
        return Scheme(kind="bearer")
    if kind not in {"oauth2", "openIdConnect"}:
        return Scheme(kind="other")
    flows = _object(written.get("flows"))
    chosen = _object(flows.get("authorizationCode") or next(iter(flows.values()), {}))
    return Scheme(
        kind="oauth",
        authorize_url=str(chosen.get("authorizationUrl") or ""),
        token_url=str(chosen.get("tokenUrl") or ""),
        scopes=tuple(_object(chosen.get("scopes"))),
    )


def _encodings(written: JsonObject) -> dict[str, Encoding]:
    found = {}
    for name, each in written.items():
        encoding = _object(each)
        style = str(encoding.get("style") or "form")
        explode = encoding.get("explode")
        found[name] = Encoding(
            style=style,
            explode=explode if isinstance(explode, bool) else style == "form",
            media=str(encoding.get("contentType") or "").partition(",")[0].strip(),
        )
    return found


def _with_binaries(
    encodings: dict[str, Encoding], schema: JsonObject, schemas: SchemaSet
) -> dict[str, Encoding]:
    for name, each in _object(schema.get("properties")).items():
        target = _object(schemas.resolved(each))
        is_binary = target.get("format") in {"binary", "base64"} or target.get("type") == "file"
        if is_binary and target.get("type") in {"string", "file", None}:
            known = encodings.get(name, Encoding())
            encodings[name] = Encoding(
                style=known.style, explode=known.explode, media=known.media, is_binary=True
            )
    return encodings


def _with_binary_fields(schema: Json, encodings: Mapping[str, Encoding]) -> Json:
    properties = _object(_object(schema).get("properties"))
    if not isinstance(schema, dict) or not properties:
        return schema
    binary = {name for name, each in encodings.items() if each.is_binary}
    return schema | {
        "properties": {
            name: dict(BINARY) if name in binary else each for name, each in properties.items()
        }
    }


def _not_empty(converted: Json) -> Json:
    """Return the schema of a value that is part of a path: an empty text would change the path."""
    values = converted.get("enum") if isinstance(converted, dict) else None
    if not isinstance(converted, dict) or not isinstance(values, list) or "" not in values:
        return converted
    return converted | {"enum": [each for each in values if each != ""] or values}


def _with_description(schema: Json, holder: JsonObject) -> Json:
    """Return a schema that says what the thing which it belongs to says."""
    text = holder.get("description")
    if not isinstance(text, str) or not text:
        return schema if isinstance(schema, dict) else {}
    return {**(schema if isinstance(schema, dict) else {}), "description": text}


def _is_sendable(header: str) -> bool:
    return bool(_HEADER.fullmatch(header)) and header.lower() not in _UNSENDABLE


def _media_rank(media: str) -> tuple[int, str]:
    base = _base(media)
    if base == "application/json":
        return 0, media
    if _is_json(base):
        return 1 + (base == "*/*"), media
    order = (_FORM, "multipart/form-data", "text/plain", "application/octet-stream")
    return 3 + (order.index(base) if base in order else len(order)), media


def _base(media: str) -> str:
    return media.partition(";")[0].strip().lower()


def _is_json(base: str) -> bool:
    return base in {"application/json", "text/json", "*/*", "application/*"} or base.endswith(
        "+json"
    )


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
