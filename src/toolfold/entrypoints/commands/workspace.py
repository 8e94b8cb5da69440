"""`toolfold workspace`: the files that runs have left in this project."""

import os
import shutil
import sys
import tarfile
import zipfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO

from toolfold.config.config import load_config
from toolfold.entrypoints.parser import confirm
from toolfold.entrypoints.screen import Cell, Column, moment, print_json, print_table, tell
from toolfold.errors import BadInput, NotFound, count, shown
from toolfold.workspace.descent import Status
from toolfold.workspace.usage import Quota
from toolfold.workspace.verbs import inner_path
from toolfold.workspace.workspace import Workspace

_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
_COLUMNS = (Column("BYTES", is_number=True), Column("CHANGED"), Column("FILE", is_wide=True))


def workspace_ls(arguments: Namespace) -> int:
    """List files, and say how much room is left."""
    workspace = _open()
    wanted = inner_path(arguments.pattern or "*")
    found = [each for each in _files(workspace) if fnmatchcase(each[0], wanted)]
    if arguments.json:
        print_json(
            [
                {"path": path, "bytes": status.size, "changed_at": status.changed_at}
                for path, status in found
            ]
        )
        return 0
    if found:
        print_table(_COLUMNS, [_row(*each) for each in found])
    used, quota = workspace.usage(), workspace.quota
    print(
        f"{used.bytes:,} of {quota.bytes:,} bytes, {used.files:,} of {quota.files:,} files and "
        f"directories, in {workspace.root}",
        file=sys.stderr,
    )
    return 0


def workspace_cat(arguments: Namespace) -> int:
    """Print a file as it is."""
    with _reporting_errors(), _open().opened(inner_path(arguments.path)) as file:
        sys.stdout.flush()
        shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    return 0


def workspace_rm(arguments: Namespace) -> int:
    """Remove a file, or a directory with all that is in it; or everything."""
    path = inner_path(arguments.path or "")
    if not path and not arguments.all:
        raise BadInput("PATH is missing: name a file or a directory, or pass --all.")
    workspace = _open()
    inside = [each for each, _ in _files(workspace) if _is_below(each, path) and each != path]
    question = f"Remove {count(len(inside), 'file')} below {path or workspace.root}?"
    if inside and not confirm(question, yes=arguments.yes):
        tell(arguments, "Nothing was removed.", removed=0)
        return 1
    with _reporting_errors():
        removed = workspace.remove(path)
    tell(arguments, f"{count(removed, 'entry', 'entries')} removed.", removed=removed)
    return 0


def workspace_export(arguments: Namespace) -> int:
    """Write all files, or those below a path, to an archive."""
    workspace, target = _open(), Path(arguments.archive)
    if not target.name.lower().endswith(_ARCHIVES):
        suffix = target.suffix or target.name
        raise BadInput(f"Unsupported archive type: {suffix}. Use .zip, .tar or .tar.gz.")
    start = inner_path(arguments.path or "")
    found = [each for each in _files(workspace) if _is_below(each[0], start)]
    if not found:
        raise NotFound(f"There is no file at {start!r} in the workspace.")
    with _reporting_errors():
        _write(workspace, [path for path, _ in found], target)
    sentence = f"{count(len(found), 'file')} written to {target}."
    tell(arguments, sentence, archive=str(target), files=len(found))
    return 0


def _row(path: str, status: Status) -> tuple[str | Cell, ...]:
    changed = Cell(moment(status.changed_at), "dim")
    return f"{status.size:,}", changed, Cell(shown(path, max_chars=1_000), "name")


def _open() -> Workspace:
    config = load_config()
    return Workspace(config.workspace, Quota.of(config.settings.limits))


def _files(workspace: Workspace) -> list[tuple[str, Status]]:
    return sorted(workspace.files())


def _is_below(path: str, start: str) -> bool:
    return not start or path == start or path.startswith(f"{start}/")


def _write(workspace: Workspace, paths: list[str], target: Path) -> None:
    suffixes = "".join(target.suffixes[-2:]).lower()
    if suffixes.endswith(".zip"):
        with _new(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in paths:
                with workspace.opened(path) as content, archive.open(path, "w") as entry:
                    shutil.copyfileobj(content, entry)
    else:
        mode = "w:" if suffixes.endswith(".tar") else "w:gz"
        with _new(target) as file, tarfile.open(fileobj=file, mode=mode) as archive:  # type: ignore[call-overload]
            for path in paths:
                _add(archive, workspace, path)


def _add(archive: tarfile.TarFile, workspace: Workspace, path: str) -> None:
    with workspace.opened(path) as content:
        entry = tarfile.TarInfo(path)
        status = os.fstat(content.fileno())
        entry.size, entry.mtime, entry.mode = status.st_size, int(status.st_mtime), 0o600
        archive.addfile(entry, content)


@contextmanager
def _new(target: Path) -> Iterator[IO[bytes]]:
    """Make a file that only the user can read; one that is there is not written over."""
    try:
        descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise BadInput(f"{target} cannot be made: {error.strerror}.") from error
    with os.fdopen(descriptor, "w+b") as file:
        yield file


@contextmanager
def _reporting_errors() -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(
            f"There is no {error.filename!r} in the workspace. `toolfold workspace ls` lists files."
        ) from error
    except OSError as error:
        raise BadInput(f"{error.strerror}: {error.filename}.") from error
