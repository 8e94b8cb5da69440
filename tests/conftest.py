"""What every test can ask for."""

import gc
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import postgres_server
import pytest
import shared_processes
import support
from hypothesis import HealthCheck, settings
from support import ROOT, MakeApp, MakeConfig, Running, write_config

from toolfold.app import running_app
from toolfold.config.config import Config, load_config
from toolfold.storage.tables import keeping_connections

# How long an example takes depends on what else the machine does.
settings.register_profile(
    "short", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", settings.get_profile("short"), max_examples=500)  # `make soak`
settings.load_profile("short")

_WARM = pytest.StashKey[TemporaryDirectory[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--by-directory", action="store_true", help="show the time by directory")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Show how long the tests of each directory took, in seconds of all workers."""
    if not config.getoption("--by-directory"):
        return
    spent: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for report in chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            folder = "/".join(Path(report.location[0]).parts[:-1][:2])
            spent[folder] += report.duration  # type: ignore[assignment]
            tests[folder] += report.when == "call"
    for folder, seconds in spent.most_common():
        terminalreporter.write_line(f"{seconds:8.1f} s {tests[folder]:6,} tests  {folder}")


def pytest_configure(config: pytest.Config) -> None:
    """Lay out the warm interpreter, once for all workers; see `warm/interpreter.py`."""
    shared_processes.share()
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"):
        os.environ.pop(name, None)  # programs that inherit one of them are not forked
    is_worker = hasattr(config, "workerinput")
    if is_worker or sys.platform != "linux" or "COVERAGE_RUN" in os.environ:
        return
    environment = Path(sys.prefix) / "pyvenv.cfg"
    if not environment.exists():  # outside of virtual environments, tests start what there is
        return
    directory = Path(config.stash.setdefault(_WARM, TemporaryDirectory(prefix="warm-")).name)
    support.WARM = directory
    os.environ["TOOLFOLD_TEST_WARM"] = str(directory)
    (directory / "bin").mkdir()
    (directory / "lib").symlink_to(Path(sys.prefix) / "lib")
    (directory / "pyvenv.cfg").write_text(environment.read_text())
    interpreter = directory / "bin" / "python"
    source = (ROOT / "tests" / "warm" / "interpreter.py").read_text()
    interpreter.write_text(f"#!{sys.executable} -IS\n{source}")
    interpreter.chmod(0o700)
    server = [sys.executable, "-P", str(ROOT / "tests" / "warm" / "server.py")]
    command = {
        "argv": [*server, str(directory), str(os.getpid()), " " * 20_000],
        # It must have one thread, and numerical libraries start more.
        "environ": {
            "PATH": os.environ["PATH"],
            "ORT_DISABLE_TELEMETRY": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PADDING": " " * 60_000,
        },
    }
    (directory / "command").write_text(json.dumps(command))


def pytest_collection_finish() -> None:
    """Set all tests aside: each full collection would look through half a million objects."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """End what tests have started for all; workers end without a word, so not at exit."""
    postgres_server.stop()
    shared_processes.stop()


def pytest_unconfigure(config: pytest.Config) -> None:
    if (directory := config.stash.get(_WARM, None)) is not None:
        directory.cleanup()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A toolfold of its own: empty, and not the user's."""
    return tmp_path / "home"


@pytest.fixture(params=["sqlite", "postgres"])
def either_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty PostgreSQL; empty in the other half of the tests that take it."""
    url = postgres_server.database_url(tmp_path) if request.param == "postgres" else ""
    with keeping_connections(url):
        yield url


@pytest.fixture
def make_config(tmp_path: Path, home: Path) -> MakeConfig:
    """Return a function from `mcpServers` entries to a Config; settings with `__` for dots."""

    def make(servers: dict[str, Any], *, toml: str = "", **settings: object) -> Config:
        (home / "config").mkdir(parents=True, exist_ok=True)
        (home / "config" / "config.toml").write_text(toml)
        return load_config(
            config_file=write_config(tmp_path / "mcp.json", servers),
            cwd=tmp_path,
            environ={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TOOLFOLD_HOME": str(home)},
            overrides={key.replace("__", "."): value for key, value in settings.items()},
        )

    return make


@pytest.fixture
def running(make_config: MakeConfig) -> MakeApp:
    """Return `running(servers, limits__calls=5)`: an app over these servers."""

    @asynccontextmanager
    async def open_app(servers: dict[str, Any], **settings: Any) -> AsyncIterator[Running]:
        async with running_app(make_config(servers, **settings)) as app:
            yield Running(app)

    return open_app
