"""A skill and its name, what is wrong with one, and what is kept of each."""

import builtins
import hashlib
import keyword
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple

from toolfold.errors import BadInput
from toolfold.skills.source import Function

VERBS: Final = ("save", "search", "show", "delete")
"""The functions of the module `skills`, which no skill and no group can be called."""

_MAX_GROUPS: Final = 3
_PART: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_MAX_CHARS: Final = 64
_HIDING: Final = sys.stdlib_module_names | frozenset(dir(builtins))


def parse_name(text: str) -> str:
    """Return a skill's name as code writes it: `memory.backup_all`.

    `memory/backup-all` is understood as well, and so is `skills.` in front.

    Raises:
        BadInput: No skill can be called that.
    """
    parts = text.removeprefix("skills.").replace("/", ".").replace("_", "-").split(".")
    if why := why_not_named(parts):
        raise BadInput(f"A skill cannot be called {text[:100]!r}: {why}.")
    return name_of(parts)


def name_of(folders: list[str]) -> str:
    """Return the name of the skill in these folders."""
    return ".".join(folders).replace("-", "_")


def folders_of(name: str) -> list[str]:
    """Return the folders of a skill, from the outermost group to its own."""
    return name.replace("_", "-").split(".")


def function_of(name: str) -> str:
    """Return what the function of a skill is called."""
    return name.rpartition(".")[2]


def symbol_of(name: str) -> str:
    """Return what a skill is called in the interpreter, where nothing else is called so.

    It ends with underscores too: classes would mangle it otherwise.
    """
    return f"__skill_{name.replace('.', '__')}__"


def why_not_named(folders: list[str]) -> str | None:
    """Say why no skill can be in folders of these names; None if one can."""
    if len(folders) > _MAX_GROUPS + 1:
        return f"it is in more than {_MAX_GROUPS} groups"
    for part in folders:
        if len(part) > _MAX_CHARS or not _PART.fullmatch(part):
            return (
                f"names are lower-case letters and digits with single hyphens, begin with a "
                f"letter, and have at most {_MAX_CHARS} characters, such as 'weekly-report'"
            )
        if keyword.iskeyword(part) or part in VERBS:
            return f"{part!r} has a meaning of its own in code"
    if folders[-1].replace("-", "_") in _HIDING:
        return f"its function would hide the {folders[-1]!r} that Python has"
    return None


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
