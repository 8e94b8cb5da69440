"""The tables of consolidations."""

from typing import Final

STEP: Final[tuple[str, ...]] = ()
