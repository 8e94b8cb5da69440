"""What a program leaves behind in its session: the names that its top level binds."""

import ast
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from toolfold.execution.analysis.plan import ProgramPlan
from toolfold.execution.tiers import Tier
from toolfold.sandbox.sandbox import Frozen, SessionState

_MAX_NAMES: Final = 5_000
_MAX_SOURCE_CHARS: Final = 262_144
_ALIAS: Final = re.compile(r"\w+ = (?!lambda\b)")

_INNER: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True)
class Bindings:
    """The names of a session, as far as the texts of its programs tell."""

    names: tuple[str, ...] = ()
    imports: Mapping[str, str] = field(default_factory=dict)
    """By name, the statement that imports it."""
    definitions: Mapping[str, str] = field(default_factory=dict)
    """By name, the text of a function, a class or an alias that stands at the top level."""
    constants: Mapping[str, str] = field(default_factory=dict)
    """By name, the text of an assignment of what cannot change."""

    def after(self, later: "Bindings") -> "Bindings":
        """Return what there is after a later program."""
        names = tuple(dict.fromkeys((*self.names, *later.names)))[-_MAX_NAMES:]
        return Bindings(
            names=names,
            imports=_merged(self.imports, later.imports, later.names),
            definitions=_bounded(self._definitions_after(later)),
            constants=_bounded(_merged(self.constants, later.constants, later.names)),
        )

    def _definitions_after(self, later: "Bindings") -> dict[str, str]:
        """Return the texts that mean the same still: an alias of what is imported anew does not."""
        moved = {name for name in later.names if later.imports.get(name) != self.imports.get(name)}
        stale = [
            name
            for name, text in self.definitions.items()
            if _is_alias(text) and not moved.isdisjoint(self._named_in(name))
        ]
        return _merged(self.definitions, later.definitions, (*later.names, *stale))

    def in_doubt(self) -> "Bindings":
        """Return them as a program leaves them that did not come to its end: names, no texts."""
        return Bindings(names=self.names, imports=self.imports)

    def needed_by(self, plan: ProgramPlan) -> "Bindings":
        """Return those that a program may use as they are: not what it binds itself before."""
        return self.used_by(replace(plan, names=plan.names - _bound_first(plan)))

    def used_by(self, plan: ProgramPlan) -> "Bindings":
        """Return those that a program may use, with what the functions among them use."""
        used: dict[str, None] = {}
        pending = [name for name in self.names if name in plan.names]
        while pending:
            name = pending.pop()
            if name not in used:
                used[name] = None
                pending += [each for each in self._named_in(name) if each in self.names]
        kept = tuple(name for name in self.names if name in used)
        return replace(
            self,
            names=kept,
            imports={name: self.imports[name] for name in kept if name in self.imports},
            definitions={name: self.definitions[name] for name in kept if name in self.definitions},
            constants={name: self.constants[name] for name in kept if name in self.constants},
        )

    def _named_in(self, name: str) -> list[str]:
        text = self.definitions.get(name)
        if not text:
            return []
        return [node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]

    def known_to(self, plan: ProgramPlan) -> ProgramPlan:
        """Return a plan to which the imports belong as well: its calls are calls of tools too."""
        if not self.imports:
            return plan
        tree = ast.parse("\n".join(self.imports.values()))
        return replace(plan, nodes=(*plan.nodes, *ast.walk(tree)))

    @property
    def modules(self) -> frozenset[str]:
        """The modules that the imports name."""
        words = (statement.split()[1] for statement in self.imports.values())
        return frozenset(word.partition(".")[0] for word in words)

    def source(self) -> str:
        """Return the imports, functions and classes as one text."""
        texts = (self.imports, self.constants, self.definitions)
        return "\n".join(text for each in texts for text in each.values())

    def prelude(self) -> str:
        """Declare the names for the type checker."""
        imports = {name: text for name, text in self.imports.items() if not _is_of_skills(text)}
        values = [name for name in self.names if name not in imports]
        lines = list(imports.values())
        if values:
            lines += ["from typing import Any as _Any", "def _any() -> _Any: ..."]
            lines += [f"{name} = _any()" for name in values]
        return "\n".join(lines)


NOTHING: Final = Bindings()


def _merged(
    earlier: Mapping[str, str], later: Mapping[str, str], rebound: tuple[str, ...]
) -> dict[str, str]:
    gone = frozenset(rebound)
    return {name: text for name, text in earlier.items() if name not in gone} | dict(later)


def _bounded(texts: dict[str, str]) -> dict[str, str]:
    """Return the latest of them, as many as may be kept."""
    room, kept = _MAX_SOURCE_CHARS, {}
    for name, text in reversed(texts.items()):
        room -= len(text)
        if room < 0:
            break
        kept[name] = text
    return dict(reversed(kept.items()))


def bindings(plan: ProgramPlan) -> Bindings:
    """Return what the top level of a program binds, whether or not it gets so far."""
    names: dict[str, None] = dict.fromkeys(plan.added)
    imports: dict[str, str] = dict(plan.added)
    for node in _top_level(plan.nodes[0]):
        for name in _bound_by(node):
            names[name] = None
            imports.pop(name, None)
        imports |= _imported(node)
    elsewhere = [name for node in plan.nodes if isinstance(node, ast.Global) for name in node.names]
    names |= dict.fromkeys(elsewhere)
    counts = Counter(name for node in _top_level(plan.nodes[0]) for name in _bound_by(node))
    counts.update(dict.fromkeys(elsewhere, 2))  # by functions, nobody knows how often
    once = {name for name in names if counts[name] == 1}
    return Bindings(
        tuple(names),
        imports,
        definitions=_bounded(_definitions(plan, once, imports)),
        constants=_bounded(_texts(plan, once, _constant)),
    )


def _bound_first(plan: ProgramPlan) -> set[str]:
    """Return the names that the top level of a program surely binds before anything reads them."""
    root = plan.nodes[0]
    found: set[str] = set()
    seen: set[str] = set()
    for node in root.body if isinstance(root, ast.Module) else []:
        names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
        read = {each.id for each in names if not isinstance(each.ctx, ast.Store)}
        targets = node.targets if isinstance(node, ast.Assign) else [node]
        bound = {name for each in targets for name in _bound_by(each)}
        found |= bound - read - seen
        seen |= read | bound | {each.id for each in names}
    return found


def _texts(
    plan: ProgramPlan, names: Collection[str], name_of: Callable[[ast.stmt], str | None]
) -> dict[str, str]:
    """Return the texts of statements that stand at the top level itself, and bind a name once."""
    root = plan.nodes[0]
    body = root.body if isinstance(root, ast.Module) else []
    found = ((name_of(node), node) for node in body)
    return {name: _text(node) for name, node in found if name is not None and name in names}


def _definitions(
    plan: ProgramPlan, once: Collection[str], imports: Mapping[str, str]
) -> dict[str, str]:
    """Return the texts of functions and classes, and of aliases of what is imported before them."""
    found = _texts(plan, once, _defined)
    fixed = dict(plan.added)
    body = plan.nodes[0].body if isinstance(plan.nodes[0], ast.Module) else []
    for node in body:
        fixed |= {name: text for name, text in _imported(node).items() if name in once}
        known = {each: text for each, text in fixed.items() if imports.get(each) == text}
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if name in once and _is_fixed(value, known):
                    found[name] = _text(node)
    return found


def _is_fixed(value: ast.expr, imports: Mapping[str, str]) -> bool:
    """Whether it is a member of a module, or `partial` of one and constants."""
    match value:
        case ast.Name(id=name):
            return name in imports
        case ast.Attribute(value=owner):
            return not isinstance(owner, ast.Call | ast.Constant) and _is_fixed(owner, imports)
        case ast.Call(func=ast.Name(id=name)):
            is_partial = imports.get(name) == "from functools import partial"
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="partial")):
            is_partial = imports.get(name) == "import functools"
        case _:
            return False
    given = [*value.args[1:], *(each.value for each in value.keywords)]
    is_plain = all(isinstance(each, ast.Constant) for each in given)
    return is_partial and is_plain and bool(value.args) and _is_fixed(value.args[0], imports)


def _is_alias(text: str) -> bool:
    """Whether a definition is what an expression was when it was executed."""
    return _ALIAS.match(text) is not None


def _defined(node: ast.stmt) -> str | None:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda()):
            return name
        case _:
            return None


def _constant(node: ast.stmt) -> str | None:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant()):
            return name
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Tuple(elts=parts)):
            return name if all(isinstance(part, ast.Constant) for part in parts) else None
        case _:
            return None


def _imported(node: ast.AST) -> dict[str, str]:
    match node:
        case ast.Import(names=aliases):
            return {_bound_name(each): ast.unparse(ast.Import([each])) for each in aliases}
        case ast.ImportFrom(module=module, names=aliases, level=level):
            return {
                _bound_name(each): ast.unparse(ast.ImportFrom(module, [each], level))
                for each in aliases
            }
        case _:
            return {}


def _is_of_skills(statement: str) -> bool:
    return re.match(r"from skills\b", statement) is not None


def _top_level(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield every node that is executed in the module's own scope, in the order of the text."""
    pending: list[ast.AST] = list(reversed(list(ast.iter_child_nodes(tree))))
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, _COMPREHENSIONS):  # only what `:=` binds in it is ours
            pending += [each for each in ast.walk(node) if isinstance(each, ast.NamedExpr)]
        elif not isinstance(node, _INNER):
            pending += reversed(list(ast.iter_child_nodes(node)))


def _bound_by(node: ast.AST) -> list[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return [_bound_name(alias) for alias in aliases if alias.name != "*"]
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [name]
        case ast.MatchMapping(rest=str(name)):
            return [name]
        case _:
            return []


def _text(node: ast.AST) -> str:
    try:
        return ast.unparse(node)
    except RecursionError:  # it was parsed by something that nests deeper
        return ""


def _bound_name(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """What is known of a session beside its state."""

    name: str
    tier: Tier = "monty"
    interpreter: str = ""
    """What wrote the state: no other can read it."""
    created_at: float = 0.0
    used_at: float = 0.0
    runs: int = 0
    """How many have ended in it."""
    generation: str = ""
    """What tells its variables from those before and after; empty while it has none."""
    size_bytes: int = 0
    bindings: Bindings = field(default_factory=Bindings)


def header_of(info: SessionInfo, state: SessionState) -> dict[str, Any]:
    """Return what is written of a session before its state."""
    frozen = state if isinstance(state, Frozen) else Frozen(state=b"", programs=0, awaited={})
    return {
        "name": info.name,
        "tier": info.tier,
        "interpreter": info.interpreter,
        "created_at": info.created_at,
        "used_at": info.used_at,
        "runs": info.runs,
        "generation": info.generation,
        "size_bytes": info.size_bytes,
        "names": list(info.bindings.names),
        "imports": dict(info.bindings.imports),
        "definitions": dict(info.bindings.definitions),
        "constants": dict(info.bindings.constants),
        "programs": frozen.programs,
        "awaited": {str(number): sorted(calls) for number, calls in frozen.awaited.items()},
    }


def frozen_in(header: dict[str, Any], content: bytes) -> Frozen:
    """Return the variables that were written with a header."""
    awaited = {int(number): frozenset(calls) for number, calls in header["awaited"].items()}
    return Frozen(state=content, programs=header["programs"], awaited=awaited)


def info_in(header: dict[str, Any]) -> SessionInfo:
    """Return what a header says."""
    return SessionInfo(
        name=header["name"],
        tier=header["tier"],
        interpreter=header["interpreter"],
        created_at=header["created_at"],
        used_at=header["used_at"],
        runs=header["runs"],
        generation=header["generation"],
        size_bytes=header["size_bytes"],
        bindings=Bindings(
            names=tuple(header["names"]),
            imports=header["imports"],
            definitions=header["definitions"],
            constants=header["constants"],
        ),
    )
