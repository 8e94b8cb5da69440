"""The values that cross every border."""

from collections.abc import Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

_T = TypeVar("_T")

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = dict[str, Json]

# What we only read: covariant, so that narrower containers fit.
ReadOnlyJson: TypeAlias = (
    "bool | int | float | str | Sequence[ReadOnlyJson] | Mapping[str, ReadOnlyJson] | None"
)


def plain(value: Any) -> Json:
    """Return a value of ours as JSON has it: objects for named tuples, lists for other tuples."""
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None)
        if names is not None:
            return {name: plain(part) for name, part in zip(names, value, strict=True)}
        return [plain(part) for part in value]
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    answer: Json = value
    return answer


def typed(kind: type[_T], value: Any) -> _T:
    """Return JSON as one of our types, of which `plain` has made it."""
    answer: _T = _typed(kind, value)
    return answer


def _typed(kind: Any, value: Any) -> Any:
    origin, parts = get_origin(kind), get_args(kind)
    if value is None or kind is Any:
        return value
    if origin is tuple:
        return tuple(_typed(parts[0], each) for each in value)
    if origin is dict:
        return {name: _typed(parts[1], each) for name, each in value.items()}
    if origin in (Union, UnionType):
        return _typed(_part_for(value, parts), value)
    if hasattr(kind, "_fields") or hasattr(kind, "__dataclass_fields__"):
        hints = _hints(kind)  # a newer server may say more than we know of
        known = {name: each for name, each in value.items() if name in hints}
        return kind(**{name: _typed(hints[name], each) for name, each in known.items()})
    return value


def _part_for(value: Any, parts: tuple[Any, ...]) -> Any:
    """Return the part of a union that a value is of; Any where it is itself already."""
    others = [part for part in parts if part is not type(None)]
    if len(others) == 1:
        return others[0]
    records = [part for part in others if hasattr(part, "_fields")]
    return next((part for part in records if value.keys() == set(part._fields)), Any)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, localns={"Json": Any})
