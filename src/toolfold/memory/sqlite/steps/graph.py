"""The tables of the knowledge graph."""

from typing import Final

STEP: Final[tuple[str, ...]] = ()
