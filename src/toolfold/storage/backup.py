"""One archive of a user's files, taken while they are in use, and read back with distrust.

SQLite files are copied by SQLite's own backup, so that each is of one moment whoever writes to it
meanwhile. They come last: what lies beside a database may lag behind it, never run ahead.
"""

import gzip
import hashlib
import json
import os
import re
import secrets
import shutil
import sqlite3
import stat
import tarfile
import time
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Final, NamedTuple

from toolfold.errors import BadInput, StoreError
from toolfold.storage.migrations import DatabaseSchema, pragma
from toolfold.storage.sqlite_file import connect_read_only, is_busy, set_patience

_PATIENCE_S: Final = 3.0
_MAX_FAULTS: Final = 3
_MAX_CHARS: Final = 300


def database_fault(path: Path, schema: DatabaseSchema) -> str:
    """Return what is wrong with a database that other processes may be writing; "" if nothing is.

    Every page and every index is read.
    """
    try:
        with closing(connect_read_only(path)) as connection:
            return _identity_fault(connection, schema) or _damage(connection)
    except (sqlite3.Error, UnicodeError) as error:
        return f"it cannot be read: {error}"[:_MAX_CHARS]


def write_fault(path: Path) -> str:
    """Return why nobody can write to a database just now; "" if one can. Nothing is written."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)
        with closing(connection):
            set_patience(connection, _PATIENCE_S)
            connection.execute("BEGIN IMMEDIATE")
            connection.rollback()
    except sqlite3.Error as error:
        if is_busy(error):
            return f"another process has kept it locked for {_PATIENCE_S:g} s"
        return f"it cannot be written: {error}"[:_MAX_CHARS]
    return ""


def database_version(path: Path) -> int:
    """Return the number of steps that brought the tables of a file to where they are.

    Raises:
        StoreError: It cannot be read.
    """
    try:
        with closing(connect_read_only(path)) as connection:
            return pragma(connection, "user_version")
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be read: {error}.") from error


def _identity_fault(connection: sqlite3.Connection, schema: DatabaseSchema) -> str:
    is_empty = not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if is_empty:
        return ""
    if pragma(connection, "application_id") != schema.application_id:
        return "it belongs to another program"
    if pragma(connection, "user_version") > len(schema.steps):
        return "a newer toolfold wrote it"
    return ""


def _damage(connection: sqlite3.Connection) -> str:
    rows = connection.execute(f"PRAGMA integrity_check({_MAX_FAULTS})").fetchall()
    found = [str(row[0]) for row in rows if row[0] != "ok"]
    return f"it is damaged: {'; '.join(found)}"[:_MAX_CHARS] if found else ""


FORMAT: Final = 1
_MANIFEST: Final = "manifest.json"
_LEFT_OUT: Final = re.compile(r".*(\.lock|-wal|-shm|\.broken-\d+(-.*)?)|\..*\.tmp")
_CHUNK: Final = 1 << 20
_MAX_MANIFEST_BYTES: Final = 256 << 20
_MAX_MEMBERS: Final = 1_000_000
_MAX_NAME: Final = 4_096
_SPARE_BYTES: Final = 50_000_000
_UNREADABLE: Final = (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error)


class BackupEntry(NamedTuple):
    """What the manifest says of one file."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupManifest:
    """What an archive holds, and who made it."""

    toolfold: str
    made_at: float
    databases: Mapping[str, int]
    """How many steps each had taken."""
    files: Mapping[str, BackupEntry]

    @property
    def size(self) -> int:
        """How much is restored, in bytes."""
        return sum(entry.size for entry in self.files.values())


def aside_of(root: Path) -> Path:
    """Return where a directory is kept when another one is restored in its place."""
    return root.with_name(f"{root.name}.before-restore-{time.strftime('%Y%m%d-%H%M%S')}")


def staged_for(root: Path) -> Path:
    """Return where what will take the place of a directory is put and checked."""
    return root.with_name(f"{root.name}.restore-{secrets.token_hex(4)}")


def left_by_restores(root: Path) -> list[Path]:
    """Return the directories beside one that restores have left: kept aside, or cut short."""
    name = re.compile(
        rf"{re.escape(root.name)}\.(before-restore-\d{{8}}-\d{{6}}|restore-[0-9a-f]{{8}})"
    )
    beside = root.parent.iterdir() if root.parent.is_dir() else ()
    return [
        path
        for path in beside
        if name.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
    ]


def write_backup(
    target: Path, roots: Mapping[str, Path], databases: Collection[str], *, version: str
) -> BackupManifest:
    """Write all regular files below `roots` to a new archive of mode 0600.

    `databases` are the names of SQLite files, such as "data/memory.db". Links are left out, but for
    those to files of the root "config".

    Raises:
        BadInput: There is something at `target` already.
        StoreError: It cannot be written, or a database cannot be read.
    """
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise BadInput(f"{target} exists already. Name another file.") from None
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror}.") from error
    try:
        with os.fdopen(descriptor, "wb") as file, TemporaryDirectory(dir=target.parent) as scratch:
            manifest = _Writer(file, Path(scratch), version).write(roots, databases)
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        target.unlink(missing_ok=True)
        if isinstance(error, OSError | sqlite3.Error | tarfile.TarError):
            raise StoreError(f"The backup could not be written: {error}.") from error
        raise
    return manifest


class _Writer:
    """Writes one archive. Each file is copied first, and so of one moment and of one size."""

    def __init__(self, file: IO[bytes], scratch: Path, version: str) -> None:
        self._archive = tarfile.open(fileobj=file, mode="w:gz", format=tarfile.PAX_FORMAT)  # noqa: SIM115
        self._copy = scratch / "copy"
        self._version = version
        self._files: dict[str, BackupEntry] = {}

    def write(self, roots: Mapping[str, Path], databases: Collection[str]) -> BackupManifest:
        found = {name: path for key, root in roots.items() for name, path in _below(key, root)}
        steps: dict[str, int] = {}
        with self._archive:
            for name, path in found.items():
                if name not in databases and _copy_file(path, self._copy):
                    self._add(name, path)
            for name in sorted(found.keys() & set(databases)):
                _copy_database(found[name], self._copy)
                steps[name] = database_version(self._copy)
                self._add(name, found[name])
            manifest = BackupManifest(
                toolfold=self._version, made_at=time.time(), databases=steps, files=self._files
            )
            self._copy.write_bytes(_encoded(manifest))
            self._add(_MANIFEST, self._copy)
        return manifest

    def _add(self, name: str, path: Path) -> None:
        """Add what was copied under a name."""
        with self._copy.open("rb") as file:
            entry = tarfile.TarInfo(name)
            entry.size = os.fstat(file.fileno()).st_size
            entry.mode, entry.mtime = _about(path)
            if name != _MANIFEST:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                self._files[name] = BackupEntry(digest, entry.size)
                file.seek(0)
            self._archive.addfile(entry, file)
        self._copy.unlink()


def _about(path: Path) -> tuple[int, float]:
    """Return the mode that a file is kept with, which is ours alone, and when it was changed."""
    try:
        status = path.stat()
    except OSError:  # it has just gone
        return 0o600, time.time()
    return 0o600 | (status.st_mode & 0o100), status.st_mtime


def _below(name: str, root: Path) -> Iterator[tuple[str, Path]]:
    """Yield regular files with their names in the archive, in order."""
    try:
        entries = sorted(os.scandir(root), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if _LEFT_OUT.fullmatch(entry.name):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _below(f"{name}/{entry.name}", Path(entry.path))
        elif entry.is_file(follow_symlinks=False):
            yield f"{name}/{entry.name}", Path(entry.path)
        elif entry.is_symlink() and entry.is_file() and name.startswith("config"):
            # People keep their configuration elsewhere. In data, a link is not of our making.
            yield f"{name}/{entry.name}", Path(entry.path).resolve()


def _copy_file(path: Path, copy: Path) -> bool:
    """Copy a file; return False where it has gone meanwhile, or is none any more."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        if path.is_symlink() or not path.exists():
            return False
        raise
    with os.fdopen(descriptor, "rb") as source:
        if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
            return False
        with copy.open("wb") as file:
            shutil.copyfileobj(source, file, _CHUNK)
    return True


def _copy_database(path: Path, copy: Path) -> None:
    with closing(connect_read_only(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)


def _encoded(manifest: BackupManifest) -> bytes:
    return json.dumps(
        {
            "format": FORMAT,
            "toolfold": manifest.toolfold,
            "made_at": manifest.made_at,
            "databases": manifest.databases,
            "files": {name: list(entry) for name, entry in manifest.files.items()},
        },
        indent=1,
    ).encode()


def read_backup(
    archive: Path,
    places: Mapping[str, Path],
    databases: Mapping[str, DatabaseSchema],
) -> BackupManifest:
    """Unpack an archive into new directories, and check all of it.

    `places` says for each root where its files go; nothing may be there yet. Where this raises,
    what was unpacked is removed.

    Raises:
        BadInput: It is not a backup, was changed or cut off, holds something that no backup does,
            or was made by a newer toolfold.
        StoreError: It cannot be unpacked here.
    """
    try:
        manifest = _Reader(places).read(archive)
        _check_databases(places, manifest, databases)
    except BaseException as error:
        for place in places.values():
            shutil.rmtree(place, ignore_errors=True)
        if isinstance(error, _UNREADABLE):
            raise BadInput(f"{archive} is not a backup, or is cut off: {error}.") from error
        if isinstance(error, OSError):
            raise StoreError(f"{archive} cannot be unpacked: {error.strerror}.") from error
        raise
    return manifest


@dataclass(slots=True)
class _Reader:
    """Unpacks one archive, member by member, and believes nothing that it says."""

    places: Mapping[str, Path]
    files: dict[str, BackupEntry] = field(default_factory=dict)
    room: int = 0

    def read(self, archive: Path) -> BackupManifest:
        content = b""
        for place in self.places.values():
            place.mkdir(mode=0o700, parents=True)
            self.room = shutil.disk_usage(place).free - _SPARE_BYTES
        with tarfile.open(archive, "r|gz") as members:
            for count, member in enumerate(members):
                if content or count > _MAX_MEMBERS:
                    raise BadInput(
                        f"{archive} has data after the end of the backup. It was not restored."
                    )
                if member.name == _MANIFEST:
                    content = self._manifest(members, member)
                else:
                    self._unpack(members, member)
        manifest = _decoded(content)
        _compare(self.files, manifest.files)
        return manifest

    def _manifest(self, members: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
        file = members.extractfile(member) if member.isreg() else None
        if file is None or member.size > _MAX_MANIFEST_BYTES:
            raise BadInput("The backup has no manifest that can be read.")
        return file.read()

    def _unpack(self, members: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = self._place(member)
        self.room -= member.size
        if self.room < 0:
            raise StoreError("There is not enough room on the disk to restore this backup.")
        source = members.extractfile(member)
        assert source is not None  # noqa: S101  # it is a regular file
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        digest = hashlib.sha256()
        mode = 0o600 | (member.mode & 0o100)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        self.files[member.name] = BackupEntry(digest.hexdigest(), member.size)

    def _place(self, member: tarfile.TarInfo) -> Path:
        """Return where a member goes.

        Raises:
            BadInput: It is not a regular file below one of the roots, or comes twice.
        """
        key, *parts = member.name.split("/")
        is_plain = all(part not in {"", ".", ".."} and "\\" not in part for part in parts)
        if (
            not member.isreg()
            or member.issparse()
            or key not in self.places
            or not parts
            or not is_plain
            or len(member.name) > _MAX_NAME
            or "\0" in member.name
            or member.name in self.files
        ):
            raise BadInput(
                f"The backup contains {member.name[:200]!r}, which is unexpected. Nothing was "
                "restored."
            )
        return self.places[key].joinpath(*parts)


def _decoded(content: bytes) -> BackupManifest:
    try:
        found: dict[str, Any] = json.loads(content)
        if found["format"] > FORMAT:
            raise BadInput(
                f"A newer toolfold ({found['toolfold']}) made this backup. Update this one."
            )
        return BackupManifest(
            toolfold=str(found["toolfold"]),
            made_at=float(found["made_at"]),
            databases={str(name): int(steps) for name, steps in found["databases"].items()},
            files={str(name): BackupEntry(*entry) for name, entry in found["files"].items()},
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BadInput("The backup has no manifest that can be read.") from error


def _compare(found: Mapping[str, BackupEntry], said: Mapping[str, BackupEntry]) -> None:
    wrong = sorted(name for name in {*found, *said} if found.get(name) != said.get(name))
    if wrong:
        raise BadInput(
            f"The backup was changed or is damaged: {wrong[0][:200]!r} is not what its manifest "
            "says. Nothing was restored."
        )


def _check_databases(
    places: Mapping[str, Path], manifest: BackupManifest, databases: Mapping[str, DatabaseSchema]
) -> None:
    for name, schema in databases.items():
        if name not in manifest.files:
            continue
        key, _, rest = name.partition("/")
        if fault := database_fault(places[key] / rest, schema):
            raise BadInput(f"{name} of the backup cannot be used: {fault}. Nothing was restored.")
