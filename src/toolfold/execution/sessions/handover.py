"""Take the variables of a session from Monty to CPython.

Only what is surely the same there goes: plain values (what several names hold is one value there,
too), functions that take nothing along from where they were defined, imports and aliases of what
they import. All else is named: if the program uses it, nothing is run.
"""

import ast
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from toolfold.errors import BadCall, CodeRejected
from toolfold.execution.analysis.plan import ProgramPlan, make_plan
from toolfold.execution.sessions.bindings import Bindings
from toolfold.jsontypes import Json
from toolfold.sandbox.sandbox import GuestCall, Program, Session

_MAX_CHARS: Final = 4 * 1024 * 1024
_MAX_KIND_CHARS: Final = 40
_MAX_TOLD: Final = 12
_MAX_MORE_CHARS: Final = 400
_TRY: Final = "try:\n    {line}\nexcept Exception:\n    pass"
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
_WRITE: Final = """
_toolfold_written = {}
def _toolfold_text(value, path, new):
    kind = type(value)
    if value is None or kind in (int, float, str, bool, bytes):
        return repr(value)
    if kind not in (list, tuple, set, dict) or len(new) > 200000:
        return None
    if kind is not tuple:
        if id(value) in _toolfold_written:
            return _toolfold_written[id(value)]
        if id(value) in new:
            return new[id(value)]
        new[id(value)] = None
    parts = []
    at = 0
    for each in value:
        if kind is dict:
            key = _toolfold_text(each, path, new)
            text = key and _toolfold_text(value[each], path + '[' + key + ']', new)
            text = text and key + ': ' + text
        else:
            text = _toolfold_text(each, path + '[' + str(at) + ']', new)
        if text is None:
            return None
        parts.append(text)
        at += 1
    if kind is not tuple:
        new[id(value)] = path
    inner = ', '.join(parts)
    if kind is list:
        return '[' + inner + ']'
    if kind is tuple:
        return '(' + inner + (',)' if len(parts) == 1 else ')')
    return '{' + inner + '}' if parts or kind is dict else 'set()'
def _toolfold_write(value, name):
    new = {}
    text = _toolfold_text(value, name, new)
    if text is not None:
        for each in new:
            _toolfold_written[each] = new[each]
    return text
"""
_ASK_WRITTEN: Final = "_toolfold_write({name}, {name!r})"
_ASK: Final = "repr({name}) if _toolfold_plain({name}, _toolfold_seen) else None"


@dataclass(frozen=True, slots=True)
class Handover:
    """What goes over: programs that make it there, and the names that cannot be made."""

    programs: tuple[Program, ...] = ()
    """What makes the variables that are needed there."""
    others: tuple[Program, ...] = ()
    """What makes the rest, as far as it can be made."""
    names: frozenset[str] = frozenset()
    """Those of the rest that should be there then."""
    left: Mapping[str, str] = field(default_factory=dict)
    """What cannot go, by name, and what it is."""

    def missing(self, there: Collection[str], rebound: Collection[str]) -> dict[str, str]:
        """Return what is not there after a program, but for what the program itself removed.

        Where nothing is known to be there, the guest could not tell: only what did not go counts.
        """
        made = self.names.difference(rebound) if there else ()
        unmade = dict.fromkeys(made, "it could not be made there")
        return {name: why for name, why in {**self.left, **unmade}.items() if name not in there}


class _Parts:
    """The sources that make variables, in the order in which they can be executed."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.lines: list[str] = []
        self.texts: list[str] = []

    def programs(self, form: str = "{line}") -> tuple[Program, ...]:
        lines = "\n".join(form.format(line=line) for line in self.lines)
        return tuple(_programs(filter(None, [lines, *self.texts])))


async def pack_up(session: Session, bound: Bindings, used: Collection[str]) -> Handover:
    """Read the variables of a session, those first that a program uses.

    Imports, functions and aliases go as their texts.
    """
    needed, others, left = _Parts(), _Parts(), dict[str, str]()
    room = _MAX_CHARS
    await session.run(Program(source=_WRITE), no_calls)
    for name in sorted(bound.names, key=lambda name: name not in used):
        parts = needed if name in used else others
        text = bound.definitions.get(name)
        line = await _line(session, bound, name)
        if line and parts is others:
            room -= len(line)
        if text and is_portable(text):
            parts.texts.append(text)
        elif line is None or room < 0:
            left[name] = await _kind(session, name)
            continue
        elif line:
            parts.lines.append(line)
        parts.names += [name] if line or text else []
    return Handover(needed.programs(), others.programs(_TRY), frozenset(others.names), left)


async def _line(session: Session, bound: Bindings, name: str) -> str | None:
    """Return the line that binds a name; nothing if it is not bound, None if there is none."""
    if statement := bound.imports.get(name):
        return None if statement.startswith("from skills") else statement
    if name in bound.definitions:
        return None
    value = await _read_text(session, _ASK_WRITTEN.format(name=name))
    if not value or _is_literal(value):
        return value and _READ.format(name=name, text=value)
    return f"{name} = {value}" if _is_literal(value, shared=bound.names) else None


async def _kind(session: Session, name: str) -> str:
    """Say what a value is. The guest tells, so only a short name is believed."""
    outcome = await session.run(Program(source=f"type({name}).__name__"), no_calls)
    kind = outcome.value if outcome.failure is None else None
    if not isinstance(kind, str) or not kind.isidentifier() or len(kind) > _MAX_KIND_CHARS:
        return "no plain value"
    if kind in {"list", "tuple", "set", "dict", "str", "bytes"}:
        return f"{kind} with values that are not plain, or too large"
    return kind


async def read_value(session: Session, name: str) -> str | None:
    """Return a value as it is written; nothing if the name is not bound, None if it cannot go."""
    text = await _read_text(session, _ASK.format(name=name))
    return text if text is None or not text or _is_literal(text) else None


async def _read_text(session: Session, question: str) -> str | None:
    outcome = await session.run(Program(source=question), no_calls)
    if outcome.failure is not None:
        is_unbound = "NameError" in outcome.failure.message
        return "" if is_unbound else None  # the program will say so itself
    text = outcome.value
    return text if isinstance(text, str) and len(text) <= _MAX_CHARS else None


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


class _References(ast.NodeTransformer):
    """Puts a value for each part of what other names hold: `rows`, `rows[3]['id']`."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(0) if node.id in self._names else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        ast.literal_eval(node.slice)
        return ast.Constant(0) if isinstance(self.visit(node.value), ast.Constant) else node


def _is_literal(text: str, shared: Collection[str] = ()) -> bool:
    """Whether a text is all that a value was, but for parts that other names hold."""
    try:
        tree = ast.parse(text, mode="eval")
        ast.literal_eval(_References(shared).visit(tree) if shared else tree)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return False
    return True


def _programs(texts: Iterable[str]) -> Iterable[Program]:
    for text in texts:
        plan = make_plan(text, max_bytes=8 * _MAX_CHARS)
        yield Program(source=plan.source, awaited=plan.awaited)


def refuse_to_leave(plan: ProgramPlan, left: Iterable[str]) -> CodeRejected:
    """Say that a program needs what cannot go with it."""
    names = ", ".join(left)
    why = plan.unsupported[0].construct if plan.unsupported else "modules that Monty lacks"
    return CodeRejected(
        f"Nothing was run. This code needs CPython ({why}), and the session's variables are in "
        f"Monty: {names} cannot be carried over. Define functions again in this code; make plain "
        "lists, dicts and texts of values in a run before, or save them in /workspace."
    )


def not_carried(missing: Mapping[str, str]) -> str:
    """Say what a session has no more, now that it is in CPython."""
    told = [f"{name} ({why})" for name, why in missing.items()]
    shown = ", ".join(told[:_MAX_TOLD])
    more = f" and {', '.join(list(missing)[_MAX_TOLD:])}"[:_MAX_MORE_CHARS]
    return (
        f"Not carried over to CPython, which this session uses from now on: {shown}"
        f"{more if len(told) > _MAX_TOLD else ''}. All else was kept; define these again if you "
        "need them."
    )


async def no_calls(call: GuestCall) -> Json:
    """Refuse what variables do not need to go over.

    Raises:
        BadCall: Always.
    """
    raise BadCall(f"{call.function} cannot be called while variables are carried over.")


# Carry what one run changed into a session that others have changed since the run began.
#
# Values that are plain go by their text, functions and imports by theirs. A name counts as changed
# if its value is another than the run began with. What cannot be carried stays with its run.

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


def changed_by_both(names: Iterable[str]) -> str:
    """Say which variables another run changed as well."""
    return (
        f"Another run changed {', '.join(names)} during this run: the values of this run are kept."
    )


def stays_behind(names: Iterable[str]) -> str:
    """Say which variables a session does not get."""
    return (
        f"Not kept in the session, which other runs changed at the same time: "
        f"{', '.join(names)}. Make them again, or save them in /workspace."
    )
