"""A skill, what is wrong with one, and what is kept of each."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple

from toolfold.skills.names import function_of, symbol_of
from toolfold.skills.source import Function

SkillScope = Literal["project", "user"]
SCOPES: Final[tuple[SkillScope, ...]] = ("project", "user")


class SkillTexts(NamedTuple):
    """The two files of a skill."""

    manifest: str
    source: str

    @property
    def digest(self) -> str:
        """Tell these texts from any others."""
        return hashlib.sha256(f"{self.manifest}\0{self.source}".encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """One skill as it is on disk now."""

    name: str
    """As code writes it: `memory.backup_all_entities`."""
    scope: SkillScope
    folder: Path
    description: str
    function: Function
    texts: SkillTexts

    @property
    def symbol(self) -> str:
        """What it is called in the interpreter."""
        return symbol_of(self.name)

    @property
    def signature(self) -> str:
        """How it is called: `skills.weekly_report(days: int = 7)`."""
        return f"skills.{self.name}{self.function.parameters}"

    @property
    def line(self) -> str:
        """What it is, in a line."""
        return f"{self.signature}: {self.description}"

    @property
    def documented(self) -> str:
        """How it is called, with its documentation."""
        return f"{self.usage}\n{self.line}\n{self.function.documentation}"

    @property
    def usage(self) -> str:
        """The line that imports it."""
        group = self.name.rpartition(".")[0]
        module = f"skills.{group}" if group else "skills"
        return f"from {module} import {function_of(self.name)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFault:
    """A folder that looks like a skill's and cannot be used."""

    folder: Path
    scope: SkillScope
    name: str
    """What the skill would be called, or the folders as they are."""
    reason: str

    def __str__(self) -> str:
        """One line for a person: where, then what."""
        return f"{self.folder}: {self.reason}"


class Version(NamedTuple):
    """What a skill was at one time."""

    number: int
    saved_at: float
    how: str
    """saved, edited, deleted, or which version it went back to."""
    texts: SkillTexts | None
    """None of one that was deleted."""


class SkillUsage(NamedTuple):
    """How a skill has done."""

    used: int = 0
    succeeded: int = 0
    last_used_at: float | None = None
    last_error: str | None = None
