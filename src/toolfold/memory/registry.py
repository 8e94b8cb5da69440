"""Make a method of a service a verb of memory. All that any door offers comes from it. Light."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

Effect: TypeAlias = Literal["reads", "adds", "changes", "removes", "destroys"]
"""What calling a verb does. What only adds can be asked twice without harm."""

_MethodT = TypeVar("_MethodT", bound=Callable[..., Any])
_MARK = "verb_options"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """How a verb is reached over REST."""

    method: str
    path: str
    wrap: str | None = None
    """The key that the answer stands under, where it is no object."""

    pages: str | None = None
    """The key of the items, where the answer comes in pages."""

    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbOptions:
    """What a verb's signature and docstring do not say."""

    effect: Effect
    route: Route | None = None
    is_tool: bool = False
    """Whether it is a tool of the MCP server of memory. Each definition costs the model tokens."""

    is_command: bool = True
    """Whether `toolfold memory` offers it."""

    is_for_users: bool = False
    """Whether it is no business of guest code: it erases for good, or writes the user's files."""

    file: str = ""
    """The parameter that is a path of the caller's."""

    is_in_memory: bool = True
    """Whether the module `memory` of guest code has it; `graph` has all verbs of the graph."""


def verb(
    effect: Effect,
    rest: str = "",
    *,
    wrap: str | None = None,
    pages: str | None = None,
    status: int = 200,
    **options: Any,
) -> Callable[[_MethodT], _MethodT]:
    """Register a method as a verb; `rest` is its route, such as `GET /memory/search`.

    `options` are those of `VerbOptions`.
    """
    method, _, path = rest.partition(" ")
    route = Route(method=method, path=path, wrap=wrap, pages=pages, status=status)

    def mark(function: _MethodT) -> _MethodT:
        made = VerbOptions(effect=effect, route=route if rest else None, **options)
        setattr(function, _MARK, made)
        return function

    return mark


def options_of(method: object) -> VerbOptions | None:
    """Return what was registered of a method; None for one that is no verb."""
    found = getattr(method, _MARK, None)
    return found if isinstance(found, VerbOptions) else None
