"""Swagger 2 into the form of OpenAPI 3. Pure."""

from typing import Final

from toolfold.catalog.binding import resolve
from toolfold.jsontypes import Json, JsonObject

_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")
_SCHEMA_KEYS: Final = (
    *("type", "format", "items", "default", "maximum", "exclusiveMaximum", "minimum"),
    *("exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems"),
    *("uniqueItems", "enum", "multipleOf", "x-nullable"),
)
_STYLES: Final[dict[str, JsonObject]] = {
    "csv": {"style": "form", "explode": False},
    "ssv": {"style": "spaceDelimited", "explode": False},
    "tsv": {"style": "tabDelimited", "explode": False},
    "pipes": {"style": "pipeDelimited", "explode": False},
    "multi": {"style": "form", "explode": True},
}
_FLOWS: Final = {"accessCode": "authorizationCode", "application": "clientCredentials"}
_FORM: Final = "application/x-www-form-urlencoded"
_MULTIPART: Final = "multipart/form-data"


def from_swagger(root: JsonObject) -> JsonObject:
    """Return a Swagger 2 document as OpenAPI 3 says it.

    Schemas stay where they are, so that references to them hold; only what stands around them
    is put into other words.
    """
    return {
        **{key: value for key, value in root.items() if key not in {"paths", "parameters"}},
        "openapi": "3.0.3",
        "servers": _servers(root),
        "paths": {
            path: _path_item(item, root)
            for path, item in _object(root.get("paths")).items()
            if isinstance(item, dict)
        },
        "components": {"securitySchemes": _schemes(root)},
    }


def _servers(root: JsonObject) -> list[Json]:
    host, base = root.get("host"), root.get("basePath") or ""
    if not isinstance(host, str) or not host:
        return [{"url": str(base) or "/"}]
    schemes = [each for each in _list(root.get("schemes")) if each in {"http", "https"}]
    schemes.sort(reverse=True)  # https first
    return [{"url": f"{scheme}://{host}{base}"} for scheme in schemes or ["https"]]


def _path_item(item: JsonObject, root: JsonObject) -> JsonObject:
    shared = [_resolved(each, root) for each in _list(item.get("parameters"))]
    converted: JsonObject = {}
    if isinstance(item.get("$ref"), str):
        converted["$ref"] = item["$ref"]
    for method in _METHODS:
        operation = item.get(method)
        if isinstance(operation, dict):
            converted[method] = _operation(operation, shared, root)
    return converted


def _operation(operation: JsonObject, shared: list[JsonObject], root: JsonObject) -> JsonObject:
    own = [_resolved(each, root) for each in _list(operation.get("parameters"))]
    places = {(each.get("name"), each.get("in")) for each in own}
    parameters = [
        *(each for each in shared if (each.get("name"), each.get("in")) not in places),
        *own,
    ]
    converted = {key: value for key, value in operation.items() if key != "parameters"}
    converted["parameters"] = [
        _parameter(each) for each in parameters if each.get("in") not in {"body", "formData"}
    ]
    consumes = _media(operation.get("consumes"), root.get("consumes"))
    if body := _body(parameters, consumes):
        converted["requestBody"] = body
    produces = _media(operation.get("produces"), root.get("produces")) or ["application/json"]
    converted["responses"] = {
        status: _response(each, produces, root)
        for status, each in _object(operation.get("responses")).items()
    }
    return converted


def _parameter(parameter: JsonObject) -> JsonObject:
    converted: JsonObject = {
        key: parameter[key] for key in ("name", "in", "description", "required") if key in parameter
    }
    converted["schema"] = parameter.get("schema") or _schema(parameter)
    if parameter.get("type") == "array":
        style = _STYLES.get(str(parameter.get("collectionFormat") or "csv"), _STYLES["csv"])
        simple: JsonObject = {"style": "simple", "explode": False}
        converted |= style if parameter.get("in") == "query" else simple
    return converted


def _schema(parameter: JsonObject) -> JsonObject:
    found: JsonObject = {key: parameter[key] for key in _SCHEMA_KEYS if key in parameter}
    if found.get("type") == "file":
        return {"type": "string", "format": "binary"}
    return found


def _body(parameters: list[JsonObject], consumes: list[str]) -> JsonObject | None:
    whole = next((each for each in parameters if each.get("in") == "body"), None)
    if whole is not None:
        types = [each for each in consumes if each not in {_FORM, _MULTIPART}]
        schema = whole.get("schema", {})
        content: JsonObject = {each: {"schema": schema} for each in types or ["application/json"]}
        return {
            "content": content,
            "required": whole.get("required") is True,
            "description": whole.get("description", ""),
        }
    fields = [each for each in parameters if each.get("in") == "formData" and each.get("name")]
    return _form(fields, consumes) if fields else None


def _form(fields: list[JsonObject], consumes: list[str]) -> JsonObject:
    has_file = any(each.get("type") == "file" for each in fields)
    kind = _MULTIPART if has_file or (_MULTIPART in consumes and _FORM not in consumes) else _FORM
    required: list[Json] = [each["name"] for each in fields if each.get("required") is True]
    properties: JsonObject = {}
    encoding: JsonObject = {}
    for each in fields:
        name = str(each["name"])
        schema = _schema(each)
        if isinstance(each.get("description"), str):
            schema["description"] = each["description"]
        properties[name] = schema
        if each.get("type") == "array" and kind == _FORM:
            style = _STYLES.get(str(each.get("collectionFormat") or "csv"), _STYLES["csv"])
            encoding[name] = dict(style)
    schema = {"type": "object", "properties": properties, "required": required}
    return {
        "content": {kind: {"schema": schema, "encoding": encoding}},
        "required": bool(required),
    }


def _response(response: Json, produces: list[str], root: JsonObject) -> JsonObject:
    found = _resolved(response, root)
    if "schema" not in found:
        return {key: value for key, value in found.items() if key != "examples"}
    schema = found["schema"]
    if isinstance(schema, dict) and schema.get("type") == "file":
        schema = {"type": "string", "format": "binary"}
        kept = [each for each in produces if "json" not in each]
        produces = kept or ["application/octet-stream"]
    examples = _object(found.get("examples"))
    content: JsonObject = {
        each: {"schema": schema} | ({"example": examples[each]} if each in examples else {})
        for each in produces
    }
    return {
        "description": found.get("description", ""),
        "headers": found.get("headers", {}),
        "content": content,
    }


def _schemes(root: JsonObject) -> JsonObject:
    schemes = _object(root.get("securityDefinitions"))
    return {name: _scheme(scheme) for name, scheme in schemes.items() if isinstance(scheme, dict)}


def _scheme(scheme: JsonObject) -> JsonObject:
    if scheme.get("type") == "basic":
        return {"type": "http", "scheme": "basic"}
    if scheme.get("type") != "oauth2":
        return scheme
    flow = str(scheme.get("flow"))
    return {"type": "oauth2", "flows": {_FLOWS.get(flow, flow): scheme}}


def _resolved(value: Json, root: JsonObject) -> JsonObject:
    """Follow a reference to a shared parameter or response; their places change with the form."""
    found = resolve(value, root)
    return found if isinstance(found, dict) else {}


def _media(*candidates: Json) -> list[str]:
    for each in candidates:
        if found := [kind for kind in _list(each) if isinstance(kind, str) and "/" in kind]:
            return found
    return []


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
