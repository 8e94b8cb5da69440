"""Take the variables of a session from Monty to CPython: those that a program uses, by value."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from toolfold.errors import CodeRejected
from toolfold.execution.bindings import Bindings
from toolfold.execution.plan import Plan, make_plan
from toolfold.jsontypes import Json
from toolfold.sandbox.sandbox import GuestCall, Program, Session

_MOST_CHARS: Final = 4 * 1024 * 1024
_READ: Final = "{name} = __import__('ast').literal_eval({text!r})"


@dataclass(frozen=True, slots=True)
class Luggage:
    """What goes over: programs that make it there, and the names that cannot be made."""

    programs: tuple[Program, ...]
    left: tuple[str, ...]


async def pack_up(session: Session, used: Bindings) -> Luggage:
    """Read from a session what a program uses of it; imports and functions go as their texts."""
    lines, left = list(used.imports.values()), []
    for name in used.names:
        if name in used.imports or used.definitions.get(name):
            continue
        outcome = await session.run(Program(source=f"repr({name})"), _no_calls)
        text = outcome.value
        if outcome.failure is not None and "NameError" in outcome.failure.message:
            continue  # a run that failed had not come so far; this one will say so itself
        if isinstance(text, str) and len(text) <= _MOST_CHARS and is_literal(text):
            lines.append(_READ.format(name=name, text=text))
        else:
            left.append(name)
    texts = ["\n".join(lines), *filter(None, used.definitions.values())]
    return Luggage(tuple(_programs(filter(None, texts))), tuple(left))


def is_literal(text: str) -> bool:
    """Whether a text is all that a value was."""
    import ast  # noqa: PLC0415

    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return False
    return True


def _programs(texts: Iterable[str]) -> Iterable[Program]:
    for text in texts:
        plan = make_plan(text, max_bytes=4 * _MOST_CHARS)
        yield Program(source=plan.source, awaited=plan.awaited)


def refuse_to_leave(plan: Plan, left: Iterable[str]) -> CodeRejected:
    """Say that a program needs what cannot go with it."""
    names = ", ".join(left)
    why = plan.unsupported[0].construct if plan.unsupported else "modules that Monty lacks"
    return CodeRejected(
        f"Nothing was run. This code needs CPython ({why}), and the session's variables are in "
        f"Monty: {names} cannot be taken over. Make lists, dicts and texts of them in a run "
        "before, or save them in /workspace."
    )


async def _no_calls(call: GuestCall) -> Json:
    raise AssertionError(call.function)
