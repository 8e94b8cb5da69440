"""Scripts that store at once, daemons that die under them, disks that are full or locked."""

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from api.memory_home import WAYS, MemoryHome, memory_home
from relay.peer import kill, wait_until

DEADLINE_S = 150

WRITER = """
import os, sys
from toolfold import api
from toolfold.errors import StoreError

name, most, stop = sys.argv[1], int(sys.argv[2]), sys.argv[3]
number = 0
while number != most and not os.path.exists(stop):
    number += 1
    try:
        stored = api.store(f"{name}x{number} is a fact of {name}", tags=name)
    except StoreError as error:
        assert "its outcome is unknown" in str(error), error
    else:
        print(stored, flush=True)
"""

CHECK = """
import sys, time
from toolfold import api

deadline = time.monotonic() + 140
while not api.health().ready:
    api.search("fact")  # which has the vectors loaded
    assert time.monotonic() < deadline, api.health()
for name in sys.stdin.read().split():
    assert api.get(name).hash.startswith(name)
for name in sys.argv[1:]:
    [by_words, *_] = api.search(f"{name}x7", limit=1, explain=True).memories
    assert by_words.preview.startswith(f"{name}x7 "), by_words
    assert "words" in by_words.why, by_words.why
    [by_meaning] = api.search("a statement that is true", limit=1, explain=True).memories
    assert "meaning" in by_meaning.why, by_meaning.why
    print(api.search_by_tag(name, limit=0).total)
print(api.health().count)
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[MemoryHome]:
    with memory_home(tmp_path) as home:
        yield home


def check(home: MemoryHome, way: str, hashes: list[str], names: list[str]) -> list[int]:
    """All these are there, found both ways, with vectors; return how many each writer has, and all.

    A process that has seen nothing of what went before looks.
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CHECK, *names],
        input="\n".join(hashes),
        capture_output=True,
        text=True,
        env=home.environ_for(way),
        cwd=home.project,
        timeout=DEADLINE_S,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert home.read("PRAGMA integrity_check") == [("ok",)]
    assert home.read("SELECT count(*) FROM points WHERE vector IS NULL") == [(0,)]
    return [int(line) for line in done.stdout.split()]


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("way", "scripts", "each"),
    [
        ("daemon", 8, 25),
        ("own", 3, 25),  # each loads the model
        *[pytest.param(way, 8, 250, marks=pytest.mark.soak) for way in WAYS],
    ],
)
def test_scripts_that_store_at_once_lose_nothing(
    home: MemoryHome, way: str, scripts: int, each: int
) -> None:
    names = [f"writer{number}" for number in range(scripts)]
    never = str(home.home / "never")
    writers = [home.start(way, WRITER, name, str(each), never) for name in names]
    hashes = []
    for writer in writers:
        output, errors = writer.communicate(timeout=DEADLINE_S)
        assert (writer.returncode, errors) == (0, "")
        hashes += output.split()

    assert len(set(hashes)) == scripts * each
    assert check(home, way, hashes, names) == [each] * scripts + [scripts * each]


ROUNDS = [3, pytest.param(50, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("rounds", ROUNDS)
def test_no_note_is_lost_when_the_daemon_is_killed_under_load(
    home: MemoryHome, rounds: int
) -> None:
    rng, stop = random.Random(5), home.home / "stop"
    names = [f"writer{number}" for number in range(3)]
    outputs = [home.project / f"{name}.txt" for name in names]
    writers = []
    for name, output in zip(names, outputs, strict=True):
        with output.open("w") as file:
            command = [sys.executable, "-W", "error", "-c", WRITER, name, "-1", str(stop)]
            writers.append(
                subprocess.Popen(command, env=home.environ, cwd=home.project, stdout=file)
            )
    killed = 0
    while killed < rounds:  # what the last one said may still be on its way when it is gone
        before = [len(output.read_text()) for output in outputs]
        wait_until(lambda: all(_grew(outputs, before)), "every script was told of a note")  # noqa: B023
        time.sleep(rng.uniform(0, 0.3))  # a kill at any moment
        for pid in home.daemons:
            kill(pid)
            killed += 1
    stop.touch()
    assert [writer.wait(DEADLINE_S) for writer in writers] == [0, 0, 0]

    hashes = [name for output in outputs for name in output.read_text().split()]
    assert len(hashes) >= 3 * rounds
    *_, count = check(home, "daemon", hashes, [])
    assert len(set(hashes)) <= count


def _grew(outputs: list[Path], before: list[int]) -> list[bool]:
    """Which scripts have printed something since."""
    return [len(path.read_text()) > old for path, old in zip(outputs, before, strict=True)]


@pytest.mark.parametrize("rounds", ROUNDS[1:])
def test_no_note_is_lost_when_scripts_with_the_store_of_their_own_are_killed(
    home: MemoryHome, rounds: int
) -> None:
    hashes: list[str] = []
    for number in range(rounds):
        names = [f"round{number}{name}" for name in "ab"]
        writers = [home.start("own", WRITER, name, "-1", "never") for name in names]
        lines = []
        for writer in writers:
            assert writer.stdout is not None
            lines += [writer.stdout.readline() for _ in range(random.randint(1, 30))]
        for writer in writers:
            writer.kill()
        for writer in writers:
            rest, _ = writer.communicate(timeout=DEADLINE_S)
            lines += rest.splitlines(keepends=True)
        # The pipe may end within the last line.
        hashes += [line.strip() for line in lines if line.endswith("\n")]
        assert home.read("PRAGMA integrity_check") == [("ok",)]

    assert len(hashes) >= 2 * rounds
    *_, count = check(home, "own", hashes, [])
    assert len(set(hashes)) <= count


FULL = """
from toolfold import api
from toolfold.errors import StoreError

count = 0
try:
    while True:
        api.store(f"note {count} " + "x" * 5000)
        count += 1
except StoreError as error:
    print(error)
print(count > 5, api.health().count == count, api.search("note 3").total > 0)
"""

LOCKED = """
from toolfold import api
from toolfold.errors import StoreError

print(api.search("fox").memories[0].preview)
for change in (lambda: api.store("more"), lambda: api.delete(api.list().memories[0].hash)):
    try:
        change()
    except StoreError as error:
        print(error)
print(api.list().total, api.get(api.list().memories[0].hash).content)
"""


def on_a_small_disk(home: MemoryHome, way: str, shell: str) -> list[str]:
    """Run shell commands, of which `py NAME` is a script, with a disk of 2 MB for the data."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed.")
    for name, code in (("full", FULL), ("locked", LOCKED)):
        (home.project / f"{name}.py").write_text(code)
    python = f'"{sys.executable}"'
    setup = f'py() {{ {python} -W error "$1.py"; }}; tf() {{ {python} -m toolfold "$@"; }}'
    disk = home.home / "data"
    disk.mkdir()
    done = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec"),
            f'{setup}; mount -t tmpfs -o size=2m tmpfs "$1"; {shell}; tf stop >&2',
            *("sh", str(disk)),
        ],
        capture_output=True,
        text=True,
        env=home.environ_for(way),
        cwd=home.project,
        timeout=DEADLINE_S,
    )
    if "unshare:" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"This machine does not let its users mount: {done.stderr.strip()}")
    assert done.returncode in {0, 1}, done.stderr  # 1: there was no daemon to stop
    return done.stdout.splitlines()


@pytest.mark.timeout(200)
@pytest.mark.parametrize("way", WAYS)
def test_a_full_disk_is_a_clear_error_and_costs_nothing(home: MemoryHome, way: str) -> None:
    error, facts, again = on_a_small_disk(
        home, way, "py full; tf stop >&2 || true; tf memory health"
    )

    assert "does not take this, and is as it was before: the disk is full. Free some" in error
    assert facts == "True True True"
    assert again.startswith("Memory ok:")


@pytest.mark.timeout(200)
@pytest.mark.parametrize("way", WAYS)
def test_a_disk_that_cannot_be_written_can_be_read(home: MemoryHome, way: str) -> None:
    found, *errors, after = on_a_small_disk(
        home,
        way,
        'tf memory store "a red fox" >&2; tf stop >&2 || true; mount -o remount,ro "$1"; py locked',
    )

    assert found == "a red fox"
    assert len(errors) == 2
    # Through the daemon, what changes something is refused where it cannot be recorded.
    reason = "it can only be read: the file or its disk is write-prot"
    assert all(reason in each or "cannot be written" in each for each in errors)
    assert after == "1 a red fox"
