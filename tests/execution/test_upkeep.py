"""Growth is bounded: logs while they are written, caches, sessions that nobody uses."""

import gc
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from support import ROOT, MakeApp, MakeConfig, python

from toolfold.catalog.listing import ListingCache
from toolfold.config.config import Config
from toolfold.execution.sessions.folder import SessionFolder
from toolfold.execution.upkeep import (
    KINDS,
    keep_collections_short,
    kind_of,
    rotate_logs,
    sweep_all,
)
from toolfold.storage.files import rotate_log

DAY_S = 86_400.0


def test_the_documented_table_is_the_one_that_is_kept() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    table = page.partition("## What grows")[2]
    rows = re.findall(r"^\| `(\w+)/(.+?)` \| (.+) \|$", table, re.MULTILINE)

    assert rows == [(kind.root, kind.pattern, kind.bound) for kind in KINDS]


USE = """
import memory, skills
from pathlib import Path

def double(n: int) -> int:
    '''Return twice a number.'''
    return 2 * n

memory.store(content="A note")
skills.save("double", "double", "Twice", scope="user")
Path("/workspace/sub").mkdir()
Path("/workspace/sub/x.txt").write_text("x")
null.put(value=1)
"""


def test_no_file_is_of_a_kind_that_the_table_does_not_name(home: Path, tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TOOLFOLD_HOME": str(home)}
    server = {"command": sys.executable, "args": [str(ROOT / "tests" / "servers" / "null.py")]}
    (home / "config").mkdir(parents=True)
    (home / "config" / "mcp.json").write_text(json.dumps({"mcpServers": {"null": server}}))
    (tmp_path / ".git").mkdir()

    def toolfold(*words: str) -> None:
        done = subprocess.run(
            [python(), "-m", "toolfold", *words],
            env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    toolfold("run", "--session", "s", "-c", f"import null{USE}")
    toolfold("run", "--session", "c", "-c", "import decimal\nd = decimal.Decimal(1)")
    toolfold("tools", "search", "put")
    toolfold("keys", "create", "ci")
    toolfold("policy", "ask", "null.put")
    toolfold("stop")

    found = [
        (root, path.relative_to(home / root).as_posix())
        for root in ("data", "cache", "state", "runtime")
        for path in sorted((home / root).rglob("*"))
        if not path.is_dir()
    ]
    assert len(found) > 15
    assert kind_of("state", "logs/unknown.txt") is None
    assert kind_of("data", "projects/a/other/file") is None
    assert [each for each in found if kind_of(*each) is None] == []


def test_a_log_is_cut_while_its_program_writes(tmp_path: Path) -> None:
    log = tmp_path / "noisy.log"
    with log.open("ab") as file:
        code = "import sys\nfor n in range(20000): sys.stderr.write(f'line {n}\\n' * 10)"
        program = subprocess.Popen([sys.executable, "-c", code], stderr=file)
        largest = 0
        while program.poll() is None:
            rotate_log(log, 100_000)
            largest = max(largest, log.stat().st_size)
        rotate_log(log, 100_000)

    assert log.stat().st_size <= 100_000
    assert (tmp_path / "noisy.log.1").stat().st_size <= 100_000
    assert not log.read_bytes().startswith(b"\0")  # no hole where it was cut
    assert largest < 20_000_000


async def test_the_last_crash_of_a_server_is_kept(
    running: MakeApp, tmp_path: Path, home: Path
) -> None:
    script = tmp_path / "crash.py"
    source = (ROOT / "tests" / "servers" / "null.py").read_text()
    script.write_text(
        f"import os, sys, threading\nsys.path.insert(0, {str(ROOT / 'tests' / 'servers')!r})\n"
        f"if os.path.exists({str(tmp_path / 'sick')!r}):\n"
        "    sys.stderr.write('the disk is on fire\\n'); sys.stderr.flush(); os._exit(3)\n"
        f"sys.stderr.write('all is well\\n'); sys.stderr.flush()\n{source}"
    )
    (tmp_path / "sick").touch()
    servers = {"null": {"command": sys.executable, "args": [str(script)]}}
    async with running(servers) as it:
        await it.app.catalog.learn(["null"], fresh=True)
    (tmp_path / "sick").unlink()
    for _ in range(2):
        async with running(servers) as it:
            await it.app.catalog.learn(["null"], fresh=True)
            assert it.app.catalog.statuses()[0].fault is None

    logs = home / "state" / "logs"
    [crash] = logs.glob("null-*.log.crash")
    assert "the disk is on fire" in crash.read_text()
    assert crash.stat().st_mode & 0o777 == 0o600


def test_sessions_of_projects_that_nobody_opens_end(make_config: MakeConfig) -> None:
    config = make_config({}, session_days=30)
    used, abandoned = (config.directories.data / "sessions" / name for name in ("aa", "bb"))
    for folder in (used, abandoned):
        folder.mkdir(parents=True)
        (folder / "s.session").write_bytes(b"x" * 1000)
        SessionFolder(folder).locked("s").close()
        (folder / "s~update.lock").touch()
    long_ago = time.time() - 40 * DAY_S
    for path in abandoned.iterdir():
        os.utime(path, (long_ago, long_ago))

    sweep_all(config)

    assert not abandoned.exists()
    assert (used / "s.session").exists()


def test_a_session_that_a_run_has_is_not_ended(make_config: MakeConfig) -> None:
    config = make_config({}, session_days=30)
    folder = config.directories.data / "sessions" / "aa"
    folder.mkdir(parents=True)
    path = folder / "s.session"
    path.write_bytes(b"x")
    with SessionFolder(folder).locked("s"):
        os.utime(path, (0, 0))
        sweep_all(config)

        assert path.exists()


def day_of_work(config: Config, day: int, now: float) -> None:
    """Do what a day leaves on the disk, as the parts that write it do, and as of that day."""
    directories = config.directories
    cache, logs = ListingCache(directories.cache), directories.state / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    written = []
    for number in range(40):
        digest = f"{day:08d}{number:024d}"
        cache.save(digest, [])
        for kind in ("offers", "shapes"):
            path = cache.sibling(kind, digest)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}" * 500)
        manifest = directories.cache / "manifests" / f"{digest}.json"
        manifest.parent.mkdir(parents=True, exist_ok=True)
        manifest.write_text("{}" * 2000)
        written += [manifest, *(cache.sibling(k, digest) for k in ("tools", "offers", "shapes"))]
    for number in range(10):
        log = logs / f"server{number}-{day:08x}.log"
        with log.open("ab") as file:
            file.truncate(6_000_000 if number == 0 else 6_000)
        if number > 0:  # those of several megabytes are rotated below
            rotate_log(log, 5_000)
        folder = directories.data / "sessions" / f"project{day:04d}{number}"
        folder.mkdir(parents=True, exist_ok=True)
        session = folder / "s.session"
        session.write_bytes(b"x" * 10_000)
        SessionFolder(folder).locked("s").close()
        written += [log, session, folder / "s.lock"]
    left = directories.cache / f".half.{day}.tmp"
    left.write_bytes(b"x" * 1000)
    rotate_logs(logs)
    for path in [*written, left]:
        os.utime(path, (now, now))
    sweep_all(config, now=now)


def sizes(config: Config) -> dict[str, tuple[int, int]]:
    found = {}
    for root in ("data", "cache", "state"):
        paths = [p for p in getattr(config.directories, root).rglob("*") if p.is_file()]
        found[root] = (len(paths), sum(path.stat().st_size for path in paths))
    return found


@pytest.mark.parametrize(
    "days", [60, pytest.param(400, marks=[pytest.mark.soak, pytest.mark.timeout(3000)])]
)
def test_months_of_work_leave_every_directory_flat(make_config: MakeConfig, days: int) -> None:
    config = make_config({}, session_days=7)
    start = time.time() - days * DAY_S
    for day in range(days):
        day_of_work(config, day, start + day * DAY_S)
        if day == 30:
            before = sizes(config)

    for root, (files, size) in sizes(config).items():
        assert files <= before[root][0] * 1.05, root
        assert size <= before[root][1] * 1.05, root


async def test_what_lives_long_is_set_aside_only_while_the_process_serves() -> None:
    gc.unfreeze()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_collections_short, (0.0,))
        with anyio.fail_after(60):
            while not gc.get_freeze_count():
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()

    assert gc.get_freeze_count() == 0


async def test_what_others_set_aside_before_stays_so_where_nothing_lived_long() -> None:
    gc.freeze()
    before = gc.get_freeze_count()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_collections_short, (60.0,))
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()

    assert gc.get_freeze_count() > before * 0.9  # some were let go of meanwhile
