"""A program read with the catalog at hand: which calls go to which tools, and what is sure."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from toolfold.catalog.tool import Tool
from toolfold.errors import NotFound
from toolfold.execution.analysis.plan import ProgramPlan
from toolfold.sandbox.sandbox import Diagnostic

_CONSTRUCTORS = frozenset(
    {
        "bool",
        "dict",
        "float",
        "int",
        "len",
        "list",
        "range",
        "repr",
        "set",
        "sorted",
        "str",
        "tuple",
    }
)
_SURE_METHODS = frozenset({"format", "items", "join", "keys", "values"})
_WRITTEN_OUT = (
    *(ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.Set, ast.Dict),
    *(ast.ListComp, ast.SetComp, ast.DictComp),
)
_CALL_BACK = frozenset({"filter", "map", "max", "min", "sorted"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_MAX_ASSIGNMENTS = 4


class ToolNames(Protocol):
    """What the review must know of the catalog."""

    @property
    def modules(self) -> Mapping[str, str]: ...

    @property
    def spellings(self) -> Mapping[str, str]: ...

    def functions(self, module: str) -> Mapping[str, Tool]: ...

    def fault(self, module: str) -> str | None: ...

    def find(self, name: str) -> Tool: ...


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call; its name is None where it is given by position."""

    name: str | None
    value: ast.expr


class ProgramAnalysis:
    """One program."""

    def __init__(self, plan: ProgramPlan, names: ToolNames) -> None:
        self._names = names
        self._lines = plan.source.split("\n")
        self.nodes = plan.nodes
        self.modules, self._imported = _bindings(self.nodes)
        self._calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        self.tool_calls = [(node, tool) for node in self._calls if (tool := self.tool(node.func))]

    # The rest is asked for only where something may be wrong.

    @cached_property
    def defined(self) -> Counter[str]:
        """Every name that the code binds, with how often it does."""
        return Counter(_bound_names(self.nodes))

    @cached_property
    def _uses(self) -> Counter[str]:
        names = (node for node in self.nodes if isinstance(node, ast.Name))
        return Counter(name.id for name in names if isinstance(name.ctx, ast.Load))

    @cached_property
    def _values(self) -> dict[str, ast.expr]:
        return {
            target.id: node.value
            for node in self.nodes
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def tool(self, function: ast.expr) -> Tool | None:
        """Return the tool that an expression names, if it does."""
        match function:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                path = f"{self.modules.get(name, '')}.{attribute}"
            case ast.Name(id=name) if name.startswith("mcp__"):
                path = name
            case ast.Name(id=name):
                path = self._imported.get(name, "")
            case _:
                return None
        module = path.partition(".")[0]
        if module not in self._names.spellings and not path.startswith("mcp__"):
            return None
        try:
            return self._names.find(path)
        except NotFound:
            return None

    def call_at(self, diagnostic: Diagnostic) -> tuple[ast.Call, Tool] | None:
        """Return the innermost call of a tool that holds the place of `diagnostic`."""
        around = [
            (call, tool)
            for call, tool in self.tool_calls
            if self._start(call) <= _place(diagnostic) <= self._end(call)
        ]
        return max(around, key=lambda found: self._start(found[0]), default=None)

    def argument_at(self, call: ast.Call, diagnostic: Diagnostic) -> Argument | None:
        """Return the argument that `diagnostic` is about; none for those in `*` and `**`."""
        found = [Argument(each.arg, each.value) for each in call.keywords if each.arg]
        found += [Argument(None, each) for each in call.args if not isinstance(each, ast.Starred)]
        places = [(self._start(each.value), each) for each in found]
        places += [
            (self._start(each), Argument(each.arg, each.value))
            for each in call.keywords
            if each.arg
        ]
        return next((each for start, each in places if start == _place(diagnostic)), None)

    def binds(self, name: str, diagnostic: Diagnostic) -> bool:
        """Whether some scope that can be seen from that place binds `name`.

        Whether it has done so by then only the run can tell: the checker takes branches for
        dead that a function called before them brings to life.
        """
        around = [
            node
            for node in self.nodes
            if isinstance(node, _FUNCTIONS)
            and node.lineno <= diagnostic.line <= (node.end_lineno or node.lineno)
        ]
        return any(name in _bound_in(scope) for scope in [self.nodes[0], *around])

    def is_annotation(self, diagnostic: Diagnostic) -> bool:
        """Whether the place is in an annotation, which the interpreter does not evaluate."""
        annotations = [
            annotation
            for node in self.nodes
            if isinstance(node, ast.arg | ast.AnnAssign | ast.FunctionDef | ast.AsyncFunctionDef)
            and (annotation := getattr(node, "annotation", getattr(node, "returns", None)))
        ]
        return any(self._start(a) <= _place(diagnostic) < self._end(a) for a in annotations)

    def is_guarded(self, line: int, *exceptions: str) -> bool:
        """Whether the code expects one of these exceptions on that line."""
        return is_guarded(self.nodes, line, *exceptions)

    def display(self, value: ast.expr) -> ast.expr:
        """Return the list or dict that `value` is, if it is certain to be what is written.

        Through a name it is where the name is used this once, so that nobody can have changed it.
        """
        if isinstance(value, ast.Name) and self._uses[value.id] == self.defined[value.id] == 1:
            return self._values.get(value.id, value)
        return value

    def written_out(self, value: ast.expr) -> ast.expr | None:
        """Return the expression that gives `value` its type, if that is beyond doubt.

        The checker follows assignments, not what other functions do to globals and to the inside
        of lists and dicts. So the type counts where it is written, or in a name's only assignment.
        """
        for _ in range(_MAX_ASSIGNMENTS):
            if not isinstance(value, ast.Name):
                break
            if self.defined[value.id] != 1 or value.id not in self._values:
                return None
            value = self._values[value.id]
        return value if self._is_sure(value) else None

    def _is_sure(self, value: ast.expr) -> bool:
        match value:
            case ast.Call(func=ast.Name(id=name)):
                return name in _CONSTRUCTORS and not self.defined[name]
            case ast.Call(func=ast.Attribute(attr=name)):
                return name in _SURE_METHODS
            case ast.UnaryOp(operand=inner):
                return isinstance(inner, ast.Constant)
            case _:
                return isinstance(value, _WRITTEN_OUT)

    def called_back(self) -> Iterator[tuple[ast.Call, str, Tool]]:
        """Yield the calls of `map`, `sorted` and the like that would call a tool themselves."""
        for call in self._calls:
            if name := _calling_back(call):
                for given in _callbacks(call):
                    if tool := self.tool(given) or self._tool_inside(given):
                        yield call, name, tool

    def _tool_inside(self, given: ast.expr) -> Tool | None:
        """Return a tool that a function calls, given as a lambda or by its name."""
        functions: list[ast.AST] = [given] if isinstance(given, ast.Lambda) else []
        if isinstance(given, ast.Name):
            functions += [
                node
                for node in self.nodes
                if isinstance(node, ast.FunctionDef) and node.name == given.id
            ]
        inside = {id(node) for function in functions for node in ast.walk(function)}
        return next((tool for call, tool in self.tool_calls if id(call) in inside), None)

    def _start(self, node: ast.expr | ast.keyword) -> tuple[int, int]:
        return node.lineno, self._column(node.lineno, node.col_offset)

    def _end(self, node: ast.expr) -> tuple[int, int]:
        line = node.end_lineno or node.lineno
        return line, self._column(line, node.end_col_offset or 0)

    def _column(self, line: int, offset: int) -> int:
        """Turn the parser's byte offset into the checker's column, which counts characters."""
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return 1 + (
            offset if text.isascii() else len(text.encode()[:offset].decode("utf-8", "replace"))
        )


def is_guarded(nodes: Iterable[ast.AST], line: int, *exceptions: str) -> bool:
    """Whether code expects one of these exceptions on that line."""
    expected = {*exceptions, "Exception", "BaseException"}
    return any(
        isinstance(node, ast.Try)
        and node.body[0].lineno <= line <= (node.body[-1].end_lineno or line)
        and any(_caught(handler) & expected or not handler.type for handler in node.handlers)
        for node in nodes
    )


def _place(diagnostic: Diagnostic) -> tuple[int, int]:
    return diagnostic.line, diagnostic.column


def _calling_back(call: ast.Call) -> str | None:
    """Return the name of a function that calls back those it is given, if `call` calls one."""
    if isinstance(call.func, ast.Name):
        return call.func.id if call.func.id in _CALL_BACK else None
    return "sort" if isinstance(call.func, ast.Attribute) and call.func.attr == "sort" else None


def _callbacks(call: ast.Call) -> list[ast.expr]:
    return [*call.args[:1], *(each.value for each in call.keywords if each.arg == "key")]


def _caught(handler: ast.ExceptHandler) -> set[str]:
    kinds = ast.walk(handler.type) if handler.type else ()
    return {kind.id for kind in kinds if isinstance(kind, ast.Name)}


def _bindings(nodes: Iterable[ast.AST]) -> tuple[dict[str, str], dict[str, str]]:
    """Return which names stand for modules, and which for functions of modules."""
    modules: dict[str, str] = {}
    functions: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                modules[alias.asname or alias.name] = alias.name
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                functions[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return modules, functions


def _bound_in(scope: ast.AST) -> set[str]:
    """Return the names that a module or function binds for itself, and those that it makes global.

    The variables of comprehensions are their own.
    """
    nodes: list[ast.AST] = []
    pending = list(ast.iter_child_nodes(scope))
    while pending:
        node = pending.pop()
        nodes.append(node)
        if isinstance(node, ast.comprehension):
            pending += [node.iter, *node.ifs]
        elif not isinstance(node, _FUNCTIONS):
            pending.extend(ast.iter_child_nodes(node))
    declared = [
        name for node in ast.walk(scope) if isinstance(node, ast.Global) for name in node.names
    ]
    return {*_bound_names(nodes), *declared}


def _bound_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield every name that the code binds, as often as it does."""
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name) | ast.MatchAs(name=str(name)):
                yield name
            case ast.alias():
                yield node.asname or node.name
            case ast.ExceptHandler(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
