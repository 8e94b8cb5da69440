"""Find what the user's own patterns describe. Pure.

Python's engine goes back and tries again, and a careless pattern makes it do so for hours. It
cannot be stopped from outside, so what a pattern may cost is counted before it is used: in how many
ways it can match from one place, and how long a match can be. Repeats without a bound are refused.
The bound holds whatever the text is, so the time is in proportion to the length of the text.
"""

import re
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any, Final

from toolfold.errors import ConfigError
from toolfold.privacy.spans import KIND, Span

MAX_PATTERN_CHARS: Final = 1_000
MAX_WAYS: Final = 256
MAX_MATCH_CHARS: Final = 1_000

_ONE_CHARACTER: Final = {
    _constants.LITERAL,
    _constants.NOT_LITERAL,
    _constants.ANY,
    _constants.IN,
}
_PLACES: Final = {_constants.AT}
_REPEATS: Final = {
    _constants.MAX_REPEAT,
    _constants.MIN_REPEAT,
    _constants.POSSESSIVE_REPEAT,
}


class CustomDetector:
    """One pattern of the user's; what it matches is of one kind."""

    def __init__(self, kind: str, pattern: str) -> None:
        """Take a pattern.

        Raises:
            ConfigError: The kind or the pattern cannot be used, or could take too long.
        """
        if not KIND.fullmatch(kind):
            raise ConfigError(
                f"The kind {kind!r} cannot be used: write capitals, digits and _, such as STAFF_ID."
            )
        self.kinds = (kind,)
        self._kind = kind
        self._pattern = _checked(kind, pattern)

    def find(self, text: str) -> list[Span]:
        """Return every match that is not empty."""
        return [
            Span(self._kind, *match.span()) for match in self._pattern.finditer(text) if match[0]
        ]


def _checked(kind: str, pattern: str) -> re.Pattern[str]:
    if len(pattern) > MAX_PATTERN_CHARS:
        raise _refused(kind, f"it is longer than {MAX_PATTERN_CHARS:,} characters")
    try:
        parsed = _parser.parse(pattern)
        ways, length = _cost(kind, parsed)
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise _refused(kind, f"it is not a regular expression ({error})") from error
    if ways > MAX_WAYS:
        raise _refused(
            kind,
            f"it can match in more than {MAX_WAYS:,} ways from one place; narrow the repeats, or "
            "make them possessive (`{1,20}+`)",
        )
    if length > MAX_MATCH_CHARS:
        raise _refused(
            kind, f"it can match {length:,} characters, and {MAX_MATCH_CHARS:,} are allowed"
        )
    return compiled


def _cost(kind: str, parsed: Any) -> tuple[int, int]:
    """Return in how many ways a pattern can match from one place, and how long at most."""
    ways, length = 1, 0
    for operation, argument in parsed:
        more_ways, more_length = _cost_of(kind, operation, argument)
        ways *= more_ways
        length += more_length
    return ways, length


def _cost_of(kind: str, operation: Any, argument: Any) -> tuple[int, int]:
    if operation in _ONE_CHARACTER:
        return 1, 1
    if operation in _PLACES:
        return 1, 0
    if operation in _REPEATS:
        return _cost_of_repeat(kind, operation, argument)
    if operation is _constants.SUBPATTERN:
        return _cost(kind, argument[-1])
    if operation is _constants.ATOMIC_GROUP:
        return _cost(kind, argument)
    if operation is _constants.BRANCH:
        branches = [_cost(kind, branch) for branch in argument[1]]
        return sum(ways for ways, _ in branches), max(length for _, length in branches)
    if operation in (_constants.ASSERT, _constants.ASSERT_NOT):
        ways, _ = _cost(kind, argument[1])
        return ways, 0
    raise _refused(kind, "it refers to an earlier group, which can take any time")


def _cost_of_repeat(kind: str, operation: Any, argument: Any) -> tuple[int, int]:
    least, most, body = argument
    if most > MAX_MATCH_CHARS:
        raise _refused(kind, r"it repeats without a bound; write `\d{1,20}` in place of `\d+`")
    ways, length = _cost(kind, body)
    if operation is _constants.POSSESSIVE_REPEAT:
        # There is no going back over it: the ways of each turn are tried once, not with all others.
        return most * ways if ways > 1 else 1, length * most
    return _ways_of_turns(ways, least, most), length * most


def _ways_of_turns(ways: int, least: int, most: int) -> int:
    """Return in how many ways a repeat can match, or a number above what is allowed."""
    if ways == 1:
        return int(most - least) + 1
    total = 0
    for turns in range(least, most + 1):
        total += ways ** min(turns, MAX_WAYS.bit_length())
        if total > MAX_WAYS:
            break
    return total


def _refused(kind: str, why: str) -> ConfigError:
    return ConfigError(f"The pattern for {kind} cannot be used: {why}.")
