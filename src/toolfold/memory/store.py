"""The Store protocols: what keeps notes and events, whichever database it is.

Every method is asynchronous and may be called by any number of tasks at once. A store answers from
worker threads or the network, so nothing here blocks the event loop. Whatever a method has returned
from is kept: it survives the death of the process and of the machine.

Hashes that are taken are beginnings of hashes, of at least four characters; those that are returned
are whole. Namespaces do not see each other in any way, not even in scores.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

import anyio

from toolfold.jsontypes import JsonObject
from toolfold.memory.models import Draft, Event, Note, TagMatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which notes come into question. What is not said does not matter."""

    tags: tuple[str, ...] = ()
    tag_match: TagMatch = "any"
    type: str | None = None
    after: float | None = None
    """Created at that time or later."""

    before: float | None = None
    """Created earlier."""


EVERYTHING = Filter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What notes are matched with, and which come into question."""

    text: str
    vector: Callable[[], Sequence[float]] | None
    """Makes that of the text, by the embedder that the store has adopted. It takes its time, and is
    called in a worker thread, if at all."""

    wanted: Filter = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteChange:
    """What is different in a note from now on. None leaves it as it is."""

    content: str | None = None
    tags: tuple[str, ...] | None = None
    type: str | None = None
    metadata: JsonObject | None = None
    """Its keys are set one by one; one that is None goes."""

    source: str | None = None
    quality: float | None = None


Scored: TypeAlias = tuple[int, float]
"""The key of a note, and how well it matches in one respect."""


class Superseded(NamedTuple):
    """That a note held until another one took its place, which is not deleted."""

    by: int
    """The key of the note that took its place."""

    hash: str
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """What was found, in each respect for itself; see `ranking` for how they become one list."""

    lists: Mapping[str, Sequence[Scored]]
    """By respect, best first: `words` and `words_nearby`, `meaning` and `meaning_nearby`. Nearby
    counts the parts before and after in the same conversation or document."""

    created: Mapping[int, float]
    """Of every note in the lists."""

    quality: Mapping[int, float]
    total: int
    """How many notes match in any respect."""

    superseded: Mapping[int, Superseded] = field(default_factory=dict)
    """Those in the lists that another note supersedes."""


class NoteListing(NamedTuple):
    """Notes in order, and how many there are beyond."""

    notes: Sequence[Note]
    total: int


class Updated(NamedTuple):
    """A note after a change, and its key."""

    key: int
    note: Note


class Unembedded(NamedTuple):
    """A note whose vector is not there yet."""

    key: int
    hash: str
    content: str


class Embedded(NamedTuple):
    """The vector of a note: a blob, as `embedding.quantize` makes it."""

    key: int
    hash: str
    vector: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How much there is."""

    notes: int
    """In the namespace, without those that are deleted."""

    unembedded: int
    """In all namespaces."""

    is_warm: bool
    """Whether what search by meaning needs is in memory."""


class Store(Protocol):
    """Keeps notes and finds them again.

    Every method raises `StoreError` when the database does not answer or does not take a write;
    nothing has changed then. Those that take hashes raise `NotFound` for one that could mean
    several notes, naming them.
    """

    @property
    def backend(self) -> str:
        """Which database it is, in one word."""

    async def add(self, namespace: str, drafts: Sequence[Draft], *, now: float) -> list[int]:
        """Keep notes, all or none, and return their keys; each is found by its words at once.

        One that is there already stays as it is, and gets the tags and links that it lacks. One
        that was deleted comes back as the draft says, and one that was superseded holds again, if
        the draft is later. Notes that a draft supersedes stay, and no longer hold.

        Raises:
            NotFound: A link leads nowhere.
        """

    async def get(self, namespace: str, hash_prefix: str) -> Note:
        """Return a note by its hash, or by one that an earlier version of it had.

        One that a consolidation archived is returned as well, though nothing else finds it.

        Raises:
            NotFound: There is none, or it is deleted.
        """

    async def load(self, namespace: str, keys: Sequence[int]) -> dict[int, Note]:
        """Return the notes behind keys from `search` or `keys`, without those deleted since."""

    async def history(self, namespace: str, hash_prefix: str) -> list[Note]:
        """Return all versions of a note, oldest first; the last is how it is now.

        Raises:
            NotFound: There is none.
        """

    async def update(
        self, namespace: str, hash_prefix: str, change: NoteChange, *, now: float
    ) -> Updated:
        """Change a note and return it; how it was is kept as a version. No change, no version.

        Raises:
            NotFound: There is none.
            BadInput: Another note has exactly this content already.
        """

    async def supersede(self, namespace: str, older: str, newer: str, *, is_found: bool) -> bool:
        """Have one note take the place of another; tell whether it did.

        It does not where it has already, or another one has; nor, if `is_found`, where somebody had
        the older one hold again.

        Raises:
            NotFound: One of them is not there.
            BadInput: It would take its own place.
        """

    async def reinstate(self, namespace: str, hash_prefix: str) -> bool:
        """Have a note hold that was superseded; tell whether it was.

        Raises:
            NotFound: There is none.
        """

    async def delete(self, namespace: str, hash_prefixes: Sequence[str], *, now: float) -> int:
        """Delete notes so that they can be restored; return how many were there to delete."""

    async def delete_matching(self, namespace: str, wanted: Filter, *, now: float) -> int:
        """Delete all notes that pass a filter, as `delete` does."""

    async def restore(self, namespace: str, hash_prefixes: Sequence[str], *, now: float) -> int:
        """Bring deleted notes back; return how many were deleted."""

    async def purge(self, namespace: str, hash_prefixes: Sequence[str], *, now: float) -> int:
        """Erase notes with all their versions, deleted or not; return how many there were.

        Nothing of them is left in the files of the database, nor in memory.
        """

    async def newest(
        self, namespace: str, wanted: Filter, *, limit: int, offset: int = 0
    ) -> NoteListing:
        """Return notes that pass a filter, those created last first; `total` counts all."""

    async def keys(self, namespace: str, wanted: Filter) -> list[int]:
        """Return the keys of all notes that pass a filter, those created last first."""

    async def search(self, namespace: str, query: Query, *, depth: int) -> Matches:
        """Return what matches, at most `depth` in a list.

        Without a vector, and until those of the notes are in memory, it goes by words alone.
        """

    async def find(
        self,
        namespace: str,
        query: Query,
        choose: Callable[[Matches], Sequence[int]],
        *,
        depth: int,
    ) -> dict[int, Note]:
        """Return the notes whose keys `choose` picks from what `search` returns, all at one moment.

        It is called in a worker thread; if more than once, the last time counts.
        """

    async def warm(self, namespace: str) -> None:
        """Bring into memory what search by meaning needs; search asks for it by itself."""

    def warm_soon(self, namespace: str) -> None:
        """Have `warm` done in the background."""

    async def counts(self, namespace: str) -> Counts:
        """Count."""

    async def tags(self, namespace: str, *, limit: int) -> dict[str, int]:
        """Return the tags that most notes have, and how many those are, the most used first."""

    async def adopt(self, embedder: str, dimensions: int) -> None:
        """Note which embedder the vectors are from; those of another one are dropped.

        Their notes are `unembedded` then, and found by words until they have new ones.
        """

    async def unembedded(self) -> list[int]:
        """Return the keys of all notes that have no vector, in any namespace, oldest first."""

    async def texts(self, keys: Sequence[int]) -> list[Unembedded]:
        """Return what is to be embedded, of those among these notes that have no vector yet."""

    async def embed(self, embedder: str, vectors: Sequence[Embedded]) -> None:
        """Keep vectors; those of notes that say something else by now are dropped.

        Raises:
            StoreError: The vectors in the store are from another embedder by now.
        """


@asynccontextmanager
async def in_background(task: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run `task` for the length of this context, and cancel it then.

    What the body raises leaves as it is. A task group alone would wrap it, and nobody who waits for
    a `StoreError` would see one.
    """
    raised: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(task)
        try:
            yield
        except Exception as error:  # noqa: BLE001  # it is raised again below
            raised = error
        tasks.cancel_scope.cancel()
    if raised is not None:
        raise raised


# The EventStore protocol: what keeps events, whichever database it is.
#
# Whatever a method has returned from is kept: it survives the death of the process and of the
# machine. Namespaces do not see each other's events.


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events come into question. What is not said does not matter."""

    session_id: str | None = None
    type: str | None = None
    since: float | None = None
    """At that time or later."""

    until: float | None = None
    """Earlier."""


class EventListing(NamedTuple):
    """Events in order, and how many there are beyond."""

    events: Sequence[Event]
    total: int


class EventStore(Protocol):
    """Keeps events. It has no way to change or to delete one.

    Every method raises `StoreError` when the database does not answer or does not take a write;
    nothing has changed then.
    """

    async def record(self, namespace: str, events: Sequence[Event]) -> int:
        """Keep events, all or none; return how many. One whose id is known is left as it was."""

    async def get_event(self, namespace: str, id: str) -> Event:
        """Return an event.

        Raises:
            NotFound: There is none of that id.
        """

    async def latest(
        self, namespace: str, wanted: EventFilter, *, limit: int, offset: int = 0
    ) -> EventListing:
        """Return events that pass a filter, newest first, of one moment the last recorded first."""
