"""A function of a program as a source of its own, with the imports and helpers that it needs."""

import ast
import warnings
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from toolfold.errors import BadInput

_Defining: TypeAlias = (
    ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom | ast.Assign
)
_CALLABLE: Final = frozenset({"re.compile", "frozenset", "set", "tuple", "dict", "list", "Decimal"})


class _Piece(NamedTuple):
    """A statement at the top of a program that defines names."""

    node: _Defining
    text: str


def definition_in(sources: Iterable[str], name: str) -> str | None:
    """Return the function `name` of the last program that defines it, with all that it needs.

    Later programs see what earlier ones defined. None if no program defines it.

    Raises:
        BadInput: It needs a variable that is no constant, so it does not work elsewhere.
    """
    pieces: list[_Piece] = []
    for source in sources:
        pieces += _pieces(source)
    known = {bound: at for at, piece in enumerate(pieces) for bound in _binds(piece.node)}
    start = known.get(name)
    if start is None or not isinstance(pieces[start].node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    wanted, pending = set(), [start]
    while pending:
        at = pending.pop()
        if at in wanted:
            continue
        wanted.add(at)
        for used in sorted(_uses(pieces[at].node)):
            if used in known:
                _check_portable(pieces[known[used]].node, name, used)
                pending.append(known[used])
    return _joined([pieces[at] for at in sorted(wanted)])


def _joined(pieces: list[_Piece]) -> str:
    """Write imports, then constants, then functions, each kind in its order."""
    imports = [each.text for each in pieces if isinstance(each.node, ast.Import | ast.ImportFrom)]
    constants = [each.text for each in pieces if isinstance(each.node, ast.Assign)]
    functions = [
        each.text
        for each in pieces
        if not isinstance(each.node, ast.Import | ast.ImportFrom | ast.Assign)
    ]
    blocks = ["\n".join(imports), "\n".join(constants)]
    head = "\n\n".join(block for block in blocks if block)
    return "\n\n\n".join(block for block in [head, *functions] if block) + "\n"


def _pieces(source: str) -> list[_Piece]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    lines = source.split("\n")
    return [_Piece(each, _text(source, lines, each)) for node in tree.body for each in _parts(node)]


def _parts(node: ast.stmt) -> list[_Defining]:
    """Return the definitions of a statement: one for each name that it imports."""
    match node:
        case ast.Import(names=names):
            return [ast.copy_location(ast.Import([each]), node) for each in names]
        case ast.ImportFrom(module=module, names=names, level=level):
            each_alone = (ast.ImportFrom(module, [each], level) for each in names)
            return [ast.copy_location(each, node) for each in each_alone]
        case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
            return [ast.copy_location(ast.Assign(targets=[target], value=value), node)]
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Assign():
            return [node]
    return []


def _text(source: str, lines: Sequence[str], node: _Defining) -> str:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return ast.unparse(node)
    if not _has_own_lines(node, lines):
        return ast.get_source_segment(source, node) or ast.unparse(node)
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
    return "\n".join(lines[first - 1 : node.end_lineno])


def _has_own_lines(node: _Defining, lines: Sequence[str]) -> bool:
    """Whether nothing else stands on the lines of a statement: no `a = 1; b = 2`."""
    after = lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset or 0 :]
    rest = after.strip()
    return node.col_offset == 0 and (not rest or rest.startswith(b"#"))


def _binds(node: _Defining) -> list[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    if isinstance(node, ast.Assign):
        return [
            each.id
            for target in node.targets
            for each in ast.walk(target)
            if isinstance(each, ast.Name)
        ]
    return [node.name]


def _uses(node: _Defining) -> set[str]:
    """Return the names that a definition may take from around it."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return set()
    names = {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    }
    return names - _local_everywhere(node)


def _local_everywhere(node: _Defining) -> set[str]:
    """Return the names of a function's own that it cannot mean otherwise."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return set()
    declared = {
        name
        for each in ast.walk(node)
        if isinstance(each, ast.Global | ast.Nonlocal)
        for name in each.names
    }
    arguments = node.args
    bound = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    bound |= {each.arg for each in (arguments.vararg, arguments.kwarg) if each}
    pending: list[ast.AST] = list(node.body)
    while pending:
        inner = pending.pop()
        match inner:
            case ast.Name(id=name, ctx=ast.Store()):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                bound.add(name)
                continue
            case ast.alias():
                bound.add((inner.asname or inner.name).partition(".")[0])
            case ast.Lambda() | ast.ClassDef() | ast.comprehension():
                continue
        pending.extend(ast.iter_child_nodes(inner))
    return bound - declared


def _check_portable(node: _Defining, function: str, used: str) -> None:
    if isinstance(node, ast.Assign) and not _is_constant(node.value):
        raise BadInput(
            f"{function}() uses {used!r}, a variable of the run that is no constant: "
            "make it a parameter, or compute it inside the function"
        )


def _is_constant(value: ast.expr) -> bool:
    """Whether a value means the same wherever it is written: literals, patterns, collections."""
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            if ast.unparse(node.func) not in _CALLABLE:
                return False
        elif isinstance(node, ast.Await | ast.NamedExpr | ast.Lambda | ast.Yield):
            return False
    return True
