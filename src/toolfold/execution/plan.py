"""Read guest code before it runs: what it imports, which calls it awaits, what cannot work."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from toolfold.errors import CodeRejected

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_GATHERERS = frozenset({"gather", "wait", "as_completed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """A construct that the interpreter lacks, and how to write it instead."""

    line: int
    construct: str
    rewrite: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is known of a program from its text alone."""

    source: str
    tree: ast.Module
    awaited: frozenset[int]
    imports: frozenset[str]
    names: frozenset[str]
    """Every plain name the code reads or binds."""
    unsupported: tuple[Unsupported, ...]


def make_plan(source: str, *, max_bytes: int) -> Plan:
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
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    tree = _parse(source)
    nodes = list(ast.walk(tree))
    return Plan(
        source=source,
        tree=tree,
        awaited=_awaited_calls(source, tree),
        imports=frozenset(_imports(nodes)),
        names=frozenset(node.id for node in nodes if isinstance(node, ast.Name)),
        unsupported=tuple(sorted(_unsupported(nodes), key=lambda found: found.line)),
    )


def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError as error:
        line = error.lineno or 1
        lines = source.split("\n")
        text = lines[line - 1].rstrip() if line <= len(lines) else ""
        raise CodeRejected(f"SyntaxError on line {line}: {error.msg}\n    {text[:200]}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise CodeRejected(
            "The code cannot be parsed: it is nested too deeply or holds a NUL character."
        ) from error


def _imports(nodes: list[ast.AST]) -> Iterator[str]:
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
        if isinstance(node, ast.Await):
            for element in _awaited_elements(node.value):
                if isinstance(element, ast.Call):
                    yield element
                elif isinstance(element, ast.Name):
                    awaited_names.add(element.id)
    awaited_names |= _elements_of_awaited_collections(nodes, awaited_names)
    for node in nodes:
        yield from _calls_put_into(node, awaited_names)


def _awaited_elements(expression: ast.expr) -> Iterator[ast.expr]:
    """Yield what an `await` waits for: its operand, or each thing given to a `gather`."""
    yield expression
    if isinstance(expression, ast.Call) and _last_name(expression.func) in _GATHERERS:
        for argument in expression.args:
            yield from _elements(argument)


def _elements(expression: ast.expr) -> Iterator[ast.expr]:
    """Yield the values that `expression` holds, looking into displays and comprehensions."""
    held = _held(expression)
    if held is None:
        yield expression
    else:
        for inner in held:
            yield from _elements(inner)


def _held(expression: ast.expr) -> Sequence[ast.expr] | None:
    """Return what a collection or a choice is made of; None for any other expression."""
    match expression:
        case ast.List(elts=held) | ast.Tuple(elts=held) | ast.Set(elts=held):
            return held
        case ast.ListComp(elt=held) | ast.GeneratorExp(elt=held) | ast.SetComp(elt=held):
            return [held]
        case ast.Starred(value=held) | ast.DictComp(value=held):
            return [held]
        case ast.Dict(values=held):
            return held
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
            target, source = node.target, node.iter
            targets = {name.id for name in ast.walk(target) if isinstance(name, ast.Name)}
            if targets & awaited:
                collections |= {e.id for e in _elements(source) if isinstance(e, ast.Name)}
                collections |= {
                    call.func.value.id
                    for call in (source,)
                    if isinstance(call, ast.Call)
                    and isinstance(call.func, ast.Attribute)
                    and isinstance(call.func.value, ast.Name)
                }
    return collections


def _calls_put_into(node: ast.AST, names: set[str]) -> Iterator[ast.Call]:
    """Yield the calls whose value this node stores under one of `names`."""
    match node:
        case ast.Assign(targets=targets, value=value):
            stored = any(_stores_into(target, names) for target in targets)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            stored = _stores_into(target, names)
        case ast.AugAssign(target=target, value=value):
            stored = _stores_into(target, names)
        case ast.NamedExpr(target=target, value=value):
            stored = _stores_into(target, names)
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend" | "add"),
            args=[value],
        ):
            stored = name in names
        case _:
            return
    if stored:
        yield from (e for e in _elements(value) if isinstance(e, ast.Call))


def _stores_into(target: ast.expr, names: set[str]) -> bool:
    if isinstance(target, ast.Subscript):
        target = target.value
    return isinstance(target, ast.Name) and target.id in names


def _last_name(function: ast.expr) -> str:
    match function:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def _unsupported(nodes: list[ast.AST]) -> Iterator[Unsupported]:
    for node in nodes:
        for kinds, construct, rewrite in _GAPS:
            if isinstance(node, kinds):
                yield Unsupported(
                    line=getattr(node, "lineno", 1), construct=construct, rewrite=rewrite
                )
        if isinstance(node, ast.ClassDef):
            yield from _unsupported_in_class(node)


def _unsupported_in_class(node: ast.ClassDef) -> Iterator[Unsupported]:
    if node.bases or node.keywords:
        yield Unsupported(
            line=node.lineno,
            construct="class inheritance",
            rewrite="use a plain class, a @dataclass or a dict; raise RuntimeError or ValueError "
            "instead of an exception class of your own",
        )
    for method in node.body:
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and method.decorator_list:
            yield Unsupported(
                line=method.lineno,
                construct="decorators on methods",
                rewrite="use a plain method, or a function outside the class",
            )


_GAPS: tuple[tuple[type[ast.AST] | tuple[type[ast.AST], ...], str, str], ...] = (
    ((ast.Yield, ast.YieldFrom), "generators (yield)", "collect into a list and return it"),
    (ast.AsyncFor, "async for", "await the list, then use a plain for"),
    (ast.AsyncWith, "async with", "await the calls directly; toolfold limits concurrency itself"),
    (ast.Delete, "del", "use .pop(key), or assign None"),
    (ast.TryStar, "except*", "use except"),
)
