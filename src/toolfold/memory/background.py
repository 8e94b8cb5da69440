"""Run a task beside the body of a context."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio


@asynccontextmanager
async def in_background(task: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run `task` for the length of this context, and cancel it then.

    What the body raises leaves as it is. A task group alone would wrap it, and nobody who waits for
    a `StoreError` would see one.
    """
    raised: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(task)
        try:
            yield
        except Exception as error:  # noqa: BLE001  # it is raised again below
            raised = error
        tasks.cancel_scope.cancel()
    if raised is not None:
        raise raised
