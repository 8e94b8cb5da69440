"""What is wrong with a file of settings or servers, and does not stop the rest of it."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFault:
    """Something in a file, or in the environment when `source` is None, was not taken."""

    source: Path | None
    reason: str

    def __str__(self) -> str:
        """One line for a person: where, then what."""
        return f"{self.source or 'environment'}: {self.reason}"
