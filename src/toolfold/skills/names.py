"""What skills may be called: `memory.backup_all` in code is `memory/backup-all` on disk."""

import builtins
import keyword
import re
import sys
from typing import Final

from toolfold.errors import BadInput

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
