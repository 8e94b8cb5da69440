"""How the influence of a note fades with the time that it is not used. Pure.

The influence is the quality, times a share that falls from 1 towards one half:

- For 90 days after it was last used, changed or stored a note keeps all of it. Days are counted up
  to the last time that anything in the namespace was used: a memory that nobody opened for a year
  has not faded, because nobody passed its notes over.
- After that, what is above one half is halved in 180 days; later the better a note is, and the more
  often somebody got it. Using it brings everything back.

The share goes in steps of a twentieth, so that not every note changes with every consolidation. It
is made from the quality, never from an earlier influence, so doing it twice is doing it once.
"""

from typing import Final

from toolfold.memory.consolidation.study import StudiedNote

_DAY_S: Final = 86_400.0
_GRACE_DAYS: Final = 90.0
_HALF_LIFE_DAYS: Final = 180.0
_LEAST_SHARE: Final = 0.5
_STEPS: Final = 20
_GETS_PER_HALF_LIFE: Final = 4

ARCHIVE_AFTER_DAYS: Final = 365.0
ARCHIVE_BELOW_QUALITY: Final = 0.25


def influence(note: StudiedNote, *, latest: float) -> float:
    """Return what the quality of a note should count; `latest` is the last use of any note."""
    faded_days = max(0.0, idle_days(note, latest=latest) - _GRACE_DAYS)
    half_life = _HALF_LIFE_DAYS * (0.5 + note.quality) * (1 + note.gets / _GETS_PER_HALF_LIFE)
    share: float = _LEAST_SHARE + (1 - _LEAST_SHARE) * 0.5 ** (faded_days / half_life)
    return note.quality * (round(share * _STEPS) / _STEPS)


def is_to_archive(note: StudiedNote, *, latest: float) -> bool:
    """Whether a note is poor and was not used for so long that search does without it.

    Poor is what somebody rated so. An estimate will not do: a note that only asks something is
    estimated at nothing, and what it asks may be all that is left of a conversation.
    Parts of a conversation or document are not: what stands beside them leans on them.
    """
    return (
        note.thread is None
        and note.is_rated
        and note.quality < ARCHIVE_BELOW_QUALITY
        and idle_days(note, latest=latest) > ARCHIVE_AFTER_DAYS
    )


def idle_days(note: StudiedNote, *, latest: float) -> float:
    """Return for how many days others were used and a note was not."""
    return max(0.0, latest - note.last_used) / _DAY_S
