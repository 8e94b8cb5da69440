"""From a request to the arguments of an operation, checked against its schema."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NoReturn
from urllib.parse import parse_qsl

import jsonschema

from toolfold.entrypoints.rest.answers import UnsupportedMedia
from toolfold.entrypoints.rest.operations import JSON_TYPE, Operation
from toolfold.errors import BadInput
from toolfold.jsontypes import Json, JsonObject

_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")
_MAX_SAID_CHARS: Final = 300
_MAX_PARAMETERS: Final = 100


def read_arguments(
    operation: Operation,
    in_path: Mapping[str, str],
    query: bytes,
    body: bytes,
    content_type: str,
) -> JsonObject:
    """Return the arguments of a request.

    Raises:
        BadInput: They are not those that the operation takes.
        UnsupportedMedia: The body is not valid JSON, and says so.
    """
    properties = _properties(operation)
    arguments: JsonObject = {name: _typed(text, properties[name]) for name, text in in_path.items()}
    taken = properties.keys() - in_path.keys()
    if operation.has_body:
        if query:
            raise BadInput("This takes its arguments in the body; the query must be empty.")
        arguments |= _from_body(body, content_type, taken)
    else:
        if body:
            raise BadInput("This takes its arguments in the query; the body must be empty.")
        arguments |= _from_query(query, properties, taken)
    _check(operation, arguments)
    return arguments


def _properties(operation: Operation) -> dict[str, Any]:
    found = operation.takes["properties"]
    return found if isinstance(found, dict) else {}


def _from_body(body: bytes, content_type: str, taken: Iterable[str]) -> JsonObject:
    kind = content_type.partition(";")[0].strip().lower()
    # A form of some web page can send any other kind without being asked whether it may.
    if kind != JSON_TYPE and (body or kind):
        raise UnsupportedMedia(f"The body must be JSON, and say so: `Content-Type: {JSON_TYPE}`.")
    if not body:
        return {}
    try:
        parsed = json.loads(body, parse_constant=_no_number, parse_float=_finite)
        if b"\\u" in body:
            # Half of a surrogate pair can be spelled, and no server could be sent it.
            json.dumps(parsed, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise BadInput(f"The body is not JSON: {error}.") from error
    if not isinstance(parsed, dict):
        raise BadInput(f"The body must be a JSON object, not {type(parsed).__name__}.")
    _refuse_unknown(parsed, taken)
    return parsed


def _from_query(query: bytes, properties: dict[str, Any], taken: Iterable[str]) -> JsonObject:
    try:
        pairs = parse_qsl(
            query.decode("ascii"),
            keep_blank_values=True,
            max_num_fields=_MAX_PARAMETERS,
            errors="strict",
        )
    except ValueError as error:
        raise BadInput(f"The query cannot be read: {error}.") from error
    _refuse_unknown([name for name, _ in pairs], taken)
    given = dict(pairs)
    if len(given) < len(pairs):
        raise BadInput("A parameter is given twice.")
    return {name: _typed(text, properties[name]) for name, text in given.items()}


def _refuse_unknown(given: Iterable[str], taken: Iterable[str]) -> None:
    known = sorted(taken)
    for name in given:
        if name not in known:
            names = ", ".join(known) or "no arguments"
            raise BadInput(f"There is no argument {name[:100]!r} here. This takes {names}.")


def _typed(text: str, schema: Mapping[str, Any]) -> Json:
    """Return what a text in an address stands for; one that does not fit stays a text."""
    types = schema.get("type", "string")
    types = [types] if isinstance(types, str) else types
    if "integer" in types and _INTEGER.fullmatch(text):
        return int(text)
    if "number" in types and _NUMBER.fullmatch(text):
        return float(text)
    if "boolean" in types and text in {"true", "false"}:
        return text == "true"
    return text


def _check(operation: Operation, arguments: JsonObject) -> None:
    validator = _validator(operation)
    error = jsonschema.exceptions.best_match(validator.iter_errors(arguments))
    if error is not None:
        where = ".".join(map(str, error.absolute_path))
        said = error.message[:_MAX_SAID_CHARS]
        raise BadInput(f"`{where}`: {said}." if where else f"{said}.")


@lru_cache(maxsize=100)
def _validator(operation: Operation) -> Any:
    return jsonschema.Draft202012Validator(operation.takes)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:_MAX_SAID_CHARS]} is too large a number")
    return number


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
