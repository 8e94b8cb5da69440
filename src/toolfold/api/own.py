"""The store opened by this process itself, for where there is no daemon."""

import os
import secrets
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Final

import anyio
from anyio.from_thread import BlockingPortal
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from toolfold.api.values import Terminal
from toolfold.app import running_stores, verb_doors
from toolfold.config.config import Config, load_config
from toolfold.embedding import BuiltinEmbedder, Embedder
from toolfold.errors import StoreError, ToolfoldError
from toolfold.execution.verb_door import VerbDoor, VerbDoors
from toolfold.journal.runs import TERMINAL, Origin
from toolfold.memory.models import as_json

_MAX_CLOSING_S: Final = 10.0
_MAX_HOLDING_S: Final = 10.0


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
        self._client = secrets.token_hex(8)
        self._resumed = threading.Event()
        begun: SimpleQueue[tuple[BlockingPortal, VerbDoors]] = SimpleQueue()
        # The workers of a daemonic thread are daemonic too, so none of them delays the exit.
        self._thread = threading.Thread(
            target=anyio.run, args=(_serve, config, self._embedder, begun), daemon=True
        )
        self._thread.start()
        self._portal, self._doors = begun.get()

    def ask(self, question: dict[str, Any], by: Terminal | None = None) -> Iterator[dict[str, Any]]:
        """Give the answer to a question as the daemon would, to a script or a command.

        Raises:
            ConfigError: The configuration cannot be read.
            StoreError: Memory is closed.
        """
        door = self._enter(load_config(), question["namespace"] or "", by)
        try:
            if question.get("pages"):
                yield from self._pages(door, question)
            else:
                yield from self._whole(door, question)
        except ToolfoldError as error:
            yield {"error": {"code": error.code, "message": str(error)}}

    def _enter(self, config: Config, namespace: str, by: Terminal | None) -> VerbDoor:
        project = str(config.project or config.start_directory)
        origin = Origin(client=TERMINAL if by else self._client, project=project)
        return self._doors.enter(
            config,
            origin,
            "terminal" if by else "script",
            namespace=namespace,
            ask=by.elicitor if by else None,
        )

    def _whole(self, door: VerbDoor, question: dict[str, Any]) -> Iterator[dict[str, Any]]:
        parts: SimpleQueue[dict[str, Any] | None] = SimpleQueue()

        def note(done: int, total: int, what: str = "") -> None:
            parts.put({"progress": [done, total, what]})

        verb, arguments = question["verb"], question["arguments"]
        progress = note if question.get("progress") else None
        answer = self._start(partial(door.call, verb, arguments, form=as_json, progress=progress))
        answer.add_done_callback(lambda _: parts.put(None))
        while (part := parts.get()) is not None:
            yield part
        yield {"value": answer.result()}

    def _pages(self, door: VerbDoor, question: dict[str, Any]) -> Iterator[dict[str, Any]]:
        put, pages = anyio.create_memory_object_stream[Any]()
        verb, arguments = question["verb"], question["arguments"]
        answer = self._start(partial(_put_pages, put, pages, door, verb, arguments))
        try:
            with suppress(anyio.EndOfStream, anyio.ClosedResourceError):
                while True:
                    yield {"page": self._start(pages.receive).result()}
            yield {"value": answer.result()}
        finally:
            if os.getpid() == self._process:
                answer.cancel()

    def _start(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Future[Any]:
        if os.getpid() != self._process:
            raise StoreError("What this continues was begun before the process forked. Ask again.")
        try:
            return self._portal.start_task_soon(work)
        except RuntimeError as error:
            raise StoreError(f"Memory is closed: {error}.") from error

    def hold(self) -> None:
        """Wait until a child can be forked: it could never finish what other threads are at.

        No thread loads the model then, and the one that writes the journal stands still.
        """
        with suppress(StoreError):  # whoever searches is told
            self._embedder.embed([""])
        if threading.current_thread() is self._thread:
            return
        standing, self._resumed = threading.Event(), threading.Event()
        with suppress(StoreError):
            self._start(partial(_stand_still, standing, self._resumed))
            standing.wait(_MAX_HOLDING_S)

    def go_on(self) -> None:
        """Go on in the process that has forked."""
        self._resumed.set()

    def close(self) -> None:
        """Close the store. What was stored is kept; vectors that are missing are made later."""
        self._portal.start_task_soon(self._portal.stop)
        self._thread.join(_MAX_CLOSING_S)


async def _serve(
    config: Config, embedder: Embedder, begun: "SimpleQueue[tuple[BlockingPortal, VerbDoors]]"
) -> None:
    running = running_stores(config, embedder, may_fork=True)
    async with running as stores, BlockingPortal() as portal:
        begun.put((portal, verb_doors(stores)))
        await portal.sleep_until_stopped()


async def _put_pages(
    put: MemoryObjectSendStream[Any],
    pages: MemoryObjectReceiveStream[Any],
    door: VerbDoor,
    verb: str,
    arguments: dict[str, Any],
) -> Any:
    """Have a verb done, and hand over each page when it is asked for."""

    async def on_page(page: Any) -> None:
        await put.send(as_json(page))

    async with put, pages:
        return await door.call(verb, arguments, form=as_json, on_page=on_page)


async def _stand_still(standing: threading.Event, resumed: threading.Event) -> None:
    standing.set()
    resumed.wait(_MAX_HOLDING_S)
