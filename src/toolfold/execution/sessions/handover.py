"""Take the variables of a session from Monty to CPython: those that a program uses, by value.

Only what is surely the same there goes: plain values that nothing else holds on to, functions that
take nothing along from where they were defined, imports. All else is named, and nothing is run.
"""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from toolfold.errors import BadCall, CodeRejected
from toolfold.execution.analysis.plan import ProgramPlan, make_plan
from toolfold.execution.sessions.bindings import Bindings
from toolfold.jsontypes import Json
from toolfold.sandbox.sandbox import GuestCall, Program, Session

_MAX_CHARS: Final = 4 * 1024 * 1024
_READ: Final = "{name} = __import__('ast').literal_eval({text!r})"
PLAIN: Final = """
def _toolfold_plain(value, seen):
    kind = type(value)
    if value is None or kind in (int, float, str, bool, bytes):
        return True
    if kind not in (list, tuple, set, dict) or len(seen) > 200000:
        return False
    if kind is not tuple or value:
        if id(value) in seen:
            return False
        seen[id(value)] = 1
    if kind is dict:
        for key in value:
            if not _toolfold_plain(key, seen) or not _toolfold_plain(value[key], seen):
                return False
        return True
    for each in value:
        if not _toolfold_plain(each, seen):
            return False
    return True
_toolfold_seen = {}
"""
_ASK: Final = "repr({name}) if _toolfold_plain({name}, _toolfold_seen) else None"


@dataclass(frozen=True, slots=True)
class Handover:
    """What goes over: programs that make it there, and the names that cannot be made."""

    programs: tuple[Program, ...]
    left: tuple[str, ...]


async def pack_up(session: Session, used: Bindings) -> Handover:
    """Read from a session what a program uses of it; imports and functions go as their texts."""
    lines: list[str] = []
    left: list[str] = []
    texts: list[str] = []
    await session.run(Program(source=PLAIN), no_calls)
    for name in used.names:
        statement, text = used.imports.get(name), used.definitions.get(name)
        if statement is not None and not statement.startswith("from skills"):
            lines.append(statement)
        elif text and is_portable(text):
            texts.append(text)
        elif statement is not None or text:
            left.append(name)
        else:
            value = await read_value(session, name)
            if value is None:
                left.append(name)
            elif value:
                lines.append(_READ.format(name=name, text=value))
    programs = _programs(filter(None, ["\n".join(lines), *texts]))
    return Handover(tuple(programs), tuple(left))


async def read_value(session: Session, name: str) -> str | None:
    """Return a value as it is written; nothing if the name is not bound, None if it cannot go."""
    outcome = await session.run(Program(source=_ASK.format(name=name)), no_calls)
    if outcome.failure is not None:
        is_unbound = "NameError" in outcome.failure.message
        return "" if is_unbound else None  # the program will say so itself
    text = outcome.value
    is_written = isinstance(text, str) and len(text) <= _MAX_CHARS and _is_literal(text)
    return str(text) if is_written else None


def is_portable(text: str) -> bool:
    """Whether a definition means the same when it is executed once more elsewhere.

    What is computed where it is defined (defaults, decorators, values of a class) would be computed
    again, and imports of skills are not known there.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(map(_is_inert, ast.walk(tree))) and not re.search(r"\bskills\b", text)


def _is_inert(node: ast.AST) -> bool:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
            decorators = getattr(node, "decorator_list", [])
            return not decorators and all(isinstance(each, ast.Constant) for each in defaults)
        case ast.ClassDef(bases=bases, keywords=keywords, decorator_list=decorators, body=body):
            return not (bases or keywords or decorators) and all(map(_is_member, body))
        case _:
            return True


def _is_member(node: ast.stmt) -> bool:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Pass():
            return True
        case ast.Assign(value=ast.Constant()) | ast.Expr(value=ast.Constant()):
            return True
        case _:
            return False


def _is_literal(text: str) -> bool:
    """Whether a text is all that a value was."""
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return False
    return True


def _programs(texts: Iterable[str]) -> Iterable[Program]:
    for text in texts:
        plan = make_plan(text, max_bytes=4 * _MAX_CHARS)
        yield Program(source=plan.source, awaited=plan.awaited)


def refuse_to_leave(plan: ProgramPlan, left: Iterable[str]) -> CodeRejected:
    """Say that a program needs what cannot go with it."""
    names = ", ".join(left)
    why = plan.unsupported[0].construct if plan.unsupported else "modules that Monty lacks"
    return CodeRejected(
        f"Nothing was run. This code needs CPython ({why}), and the session's variables are in "
        f"Monty: {names} cannot be taken over. Define functions again in this code; make plain "
        "lists, dicts and texts of values in a run before, or save them in /workspace."
    )


async def no_calls(call: GuestCall) -> Json:
    """Refuse what variables do not need to go over.

    Raises:
        BadCall: Always.
    """
    raise BadCall(f"{call.function} cannot be called while variables are taken over.")
