"""Which tools a program calls, where its text alone tells that for certain. Pure.

What stands as `server.tool(...)` is certain. Anything by which a program could reach a tool without
naming it so is listed as hidden: what is not known to be harmless counts as hidden, too.
"""

import ast
import builtins
import importlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Final

from toolfold.catalog.names import PYTHON_NAMES
from toolfold.errors import CodeRejected
from toolfold.execution.analysis.plan import make_plan

_MAX_SHOWN: Final = 4


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BUILTINS: Final = _words(
    """abs aiter all anext any ascii bin bool bytearray bytes callable chr classmethod complex dict
    dir divmod enumerate filter float format frozenset hasattr hash hex id int isinstance issubclass
    iter len list map max memoryview min next object oct ord pow print property range repr reversed
    round set slice sorted staticmethod str sum super tuple type zip Ellipsis NotImplemented
    __name__ cached progress show
    ArithmeticError AssertionError AttributeError BaseException EOFError Exception IndexError
    KeyError LookupError NameError NotImplementedError OSError OverflowError RuntimeError
    StopAsyncIteration StopIteration TimeoutError TypeError UnicodeDecodeError UnicodeEncodeError
    UnicodeError ValueError ZeroDivisionError FileNotFoundError PermissionError"""
)
"""What can neither turn a text into code nor a name into a value, nor reach a file."""

_ANY: Final = frozenset[str]()
_MODULES: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(
        _words(
            """base64 bisect calendar collections collections.abc csv datetime decimal difflib
            fractions hashlib heapq html itertools json math random re statistics string textwrap
            time unicodedata urllib.parse uuid zoneinfo"""
        ),
        _ANY,
    ),
    "asyncio": _words(
        """gather sleep run wait wait_for create_task as_completed Semaphore Lock Event Queue
        TaskGroup timeout TimeoutError ALL_COMPLETED FIRST_COMPLETED FIRST_EXCEPTION"""
    ),
    "dataclasses": _words("dataclass field asdict astuple replace"),
    "functools": _words("reduce cache lru_cache wraps cmp_to_key"),
    "io": frozenset({"StringIO", "BytesIO"}),
    "operator": _words("itemgetter add mul sub or_ and_"),
    "typing": _words("Any Optional Union List Dict Set Tuple Iterable Callable cast"),
}
"""Modules of Python that lead nowhere else, each with what may be used of it; all where empty."""

_REFLECTIVE: Final = _words("Formatter builtins gc importlib inspect modules os sys types")
_FRAMES: Final = ("f_", "gi_", "cr_", "ag_", "tb_", "co_", "func_")

IsTool = Callable[[str, str], bool]
"""Says whether a module has a tool of that name."""


@dataclass(frozen=True, slots=True)
class ToolUses:
    """What a program calls, as it names them, and by what it may call more."""

    tools: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    """In words for a person; empty where `tools` is surely all."""
    reads: frozenset[str] = frozenset()
    """The names that a session may stand behind: all that it does not bind for itself first."""


def tool_uses(code: str, modules: Collection[str], is_tool: IsTool, *, max_bytes: int) -> ToolUses:
    """Read a program; `modules` are the names under which it has servers and what is built in."""
    try:
        plan = make_plan(code, max_bytes=max_bytes)
        reader = _Reader(plan.nodes[0], frozenset(modules), is_tool)
        reader.read(plan.nodes)
        reads = plan.names - _own(plan.nodes[0], plan.nodes)
    except (CodeRejected, RecursionError):
        return ToolUses(hidden=("it cannot be read",))
    return ToolUses(tuple(dict.fromkeys(reader.tools)), _shown(reader.hidden), frozenset(reads))


class _Reader:
    """Goes through a program once."""

    def __init__(self, tree: ast.AST, modules: frozenset[str], is_tool: IsTool) -> None:
        self.tools: list[str] = []
        self.hidden: list[str] = []
        self._modules = modules
        self._is_tool = is_tool
        self._parents = {
            child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)
        }
        self._bound = frozenset((*_stored(tree), *_imported_names(tree)))
        self._aliases = {name: name for name in _MODULES.keys() - self._bound - modules}
        self._aliases |= dict(_imported_modules(tree))

    def read(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            match node:
                case ast.Name(id=name):
                    self._read_name(node, name)
                case ast.Attribute(attr=attribute):
                    self._read_attribute(node, attribute)
                case ast.Import():
                    self._read_import(node)
                case ast.ImportFrom(module=module, names=aliases, level=level):
                    self._read_import_from(node, "." if level else module or ".", aliases)
                case ast.MatchClass(kwd_attrs=attributes):
                    self._read_attribute_names(node, attributes)
                case _:
                    self._read_binding(node, _bound_name(node))

    def _hide(self, node: ast.AST, words: str) -> None:
        self.hidden.append(f"{words} (line {getattr(node, 'lineno', 1)})")

    def _read_binding(self, node: ast.AST, name: str) -> None:
        if name in self._modules:
            self._hide(node, f"{name} stands for something else")

    def _read_name(self, node: ast.Name, name: str) -> None:
        if name.startswith("__") and name not in _BUILTINS:
            self._hide(node, f"{name} is used")
        elif not isinstance(node.ctx, ast.Load):
            self._read_binding(node, name)
        elif name in self._modules:
            self._read_module(node, name)
        elif name in self._aliases:
            if self._member(node) is None:
                self._hide(node, f"the module {name} is handed on")
        elif self._is_reserved(name):
            self._hide(node, f"{name} is used")

    def _is_reserved(self, name: str) -> bool:
        """Whether Python means something by a name that may lead anywhere."""
        if name in _BUILTINS or name not in PYTHON_NAMES:
            return False
        return name not in self._bound or hasattr(builtins, name)

    def _read_module(self, node: ast.Name, name: str) -> None:
        member = self._member(node)
        if member is None:
            self._hide(node, f"{name} is used other than as {name}.tool(...)")
        elif self._is_tool(name, member.attr):
            call = self._parents.get(member)
            if isinstance(call, ast.Call) and call.func is member:
                self.tools.append(f"{name}.{member.attr}")
            else:
                self._hide(node, f"{name}.{member.attr} is handed on")
        elif name not in _MODULES or not _may_use(name, member.attr):
            self._hide(node, f"{name}.{member.attr} is not known")

    def _member(self, node: ast.Name) -> ast.Attribute | None:
        """Return what is read of a module by its name, where nothing else is done with it."""
        parent = self._parents.get(node)
        is_read = isinstance(parent, ast.Attribute) and isinstance(parent.ctx, ast.Load)
        return parent if is_read else None  # type: ignore[return-value]

    def _read_attribute_names(self, node: ast.AST, attributes: Iterable[str]) -> None:
        for attribute in attributes:
            if attribute.startswith(("_", *_FRAMES)) or attribute in _REFLECTIVE:
                self._hide(node, f".{attribute} is used")

    def _read_attribute(self, node: ast.Attribute, attribute: str) -> None:
        self._read_attribute_names(node, [attribute])
        match node.value:
            case ast.Name(id=name) if name in self._aliases and name not in self._modules:
                if not _may_use(self._aliases[name], attribute):
                    self._hide(node, f"{name}.{attribute} is used")

    def _read_import(self, node: ast.Import) -> None:
        for alias in node.names:
            is_plain = alias.asname is None
            is_known = alias.name in _MODULES and not (is_plain and "." in alias.name)
            if alias.name in self._modules:
                is_known = is_plain
            if not is_known:
                self._hide(node, f"{alias.name} is imported")
            self._read_binding(node, alias.asname or "")

    def _read_import_from(self, node: ast.AST, module: str, aliases: list[ast.alias]) -> None:
        for alias in aliases:
            self._read_binding(node, alias.asname or alias.name)
            is_known = module in _MODULES and module not in self._modules
            if not is_known or alias.name == "*" or not _may_use(module, alias.name):
                self._hide(node, f"{alias.name} is imported from {module}")


def _bound_name(node: ast.AST) -> str:
    """Return the name that a node other than a name binds; "" where it binds none."""
    match node:
        case (
            ast.arg(arg=name)
            | ast.ExceptHandler(name=str(name))
            | ast.FunctionDef(name=name)
            | ast.AsyncFunctionDef(name=name)
            | ast.ClassDef(name=name)
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
            | ast.MatchMapping(rest=str(name))
        ):
            return name
        case _:
            return ""


def _imported_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


def _imported_modules(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names under which a program has modules of Python, each with the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in _MODULES:
                    yield alias.asname or alias.name, alias.name


def _may_use(module: str, attribute: str) -> bool:
    """Whether something of a module of Python leads nowhere else."""
    wanted = _MODULES[module]
    if (
        attribute.startswith("_")
        or attribute in _REFLECTIVE
        or (wanted and attribute not in wanted)
    ):
        return False
    found = importlib.import_module(module)
    return not isinstance(getattr(found, attribute, found), ModuleType)


def _own(tree: ast.AST, nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that a program surely binds before it reads them."""
    first: dict[str, tuple[int, int]] = {}
    for statement in tree.body if isinstance(tree, ast.Module) else []:
        for name in _bound_by(statement):
            end = (statement.end_lineno or 0, statement.end_col_offset or 0)
            is_later = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
            first.setdefault(name, (statement.lineno, statement.col_offset) if is_later else end)
    read_early = {
        node.id
        for node in nodes
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and (node.lineno, node.col_offset) < first.get(node.id, (0, 0))
    }
    return first.keys() - read_early


def _bound_by(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [] if statement.decorator_list else [name]
        case ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [name for target in targets for name in _stored(target)]
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            return [name]
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return [alias.asname or alias.name.partition(".")[0] for alias in aliases]
        case _:
            return []


def _stored(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _shown(reasons: list[str]) -> tuple[str, ...]:
    found = list(dict.fromkeys(reasons))
    more = [f"and {len(found) - _MAX_SHOWN} more"] if len(found) > _MAX_SHOWN else []
    return (*found[:_MAX_SHOWN], *more)
