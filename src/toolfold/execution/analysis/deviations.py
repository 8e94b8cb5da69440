"""What Monty takes and does otherwise than Python: found before it runs, and never run there.

`tests/sandbox/test_differential.py` looks for more, by programs that are made by chance.
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator

from toolfold.execution.analysis.gaps import Unsupported

# Of the methods that Python calls by itself, those that Monty calls too.
_CALLED = frozenset({"__init__", "__repr__", "__str__", "__enter__", "__exit__"})
_MAY_DEVIATE = (ast.Attribute, ast.Call, ast.ClassDef, ast.ExceptHandler)
_PLAIN_FUNCTIONS = frozenset({
    "abs", "bool", "getattr", "hasattr", "isinstance", "len", "max", "min", "range", "repr",
    "str", "type", "zip",
})  # fmt: skip
_PLAIN_METHODS = frozenset({
    "endswith", "get", "isalnum", "isalpha", "isdigit", "islower", "isspace", "isupper", "items",
    "keys", "lower", "lstrip", "rstrip", "split", "startswith", "strip", "upper", "values",
})  # fmt: skip

_MISSING_METHODS = frozenset({
    "add_note", "as_integer_ratio", "bit_count", "bit_length", "difference_update", "format_map",
    "fromisocalendar", "from_bytes", "intersection_update", "is_integer", "isocalendar",
    "maketrans", "symmetric_difference_update", "timetuple", "to_bytes", "toordinal",
    "translate", "utcfromtimestamp", "utcnow", "with_traceback",
})  # fmt: skip
"""Methods of Python's own types that none of Monty's has; looking for one can be caught."""

_OF_TEXTS = frozenset(name for name in dir(str) if not name.startswith("_"))
_OF_VALUES = _OF_TEXTS.union(
    *([name for name in dir(kind) if not name.startswith("_")] for kind in (dict, list, set))
)
_TYPES = frozenset({"bytes", "dict", "float", "int", "list", "set", "str", "tuple"})
_FROM_TYPES = frozenset({("dict", "fromkeys"), ("bytes", "fromhex")})
_ALL_MATCHES = frozenset({"findall", "finditer", "split", "sub", "subn"})
_MAX_PATTERN = 500
_DAY = re.compile(r"%Y.*%j|%j.*%Y|%[cDFx]|(?=.*%[Yy])(?=.*%[mbB])(?=.*%d)", re.DOTALL)


def find_deviations(nodes: Collection[ast.AST]) -> tuple[Unsupported, ...]:
    """Return what Monty takes and does otherwise than Python, in the order of lines."""
    program = _Program(nodes)
    found = [
        Unsupported(line=getattr(node, "lineno", 1), construct=construct, rewrite=rewrite)
        for node in nodes
        if isinstance(node, _MAY_DEVIATE)
        for construct, rewrite in (*_deviations_of(node), *program.deviations_of(node))
    ]
    return tuple(sorted(dict.fromkeys(found), key=lambda each: each.line))


def _deviations_of(node: ast.AST) -> Iterator[tuple[str, str]]:
    match node:
        case ast.ClassDef(body=body):
            for name in (name for member in body for name in _bound_by(member)):
                if name.startswith("__") and name not in _CALLED:
                    yield (
                        f"{name} of a class",
                        "use another name, and call it yourself; here Python does not",
                    )
        case ast.ExceptHandler(type=ast.expr() as caught, name=str(), body=body):
            if _catches_keys(caught) and _looks_inside(body, node.name):
                yield (
                    "the key in a KeyError",
                    "keep the key in a variable, or use .get(); it is text here, whatever it was",
                )
        case _:
            return


def _looks_inside(body: Iterable[ast.stmt], name: str | None) -> bool:
    """Whether statements do more with an exception than to print it as text."""
    inner = [node for statement in body for node in ast.walk(statement)]
    as_text = {id(value) for node in inner for value in _shown_as_text(node)}
    return any(
        isinstance(node, ast.Name) and node.id == name and id(node) not in as_text for node in inner
    )


def _shown_as_text(node: ast.AST) -> Iterable[ast.expr]:
    match node:
        case ast.FormattedValue(value=value, conversion=conversion) if conversion != ord("r"):
            return [value]
        case ast.Call(func=ast.Name(id="print" | "str" | "type"), args=arguments):
            return arguments
        case _:
            return ()


def _catches_keys(caught: ast.expr) -> bool:
    named = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(isinstance(each, ast.Name) and each.id == "KeyError" for each in named)


class _Program:
    """What must be known of the whole program to judge one of its nodes."""

    def __init__(self, nodes: Collection[ast.AST]) -> None:
        self._given = {id(each) for node in nodes for each in _given_to_order(node)}
        self._bound = {
            node.id
            for node in nodes
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        } | {node.arg for node in nodes if isinstance(node, ast.arg)}
        self._own = {name for node in nodes for name in _defined_by(node)}
        self._has_classes = any(isinstance(node, ast.ClassDef) for node in nodes) or (
            "namedtuple" in self._own
        )

    def deviations_of(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        """Yield what of an attribute or a call is otherwise, or missing in a way that is caught."""
        if isinstance(node, ast.Attribute):
            yield from self._of_attribute(node)
        elif isinstance(node, ast.Call):
            yield from self._short_circuits(node)
            yield from self._of_call(node)

    def _of_attribute(self, node: ast.Attribute) -> Iterator[tuple[str, str]]:
        kind = node.value.id if isinstance(node.value, ast.Name) else ""
        if kind in _TYPES and kind not in self._bound:
            if (kind, node.attr) not in _FROM_TYPES:
                yield (
                    f"{kind}.{node.attr}",
                    f"call it of the value: lambda value: value.{node.attr}()",
                )
        elif not self._may_be_value(node) or node.attr in self._own:
            return
        elif node.attr in _MISSING_METHODS:
            yield f".{node.attr}", "write it with other methods"
        elif node.attr in _OF_VALUES and id(node) in self._given and not self._has_classes:
            yield (
                f"the method .{node.attr} without a call",
                f"use a function that calls it: lambda *given: value.{node.attr}(*given)",
            )

    def _may_be_value(self, node: ast.Attribute) -> bool:
        """Whether it is read of one of Python's own values, as far as the text tells."""
        is_read = isinstance(node.ctx, ast.Load)
        return is_read and (not isinstance(node.value, ast.Name) or node.value.id in self._bound)

    def _is_effect(self, node: ast.AST) -> bool:
        """Whether a node is a call that may do more than compute a value."""
        match node:
            case ast.Call(func=ast.Name(id=name)):
                return name not in _PLAIN_FUNCTIONS
            case ast.Call(func=ast.Attribute(attr=name) as method):
                return name not in _PLAIN_METHODS or not self._may_be_value(method)
            case _:
                return False

    def _short_circuits(self, node: ast.Call) -> Iterator[tuple[str, str]]:
        match node:
            case ast.Call(
                func=ast.Name(id="any" | "all" as name), args=[ast.GeneratorExp() as made]
            ) if any(map(self._is_effect, ast.walk(made))):
                # Generator expressions are lists there: all calls in it would be made.
                yield (
                    f"{name}() of calls",
                    "use a for loop that ends at the first; all calls would be made here",
                )

    def _of_call(self, node: ast.Call) -> Iterator[tuple[str, str]]:
        match node:
            case ast.Call(func=ast.Name(id="hasattr" | "getattr" as name), args=[_, _, *rest]):
                if (name == "hasattr" or rest) and not self._has_classes:
                    yield (
                        f"{name}() of a value",
                        "use isinstance(), or .get() of a dict; it finds no method of a value here",
                    )
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="re"), attr=name),
                args=[ast.Constant(value=str(pattern)), *_],
            ):
                if name in {*_ALL_MATCHES, "compile"} and _may_match_nothing(pattern):
                    yield (
                        f"re.{name}() of a pattern that matches nothing as well as something",
                        "use + in place of *, so that it matches something",
                    )
            case ast.Call(
                func=ast.Attribute(attr="strptime"), args=[_, ast.Constant(value=str(form))]
            ):
                if not _DAY.search(form):
                    yield (
                        f"strptime() with {form!r}",
                        "add a date to both: strptime('2000-01-01 ' + text, '%Y-%m-%d ' + form)",
                    )


def _given_to_order(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the functions that a call of `sorted`, `map` and the like is given."""
    match node:
        case ast.Call(func=ast.Name(id="map" | "filter"), args=[function, *_]):
            yield function
        case ast.Call(keywords=keywords):
            yield from (each.value for each in keywords if each.arg == "key")
        case _:
            return


def _defined_by(node: ast.AST) -> Iterator[str]:
    """Yield the names of functions and attributes that a node of a program defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.Attribute(attr=name, ctx=ast.Store()):
            yield name
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.alias(name="namedtuple" as name) | ast.Attribute(attr="namedtuple" as name):
            yield name
        case _:
            return


def _may_match_nothing(pattern: str) -> bool:
    """Whether a pattern matches the empty text, and longer ones."""
    if len(pattern) > _MAX_PATTERN or not re.search(r"[*?|{]", pattern):
        return False
    try:
        return re.match(pattern, "") is not None
    except (re.error, OverflowError, RecursionError):
        return False


def _bound_by(member: ast.stmt) -> list[str]:
    """Return what a statement of a class binds: a method, or attributes such as `__slots__`."""
    match member:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case _:
            return []
