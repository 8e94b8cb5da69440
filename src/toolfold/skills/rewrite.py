"""Code that imports skills, rewritten so that an interpreter without such imports runs it.

Each skill is defined by an earlier program, in a function of its own, so that nothing of it leaks.
`from skills import f as g` becomes `g = __skill_f__`, in place: no line moves.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from toolfold.skills.models import VERBS, function_of, symbol_of

_MODULE: Final = "skills"
FUTURE: Final = "from __future__ import annotations\n"
"""Goes before all definitions: annotations mean nothing here, and may name what comes later."""

_TEXTS: Final = tuple(
    kind
    for kind in (ast.Constant, ast.JoinedStr, getattr(ast, "TemplateStr", None))
    if kind is not None
)


class Missing(NamedTuple):
    """Something that code wants of `skills` and that is not there, or not to be had like that."""

    line: int
    name: str
    """`memory.backup`, or `*`."""


@dataclass(slots=True)
class RewrittenCode:
    """Code that imports skills, as the interpreter takes it."""

    source: str
    skills: list[str] = field(default_factory=list)
    """Those that it uses, in the order of first use."""
    missing: list[Missing] = field(default_factory=list)


class Edit(NamedTuple):
    """Bytes of a source to be replaced."""

    start: int
    end: int
    text: str


KindOfName = Callable[[str], str | None]
"""Says of a name whether it is a `skill`, a `group`, or None of both."""


def link(source: str, nodes: Iterable[ast.AST], kind_of: KindOfName) -> RewrittenCode:
    """Rewrite `source`, whose syntax tree has `nodes`."""
    linker = _Rewriter(source, list(nodes), kind_of)
    linked = RewrittenCode("")
    linked.source = _edited(source, linker.edits(linked))
    linked.skills = list(dict.fromkeys(linked.skills))
    return linked


def wants_skills(nodes: Iterable[ast.AST]) -> bool:
    """Whether code imports `skills` or a group of it."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            if not node.level and _is_ours(node.module or ""):
                return True
        elif isinstance(node, ast.Import) and any(_is_ours(alias.name) for alias in node.names):
            return True
    return False


def definition(name: str, source: str, tree: ast.Module) -> str:
    """Return the program that defines a skill of `source`, which is linked already.

    The line that was the first of skill.py is the second here.
    """
    function, symbol = function_of(name), symbol_of(name)
    kept = _continued_lines(tree)
    edits = _Edits(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            edits.replace(node, "pass")  # it can stand at the top alone: see `FUTURE`
    declared = _globals_as_nonlocals(tree, edits)
    lines = _edited(source, edits.made).split("\n")
    body = [
        line if number in kept or not line.strip() else f"    {line}"
        for number, line in enumerate(lines, 1)
    ]
    defaults = ", ".join([f'__name__="skills.{name}"', *(f"{each}=None" for each in declared)])
    head = f"def {symbol}({defaults}):"
    return "\n".join([head, *body, f"    return {function}", f"{symbol} = {symbol}()", ""])


class _Rewriter:
    """Finds what of one program is to be replaced."""

    def __init__(self, source: str, nodes: list[ast.AST], kind_of: KindOfName) -> None:
        self._nodes = nodes
        self._kind_of = kind_of
        self._edits = _Edits(source)
        self._handles: dict[str, str] = {}

    def edits(self, linked: RewrittenCode) -> list[Edit]:
        """Return the edits, and say in `linked` what they are about."""
        for node in self._nodes:
            if isinstance(node, ast.ImportFrom) and not node.level and _is_ours(node.module or ""):
                self._import_from(node, linked)
            elif isinstance(node, ast.Import) and any(_is_ours(each.name) for each in node.names):
                self._import(node, linked)
        if self._handles:
            self._attributes(linked)
        return self._edits.made

    def _import_from(self, node: ast.ImportFrom, linked: RewrittenCode) -> None:
        group = (node.module or "").removeprefix(_MODULE).removeprefix(".")
        parts, kept = [], []
        for alias in node.names:
            name = f"{group}.{alias.name}" if group else alias.name
            kind, bound = self._kind_of(name), alias.asname or alias.name
            if kind == "skill":
                linked.skills.append(name)
                parts.append(f"{bound} = {symbol_of(name)}")
            elif kind == "group":
                self._handles[bound] = name
            elif not group and name in VERBS:
                kept.append(ast.unparse(alias))
            else:
                linked.missing.append(Missing(node.lineno, name))
                kept.append(ast.unparse(alias))
        if kept:
            parts.insert(0, f"from {node.module} import {', '.join(kept)}")
        self._edits.replace(node, "; ".join(parts) or "pass")

    def _import(self, node: ast.Import, linked: RewrittenCode) -> None:
        kept = []
        for alias in node.names:
            group = alias.name.removeprefix(f"{_MODULE}.")
            if not _is_ours(alias.name):
                kept.append(ast.unparse(alias))
            elif alias.name == _MODULE:
                self._handles[alias.asname or _MODULE] = ""
                kept.append(ast.unparse(alias))
            elif self._kind_of(group) != "group":
                linked.missing.append(Missing(node.lineno, group))
            elif alias.asname:
                self._handles[alias.asname] = group
            else:
                self._handles[_MODULE] = ""
                kept.append(_MODULE)
        self._edits.replace(node, f"import {', '.join(kept)}" if kept else "pass")

    def _attributes(self, linked: RewrittenCode) -> None:
        """Replace `skills.f`; where the name of the module means something else too, nothing."""
        handles = {
            name: group for name, group in self._handles.items() if name not in self._rebound()
        }
        for node in self._nodes:
            if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
                continue
            written = _dotted(node)
            root, _, rest = written.partition(".")
            if root not in handles:
                continue
            name = f"{handles[root]}.{rest}" if handles[root] else rest
            kind = self._kind_of(name)
            if kind == "skill" and self._edits.holds(node, written):
                linked.skills.append(name)
                self._edits.replace(node, symbol_of(name))
            elif kind == "skill" or (kind is None and self._is_wanted(handles[root], rest)):
                linked.missing.append(Missing(node.lineno, name))

    def _is_wanted(self, group: str, rest: str) -> bool:
        """Whether a path that leads nowhere was meant to be a skill: not `skills.save.x`."""
        parent = rest.rpartition(".")[0]
        inside = f"{group}.{parent}".strip(".")
        if inside:
            return self._kind_of(inside) == "group"
        return rest not in VERBS

    def _rebound(self) -> set[str]:
        return {name for node in self._nodes for name in _bound_by(node) if name in self._handles}


class _Edits:
    """Replacements in one source, by nodes of its tree."""

    def __init__(self, source: str) -> None:
        self.made: list[Edit] = []
        self._source = source.encode()
        self._starts = [0]
        for line in self._source.split(b"\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def replace(self, node: ast.stmt | ast.expr, text: str) -> None:
        """Put `text` in the place of a node, over as many lines."""
        start, end = self._span(node)
        more = self._source.count(b"\n", start, end)
        self.made.append(Edit(start, end, text + " \\\n" * more))

    def holds(self, node: ast.expr, text: str) -> bool:
        """Whether the node stands where the parser says, which inside f-strings it may not."""
        start, end = self._span(node)
        return b"".join(self._source[start:end].split()).replace(b"\\", b"") == text.encode()

    def _span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        return start, end


def _edited(source: str, edits: Iterable[Edit]) -> str:
    content = source.encode()
    for edit in sorted(edits, reverse=True):
        content = content[: edit.start] + edit.text.encode() + content[edit.end :]
    return content.decode()


def _is_ours(module: str) -> bool:
    return module == _MODULE or module.startswith(f"{_MODULE}.")


def _dotted(node: ast.expr) -> str:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def _bound_by(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name


def _continued_lines(tree: ast.Module) -> set[int]:
    """Return the lines that begin inside a text, and so must stay as they are."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, _TEXTS)
        for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
    }


def _globals_as_nonlocals(tree: ast.Module, edits: _Edits) -> list[str]:
    """Make what was global belong to the skill; return what would be bound nowhere else."""
    declared: dict[str, None] = {}
    outer = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            is_outer = id(node) in outer
            edits.replace(node, "pass" if is_outer else f"nonlocal {', '.join(node.names)}")
            declared.update({} if is_outer else dict.fromkeys(node.names))
    bound = {name for node in _outer_nodes(tree) for name in _names_bound_by(node)}
    return [name for name in declared if name not in bound]


def _outer_nodes(tree: ast.Module) -> Iterator[ast.AST]:
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            pending.extend(ast.iter_child_nodes(node))


def _names_bound_by(node: ast.AST) -> Iterator[str]:
    yield from _bound_by(node)
    if isinstance(node, ast.alias):
        yield (node.asname or node.name).partition(".")[0]
