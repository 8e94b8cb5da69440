"""What is kept of texts and values, as rows have them."""

import hashlib
import json
from typing import Final

from toolfold.journal.decisions import DecisionEvent
from toolfold.jsontypes import Json

_TEXT_BYTES: Final = 64 * 1024
_NAME_BYTES: Final = 4 * 1024

encode: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, separators=(",", ":")
).encode


def decision_row(decided: DecisionEvent, now: float) -> tuple[object, ...]:
    """Return what is written of a decision beside the run's number."""
    texts = decided.tool, decided.rule, decided.action, decided.by, decided.arguments_sha256
    return (decided.position, *map(name_kept, texts), now)


def own_number(number: int) -> int:
    """Return the key of a row that is about the whole run."""
    return number


def as_json(value: Json) -> str:
    """Return a value as JSON, or that it cannot be."""
    try:
        return encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        return encode(f"This cannot be written as JSON: {error}")


def name_kept(text: str) -> str:
    """Return what is kept of a name."""
    return text_kept(text, _NAME_BYTES)[0]


def text_kept(text: str, max_bytes: int = _TEXT_BYTES) -> tuple[str, int, str | None]:
    """Return what is kept of a text, the size of the whole, and its hash if that is not all."""
    if len(text) <= max_bytes and text.isascii():
        return text, len(text), None
    try:
        encoded = text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can spell
        encoded = text.encode("utf-8", "replace")
        text = encoded.decode()
    if len(encoded) <= max_bytes:
        return text, len(encoded), None
    head = encoded[:max_bytes].decode("utf-8", "ignore")
    return head, len(encoded), hashlib.sha256(encoded).hexdigest()
