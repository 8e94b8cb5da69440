"""Which modules a program means: servers need no import, and share names with Python. Pure.

A server keeps the name that its user gave it. Where the sandbox has a module of that name already,
the server's has another one there, and the program is rewritten so that `time.get_current_time()`
is the tool and `time.sleep()` is Python's. Lines stay where they are.
"""

import ast
import builtins
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from toolfold.catalog.names import as_written, python_name, sandbox_name
from toolfold.execution.analysis.plan import ProgramPlan, make_plan

_OURS: Final = ("runs", "tools")
_ROOT: Final = "toolfold"
_ITEM: Final = "_toolfold_item"
_GET: Final = "_toolfold_get"
_ROUND: Final = "_toolfold_round"
_HELPERS: Final = {
    _ITEM: f"def {_ITEM}(value, key):\n"
    "    return value if isinstance(value, (str, int, float, list)) else value[key]",
    _GET: f"def {_GET}(value, key, default=None):\n"
    "    return value if isinstance(value, (str, int, float, list)) else value.get(key, default)",
    # Monty rounds the digits that a number shows, Python the number.
    _ROUND: f"def {_ROUND}(value, ndigits=None):\n"
    "    is_plain = isinstance(value, float) and ndigits is not None and ndigits >= 0\n"
    "    return float(format(value, f'.{ndigits}f')) if is_plain else round(value, ndigits)",
}
_BUILTINS: Final = frozenset(dir(builtins))


class ModuleNames(Protocol):
    """What must be known of the catalog."""

    @property
    def spellings(self) -> Mapping[str, str]: ...

    @property
    def servers(self) -> Mapping[str, str]: ...

    @property
    def unwrapped(self) -> Collection[str]: ...

    def has(self, module: str, function: str) -> bool: ...


def used_modules(plan: ProgramPlan, names: ModuleNames) -> frozenset[str]:
    """Return the modules whose tools must be known before a program can be resolved."""
    bound = _bound(plan.nodes)
    early = _used_before_bound(plan.nodes[0], bound)
    named = {*plan.imports, *(plan.names - bound), *early.values()}
    spellings = names.spellings
    return frozenset(spellings[each] for each in named if each in spellings)


def resolve(
    plan: ProgramPlan, names: ModuleNames, session: Mapping[str, str | None]
) -> ProgramPlan:
    """Return a program with the imports that it needs and does not write.

    `session` has the names that its session binds, each with the statement that imports it, if one
    does. Names that the program or its session bind are theirs.
    """
    program = _Program(plan, names, session)
    program.read()
    if program.edits:
        written = plan.source
        plan = make_plan(edited(written, program.edits), max_bytes=16 * len(written) + 4096)
        plan = replace(plan, written=written)
    added = {name: text for name, text in program.added.items() if name not in session}
    return replace(plan, added=added, imports=plan.imports | program.modules)


def with_added(plan: ProgramPlan) -> ProgramPlan:
    """Return a plan to which the added imports belong as well: its calls are calls of tools too."""
    if not plan.added:
        return plan
    tree = ast.parse("\n".join(plan.added.values()))
    return replace(plan, nodes=(*plan.nodes, *ast.walk(tree)))


def as_people_write(text: str) -> str:
    """Return a text of the sandbox's as its author wrote it, or would have."""
    text = as_written(text)
    if not any(helper in text for helper in _HELPERS):
        return text
    return ast.unparse(ast.fix_missing_locations(_Restored().visit(ast.parse(text))))


class _Restored(ast.NodeTransformer):
    """Takes back what `_read_item` did."""

    def visit_Call(self, node: ast.Call) -> ast.expr:  # its name is the library's
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id="_toolfold_item"), args=[value, key]):
                return ast.Subscript(value, key, ast.Load())
            case ast.Call(func=ast.Name(id="_toolfold_round") as name):
                name.id = "round"
                return node
            case ast.Call(func=ast.Name(id="_toolfold_get"), args=[value, *rest]):
                return ast.Call(ast.Attribute(value, "get", ast.Load()), rest, [])
            case _:
                return node


@dataclass(frozen=True, slots=True)
class SourceEdit:
    """One piece of the text, by its lines and byte offsets, and what stands there instead."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str

    @classmethod
    def before(cls, node: ast.expr, text: str) -> "SourceEdit":
        """Return what puts a text before an expression."""
        return cls(_start(node), _start(node), text)

    @classmethod
    def after(cls, node: ast.expr, text: str) -> "SourceEdit":
        """Return what puts a text behind an expression."""
        return cls(_end(node), _end(node), text)


@dataclass(slots=True)
class _Uses:
    """Where a program uses a name that a server shares with a module of the sandbox."""

    tools: list[ast.Name] = field(default_factory=list)
    others: list[ast.Name] = field(default_factory=list)


class _Program:
    """One program while it is read."""

    def __init__(
        self, plan: ProgramPlan, names: ModuleNames, session: Mapping[str, str | None]
    ) -> None:
        self._nodes, self._names, self._session = plan.nodes, names, session
        self._unwrapped, self._spellings, self._servers = (
            names.unwrapped,
            names.spellings,
            names.servers,
        )
        self._bound = _bound(plan.nodes)
        self._early = _used_before_bound(plan.nodes[0], self._bound)
        self._attributes = {
            id(node.value): node.attr for node in plan.nodes if isinstance(node, ast.Attribute)
        }
        self._imported = {
            alias.asname or alias.name: alias.name
            for node in plan.nodes
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        self.edits: list[SourceEdit] = []
        self.added: dict[str, str] = {}
        self.modules: set[str] = set()

    def read(self) -> None:
        """Find what is to be added and changed."""
        uses: dict[str, _Uses] = {}
        for node in self._nodes:
            if isinstance(node, ast.Attribute):
                self._read_own(node)
            elif isinstance(node, ast.ImportFrom):
                self._read_from(node)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._read_name(node, uses)
            elif isinstance(node, ast.Subscript | ast.Call):
                self._read_item(node)
        redirected = {name for name, used in uses.items() if self._settle(name, used)}
        for node in self._nodes:
            if isinstance(node, ast.Import):
                self._read_import(node, redirected)

    def _read_name(self, node: ast.Name, uses: dict[str, _Uses]) -> None:
        name = node.id
        module = self._imported.get(name, name)
        if name in self._bound and id(node) not in self._early:
            return
        if self._is_shared(module):
            used = uses.setdefault(name, _Uses())
            attribute = self._attributes.get(id(node))
            (used.tools if self._is_tool(module, attribute) else used.others).append(node)
        elif name not in {*self._session, *self._imported} and self._is_module(name):
            self._add(name)

    def _settle(self, name: str, used: _Uses) -> bool:
        """Have a shared name mean the server, Python or both; return whether imports change."""
        module = self._imported.get(name, name)
        statement = self._session.get(name, "")
        if statement is None:  # a variable of the session
            return False
        if name in self._imported and not used.others:
            return True
        for node in used.tools:
            self._rename(node, sandbox_name(module))
        is_python = name in self._imported or statement == f"import {module}"
        if not is_python and module not in _OURS:
            self._settle_others(module, used)
        elif module in _OURS and name not in self._imported and used.others:
            self._add(module)
        return False

    def _settle_others(self, module: str, used: _Uses) -> None:
        for node in used.others:
            attribute = self._attributes.get(id(node))
            if attribute and _is_standard(module, attribute):
                own = python_name(module)
                self.edits.append(SourceEdit(_start(node), _end(node), own))
                self.added[own] = f"import {module} as {own}"
                self.modules.add(module)
            elif module not in _BUILTINS:
                self._rename(node, sandbox_name(module))

    def _rename(self, node: ast.Name, to: str) -> None:
        self.edits.append(SourceEdit(_start(node), _end(node), to))
        self._add(to)

    def _add(self, name: str) -> None:
        self.added[name] = f"import {name}"
        self.modules.add(name)

    def _read_item(self, node: ast.Subscript | ast.Call) -> None:
        """Have `x["content"]` and `x.get("content")` mean `x` where the answer is that content."""
        match node:
            case ast.Subscript(value=value, slice=ast.Constant(value=str(key)) as name):
                helper = _ITEM if isinstance(node.ctx, ast.Load) else None
            case ast.Call(
                func=ast.Attribute(value=value, attr="get"),
                args=[ast.Constant(value=str(key)) as name, *_],
            ):
                helper = _GET
            case ast.Call(func=ast.Name(id="round") as name, args=[_, _]):
                self._read_round(name)
                return
            case _:
                return
        if helper is None or key not in self._unwrapped:
            return
        self.edits.append(SourceEdit(_start(node), _start(node), f"{helper}("))
        self.edits.append(SourceEdit(_end(value), _start(name), ", "))
        if helper == _ITEM:
            self.edits.append(SourceEdit(_end(name), _end(node), ")"))
        self.added[helper] = _HELPERS[helper]

    def _read_round(self, name: ast.Name) -> None:
        """Have `round(x, 2)` mean what it means in Python, in Monty as well."""
        if "round" not in {*self._bound, *self._session}:
            self.edits.append(SourceEdit(_start(name), _end(name), _ROUND))
            self.added[_ROUND] = _HELPERS[_ROUND]

    def _read_own(self, node: ast.Attribute) -> None:
        """Read `toolfold.memory`."""
        match node.value:
            case ast.Name(id="toolfold") if _ROOT not in {*self._bound, *self._session}:
                if own := self._own(node.attr):
                    self.edits.append(SourceEdit(_start(node), _end(node), own))
                    self._add(own)

    def _own(self, name: str) -> str | None:
        """Return what the sandbox calls a module of ours."""
        if name in _OURS:
            return name
        module = self._spellings.get(f"{_ROOT}.{name}")
        return None if module is None else sandbox_name(module)

    def _read_from(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        root, _, inner = module.partition(".")
        if module == _ROOT:
            found = [(self._own(each.name), each) for each in node.names]
            if all(own for own, _ in found):
                parts = [f"{own} as {each.asname or each.name}" for own, each in found]
                self._replace(node, f"import {', '.join(parts)}")
        elif root == _ROOT and (own := self._own(inner)):
            self._replace(node, f"from {own} import {_listed(node.names)}")
        elif self._is_shared(module):
            tools = [each for each in node.names if self._is_tool(module, each.name)]
            others = [each for each in node.names if each not in tools]
            if tools:
                name = sandbox_name(module)
                self.modules.add(name)
                parts = [f"from {module} import {_listed(others)}"] if others else []
                self._replace(node, "; ".join([*parts, f"from {name} import {_listed(tools)}"]))

    def _read_import(self, node: ast.Import, redirected: Collection[str]) -> None:
        parts = [self._imported_as(alias, redirected) for alias in node.names]
        if parts != [_written(alias) for alias in node.names]:
            kept = ", ".join(filter(None, parts))
            self._replace(node, f"import {kept}" if kept else "pass")

    def _imported_as(self, alias: ast.alias, redirected: Collection[str]) -> str:
        name = alias.asname or alias.name
        if alias.name == _ROOT:
            return ""
        root, _, inner = alias.name.partition(".")
        if root == _ROOT and (own := self._own(inner)):
            return f"{own} as {alias.asname}" if alias.asname else own
        if name in redirected:
            module = sandbox_name(alias.name)
            self.modules.add(module)
            return f"{module} as {name}"
        return _written(alias)

    def _replace(self, node: ast.stmt, text: str) -> None:
        lines = (node.end_lineno or node.lineno) - node.lineno
        self.edits.append(SourceEdit(_start(node), _end(node), text + "\n" * lines))

    def _is_module(self, name: str) -> bool:
        return name in _OURS or name in self._spellings

    def _is_shared(self, module: str) -> bool:
        return module in self._servers and sandbox_name(module) != module

    def _is_tool(self, module: str, attribute: str | None) -> bool:
        return attribute is not None and self._names.has(module, attribute)


def _is_standard(module: str, attribute: str) -> bool:
    """Whether a standard module may have such an attribute, without importing it here."""
    if module not in sys.stdlib_module_names:
        return False
    loaded = sys.modules.get(module)
    return loaded is None or hasattr(loaded, attribute)


def _written(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name


def _listed(aliases: Iterable[ast.alias]) -> str:
    return ", ".join(map(_written, aliases))


def _bound(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that a program binds by anything but an import of that module."""
    return set(_bound_names(nodes))


def _bound_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name) | ast.MatchAs(name=str(name)):
                yield name
            case ast.ExceptHandler(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name
            case ast.ImportFrom(names=aliases):
                yield from (each.asname or each.name for each in aliases)


def _used_before_bound(tree: ast.AST, bound: set[str]) -> dict[int, str]:
    """Return the names in `time = time.get_current_time()`, where nothing has bound it before."""
    found: dict[int, str] = {}
    seen: set[str] = set()
    for statement in tree.body if isinstance(tree, ast.Module) else ():
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            found |= {
                id(node): node.id
                for node in ast.walk(statement.value)
                if isinstance(node, ast.Name) and node.id in bound - seen
            }
        seen.update(_bound_names(ast.walk(statement)))
    return found


def _start(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def edited(source: str, edits: Iterable[SourceEdit]) -> str:
    """Return the text with its edits made, the last first, so that places stay true."""
    lines = [line.encode() for line in source.split("\n")]
    numbered = enumerate(edits)
    order = sorted(numbered, key=lambda each: (each[1].start, each[1].end, each[0]), reverse=True)
    for _, edit in order:
        (first, begin), (last, end) = edit.start, edit.end
        text = lines[first - 1][:begin] + edit.text.encode() + lines[last - 1][end:]
        lines[first - 1 : last] = text.split(b"\n")
    return b"\n".join(lines).decode()
