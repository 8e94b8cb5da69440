"""The values that cross every border."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
JsonObject: TypeAlias = dict[str, Json]

# What we only read: covariant, so that narrower containers fit.
ReadOnlyJson: TypeAlias = (
    "None | bool | int | float | str | Sequence[ReadOnlyJson] | Mapping[str, ReadOnlyJson]"
)
