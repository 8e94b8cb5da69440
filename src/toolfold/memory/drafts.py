"""Values as people and models give them into drafts and changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Final

from toolfold.errors import BadInput
from toolfold.jsontypes import Json
from toolfold.memory.hashes import note_hash
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
from toolfold.memory.models import DEFAULT_TYPE, Draft, Link, LinkKind
from toolfold.memory.ranking.rank import estimated_quality
from toolfold.memory.store import NoteChange


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
        raise BadInput(f"{len(notes):,} notes at once are too many: {MAX_BATCH:,} are the most.")
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
