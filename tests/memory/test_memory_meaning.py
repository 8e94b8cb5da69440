"""Every note gets its vector."""

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from fakes import FakeEmbedder
from memories import running_memory
from stores import draft, embed_all, found, sqlite_store

from toolfold.embedding import Vectors
from toolfold.errors import StoreError
from toolfold.memory.note_vectors import reembed

NS = "project"


class StumblingEmbedder(FakeEmbedder):
    """Fails after a number of texts."""

    def __init__(self, name: str, *, texts: int) -> None:
        super().__init__(name)
        self.left = texts

    def embed(self, texts: Sequence[str]) -> Vectors:
        if any(texts):
            self.left -= len(texts)
        if self.left < 0:
            raise StoreError("The power went out.")
        return super().embed(texts)


async def test_notes_that_a_dead_process_left_without_vectors_get_them_at_the_next_start(
    tmp_path: Path, embedder: FakeEmbedder
) -> None:
    async with sqlite_store(tmp_path) as store:
        for namespace in ("project", "other"):
            await store.add(namespace, [draft(f"fact {n}") for n in range(40)], now=1.0)
        assert len(await store.unembedded()) == 80

    async with running_memory(tmp_path, embedder) as memory:
        with anyio.fail_after(60):
            await memory.until_ready()
        assert (await memory.health()).ready

    async with sqlite_store(tmp_path) as store:
        assert await store.unembedded() == []


async def test_a_store_of_another_embedder_is_embedded_again_and_found_by_words_meanwhile(
    tmp_path: Path, embedder: FakeEmbedder
) -> None:
    async with running_memory(tmp_path, embedder) as memory:
        await memory.store_batch([f"fact {n}" for n in range(100)])
        await memory.until_ready()
    other = StumblingEmbedder("other", texts=20)

    async with running_memory(tmp_path, other) as memory:
        with pytest.raises(StoreError, match="power"):
            await memory.until_ready()
        health = await memory.health()
        assert not health.ready
        assert "power" in health.status
    async with sqlite_store(tmp_path) as store:
        left = len(await store.unembedded())
        assert 80 <= left < 100, "what was done is kept, the rest is still to do"
        assert await found(store, NS, "7") == ["fact 7"], "found by its words"

    async with running_memory(tmp_path, FakeEmbedder("other")) as memory:
        await memory.until_ready()
        assert (await memory.health()).ready
        assert (await memory.search("fact 7")).memories[0].preview == "fact 7"


async def test_embedding_again_goes_on_where_it_was_stopped(
    tmp_path: Path, embedder: FakeEmbedder
) -> None:
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        told.append((done, total))

    async with sqlite_store(tmp_path) as store:
        await store.add(NS, [draft(f"fact {n}") for n in range(50)], now=1.0)
        await embed_all(store, embedder)
    for texts in (20, 100):
        async with sqlite_store(tmp_path) as store:
            try:
                await reembed(store, StumblingEmbedder("other", texts=texts), progress=progress)
            except StoreError as error:
                assert "power" in str(error)  # noqa: PT017
            assert await found(store, NS, "50") == []
            assert len(await found(store, NS, "fact")) == 50, "found by words all the while"

    assert told == [(0, 50), (16, 50), (0, 34), (16, 34), (32, 34), (34, 34)]


async def test_a_model_that_cannot_be_loaded_drops_no_vectors(
    tmp_path: Path, embedder: FakeEmbedder
) -> None:
    broken = FakeEmbedder("broken")
    broken.failure = StoreError("The model is gone.")
    async with sqlite_store(tmp_path) as store:
        await store.add(NS, [draft("fact")], now=1.0)
        await embed_all(store, embedder)
        with pytest.raises(StoreError, match="gone"):
            await reembed(store, broken, progress=lambda done, total: None)
        assert await found(store, NS, "fact", embedder=embedder) == ["fact"]
