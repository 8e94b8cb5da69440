"""The table of events."""

from typing import Final

STEP: Final[tuple[str, ...]] = ()
