"""The skills that a program imports, made into a program that goes before it."""

import ast
import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import anyio
import anyio.to_thread

from toolfold.clocks import PausableClock
from toolfold.errors import BadInput, NotFound
from toolfold.execution.analysis.imports import ModuleNames, resolve
from toolfold.execution.analysis.plan import ProgramPlan, make_plan
from toolfold.execution.analysis.program import is_guarded
from toolfold.execution.analysis.review import Finding
from toolfold.sandbox.sandbox import GuestFailure, GuestOutcome, OnCall, Program, Session
from toolfold.skills.library import Library
from toolfold.skills.models import Skill
from toolfold.skills.rewrite import FUTURE, RewrittenCode, definition, link, wants_skills
from toolfold.skills.source import STUB_IMPORTS, parse

_MAX_DEPTH: Final = 16
_MAX_SKILLS: Final = 64
_MAX_KEPT: Final = 64
_MAX_BYTES: Final = 1 << 20
_FRAME: Final = re.compile(r'^(\s*File ")(<[^>]*>)(", line )(\d+)', re.MULTILINE)


class UnusableSkill(Exception):
    """A skill that a program imports cannot be used."""


@dataclass(frozen=True, slots=True)
class LinkedProgram:
    """What runs for a program: itself as it can be run, and what defines its skills before."""

    plan: ProgramPlan
    skills: tuple[Skill, ...] = ()
    """Those that it imports and those that these import, each after what it needs."""
    before: ProgramPlan | None = None
    """The program that defines them."""
    starts: tuple[int, ...] = ()
    """The line of that program before the first of each skill."""
    direct: frozenset[str] = frozenset()
    """The names of those that the program itself imports."""
    findings: tuple[Finding, ...] = ()
    """Why it cannot run, where its skills cannot be had."""
    ahead: ProgramPlan | None = None
    """The program with what makes its loops say which reads will come, where some do."""

    @property
    def plans(self) -> list[ProgramPlan]:
        """Both programs."""
        return [self.plan, self.before] if self.before else [self.plan]

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        """The syntax trees of both."""
        return (*self.plan.nodes, *(self.before.nodes if self.before else ()))

    def resolved(
        self, names: ModuleNames, session: Mapping[str, str | None] = MappingProxyType({})
    ) -> "LinkedProgram":
        """Return the feed with the modules that it uses: see `checking/imports.py`."""
        before = self.before and resolve(self.before, names, {})
        return replace(self, plan=resolve(self.plan, names, session), before=before)

    @property
    def program(self) -> Program:
        """The code itself, as the sandbox takes it."""
        plan = self.ahead or self.plan
        return Program(source=plan.source, awaited=plan.awaited, is_last=True)

    @property
    def definitions(self) -> Program | None:
        """What goes before it."""
        if self.before is None:
            return None
        return Program(source=self.before.source, awaited=self.before.awaited)

    @property
    def imports(self) -> Program | None:
        """What imports the modules that both programs use and do not import."""
        added = {text: None for plan in self.plans for text in plan.added.values()}
        return Program(source="\n".join(added)) if added else None

    @property
    def stubs(self) -> str:
        """Declare the skills for the type checker."""
        used = [each.function.stub for each in self.skills if each.name in self.direct]
        return "\n".join([STUB_IMPORTS, *used]) if used else ""

    def place(self, line: int) -> tuple[Skill, int]:
        """Return which skill a line of the definitions is in, and its line there."""
        at = max(0, bisect_right(self.starts, line - 1) - 1)
        return self.skills[at], line - self.starts[at]

    def named(self, failure: GuestFailure, *, file: str) -> GuestFailure:
        """Name the skills in a traceback, where it names `file`, the program that defined them."""

        def name(match: re.Match[str]) -> str:
            if match[2] != file:
                return match[0]
            skill, line = self.place(int(match[4]))
            return f"{match[1]}<skill {skill.name}>{match[3]}{line}"

        return replace(failure, traceback=_FRAME.sub(name, failure.traceback))


class SkillLinker:
    """Makes feeds, and keeps what defines skills until they change."""

    def __init__(self, library: Library, *, max_bytes: int) -> None:
        self._library = library
        self._max_bytes = max_bytes
        self._turn = anyio.CapacityLimiter(1)
        self._kept: OrderedDict[tuple[str, ...], tuple[ProgramPlan, tuple[int, ...]]] = (
            OrderedDict()
        )

    async def link(self, plan: ProgramPlan) -> LinkedProgram:
        """Return what runs for a program. Files are read beside the event loop.

        Raises:
            CodeRejected: It is too large with its skills.
        """
        if "skills" not in plan.imports or not wants_skills(plan.nodes):
            return LinkedProgram(plan)
        return await anyio.to_thread.run_sync(self._feed, plan, limiter=self._turn)

    def _feed(self, plan: ProgramPlan) -> LinkedProgram:
        linked = link(plan.source, plan.nodes, self._library.kind_of)
        findings = tuple(
            Finding(line=each.line, message=self._about(each.name))
            for each in linked.missing
            if not is_guarded(plan.nodes, each.line, "ImportError", "ModuleNotFoundError")
        )
        if findings:
            return LinkedProgram(plan, findings=findings)
        try:
            skills = self._with_needs(linked.skills)
            rewritten = make_plan(linked.source, max_bytes=2 * self._max_bytes)
            return self._fed(rewritten, skills, frozenset(linked.skills))
        except (UnusableSkill, BadInput) as trouble:
            finding = Finding(line=_line_of_import(plan), message=str(trouble))
            return LinkedProgram(plan, findings=(finding,))

    def _with_needs(self, names: Iterable[str]) -> list[Skill]:
        """Return skills of these names and all that they need, each after what it needs.

        Raises:
            UnusableSkill: Some cannot be had.
        """
        found: dict[str, Skill] = {}
        for name in names:
            for skill in self._closure(name, ()):
                found.setdefault(skill.name, skill)
        if len(found) > _MAX_SKILLS:
            raise UnusableSkill(f"The code needs {len(found)} skills; at most {_MAX_SKILLS}.")
        return list(found.values())

    def _closure(self, name: str, path: tuple[str, ...]) -> Iterator[Skill]:
        if name in path:
            circle = " -> ".join([*path[path.index(name) :], name])
            raise UnusableSkill(f"Skills import each other in a circle: {circle}. Break it up.")
        if len(path) >= _MAX_DEPTH:
            raise UnusableSkill(f"Skills import each other more than {_MAX_DEPTH} deep: {path[0]}.")
        try:
            skill = self._library.find(name)
        except NotFound as error:
            wanted = f" The skill {path[-1]!r} imports it." if path else ""
            raise UnusableSkill(f"{error}{wanted}") from error
        yield from self._needs(skill, (*path, name))
        yield skill

    def _needs(self, skill: Skill, path: tuple[str, ...]) -> Iterator[Skill]:
        linked = self._link(skill)
        for missing in linked.missing:
            where = f"line {missing.line} of the skill {skill.name!r}"
            raise UnusableSkill(f"{self._about(missing.name)} It is imported on {where}.")
        for need in dict.fromkeys(linked.skills):
            yield from self._closure(need, path)

    def _about(self, name: str) -> str:
        """Say what to do about a name that `skills` does not have."""
        if name.endswith("*"):
            return "import * does not work with skills: name what you import."
        if self._library.kind_of(name) == "skill":
            group, _, function = f"skills.{name}".rpartition(".")
            return (
                f"Write `from {group} import {function}` for this skill, and use {function}(...)."
            )
        try:
            self._library.find(name)
        except NotFound as error:
            return f"{error} `skills.search(...)` finds skills."
        return f"The skill {name!r} appeared just now: run the code once more."

    def _link(self, skill: Skill) -> RewrittenCode:
        """Rewrite the imports in a skill; what they lead to may change with every look."""
        tree = parse(skill.texts.source)
        nodes = list(ast.walk(tree))
        if not wants_skills(nodes):
            return RewrittenCode(skill.texts.source)
        return link(skill.texts.source, nodes, self._library.kind_of)

    def _fed(self, plan: ProgramPlan, skills: list[Skill], direct: frozenset[str]) -> LinkedProgram:
        if not skills:
            return LinkedProgram(plan)
        key = tuple(f"{each.name} {each.texts.digest}" for each in skills)
        if key not in self._kept:
            self._kept[key] = self._defined(skills)
            if len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        before, starts = self._kept[key]
        return LinkedProgram(plan, tuple(skills), before, starts, direct)

    def _defined(self, skills: list[Skill]) -> tuple[ProgramPlan, tuple[int, ...]]:
        text, starts = FUTURE, []
        for skill in skills:
            starts.append(text.count("\n") + 1)
            source = self._link(skill).source
            text += definition(skill.name, source, parse(source))
        return make_plan(text, max_bytes=_MAX_BYTES), tuple(starts)


async def run_linked(
    session: Session, linked: LinkedProgram, on_call: OnCall, clock: PausableClock
) -> GuestOutcome:
    """Import the modules of a program, define its skills, and run it."""
    if (imports := linked.imports) is not None:
        imported = await session.run(imports, on_call, clock=clock)
        if imported.failure:
            return imported
    if (definitions := linked.definitions) is None:
        return await session.run(linked.program, on_call, clock=clock)
    defined = await session.run(definitions, on_call, clock=clock)
    if defined.failure:
        failure = linked.named(defined.failure, file=defined.program)
        return replace(defined, failure=replace(failure, line=None))
    ran = await session.run(linked.program, on_call, clock=clock)
    return replace(
        ran,
        output=defined.output + ran.output,
        output_dropped=defined.output_dropped + ran.output_dropped,
        failure=ran.failure and linked.named(ran.failure, file=defined.program),
        guest_s=defined.guest_s + ran.guest_s,
        waiting_s=defined.waiting_s + ran.waiting_s,
    )


def _line_of_import(plan: ProgramPlan) -> int:
    return next(
        (
            node.lineno
            for node in plan.nodes
            if isinstance(node, ast.Import | ast.ImportFrom) and wants_skills([node])
        ),
        1,
    )
