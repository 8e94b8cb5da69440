"""Values as people and models give them into drafts and changes, and what they supersede."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Final, NamedTuple

from toolfold.errors import BadInput
from toolfold.jsontypes import Json
from toolfold.memory.inputs import (
    MAX_BATCH,
    Moment,
    Tags,
    check_hashes,
    check_moment,
    check_position,
    check_share,
    clean_content,
    clean_metadata,
    clean_name,
    clean_tags,
)
from toolfold.memory.models import DEFAULT_TYPE, Draft, Link, LinkKind, Note, note_hash
from toolfold.memory.ranking.rank import estimated_quality
from toolfold.memory.statements import Statement, read_statement, supersedes
from toolfold.memory.store import NoteChange, Query, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreInput:
    """What `store` takes, as it was given."""

    content: str
    tags: Tags | None = None
    memory_type: str = DEFAULT_TYPE
    metadata: Mapping[str, Json] | None = None
    source: str = ""
    thread: str | None = None
    position: int | None = None
    quality: float | None = None
    created: Moment | None = None
    supersedes: str | Sequence[str] = ()
    associated: str | Sequence[str] = ()


_FIELDS: Final = frozenset(StoreInput.__slots__)


def make_draft(given: StoreInput, *, now: float, zone: tzinfo | None = None) -> Draft:
    """Return what is to be remembered; times without a zone are of `zone`.

    Raises:
        BadInput: A value cannot be used.
    """
    content = clean_content(given.content)
    thread, position = check_position(given.thread, given.position)
    created = check_moment(given.created, "created", zone)
    return Draft(
        content=content,
        hash=note_hash(content, thread=thread, position=position),
        type=clean_name(given.memory_type, "type"),
        tags=clean_tags(given.tags),
        metadata=clean_metadata(given.metadata),
        source=clean_name(given.source, "source") if given.source else "",
        thread=thread,
        position=position,
        quality=_quality(given.quality, content),
        created=now if created is None else created,
        links=(*_links("supersedes", given.supersedes), *_links("associated", given.associated)),
    )


def make_drafts(notes: object, *, now: float, zone: tzinfo | None = None) -> list[Draft]:
    """Return what is to be remembered, of texts and of mappings with the parameters of `store`.

    Raises:
        BadInput: They are too many, or one of them cannot be used; the message says which.
    """
    if isinstance(notes, str | bytes | Mapping) or not isinstance(notes, Sequence):
        raise BadInput("A batch is a list of notes: each a text, or a mapping with its content.")
    if len(notes) > MAX_BATCH:
        raise BadInput(f"{len(notes):,} notes at once are too many: {MAX_BATCH:,} is the limit.")
    drafts = []
    for place, note in enumerate(notes):
        try:
            drafts.append(make_draft(_given(note), now=now, zone=zone))
        except BadInput as error:
            raise BadInput(f"Note {place} of the batch: {error} Nothing was stored.") from error
    return drafts


def make_change(given: Mapping[str, Any]) -> NoteChange:
    """Return what is to be different in a note; what is None or left out stays as it is.

    Raises:
        BadInput: A value cannot be used.
    """
    content, tags, kind = given.get("content"), given.get("tags"), given.get("memory_type")
    metadata, source, quality = given.get("metadata"), given.get("source"), given.get("quality")
    return NoteChange(
        content=None if content is None else clean_content(content),
        tags=None if tags is None else clean_tags(tags),
        type=None if kind is None else clean_name(kind, "type"),
        metadata=None if metadata is None else clean_metadata(metadata),
        source=None if source is None else clean_name(source, "source"),
        quality=None if quality is None else check_share(quality, "quality"),
    )


def _given(note: object) -> StoreInput:
    if isinstance(note, Mapping):
        if unknown := sorted(map(str, note.keys() - _FIELDS)):
            known = ", ".join(sorted(_FIELDS))
            raise BadInput(f"{unknown[0]!r} is nothing that a note has. It has: {known}.")
        if "content" not in note:
            raise BadInput("The content is missing.")
        return StoreInput(**note)
    return StoreInput(content=note)  # type: ignore[arg-type]  # whatever it is, it is checked as content


def _quality(given: float | None, content: str) -> float:
    return estimated_quality(content) if given is None else check_share(given, "quality")


def _links(kind: LinkKind, hashes: str | Sequence[str]) -> tuple[Link, ...]:
    return tuple(Link(kind=kind, hash=each) for each in check_hashes(hashes))


# Each is a search by words. Whoever stores more at once moves in; `audit` finds what is left.
_MAX_SOUGHT: Final = 100
_CANDIDATES: Final = 100


class _Known(NamedTuple):
    note: Note
    said: Statement


class UpdateFinder:
    """Finds notes of one namespace that no longer hold."""

    def __init__(self, store: Store, namespace: str) -> None:
        self._store = store
        self._namespace = namespace

    async def follow(self, drafts: Iterable[Draft]) -> int:
        """Have notes that were just stored supersede what they plainly update; return how many.

        The later one supersedes, whichever was stored first. What somebody reinstated stays.
        """
        read = ((draft, read_statement(draft.content)) for draft in drafts)
        said = [(draft, each) for draft, each in read if each is not None][:_MAX_SOUGHT]
        return sum([await self._follow(draft, each) for draft, each in said])

    async def _follow(self, draft: Draft, said: Statement) -> int:
        around = await self._alike(said)
        own = next((each for each in around if each.note.hash == draft.hash), None)
        if own is None:
            return 0
        done = 0
        for known in sorted(around, key=lambda each: -each.note.created):
            pair = _in_order(own, known)
            if pair is not None:
                older, newer = pair
                done += await self._store.supersede(
                    self._namespace, older.note.hash, newer.note.hash, is_found=True
                )
        return done

    async def _alike(self, said: Statement) -> Sequence[_Known]:
        """Return notes that can be read and share words of the topic and hold, best match first."""
        words = " ".join(word.replace("_", " ") for word in sorted(said.topic))
        query = Query(text=f"{words} {said.verb}", vector=None)
        found = await self._store.find(
            self._namespace,
            query,
            lambda matches: [key for key, _ in matches.lists.get("words", ())][:_CANDIDATES],
            depth=_CANDIDATES,
        )
        read = ((note, read_statement(note.content)) for note in found.values())
        return [_Known(note, each) for note, each in read if each and note.until is None]


def _in_order(own: _Known, other: _Known) -> tuple[_Known, _Known] | None:
    """Return two notes as older and newer, if the newer supersedes the older."""
    if own.note.hash == other.note.hash:
        return None
    older, newer = (other, own) if other.note.created <= own.note.created else (own, other)
    return (older, newer) if supersedes(newer.said, older.said) else None
