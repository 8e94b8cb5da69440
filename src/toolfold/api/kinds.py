"""The types of all answers: heavier to import than everything that a search needs."""

from toolfold.memory.consolidation.models import Consolidated, PastConsolidation, Undone
from toolfold.memory.documents.models import CompactDocuments, Ingested
from toolfold.memory.graph.models import Entity, GraphSearchResult
from toolfold.memory.models import (
    CompactEvents,
    CompactHealthInfo,
    CompactMemory,
    CompactSearchResult,
    Event,
    ExplainedMemory,
    Link,
    Note,
)
from toolfold.memory.transfer.models import Exported, Imported

__all__ = [
    "CompactDocuments",
    "CompactEvents",
    "CompactHealthInfo",
    "CompactMemory",
    "CompactSearchResult",
    "Consolidated",
    "Entity",
    "Event",
    "ExplainedMemory",
    "Exported",
    "GraphSearchResult",
    "Imported",
    "Ingested",
    "Link",
    "Note",
    "PastConsolidation",
    "Undone",
]
