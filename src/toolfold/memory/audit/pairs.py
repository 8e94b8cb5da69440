"""What is wrong with two notes together: they say the same, or cannot both hold. Pure.

Which notes to compare is found by hashing: vectors that are near each other fall on the same side
of most random planes. Each with each would take minutes for 100,000 notes.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from toolfold.memory.consolidation.associations import NoteVectors, Rows, nearness_of
from toolfold.memory.ranking.rank import STOP_WORDS

# Measured with the built-in embedder: the same in other words is 0.95 and more, another subject or
# another thing said of it below 0.88. Only numbers and negations can be nearer than that.
SAME: Final = 0.92
_OPPOSITE: Final = 0.72

_TABLES: Final = 12
_PLANES: Final = 12
_WINDOW: Final = 6
_BLOCK_ROWS: Final = 4_096
_SEED: Final = 27

_WORD: Final = re.compile(r"[^\W_]+(?:[.:'\u2019-][^\W_]+)*")
_NEGATION: Final = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|nor|without|cannot|except|unless)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
_OPPOSITES: Final = tuple(
    frozenset(pair.split("/"))
    for pair in re.findall(
        r"\S+",
        """
        enabled/disabled enable/disable allowed/forbidden allow/forbid allowed/prohibited
        true/false on/off always/never required/optional mandatory/optional public/private
        open/closed supported/unsupported synchronous/asynchronous active/inactive
        online/offline cheap/expensive likes/hates likes/dislikes loves/hates accept/reject
        accepted/rejected approved/rejected approved/denied increase/decrease
        increased/decreased safe/unsafe valid/invalid available/unavailable use/avoid
        before/after success/failure succeeded/failed passed/failed mutable/immutable
        stateful/stateless weekly/daily daily/monthly weekly/monthly hourly/daily tabs/spaces
        minimum/maximum vegetarian/carnivore morning/evening left/right hot/cold
        encrypted/unencrypted internal/external manual/automatic manually/automatically
        compatible/incompatible deprecated/recommended permanent/temporary single/married
        """,
    )
)


class NearPair(NamedTuple):
    """Two rows and how near they are."""

    left: int
    right: int
    nearness: float


def near_pairs(vectors: NoteVectors, *, tick: Callable[[], None]) -> Iterator[NearPair]:
    """Yield pairs of rows that are near enough to be looked at, each once."""
    rows = np.flatnonzero(vectors.scales > 0)
    if len(rows) < 2:
        return
    codes, order = _codes(vectors, rows)
    seen: set[tuple[int, int]] = set()
    for table in range(_TABLES):
        tick()
        place = np.lexsort((order, codes[:, table]))
        for step in range(1, _WINDOW + 1):
            first, second = place[:-step], place[step:]
            is_same = codes[first, table] == codes[second, table]
            yield from _new(vectors, rows[first[is_same]], rows[second[is_same]], seen)


def says_the_same(one: str, other: str, nearness: float) -> bool:
    """Whether two notes that are near each other differ in nothing that counts."""
    if nearness < SAME or len(_NEGATION.findall(one)) != len(_NEGATION.findall(other)):
        return False
    if _numbers(one) != _numbers(other) or _opposed(one, other):
        return False
    words, others = _telling(one), _telling(other)
    shared = len(words & others)
    return bool(shared) and 2 * shared >= min(len(words), len(others)) and _names_agree(one, other)


def contradicts(one: str, other: str, nearness: float) -> str:
    """Return in what two notes that are near each other cannot both hold; empty if they can."""
    if nearness < _OPPOSITE or "?" in one or "?" in other or max(len(one), len(other)) > 300:
        return ""
    words, others = _telling(one), _telling(other)
    if _numbers(one) != _numbers(other) or not _names_agree(one, other):
        return ""
    left, right = words - others, others - words
    is_negated = bool(_NEGATION.search(one)) != bool(_NEGATION.search(other))
    if is_negated and len(left) <= 1 and len(right) <= 1 and len(words & others) > 1:
        return "one contradicts the other"
    opposed = _opposed(one, other)
    if (
        opposed
        and not is_negated
        and len(left) <= 1
        and len(right) <= 1
        and len(words & others) > 1
    ):
        return f"{' against '.join(sorted(opposed))}"
    return ""


def _codes(
    vectors: NoteVectors, rows: Rows
) -> tuple["np.ndarray[tuple[int, int], np.dtype[np.int64]]", Rows]:
    """Return on which side of the planes of each table each row is, and an order among equals."""
    random = np.random.default_rng(_SEED)
    planes = random.standard_normal((vectors.levels.shape[1], _TABLES * _PLANES + 1))
    planes = planes.astype(np.float32)
    sample = rows[:: max(1, len(rows) // 2_000)]
    mean = (vectors.levels[sample] * vectors.scales[sample, np.newaxis]).mean(axis=0)
    offsets = mean.astype(np.float32) @ planes
    codes = np.empty((len(rows), _TABLES), np.int64)
    order = np.empty(len(rows), np.float32)
    powers = 1 << np.arange(_PLANES)
    for start in range(0, len(rows), _BLOCK_ROWS):
        some = rows[start : start + _BLOCK_ROWS]
        values = vectors.levels[some].astype(np.float32) * vectors.scales[some, np.newaxis]
        sides = values @ planes - offsets
        bits = sides[:, :-1].reshape(len(some), _TABLES, _PLANES) > 0
        codes[start : start + len(some)] = bits @ powers
        order[start : start + len(some)] = sides[:, -1]
    return codes, order  # type: ignore[return-value]


def _new(
    vectors: NoteVectors, left: Rows, right: Rows, seen: set[tuple[int, int]]
) -> Iterator[NearPair]:
    near = nearness_of(vectors, left, right)
    for at in np.flatnonzero(near >= _OPPOSITE):
        pair = tuple(sorted((int(left[at]), int(right[at]))))
        if pair not in seen:
            seen.add((pair[0], pair[1]))
            yield NearPair(pair[0], pair[1], float(near[at]))


def _telling(text: str) -> set[str]:
    """Return what a text is about, in words that are written in one way."""
    words = (word.lower() for word in _WORD.findall(_NEGATION.sub(" ", text)))
    return {_stem(word) for word in words if word not in STOP_WORDS}


def _stem(word: str) -> str:
    for ending in ("ations", "ation", "ings", "ing", "ies", "ed", "es", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) > 2:
            return word[: -len(ending)]
    return word


def _numbers(text: str) -> list[str]:
    return sorted(re.findall(r"\d+(?:[.,:]\d+)*", text))


def _opposed(one: str, other: str) -> frozenset[str]:
    words = {word.lower() for word in _WORD.findall(one)}
    others = {word.lower() for word in _WORD.findall(other)}
    left, right = words - others, others - words
    for pair in _OPPOSITES:
        if len(pair & left) == 1 and pair & right == pair - left:
            return pair
    return frozenset()


def _names_agree(one: str, other: str) -> bool:
    """Whether no name of one text is missing in the other."""
    return _names(one) <= _lower(other) and _names(other) <= _lower(one)


def _names(text: str) -> set[str]:
    inside = re.findall(r"(?<![.!?:]) ([A-Z][\w-]*[\w])", text)
    return {_stem(word.lower()) for word in inside if word.lower() not in STOP_WORDS}


def _lower(text: str) -> set[str]:
    return {_stem(word.lower()) for word in re.findall(r"[\w-]*\w", text.replace("'s", " "))}
