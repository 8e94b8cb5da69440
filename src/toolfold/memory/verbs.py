"""The table of verbs: all that memory does. What every door offers comes from here."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolfold.memory.consolidation.service import Consolidation
from toolfold.memory.documents.service import Documents
from toolfold.memory.events.service import Events
from toolfold.memory.graph.service import Graph
from toolfold.memory.registry import Effect, Route, options_of
from toolfold.memory.service import Memory
from toolfold.memory.transfer.service import Transfer


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What serves one namespace."""

    notes: Memory
    events: Events
    consolidation: Consolidation
    documents: Documents
    graph: Graph
    transfer: Transfer


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One thing that memory does. Its method says what it takes, and how it is described."""

    module: str
    """The module of guest code that it is a function of."""

    name: str
    category: str
    service: str
    """The attribute of `Services` that does it."""

    method: Callable[..., Any]
    effect: Effect
    route: Route | None = None
    is_tool: bool = False
    is_command: bool = True
    is_for_users: bool = False
    file: str = ""

    @property
    def path(self) -> str:
        """How it is called from outside: `memory.search`."""
        return f"{self.module}.{self.name}"

    @property
    def may_repeat(self) -> bool:
        """Whether asking twice does what asking once does, and answers the same."""
        return self.effect in {"reads", "adds"}

    def of(self, services: Services) -> Callable[..., Any]:
        """Return what does it in one namespace."""
        return self.method.__get__(getattr(services, self.service))  # type: ignore[no-any-return]


def verbs_of(kind: type, service: str, category: str, module: str) -> Iterator[Verb]:
    """Yield the methods of a service that are registered as verbs.

    Those of another module that `memory` has too come twice.
    """
    for name, method in vars(kind).items():
        if (options := options_of(method)) is None:
            continue
        for each in dict.fromkeys((module, *(["memory"] if options.is_in_memory else []))):
            yield Verb(
                module=each,
                name=name,
                category=category,
                service=service,
                method=method,
                effect=options.effect,
                route=options.route if each == module else None,
                is_tool=options.is_tool,
                is_command=options.is_command and each == "memory",
                is_for_users=options.is_for_users,
                file=options.file,
            )


VERBS: Final[Mapping[str, Verb]] = {
    verb.path: verb
    for verb in [
        *verbs_of(Memory, "notes", "memory", "memory"),
        *verbs_of(Events, "events", "events", "memory"),
        *verbs_of(Consolidation, "consolidation", "consolidation", "memory"),
        *verbs_of(Documents, "documents", "documents", "memory"),
        *verbs_of(Graph, "graph", "graph", "graph"),
        *verbs_of(Transfer, "transfer", "transfer", "memory"),
    ]
}
"""By path: `memory.search`."""
