"""Examiner: which interpreter a program needs, and what cannot work, before anything happens."""

import re
from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from toolfold.catalog.catalog import Catalog
from toolfold.catalog.names import sandbox_name
from toolfold.catalog.tool import Definitions
from toolfold.config.settings import Limits
from toolfold.errors import ToolfoldError
from toolfold.execution import report
from toolfold.execution.analysis.imports import used_modules, with_added
from toolfold.execution.analysis.plan import ProgramPlan, make_plan
from toolfold.execution.analysis.read_ahead import read_ahead
from toolfold.execution.analysis.review import ARGUMENT_RULES, Finding, review, surely_differ
from toolfold.execution.sessions.bindings import NOTHING, Bindings
from toolfold.execution.skills.linker import LinkedProgram, SkillLinker
from toolfold.execution.tiers import Tier, Tiers
from toolfold.sandbox.sandbox import Checker, Diagnostic
from toolfold.skills.models import Skill

_QUOTED: Final = re.compile(r"`([^`]*)`")


def review_calls(linked: LinkedProgram, diagnostics: Iterable[Diagnostic]) -> list[Finding]:
    """Return what is surely wrong with how a program calls its skills."""
    if not linked.skills:
        return []
    by_symbol = {skill.symbol: skill for skill in linked.skills}
    found: dict[Finding, None] = {}
    diagnostics = [each for each in diagnostics if each.rule in ARGUMENT_RULES and each.line > 0]
    misspelt = {each.line for each in diagnostics if each.rule == "unknown-argument"}
    for diagnostic in diagnostics:
        quoted = _QUOTED.findall(diagnostic.message)
        skill = next((by_symbol[each] for each in quoted if each in by_symbol), None)
        if skill is None or (diagnostic.rule == "missing-argument" and diagnostic.line in misspelt):
            continue
        if message := _message(diagnostic, skill, quoted):
            found[Finding(line=diagnostic.line, message=message)] = None
    return list(found)


def _message(diagnostic: Diagnostic, skill: Skill, quoted: list[str]) -> str | None:
    path, how = f"skills.{skill.name}", f"Signature: {skill.signature}"
    match diagnostic.rule:
        case "unknown-argument":
            near = get_close_matches(quoted[0], skill.function.names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            return f"{path} has no parameter {quoted[0]!r}.{hint} {how}"
        case "missing-argument":
            return f"{path} needs {', '.join(quoted[:-1])}. {how}"
        case "invalid-argument-type":
            expected, found = quoted[-2:]
            if found.startswith("Literal[") and surely_differ(expected, found):
                return f"{path} takes {expected}, not {found}. {how}"
            return None
        case _:
            return f"{diagnostic.message.replace(skill.symbol, path)}. {how}"


_MAX_CHECKED: Final = 1_000
_AHEAD_BYTES: Final = 1 << 23  # what thousands of calls with several short arguments take
_STUBS: Final = (
    "def show(image: object, /) -> None: ...",
    "def progress(done: float, total: float | None = None, note: str = '') -> None: ...",
    "def cached(key: object, ttl: float, fn: object, /): ...",
)


class Examiner:
    """Examines programs and skills against the tools that there are."""

    def __init__(
        self, catalog: Catalog, tiers: Tiers, checker: Checker, linker: SkillLinker, limits: Limits
    ) -> None:
        self._catalog = catalog
        self._tiers = tiers
        self._checker = checker
        self._linker = linker
        self._limits = limits
        self._checked: dict[str, tuple[Definitions, Tier, list[Finding]]] = {}

    async def prepare(self, linked: LinkedProgram, bound: Bindings = NOTHING) -> LinkedProgram:
        """Return a program whose modules are there, with or without imports.

        Waits until the tools that it, its skills and its session use are known.
        """
        wanted = [
            used_modules(plan, self._catalog) | self._catalog.modules_in(plan.names)
            for plan in linked.plans
        ]
        await self._catalog.learn(bound.used_by(linked.plan).modules.union(*wanted))
        session = {name: bound.imports.get(name) for name in bound.names}
        return linked.resolved(self._catalog, session)

    async def examine(
        self, linked: LinkedProgram, bound: Bindings = NOTHING, *, needs_cpython: bool = False
    ) -> tuple[Tier, list[Finding]]:
        """Choose the interpreter, and find what cannot work, before anything has happened.

        `bound` is what earlier programs left, which may be in CPython already.
        """
        if linked.findings:
            return "monty", list(linked.findings)
        tier, findings = await self._check_one(linked, bound, needs_cpython=needs_cpython)
        for skill in linked.skills:
            needed, found = await self._check_used(skill)
            tier = "cpython" if needed == "cpython" else tier
            findings += found
        return tier, findings

    async def _check_one(
        self, linked: LinkedProgram, bound: Bindings, *, needs_cpython: bool
    ) -> tuple[Tier, list[Finding]]:
        """The same, of a program by itself: its skills are what they say they are."""
        plan, tiers = bound.used_by(linked.plan).known_to(with_added(linked.plan)), self._tiers
        prelude = self._prelude(linked, bound)
        verdict = await self._checker.check(plan.source, prelude=prelude)
        # What stands before the program is ours: a session may have imported a server that is gone.
        found = tuple(each for each in verdict.diagnostics if each.line > 0)
        misused = review_calls(linked, found)
        if not needs_cpython and tiers.choose(plan, self._catalog.spellings) == "monty":
            findings = review(plan, found, self._catalog) + misused
            findings += report.unsupported_findings(plan.unsupported)
            findings += report.unsupported_findings(plan.deviations)
            if not findings and verdict.refusal:
                findings.append(Finding(line=1, message=verdict.refusal))
            if not findings or not tiers.has_cpython:
                return "monty", findings
        found_anyway = review(plan, found, self._catalog, packages=tiers.packages)
        return "cpython", found_anyway + misused

    def read_ahead(self, linked: LinkedProgram, bound: Bindings) -> LinkedProgram:
        """Return a program whose loops say which reads will come, where they show that."""
        if not self._limits.read_ahead or self._limits.value_bytes < _AHEAD_BYTES:
            return linked
        ahead = read_ahead(linked.plan, self._catalog, bound.names)
        return linked if ahead is linked.plan else replace(linked, ahead=ahead)

    async def check_skill(self, skill: Skill) -> tuple[Tier, list[Finding]]:
        """Return which interpreter a skill needs, and what is wrong with its code.

        Raises:
            CodeRejected: It cannot be checked.
        """
        plan = make_plan(skill.texts.source, max_bytes=self._limits.code_bytes)
        linked = await self._linker.link(plan)
        if skill.name in {each.name for each in linked.skills}:
            message = f"The skill {skill.name!r} would import itself, by way of others."
            return "monty", [Finding(line=1, message=message)]
        return await self.examine(await self.prepare(linked))

    async def _check_used(self, skill: Skill) -> tuple[Tier, list[Finding]]:
        """Check a skill that a program uses, unless nothing has changed since it was checked."""
        key, tools = f"{skill.name} {skill.texts.digest}", self._catalog.definitions
        known = self._checked.get(key)
        if known is None or known[0] is not tools:
            tier, found = await self.check_skill(skill)
            where = f"The skill {skill.name!r}, line"
            told = [
                Finding(line=1, message=f"{where} {each.line}: {each.message}") for each in found
            ]
            if len(self._checked) >= _MAX_CHECKED:
                self._checked.clear()
            known = self._checked[key] = (tools, tier, told)
        return known[1], known[2]

    def missed(self, linked: LinkedProgram) -> str | None:
        """Say why a program that needs CPython cannot have it; None if it can."""
        told = [self._tiers.missed(plan, self._catalog.spellings) for plan in linked.plans]
        return next(filter(None, told), None)

    def _prelude(self, linked: LinkedProgram, bound: Bindings) -> str:
        """Declare what guest code may use without importing it."""
        lines = [*_STUBS, *filter(None, (linked.stubs, bound.prelude()))]
        # The checker finds a module that is imported in a function only if it knows it already.
        modules = sorted(linked.plan.imports & self._catalog.spellings.keys())
        lines += [f"import {module} as _{module}" for module in modules]
        lines += linked.plan.added.values()
        for name in self.aliases(linked.plan):
            tool = self._catalog.find(name)
            lines.append(f"from {sandbox_name(tool.module)} import {tool.function} as {name}")
        return "\n".join(lines)

    def aliases(self, plan: ProgramPlan) -> list[str]:
        """Return the names in the code that are tools as clients write them: `mcp__a__b`."""
        found = []
        for name in sorted(plan.names):
            if name.startswith("mcp__"):
                try:
                    self._catalog.find(name)
                except ToolfoldError:
                    continue
                found.append(name)
        return found
