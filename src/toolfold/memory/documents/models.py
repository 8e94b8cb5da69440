"""What is known of documents, how it is shown, and what keeps it. Standard library only."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

from toolfold.errors import count
from toolfold.memory.documents.kinds import DocumentKind
from toolfold.memory.models import Draft

NOTE_TYPE: Final = "document"
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file whose text is remembered. Its chunks are notes."""

    path: str
    kind: DocumentKind
    title: str
    pages: int | None
    size: int
    modified_ns: int
    """When the file was changed last; 0 if that was too short a time ago to tell by."""

    digest: str
    """SHA-256 of the file."""

    reader: int
    """By which version of the readers and the cutting."""

    tags: tuple[str, ...] = ()
    chunks: int
    ingested: float
    """When, in seconds since 1970."""

    @property
    def thread(self) -> str:
        """The name under which its chunks stand beside each other."""
        return thread_of(self.path)


class Placed(NamedTuple):
    """A chunk of a document as it is kept."""

    position: int
    content: str


class CompactDocument(NamedTuple):
    """A document in one line."""

    path: str
    title: str
    kind: str
    chunks: int
    pages: int | None
    tags: tuple[str, ...]
    ingested: float

    def __repr__(self) -> str:
        pages = f", {count(self.pages, 'page')}" if self.pages else ""
        tags = f" [{', '.join(self.tags)}]" if self.tags else ""
        return f"{self.path}{tags} ({self.kind}{pages}, {count(self.chunks, 'note')}): {self.title}"


class CompactDocuments(NamedTuple):
    """Documents by path; `total` counts all there are."""

    documents: tuple[CompactDocument, ...]
    total: int

    def __repr__(self) -> str:
        if not self.total:
            return "No documents."
        heading = f"{len(self.documents)} of {count(self.total, 'document')}:"
        return "\n".join([heading, *map(repr, self.documents)])


class Failure(NamedTuple):
    """A file that could not be read, and why."""

    path: str
    reason: str

    def __repr__(self) -> str:
        return f"{self.path}: {self.reason}"


class Ingested(NamedTuple):
    """What came of reading files. Files that failed are named; the others are done."""

    added: int
    updated: int
    unchanged: int
    notes: int
    """How many notes were written, of all documents that were added or updated."""

    failures: tuple[Failure, ...]
    missing: tuple[str, ...]
    """Documents that were ingested from there and are gone; `forget_document` forgets them."""

    def __repr__(self) -> str:
        counts = (
            f"{self.added} added, {self.updated} updated, {self.unchanged} unchanged; "
            f"{count(self.notes, 'note')} written."
        )
        return "\n".join(
            [
                counts,
                *_listed("could not be read", [repr(each) for each in self.failures]),
                *_listed("gone; forget_document(path) forgets them", self.missing),
            ]
        )


def compact(document: Document) -> CompactDocument:
    """Return a document in one line."""
    return CompactDocument(
        document.path,
        document.title,
        document.kind,
        document.chunks,
        document.pages,
        document.tags,
        document.ingested,
    )


def thread_of(path: str) -> str:
    """Return the name of the thread that the chunks of a document are in."""
    return f"document:{path}"


def _listed(what: str, lines: "tuple[str, ...] | list[str]") -> list[str]:
    if not lines:
        return []
    more = [f"  and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return [f"{len(lines)} {what}:", *(f"  {line}" for line in lines[:_SHOWN]), *more]


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

    async def chunks(self, namespace: str, path: str) -> list[str]:
        """Return the hashes of the notes of a document, in its order."""

    async def below(self, namespace: str, folder: str) -> list[str]:
        """Return the paths of all documents in a folder and its folders, and of one at it."""
