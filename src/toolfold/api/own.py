"""The store opened by this process itself, for where there is no daemon."""

import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Final

import anyio
from anyio.from_thread import BlockingPortal

from toolfold.app import running_memories
from toolfold.config.config import Config, load_config
from toolfold.embedding import BuiltinEmbedder, Embedder
from toolfold.errors import StoreError, ToolfoldError
from toolfold.memory.forms import as_json
from toolfold.memory.memories import Memories, RequestContext

_MAX_CLOSING_S: Final = 10.0


class OwnMemory:
    """Memory in a thread of its own, so that it works with and without an event loop."""

    def __init__(self) -> None:
        """Open it.

        Raises:
            ConfigError: The configuration cannot be read.
        """
        config = load_config()
        self._embedder = BuiltinEmbedder()
        self._process = os.getpid()
        begun: SimpleQueue[tuple[BlockingPortal, Memories]] = SimpleQueue()
        # The workers of a daemonic thread are daemonic too, so none of them delays the exit.
        self._thread = threading.Thread(
            target=anyio.run, args=(_serve, config, self._embedder, begun), daemon=True
        )
        self._thread.start()
        self._portal, self._memories = begun.get()

    def ask(self, question: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Give the answer to a question as the daemon would.

        Raises:
            ConfigError: The configuration cannot be read.
            StoreError: Memory is closed.
        """
        config = load_config()
        place = RequestContext(question["namespace"] or config.namespace, config.settings.memory)
        try:
            if question.get("pages"):
                yield from self._pages(place, question)
            else:
                yield from self._whole(place, question)
        except ToolfoldError as error:
            yield {"error": {"code": error.code, "message": str(error)}}

    def _whole(self, place: RequestContext, question: dict[str, Any]) -> Iterator[dict[str, Any]]:
        parts: SimpleQueue[dict[str, Any] | None] = SimpleQueue()

        def note(done: int, total: int, what: str = "") -> None:
            parts.put({"progress": [done, total, what]})

        verb, arguments = question["verb"], question["arguments"]
        progress = note if question.get("progress") else None
        answer = self._start(
            partial(self._memories.call, place, verb, arguments, progress=progress)
        )
        answer.add_done_callback(lambda _: parts.put(None))
        while (part := parts.get()) is not None:
            yield part
        yield {"value": as_json(answer.result())}

    def _pages(self, place: RequestContext, question: dict[str, Any]) -> Iterator[dict[str, Any]]:
        pages = self._memories.pages(place, question["verb"], question["arguments"])
        try:
            while found := self._start(partial(_next, pages)).result():
                yield {"page": as_json(found[0])}
        finally:
            with suppress(StoreError):
                self._start(pages.aclose)
        yield {"value": None}

    def _start(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Future[Any]:
        if os.getpid() != self._process:
            raise StoreError("What this continues was begun before the process forked. Ask anew.")
        try:
            return self._portal.start_task_soon(work)
        except RuntimeError as error:
            raise StoreError(f"Memory is closed: {error}.") from error

    def until_loaded(self) -> None:
        """Wait until no thread loads the model: a child forked meanwhile could never load it."""
        with suppress(StoreError):  # whoever searches is told
            self._embedder.embed([""])

    def close(self) -> None:
        """Close the store. What was stored is kept; vectors that are missing are made later."""
        self._portal.start_task_soon(self._portal.stop)
        self._thread.join(_MAX_CLOSING_S)


async def _serve(
    config: Config, embedder: Embedder, begun: "SimpleQueue[tuple[BlockingPortal, Memories]]"
) -> None:
    async with running_memories(config, embedder) as memories, BlockingPortal() as portal:
        begun.put((portal, memories))
        await portal.sleep_until_stopped()


async def _next(pages: AsyncIterator[Any]) -> tuple[Any] | None:
    """Return the next page, in a tuple; None after the last."""
    async for page in pages:
        return (page,)
    return None
