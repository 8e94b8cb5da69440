"""Search by meaning, kept ready in the background.

The vectors of all tools are computed once and kept on disk by the hash of their texts. Until they
and the model are there, search goes by words.
"""

import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from toolfold.catalog.listing import write_whole
from toolfold.catalog.search.discovery import SearchResult, ToolIndex
from toolfold.embedding import Embedder, dequantize, quantize
from toolfold.errors import StoreError

# numpy costs 0.1 s to import, which happens in the background too.
if TYPE_CHECKING:
    from toolfold.catalog.search.vectors import EmbeddingText, VectorTable

_log = logging.getLogger(__name__)

_TEXTS_AT_ONCE: Final = 8
_MAX_KEPT: Final = 20_000


class ToolVectorIndex:
    """Knows what tools mean, after a while."""

    def __init__(self, embedder: Embedder, directory: Path) -> None:
        self._embedder = embedder
        self._path = directory / f"{re.sub(r'[^A-Za-z0-9.-]', '_', embedder.name)}.json"
        self._table: VectorTable | None = None
        self._ready: tuple[ToolIndex, ToolIndex] | None = None
        self._wanted: ToolIndex | None = None
        self._index_of: Callable[[], ToolIndex] | None = None
        self._news = anyio.Event()

    def want(self, index: ToolIndex) -> None:
        """Learn what the tools of `index` mean, in the background."""
        if index is not self._wanted:
            self._wanted = index
            self._news.set()

    def follow(self, index_of: Callable[[], ToolIndex]) -> None:
        """Learn from now on, in the background, what the tools of the latest index mean."""
        self._index_of = index_of
        self._news.set()

    def renew(self) -> None:
        """Take note that the index may be another now."""
        if self._index_of is not None:
            self._news.set()

    def is_ready_for(self, index: ToolIndex) -> bool:
        """Whether it is known what the tools of `index` mean."""
        return self._ready is not None and self._ready[0] is index

    async def search(
        self, index: ToolIndex, query: str, *, limit: int, server: str | None = None
    ) -> SearchResult:
        """Search by words and meaning; by words alone while the meaning is not known."""
        self.want(index)
        if self._ready is None or not self.is_ready_for(index):
            return index.search(query, limit=limit, server=server)
        ready = self._ready[1]
        return await anyio.to_thread.run_sync(
            lambda: ready.search(query, limit=limit, server=server, embed=self._embedder.embed)
        )

    async def keep_learning(self) -> None:
        """Learn whatever is wanted, until cancelled. A model that fails leaves search by words."""
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            if self._index_of is not None:
                self._wanted = await anyio.to_thread.run_sync(self._index_of)
            if self._wanted is None or self.is_ready_for(self._wanted):
                continue
            try:
                await self._learn(self._wanted)
            except StoreError as error:
                _log.warning("Tools are searched by words alone: %s", error)

    async def _learn(self, index: ToolIndex) -> None:
        if self._table is None:
            self._table = await anyio.to_thread.run_sync(self._load)
        missing = await anyio.to_thread.run_sync(self._table.missing, index.tools)
        for start in range(0, len(missing), _TEXTS_AT_ONCE):
            texts = missing[start : start + _TEXTS_AT_ONCE]
            self._table = await anyio.to_thread.run_sync(self._extended, self._table, texts)
            if self._wanted is not index:
                return  # the tools have changed meanwhile
        self._ready = (index, await anyio.to_thread.run_sync(self._finish, index, self._table))
        if missing:
            if len(self._table) > _MAX_KEPT:
                self._table = self._table.reduced(index.tools)
            await anyio.to_thread.run_sync(self._save, self._table)

    def _extended(self, table: "VectorTable", texts: "list[EmbeddingText]") -> "VectorTable":
        vectors = self._embedder.embed([text.text for text in texts])
        # As they will come back from the disk, so that a restart changes no order.
        return table.extended(texts, dequantize(quantize(vectors)))

    def _finish(self, index: ToolIndex, table: "VectorTable") -> ToolIndex:
        from toolfold.catalog.search.vectors import ToolVectors

        self._embedder.embed([""])  # loads the model, so that no search waits for it
        return index.with_vectors(ToolVectors(index.tools, table))

    def _load(self) -> "VectorTable":
        """Read the vectors that are kept; a damaged file counts as none."""
        from toolfold.catalog.search.vectors import VectorTable

        try:
            stored = json.loads(self._path.read_bytes())
            blobs = [bytes.fromhex(blob) for blob in stored.values()]
            return VectorTable(dict(zip(stored, dequantize(blobs), strict=True)))
        except (OSError, ValueError, AttributeError, TypeError, StoreError):
            return VectorTable()

    def _save(self, table: "VectorTable") -> None:
        import numpy as np

        keys = [key for key, _ in table.items()]
        blobs = quantize(np.array([vector for _, vector in table.items()], np.float32))
        hexed = {key: blob.hex() for key, blob in zip(keys, blobs, strict=True)}
        write_whole(self._path, json.dumps(hexed))
