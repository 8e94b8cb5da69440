"""What may be remembered and asked: every bound, and what is said of values beyond it."""

import json
from collections.abc import Mapping, Sequence, Set
from datetime import datetime, tzinfo
from typing import Final, TypeAlias, get_args

from toolfold.errors import BadInput
from toolfold.jsontypes import Json, JsonObject
from toolfold.memory.models import TagMatch, check_prefix

Moment: TypeAlias = datetime | float | str
"""A time: aware or local, in seconds since 1970, or in ISO 8601."""

Tags: TypeAlias = str | Sequence[str]

MAX_CONTENT_BYTES: Final = 1024 * 1024
MAX_BATCH: Final = 10_000
MAX_QUERIES: Final = 100
MAX_FOUND: Final = 5_000
"""By all queries of a batch together."""

MAX_QUERY_CHARS: Final = 10_000
MAX_LIMIT: Final = 1_000
MAX_TAGS: Final = 100
MAX_TAG_CHARS: Final = 100
MAX_NAME_CHARS: Final = 1_000
"""Of types, sources, threads and namespaces."""

MAX_METADATA_BYTES: Final = 64 * 1024
MAX_METADATA_DEPTH: Final = 50
_MAX_INTEGER: Final = 2**63 - 1
# From the second day of the year 1 to the last but one of 9999: in any zone a date can be shown.
_EARLIEST_S: Final = -62_135_510_400.0
_LATEST_S: Final = 253_402_214_400.0


def clean_content(value: object) -> str:
    """Return what a note says.

    Raises:
        BadInput: It is empty, too long, or no text.
    """
    content = _text(value, "The content of a note")
    if not content.strip():
        raise BadInput("The content of a note is empty: there is nothing to remember.")
    size = len(content.encode())
    if size > MAX_CONTENT_BYTES:
        raise BadInput(
            f"The content has {size:,} bytes, and a note may have {MAX_CONTENT_BYTES:,}. Store it "
            "in parts, with `thread` and `position`, or store what matters of it."
        )
    return content


def clean_said(value: object, what: str) -> str:
    """Return a text that may be empty, and as long as that of a note.

    Raises:
        BadInput: It is too long, or no text.
    """
    text = _text(value, what)
    size = len(text.encode())
    if size > MAX_CONTENT_BYTES:
        raise BadInput(f"{what} has {size:,} bytes, and {MAX_CONTENT_BYTES:,} is the limit.")
    return text


def clean_tags(value: Tags | None) -> tuple[str, ...]:
    """Return tags, each once, in the order given. Commas part tags too; upper case counts.

    Raises:
        BadInput: They are too many, too long, or no texts.
    """
    given = [value] if isinstance(value, str) else _sequence(value or (), "Tags")
    parts = [part.strip() for tag in given for part in _text(tag, "A tag").split(",")]
    tags = tuple(dict.fromkeys(part for part in parts if part))
    if len(tags) > MAX_TAGS:
        raise BadInput(f"{len(tags):,} tags are too many: a note may have {MAX_TAGS}.")
    for tag in tags:
        _check_chars(tag, "A tag", MAX_TAG_CHARS)
    return tags


def clean_name(value: object, what: str) -> str:
    """Return the name of a type, source, thread or namespace.

    Raises:
        BadInput: It is empty, too long, or no text.
    """
    name = _text(value, f"The {what}").strip()
    if not name:
        raise BadInput(f"The {what} is empty. Give it a name, or leave it out.")
    return _check_chars(name, f"The {what}", MAX_NAME_CHARS)


def clean_metadata(value: Mapping[str, Json] | None) -> JsonObject:
    """Return metadata as JSON has it.

    Raises:
        BadInput: It is too large, or nothing that JSON can hold.
    """
    if not isinstance(value, Mapping | None):
        raise BadInput(f"Metadata is a mapping of names to values, not {type(value).__name__}.")
    try:
        encoded = json.dumps(dict(value or {}), allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"Metadata must be JSON, and this is not: {error}.") from error
    encoded = _text(encoded, "Metadata")
    size = len(encoded.encode())
    if size > MAX_METADATA_BYTES:
        raise BadInput(
            f"The metadata takes {size:,} bytes as JSON, and {MAX_METADATA_BYTES:,} is the limit. "
            "Put what is long into the content."
        )
    return _check_depth(encoded)


def _check_depth(encoded: str) -> JsonObject:
    """Return what a JSON object says; it must be one that every door can give back."""
    refusal = BadInput(f"The metadata is nested deeper than {MAX_METADATA_DEPTH} levels.")
    try:
        cleaned: JsonObject = json.loads(encoded)
    except RecursionError as error:
        raise refusal from error
    level: list[JsonObject | list[Json]] = [cleaned]
    for _ in range(MAX_METADATA_DEPTH):
        insides = [each.values() if isinstance(each, dict) else each for each in level]
        level = [part for inside in insides for part in inside if isinstance(part, dict | list)]
        if not level:
            return cleaned
    raise refusal


def clean_query(value: object) -> str:
    """Return what is searched for; nothing but white space is nothing.

    Raises:
        BadInput: It is too long, or no text.
    """
    query = _text(value, "A query", is_binary=True).strip()
    return _check_chars(query, "A query", MAX_QUERY_CHARS)


def check_queries(queries: object, limit: int) -> Sequence[str]:
    """Return several queries, each of which may find so many.

    Raises:
        BadInput: They are no list of texts, or ask for too much at once.
    """
    if isinstance(queries, str | bytes) or not isinstance(queries, Sequence):
        raise BadInput("Queries are a list of texts. For a single one there is `search`.")
    if len(queries) > MAX_QUERIES or len(queries) * limit > MAX_FOUND:
        raise BadInput(
            f"{len(queries):,} queries for {limit:,} notes each are too much at once: "
            f"{MAX_QUERIES} queries and {MAX_FOUND:,} notes in all are the limits."
        )
    return queries


def check_limit(value: object, *, what: str = "limit") -> int:
    """Return how many are asked for.

    Raises:
        BadInput: It is no whole number from 0 to `MAX_LIMIT`.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_LIMIT:
        raise BadInput(f"`{what}` is a whole number from 0 to {MAX_LIMIT:,}, not {_shown(value)}.")
    return value


def check_offset(value: object) -> int:
    """Return how many to skip.

    Raises:
        BadInput: It is no whole number, or negative.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_INTEGER:
        raise BadInput(f"`offset` is a whole number from 0 on, not {_shown(value)}.")
    return value


def check_share(value: object, what: str) -> float:
    """Return a number from 0 to 1.

    Raises:
        BadInput: It is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise BadInput(f"`{what}` is a number from 0 to 1, not {_shown(value)}.")
    return float(value)


def check_tag_match(value: object) -> TagMatch:
    """Return how several tags are meant.

    Raises:
        BadInput: It is neither `any` nor `all`.
    """
    for match in get_args(TagMatch):
        if value == match:
            found: TagMatch = match
            return found
    raise BadInput(f"Tags match by 'any' or by 'all', not by {_shown(value)}.")


def check_position(thread: object, position: object) -> tuple[str | None, int | None]:
    """Return where in a conversation or document a note stands; None, None for nowhere.

    Raises:
        BadInput: Only one of the two is given, or one is of the wrong kind.
    """
    if thread is None and position is None:
        return None, None
    if thread is None or position is None:
        raise BadInput("`thread` and `position` go together: give both, or neither.")
    if isinstance(position, bool) or not isinstance(position, int) or abs(position) > _MAX_INTEGER:
        raise BadInput(f"`position` is a whole number, not {_shown(position)}.")
    return clean_name(thread, "thread"), position


def check_moment(value: Moment | None, what: str, zone: tzinfo | None = None) -> float | None:
    """Return a time in seconds since 1970; one that names no zone is of `zone`, or the system's.

    Raises:
        BadInput: It is no time, or none that a calendar has.
    """
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
        if isinstance(moment, datetime):
            moment = moment.replace(tzinfo=zone) if moment.tzinfo is None else moment
            found = moment.timestamp()
        else:
            found = float(moment)
    except (ValueError, TypeError, OverflowError, OSError) as error:
        raise _no_moment(value, what) from error
    if isinstance(value, bool) or not _EARLIEST_S <= found <= _LATEST_S:
        raise _no_moment(value, what)
    return found


def check_hashes(value: str | Sequence[str]) -> list[str]:
    """Return one or several names of notes as they are looked up.

    Raises:
        BadInput: They are too many, or one cannot be a hash.
    """
    given = [value] if isinstance(value, str) else _sequence(value, "Hashes")
    if len(given) > MAX_BATCH:
        raise BadInput(f"{len(given):,} notes at once are too many: {MAX_BATCH:,} is the limit.")
    return [check_prefix(each) for each in given]


def _text(value: object, what: str, *, is_binary: bool = False) -> str:
    """Return a text that can be written as UTF-8: halves of surrogate pairs are replaced."""
    if not isinstance(value, str):
        hint = " Decode it first." if isinstance(value, bytes | bytearray | memoryview) else ""
        raise BadInput(f"{what} is text, not {type(value).__name__}.{hint}")
    if "\0" in value and not is_binary:
        raise BadInput(f"{what} holds NUL characters, so it is binary. Give text instead.")
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def _sequence(value: object, what: str) -> Sequence[object]:
    if isinstance(value, bytes | str) or not isinstance(value, Sequence | Set):
        raise BadInput(f"{what} are a text or a list of texts, not {type(value).__name__}.")
    return list(value)


def _check_chars(text: str, what: str, most: int) -> str:
    if len(text) > most:
        raise BadInput(f"{what} has {len(text):,} characters, and {most:,} is the limit.")
    return text


def _no_moment(value: object, what: str) -> BadInput:
    return BadInput(
        f"`{what}` is a time such as '2026-05-03' or '2026-05-03T10:00+02:00', not {_shown(value)}."
    )


def _shown(value: object) -> str:
    return repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}…"
