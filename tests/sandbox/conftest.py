"""One pool of workers serves all tests of a module."""

from collections.abc import AsyncIterator

import pytest
from guests import running_sandbox

from toolfold.sandbox.monty import MontySandbox


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def sandbox(anyio_backend: str) -> AsyncIterator[MontySandbox]:
    async with running_sandbox() as sandbox:
        yield sandbox
