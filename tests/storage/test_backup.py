"""Backups: consistent while others write, and read back with distrust."""

import hashlib
import io
import json
import sqlite3
import tarfile
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from toolfold.errors import BadInput, StoreError
from toolfold.storage.backup import read_backup, write_backup
from toolfold.storage.migrations import DatabaseSchema, migrate

SCHEMA = DatabaseSchema("pairs", 77, (("CREATE TABLE a (n)", "CREATE TABLE b (n)"),))
NAME = "data/pairs.db"


def make_home(root: Path) -> dict[str, Path]:
    roots = {"config": root / "config", "data": root / "data"}
    for path in roots.values():
        path.mkdir(parents=True)
    (roots["config"] / "mcp.json").write_text("{}")
    (roots["data"] / "key").write_bytes(bytes(32))
    (roots["data"] / "old.lock").touch()
    with closing(sqlite3.connect(roots["data"] / "pairs.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        migrate(connection, SCHEMA)
        connection.commit()
    return roots


def staged(root: Path) -> dict[str, Path]:
    return {"config": root / "new-config", "data": root / "new-data"}


def counted(path: Path) -> tuple[int, int]:
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b)"
        found: tuple[int, int] = connection.execute(query).fetchone()
        return found


def test_a_copy_is_of_one_moment_while_another_thread_writes(tmp_path: Path) -> None:
    roots = make_home(tmp_path)
    is_done = threading.Event()
    written = 0

    def write() -> None:
        nonlocal written
        connection = sqlite3.connect(roots["data"] / "pairs.db", isolation_level=None)
        while not is_done.is_set():
            connection.execute("BEGIN IMMEDIATE")
            for table in "ab":
                connection.execute(f"INSERT INTO {table} VALUES (?)", (written,))
            connection.execute("COMMIT")
            written += 1
        connection.close()

    writer = threading.Thread(target=write)
    writer.start()
    counts = []
    try:
        for number in range(8):
            while written < 20 * (number + 1):
                pass
            archive = tmp_path / f"{number}.tar.gz"
            write_backup(archive, roots, [NAME], version="1")
            places = staged(tmp_path / str(number))
            read_backup(archive, places, {NAME: SCHEMA})
            counts.append(counted(places["data"] / "pairs.db"))
    finally:
        is_done.set()
        writer.join()

    assert all(first == second for first, second in counts)
    firsts = [first for first, _ in counts]
    assert firsts == sorted(firsts)


def test_an_archive_is_private_and_holds_what_it_should(tmp_path: Path) -> None:
    roots = make_home(tmp_path)
    (roots["data"] / "link").symlink_to("/etc/passwd")
    (tmp_path / "dotfile").write_text("linked")
    (roots["config"] / "config.toml").symlink_to(tmp_path / "dotfile")
    archive = tmp_path / "b.tar.gz"

    manifest = write_backup(archive, roots, [NAME], version="1.2")

    assert archive.stat().st_mode & 0o777 == 0o600
    assert [*manifest.files] == ["config/config.toml", "config/mcp.json", "data/key", NAME]
    assert manifest.files["config/config.toml"].sha256 == hashlib.sha256(b"linked").hexdigest()
    assert manifest.databases == {NAME: 1}
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "b.tar.gz", "config", "data", "dotfile",
    ]  # fmt: skip
    with pytest.raises(BadInput, match="exists already"):
        write_backup(archive, roots, [NAME], version="1.2")


Change = Callable[[dict[str, tuple[tarfile.TarInfo, bytes]]], None]


def rewritten(archive: Path, change: Change) -> Path:
    """Return a copy of an archive in which somebody changed members."""
    members: dict[str, tuple[tarfile.TarInfo, bytes]] = {}
    with tarfile.open(archive) as source:
        for member in source:
            file = source.extractfile(member)
            members[member.name] = (member, file.read() if file else b"")
    change(members)
    target = archive.with_name("changed.tar.gz")
    with tarfile.open(target, "w:gz") as copy:
        for member, content in members.values():
            member.size = len(content)
            copy.addfile(member, io.BytesIO(content))
    return target


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> Change:
    """Add a member before the manifest, as a hostile author would."""

    def add(members: dict[str, tuple[tarfile.TarInfo, bytes]]) -> None:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = kind, link
        manifest = members.pop("manifest.json")
        content = b"evil" if kind == tarfile.REGTYPE else b""
        members[f"{name}!"] = (entry, content)
        said = json.loads(manifest[1])
        said["files"][name] = [hashlib.sha256(content).hexdigest(), len(content)]
        members["manifest.json"] = (manifest[0], json.dumps(said).encode())

    return add


def content(name: str, new: bytes) -> Change:
    def change(members: dict[str, tuple[tarfile.TarInfo, bytes]]) -> None:
        members[name] = (members[name][0], new)

    return change


def manifest(**new: object) -> Change:
    def change(members: dict[str, tuple[tarfile.TarInfo, bytes]]) -> None:
        entry, text = members["manifest.json"]
        members["manifest.json"] = (entry, json.dumps(json.loads(text) | new).encode())

    return change


def without(name: str) -> Change:
    return lambda members: members.pop(name) and None


HOSTILE = {
    "climbs out": member("data/../../evil"),
    "is absolute": member("/tmp/evil"),
    "is of another root": member("state/evil"),
    "is a root itself": member("data"),
    "has an empty part": member("data//evil"),
    "has a backslash": member("data/..\\evil"),
    "is a link": member("data/evil", tarfile.SYMTYPE, "/etc/passwd"),
    "is a hard link": member("data/evil", tarfile.LNKTYPE, "data/key"),
    "is a device": member("data/evil", tarfile.CHRTYPE),
    "is a pipe": member("data/evil", tarfile.FIFOTYPE),
    "is a directory": member("data/evil", tarfile.DIRTYPE),
    "comes twice": member("data/key"),
    "another content": content("data/key", b"another key, of another length...."),
    "no manifest": without("manifest.json"),
    "a manifest that is no JSON": content("manifest.json", b"{"),
    "a manifest of another kind": content("manifest.json", b"[1]"),
    "a newer format": manifest(format=2),
    "files that are not there": manifest(files={}),
    "a missing file": without("data/key"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_archive_is_refused_and_leaves_nothing(tmp_path: Path, what: str) -> None:
    roots = make_home(tmp_path)
    archive = tmp_path / "b.tar.gz"
    write_backup(archive, roots, [NAME], version="1")
    changed = rewritten(archive, HOSTILE[what])
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises(BadInput):
        read_backup(changed, staged(tmp_path), {NAME: SCHEMA})

    assert sorted(tmp_path.rglob("*")) == before
    assert not Path("/tmp/evil").exists()


@pytest.mark.parametrize("cut", [0, 1, 40, 400, -60, -200])
def test_an_archive_that_is_cut_off_is_refused(tmp_path: Path, cut: int) -> None:
    roots = make_home(tmp_path)
    archive = tmp_path / "b.tar.gz"
    write_backup(archive, roots, [NAME], version="1")
    archive.write_bytes(archive.read_bytes()[:cut])

    with pytest.raises(BadInput):
        read_backup(archive, staged(tmp_path), {NAME: SCHEMA})

    assert not any(place.exists() for place in staged(tmp_path).values())


def test_a_database_of_a_newer_toolfold_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    roots = make_home(tmp_path)
    with closing(sqlite3.connect(roots["data"] / "pairs.db")) as connection:
        connection.execute("PRAGMA user_version = 5")
    archive = tmp_path / "b.tar.gz"
    write_backup(archive, roots, [NAME], version="1")

    with pytest.raises(BadInput, match="a newer toolfold wrote it"):
        read_backup(archive, staged(tmp_path), {NAME: SCHEMA})


def test_a_database_that_cannot_be_read_is_no_half_backup(tmp_path: Path) -> None:
    roots = make_home(tmp_path)
    for path in roots["data"].glob("pairs.db*"):
        path.write_bytes(b"no database at all" * 1000)

    with pytest.raises(StoreError):
        write_backup(tmp_path / "b.tar.gz", roots, [NAME], version="1")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["config", "data"]
