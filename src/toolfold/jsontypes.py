"""The values that cross every border."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

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
