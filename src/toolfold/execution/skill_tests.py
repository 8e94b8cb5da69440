"""Run a skill as it was run before, with every call answered from what was recorded then."""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolfold.catalog.catalog import Catalog
from toolfold.catalog.names import as_written
from toolfold.clocks import PausableClock
from toolfold.config.settings import Limits
from toolfold.errors import NotFound, count
from toolfold.execution.analysis.plan import make_plan
from toolfold.execution.calls import SHOW
from toolfold.execution.executor import modules
from toolfold.execution.report import render
from toolfold.execution.skills.linker import LinkedProgram, SkillLinker, run_linked
from toolfold.execution.skills.recorder import RecordedAnswers
from toolfold.execution.tiers import Tier, Tiers
from toolfold.jsontypes import JsonObject
from toolfold.sandbox.sandbox import GuestModule, GuestOutcome, Modules
from toolfold.skills.library import Library
from toolfold.skills.models import Skill

_MAX_LINES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillTest:
    """What came of testing a skill."""

    name: str
    calls: int
    """How many were recorded."""
    has_changed: bool
    """Whether the skill is another than when it was recorded."""
    differences: tuple[str, ...]
    """What is not as it was; none if all is."""


class SkillTests:
    """Tests skills. No server is asked anything."""

    def __init__(self, library: Library, catalog: Catalog, tiers: Tiers, limits: Limits) -> None:
        self._library = library
        self._catalog = catalog
        self._tiers = tiers
        self._limits = limits

    async def test(self, name: str) -> SkillTest:
        """Run the newest recording of a skill against the skill as it is.

        Raises:
            NotFound: There is no such skill, or it was never recorded.
        """
        skill = self._library.find(name)
        kept = self._library.skill_store.recording(self._library.root_of(skill), skill.name)
        if kept is None:
            raise NotFound(
                f"Nothing is recorded of the skill {name!r}: a run that uses it and ends well is, "
                "up to 256 KB."
            )
        digest, recording = kept
        differences, calls = await self._differences(recording)
        return SkillTest(
            name=skill.name,
            calls=len(calls),
            has_changed=digest != skill.texts.digest,
            differences=tuple(differences),
        )

    async def _differences(self, recording: JsonObject) -> tuple[list[str], list[Any]]:
        code, calls = str(recording["code"]), _calls_of(recording)
        plan = make_plan(code, max_bytes=self._limits.code_bytes)
        linker = SkillLinker(self._library, max_bytes=self._limits.code_bytes)
        linked = await linker.link(plan)
        if linked.findings:
            return [each.message for each in linked.findings], calls
        linked = linked.resolved(_Recorded(self._catalog, calls))
        replay = RecordedAnswers(calls)
        outcome = await self._run(linked, replay, calls)
        return list(_compared(recording, outcome, replay)), calls

    async def _run(
        self, linked: LinkedProgram, replay: RecordedAnswers, calls: list[Any]
    ) -> GuestOutcome:
        known = self._catalog.spellings
        chosen: set[Tier] = {self._tiers.choose(plan, known) for plan in linked.plans}
        sandbox = self._tiers.sandbox("cpython" if "cpython" in chosen else "monty")
        offered = with_recorded(modules(self._catalog), calls)
        aliases = {str(each["tool"]) for each in calls if "." not in str(each["tool"])}
        async with sandbox.open(offered, frozenset({SHOW, *aliases})) as session:
            clock = PausableClock(self._limits.wall_time_s)
            return await run_linked(session, linked, replay.call, clock)


class _Recorded:
    """The modules that there are, and those that there were when a skill was recorded."""

    def __init__(self, catalog: Catalog, calls: list[Any]) -> None:
        self._functions = catalog.functions
        named = {str(each["tool"]).rpartition(".")[0] for each in calls}
        recorded = {as_written(name): name for name in sorted(named) if name}
        self.servers = {**{name: name for name in recorded}, **catalog.servers}
        self.spellings = {**{name: name for name in recorded.values()}, **catalog.spellings}
        self.unwrapped = catalog.unwrapped
        self._recorded = {
            (as_written(module), function)
            for module, _, function in (str(each["tool"]).rpartition(".") for each in calls)
        }

    def has(self, module: str, function: str) -> bool:
        """Whether a module has a tool of that name, or had one."""
        return (module, function) in self._recorded or function in self._functions(module)


def with_recorded(offered: Modules, calls: list[Any]) -> Modules:
    """Return modules that have what was recorded, whether or not its server is there."""
    recorded: dict[str, set[str]] = {}
    for each in calls:
        module, _, function = str(each["tool"]).rpartition(".")
        if module:
            recorded.setdefault(module, set()).add(function)
    return {**offered, **{name: _joined(offered, name, recorded[name]) for name in recorded}}


def _joined(offered: Modules, name: str, functions: set[str]) -> Any:
    def make() -> GuestModule:
        there = offered[name]() if name in offered else GuestModule(functions=(), stub="")
        return GuestModule(functions=tuple({*there.functions, *functions}), stub=there.stub)

    return make


def _calls_of(recording: Mapping[str, Any]) -> list[Any]:
    return list(recording["calls"])


def _compared(recording: JsonObject, outcome: GuestOutcome, replay: RecordedAnswers) -> Any:
    """Yield what is not as it was."""
    if replay.difference:
        yield replay.difference
        return
    if outcome.failure:
        yield f"the run failed: {outcome.failure.message}"
        return
    if replay.left:
        some = ", ".join(replay.left[:5])
        yield f"{count(len(replay.left), 'recorded call')} not made: {some}"
    for what, then, now in (
        ("output", str(recording["output"]), outcome.output),
        ("value", _text(recording["value"]), _text(outcome.value)),
    ):
        if then != now:
            lines = difflib.unified_diff(
                then.splitlines(), now.splitlines(), "recorded", "now", lineterm="", n=1
            )
            shown = "\n".join(f"    {line[:200]}" for line in list(lines)[2:_MAX_LINES])
            yield f"the {what} is another:\n{shown}"


def _text(value: Any) -> str:
    return render(value) if isinstance(value, str) else json.dumps(value, indent=1)


def describe_test(test: SkillTest, skill: Skill) -> str:
    """Return what came of a test, for a person to read."""
    changed = "; the skill has changed since the recording" if test.has_changed else ""
    if not test.differences:
        calls = "call" if test.calls == 1 else "calls"
        return f"{skill.name}: passed ({test.calls} recorded {calls}){changed}"
    lines = "\n".join(f"  - {each}" for each in test.differences)
    return f"{skill.name}: differs from the recording{changed}\n{lines}"
