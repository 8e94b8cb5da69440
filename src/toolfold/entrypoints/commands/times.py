"""Moments as users name them. Nothing heavy is imported."""

import re
from datetime import UTC, datetime
from typing import Final

from toolfold.errors import ConfigError

_DAY_S: Final = 24 * 3600.0
_SPANS: Final = {"h": 3600.0, "d": _DAY_S, "w": 7 * _DAY_S}
_DAYS: Final = {"today": 0, "yesterday": 1}


def parse_since(text: str, *, now: float) -> float:
    """Return the moment that `--since` names.

    Raises:
        ConfigError: It names none.
    """
    text = text.strip().lower()
    if match := re.fullmatch(r"(\d{1,5})([hdw])", text):
        return now - int(match[1]) * _SPANS[match[2]]
    if text in _DAYS:
        midnight = datetime.fromtimestamp(now, tz=UTC).astimezone().replace(hour=0, minute=0)
        return midnight.replace(second=0, microsecond=0).timestamp() - _DAYS[text] * _DAY_S
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            "--since takes a date such as 2026-11-01, today, yesterday, or how long ago: 12h, 7d, "
            f"2w; not {text!r}."
        ) from error
