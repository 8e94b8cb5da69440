"""The module `skills` of guest code: save functions that worked, find them, take them away."""

import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

import anyio.to_thread

from toolfold.errors import BadInput, CodeRejected, NotFound, ToolFailed
from toolfold.execution.analysis.review import Finding
from toolfold.jsontypes import JsonObject
from toolfold.skills.library import Library, SkillDraft
from toolfold.skills.models import Skill, SkillFault, parse_name

SAVE: Final = "skills.save"

_T = TypeVar("_T")
_MAX_FINDINGS: Final = 5
_FUNCTION: Final = re.compile(r"<function '?(\w+)'?( at \w+)?>")
"""As Monty sends a function itself."""


Check = Callable[[Skill], Awaitable[tuple[str, list[Finding]]]]
"""Returns which interpreter a skill needs, and what is wrong with it."""

Search = Callable[[str, int], Awaitable[list[Skill]]]


def with_source(arguments: JsonObject, definition_of: Callable[[str], str | None]) -> JsonObject:
    """Return the arguments of `skills.save` with the code itself, where a function is named.

    Raises:
        ToolFailed: There is no such function, or it cannot stand alone.
    """
    source = arguments.get("source")
    if not isinstance(source, str):
        return arguments
    given = _FUNCTION.fullmatch(source)
    name = given[1] if given else source.strip()
    if not name.isidentifier():
        return arguments
    try:
        found = definition_of(name)
    except BadInput as error:
        raise ToolFailed(f"The skill was not saved: {error}.") from error
    except RecursionError as error:
        raise ToolFailed("The skill was not saved: the code is nested too deeply.") from error
    if found is None:
        raise ToolFailed(
            f"The skill was not saved: no function {name!r} is defined at the top of this code. "
            "Give its name, or its source as text."
        )
    return {**arguments, "source": found}


class SkillsModule:
    """Answers the calls to `skills.*`."""

    def __init__(self, library: Library, *, check: Check, search: Search) -> None:
        self._library = library
        self._check = check
        self._search = search

    async def answer(self, name: str, arguments: JsonObject) -> str:
        """Answer one call.

        Raises:
            ToolfoldError: There is no answer; the message says why.
        """
        verbs: dict[str, Callable[..., Awaitable[str]]] = {
            "save": self.save,
            "search": self.search,
            "show": self.show,
            "delete": self.delete,
        }
        for parameter, value in arguments.items():
            kind = int if parameter == "limit" else str
            if not isinstance(value, kind) or isinstance(value, bool):
                wanted = "a number" if kind is int else "a text"
                raise BadInput(
                    f"skills.{name}: {parameter} is {wanted}, not {type(value).__name__}."
                )
        return await verbs[name](**arguments)

    async def save(self, name: str, source: str, description: str, scope: str | None = None) -> str:
        """Save a skill that stands the check, and say how to use it."""
        draft = await _beside(partial(self._library.draft, name, source, description, scope))
        note = await self.examine(draft)
        number = await _beside(lambda: self._library.save(draft))
        skill = draft.skill
        whose = "this project" if skill.scope == "project" else "all your projects"
        kept = (
            "" if number == 1 else f" (version {number}; `toolfold skills diff` shows what changed)"
        )
        return f"Saved for {whose}{kept}. In later code:\n{skill.usage}\n{skill.line}{note}"

    async def examine(self, draft: SkillDraft) -> str:
        """Check a draft; return what is to be noted of it.

        Raises:
            BadInput: It does not stand the check.
        """
        try:
            tier, findings = await self._check(draft.skill)
        except CodeRejected as error:
            raise BadInput(f"The skill {draft.skill.name!r} was not saved. {error}") from error
        if findings:
            raise BadInput(not_saved(draft.skill, findings))
        return "\nIt runs on CPython: the small interpreter lacks what it uses." * (
            tier == "cpython"
        )

    async def search(self, query: str, limit: int = 5) -> str:
        """Return the skills that fit, best first, a line each; and those that are broken."""
        found = await self._search(query, max(1, min(limit, 50)))
        lines = [f"{skill.line}  [{skill.usage}]" for skill in found]
        if not lines:
            lines.append(f"No skill matches {query!r}.")
        every = await _beside(self._library.all)
        broken = [each for each in every if isinstance(each, SkillFault)]
        return "\n".join(lines + [f"(not usable: {each.name}: {each.reason})" for each in broken])

    async def show(self, name: str) -> str:
        """Return all that there is to know of a skill."""
        return await _beside(lambda: self._library.shown(self._library.find(parse_name(name))))

    async def delete(self, name: str) -> str:
        """Take a skill away."""
        skill = await _beside(lambda: self._library.delete(name))
        return (
            f"Deleted {skill.name}. Its versions stay: `toolfold skills rollback {skill.name}` "
            "brings it back."
        )


def not_saved(skill: Skill, findings: list[Finding]) -> str:
    """Say why a skill was not saved, with the lines."""
    lines = skill.texts.source.split("\n")
    told = [f"The skill {skill.name!r} was not saved; correct it and save it again."]
    for finding in findings[:_MAX_FINDINGS]:
        told.append(f"Line {finding.line}: {finding.message}")
        if 1 <= finding.line <= len(lines):
            told.append(f"    {lines[finding.line - 1].strip()[:200]}")
    return "\n".join(told)


async def _beside(work: Callable[[], _T]) -> _T:
    """Do what waits for the disk beside the event loop."""
    try:
        return await anyio.to_thread.run_sync(work)
    except NotFound as error:  # which in guest code would be the name of a variable
        raise ToolFailed(str(error)) from error
