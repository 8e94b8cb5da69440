"""Compare two types as the checker writes them, and say only what is sure."""

import ast

_Kinds = frozenset[str]

_KINDS: dict[str, _Kinds] = {
    "str": frozenset({"str"}),
    "LiteralString": frozenset({"str"}),
    "int": frozenset({"number"}),
    "float": frozenset({"number"}),
    "bool": frozenset({"number", "bool"}),
    "None": frozenset({"None"}),
    "list": frozenset({"list"}),
    "tuple": frozenset({"list"}),
    "set": frozenset({"list"}),
    "dict": frozenset({"dict"}),
    # These arrive as text: `range(0, 3)`.
    "dict_items": frozenset({"view"}),
    "dict_keys": frozenset({"view"}),
    "dict_values": frozenset({"view"}),
    "range": frozenset({"view"}),
}


def surely_differ(expected: str, found: str) -> bool:
    """Whether no value of type `found` can be of type `expected`.

    Types that are not understood, and containers that differ only inside, are not sure to.
    """
    try:
        wanted = _values(ast.parse(expected, mode="eval").body)
        given = _values(ast.parse(found, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        return False
    if wanted is None or given is None:
        return False
    return not any(_overlap(a, b) for a in wanted for b in given)


def _overlap(a: object, b: object) -> bool:
    """Whether two alternatives, each a literal or a set of kinds, have a value in common."""
    if isinstance(a, frozenset) and isinstance(b, frozenset):
        return bool(a & b)
    if isinstance(a, frozenset):
        return bool(a & _KINDS[type(b).__name__])
    if isinstance(b, frozenset):
        return bool(b & _KINDS[type(a).__name__])
    return a == b and type(a) is type(b)


def _values(node: ast.expr) -> list[object] | None:
    """Return the alternatives of a type: literals and sets of kinds. None if not understood."""
    match node:
        case ast.Constant(value=None):
            return [_KINDS["None"]]
        case ast.Name(id=name) if name in _KINDS:
            return [_KINDS[name]]
        case ast.Subscript(value=ast.Name(id="Literal"), slice=inner):
            items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return _literals(items)
        case ast.Subscript(value=ast.Name(id=name)) if name in _KINDS:
            return [_KINDS[name]]
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            a, b = _values(left), _values(right)
            return None if a is None or b is None else a + b
        case _:
            return None


def _literals(items: list[ast.expr]) -> list[object] | None:
    """Return the values of a `Literal`; kinds that compare oddly are left out as not understood."""
    values: list[object] = []
    for item in items:
        match item:
            case ast.Constant(value=str() | bool() | int() as value):
                values.append(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
                values.append(-value)
            case _:
                return None
    return values
