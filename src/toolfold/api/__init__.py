"""Memory for scripts: plain functions, typed, which have done what they say when they return.

    from toolfold import api

    note = api.store("Staging runs on port 5433", tags=["db"])
    for memory in api.search("which port is postgres on").memories:
        print(memory.hash, memory.preview)

Notes belong to the project around the current directory, as for agents that work there; the
variable `TOOLFOLD_MEMORY_NAMESPACE` names another place. Tags are one text or a list. Times are
datetimes, ISO 8601 or seconds since 1970; `after` includes that moment, `before` does not. Wherever
a hash is taken, so is its beginning.

Everything is done by the daemon, which is started if it does not run. With `TOOLFOLD_NO_DAEMON=1`,
or where none can be started, this process opens the store itself. Any thread may call, a process
may fork, and it does not matter whether an event loop is running.

Every function raises `BadInput` for a value that cannot be used, having changed nothing, `NotFound`
where a note is not there, and `StoreError` when memory does not answer. All are in
`toolfold.errors`.
"""

from typing import TYPE_CHECKING, Any

from toolfold.api import verbs
from toolfold.api.verbs import *  # noqa: F403  # made from the table of verbs

# Scripts start often, and most only search.
if TYPE_CHECKING:
    from toolfold.api.kinds import (
        CompactDocuments,
        CompactEvents,
        CompactHealthInfo,
        CompactMemory,
        CompactSearchResult,
        Consolidated,
        Entity,
        Event,
        ExplainedMemory,
        Exported,
        GraphSearchResult,
        Imported,
        Ingested,
        Note,
        PastConsolidation,
        Undone,
    )

__all__ = [
    "CompactDocuments",
    "CompactEvents",
    "CompactHealthInfo",
    "CompactMemory",
    "CompactSearchResult",
    "Consolidated",
    "Entity",
    "Event",
    "ExplainedMemory",
    "Exported",
    "GraphSearchResult",
    "Imported",
    "Ingested",
    "Note",
    "PastConsolidation",
    "Undone",
    *verbs.__all__,
]


def __getattr__(name: str) -> Any:
    """Return one of the types; few scripts name them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from toolfold.api import kinds

    return getattr(kinds, name)
