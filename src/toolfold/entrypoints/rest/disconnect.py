"""What is begun for a client ends with it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from starlette.types import Receive


@asynccontextmanager
async def until_left(receive: Receive) -> AsyncIterator[None]:
    """Cancel what is in this context when the client leaves, and go on behind it.

    The body of the request must have been received. What is raised inside comes out in a group.
    """

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        yield
        tasks.cancel_scope.cancel()
