"""All that memory does, as a list: what every door offers comes from here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from toolfold.memory.consolidation.service import Consolidation
from toolfold.memory.documents.service import Documents
from toolfold.memory.events.service import Events
from toolfold.memory.graph.service import Graph
from toolfold.memory.service import Memory
from toolfold.memory.transfer.service import Transfer

Effect: TypeAlias = Literal["reads", "adds", "changes", "removes", "destroys"]
"""What calling a verb does. What only adds can be asked twice without harm."""


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
    is_for_users: bool = False
    """Whether it is no business of guest code: it erases for good, or writes the user's files."""

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


def _verbs(
    service: str,
    kind: type,
    category: str,
    effects: Mapping[str, Effect],
    *,
    module: str = "memory",
    is_for_users: bool = False,
) -> list[Verb]:
    return [
        Verb(
            module=module,
            name=name,
            category=category,
            service=service,
            method=getattr(kind, name),
            effect=effect,
            is_for_users=is_for_users,
        )
        for name, effect in effects.items()
    ]


_NOTES: Final[Mapping[str, Effect]] = {
    "store": "adds",
    "store_batch": "adds",
    "remember": "adds",
    "search": "reads",
    "search_batch": "reads",
    "search_by_tag": "reads",
    "search_iter": "reads",
    "recall": "reads",
    "get": "reads",
    "history": "reads",
    "list": "reads",
    "update": "changes",
    "delete": "removes",
    "delete_batch": "removes",
    "delete_by_tag": "removes",
    "forget": "removes",
    "restore": "changes",
    "health": "reads",
}

_NOTES_FOR_USERS: Final[Mapping[str, Effect]] = {"purge": "destroys"}

_EVENTS: Final[Mapping[str, Effect]] = {
    "record_event": "changes",
    "recall_events": "reads",
    "get_event": "reads",
}

_CONSOLIDATION: Final[Mapping[str, Effect]] = {
    "consolidate": "changes",
    "undo": "changes",
    "consolidations": "reads",
}

_DOCUMENTS: Final[Mapping[str, Effect]] = {
    "ingest": "adds",
    "documents": "reads",
    "forget_document": "removes",
}

# Under the names that others use; the rest of the graph is a module of its own.
_GRAPH_IN_MEMORY: Final[Mapping[str, Effect]] = {"create_entity": "adds", "search_graph": "reads"}

_GRAPH: Final[Mapping[str, Effect]] = {
    "create_entities": "adds",
    "create_relations": "adds",
    "add_observations": "adds",
    "delete_entities": "removes",
    "delete_observations": "removes",
    "delete_relations": "removes",
    "read_graph": "reads",
    "search_nodes": "reads",
    "open_nodes": "reads",
    **_GRAPH_IN_MEMORY,
    "neighbors": "reads",
    "shortest_path": "reads",
    "mentions": "reads",
    "entities_of": "reads",
    "export_jsonl": "reads",
    "import_jsonl": "adds",
}

_TRANSFER: Final[Mapping[str, Effect]] = {"export_file": "reads", "import_file": "adds"}

VERBS: Final[Mapping[str, Verb]] = {
    verb.path: verb
    for verb in [
        *_verbs("notes", Memory, "memory", _NOTES),
        *_verbs("notes", Memory, "memory", _NOTES_FOR_USERS, is_for_users=True),
        *_verbs("events", Events, "events", _EVENTS),
        *_verbs("consolidation", Consolidation, "consolidation", _CONSOLIDATION),
        *_verbs("documents", Documents, "documents", _DOCUMENTS),
        *_verbs("graph", Graph, "graph", _GRAPH_IN_MEMORY),
        *_verbs("graph", Graph, "graph", _GRAPH, module="graph"),
        *_verbs("transfer", Transfer, "transfer", _TRANSFER, is_for_users=True),
    ]
}
"""By path: `memory.search`."""
