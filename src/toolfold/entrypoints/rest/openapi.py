"""The description of the REST API, as OpenAPI has it. Pure."""

import re
from collections.abc import Iterable
from typing import Any, Final

from toolfold import __version__
from toolfold.entrypoints.rest.operations import EVENTS_TYPE, JSON_TYPE, Operation
from toolfold.jsontypes import Json, JsonObject

_FAILURES: Final = {
    400: "An argument cannot be used; nothing was changed.",
    401: "A key or the local token is missing or not valid.",
    403: "The request comes from a web page that may not send it.",
    404: "Nothing has that name.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is not JSON, or does not say so.",
    421: "The request names a host that we are not.",
    422: "The tool answered that the call failed.",
    500: "toolfold failed.",
    502: "A server that we call failed.",
    503: "A server or the store cannot be reached, or toolfold is ending.",
    504: "The answer took too long.",
}
_OF_BODIES: Final = (415,)
_OF_TOOLS: Final = (422, 502)
_ERROR_REF: Final[JsonObject] = {"$ref": "#/components/schemas/Error"}
_ERROR: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "Stable: programs may rely on it."},
                "message": {"type": "string", "description": "A sentence for a person."},
            },
            "required": ["code", "message"],
            "additionalProperties": False,
        }
    },
    "required": ["error"],
    "additionalProperties": False,
}


def openapi_of(operations: Iterable[Operation]) -> JsonObject:
    """Return the whole description."""
    paths: dict[str, JsonObject] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "toolfold",
            "version": __version__,
            "description": "Every tool in one registry; memory; runs. See docs/rest.md.",
        },
        "paths": dict(paths),
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key, or the local token (`toolfold keys token`).",
                }
            },
        },
        "security": [{}, {"key": []}],
    }


def _described(operation: Operation) -> JsonObject:
    properties: Any = operation.takes["properties"]
    required: Any = operation.takes.get("required", [])
    in_path = [name for name in properties if f"{{{name}}}" in operation.path]
    others = [name for name in properties if name not in in_path]
    in_query = [] if operation.has_body else others
    shown: JsonObject = {
        "operationId": _identifier(operation),
        "summary": operation.summary,
        "tags": [operation.tag],
        "parameters": [
            *(_parameter(name, "path", properties[name], is_required=True) for name in in_path),
            *(
                _parameter(name, "query", properties[name], is_required=name in required)
                for name in in_query
            ),
        ],
        "responses": _responses(operation),
    }
    if operation.has_body and others:
        shown["requestBody"] = _body(operation, others)
    return shown


def _identifier(operation: Operation) -> str:
    words = re.findall(r"[a-z]+", operation.path)
    return "_".join([operation.method.lower(), *words])


def _parameter(name: str, place: str, schema: JsonObject, *, is_required: bool) -> Json:
    return {"name": name, "in": place, "required": is_required, "schema": schema}


def _body(operation: Operation, names: list[str]) -> Json:
    properties: Any = operation.takes["properties"]
    required: Any = operation.takes.get("required", [])
    needed = [name for name in required if name in names]
    schema = {**operation.takes, "properties": {name: properties[name] for name in names}}
    schema.pop("required", None)
    if needed:
        schema["required"] = list(needed)
    return {"required": bool(needed), "content": {JSON_TYPE: {"schema": schema}}}


def _responses(operation: Operation) -> JsonObject:
    content: JsonObject = {operation.media: {"schema": operation.returns}}
    if operation.stream is not None:
        content[EVENTS_TYPE] = {"schema": {"type": "string"}}
    answers: JsonObject = {
        str(operation.status): {"description": "The answer.", "content": content}
    }
    for status, said in _FAILURES.items():
        is_beside = (status in _OF_BODIES and not operation.has_body) or (
            status in _OF_TOOLS and not operation.calls_tools
        )
        if not is_beside:
            failing: Json = {JSON_TYPE: {"schema": _ERROR_REF}}
            answers[str(status)] = {"description": said, "content": failing}
    return answers
