"""Read guest code before it runs: what it imports, which calls it awaits, what cannot work."""

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeGuard

from toolfold.errors import CodeRejected
from toolfold.execution.analysis.deviations import find_deviations
from toolfold.execution.analysis.gaps import Unsupported, find_gaps, may_fail

_AWAITING = frozenset(
    {"as_completed", "create_task", "ensure_future", "run", "shield", "wait", "wait_for"}
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramPlan:
    """What is known of a program from its text alone."""

    source: str
    nodes: tuple[ast.AST, ...]
    """The whole of its syntax tree, from the top."""
    awaited: frozenset[int]
    imports: frozenset[str]
    names: frozenset[str]
    """Every plain name the code reads or binds."""
    unsupported: tuple[Unsupported, ...]
    """What Monty lacks."""
    deviations: tuple[Unsupported, ...]
    """What Monty takes, and does otherwise than Python."""
    may_fail: bool
    """Whether Monty may stop at some of it where Python does not."""
    added: Mapping[str, str] = field(default_factory=dict)
    """The names that it uses without saying so, modules mostly, each with what defines it."""
    written: str = ""
    """The program as it was written, where it was changed since."""

    @property
    def shown(self) -> str:
        """The program as its author knows it."""
        return self.written or self.source


def make_plan(source: str, *, max_bytes: int) -> ProgramPlan:
    """Parse `source`.

    Raises:
        CodeRejected: It is too large, or not Python.
    """
    size = len(source.encode("utf-8", "replace"))
    if size > max_bytes:
        raise CodeRejected(
            f"The code is {size:,} bytes long; at most {max_bytes:,} are taken. "
            "Pass data through tools instead of writing it into the code."
        )
    # Offsets are counted in bytes, so every line must end the way both parsers count it.
    source = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    tree = _parse(source)
    nodes = tuple(ast.walk(tree))
    return ProgramPlan(
        source=source,
        nodes=nodes,
        awaited=_awaited_calls(source, tree),
        imports=frozenset(_imports(nodes)),
        names=frozenset(node.id for node in nodes if isinstance(node, ast.Name)),
        unsupported=find_gaps(nodes),
        deviations=find_deviations(nodes),
        may_fail=may_fail(nodes),
    )


def _parse(source: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            # Python warns of "\d" and the like on the host's standard error.
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except SyntaxError as error:
        line = error.lineno or 1
        lines = source.split("\n")
        text = lines[line - 1].rstrip() if line <= len(lines) else ""
        raise CodeRejected(f"SyntaxError on line {line}: {error.msg}\n    {text[:200]}") from error
    except (RecursionError, MemoryError) as error:
        raise CodeRejected("The code cannot be parsed: it is nested too deeply.") from error
    except ValueError as error:
        raise CodeRejected(
            f"The code cannot be parsed: it holds characters that no Python text has ({error})."
        ) from error


def _imports(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def _awaited_calls(source: str, tree: ast.Module) -> frozenset[int]:
    """Return the byte offsets of calls whose value is awaited.

    A call counts when it is the operand of `await`, an element of an awaited `gather`, or goes
    into a name that the same function awaits or gathers later.
    """
    line_starts = list(
        accumulate((len(line.encode()) + 1 for line in source.split("\n")), initial=0)
    )
    calls: set[ast.Call] = set()
    for scope in _scopes(tree):
        calls.update(_awaited_in(scope))
    return frozenset(line_starts[call.lineno - 1] + call.col_offset for call in calls)


def _scopes(tree: ast.Module) -> Iterator[list[ast.AST]]:
    """Yield the nodes of the module and of each function, without those of functions inside."""
    pending: list[ast.AST] = [tree]
    while pending:
        scope = pending.pop()
        nodes: list[ast.AST] = []
        stack = list(ast.iter_child_nodes(scope))
        while stack:
            node = stack.pop()
            nodes.append(node)
            if isinstance(node, _FUNCTIONS):
                pending.append(node)
            else:
                stack.extend(ast.iter_child_nodes(node))
        yield nodes


def _awaited_in(nodes: list[ast.AST]) -> Iterator[ast.Call]:
    awaited_names: set[str] = set()
    for node in nodes:
        for value in _awaited_by(node):
            for element in _elements(value):
                if isinstance(element, ast.Call):
                    yield element
                elif isinstance(element, ast.Name):
                    awaited_names.add(element.id)
    awaited_names |= _elements_of_awaited_collections(nodes, awaited_names)
    for node in nodes:
        yield from _calls_put_into(node, awaited_names)


def _awaited_by(node: ast.AST) -> Sequence[ast.expr]:
    """Return what a node awaits, or has asyncio await: `create_task(call())` takes no value."""
    match node:
        case ast.Await(value=value):
            return [value]
        case ast.Call(func=ast.Attribute(value=ast.Name(id="asyncio"), attr=name), args=args):
            return args if name in _AWAITING else []
        case ast.Call(func=ast.Attribute(attr="create_task" | "ensure_future"), args=args):
            return args
        case ast.Call(func=ast.Name(id=name), args=args):
            return args if name in _AWAITING - {"run", "wait"} else []
        case _:
            return []


def _elements(expression: ast.expr) -> Iterator[ast.expr]:
    """Yield the values that `expression` holds, looking into displays and comprehensions.

    Those given to a `gather` count too, after the call itself.
    """
    pending = [expression]
    while pending:
        current = pending.pop()
        held = _held(current)
        if held is not None:
            pending.extend(held)
            continue
        yield current
        if _is_gather(current):
            pending.extend(current.args)


def _is_gather(expression: ast.expr) -> TypeGuard[ast.Call]:
    match expression:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name == "gather"
        case _:
            return False


def _held(expression: ast.expr) -> Sequence[ast.expr] | None:
    """Return what a collection, a part of one or a choice is made of; None for all else."""
    match expression:
        case ast.List(elts=held) | ast.Tuple(elts=held) | ast.Set(elts=held):
            return held
        case ast.ListComp(elt=held) | ast.GeneratorExp(elt=held) | ast.SetComp(elt=held):
            return [held]
        case ast.Starred(value=held) | ast.DictComp(value=held):
            return [held]
        case ast.Dict(values=held):
            return held
        case ast.Subscript(value=ast.List() | ast.ListComp() as held, slice=ast.Slice()):
            return [held]
        case ast.IfExp(body=a, orelse=b) | ast.BinOp(left=a, op=ast.Add(), right=b):
            return [a, b]
        case ast.Call(func=ast.Attribute(value=ast.Name() as held, attr="values")):
            return [held]
        case _:
            return None


def _elements_of_awaited_collections(nodes: list[ast.AST], awaited: set[str]) -> set[str]:
    """Return the names of collections whose elements the code awaits one by one.

    `for task in tasks: await task` awaits `task`, so what goes into `tasks` is awaited too.
    """
    collections: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.For | ast.comprehension):
            targets = {name.id for name in ast.walk(node.target) if isinstance(name, ast.Name)}
            if targets & awaited:
                collections |= {
                    element.id
                    for looped_over in _looped_over(node.iter)
                    for element in _elements(looped_over)
                    if isinstance(element, ast.Name)
                }
    return collections


def _looped_over(source: ast.expr) -> Sequence[ast.expr]:
    """Return the collections behind `tasks.items()`, `enumerate(tasks)` or `zip(names, tasks)`."""
    match source:
        case ast.Call(func=ast.Attribute(value=ast.Name() as collection)):
            return [collection]
        case ast.Call(func=ast.Name(id="enumerate" | "zip" | "reversed" | "list"), args=args):
            return args
        case _:
            return [source]


def _calls_put_into(node: ast.AST, names: set[str]) -> Iterator[ast.Call]:
    """Yield the calls whose value this node stores under one of `names`."""
    for target, value in _stores(node):
        if _root(target) in names:
            yield from (each for each in _elements(value) if isinstance(each, ast.Call))


def _stores(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what this node stores, each as the target and the value."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            yield from zip(targets, values, strict=False)
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in targets)
        case (
            ast.AnnAssign(target=target, value=ast.expr() as value)
            | ast.AugAssign(target=target, value=value)
            | ast.NamedExpr(target=target, value=value)
        ):
            yield target, value
        case ast.Call(
            func=ast.Attribute(value=target, attr="append" | "extend" | "add"), args=[value]
        ):
            yield target, value


def _root(target: ast.expr) -> str | None:
    """Return the name that a target belongs to: `tasks` of `tasks[key]`."""
    if isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None
