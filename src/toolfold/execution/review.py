"""Which findings of the type checker stop a run, and what the model is told.

A type checker rejects correct code too: sums over mixed dictionaries, `re.match(...).group()`. So
only findings about tools and undefined names count, and of those about types only the sure ones.
"""

import ast
import builtins
import difflib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from toolfold.catalog.stubs import signature
from toolfold.catalog.tool import Tool
from toolfold.execution.plan import Plan
from toolfold.execution.typewords import surely_differ
from toolfold.sandbox.sandbox import Diagnostic

_ARGUMENT_RULES = frozenset(
    {
        "invalid-argument-type",
        "missing-argument",
        "missing-typed-dict-key",
        "parameter-already-assigned",
        "too-many-positional-arguments",
        "unknown-argument",
    }
)
_QUOTED = re.compile(r"`([^`]*)`")
_AVAILABLE = (
    "asyncio base64 bisect collections copy csv dataclasses datetime decimal functools hashlib "
    "itertools json math os.path pathlib random re time tomllib typing unicodedata"
)


class ToolNames(Protocol):
    """What the review must know of the catalog."""

    @property
    def modules(self) -> Mapping[str, str]: ...

    def functions(self, module: str) -> Mapping[str, Tool]: ...

    def fault(self, module: str) -> str | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One reason not to run the code, with the fix."""

    line: int
    message: str


def review(plan: Plan, diagnostics: Iterable[Diagnostic], names: ToolNames) -> list[Finding]:
    """Return the findings that stop a run, in the order of their lines, each once."""
    reviewer = _Reviewer(plan, names)
    found: dict[tuple[int, str], Finding] = {}
    diagnostics = list(diagnostics)
    misspelt = {found.line for found in diagnostics if found.rule == "unknown-argument"}
    for diagnostic in diagnostics:
        if diagnostic.rule == "missing-argument" and diagnostic.line in misspelt:
            continue  # the misspelt one is the missing one
        for message in reviewer.messages(diagnostic):
            line = diagnostic.line
            found.setdefault((line, message), Finding(line=line, message=message))
    return sorted(found.values(), key=lambda finding: finding.line)


class _Reviewer:
    """Reads the diagnostics of one program."""

    def __init__(self, plan: Plan, names: ToolNames) -> None:
        self._plan = plan
        self._names = names
        self._nodes = list(ast.walk(plan.tree))
        self._modules, self._imported = _bindings(self._nodes)
        self._defined = _defined_names(self._nodes)

    def messages(self, diagnostic: Diagnostic) -> Iterator[str]:
        quoted = _QUOTED.findall(diagnostic.message)
        match diagnostic.rule:
            case "invalid-syntax":
                yield f"SyntaxError: {diagnostic.message}"
            case "unresolved-reference":
                if "exec" not in self._plan.names:
                    yield self._undefined(quoted[0])
            case "unresolved-import":
                if not self._is_guarded(diagnostic.line):
                    yield self._bad_import(quoted)
            case "unresolved-attribute":
                yield from self._bad_attribute(diagnostic)
            case rule if rule in _ARGUMENT_RULES:
                yield from self._bad_argument(diagnostic, quoted)

    def _undefined(self, name: str) -> str:
        if name in self._names.modules or name in {"tools", *sys.stdlib_module_names}:
            return f"{name!r} is not imported. Add `import {name}` at the top."
        owners = [m for m in self._names.modules if name in self._names.functions(m)]
        if owners:
            return (
                f"{name!r} is not defined. Did you mean `{owners[0]}.{name}` (import {owners[0]})?"
            )
        near = difflib.get_close_matches(name, [*self._defined, *dir(builtins)], n=1)
        if near:
            return f"{name!r} is not defined. Did you mean {near[0]!r}?"
        return f"{name!r} is not defined."

    def _bad_import(self, quoted: list[str]) -> str:
        module = quoted[0]
        if len(quoted) > 1 and module in self._names.modules:
            return self._no_such_tool(module, quoted[1])
        candidates = [*self._names.modules, "tools"]
        near = difflib.get_close_matches(module, candidates, n=1)
        if near:
            return f"There is no module {module!r}. Did you mean {near[0]!r}?"
        if module.partition(".")[0] in sys.stdlib_module_names:
            return (
                f"The module {module!r} is not available in this sandbox. "
                f"Write what you need from it yourself; available are: {_AVAILABLE}."
            )
        return (
            f"There is no module {module!r}. Packages cannot be installed here; the servers are: "
            f"{', '.join(sorted(self._names.modules)) or 'none'}."
        )

    def _is_guarded(self, line: int) -> bool:
        """Whether the code expects that this import may fail."""
        return any(
            isinstance(node, ast.Try) and node.lineno <= line <= (node.end_lineno or line)
            for node in self._nodes
        )

    def _bad_attribute(self, diagnostic: Diagnostic) -> Iterator[str]:
        for node in self._nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module = self._modules.get(node.value.id)
                if module and _starts_at(node, diagnostic):
                    yield self._no_such_tool(module, node.attr)
                    return

    def _no_such_tool(self, module: str, function: str) -> str:
        functions = self._names.functions(module)
        if not functions and (fault := self._names.fault(module)):
            return f"The server {self._names.modules[module]!r} cannot be used: {fault}"
        near = difflib.get_close_matches(function, functions, n=3, cutoff=0.5)
        if not near:
            return f"{module} has no tool {function!r}. `tools.search(...)` finds tools."
        best = signature(functions[near[0]])
        others = f" (or {', '.join(near[1:])})" if near[1:] else ""
        return f"{module} has no tool {function!r}. Did you mean {best}{others}?"

    def _bad_argument(self, diagnostic: Diagnostic, quoted: list[str]) -> Iterator[str]:
        tool = self._called_tool(diagnostic, quoted)
        if tool is None:
            return
        if diagnostic.rule == "unknown-argument":
            yield f"{tool.path} has no parameter {quoted[0]!r}.{_nearest(tool, quoted[0])}"
        elif diagnostic.rule == "missing-argument":
            missing = ", ".join(quoted[:-1])
            yield f"{tool.path} needs {missing}. Signature: {signature(tool)}"
        elif diagnostic.rule == "invalid-argument-type":
            expected, found = quoted[-2:]
            if surely_differ(expected, found):
                parameter = self._parameter_at(diagnostic)
                what = f"{tool.path}: {parameter}" if parameter else tool.path
                yield f"{what} takes {expected}, not {found}."
        else:
            yield f"{tool.path}: {diagnostic.message}. Signature: {signature(tool)}"

    def _called_tool(self, diagnostic: Diagnostic, quoted: list[str]) -> Tool | None:
        """Return the tool whose call holds the diagnostic, if it is about a tool at all."""
        calls = [
            (node, tool)
            for node in self._nodes
            if isinstance(node, ast.Call)
            and _holds(node, diagnostic)
            and (tool := self._tool(node.func))
        ]
        if not calls:
            return None
        _, tool = max(calls, key=lambda call: (call[0].lineno, call[0].col_offset))
        if diagnostic.rule in {"unknown-argument", "missing-argument", "invalid-argument-type"}:
            return tool if {tool.function, tool.listed.name} & set(quoted) else None
        return tool

    def _tool(self, function: ast.expr) -> Tool | None:
        match function:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                module = self._modules.get(name)
            case ast.Name(id=name):
                module, attribute = self._imported.get(name, (None, name))
            case _:
                return None
        if module is None:
            return None
        functions = self._names.functions(module)
        if attribute in functions:
            return functions[attribute]
        return next((t for t in functions.values() if t.listed.name == attribute), None)

    def _parameter_at(self, diagnostic: Diagnostic) -> str | None:
        for node in self._nodes:
            if (
                isinstance(node, ast.keyword)
                and node.arg
                and (_starts_at(node, diagnostic) or _starts_at(node.value, diagnostic))
            ):
                return node.arg
        return None


def _nearest(tool: Tool, name: str) -> str:
    properties = tool.listed.input_schema.get("properties")
    known = list(properties) if isinstance(properties, dict) else []
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"{hint} Signature: {signature(tool)}"


def _bindings(nodes: list[ast.AST]) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    """Return which names stand for modules, and which for functions of modules."""
    modules: dict[str, str] = {}
    functions: dict[str, tuple[str, str]] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                modules[alias.asname or alias.name] = alias.name
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                functions[alias.asname or alias.name] = (node.module, alias.name)
    return modules, functions


def _defined_names(nodes: list[ast.AST]) -> set[str]:
    defined: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.arg):
            defined.add(node.arg)
    return defined


def _starts_at(node: ast.expr | ast.keyword, diagnostic: Diagnostic) -> bool:
    return (node.lineno, node.col_offset + 1) == (diagnostic.line, diagnostic.column)


def _holds(node: ast.Call, diagnostic: Diagnostic) -> bool:
    start = (node.lineno, node.col_offset + 1)
    end = (node.end_lineno or node.lineno, (node.end_col_offset or 0) + 1)
    return start <= (diagnostic.line, diagnostic.column) <= end
