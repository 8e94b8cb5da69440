"""One pool of workers serves all tests of a module."""

from collections.abc import AsyncIterator, Iterator

import pytest
import shared_processes
from guests import running_sandbox

from toolfold.sandbox.monty import MontySandbox


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", autouse=True)
def own_zygotes() -> Iterator[None]:
    """Each sandbox starts its own process that forks guests: that is what is tested here."""
    with pytest.MonkeyPatch.context() as patch:
        shared_processes.unshare_zygotes(patch)
        yield


@pytest.fixture(scope="module")
async def sandbox(anyio_backend: str) -> AsyncIterator[MontySandbox]:
    async with running_sandbox() as sandbox:
        yield sandbox
