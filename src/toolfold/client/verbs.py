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
        """Remember something, and return the first 8 characters of its hash.

        It is kept when this returns, and found by words from then on; by meaning a moment later.
        Exactly the same content again is the same note: it gets the tags that it lacks, and the
        same hash comes back.

        `thread` and `position` say where in a conversation or document it stands; what is beside it
        there helps to find it. `quality`, from 0 to 1, is estimated if not given. Notes that it
        `supersedes` no longer hold: they are found, and say so. A short note that plainly says
        something else than an earlier one of the same thing supersedes it unasked; `reinstate`
        reverses that.
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
        """Return the notes that match a query best, best first; `total` counts all that match.

        A note matches if it or what is beside it has a word of the query or is near in meaning.
        Filters are exact. Scores are from 0 to 1. An empty query lists what passes the filters,
        newest first. With `explain` every note says why it ranks where it does.
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
        """Do as `search` does, and honour time in words: "what did we decide last week about auth".

        Where the query names a time, only notes from then are found, and those that held then and
        are superseded since; the result's query says which time was understood. If nothing else it
        says fits any of them, they are listed, newest first. `k` is another name for `limit`.
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
        """Return a whole note by its hash, or by one that it had before it was updated.

        One that is archived is returned too; `restore` has it found again.
        """
        return typed(Note, self._door.ask("GET", "memory", "notes", hash, may_repeat=True))

    def history(self, hash: str, limit: int = 20) -> tuple[Note, ...]:
        """Return the last versions of a note, oldest first; the last is how it is now.

        Notes that it supersedes come before it, with theirs: each held from `created` to `until`.
        What was purged is left out.
        """
        return typed(
            tuple[Note, ...],
            self._door.ask(
                "GET", "memory", "notes", hash, "history", query={"limit": limit}, may_repeat=True
            )["versions"],
        )

    def supersede(self, hash: str, by: str) -> bool:
        """Say that a note no longer holds, since another one says how it is; tell whether it did.

        Both are kept. Search prefers what holds, and finds the other when asked about then.
        """
        return typed(
            bool,
            self._door.ask(
                "POST", "memory", "notes", hash, "supersede", body={"by": by}, may_repeat=False
            )["superseded"],
        )

    def reinstate(self, hash: str) -> bool:
        """Say that a note holds after all which another one superseded; tell whether one did.

        It is not found to be superseded by the same one again.
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
        """Change what is given of a note, and return its hash; other content has another hash.

        How it was is kept: `history` shows it, and the old hash still leads here. Tags replace all
        that there were. Keys of metadata are set one by one; one that is None goes.
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
        """Delete a note so that `restore` can bring it back; tell whether it was there."""
        return typed(
            bool, self._door.ask("DELETE", "memory", "notes", hash, may_repeat=False)["deleted"]
        )

    def restore(self, hash: str) -> bool:
        """Bring a deleted note back as it was; tell whether there was one."""
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
        """Write down that something happened just now, and return the id of the event.

        `event_type` is what it was in a word or two, such as "deploy" or "test run"; `content` says
        more, `outcome` how it ended, such as "success" or "failure". It is kept when this returns,
        and can neither be changed nor deleted.
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
        """Return what happened, newest first; `total` counts all that pass the filters.

        `since` and `until` are times as in `search`, the first included and the second not, or
        words such as "yesterday", "last week", "3 days ago", of which the whole is included.
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
        """Tidy up notes, and return what was found and done.

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
        """Reverse one consolidation whole, by default the last, and say what came back.

        All notes, versions, tags and links are then exactly as before it. A note that somebody has
        changed since stays as it is, and is named.
        """
        return typed(
            Undone, self._door.ask("POST", "consolidation", id, "undo", body={}, may_repeat=False)
        )

    def consolidations(self, limit: int = 20) -> tuple[PastConsolidation, ...]:
        """Return the consolidations of the past, the last first."""
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
        """Remember what a file says, or all files of a folder: PDF, DOCX, HTML, Markdown, and text.

        CSV and JSON are read too. Files that have not changed since cost nothing; of those that
        have, only what is different is written. One that cannot be read is named with its reason,
        and the others go on.

        Of a folder, files are taken whose names are those of documents, or that match `pattern`
        ("*.rst", "guide/*.md"). Hidden files, links, and folders such as node_modules are passed
        over.
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
        """Forget a document, or all of a folder, there still or not; return how many notes went.

        The files stay. Notes are deleted as `delete` does.
        """
        return typed(
            int,
            self._door.ask("DELETE", "documents", query={"path": path}, may_repeat=False)[
                "forgotten"
            ],
        )

    def create_relations(self, relations: Sequence[Mapping[str, Json]]) -> JsonObject:
        """Relate entities: `[{"from": "Ada", "to": "Acme", "relationType": "works at"}]`.

        Returns `{"relations": […]}` with those that are new.
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
        """Make an entity, and return it as it is then.

        If one of that name is there, it gets the observations that it lacks.
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
        """Return the entities that have words of a query, best first; `total` counts all.

        Words in names count most, then in types, then in observations; rare ones more than common
        ones, and other forms of a word like the word. Scores are from 0 to 1.
        """
        return typed(
            GraphSearchResult,
            self._door.ask(
                "GET", "graph", "search", query={"query": query, "limit": limit}, may_repeat=True
            ),
        )

    def neighbors(self, name: str, depth: int = 1, limit: int = 50) -> Neighbors:
        """Return what is at most `depth` relations away from an entity, nearest first.

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
        """Return the path between two entities, by as few relations as possible.

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
        """Look through all notes for what is wrong, and return it with evidence and a proposal.

        Kinds are `duplicate` and `near_duplicate`, `contradiction`, `stale` (past its time),
        `secret` (secrets and personal data), `injection` (instructions to whoever reads it),
        `unused` (never found by a search, though there for long) and `junk`; all, if none is given.
        `limit` findings of each are listed, `counts` counts all. Notes with the tag `important` or
        `pinned` are left out.

        Nothing is changed, unless `apply` names findings by their ids: then only that is done.
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
