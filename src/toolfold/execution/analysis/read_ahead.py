"""Which loops only read, so that the reads of later turns can begin before theirs comes. Pure.

Such a loop is rewritten to say, before its first turn, which calls will come:

    for user in users:                       for user in (… _toolfold_ahead(0, [["crm.get",
        found.append(crm.get(user["id"])) →      [user["id"]], {}] for user in users …]) or users):

The calls themselves stay as they are. A loop is left alone unless its text shows that every call of
a tool in it reads, and that the arguments of those that are foretold come from the loop's own
variables, by expressions that cannot fail. Lines stay where they are.
"""

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from toolfold.catalog.tool import Tool
from toolfold.execution.analysis.imports import SourceEdit, edited, with_added
from toolfold.execution.analysis.plan import ProgramPlan, make_plan
from toolfold.execution.analysis.program import ProgramAnalysis, ToolNames
from toolfold.sandbox.sandbox import AHEAD

_MAX_TURNS: Final = 5_000
_MAX_SIZE: Final = 100_000
_MAX_CHARS: Final = 200
_MAX_NUMBER: Final = 10**15

_LOOPS: Final = (ast.For, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_Loop = ast.For | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_STATEMENTS: Final = (
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.If, ast.Pass, ast.Continue),
    *(ast.Try, ast.For, ast.Raise, ast.Assert),
)
_APART: Final = (*(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.JoinedStr),)
_NEVER_TWICE: Final = (
    *(ast.Lambda, ast.NamedExpr, ast.Await, ast.Starred),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
_UNFIT: Final = (ast.Await, ast.Yield, ast.YieldFrom, ast.Lambda, ast.NamedExpr, ast.AsyncFor)
_CONSUMERS: Final = frozenset({"dict", "list", "max", "min", "set", "sorted", "sum", "tuple"})
_FUNCTIONS: Final = _CONSUMERS | {
    *("abs", "all", "any", "bool", "enumerate", "float", "int", "isinstance", "len", "print"),
    *("range", "repr", "reversed", "round", "str", "zip"),
}
_CHANGES: Final = frozenset({"add", "append", "extend", "insert", "setdefault", "update"})
_LOOKS: Final = frozenset(
    {
        *("count", "endswith", "find", "format", "get", "index", "isdigit", "items", "join"),
        *("keys", "lower", "lstrip", "replace", "rstrip", "split", "splitlines", "startswith"),
        *("strip", "title", "upper", "values"),
    }
)
_LIBRARIES: Final = frozenset({"json", "math", "re", "statistics"})
_SIZED: Final = "(list, tuple, dict, set, range)"
_ARITHMETIC: Final = (ast.Add, ast.Sub, ast.Mult)


def read_ahead(plan: ProgramPlan, names: ToolNames, session: Collection[str]) -> ProgramPlan:
    """Return a program whose loops say which reads will come; the same where none can.

    `session` has the names that earlier programs have bound.
    """
    if not any(isinstance(node, _LOOPS) for node in plan.nodes):
        return plan
    analysis = ProgramAnalysis(with_added(plan), names)
    if not analysis.tool_calls or any(isinstance(node, ast.Delete) for node in plan.nodes):
        return plan
    edits = list(_Reader(analysis, session).edits())
    if not edits:
        return plan
    source = edited(plan.source, edits)
    ahead = make_plan(source, max_bytes=16 * len(source) + 4096)
    return replace(plan, source=source, awaited=ahead.awaited, written=plan.shown)


class _Foretold(NamedTuple):
    """A call that is made in every turn, and what must hold for its arguments to have values."""

    tool: Tool
    call: ast.Call
    guards: list[str]


class _Unfit(Exception):
    """The loop, or the expression, does not show what it would have to."""


class _Reader:
    """Reads one program."""

    def __init__(self, analysis: ProgramAnalysis, session: Collection[str]) -> None:
        self._analysis = analysis
        self._taken = {*analysis.defined, *session}
        self._sure = {*session} - {*analysis.defined}

    def edits(self) -> Iterator[SourceEdit]:
        """Yield what makes loops say which calls will come."""
        found = 0
        for statement in ast.iter_child_nodes(self._analysis.nodes[0]):
            for loop, around in _loops_in(statement, self._taken):
                try:
                    text = self._foretelling(loop, around, found)
                except _Unfit:
                    continue
                source = _source(loop)
                yield SourceEdit.before(source, f"({text} or ")
                yield SourceEdit.after(source, ")")
                found += 1
            if isinstance(statement, ast.Assign):
                self._sure |= _bound_by(statement)

    def _foretelling(self, loop: _Loop, around: Collection[str], number: int) -> str:
        target, source = _target(loop), _source(loop)
        own, sure = _names(target), {*self._sure, *around}
        body = [node for part in _body(loop) for node in ast.walk(part)]
        changed = self._changed_by(body)
        self._see_that_it_reads(body)
        self._see_that_it_stays(source, changed | own)
        if own & changed:
            raise _Unfit
        found = [
            _Foretold(tool, call, guards)
            for call in _certain_calls(loop)
            if (tool := self._analysis.tool(call.func))
            and (guards := _guards(call, own, sure - changed)) is not None
        ]
        if not found:
            raise _Unfit
        sized = [
            f"isinstance({each}, {_SIZED}) and len({each}) <= {_MAX_SIZE}"
            for each in map(ast.unparse, self._sized(source))
        ]
        guards = list(dict.fromkeys(guard for each in found for guard in each.guards))
        calls = ", ".join(map(_told, found))
        condition = f" if {' and '.join(guards)}" if guards else ""
        first = f"list({ast.unparse(source)})[:{_MAX_TURNS}]"
        over = f"for {ast.unparse(target)} in {first}{condition}"
        return " and ".join([*sized, f"{AHEAD}({number}, [[{calls}] {over}])"])

    def _see_that_it_reads(self, body: Iterable[ast.AST]) -> None:
        """Raise _Unfit where a loop does anything but reading, and keeping what it read."""
        for node in body:
            if isinstance(node, _UNFIT):
                raise _Unfit
            if isinstance(node, ast.stmt) and not isinstance(node, _STATEMENTS):
                raise _Unfit
            if isinstance(node, ast.Call) and not self._is_harmless(node):
                raise _Unfit

    def _is_harmless(self, call: ast.Call) -> bool:
        if tool := self._analysis.tool(call.func):
            return bool(tool.listed.read_only)
        match call.func:
            case ast.Name(id=name):
                return name in _FUNCTIONS and name not in self._taken
            case ast.Attribute(value=ast.Name(id=name)) if name in self._analysis.modules:
                return self._analysis.modules[name] in _LIBRARIES
            case ast.Attribute(attr=name):
                return name in _CHANGES | _LOOKS
            case _:
                return False

    def _changed_by(self, body: Iterable[ast.AST]) -> set[str]:
        """Return the names that a loop binds, and those whose values it changes."""
        changed: set[str] = set()
        for node in body:
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.ExceptHandler(name=str(name)):
                    changed.add(name)
                case ast.Subscript(ctx=ast.Store()) | ast.Attribute(ctx=ast.Store()):
                    changed.add(_root(node))
                case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _CHANGES:
                    changed.add(_root(value))
        return changed

    def _see_that_it_stays(self, source: ast.expr, changed: set[str]) -> None:
        """Raise _Unfit unless what is looped over can be looked at twice, and is the same."""
        for node in ast.walk(source):
            if isinstance(node, ast.Name) and node.id in changed:
                raise _Unfit
            if isinstance(node, _NEVER_TWICE):
                raise _Unfit
            if isinstance(node, ast.Call) and not self._is_repeatable(node):
                raise _Unfit

    def _is_repeatable(self, call: ast.Call) -> bool:
        match call.func:
            case ast.Name(id=name):
                is_plain = all(map(_is_plain, call.keywords))
                return name in _FUNCTIONS - {"print"} and name not in self._taken and is_plain
            case ast.Attribute(attr=name):
                return name in _LOOKS and not self._analysis.tool(call.func)
            case _:
                return False

    def _sized(self, source: ast.expr) -> list[ast.expr]:
        """Return the collections that something is looped over by."""
        match source:
            case ast.Call(func=ast.Name(id=name), args=args) if name != "range":
                return [each for arg in args for each in self._sized(arg)]
            case ast.Call(func=ast.Attribute(value=value, attr="items" | "keys" | "values")):
                return self._sized(value)
            case _:
                return [source]


def _guards(call: ast.Call, own: frozenset[str], sure: set[str]) -> list[str] | None:
    """Return under which conditions the arguments have values; None if that cannot be told.

    They must have to do with the loop: who reads one thing again and again waits for a change.
    """
    guards: list[str] = []
    names = set().union(*map(_names, _arguments(call)))
    if not names & own or not names <= own | sure or not all(each.arg for each in call.keywords):
        return None
    try:
        for value in _arguments(call):
            _guard(value, guards)
    except _Unfit:
        return None
    return guards


def _guard(value: ast.expr, guards: list[str]) -> None:
    """Note what must hold for an expression to have a value. Raises _Unfit for most of them."""
    match value:
        case ast.Constant():
            return
        case ast.Name():
            guards.append(_is_small(value))
        case ast.Subscript():
            guards += [*_has_keys(value), _is_small(value)]
        case ast.BinOp():
            _guard_sum(value, guards)
        case _:
            for part in _parts(value):
                _guard(part, guards)


def _parts(value: ast.expr) -> list[ast.expr]:
    """Return what an expression is made of that has a value where they do."""
    match value:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.JoinedStr(values=parts):
            return parts
        case ast.FormattedValue(value=inner, format_spec=None):
            return [inner]
        case ast.Dict(keys=keys, values=values) if all(isinstance(k, ast.Constant) for k in keys):
            return values
        case _:
            raise _Unfit


def _has_keys(value: ast.Subscript) -> list[str]:
    """Return the conditions that `user["address"]["city"]` is there."""
    match value:
        case ast.Subscript(
            value=ast.Name() | ast.Subscript() as inner, slice=ast.Constant(value=str(key))
        ):
            before = _has_keys(inner) if isinstance(inner, ast.Subscript) else []
            held = ast.unparse(inner)
            return [*before, f"isinstance({held}, dict) and {key!r} in {held}"]
        case _:
            raise _Unfit


def _guard_sum(value: ast.BinOp, guards: list[str]) -> None:
    """Note what must hold for a sum of numbers, or for one text put behind another."""
    if not isinstance(value.op, _ARITHMETIC):
        raise _Unfit
    parts = [value.left, value.right]
    is_text = isinstance(value.op, ast.Add) and any(map(_is_text, parts))
    for part in parts:
        _guard(part, guards)
        guards.append(f"isinstance({ast.unparse(part)}, {'str' if is_text else 'int'})")


def _is_small(value: ast.expr) -> str:
    """Return the condition that a value is a short text or a number, which any tool can get."""
    text = ast.unparse(value)
    return (
        f"(isinstance({text}, str) and len({text}) <= {_MAX_CHARS}"
        f" or isinstance({text}, int) and abs({text}) < {_MAX_NUMBER})"
    )


def _told(foretold: _Foretold) -> str:
    call = foretold.call
    given = ", ".join(map(ast.unparse, call.args))
    named = ", ".join(f"{each.arg!r}: {ast.unparse(each.value)}" for each in call.keywords)
    return f"[{foretold.tool.path!r}, [{given}], {{{named}}}]"


def _loops_in(statement: ast.AST, taken: Collection[str]) -> Iterator[tuple[_Loop, frozenset[str]]]:
    """Yield the loops of a statement, each with the variables of those around it.

    Those in functions are left out, for sessions keep their texts; and those in f-strings, where
    Python 3.11 does not say what stands where.
    """
    pending: list[tuple[ast.AST, frozenset[str]]] = [(statement, frozenset())]
    while pending:
        node, around = pending.pop(0)
        if isinstance(node, _APART):
            continue
        inner = around | _names(node.target) if isinstance(node, ast.For) else around
        pending.extend((each, inner) for each in ast.iter_child_nodes(node))
        if (loop := _loop(node, taken)) is not None:
            yield loop, around


def _loop(node: ast.AST, taken: Collection[str]) -> _Loop | None:
    """Return the loop that a node is: a generator only for one who takes all that it has."""
    match node:
        case ast.For(orelse=[]):
            return node
        case ast.ListComp() | ast.SetComp() | ast.DictComp():
            return node if _is_simple(node) else None
        case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp() as each]):
            return each if name in _CONSUMERS and name not in taken and _is_simple(each) else None
        case _:
            return None


def _names(expression: ast.AST) -> frozenset[str]:
    return frozenset(node.id for node in ast.walk(expression) if isinstance(node, ast.Name))


def _bound_by(assignment: ast.Assign) -> set[str]:
    bound = (node for target in assignment.targets for node in ast.walk(target))
    return {each.id for each in bound if isinstance(each, ast.Name) and _is_stored(each)}


def _is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.JoinedStr) or (
        isinstance(value, ast.Constant) and isinstance(value.value, str)
    )


def _is_simple(loop: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> bool:
    first = loop.generators[0]
    return len(loop.generators) == 1 and not first.ifs and not first.is_async


def _is_plain(keyword: ast.keyword) -> bool:
    return keyword.arg in {"reverse", "start"} and isinstance(keyword.value, ast.Constant)


def _target(loop: _Loop) -> ast.expr:
    target = loop.target if isinstance(loop, ast.For) else loop.generators[0].target
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    if not all(isinstance(each, ast.Name) for each in names):
        raise _Unfit
    return target


def _source(loop: _Loop) -> ast.expr:
    return loop.iter if isinstance(loop, ast.For) else loop.generators[0].iter


def _body(loop: _Loop) -> Sequence[ast.AST]:
    match loop:
        case ast.For(body=body):
            return body
        case ast.DictComp(key=key, value=value):
            return [key, value]
        case ast.ListComp(elt=elt) | ast.SetComp(elt=elt) | ast.GeneratorExp(elt=elt):
            return [elt]
    raise AssertionError(loop)


def _certain_calls(loop: _Loop) -> Iterator[ast.Call]:
    """Yield the calls that every turn makes, in no order, unless one before them fails."""
    for part in _body(loop):
        for node in _certain(part):
            if isinstance(node, ast.Call):
                yield node
        if any(isinstance(node, ast.Continue) for node in ast.walk(part)):
            return


def _certain(part: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a statement or expression that are evaluated whatever happens."""
    pending = [part]
    while pending:
        node = pending.pop()
        yield node
        match node:
            case (
                ast.If(test=first)
                | ast.IfExp(test=first)
                | ast.Assert(test=first)
                | ast.BoolOp(values=[first, *_])
                | ast.Try(body=[first, *_])
                | ast.For(iter=first)
                | ast.ListComp(generators=[ast.comprehension(iter=first), *_])
                | ast.SetComp(generators=[ast.comprehension(iter=first), *_])
                | ast.DictComp(generators=[ast.comprehension(iter=first), *_])
                | ast.GeneratorExp(generators=[ast.comprehension(iter=first), *_])
            ):
                pending.append(first)
            case ast.Compare(left=left, comparators=[first, *_]):
                pending += [left, first]
            case _:
                pending.extend(ast.iter_child_nodes(node))


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(each.value for each in call.keywords)]


def _root(target: ast.expr) -> str:
    """Return the name that a target belongs to: `found` of `found[key].names`."""
    while isinstance(target, ast.Subscript | ast.Attribute):
        target = target.value
    if isinstance(target, ast.Name):
        return target.id
    raise _Unfit
