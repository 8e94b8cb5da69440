"""From the chunks of a document to the notes that it is to have."""

from collections.abc import Sequence

from toolfold.jsontypes import JsonObject
from toolfold.memory.documents.chunks import Chunk
from toolfold.memory.documents.models import NOTE_TYPE, Document, Placed
from toolfold.memory.documents.positions import place
from toolfold.memory.drafts import StoreInput, make_draft
from toolfold.memory.models import Draft


class ChunkPlan:
    """Tells the store which notes a document is to have; see `store.Plan`."""

    def __init__(self, document: Document, chunks: Sequence[Chunk], *, now: float) -> None:
        self._document = document
        self._chunks = chunks
        self._now = now
        self.written = 0
        """How many of them were not there before."""

    def __call__(self, kept: Sequence[Placed]) -> list[Draft]:
        """Return the notes, of which as many as possible are those that there are."""
        positions = place(kept, [chunk.content for chunk in self._chunks])
        pairs = zip(self._chunks, positions, strict=True)
        drafts = [self._draft(chunk, position) for chunk, position in pairs]
        known = set(kept)
        self.written = sum(Placed(each.position or 0, each.content) not in known for each in drafts)
        return drafts

    def _draft(self, chunk: Chunk, position: int) -> Draft:
        given = StoreInput(
            content=chunk.content,
            tags=self._document.tags,
            memory_type=NOTE_TYPE,
            metadata=_metadata(self._document, chunk),
            source=self._document.path,
            thread=self._document.thread,
            position=position,
        )
        return make_draft(given, now=self._now)


def _metadata(document: Document, chunk: Chunk) -> JsonObject:
    metadata: JsonObject = {"title": document.title}
    if chunk.headings:
        metadata["heading"] = list(chunk.headings)
    if chunk.page is not None:
        metadata["page"] = chunk.page
    return metadata
