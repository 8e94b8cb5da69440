"""Arguments against the whole input schema of a tool, before anything is sent.

Schemas are an upstream's words, so they are read with care: nothing is fetched that they refer to,
patterns are matched in linear time, and a schema that takes too many steps counts as not read. What
cannot be read refuses nothing: the upstream decides.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

import anyio.to_thread
from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.exceptions import best_match
from pydantic_core import SchemaError, SchemaValidator, core_schema
from pydantic_core import ValidationError as CoreValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable

from toolfold.catalog.tool import Tool
from toolfold.errors import BadCall, shown
from toolfold.jsontypes import Json, JsonObject

_MAX_STEPS: Final = 200_000
_SHORT_NODES: Final = 500
"""More than these are looked at beside the event loop."""
_MAX_COMPILED: Final = 5_000
_MAX_UNIQUE: Final = 200
_SHOWN_CHARS: Final = 200
_ANYTHING: Final = frozenset({"type", "properties", "required", "description", "title", "$schema"})

_SAYS_NOTHING: Final = frozenset({"description", "title", "default", "examples", "$schema"})
_OF_OBJECTS: Final = frozenset({"properties", "required", "additionalProperties"})
_PLAIN: Final[dict[str, core_schema.CoreSchema]] = {
    "string": core_schema.str_schema(strict=True),
    "integer": core_schema.int_schema(strict=True),
    "number": core_schema.union_schema(
        [core_schema.int_schema(strict=True), core_schema.float_schema(strict=True)]
    ),
    "boolean": core_schema.bool_schema(strict=True),
    "null": core_schema.none_schema(),
    "array": core_schema.list_schema(strict=True),
}
_MAX_PLAIN_DEPTH: Final = 12
_MAX_PLAIN_NAMES: Final = 200

Check = Callable[[JsonObject], "ValidationError | None"]


class _TooMuch(Exception):  # what happened
    """A schema takes more steps than anybody needs."""


class Schemas:
    """The input schemas of tools, each compiled when it is first needed."""

    def __init__(self) -> None:
        self._compiled: dict[int, tuple[JsonObject, Check | None]] = {}

    async def check(self, tool: Tool, arguments: JsonObject) -> None:
        """Check what is about to be sent to a tool.

        Raises:
            BadCall: It does not fit the schema; the message names the place and never the value.
        """
        check = self._check_of(tool.listed.input_schema)
        if check is None:
            return
        if _is_small(arguments):
            fault = check(arguments)
        else:
            fault = await anyio.to_thread.run_sync(check, arguments)
        if fault is not None:
            raise BadCall(f"{tool.path} was not called: {_said(fault)}")

    def _check_of(self, schema: JsonObject) -> Check | None:
        known = self._compiled.get(id(schema))
        if known is not None and known[0] is schema:
            return known[1]
        if len(self._compiled) >= _MAX_COMPILED:
            self._compiled.clear()
        check = None if _takes_anything(schema) else _compile(schema)
        self._compiled[id(schema)] = schema, check
        return check


def _takes_anything(schema: JsonObject) -> bool:
    """Whether binding has checked all that a schema says: names, and which are required."""
    properties = schema.get("properties", {})
    return (
        schema.keys() <= _ANYTHING
        and isinstance(properties, dict)
        and not any(
            isinstance(each, dict) and each.keys() - {"description", "title"}
            for each in properties.values()
        )
    )


def _compile(schema: JsonObject) -> Check | None:
    steps = _Steps()
    kind = _counting(validators.validator_for(schema, default=Draft202012Validator), steps)
    try:
        kind.check_schema(schema)
    except Exception:  # noqa: BLE001  # whatever an upstream wrote there
        return None
    validator = kind(schema, registry=Registry())
    fits_surely = _fits_surely(schema)

    def check(arguments: JsonObject) -> ValidationError | None:
        if fits_surely(arguments):
            return None
        steps.left = _MAX_STEPS
        try:
            fault: ValidationError | None = best_match(validator.iter_errors(arguments))
        except (_TooMuch, RecursionError, Unresolvable):
            return None
        return fault

    return check


def _fits_surely(schema: JsonObject) -> Callable[[JsonObject], bool]:
    """Return what knows of most arguments in no time that they fit a plain schema.

    Of others it says no, and so of all where a schema says more than it knows: the whole check has
    the last word.
    """
    try:
        return SchemaValidator(_strict(schema, 0)).isinstance_python
    except (_TooMuch, SchemaError, RecursionError):
        return lambda _arguments: False


def _strict(schema: Any, depth: int) -> core_schema.CoreSchema:
    """Return a schema that takes nothing which the other would not. Raises _TooMuch without one."""
    if schema is True or schema == {}:
        return core_schema.any_schema()
    if not isinstance(schema, dict) or depth > _MAX_PLAIN_DEPTH:
        raise _TooMuch
    match {key: value for key, value in schema.items() if key not in _SAYS_NOTHING}:
        case {"type": str() as kind, **rest} if not rest and kind in _PLAIN:
            return _PLAIN[kind]
        case {"type": "string", "enum": [*choices], **rest} if not rest and choices:
            return core_schema.literal_schema([each for each in choices if type(each) is str])
        case {"type": "array", "items": items, **rest} if not rest:
            return core_schema.list_schema(_strict(items, depth + 1), strict=True)
        case {"type": "object", **rest} if rest.keys() <= _OF_OBJECTS:
            return _strict_object(rest, depth)
        case {"anyOf": [*kinds], **rest} if not rest and kinds:
            return core_schema.union_schema([_strict(each, depth + 1) for each in kinds])
    raise _TooMuch


def _strict_object(schema: dict[str, Any], depth: int) -> core_schema.CoreSchema:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    others = schema.get("additionalProperties", True)
    if not isinstance(properties, dict) or len(properties) > _MAX_PLAIN_NAMES:
        raise _TooMuch
    if not isinstance(required, list) or not isinstance(others, bool):
        raise _TooMuch
    if not others and not set(required) <= properties.keys():
        raise _TooMuch
    fields = {
        name: core_schema.typed_dict_field(
            _strict(properties.get(name, True), depth + 1), required=name in required
        )
        for name in [*properties, *required]
    }
    behaviour: Literal["allow", "forbid"] = "allow" if others else "forbid"
    return core_schema.typed_dict_schema(fields, strict=True, extra_behavior=behaviour)


class _Steps:
    def __init__(self) -> None:
        self.left = _MAX_STEPS

    def take(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _TooMuch


def _counting(kind: Any, steps: _Steps) -> Any:
    """Return a kind of validator whose every branching step is counted."""

    def counted(keyword: Any) -> Any:
        def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
            steps.take()
            yield from keyword(validator, value, instance, schema) or ()

        return check

    names = ("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "items", "properties",
             "additionalProperties", "dependentSchemas", "contains", "prefixItems")  # fmt: skip
    branching = {name: counted(kind.VALIDATORS[name]) for name in names if name in kind.VALIDATORS}
    careful = {
        "pattern": _pattern,
        "enum": _unless_empty(kind.VALIDATORS["enum"]),
        "patternProperties": _skipped,
        "unevaluatedProperties": _skipped,
        "additionalProperties": _unless_patterns(branching["additionalProperties"]),
        "uniqueItems": _unless_many(kind.VALIDATORS["uniqueItems"]),
    }
    return validators.extend(kind, {**branching, **careful})  # type: ignore[no-untyped-call]


def _unless_patterns(keyword: Any) -> Any:
    """Leave names to the upstream that patterns tell apart: those can take long to match."""

    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if "patternProperties" not in schema:
            yield from keyword(validator, value, instance, schema)

    return check


def _unless_empty(keyword: Any) -> Any:
    """Take a list without any choice, which servers do write, for none at all."""

    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if value:
            yield from keyword(validator, value, instance, schema) or ()

    return check


def _unless_many(keyword: Any) -> Any:
    """Leave to the upstream whether many items are unique, which takes long to tell."""

    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if isinstance(instance, list) and len(instance) <= _MAX_UNIQUE:
            yield from keyword(validator, value, instance, schema) or ()

    return check


def _pattern(_validator: Any, pattern: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and (match := _matcher(str(pattern))) and not match(instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _skipped(*_: Any) -> Iterator[Any]:
    """Leave to the upstream what can take long to tell."""
    return iter(())


def is_match(pattern: str, text: str) -> bool:
    """Whether a text fits the pattern of a schema; where that cannot be read, it does."""
    match = _matcher(pattern)
    return match is None or match(text)


_matchers: dict[str, Callable[[str], bool] | None] = {}


def _matcher(pattern: str) -> Callable[[str], bool] | None:
    """Return what searches for a pattern in linear time; None if it cannot be read so."""
    if pattern not in _matchers:
        if len(_matchers) >= _MAX_COMPILED:
            _matchers.clear()
        _matchers[pattern] = _linear(pattern)
    return _matchers[pattern]


def _linear(pattern: str) -> Callable[[str], bool] | None:
    try:
        schema = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")
        validator = SchemaValidator(schema)
    except SchemaError:
        return None

    def match(text: str) -> bool:
        try:
            validator.validate_python(text)
        except CoreValidationError:
            return False
        return True

    return match


def _is_small(value: Json) -> bool:
    """Whether a value has few parts, so that nobody waits for long while they are looked at."""
    left, waiting = _SHORT_NODES, [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            left -= len(each)
            waiting += each.values()
        elif isinstance(each, list):
            left -= len(each)
            waiting += each
        if left < 0:
            return False
    return True


def _said(fault: ValidationError) -> str:
    """Say what does not fit where. Values may be personal: only what the schema wants is shown."""
    place = _place(fault)
    wanted: Any = fault.validator_value
    held: Any = fault.instance
    if fault.validator == "required":
        missing = next(name for name in wanted if name not in held)
        inner = f"{place}.{missing}" if place else missing
        return f"`{shown(inner)}` is missing."
    if fault.validator == "additionalProperties" and isinstance(fault.schema, dict):
        known = fault.schema.get("properties", {})
        extra = next((name for name in held if name not in known), "")
        inner = f"{place}.{extra}" if place else extra
        return f"`{shown(inner)}` is not a property there."
    rule = shown(f"{fault.validator} {wanted!r}", max_chars=_SHOWN_CHARS)
    return f"`{shown(place or 'arguments')}` does not fit its schema, {rule}."


def _place(fault: ValidationError) -> str:
    place = ""
    for part in fault.absolute_path:
        if isinstance(part, int):
            place += f"[{part}]"
        else:
            place += f".{part}" if place else str(part)
    return place
