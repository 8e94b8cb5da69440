"""The contract of a DocumentStore, held against every one there is."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from stores import OpenBackend, draft

from toolfold.memory.documents.models import Document, DocumentStore, Placed, thread_of
from toolfold.memory.models import Draft
from toolfold.memory.sql.documents import SqlDocuments
from toolfold.memory.store import EVERYTHING, Store

NS = "project"
Both = tuple[DocumentStore, Store]


@pytest.fixture
def open_both(open_backend: OpenBackend) -> Callable[[Path], AbstractAsyncContextManager[Both]]:
    @asynccontextmanager
    async def open_both(directory: Path) -> AsyncIterator[Both]:
        async with open_backend(directory) as backend:
            yield SqlDocuments(backend.database), backend.store

    return open_both


@pytest.fixture
async def both(
    open_both: Callable[[Path], AbstractAsyncContextManager[Both]], tmp_path: Path
) -> AsyncIterator[Both]:
    async with open_both(tmp_path / "data") as both:
        yield both


def document(path: str = "/a.md", **values: object) -> Document:
    made = Document(
        path=path,
        kind="markdown",
        title="A",
        pages=None,
        size=3,
        modified_ns=1_700_000_000_123_456_789,
        digest="0" * 64,
        reader=1,
        tags=("x", "ö"),
        chunks=1,
        ingested=5.5,
    )
    return replace(made, **values)  # type: ignore[arg-type]


def chunks(path: str, *said: tuple[int, str], page: int = 1) -> list[Draft]:
    return [
        draft(
            content,
            type="document",
            thread=thread_of(path),
            position=position,
            metadata={"page": page},
        )
        for position, content in said
    ]


async def said(notes: Store) -> dict[str, object]:
    found = await notes.newest(NS, EVERYTHING, limit=100)
    return {note.content: note.metadata.get("page") for note in found.notes}


async def test_a_document_is_found_as_it_was_kept(both: Both) -> None:
    documents, notes = both

    keys = await documents.put(NS, document(), lambda _: chunks("/a.md", (1, "one")), now=1.0)

    assert await documents.find(NS, "/a.md") == document()
    assert await documents.find("other", "/a.md") is None
    assert await documents.find(NS, "/b.md") is None
    assert [note.content for note in (await notes.load(NS, keys)).values()] == ["one"]


async def test_the_plan_is_told_what_there_is_and_gets_what_it_wants(both: Both) -> None:
    documents, notes = both
    told: list[Sequence[Placed]] = []

    def first(kept: Sequence[Placed]) -> list[Draft]:
        told.append(kept)
        return chunks("/a.md", (20, "two"), (10, "one"))

    def second(kept: Sequence[Placed]) -> list[Draft]:
        told.append(kept)
        return chunks("/a.md", (10, "one"), (15, "new"), page=2)

    before = await documents.put(NS, document(), first, now=1.0)
    after = await documents.put(NS, document(size=9), second, now=2.0)

    assert [list(each) for each in told] == [[], [Placed(10, "one"), Placed(20, "two")]]
    assert await said(notes) == {"one": 2, "new": 2}
    assert before[1] == after[0]
    assert (await documents.find(NS, "/a.md")) == document(size=9)


async def test_a_plan_that_fails_changes_nothing(both: Both) -> None:
    documents, notes = both
    await documents.put(NS, document(), lambda _: chunks("/a.md", (1, "one")), now=1.0)

    def fail(_: Sequence[Placed]) -> list[Draft]:
        raise RuntimeError("no plan")

    with pytest.raises(RuntimeError):
        await documents.put(NS, document(size=9), fail, now=2.0)

    assert await documents.find(NS, "/a.md") == document()
    assert await said(notes) == {"one": 1}


async def test_notes_of_others_in_the_same_thread_are_left_alone(both: Both) -> None:
    documents, notes = both
    await notes.add(NS, [draft("mine", thread=thread_of("/a.md"), position=5)], now=1.0)
    await documents.put(NS, document(), lambda _: chunks("/a.md", (1, "one")), now=1.0)

    await documents.put(NS, document(), lambda _: [], now=2.0)
    assert set(await said(notes)) == {"mine"}
    assert await documents.forget(NS, ["/a.md"], now=3.0) == 0
    assert set(await said(notes)) == {"mine"}


async def test_a_touched_document_keeps_its_chunks_and_an_unknown_one_stays_unknown(
    both: Both,
) -> None:
    documents, notes = both
    await documents.put(NS, document(), lambda _: chunks("/a.md", (1, "one")), now=1.0)

    await documents.touch(NS, document(modified_ns=7))
    await documents.touch(NS, document("/b.md"))
    await documents.touch("nowhere", document())

    assert (await documents.find(NS, "/a.md")) == document(modified_ns=7)
    assert await documents.find(NS, "/b.md") is None
    assert await said(notes) == {"one": 1}


async def test_documents_are_listed_by_path_and_by_folder(both: Both) -> None:
    documents, _ = both
    paths = ["/d/b.md", "/d", "/d/a/x.md", "/d-e/c.md", "/e.md"]
    for path in paths:
        await documents.put(NS, document(path), lambda _: [], now=1.0)

    page = await documents.page(NS, limit=2, offset=1)
    assert ([each.path for each in page.documents], page.total) == (["/d-e/c.md", "/d/a/x.md"], 5)
    assert await documents.below(NS, "/d") == ["/d", "/d/a/x.md", "/d/b.md"]
    assert await documents.below(NS, "/") == sorted(paths)
    assert await documents.below("other", "/") == []


async def test_what_is_forgotten_is_gone_with_its_notes(both: Both) -> None:
    documents, notes = both
    for path in ("/a.md", "/b.md"):
        drafts = chunks(path, (1, f"one of {path}"), (2, f"two of {path}"))
        await documents.put(NS, document(path), lambda _, drafts=drafts: drafts, now=1.0)

    assert await documents.forget(NS, ["/a.md", "/none"], now=2.0) == 2

    assert await documents.find(NS, "/a.md") is None
    assert set(await said(notes)) == {"one of /b.md", "two of /b.md"}
    assert await notes.restore(NS, [drafts_hash("/a.md")], now=3.0) == 1


def drafts_hash(path: str) -> str:
    return chunks(path, (1, f"one of {path}"))[0].hash
