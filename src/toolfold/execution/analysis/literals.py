"""Compare what is written out in a call, dicts in lists and all, with the tool's schema.

The type checker does not look into them: it would refuse the same rows built in a variable.
"""

import ast
from collections.abc import Iterator
from difflib import get_close_matches

from toolfold.catalog.binding import merged
from toolfold.jsontypes import Json, JsonObject

_ALTERNATIVES = ("anyOf", "oneOf", "not", "if", "patternProperties", "discriminator")
_MAX_DEPTH = 16


def mismatches(value: ast.expr, schema: Json, root: JsonObject, *, path: str) -> Iterator[str]:
    """Yield what certainly does not fit, each as a sentence that begins with its path.

    Only what lies inside of a dict or list is looked at; the value itself is the checker's.
    """
    yield from _inside(value, schema, root, path, _MAX_DEPTH)


def _inside(value: ast.expr, schema: Json, root: JsonObject, path: str, room: int) -> Iterator[str]:
    whole = merged(schema, root)
    if not isinstance(whole, dict) or not room or any(word in whole for word in _ALTERNATIVES):
        return
    match value:
        case ast.Dict(keys=keys, values=values) if "object" in _kinds(whole):
            if all(isinstance(key, ast.Constant) and isinstance(key.value, str) for key in keys):
                named = {
                    str(ast.literal_eval(key)): each
                    for key, each in zip(keys, values, strict=True)
                    if key
                }
                yield from _object(named, whole, root, path, room - 1)
        case ast.List(elts=items) | ast.Tuple(elts=items) if "array" in _kinds(whole):
            for index, item in enumerate(items):
                inner = whole.get("items", True)
                yield from _part(item, inner, root, f"{path}[{index}]", room - 1)


def _object(
    named: dict[str, ast.expr], whole: JsonObject, root: JsonObject, path: str, room: int
) -> Iterator[str]:
    found = whole.get("properties")
    properties = found if isinstance(found, dict) else {}
    required = whole.get("required")
    missing = [key for key in required if key not in named] if isinstance(required, list) else []
    if missing:
        yield f"{path} needs {', '.join(repr(key) for key in missing)}."
    for key, value in named.items():
        if key in properties:
            yield from _part(value, properties[key], root, f"{path}[{key!r}]", room)
        elif whole.get("additionalProperties") is False:
            near = get_close_matches(key, properties, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" It has: {', '.join(properties)}."
            yield f"{path} has no key {key!r}.{hint}"


def _part(value: ast.expr, schema: Json, root: JsonObject, path: str, room: int) -> Iterator[str]:
    yield from _inside(value, schema, root, path, room)
    whole = merged(schema, root)
    if not isinstance(whole, dict) or any(word in whole for word in _ALTERNATIVES):
        return
    allowed, kinds, given = whole.get("enum"), _kinds(whole), _kinds_of(value)
    if given and kinds and kinds.isdisjoint(given):
        yield f"{path} takes {' or '.join(sorted(kinds))}, not {ast.unparse(value)[:60]}."
    elif (
        isinstance(value, ast.Constant) and isinstance(allowed, list) and value.value not in allowed
    ):
        choices = ", ".join(map(repr, allowed[:20]))
        yield f"{path} takes one of {choices}, not {value.value!r}."


def _kinds(whole: JsonObject) -> set[str]:
    kind = whole.get("type", "object" if "properties" in whole else None)
    kinds = kind if isinstance(kind, list) else [kind]
    return {each for each in kinds if isinstance(each, str)}


def _kinds_of(value: ast.expr) -> set[str]:
    """Return the kinds of JSON that a literal can stand for; none if it is no literal."""
    match value:
        case ast.Constant(value=None):
            return {"null"}
        case ast.Constant(value=bool()):
            return {"boolean"}
        case ast.Constant(value=int() | float()):
            return {"integer", "number"}
        case ast.Constant(value=str()) | ast.JoinedStr():
            return {"string"}
        case ast.List() | ast.Tuple() | ast.ListComp():
            return {"array"}
        case ast.Dict() | ast.DictComp():
            return {"object"}
        case _:
            return set()
