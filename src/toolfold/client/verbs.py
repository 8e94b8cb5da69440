"""The verbs of memory as methods of `Client`. Made by `scripts/write_verbs.py`: do not edit."""

from collections.abc import Mapping, Sequence

from toolfold.client.connection import RestConnection
from toolfold.jsontypes import Json, JsonObject, typed
from toolfold.memory.consolidation.models import (
    Consolidated,
    PastConsolidation,
    StrategyName,
    Undone,
)
from toolfold.memory.documents.models import Ingested
from toolfold.memory.graph.models import Entity, GraphPath, GraphSearchResult, Neighbors
from toolfold.memory.inputs import Moment, Tags
from toolfold.memory.models import (
    AuditReport,
    CompactEvents,
    CompactSearchResult,
    Event,
    Note,
    TagMatch,
)


class VerbMethods:
    """Verbs of memory over REST."""

    _door: RestConnection

    def store(
        self,
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
        return typed(
            str,
            self._door.ask(
                "POST",
                "memory",
                "notes",
                body={
                    "content": content,
                    "tags": tags,
                    "memory_type": memory_type,
                    "metadata": metadata,
                    "source": source,
                    "thread": thread,
                    "position": position,
                    "quality": quality,
                    "created": created,
                    "supersedes": supersedes,
                    "associated": associated,
                },
                may_repeat=True,
            )["hash"],
        )

    def search(
        self,
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
        return typed(
            CompactSearchResult,
            self._door.ask(
                "GET",
                "memory",
                "search",
                query={
                    "query": query,
                    "limit": limit,
                    "tags": tags,
                    "tag_match": tag_match,
                    "memory_type": memory_type,
                    "after": after,
                    "before": before,
                    "min_score": min_score,
                    "explain": explain,
                },
                may_repeat=True,
            ),
        )

    def recall(
        self,
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
        return typed(
            CompactSearchResult,
            self._door.ask(
                "GET",
                "memory",
                "recall",
                query={
                    "query": query,
                    "limit": limit,
                    "tags": tags,
                    "k": k,
                    "tag_match": tag_match,
                    "memory_type": memory_type,
                    "min_score": min_score,
                    "explain": explain,
                },
                may_repeat=True,
            ),
        )

    def get(self, hash: str) -> Note:
        """Return a whole note by its hash, or by a hash it had before an update.

        Archived notes are returned too; `restore` makes them searchable again.
        """
        return typed(Note, self._door.ask("GET", "memory", "notes", hash, may_repeat=True))

    def history(self, hash: str, limit: int = 20) -> tuple[Note, ...]:
        """Return the versions of a note, oldest first; the last one is current.

        Notes that it supersedes come before it: each was valid from `created` to `until`.
        Purged versions are left out.
        """
        return typed(
            tuple[Note, ...],
            self._door.ask(
                "GET", "memory", "notes", hash, "history", query={"limit": limit}, may_repeat=True
            )["versions"],
        )

    def supersede(self, hash: str, by: str) -> bool:
        """Mark a note as outdated by another one; return whether it was current.

        Both are kept. Search prefers the current one; questions about the past find the other.
        """
        return typed(
            bool,
            self._door.ask(
                "POST", "memory", "notes", hash, "supersede", body={"by": by}, may_repeat=False
            )["superseded"],
        )

    def reinstate(self, hash: str) -> bool:
        """Mark a superseded note as current again; return whether it was superseded.

        The same note does not supersede it automatically again.
        """
        return typed(
            bool,
            self._door.ask("POST", "memory", "notes", hash, "reinstate", body={}, may_repeat=False)[
                "reinstated"
            ],
        )

    def update(
        self,
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
        return typed(
            str,
            self._door.ask(
                "PATCH",
                "memory",
                "notes",
                hash,
                body={
                    "content": content,
                    "tags": tags,
                    "memory_type": memory_type,
                    "metadata": metadata,
                    "source": source,
                    "quality": quality,
                },
                may_repeat=False,
            )["hash"],
        )

    def delete(self, hash: str) -> bool:
        """Delete a note; `restore` brings it back. Return whether it existed."""
        return typed(
            bool, self._door.ask("DELETE", "memory", "notes", hash, may_repeat=False)["deleted"]
        )

    def restore(self, hash: str) -> bool:
        """Restore a deleted note; return whether there was one."""
        return typed(
            bool,
            self._door.ask("POST", "memory", "notes", hash, "restore", body={}, may_repeat=False)[
                "restored"
            ],
        )

    def record_event(
        self,
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
        return typed(
            str,
            self._door.ask(
                "POST",
                "events",
                body={
                    "event_type": event_type,
                    "content": content,
                    "outcome": outcome,
                    "duration_ms": duration_ms,
                    "session_id": session_id,
                    "metadata": metadata,
                },
                may_repeat=False,
            )["id"],
        )

    def recall_events(
        self,
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
        return typed(
            CompactEvents,
            self._door.ask(
                "GET",
                "events",
                query={
                    "session_id": session_id,
                    "event_type": event_type,
                    "since": since,
                    "until": until,
                    "limit": limit,
                },
                may_repeat=True,
            ),
        )

    def get_event(self, id: str) -> Event:
        """Return a whole event by its id."""
        return typed(Event, self._door.ask("GET", "events", id, may_repeat=True))

    def consolidate(
        self,
        strategy: StrategyName = "balanced",
        days_back: float | None = None,
        dry_run: bool = False,
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
        return typed(
            Consolidated,
            self._door.ask(
                "POST",
                "consolidation",
                body={"strategy": strategy, "days_back": days_back, "dry_run": dry_run},
                may_repeat=False,
            ),
        )

    def undo(self, id: str) -> Undone:
        """Reverse a whole consolidation, by default the last, and return what was restored.

        Notes, versions, tags and links become exactly what they were. A note that was changed
        since stays as it is, and is named.
        """
        return typed(
            Undone, self._door.ask("POST", "consolidation", id, "undo", body={}, may_repeat=False)
        )

    def consolidations(self, limit: int = 20) -> tuple[PastConsolidation, ...]:
        """List past consolidations, newest first."""
        return typed(
            tuple[PastConsolidation, ...],
            self._door.ask("GET", "consolidation", query={"limit": limit}, may_repeat=True)[
                "consolidations"
            ],
        )

    def ingest(
        self,
        path: str,
        tags: Tags | None = None,
        *,
        pattern: str | None = None,
        recursive: bool = True,
    ) -> Ingested:
        """Store the text of a file, or of all files in a folder: PDF, DOCX, HTML, Markdown, text.

        CSV and JSON are read too. Unchanged files are skipped; of changed ones, only the
        differences are written. A file that cannot be read is named with the reason, and the
        others are stored.

        In a folder, files with the extensions of documents are read, or those that match
        `pattern` ("*.rst", "guide/*.md"). Hidden files, links, and folders such as node_modules
        are skipped.
        """
        return typed(
            Ingested,
            self._door.ask(
                "POST",
                "documents",
                body={"path": path, "tags": tags, "pattern": pattern, "recursive": recursive},
                may_repeat=True,
            ),
        )

    def forget_document(self, path: str) -> int:
        """Delete the notes of a document, or of all in a folder; return how many were deleted.

        The files stay, and need not exist any more. Notes are deleted as `delete` does.
        """
        return typed(
            int,
            self._door.ask("DELETE", "documents", query={"path": path}, may_repeat=False)[
                "forgotten"
            ],
        )

    def create_relations(self, relations: Sequence[Mapping[str, Json]]) -> JsonObject:
        """Create relations: `[{"from": "Ada", "to": "Acme", "relationType": "works at"}]`.

        Returns `{"relations": […]}` with the new ones.
        """
        return typed(
            JsonObject,
            self._door.ask(
                "POST", "graph", "relations", body={"relations": relations}, may_repeat=True
            ),
        )

    def create_entity(
        self, name: str, entity_type: str, observations: str | Sequence[str] | None = None
    ) -> Entity:
        """Create an entity, or add observations to it, and return it.

        An existing entity of that name gets the observations that it lacks.
        """
        return typed(
            Entity,
            self._door.ask(
                "POST",
                "graph",
                "entities",
                body={"name": name, "entity_type": entity_type, "observations": observations},
                may_repeat=True,
            ),
        )

    def search_graph(self, query: str, limit: int = 10) -> GraphSearchResult:
        """Return the entities that match a query, best first; `total` counts all.

        Words in names count most, then in types, then in observations; rare words count more than
        common ones, and other forms of a word match. Scores are from 0 to 1.
        """
        return typed(
            GraphSearchResult,
            self._door.ask(
                "GET", "graph", "search", query={"query": query, "limit": limit}, may_repeat=True
            ),
        )

    def neighbors(self, name: str, depth: int = 1, limit: int = 50) -> Neighbors:
        """Return entities at most `depth` relations away from an entity, nearest first.

        Relations count in both directions. Each neighbour says by which relation it was reached.
        """
        return typed(
            Neighbors,
            self._door.ask(
                "GET",
                "graph",
                "neighbors",
                query={"name": name, "depth": depth, "limit": limit},
                may_repeat=True,
            ),
        )

    def shortest_path(self, source: str, target: str) -> GraphPath:
        """Return the shortest path between two entities.

        Relations count in both directions. Without a connection the path is empty.
        """
        return typed(
            GraphPath,
            self._door.ask(
                "GET", "graph", "path", query={"source": source, "target": target}, may_repeat=True
            ),
        )

    def audit(
        self, kinds: str | Sequence[str] = (), limit: int = 20, *, apply: str | Sequence[str] = ()
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
        return typed(
            AuditReport,
            self._door.ask(
                "POST",
                "memory",
                "audit",
                body={"kinds": kinds, "limit": limit, "apply": apply},
                may_repeat=False,
            ),
        )
