"""What one machine knows of notes, and how the knowledge of several becomes one. Pure.

Every version of a note is kept, so merging is putting versions together: the latest counts, the
others are its history. What has no versions (whether a note is deleted, its links) has the time of
its last change, and the later one counts. In whichever order machines meet, all end up the same.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple, TypeAlias

from toolfold.memory.models import Event, LinkKind, Note
from toolfold.memory.transfer.records import note_json

StateName: TypeAlias = Literal["live", "deleted", "archived"]


class KeptNote(NamedTuple):
    """A note as it is in the store of this machine."""

    number: int
    versions: tuple[Note, ...]
    """Oldest first; the last is how it is now."""

    is_archived: bool = False

    @property
    def state(self) -> StateName:
        """Whether it is deleted, and how."""
        if self.versions[-1].deleted is None:
            return "live"
        return "archived" if self.is_archived else "deleted"


class Stage(NamedTuple):
    """One version of a note, and when it was made."""

    at: float
    """Later than the version before it, even if the clock was set back."""

    id: str
    note: Note


class State(NamedTuple):
    """Whether a note is deleted, and since when that is so."""

    at: float
    name: StateName


class LinkKey(NamedTuple):
    """Where a link leads, and what it says."""

    kind: LinkKind
    hash: str


class LinkState(NamedTuple):
    """Whether a link is there, and since when that is so."""

    at: float
    is_there: bool


_UNHEARD: Final = LinkState(-math.inf, False)


@dataclass(slots=True)
class Entry:
    """All that is known of one note."""

    stages: dict[str, Stage]
    state: State
    links: dict[LinkKey, LinkState] = field(default_factory=dict)
    numbers: tuple[int, ...] = ()
    """Of the notes in this machine's store that it is; no other machine is told."""

    @property
    def chain(self) -> list[Stage]:
        """Its versions, oldest first."""
        return sorted(self.stages.values(), key=lambda stage: stage[:2])

    @property
    def present(self) -> Stage:
        """How it is now."""
        return max(self.stages.values(), key=lambda stage: stage[:2])


@dataclass(slots=True)
class SyncJournal:
    """All that is known of the notes of a namespace."""

    entries: list[Entry] = field(default_factory=list)
    purged: set[str] = field(default_factory=set)
    """The ids of versions that were erased for good."""

    events: dict[str, Event] = field(default_factory=dict)

    def by_stage(self) -> dict[str, Entry]:
        """Return the entries by the ids of all their versions."""
        return {name: entry for entry in self.entries for name in entry.stages}


def stage_note(note: Note) -> Note:
    """Return what is versioned of a note."""
    plain = {"version": 1, "deleted": None, "until": None, "superseded_by": None}
    return replace(note, links=(), namespace="", **plain)  # type: ignore[arg-type]


def stage_id(note: Note) -> str:
    """Return what tells a version from all others, on every machine."""
    value = note_json(note) | {"version": 1}
    encoded = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(encoded.encode("utf-8", "surrogatepass")).hexdigest()


def scan(
    notes: Iterable[KeptNote],
    known: Sequence[SyncJournal],
    *,
    erased: Iterable[int] = (),
    now: float,
) -> SyncJournal:
    """Return what a store holds; what differs from all that was `known` has changed just now.

    Of what was known last, `erased` are the notes that were purged since.
    """
    indexes = [journal.by_stage() for journal in known]
    found = SyncJournal()
    for kept in notes:
        ids = [stage_id(note) for note in kept.versions]
        entries = [index[each] for index in indexes for each in ids if each in index]
        before = {id(entry): entry for entry in entries}
        found.entries.append(_entry(kept, ids, list(before.values()), now))
    here = found.by_stage().keys()
    gone = set(erased)
    for journal in known:
        found.purged |= journal.purged
        for entry in journal.entries:
            if entry.numbers and gone.issuperset(entry.numbers):
                found.purged |= entry.stages.keys() - here
    return found


def _entry(kept: KeptNote, ids: Sequence[str], before: Sequence[Entry], now: float) -> Entry:
    stages: dict[str, Stage] = {}
    last = -math.inf
    for name, note in zip(ids, kept.versions, strict=True):
        known = [entry.stages[name].at for entry in before if name in entry.stages]
        last = _after(last, max(known, default=note.updated))
        stages[name] = Stage(last, name, stage_note(note))
    return Entry(
        stages, _state(kept, before, now), _links(kept, before, now), numbers=(kept.number,)
    )


def _after(earlier: float, wanted: float) -> float:
    """Return a moment that is later than another, and the wanted one if that is."""
    return wanted if wanted > earlier else math.nextafter(earlier, math.inf)


def _state(kept: KeptNote, before: Sequence[Entry], now: float) -> State:
    present = kept.versions[-1]
    if same := [entry.state for entry in before if entry.state.name == kept.state]:
        return max(same)
    natural = present.updated if present.deleted is None else present.deleted
    if not before:
        return State(natural, kept.state)
    changed = now if present.deleted is None else present.deleted
    return State(_after(max(entry.state.at for entry in before), changed), kept.state)


def _links(kept: KeptNote, before: Sequence[Entry], now: float) -> dict[LinkKey, LinkState]:
    here = {LinkKey(link.kind, link.hash) for link in kept.versions[-1].links}
    found = {}
    for key in here.union(*(entry.links for entry in before)):
        known = [entry.links.get(key, _UNHEARD) for entry in before]
        is_there = key in here
        if same := [each for each in known if each.is_there == is_there]:
            found[key] = max(same)
        elif known:
            found[key] = LinkState(_after(max(each.at for each in known), now), is_there)
        else:
            found[key] = LinkState(kept.versions[-1].updated, is_there)
    return {key: state for key, state in found.items() if state.at > -math.inf}


def merge(journals: Sequence[SyncJournal]) -> SyncJournal:
    """Return what is known when all that several know is put together."""
    merged = SyncJournal()
    for journal in journals:
        merged.purged |= journal.purged
        merged.events = journal.events | merged.events
    entries = _united(
        [entry for journal in journals for entry in journal.entries], lambda entry: entry.stages
    )
    for entry in entries:
        entry.stages = {
            name: each for name, each in entry.stages.items() if name not in merged.purged
        }
    entries = [entry for entry in entries if entry.stages]
    while True:  # two notes that say exactly the same are one
        united = _united(entries, lambda entry: [entry.present.note.hash])
        if len(united) == len(entries):
            break
        entries = united
    merged.entries = sorted(entries, key=lambda entry: entry.chain[0][:2])
    _follow(merged.entries)
    return merged


def _united(entries: Sequence[Entry], keys: Callable[[Entry], Iterable[str]]) -> list[Entry]:
    """Return the entries, those with a key in common as one."""
    parents = list(range(len(entries)))

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = place = parents[parents[place]]
        return place

    first: dict[str, int] = {}
    for place, entry in enumerate(entries):
        for key in keys(entry):
            parents[root(place)] = root(first.setdefault(key, place))
    groups: dict[int, Entry] = {}
    for place, entry in enumerate(entries):
        top = root(place)
        groups[top] = _together(groups[top], entry) if top in groups else _together(entry)
    return list(groups.values())


def _together(*entries: Entry) -> Entry:
    stages: dict[str, Stage] = {}
    links: dict[LinkKey, LinkState] = {}
    for entry in entries:
        for name, stage in entry.stages.items():
            stages[name] = max(stage, stages.get(name, stage), key=lambda each: each.at)
        for key, link in entry.links.items():
            links[key] = max(link, links.get(key, link))
    numbers = {number for entry in entries for number in entry.numbers}
    state = max(entry.state for entry in entries)
    return Entry(stages, state, links, tuple(sorted(numbers)))


def _follow(entries: Sequence[Entry]) -> None:
    """Have links lead to what the notes that they mean say now."""
    present: dict[str, str] = {}
    for entry in entries:
        name = entry.present.note.hash
        for stage in entry.stages.values():
            known = present.get(stage.note.hash, name)
            present[stage.note.hash] = min(name, known)
    present |= {entry.present.note.hash: entry.present.note.hash for entry in entries}
    for entry in entries:
        links: dict[LinkKey, LinkState] = {}
        for key, state in entry.links.items():
            target = key._replace(hash=present.get(key.hash, key.hash))
            if target.hash != entry.present.note.hash:
                links[target] = max(state, links.get(target, state))
        entry.links = links


def conflicts(mine: SyncJournal, theirs: SyncJournal, merged: SyncJournal) -> Iterator[Entry]:
    """Give the notes that were changed on both sides; one version counts, the other is kept."""
    here, there = mine.by_stage(), theirs.by_stage()
    for entry in merged.entries:
        ours = {here[name].present.id for name in entry.stages if name in here}
        others = {there[name].present.id for name in entry.stages if name in there}
        if ours and others and ours.isdisjoint(there) and others.isdisjoint(here):
            yield entry


class NoteSight(NamedTuple):
    """How a note of a store was when it was read."""

    ids: tuple[str, ...]
    """Of its versions."""

    state: StateName
    links: frozenset[LinkKey]


def sight_of(kept: KeptNote) -> NoteSight:
    """Return how a note is."""
    links = frozenset(LinkKey(link.kind, link.hash) for link in kept.versions[-1].links)
    return NoteSight(tuple(map(stage_id, kept.versions)), kept.state, links)


class NoteRewrite(NamedTuple):
    """What is to be done to notes of a store that are one."""

    seen: Mapping[int, NoteSight]
    """The notes, as they were when it was planned."""

    entry: Entry | None
    """What they become; None if they are purged."""


def plan(kept: Iterable[KeptNote], merged: SyncJournal) -> Iterator[NoteRewrite]:
    """Give what is to be done to a store so that it holds what was merged."""
    groups: dict[int, dict[int, NoteSight]] = {}
    deleted: dict[int, float | None] = {}
    index = merged.by_stage()
    for note in kept:
        sight = sight_of(note)
        deleted[note.number] = note.versions[-1].deleted
        entry = next((index[each] for each in sight.ids if each in index), None)
        if entry is not None:
            groups.setdefault(id(entry), {})[note.number] = sight
        elif merged.purged.issuperset(sight.ids):
            yield NoteRewrite({note.number: sight}, None)
    for entry in merged.entries:
        seen = groups.get(id(entry), {})
        wanted = _sight(entry), None if entry.state.name == "live" else entry.state.at
        if [(sight, deleted[number]) for number, sight in seen.items()] != [wanted]:
            yield NoteRewrite(seen, entry)


def _sight(entry: Entry) -> NoteSight:
    links = frozenset(key for key, state in entry.links.items() if state.is_there)
    return NoteSight(tuple(stage.id for stage in entry.chain), entry.state.name, links)
