"""What scripts and commands give, as JSON has it. Pure."""

import json
from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from toolfold.errors import BadInput

if TYPE_CHECKING:
    from toolfold.catalog.questions import Elicitor


class Terminal(NamedTuple):
    """A person at a terminal, who asks memory with a command of ours."""

    elicitor: "Elicitor | None"
    """Puts questions there; None where nobody can be asked."""


def as_json(verb: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as JSON has them; what is None is left out, and times are texts.

    Raises:
        BadInput: JSON cannot hold one of them.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    try:
        found: dict[str, Any] = json.loads(json.dumps(given, default=_plain))
    except (TypeError, ValueError, OverflowError, OSError, RecursionError) as error:
        raise BadInput(f"{verb} cannot take this: {error}.") from error
    return found


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone().isoformat()  # the daemon may live in another time zone
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes | bytearray | memoryview):
        raise TypeError("it holds bytes where text belongs; decode them first")
    if isinstance(value, Sequence | Set):
        return list(value)
    raise TypeError(
        f"it holds a value of the type {type(value).__name__}, which JSON does not have"
    )
