"""The verbs of memory, for scripts. Made by `scripts/write_verbs.py`: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolfold.api import forms
from toolfold.api.door import absolute, ask, ask_for_pages

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    from toolfold.api.door import OnProgress
    from toolfold.jsontypes import Json
    from toolfold.memory.consolidation.models import (
        Consolidated,
        PastConsolidation,
        StrategyName,
        Undone,
    )
    from toolfold.memory.documents.models import CompactDocuments, Ingested
    from toolfold.memory.graph.models import Entity, GraphSearchResult
    from toolfold.memory.inputs import Moment, Tags
    from toolfold.memory.models import (
        AuditReport,
        CompactEvents,
        CompactHealthInfo,
        CompactSearchResult,
        Event,
        Note,
        TagMatch,
    )
    from toolfold.memory.sync.models import Synced
    from toolfold.memory.transfer.models import Exported, Format, Imported

__all__ = [
    "audit",
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
    "reinstate",
    "remember",
    "restore",
    "search",
    "search_batch",
    "search_by_tag",
    "search_graph",
    "search_iter",
    "store",
    "store_batch",
    "supersede",
    "sync",
    "undo",
    "update",
]


def store(
    content: str,
    tags: Tags | None = None,
    memory_type: str = "note",
    *,
    metadata: Mapping[str, Json] | None = None,
    source: str = "",
    thread: str | None = None,
    position: int | None = None,
    quality: float | None = None,
    created: Moment | None = None,
    supersedes: str | Sequence[str] = (),
    associated: str | Sequence[str] = (),
) -> str:
    """Remember a note, and return the first 8 characters of its hash.

    The note is on disk when this returns. Search finds it by words at once, by meaning soon.
    Storing the same content again adds missing tags to the existing note and returns its hash.

    `thread` and `position` give its place in a conversation or document; its neighbours there
    help to find it. `quality`, from 0 to 1, is estimated if not given. Notes that it
    `supersedes` are outdated: search marks them so. A short note that plainly contradicts an
    earlier one on the same subject supersedes it automatically; `reinstate` reverses that.
    """
    return forms.text(ask("memory.store", locals(), may_repeat=True))


def store_batch(notes: Sequence[str | Mapping[str, Json]]) -> tuple[str, ...]:
    """Store several notes, all or none, and return their hashes in the same order.

    Each is a text, or a mapping with the parameters of `store`.
    """
    return forms.texts(ask("memory.store_batch", locals(), may_repeat=True))


def remember(
    content: str,
    memory_type: str = "note",
    tags: Tags | None = None,
    importance: float | None = None,
) -> str:
    """Store a note, as `store` does; `importance` is its quality."""
    return forms.text(ask("memory.remember", locals(), may_repeat=True))


def search(
    query: str,
    limit: int = 5,
    tags: Tags | None = None,
    *,
    tag_match: TagMatch = "any",
    memory_type: str | None = None,
    after: Moment | None = None,
    before: Moment | None = None,
    min_score: float = 0.0,
    explain: bool = False,
) -> CompactSearchResult:
    """Return the notes that match a query, best first; `total` counts all matches.

    A note matches if it, or its neighbour in a conversation, shares a word or the meaning.
    Filters are exact. Scores are from 0 to 1. An empty query lists what passes the filters,
    newest first. With `explain` each note carries the reasons for its rank.
    """
    return forms.found(ask("memory.search", locals(), may_repeat=True))


def search_batch(
    queries: Sequence[str],
    limit: int = 5,
    tags: Tags | None = None,
    *,
    tag_match: TagMatch = "any",
    memory_type: str | None = None,
    after: Moment | None = None,
    before: Moment | None = None,
    min_score: float = 0.0,
    explain: bool = False,
) -> tuple[CompactSearchResult, ...]:
    """Search for several queries at once; return the results in the same order."""
    return forms.all_found(ask("memory.search_batch", locals(), may_repeat=True))


def search_by_tag(
    tags: Tags,
    match: TagMatch = "any",
    limit: int = 20,
    *,
    memory_type: str | None = None,
    after: Moment | None = None,
    before: Moment | None = None,
) -> CompactSearchResult:
    """Return the notes that have any of these tags, or all of them, newest first."""
    return forms.found(ask("memory.search_by_tag", locals(), may_repeat=True))


def recall(
    query: str,
    limit: int = 5,
    tags: Tags | None = None,
    *,
    k: int | None = None,
    tag_match: TagMatch = "any",
    memory_type: str | None = None,
    min_score: float = 0.0,
    explain: bool = False,
) -> CompactSearchResult:
    """Search with time in words: "what did we decide last week about auth".

    Where the query names a time, only notes from that time are returned, and those that were
    valid then; the result's query says which time was understood. If the rest of the query
    matches none of them, all are listed, newest first. `k` is another name for `limit`.
    """
    return forms.found(ask("memory.recall", locals(), may_repeat=True))


def search_iter(
    query: str,
    page_size: int = 20,
    tags: Tags | None = None,
    *,
    tag_match: TagMatch = "any",
    memory_type: str | None = None,
    after: Moment | None = None,
    before: Moment | None = None,
    min_score: float = 0.0,
    explain: bool = False,
) -> Iterator[CompactSearchResult]:
    """Return all results of `search`, page by page.

    The order is fixed by the first page, so notes written meanwhile neither repeat nor hide
    results. Notes deleted meanwhile are left out.
    """
    return map(forms.found, ask_for_pages("memory.search_iter", locals()))


def get(hash: str) -> Note:
    """Return a whole note by its hash, or by a hash it had before an update.

    Archived notes are returned too; `restore` makes them searchable again.
    """
    return forms.note(ask("memory.get", locals(), may_repeat=True))


def history(hash: str, limit: int = 20) -> tuple[Note, ...]:
    """Return the versions of a note, oldest first; the last one is current.

    Notes that it supersedes come before it: each was valid from `created` to `until`.
    Purged versions are left out.
    """
    return forms.notes(ask("memory.history", locals(), may_repeat=True))


def supersede(hash: str, by: str) -> bool:
    """Mark a note as outdated by another one; return whether it was current.

    Both are kept. Search prefers the current one; questions about the past find the other.
    """
    return bool(ask("memory.supersede", locals()))


def reinstate(hash: str) -> bool:
    """Mark a superseded note as current again; return whether it was superseded.

    The same note does not supersede it automatically again.
    """
    return bool(ask("memory.reinstate", locals()))


def update(
    hash: str,
    content: str | None = None,
    *,
    tags: Tags | None = None,
    memory_type: str | None = None,
    metadata: Mapping[str, Json] | None = None,
    source: str | None = None,
    quality: float | None = None,
) -> str:
    """Change the given parts of a note, and return its hash; new content has a new hash.

    The previous version is kept: `history` shows it, and its hash still finds the note. Tags
    replace the old ones. Keys of metadata are set one by one; None removes a key.
    """
    return forms.text(ask("memory.update", locals()))


def delete(hash: str) -> bool:
    """Delete a note; `restore` brings it back. Return whether it existed."""
    return bool(ask("memory.delete", locals()))


def forget(memory_id: str) -> bool:
    """Delete a note, as `delete` does."""
    return bool(ask("memory.forget", locals()))


def delete_batch(hashes: Sequence[str]) -> int:
    """Delete several notes, and return how many existed."""
    return forms.number(ask("memory.delete_batch", locals()))


def delete_by_tag(tags: Tags, match: TagMatch = "any") -> int:
    """Delete all notes that have any of these tags, or all of them; return how many."""
    return forms.number(ask("memory.delete_by_tag", locals()))


def restore(hash: str) -> bool:
    """Restore a deleted note; return whether there was one."""
    return bool(ask("memory.restore", locals()))


def purge(hashes: str | Sequence[str]) -> int:
    """Erase notes for good, deleted or not, with all their versions; return how many.

    Nothing of them is left in the files of the store. Copies elsewhere (backups) remain.
    """
    return forms.number(ask("memory.purge", locals()))


def health() -> CompactHealthInfo:
    """Return the state of the memory; problems are in `status`, not raised."""
    return forms.health(ask("memory.health", {}, may_repeat=True))


def list(
    limit: int = 20,
    offset: int = 0,
    tags: Tags | None = None,
    *,
    tag_match: TagMatch = "any",
    memory_type: str | None = None,
    after: Moment | None = None,
    before: Moment | None = None,
) -> CompactSearchResult:
    """List notes, newest first; `total` counts all that pass the filters."""
    return forms.found(ask("memory.list", locals(), may_repeat=True))


def record_event(
    event_type: str,
    content: str = "",
    outcome: str | None = None,
    duration_ms: float | None = None,
    session_id: str | None = None,
    metadata: Mapping[str, Json] | None = None,
) -> str:
    """Record an event that happened now, and return its id.

    `event_type` is a word or two, such as "deploy" or "test run"; `content` has the details,
    `outcome` the result, such as "success" or "failure". The event is on disk when this
    returns, and cannot be changed or deleted.
    """
    return forms.text(ask("memory.record_event", locals()))


def recall_events(
    session_id: str | None = None,
    event_type: str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    limit: int = 20,
) -> CompactEvents:
    """Return events, newest first; `total` counts all that pass the filters.

    `since` (included) and `until` (excluded) are times as in `search`, or words such as
    "yesterday", "last week", "3 days ago", which stand for that whole period.
    """
    answer: CompactEvents = forms.named(
        "toolfold.memory.models",
        "CompactEvents",
        ask("memory.recall_events", locals(), may_repeat=True),
    )
    return answer


def get_event(id: str) -> Event:
    """Return a whole event by its id."""
    answer: Event = forms.named(
        "toolfold.memory.models", "Event", ask("memory.get_event", locals(), may_repeat=True)
    )
    return answer


def consolidate(
    strategy: StrategyName = "balanced",
    days_back: float | None = None,
    dry_run: bool = False,
    *,
    on_progress: OnProgress | None = None,
) -> Consolidated:
    """Tidy up notes: merge, link and archive them; return what was found and done.

    Notes that say the same in the same words become one, which supersedes the others; notes
    near in meaning are linked; the influence of what is old and not used fades; what is poor
    and was not used for a year is archived: `search` does without it, `get` still returns it.
    Patterns say what many notes speak of together, clusters what notes on one subject say.

    Nothing is destroyed: `restore` brings single notes back, `undo` reverses everything. Notes
    with the tag `important` or `pinned` are never touched, and parts of conversations and
    documents are never hidden.

    `minimal` only finds notes that say the same; `speed` leaves out what compares meanings;
    `quality` finds more than `balanced`, also what is less sure. `days_back` looks only at
    notes created in the last so many days. With `dry_run` nothing is changed.
    """
    answer: Consolidated = forms.named(
        "toolfold.memory.consolidation.models",
        "Consolidated",
        ask(
            "memory.consolidate",
            {"strategy": strategy, "days_back": days_back, "dry_run": dry_run},
            on_progress=on_progress,
        ),
    )
    return answer


def undo(id: str | None = None) -> Undone:
    """Reverse a whole consolidation, by default the last, and return what was restored.

    Notes, versions, tags and links become exactly what they were. A note that was changed
    since stays as it is, and is named.
    """
    answer: Undone = forms.named(
        "toolfold.memory.consolidation.models", "Undone", ask("memory.undo", locals())
    )
    return answer


def consolidations(limit: int = 20) -> tuple[PastConsolidation, ...]:
    """List past consolidations, newest first."""
    answer: tuple[PastConsolidation, ...] = forms.all_named(
        "toolfold.memory.consolidation.models",
        "PastConsolidation",
        ask("memory.consolidations", locals(), may_repeat=True),
    )
    return answer


def ingest(
    path: str | PathLike[str],
    tags: Tags | None = None,
    *,
    pattern: str | None = None,
    recursive: bool = True,
    on_progress: OnProgress | None = None,
) -> Ingested:
    """Store the text of a file, or of all files in a folder: PDF, DOCX, HTML, Markdown, text.

    CSV and JSON are read too. Unchanged files are skipped; of changed ones, only the
    differences are written. A file that cannot be read is named with the reason, and the
    others are stored.

    In a folder, files with the extensions of documents are read, or those that match
    `pattern` ("*.rst", "guide/*.md"). Hidden files, links, and folders such as node_modules
    are skipped.
    """
    answer: Ingested = forms.named(
        "toolfold.memory.documents.models",
        "Ingested",
        ask(
            "memory.ingest",
            {"path": absolute(path), "tags": tags, "pattern": pattern, "recursive": recursive},
            may_repeat=True,
            on_progress=on_progress,
        ),
    )
    return answer


def documents(limit: int = 20, offset: int = 0) -> CompactDocuments:
    """List the stored documents by path; `total` counts all."""
    answer: CompactDocuments = forms.named(
        "toolfold.memory.documents.models",
        "CompactDocuments",
        ask("memory.documents", locals(), may_repeat=True),
    )
    return answer


def forget_document(path: str | PathLike[str]) -> int:
    """Delete the notes of a document, or of all in a folder; return how many were deleted.

    The files stay, and need not exist any more. Notes are deleted as `delete` does.
    """
    return forms.number(ask("memory.forget_document", {"path": absolute(path)}))


def create_entity(
    name: str, entity_type: str, observations: str | Sequence[str] | None = None
) -> Entity:
    """Create an entity, or add observations to it, and return it.

    An existing entity of that name gets the observations that it lacks.
    """
    answer: Entity = forms.named(
        "toolfold.memory.graph.models",
        "Entity",
        ask("memory.create_entity", locals(), may_repeat=True),
    )
    return answer


def search_graph(query: str, limit: int = 10) -> GraphSearchResult:
    """Return the entities that match a query, best first; `total` counts all.

    Words in names count most, then in types, then in observations; rare words count more than
    common ones, and other forms of a word match. Scores are from 0 to 1.
    """
    answer: GraphSearchResult = forms.named(
        "toolfold.memory.graph.models",
        "GraphSearchResult",
        ask("memory.search_graph", locals(), may_repeat=True),
    )
    return answer


def export_file(path: str | PathLike[str], format: Format = "toolfold") -> Exported:
    """Write all that is remembered into a file, as lines of JSON.

    "toolfold" is everything, earlier versions and deleted notes included, and the same memory
    always makes the same bytes. "server-memory" is the knowledge graph as that program keeps
    it. A file that is there is replaced when the new one is whole.
    """
    answer: Exported = forms.named(
        "toolfold.memory.transfer.models",
        "Exported",
        ask("memory.export_file", {"path": absolute(path), "format": format}, may_repeat=True),
    )
    return answer


def import_file(
    path: str | PathLike[str], dry_run: bool = False, *, on_progress: OnProgress | None = None
) -> Imported:
    """Remember what is in a file: an export of toolfold, or the memory of another program.

    Which one it is is told by looking: the JSON lines of server-memory, a SQLite database of
    mcp-memory-service, the zip that ChatGPT or Claude exports, or a transcript of Claude Code.
    What is there already stays as it is, so importing twice is importing once. A line that
    cannot be used is named, and the others are taken. With `dry_run` nothing is changed, and
    the result says what would be.
    """
    answer: Imported = forms.named(
        "toolfold.memory.transfer.models",
        "Imported",
        ask(
            "memory.import_file",
            {"path": absolute(path), "dry_run": dry_run},
            may_repeat=True,
            on_progress=on_progress,
        ),
    )
    return answer


def audit(
    kinds: str | Sequence[str] = (),
    limit: int = 20,
    *,
    apply: str | Sequence[str] = (),
    on_progress: OnProgress | None = None,
) -> AuditReport:
    """Check all notes for problems, and return each with evidence and a proposed fix.

    Kinds are `duplicate` and `near_duplicate`, `contradiction`, `stale` (past its time),
    `secret` (secrets and personal data), `injection` (instructions to the reader),
    `unused` (old, and never found by a search) and `junk`; all, if none is given.
    `limit` findings of each are listed, `counts` counts all. Notes with the tag `important` or
    `pinned` are left out.

    Nothing is changed, unless `apply` names findings by their ids: then only those are fixed.
    `undo` reverses what was merged and archived, `reinstate` what was superseded. An archived
    secret is still in the files; `purge` erases it.
    """
    answer: AuditReport = forms.named(
        "toolfold.memory.models",
        "AuditReport",
        ask(
            "memory.audit",
            {"kinds": kinds, "limit": limit, "apply": apply},
            on_progress=on_progress,
        ),
    )
    return answer


def sync(remote: str, key_file: str = "") -> Synced:
    """Share notes with other machines by a folder or a git repository.

    Each machine leaves a file there with all versions of its notes, and takes in those of the
    others. Of a note that was changed on both sides the later version counts, and `history`
    shows the other. What is deleted, restored or purged here is so everywhere. Events are
    shared too; documents, the graph and consolidations are not.

    With `key_file`, which holds at least 32 random bytes and is the same on every machine,
    the files are encrypted.
    """
    answer: Synced = forms.named(
        "toolfold.memory.sync.models", "Synced", ask("memory.sync", locals())
    )
    return answer
