"""The DocumentStore protocol: what keeps documents, beside the notes that are their chunks."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from toolfold.memory.documents.models import Document, Placed
from toolfold.memory.models import Draft

PlanChunks: TypeAlias = Callable[[Sequence[Placed]], Sequence[Draft]]
"""Is told which chunks a document has, by position, and returns those that it is to have."""


class DocumentPage(NamedTuple):
    """Some documents, and how many there are."""

    documents: Sequence[Document]
    total: int


class DocumentStore(Protocol):
    """Keeps documents.

    Every method raises `StoreError` when the database does not answer or does not take a write;
    nothing has changed then.
    """

    async def find(self, namespace: str, path: str) -> Document | None:
        """Return what is known of a document, None if nothing is."""

    async def is_whole(self, namespace: str, document: Document) -> bool:
        """Tell whether all notes of a document are there: single ones can be deleted."""

    async def put(
        self, namespace: str, document: Document, plan: PlanChunks, *, now: float
    ) -> Sequence[int]:
        """Keep a document and the chunks that `plan` wants, and return their keys; all or nothing.

        A chunk that is there with the same content and position keeps its note, its vector and its
        tags; the others of the document are deleted.
        """

    async def touch(self, namespace: str, document: Document) -> None:
        """Keep what else is known of a document whose text has not changed."""

    async def forget(self, namespace: str, paths: Sequence[str], *, now: float) -> int:
        """Forget documents, and delete their chunks; return how many notes that were."""

    async def page(self, namespace: str, *, limit: int, offset: int = 0) -> DocumentPage:
        """Return documents by path."""

    async def below(self, namespace: str, folder: str) -> list[str]:
        """Return the paths of all documents in a folder and its folders, and of one at it."""
