"""Moments as users name them. Nothing heavy is imported."""

import re
from datetime import datetime
from typing import Final

from toolfold.entrypoints.terminal import local_time, local_zone
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
        midnight = local_time(now).replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight.timestamp() - _DAYS[text] * _DAY_S
    try:
        named = datetime.fromisoformat(text)
        return (named if named.tzinfo else named.replace(tzinfo=local_zone())).timestamp()
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            "--since takes a date such as 2026-11-01, today, yesterday, or how long ago: 12h, 7d, "
            f"2w; not {text!r}."
        ) from error
