"""Carry what one run changed into a session that others have changed since the run began.

Values that are plain go by their text, functions and imports by theirs. A name counts as changed
if its value is another than the run began with. What cannot be carried stays with its run.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from toolfold.execution.analysis.plan import ProgramPlan, make_plan
from toolfold.execution.sessions.bindings import Bindings
from toolfold.execution.sessions.handover import PLAIN, is_portable, no_calls, read_value
from toolfold.sandbox.sandbox import Program, Session

_MAX_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class Changes:
    """What a run changed: programs that do the same elsewhere, and the names that stay behind."""

    programs: tuple[Program, ...]
    bound: Bindings
    left: tuple[str, ...]


def candidates(plan: ProgramPlan, before: Bindings, bound: Bindings) -> tuple[str, ...]:
    """Return the names that a run may have changed: those it binds, and those that it uses."""
    used = before.used_by(plan).names
    return tuple(dict.fromkeys((*bound.names, *used)))


async def values_in(session: Session, names: Iterable[str]) -> dict[str, str | None]:
    """Return the values of names as they are written; nothing where unbound, None if not plain."""
    await session.run(Program(source=PLAIN), no_calls)
    return {name: await read_value(session, name) for name in names}


def changes(
    names: Iterable[str],
    before: dict[str, str | None],
    after: dict[str, str | None],
    bound: Bindings,
) -> Changes:
    """Return what is to be carried, by the values before and after a run."""
    lines: list[str] = []
    texts: list[str] = []
    left: list[str] = []
    carried: list[str] = []
    for name in names:
        statement, text, value = bound.imports.get(name), bound.definitions.get(name), after[name]
        if statement is not None and not statement.startswith("from skills"):
            lines.append(statement)
        elif text and is_portable(text):
            texts.append(text)
        elif value == "" or (value is not None and value == before.get(name)):
            continue
        elif value is None:
            if name in bound.names:
                left.append(name)
            continue
        else:
            lines.append(f"{name} = {value}")
        carried.append(name)
    sources = [*filter(None, ["\n".join(lines)]), *texts]
    kept = replace(bound, names=tuple(carried))
    return Changes(tuple(map(_program, sources)), kept, tuple(left))


def _program(source: str) -> Program:
    plan = make_plan(source, max_bytes=_MAX_BYTES)
    return Program(source=plan.source, awaited=plan.awaited)


def stays_behind(names: Iterable[str]) -> str:
    """Say which variables a session does not get."""
    return (
        f"Not kept in the session, which other runs changed meanwhile: {', '.join(names)}. Make "
        "them again, or save them in /workspace."
    )
