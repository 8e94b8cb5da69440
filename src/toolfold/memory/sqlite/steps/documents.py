"""The tables of ingested documents."""

from typing import Final

STEP: Final[tuple[str, ...]] = ()
