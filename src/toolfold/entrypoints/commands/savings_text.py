"""Savings as lines for a terminal. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from toolfold.entrypoints.terminal import local_time
from toolfold.errors import count, shown
from toolfold.journal.ledger import Sums, ToolUse

_BAR: Final = 30
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_MAX_LINES: Final = 50
_NAME_CHARS: Final = 40


def overview(total: Sums, *, since: float, cut: int) -> Iterator[str]:
    """Say what passed, and what would have."""
    day = local_time(since).strftime("%Y-%m-%d")
    runs, calls = count(total.runs, "run"), count(total.calls, "call")
    yield f"{runs} with {calls} of tools since {day}, in tokens (o200k):"
    yield ""
    most = max(total.passed, total.deferred, total.loaded)
    for title, tokens in (
        ("passed through the model", total.passed),
        ("by direct calls, definitions deferred", total.deferred),
        ("by direct calls, all definitions loaded", total.loaded),
    ):
        saved = "" if tokens == total.passed else f"  {_share(total.passed, tokens)}"
        yield f"{title:<39} {tokens:>13,}  {bar(tokens, most):<{_BAR}}{saved}".rstrip()
    yield ""
    yield "Claude Code defers definitions, so the second line is what it would have had to read."
    if cut:
        yield f"{count(cut, 'text')} was cut when recorded, so the real numbers are higher."


def sums_table(groups: Mapping[str, Sums], title: str) -> Iterator[str]:
    """Give a line to each group, the last ones."""
    yield f"{title:<18} {'calls':>7} {'passed':>11} {'deferred':>12} {'loaded':>12}  saved"
    most = max((each.saved for each in groups.values()), default=0)
    for name, each in list(groups.items())[-_MAX_LINES:]:
        yield (
            f"{name:<18} {each.calls:>7,} {each.passed:>11,} {each.deferred:>12,} "
            f"{each.loaded:>12,}  {bar(each.saved, most)} {each.saved:,}"
        )
    yield from _left_out(len(groups))


def use_table(found: Mapping[str, ToolUse], title: str) -> Iterator[str]:
    """Give a line to each tool or server, those with the most tokens first."""
    yield f"{title:<{_NAME_CHARS}} {'calls':>7}  tokens of calls and answers, kept from the model"
    most = max((use.tokens for use in found.values()), default=0)
    for name, use in list(found.items())[:_MAX_LINES]:
        said = shown(name, max_chars=_NAME_CHARS)
        yield f"{said:<{_NAME_CHARS}} {use.calls:>7,}  {bar(use.tokens, most)} {use.tokens:,}"
    yield from _left_out(len(found))


def money(dollars: float, price: float, users: int) -> Iterator[str]:
    """Say what that comes to."""
    who = f" for {users:,} users who work like this" if users > 1 else ""
    at = f"At ${price:,.2f} for a million tokens"
    if dollars < 0:
        yield f"{at}, it cost ${-dollars:,.2f} more than direct calls would have{who}."
    else:
        yield f"{at}, ${dollars:,.2f} were saved{who}."


def bar(value: int, most: int) -> str:
    """Return a bar that is as long as its share of the most."""
    if value <= 0 or most <= 0:
        return ""
    whole, eighths = divmod(round(value * _BAR * 8 / most), 8)
    return ("█" * whole + _EIGHTHS[eighths].strip()) or "▏"


def _share(passed: int, instead: int) -> str:
    if instead <= 0:
        return ""
    share = 1 - passed / instead
    return f"{share:.1%} saved" if share >= 0 else f"{-share:.1%} more passed"


def _left_out(lines: int) -> Iterator[str]:
    if lines > _MAX_LINES:
        yield f"... and {lines - _MAX_LINES:,} more; --json has all."
