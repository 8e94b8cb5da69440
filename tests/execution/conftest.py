"""Fixtures that a whole module shares need a backend that does as well."""

import pytest


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"
