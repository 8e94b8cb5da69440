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

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from toolfold.api import forms
from toolfold.api.door import ask, ask_for_pages
from toolfold.jsontypes import Json
from toolfold.memory.models import (
    CompactHealthInfo,
    CompactMemory,
    CompactSearchResult,
    ExplainedMemory,
    Note,
    TagMatch,
)

__all__ = [
    "CompactHealthInfo",
    "CompactMemory",
    "CompactSearchResult",
    "ExplainedMemory",
    "Note",
    "delete",
    "delete_batch",
    "delete_by_tag",
    "forget",
    "get",
    "health",
    "history",
    "list",
    "purge",
    "recall",
    "remember",
    "restore",
    "search",
    "search_batch",
    "search_by_tag",
    "search_iter",
    "store",
    "store_batch",
    "update",
]

_Tags = str | Sequence[str]
_Moment = datetime | float | str


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


def history(hash: str) -> tuple[Note, ...]:
    """Return every version of a note, oldest first; the last is how it is now."""
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
