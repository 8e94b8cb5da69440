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


def shown(text: str, *, max_chars: int = 200) -> str:
    """Make text from a file safe to show: it may be long, and nobody may have read it before.

    What could steer a terminal is escaped, and the text is cut.
    """
    cut = text[: max_chars + 1]
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)
    return safe if len(safe) <= max_chars else f"{safe[:max_chars]}…"
