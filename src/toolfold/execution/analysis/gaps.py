"""What guest code cannot use in the sandbox, and how to write it instead."""

import ast
import builtins
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_SETTLE = "await asyncio.gather(...) over the calls; toolfold limits concurrency itself"
_PLAIN_TYPES = "annotate with dict, list or Any"

_SYNTAX: dict[type[ast.AST], tuple[str, str]] = {
    ast.Yield: ("yield (generators)", "collect into a list and return it"),
    ast.YieldFrom: ("yield (generators)", "collect into a list and return it"),
    ast.AsyncFor: ("async for", "await the list, then use a plain for"),
    ast.AsyncWith: ("async with", "await the calls directly; toolfold limits concurrency itself"),
    ast.Delete: ("del", "use .pop(key), or assign None"),
    ast.TryStar: ("except*", "use except"),
}
if sys.version_info >= (3, 12):
    _SYNTAX[ast.TypeAlias] = ("type", "leave it out, or assign the type to a name")

# Names of modules that are there. Whatever else such a module lacks, the checker finds.
MISSING_NAMES: dict[str, str] = {
    "asyncio.Lock": "leave it out; guest code runs in one thread",
    "asyncio.Queue": "use a list",
    "asyncio.Semaphore": _SETTLE,
    "asyncio.TaskGroup": _SETTLE,
    "asyncio.as_completed": _SETTLE,
    "asyncio.create_task": _SETTLE,
    "asyncio.ensure_future": _SETTLE,
    "asyncio.timeout": "leave it out; calls and runs have time limits of their own",
    "asyncio.to_thread": "call the function directly",
    "asyncio.wait": _SETTLE,
    "asyncio.wait_for": "await the call directly; calls have a time limit of their own",
    "collections.OrderedDict": "use dict; it keeps its order",
    "dataclasses.asdict": "write the dict out, or keep the records as dicts",
    "dataclasses.astuple": "write the tuple out",
    "dataclasses.fields": "write the names out",
    "dataclasses.replace": "make a new object",
    "datetime.UTC": "use datetime.timezone.utc",
    "functools.cmp_to_key": "sort by key=",
    "functools.wraps": "leave it out",
    "json.JSONEncoder": "convert the values before json.dumps",
    "os.environ": "write the value into the code; there is no environment here",
    "os.getenv": "write the value into the code; there is no environment here",
    "re.VERBOSE": "write the pattern in one line",
    "re.X": "write the pattern in one line",
    "re.subn": "use re.sub and re.findall",
    "sys.exit": "end the code by if and else, or raise RuntimeError",
    "typing.NamedTuple": "use collections.namedtuple",
    "typing.TypedDict": _PLAIN_TYPES,
    "typing.cast": "leave it out",
}

# Builtins that the interpreter lacks.
MISSING_BUILTINS: dict[str, str] = {
    "ConnectionError": "catch OSError; a tool that fails raises RuntimeError",
    "EOFError": "catch Exception",
    "UnicodeError": "catch ValueError",
    "__import__": "use an import statement",
    "ascii": "use repr()",
    "bytearray": "use bytes, or a list of numbers",
    "callable": "know the type, or use isinstance()",
    "compile": "write the code out",
    "dir": "print the value instead",
    "globals": "keep the values in a dict of your own",
    "input": "write the value into the code; nobody can answer",
    "issubclass": "use isinstance()",
    "memoryview": "use bytes",
    "vars": "keep the values in a dict of your own",
}

_KEYWORDS: dict[tuple[str, str], str] = {
    ("asyncio.gather", "return_exceptions"): "catch the error in an async function around each "
    "call, and gather those",
    ("json.dumps", "default"): "convert the values first, such as str(value)",
    ("dataclass", "order"): "sort by key=",
}


_EXCEPTIONS = frozenset(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
)
_TEXT_FUNCTIONS = frozenset({"str", "repr", "format", "chr", "hex"})
_TEXT_METHODS = frozenset({"format", "join", "strip", "lower", "upper", "replace", "decode"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """A construct that the interpreter lacks, and how to write it instead."""

    line: int
    construct: str
    rewrite: str


def find_gaps(nodes: Iterable[ast.AST]) -> tuple[Unsupported, ...]:
    """Return what is certain not to work of a program's nodes, in the order of lines."""
    found: dict[tuple[int, str], Unsupported] = {}
    for node in nodes:
        for construct, rewrite in _gaps_of(node):
            line = getattr(node, "lineno", 1)
            found[line, construct] = Unsupported(line=line, construct=construct, rewrite=rewrite)
    return tuple(sorted(found.values(), key=lambda gap: gap.line))


def may_fail(nodes: Iterable[ast.AST]) -> bool:
    """Whether Monty may stop at what Python takes: exceptions of what may not be text."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in _EXCEPTIONS
        and [_is_text(argument) for argument in node.args] == [None]
        for node in nodes
    )


def _is_text(value: ast.expr) -> bool | None:
    """Whether an expression is sure to be text, or sure not to be; None if it may be either."""
    match value:
        case ast.Constant(value=constant):
            return isinstance(constant, str)
        case ast.JoinedStr():
            return True
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _is_text(left) or _is_text(right)
        case ast.BinOp(left=left, op=ast.Mod()):
            return _is_text(left)
        case ast.Call(func=ast.Name(id=name)):
            return True if name in _TEXT_FUNCTIONS else None
        case ast.Call(func=ast.Attribute(attr=name)):
            return True if name in _TEXT_METHODS else None
        case (
            ast.Tuple()
            | ast.List()
            | ast.Dict()
            | ast.Set()
            | ast.ListComp()
            | ast.DictComp()
            | ast.SetComp()
        ):
            return False
        case _:
            return None


def _gaps_of(node: ast.AST) -> Iterable[tuple[str, str]]:
    """Return what of this node does not work. Called for every node, so it decides by type."""
    if isinstance(node, ast.Call):
        return _gaps_of_call(node)
    if isinstance(node, ast.Attribute):
        return _gaps_of_attribute(node)
    if isinstance(node, ast.ImportFrom):
        return _gaps_of_import(node)
    if isinstance(node, ast.ClassDef):
        return _gaps_of_class(node)
    return [_SYNTAX[type(node)]] if type(node) in _SYNTAX else ()


def _gaps_of_class(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    if node.bases or node.keywords:
        yield (
            "class inheritance",
            "use a plain class, a @dataclass or a dict; raise RuntimeError or ValueError "
            "instead of an exception class of your own",
        )
    for method in node.body:
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and method.decorator_list:
            yield (
                f"a decorator on the method {method.name!r}",
                "use a plain method, or a function outside the class",
            )


def _gaps_of_import(node: ast.ImportFrom) -> Iterator[tuple[str, str]]:
    for alias in node.names:
        path = f"{node.module}.{alias.name}"
        if alias.name == "*":
            yield "import *", "import the module, or name what you import"
        elif path in MISSING_NAMES:
            yield path, MISSING_NAMES[path]


def _gaps_of_attribute(node: ast.Attribute) -> Iterable[tuple[str, str]]:
    path = f"{node.value.id}.{node.attr}" if isinstance(node.value, ast.Name) else ""
    return [(path, MISSING_NAMES[path])] if path in MISSING_NAMES else ()


def _gaps_of_call(call: ast.Call) -> Iterator[tuple[str, str]]:
    for keyword in call.keywords:
        function, name = _dotted(call.func), keyword.arg or ""
        if (function, name) in _KEYWORDS:
            yield f"{function}({name}=...)", _KEYWORDS[function, name]
    match call:
        case ast.Call(func=ast.Name(id=name)) if name in _EXCEPTIONS:
            if not _takes_one_text(call):
                yield (
                    f"{name}() of anything but one text",
                    f'put it into one text: {name}(f"...")',
                )
        case ast.Call(func=ast.Name(id="next"), args=[ast.GeneratorExp(), *_]):
            yield (
                "next() of a generator expression",
                "take the first of a list: ([x for x in xs if ...] or [None])[0]",
            )
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr="sub")):
            if any(isinstance(argument, ast.Lambda) for argument in call.args):
                yield "re.sub() with a function", "loop over re.finditer() and build the text"


def _takes_one_text(call: ast.Call) -> bool:
    """Whether an exception is made of nothing, or of one value that may be text."""
    match call:
        case ast.Call(args=[], keywords=[]) | ast.Call(args=[ast.Starred()], keywords=[]):
            return True
        case ast.Call(args=[only], keywords=[]):
            return _is_text(only) is not False
        case _:
            return False


def _dotted(function: ast.expr) -> str:
    match function:
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return f"{module}.{name}"
        case ast.Name(id=name):
            return name
        case _:
            return ""
