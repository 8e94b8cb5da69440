"""Find notes that say the same, and choose which of them stays. Pure."""

from collections.abc import Sequence

from toolfold.memory.consolidation.store import Merge
from toolfold.memory.consolidation.study import StudiedNote
from toolfold.memory.inputs import MAX_TAGS


def find_merges(notes: Sequence[StudiedNote]) -> list[Merge]:
    """Return which notes supersede which; the best of each kind stays, of equals the newest.

    Parts of a conversation or document are left alone, whatever they say: each stands beside other
    words. So are pinned notes.
    """
    groups: dict[bytes, list[StudiedNote]] = {}
    for note in notes:
        if note.thread is None and not note.is_pinned:
            groups.setdefault(note.sameness, []).append(note)
    merges = [_merge(group) for group in groups.values() if len(group) > 1]
    return [merge for merge in merges if len(merge.tags) <= MAX_TAGS]


def _merge(group: Sequence[StudiedNote]) -> Merge:
    best, *others = sorted(group, key=_worth, reverse=True)
    others.sort(key=lambda note: note.key)
    tags = dict.fromkeys(tag for note in (best, *others) for tag in note.tags)
    return Merge(best.key, tuple(note.key for note in others), tuple(tags))


def _worth(note: StudiedNote) -> tuple[float, int, float, str]:
    return note.quality, note.gets, note.created, note.seen.hash
