"""skill.py read: its function, how it is called, and what cannot be in one."""

import ast
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from toolfold.errors import BadInput

MAX_BYTES: Final = 64 << 10
_MAX_DEFAULT_CHARS: Final = 40
_KNOWN_TYPES: Final = frozenset(
    {
        *("bool", "bytes", "dict", "float", "frozenset", "int", "list", "object", "set", "str"),
        *("tuple", "Any", "Optional", "Union"),
    }
)
STUB_IMPORTS: Final = "import typing as __typing__"
"""What the stubs of functions need, under a name that no program has."""

_OF_TYPING: Final = re.compile(r"\b(Any|Optional|Union)\b")

_PLAIN_NODES: Final = (
    *(ast.Name, ast.Constant, ast.Subscript, ast.BinOp, ast.BitOr, ast.Tuple, ast.List, ast.Load),
)

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """The function of a skill as callers see it."""

    parameters: str
    """`(days: int = 7) -> str`."""
    documentation: str
    stub: str
    """Its declaration for a type checker; what it says of types that only skill.py knows is Any."""
    names: tuple[str, ...]
    """Those of its parameters."""


def parse(source: str) -> ast.Module:
    """Parse the text of a skill.py.

    Raises:
        BadInput: It is too large, or not Python.
    """
    if len(source.encode("utf-8", "replace")) > MAX_BYTES:
        raise BadInput(f"skill.py is larger than {MAX_BYTES >> 10} KB")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except SyntaxError as error:
        raise BadInput(
            f"SyntaxError on line {error.lineno or 1} of skill.py: {error.msg}"
        ) from error
    except (RecursionError, MemoryError, ValueError) as error:
        raise BadInput("skill.py cannot be parsed: it is nested too deeply") from error


def read_function(tree: ast.Module, name: str, *, symbol: str) -> Function:
    """Return the function `name` of a skill.py.

    Raises:
        BadInput: There is none, it is not documented, or skill.py holds what no skill may.
    """
    node = _function_node(tree, name)
    documentation = ast.get_docstring(node)
    if not documentation:
        raise BadInput(
            f'{name}() has no docstring: say in one what it does, """Like this.""", '
            "as its first line"
        )
    _refuse_loose_awaits(tree)
    return Function(
        parameters=_signature(node),
        documentation=documentation,
        stub=_stub(node, symbol),
        names=tuple(
            argument.arg
            for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        ),
    )


def _function_node(tree: ast.Module, name: str) -> FunctionNode:
    functions = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    if name in functions:
        return functions[name]
    there = f"; it defines {', '.join(list(functions)[:5])}" if functions else ""
    raise BadInput(
        f"skill.py has no function {name!r}, which must be called as the skill is{there}"
    )


def _refuse_loose_awaits(tree: ast.Module) -> None:
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith):
            raise BadInput(f"line {node.lineno} of skill.py awaits: do so inside a function")
        if isinstance(node, ast.Return):
            raise BadInput(f"line {node.lineno} of skill.py returns outside a function")
        pending.extend(ast.iter_child_nodes(node))


def _signature(node: FunctionNode) -> str:
    written = _written(node.args, annotation=ast.unparse, default=_short)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"({written}){returns}"


def _stub(node: FunctionNode, symbol: str) -> str:
    written = _written(node.args, annotation=_known, default=lambda _: "...")
    keyword = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = node.returns and _known(node.returns)
    result = f" -> {returns}" if returns else ""
    return f"{keyword} {symbol}({written}){result}: ..."


def _written(
    arguments: ast.arguments,
    *,
    annotation: Callable[[ast.expr], str],
    default: Callable[[ast.expr], str],
) -> str:
    """Write parameters as people do."""

    def one(argument: ast.arg, value: ast.expr | None = None) -> str:
        said = argument.annotation and annotation(argument.annotation)
        text = f"{argument.arg}: {said}" if said else argument.arg
        if value is None:
            return text
        return f"{text} = {default(value)}" if said else f"{text}={default(value)}"

    positional = [*arguments.posonlyargs, *arguments.args]
    values = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    parts = [one(each, value) for each, value in zip(positional, values, strict=True)]
    if arguments.posonlyargs:
        parts.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg:
        parts.append(f"*{one(arguments.vararg)}")
    elif arguments.kwonlyargs:
        parts.append("*")
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    parts += [one(each, value) for each, value in named]
    if arguments.kwarg:
        parts.append(f"**{one(arguments.kwarg)}")
    return ", ".join(parts)


def _known(annotation: ast.expr) -> str:
    """Return an annotation that means the same anywhere; nothing, which is Any, of others."""
    nodes = list(ast.walk(annotation))
    is_plain = all(isinstance(node, _PLAIN_NODES) for node in nodes)
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    is_text = any(isinstance(node, ast.Constant) and isinstance(node.value, str) for node in nodes)
    if not is_plain or is_text or not names <= _KNOWN_TYPES:
        return ""
    return _OF_TYPING.sub(r"__typing__.\1", ast.unparse(annotation))


def _short(default: ast.expr) -> str:
    text = ast.unparse(default)
    return text if len(text) <= _MAX_DEFAULT_CHARS else "..."
