"""Moments: as users name them, and as they are shown. Nothing heavy is imported."""

import re
from datetime import UTC, datetime
from typing import Final

from toolfold.errors import ConfigError

_SPANS: Final = {"h": 3600.0, "d": 24 * 3600.0, "w": 7 * 24 * 3600.0}


def parse_since(text: str, *, now: float) -> float:
    """Return the moment that `--since` names.

    Raises:
        ConfigError: It names none.
    """
    if match := re.fullmatch(r"(\d{1,5})([hdw])", text.strip()):
        return now - int(match[1]) * _SPANS[match[2]]
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"--since takes a date such as 2026-11-01, or how long ago: 12h, 7d, 2w; not {text!r}."
        ) from error


def show_moment(at: float) -> str:
    """Return it in the user's own time zone."""
    return datetime.fromtimestamp(at, tz=UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
