"""`toolfold backup` and `toolfold restore`: everything a user has, in one file and back."""

import os
import time
from argparse import Namespace
from pathlib import Path
from typing import Final

from toolfold import __version__
from toolfold.app import DATABASES
from toolfold.config.config import current_directory, environment, load_config
from toolfold.config.paths import Directories
from toolfold.entrypoints.commands.daemon import ask_daemon, end_daemon, find_daemon, take_place
from toolfold.entrypoints.parser import confirm
from toolfold.entrypoints.screen import exact_moment, print_json, size, working
from toolfold.errors import ConfigError, NotFound, StoreError, count, shown
from toolfold.journal.audit_check import check_log
from toolfold.storage.backup import (
    BackupManifest,
    aside_of,
    read_backup,
    staged_for,
    write_backup,
)

_SECRETS: Final = (
    "It holds secrets: notes and what runs did, logins, what `toolfold secrets` keeps in a file, "
    "the keys of the audit log and of the vaults, and what your configuration says. Keep it where "
    "only you can read it (mode 0600)."
)
_SCHEMAS: Final = {f"data/{name}": schema for name, schema in DATABASES.items()}


def backup(arguments: Namespace) -> int:
    """Write all of it to a new file, while a daemon goes on."""
    name = arguments.file or time.strftime("toolfold-backup-%Y%m%d-%H%M%S.tar.gz")
    target = Path(current_directory()) / name
    roots = _roots()
    if not any(root.exists() for root in roots.values()):
        raise NotFound(f"There is nothing to back up in {roots['data']} or {roots['config']}.")
    with working("backing up"):
        manifest = write_backup(target, roots, _SCHEMAS.keys(), version=__version__)
    if arguments.json:
        print_json({"file": str(target), **_summary(manifest)})
        return 0
    files = count(len(manifest.files), "file")
    print(f"{files}, {size(manifest.size)}, {count(len(manifest.databases), 'database')}: {target}")
    print(_SECRETS)
    print("Your own skills are included; skills of a project are in the project itself.")
    if "data/vaults.db" in manifest.files and "data/vaults.key" not in manifest.files:
        print("The key of the vaults is not in it: your system's keyring has it.")
    if load_config().settings.database_url:
        print(
            "Notes, knowledge graph, events and documents are in PostgreSQL: back up with pg_dump."
        )
    print(f"`toolfold restore {name}` brings it back.")
    return 0


def restore(arguments: Namespace) -> int:
    """Check a backup, and put what it holds in the place of what is there, which is kept."""
    archive = Path(current_directory()) / arguments.file
    if not archive.is_file():
        raise ConfigError(f"There is no file {archive}.")
    lock = take_place(find_daemon()) or _place_of_idle_daemon()
    if lock is None:
        raise ConfigError("The daemon is at work. End it first: `toolfold stop`.")
    try:
        return _restore(archive, arguments)
    finally:
        os.close(lock)


def _place_of_idle_daemon() -> int | None:
    """End a daemon that has nothing to do, and return the lock in its place; None if it works."""
    status = ask_daemon(find_daemon(), "status")
    if status is None or status.get("in_flight"):
        return None
    end_daemon(now=False)
    return take_place(find_daemon())


def _restore(archive: Path, arguments: Namespace) -> int:
    roots = _roots()
    staged = {key: staged_for(root) for key, root in roots.items()}
    with working("checking the backup"):
        manifest = read_backup(archive, staged, _SCHEMAS)
    try:
        question = (
            f"Restore {count(len(manifest.files), 'file')} of {exact_moment(manifest.made_at)}, "
            f"by toolfold {shown(manifest.toolfold)}? What is there now is kept aside."
        )
        if not confirm(question, yes=arguments.yes):
            return 1
        aside = _exchange(roots, staged)
    finally:
        _discard(staged)
    verified = check_log(roots["data"] / "runs.db")
    if arguments.json:
        fault = verified.fault.what if verified.fault else None
        print_json({**_summary(manifest), "aside": [str(path) for path in aside], "fault": fault})
        return int(verified.fault is not None)
    print(f"Restored {count(len(manifest.files), 'file')}, {size(manifest.size)}.")
    for path in aside:
        print(f"The previous data is in {path}; delete it when you no longer need it.")
    if verified.fault is not None:
        print(f"The audit log does not verify: {shown(verified.fault.what, max_chars=500)}.")
        return 1
    print(f"Audit log verified: {count(verified.entries, 'entry', 'entries')}.")
    return 0


def _roots() -> dict[str, Path]:
    """Return what is backed up. Caches, logs and trust in projects' files are of one machine."""
    directories = Directories.from_environ(environment())
    return {"config": directories.config, "data": directories.data}


def _exchange(roots: dict[str, Path], staged: dict[str, Path]) -> list[Path]:
    """Put each staged directory in its place; return where what was there has gone.

    Raises:
        StoreError: One could not be moved; everything is where it was.
    """
    moved: list[tuple[Path, Path]] = []
    aside: list[Path] = []
    try:
        for key, root in roots.items():
            before = aside_of(root)
            if root.exists():
                root.rename(before)
                moved.append((before, root))
                aside.append(before)
            staged[key].rename(root)
            moved.append((root, staged[key]))
    except OSError as error:
        for source, target in reversed(moved):
            source.rename(target)
        raise StoreError(f"Nothing was restored: {error}.") from error
    return aside


def _discard(staged: dict[str, Path]) -> None:
    import shutil

    for path in staged.values():
        shutil.rmtree(path, ignore_errors=True)


def _summary(manifest: BackupManifest) -> dict[str, object]:
    return {
        "toolfold": manifest.toolfold,
        "made_at": manifest.made_at,
        "files": len(manifest.files),
        "bytes": manifest.size,
        "databases": dict(manifest.databases),
    }
