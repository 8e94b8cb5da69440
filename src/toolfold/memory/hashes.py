"""The names of notes: hashes of what they say and where they stand."""

import hashlib
import string
from typing import Final

from toolfold.errors import BadInput

SHOWN_CHARS: Final = 8
"""How much of a hash is shown; whoever is shown it can use it as a name."""

MIN_PREFIX_CHARS: Final = 4
HASH_CHARS: Final = 64


def note_hash(content: str, *, thread: str | None = None, position: int | None = None) -> str:
    """Return the name of a note: the same in every store and every namespace.

    It is the SHA-256 of the content. A part of a conversation or document is named by its place as
    well: "Thanks!" may be said twice in a conversation, and each time stands beside other words.
    """
    # No part can hold a NUL, so two different notes never hash the same text.
    placed = content if thread is None else f"{content}\0{thread}\0{position}"
    return hashlib.sha256(placed.encode()).hexdigest()


def check_prefix(prefix: object) -> str:
    """Return the beginning of a hash as it is looked up.

    Raises:
        BadInput: No hash can begin that way, or too many might.
    """
    if not isinstance(prefix, str):
        raise BadInput(f"The hash of a note is text, not {type(prefix).__name__}: {prefix!r}.")
    cleaned = prefix.strip().lower()
    if not set(cleaned) <= set(string.hexdigits) or len(cleaned) > HASH_CHARS:
        raise BadInput(
            f"{_shortened(prefix)!r} is not the hash of a note. Hashes are hexadecimal, such as "
            "1a2b3c4d; search returns them."
        )
    if len(cleaned) < MIN_PREFIX_CHARS:
        raise BadInput(
            f"{prefix!r} is too short for a hash: give at least its first {MIN_PREFIX_CHARS} "
            f"characters, better {SHOWN_CHARS}."
        )
    return cleaned


def shown(full: str) -> str:
    """Return what people and models are shown of a hash."""
    return full[:SHOWN_CHARS]


def _shortened(text: str) -> str:
    return text if len(text) <= HASH_CHARS else f"{text[:HASH_CHARS]}…"
