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

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolfold.api import forms
from toolfold.api.door import absolute, ask, ask_for_pages

# Scripts start often, and most only search.
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime
    from os import PathLike
    from typing import Literal

    from toolfold.api.door import OnProgress
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
    from toolfold.jsontypes import Json
    from toolfold.memory.models import TagMatch
    from toolfold.memory.transfer.models import Format

    _Tags = str | Sequence[str]
    _Moment = datetime | float | str

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
    "consolidate",
    "consolidations",
    "create_entity",
    "delete",
    "delete_batch",
    "delete_by_tag",
    "documents",
    "export_file",
    "forget",
    "forget_document",
    "get",
    "get_event",
    "health",
    "history",
    "import_file",
    "ingest",
    "list",
    "purge",
    "recall",
    "recall_events",
    "record_event",
    "remember",
    "restore",
    "search",
    "search_batch",
    "search_by_tag",
    "search_graph",
    "search_iter",
    "store",
    "store_batch",
    "undo",
    "update",
]


def __getattr__(name: str) -> Any:
    """Return one of the types; few scripts name them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from toolfold.api import kinds

    return getattr(kinds, name)


def store(
    content: str,
    tags: _Tags | None = None,
    memory_type: str = "note",
    *,
    metadata: Mapping[str, Json] | None = None,
    source: str = "",
    thread: str | None = None,
    position: int | None = None,
    quality: float | None = None,
    created: _Moment | None = None,
    supersedes: str | Sequence[str] = (),
    associated: str | Sequence[str] = (),
) -> str:
    """Remember something, and return the first 8 characters of its hash.

    Exactly the same content again is the same note, and gets the tags that it lacks. `thread` and
    `position` say where in a conversation or document it stands. Notes that it `supersedes` are
    deleted, and can be restored.
    """
    return forms.text(ask("memory.store", locals(), may_repeat=True))


def store_batch(notes: Sequence[str | Mapping[str, Json]]) -> tuple[str, ...]:
    """Remember all of several notes or none, and return their hashes in the same order.

    Each is a text, or a mapping with the parameters of `store`.
    """
    return forms.texts(ask("memory.store_batch", locals(), may_repeat=True))


def remember(
    content: str,
    memory_type: str = "note",
    tags: _Tags | None = None,
    importance: float | None = None,
) -> str:
    """Do as `store` does; `importance` is the quality."""
    return forms.text(ask("memory.remember", locals(), may_repeat=True))


def search(
    query: str,
    limit: int = 5,
    tags: _Tags | None = None,
    *,
    tag_match: TagMatch = "any",
    memory_type: str | None = None,
    after: _Moment | None = None,
    before: _Moment | None = None,
    min_score: float = 0.0,
    explain: bool = False,
) -> CompactSearchResult:
    """Return the notes that match a query best, best first; `total` counts all that match.

    An empty query lists what passes the filters, newest first. With `explain` every note says why
    it ranks where it does.
    """
    return forms.found(ask("memory.search", locals(), may_repeat=True))


def search_batch(
    queries: Sequence[str],
    limit: int = 5,
    tags: _Tags | None = None,
    *,
    tag_match: TagMatch = "any",
    memory_type: str | None = None,
    after: _Moment | None = None,
    before: _Moment | None = None,
    min_score: float = 0.0,
    explain: bool = False,
) -> tuple[CompactSearchResult, ...]:
    """Do as `search` does for each of several queries; return the results in the same order."""
    return forms.all_found(ask("memory.search_batch", locals(), may_repeat=True))


def search_by_tag(
    tags: _Tags,
    match: TagMatch = "any",
    limit: int = 20,
    *,
    memory_type: str | None = None,
    after: _Moment | None = None,
    before: _Moment | None = None,
) -> CompactSearchResult:
    """Return the notes that have any of these tags, or all of them, newest first."""
    return forms.found(ask("memory.search_by_tag", locals(), may_repeat=True))


def search_iter(
    query: str,
    page_size: int = 20,
    tags: _Tags | None = None,
    *,
    tag_match: TagMatch = "any",
    memory_type: str | None = None,
    after: _Moment | None = None,
    before: _Moment | None = None,
    min_score: float = 0.0,
    explain: bool = False,
) -> Iterator[CompactSearchResult]:
    """Give all that `search` would find, page by page, as they are asked for.

    Writing meanwhile neither repeats nor hides anything: the order is that of the first page.
    """
    return map(forms.found, ask_for_pages("memory.search_iter", locals()))


def recall(
    query: str,
    limit: int = 5,
    tags: _Tags | None = None,
    *,
    k: int | None = None,
    tag_match: TagMatch = "any",
    memory_type: str | None = None,
    min_score: float = 0.0,
    explain: bool = False,
) -> CompactSearchResult:
    """Do as `search` does, and honour time in words: "what did we decide last week about auth".

    The result's query says which time was understood. `k` is another name for `limit`.
    """
    return forms.found(ask("memory.recall", locals(), may_repeat=True))


def get(hash: str) -> Note:
    """Return a whole note by its hash, or by one that it had before it was updated."""
    return forms.note(ask("memory.get", locals(), may_repeat=True))


def history(hash: str, limit: int = 20) -> tuple[Note, ...]:
    """Return the last versions of a note, oldest first; the last is how it is now."""
    return forms.notes(ask("memory.history", locals(), may_repeat=True))


def list(
    limit: int = 20,
    offset: int = 0,
    tags: _Tags | None = None,
    *,
    tag_match: TagMatch = "any",
    memory_type: str | None = None,
    after: _Moment | None = None,
    before: _Moment | None = None,
) -> CompactSearchResult:
    """Return notes, newest first; `total` counts all that pass the filters."""
    return forms.found(ask("memory.list", locals(), may_repeat=True))


def update(
    hash: str,
    content: str | None = None,
    *,
    tags: _Tags | None = None,
    memory_type: str | None = None,
    metadata: Mapping[str, Json] | None = None,
    source: str | None = None,
    quality: float | None = None,
) -> str:
    """Change what is given of a note, and return its hash; other content has another hash.

    How it was is kept: `history` shows it, and the old hash still leads here.
    """
    return forms.text(ask("memory.update", locals()))


def delete(hash: str) -> bool:
    """Delete a note so that `restore` can bring it back; tell whether it was there."""
    return bool(ask("memory.delete", locals()))


def forget(memory_id: str) -> bool:
    """Do as `delete` does."""
    return bool(ask("memory.forget", locals()))


def delete_batch(hashes: Sequence[str]) -> int:
    """Delete several notes, and return how many were there."""
    return forms.number(ask("memory.delete_batch", locals()))


def delete_by_tag(tags: _Tags, match: TagMatch = "any") -> int:
    """Delete all notes that have any of these tags, or all of them; return how many."""
    return forms.number(ask("memory.delete_by_tag", locals()))


def restore(hash: str) -> bool:
    """Bring a deleted note back as it was; tell whether there was one."""
    return bool(ask("memory.restore", locals()))


def purge(hashes: str | Sequence[str]) -> int:
    """Erase notes for good, deleted or not, with all their versions; return how many."""
    return forms.number(ask("memory.purge", locals()))


def health() -> CompactHealthInfo:
    """Tell how the memory is."""
    return forms.health(ask("memory.health", {}, may_repeat=True))


def record_event(
    event_type: str,
    content: str = "",
    outcome: str | None = None,
    duration_ms: float | None = None,
    session_id: str | None = None,
    metadata: Mapping[str, Json] | None = None,
) -> str:
    """Write down that something happened just now, and return the id of the event.

    It can neither be changed nor deleted.
    """
    return forms.text(ask("memory.record_event", locals()))


def recall_events(
    session_id: str | None = None,
    event_type: str | None = None,
    since: _Moment | None = None,
    until: _Moment | None = None,
    limit: int = 20,
) -> CompactEvents:
    """Return what happened, newest first; `total` counts all that pass the filters.

    `since` and `until` may be words too: "yesterday", "last week".
    """
    return forms.events(ask("memory.recall_events", locals(), may_repeat=True))


def get_event(id: str) -> Event:
    """Return a whole event by its id."""
    return forms.event(ask("memory.get_event", locals(), may_repeat=True))


def consolidate(
    strategy: Literal["balanced", "speed", "quality", "minimal"] = "balanced",
    days_back: float | None = None,
    dry_run: bool = False,
    *,
    on_progress: OnProgress | None = None,
) -> Consolidated:
    """Make order in the notes, and return what was found and done; `undo` reverses it.

    `minimal` only finds notes that say the same; `speed` leaves out what compares meanings;
    `quality` finds more than `balanced`. With `dry_run` nothing is changed.
    """
    given = {"strategy": strategy, "days_back": days_back, "dry_run": dry_run}
    answer = ask("memory.consolidate", given, on_progress=on_progress)
    return forms.consolidated(answer)


def undo(id: str | None = None) -> Undone:
    """Reverse one consolidation whole, by default the last, and say what came back."""
    return forms.undone(ask("memory.undo", locals()))


def consolidations(limit: int = 20) -> tuple[PastConsolidation, ...]:
    """Return the consolidations of the past, the last first."""
    answer = ask("memory.consolidations", locals(), may_repeat=True)
    return forms.consolidations(answer)


def ingest(
    path: str | PathLike[str],
    tags: _Tags | None = None,
    *,
    pattern: str | None = None,
    recursive: bool = True,
    on_progress: OnProgress | None = None,
) -> Ingested:
    """Remember what a file says, or all files of a folder: PDF, DOCX, HTML, Markdown, and text.

    Files that have not changed cost nothing. One that cannot be read is named with its reason, and
    the others go on.
    """
    given = {"path": absolute(path), "tags": tags, "pattern": pattern, "recursive": recursive}
    answer = ask("memory.ingest", given, may_repeat=True, on_progress=on_progress)
    return forms.ingested(answer)


def documents(limit: int = 20, offset: int = 0) -> CompactDocuments:
    """Return the documents that are remembered, by path; `total` counts all."""
    return forms.documents(ask("memory.documents", locals(), may_repeat=True))


def forget_document(path: str | PathLike[str]) -> int:
    """Forget a document, or all of a folder, there still or not; return how many notes went."""
    return forms.number(ask("memory.forget_document", {"path": absolute(path)}))


def create_entity(
    name: str, entity_type: str, observations: str | Sequence[str] | None = None
) -> Entity:
    """Make an entity of the knowledge graph, and return it as it is then."""
    return forms.entity(ask("memory.create_entity", locals(), may_repeat=True))


def search_graph(query: str, limit: int = 10) -> GraphSearchResult:
    """Return the entities that have words of a query, best first; `total` counts all.

    The rest of the graph is in `toolfold.api.graph`.
    """
    return forms.graph_found(ask("memory.search_graph", locals(), may_repeat=True))


def export_file(path: str | PathLike[str], format: Format = "toolfold") -> Exported:
    """Write all that is remembered into a file, or the graph alone as server-memory has it."""
    given = {"path": absolute(path), "format": format}
    return forms.exported(ask("memory.export_file", given, may_repeat=True))


def import_file(
    path: str | PathLike[str],
    dry_run: bool = False,
    *,
    on_progress: OnProgress | None = None,
) -> Imported:
    """Remember what is in a file: an export of toolfold, or the memory of another program.

    Importing twice is importing once. A line that cannot be used is named, and the others go on.
    """
    given = {"path": absolute(path), "dry_run": dry_run}
    answer = ask("memory.import_file", given, may_repeat=True, on_progress=on_progress)
    return forms.imported(answer)
