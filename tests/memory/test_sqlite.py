"""The file of a SQLite store."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from fakes import FakeEmbedder
from stores import draft, embed_all, found, sqlite_store

from toolfold.errors import StoreError
from toolfold.memory.models import Link
from toolfold.memory.sqlite.connection import SqliteFile
from toolfold.memory.sqlite.store import SqliteStore
from toolfold.memory.store import Filter, NoteChange

NS = "project"


async def test_the_file_is_for_its_user_alone(tmp_path: Path) -> None:
    async with sqlite_store(tmp_path / "data") as store:
        await store.add(NS, [draft("x")], now=1.0)
        modes = {
            path.name: stat.S_IMODE(path.stat().st_mode)
            for path in (tmp_path / "data").iterdir()
            if not path.name.endswith(".lock")
        }

    assert modes == {"memory.db": 0o600, "memory.db-wal": 0o600, "memory.db-shm": 0o600}
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


async def test_every_commit_waits_for_the_disk(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / "memory.db")
    store = SqliteStore(file)
    async with file.running(), store.running():
        settings = await file.write(
            lambda connection: [
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("journal_mode", "synchronous", "secure_delete")
            ]
        )

    assert settings == ["wal", 2, 1]


async def test_a_file_of_another_program_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    before = path.read_bytes()

    with pytest.raises(StoreError, match="another program"):
        async with sqlite_store(tmp_path):
            pass
    assert path.read_bytes()[100:] == before[100:]


async def test_a_file_of_a_newer_toolfold_is_refused(tmp_path: Path) -> None:
    async with sqlite_store(tmp_path) as store:
        await store.add(NS, [draft("x")], now=1.0)
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        connection.execute("PRAGMA user_version = 999")

    with pytest.raises(StoreError, match=r"newer toolfold.*Update"):
        async with sqlite_store(tmp_path):
            pass


async def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(b"my diary, " * 1000)

    with pytest.raises(StoreError, match="not a database"):
        async with sqlite_store(tmp_path):
            pass
    assert path.read_bytes() == b"my diary, " * 1000


async def test_a_store_follows_what_others_write_to_its_file(
    tmp_path: Path, embedder: FakeEmbedder
) -> None:
    async with sqlite_store(tmp_path) as one, sqlite_store(tmp_path) as other:
        await one.add(NS, [draft("red fox", thread="t", position=1)], now=1.0)
        await embed_all(one, embedder)
        assert await found(one, NS, "red", embedder=embedder) == ["red fox"]

        await other.add(NS, [draft("red wolf"), draft("grey cat")], now=1.0)
        assert sorted(await found(one, NS, "red", embedder=embedder)) == ["red fox", "red wolf"]
        await embed_all(other, embedder)
        await other.add(NS, [draft("blue", thread="t", position=2)], now=1.0)
        assert "blue" in await found(one, NS, "red", embedder=embedder)

        await other.delete(NS, [draft("red wolf").hash], now=2.0)
        await other.update(NS, draft("grey cat").hash, NoteChange(content="red cat"), now=2.0)
        await other.purge(NS, [draft("red fox", thread="t", position=1).hash], now=2.0)
        assert await found(one, NS, "red", embedder=embedder) == ["red cat"]
        await other.restore(NS, [draft("red wolf").hash], now=2.0)
        await embed_all(other, embedder)
        assert sorted(await found(one, NS, "red", embedder=embedder)) == ["red cat", "red wolf"]


async def test_a_process_with_the_old_embedder_does_not_compare_with_vectors_of_the_new(
    tmp_path: Path,
) -> None:
    old, new = FakeEmbedder("old"), FakeEmbedder("new", 64)
    async with sqlite_store(tmp_path) as one, sqlite_store(tmp_path) as other:
        await one.add(NS, [draft("red fox")], now=1.0)
        await embed_all(one, old)
        assert await found(one, NS, "red", embedder=old) == ["red fox"]

        await other.adopt(new.name, new.dimensions)
        await embed_all(other, new)

        with pytest.raises(StoreError, match="restart"):
            await found(one, NS, "red", embedder=old)
        assert await found(other, NS, "red", embedder=new) == ["red fox"]


async def test_nothing_of_a_purged_note_is_left_in_any_file(
    tmp_path: Path, embedder: FakeEmbedder
) -> None:
    secrets = [b"xylophone", b"zanzibar", b"quixotic", b"kaleidoscop", b"marzipan", b"wolverin"]
    async with sqlite_store(tmp_path) as store:
        fillers = [draft(f"filler number {n} about nothing {n * 7}") for n in range(300)]
        await store.add(NS, fillers[:150], now=1.0)
        await store.add(
            NS,
            [
                draft(
                    "the xylophone is in zanzibar " * 100,
                    tags=("quixotic",),
                    metadata={"kaleidoscope": 1},
                    source="marzipan",
                    thread="wolverine",
                    position=1,
                ),
            ],
            now=1.0,
        )
        name = fillers[0].hash
        kept = await store.newest(NS, Filter(tags=("quixotic",)), limit=1)
        link = Link(kind="associated", hash=kept.notes[0].hash)
        await store.add(NS, [draft("with a link", links=(link,))], now=1.0)
        await embed_all(store, embedder)
        _, note = await store.update(
            NS, kept.notes[0].hash, NoteChange(content="xylophone zanzibar again"), now=2.0
        )
        await store.add(NS, fillers[150:], now=1.0)
        await store.delete(NS, [note.hash, name], now=3.0)
        assert any(secret in _bytes(tmp_path) for secret in secrets)

        assert await store.purge(NS, [note.hash], now=4.0) == 1

        content = _bytes(tmp_path)
        assert [secret for secret in secrets if secret in content.lower()] == []
        assert kept.notes[0].hash.encode() not in content
        assert len(await found(store, NS, "filler")) == 100


def _bytes(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.iterdir()))


def test_a_store_opens_and_searches_by_words_without_numpy(tmp_path: Path) -> None:
    code = (
        "import sys, anyio, pathlib\n"
        "from toolfold.memory.models import Draft\n"
        "from toolfold.memory.sqlite.connection import SqliteFile\n"
        "from toolfold.memory.sqlite.store import SqliteStore\n"
        "from toolfold.memory.store import Query\n"
        "async def main():\n"
        "    file = SqliteFile(pathlib.Path(sys.argv[1]) / 'memory.db')\n"
        "    store = SqliteStore(file)\n"
        "    async with file.running(), store.running():\n"
        "        draft = Draft(content='red fox', hash='abcd', created=1.0)\n"
        "        await store.add('project', [draft], now=1.0)\n"
        "        query = Query(text='red', vector=None)\n"
        "        matches = await store.search('project', query, depth=5)\n"
        "        print(matches.total, 'numpy' in sys.modules)\n"
        "anyio.run(main)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, timeout=50
    )

    assert (done.stdout, done.stderr) == ("1 False\n", "")


DISK = """
import sys
from pathlib import Path

import anyio
from stores import draft, found, sqlite_store

from toolfold.errors import StoreError
from toolfold.memory.store import Filter


async def fill(directory):
    async with sqlite_store(directory) as store:
        count = 0
        try:
            while True:
                await store.add("project", [draft(f"note {count} " + "x" * 5000)], now=1.0)
                count += 1
        except StoreError as error:
            print(error)
        listing = await store.newest("project", Filter(), limit=1)
        print(listing.total - count, len(await found(store, "project", "note")) > 0)
    async with sqlite_store(directory) as store:
        print((await store.counts("project")).notes - count)


async def read(directory):
    async with sqlite_store(directory) as store:
        print((await store.counts("project")).notes, await found(store, "project", "fox"))
        try:
            await store.add("project", [draft("more")], now=1.0)
        except StoreError as error:
            print(error)
        print((await store.counts("project")).notes, await found(store, "project", "fox"))


anyio.run({"fill": fill, "read": read}[sys.argv[1]], Path(sys.argv[2]))
"""


def on_a_disk_of_its_own(commands: str, directory: Path) -> list[str]:
    """Run shell commands with a disk of one megabyte at `$1`, and return what they print."""
    script = directory.parent / "disk.py"
    script.write_text(DISK)
    shell = f'mount -t tmpfs -o size=1m tmpfs "$1" && {commands}'
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", shell),
            *("sh", directory, sys.executable, script),
        ],
        capture_output=True,
        text=True,
        timeout=50,
        env=os.environ | {"PYTHONPATH": path},
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"This machine does not let its users mount: {done.stderr.strip()}")
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed.")
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


def test_a_full_disk_is_a_clear_error_and_costs_nothing(disk: Path) -> None:
    error, here, again = on_a_disk_of_its_own('"$2" "$3" fill "$1"', disk)

    assert "does not take this, and is as it was before: the disk is full. Free some" in error
    assert here == "0 True"
    assert again == "0"


PREPARE = """
import shutil
import sys
from pathlib import Path

import anyio
from stores import draft, sqlite_store


async def main(directory, copy):
    async with sqlite_store(directory) as store:
        await store.add("project", [draft("red fox")], now=1.0)
        shutil.copytree(directory, copy)  # with its log, which goes when the store is closed


anyio.run(main, Path(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.parametrize("has_log", [False, True])
def test_a_disk_that_cannot_be_written_can_be_read(
    disk: Path, tmp_path: Path, has_log: bool
) -> None:
    prepare, copy = tmp_path / "prepare.py", tmp_path / "copy"
    prepare.write_text(PREPARE)
    restore = f'rm "$1"/* && cp "{copy}"/* "$1"' if has_log else "true"
    before, error, after = on_a_disk_of_its_own(
        f'"$2" "{prepare}" "$1" "{copy}" && {restore} && '
        'mount -o remount,ro "$1" && "$2" "$3" read "$1"',
        disk,
    )

    assert before == after == "1 ['red fox']"
    assert "it can only be read" in error
