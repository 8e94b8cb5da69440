"""Conditions on arguments, such as `amount > 100`: read by us, and never run."""

import ast
import operator
from collections.abc import Callable
from typing import Any, Final

from toolfold.errors import ConfigError
from toolfold.jsontypes import Json, JsonObject

_MOST_CHARS: Final = 1_000
_COMPARE: Final[dict[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
}


class Undecided(Exception):
    """A condition says nothing of these arguments: one is missing, or of another type."""


class Condition:
    """One condition. Names are arguments, dots lead into objects, values are written out."""

    def __init__(self, text: str) -> None:
        """Read it.

        Raises:
            ConfigError: It is none.
        """
        self.text = text
        try:
            if len(text) > _MOST_CHARS:
                raise ConfigError(f"a condition has at most {_MOST_CHARS} characters")
            self._tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ConfigError(f"{text!r} is no condition: {error}") from error
        self._check(self._tree)

    def _check(self, node: ast.expr) -> None:
        match node:
            case ast.BoolOp(values=parts):
                pass
            case ast.UnaryOp(op=ast.Not(), operand=part):
                parts = [part]
            case ast.Compare(left=left, ops=kinds, comparators=others):
                if any(type(kind) not in _COMPARE for kind in kinds):
                    raise self._refusal(node)
                for each in (left, *others):
                    self._check_value(each)
                return
            case _:
                self._check_value(node)
                return
        for each in parts:
            self._check(each)

    def _check_value(self, node: ast.expr) -> None:
        match node:
            case ast.Name() | ast.Constant(value=str() | int() | float() | bool() | None):
                return
            case ast.Attribute(value=inner):
                self._check_value(inner)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
                return
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                for each in parts:
                    self._check_value(each)
            case _:
                raise self._refusal(node)

    def _refusal(self, node: ast.expr) -> ConfigError:
        return ConfigError(
            f"{ast.unparse(node)!r} cannot stand in a condition: names of arguments, texts, "
            "numbers, lists, comparisons, in, and, or, not can"
        )

    def holds(self, arguments: JsonObject) -> bool:
        """Whether it holds for these arguments.

        Raises:
            Undecided: It says nothing of them.
        """
        try:
            return bool(self._evaluate(self._tree, arguments))
        except (TypeError, RecursionError) as error:
            raise Undecided(self.text) from error

    def _evaluate(self, node: ast.expr, arguments: JsonObject) -> Any:
        match node:
            case ast.BoolOp(op=ast.And(), values=parts):
                return all(self._evaluate(each, arguments) for each in parts)
            case ast.BoolOp(values=parts):
                return any(self._evaluate(each, arguments) for each in parts)
            case ast.UnaryOp(op=ast.Not(), operand=part):
                return not self._evaluate(part, arguments)
            case ast.UnaryOp(operand=ast.Constant(value=number)):
                return -number  # type: ignore[operator]
            case ast.Compare(left=left, ops=kinds, comparators=others):
                values = [self._evaluate(each, arguments) for each in (left, *others)]
                return all(
                    _COMPARE[type(kind)](one, other)
                    for kind, one, other in zip(kinds, values, values[1:], strict=False)
                )
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return [self._evaluate(each, arguments) for each in parts]
            case ast.Constant(value=value):
                return value
            case _:
                return self._argument(node, arguments)

    def _argument(self, node: ast.expr, arguments: JsonObject) -> Json:
        if isinstance(node, ast.Attribute):
            outer, name = self._argument(node.value, arguments), node.attr
        else:
            assert isinstance(node, ast.Name)  # noqa: S101  # nothing else was let in
            outer, name = arguments, node.id
        if not isinstance(outer, dict) or name not in outer:
            raise Undecided(self.text)
        return outer[name]
