"""The store opened by this process itself, for where there is no daemon."""

import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any, Final

import anyio
from anyio.from_thread import BlockingPortal

from toolfold.app import running_memories
from toolfold.config.settings import Config, load_config
from toolfold.errors import StoreError, ToolfoldError
from toolfold.memory.forms import as_json
from toolfold.memory.memories import Memories

_LONGEST_CLOSING_S: Final = 10.0


class OwnMemory:
    """Memory in a thread of its own, so that it works with and without an event loop."""

    def __init__(self) -> None:
        """Open it.

        Raises:
            ConfigError: The configuration cannot be read.
        """
        self._config = load_config()
        begun: SimpleQueue[tuple[BlockingPortal, Memories]] = SimpleQueue()
        self._thread = threading.Thread(
            target=anyio.run, args=(_serve, self._config, begun), daemon=True
        )
        self._thread.start()
        self._portal, self._memories = begun.get()

    def ask(self, question: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Give the answer to a question as the daemon would."""
        namespace = question["namespace"] or load_config().namespace
        verb, arguments = question["verb"], question["arguments"]
        try:
            value = self._portal.call(self._memories.call, namespace, verb, arguments)
        except ToolfoldError as error:
            yield {"error": {"code": error.code, "message": str(error)}}
            return
        except RuntimeError as error:
            raise StoreError(f"Memory is closed: {error}.") from error
        if question.get("pages"):
            yield from ({"page": as_json(page)} for page in value)
            value = None
        yield {"value": as_json(value)}

    def close(self) -> None:
        """Close the store. What was stored is kept; vectors that are missing are made later."""
        self._portal.start_task_soon(self._portal.stop)
        self._thread.join(_LONGEST_CLOSING_S)


async def _serve(config: Config, begun: "SimpleQueue[tuple[BlockingPortal, Memories]]") -> None:
    async with running_memories(config) as memories, BlockingPortal() as portal:
        begun.put((portal, memories))
        await portal.sleep_until_stopped()
