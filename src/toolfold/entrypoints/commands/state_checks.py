"""What `toolfold doctor` checks of files and processes, before anything is started."""

import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from toolfold import __version__
from toolfold.app import DATABASES, App
from toolfold.catalog.orphans import Children, end_orphans, living_orphans
from toolfold.config.config import Config
from toolfold.config.paths import Directories
from toolfold.embedding import BuiltinEmbedder
from toolfold.entrypoints.commands.daemon import ask_daemon, find_daemon
from toolfold.entrypoints.commands.doctor import (
    Findings,
    Fix,
    examine,
    examine_configuration,
    examine_relay,
)
from toolfold.entrypoints.screen import size, working
from toolfold.errors import StoreError, ToolfoldError, count, shown
from toolfold.journal.audit_check import check_log
from toolfold.jsontypes import JsonObject
from toolfold.storage.backup import database_fault, write_fault
from toolfold.tokens import VOCABULARY, load_encoding

_FULL_BYTES: Final = 50_000_000
_LOW_BYTES: Final = 500_000_000
_LOW_FILES: Final = 1_000
_SKEW_S: Final = 120.0
_EARLIEST: Final = 1_735_689_600.0  # 2025: no toolfold is older
_LEFT_OVER_S: Final = 3_600.0
_NAMED: Final = 3

_KEPT: Final = frozenset({"memory.db", "vaults.db"})
"""What is never set aside by itself."""


def examine_state(config: Config, findings: Findings) -> None:
    """Look at each part; none of them has to be there, and nothing is changed but by a fix."""
    _examine_vocabulary(findings)
    _examine_model(findings)
    files = FoundFiles.below(config.directories)
    _examine_disk(config.directories, files, findings)
    _examine_permissions(files, findings)
    _examine_leftovers(files, findings)
    _examine_databases(config.directories.data, findings)
    _examine_audit(config.directories.data / "runs.db", findings)
    _examine_clock(config.directories.data, findings)
    _examine_versions(findings)
    _examine_processes(Children.directory(config.directories.state), findings)


async def examine_app(app: App) -> list[JsonObject]:
    """Look at every part of a running app, as `toolfold doctor` does, and fix nothing."""
    findings = Findings(is_quiet=True)
    await anyio.to_thread.run_sync(examine_configuration, app.config, findings)
    await anyio.to_thread.run_sync(examine_state, app.config, findings)
    await anyio.to_thread.run_sync(examine_relay, (), findings)
    await examine(app, findings)
    return [asdict(each) for each in findings.checks]


def _examine_vocabulary(findings: Findings) -> None:
    started = time.perf_counter()
    try:
        tokens = load_encoding(VOCABULARY).n_vocab
    except StoreError as error:
        findings.add("FAILED", "vocabulary", str(error), started)
    else:
        findings.add("ok", "vocabulary", f"{tokens:,} tokens", started)


def _examine_model(findings: Findings) -> None:
    """Load the model from its files: what a daemon has in memory says nothing about them."""
    started = time.perf_counter()
    embedder = BuiltinEmbedder()
    try:
        near, text, far = embedder.embed(["a small dog", "a puppy", "the tax on land"])
    except StoreError as error:
        findings.add("FAILED", "model", str(error), started)
        return
    if near @ text > far @ text:
        findings.add("ok", "model", embedder.name, started)
    else:
        fix = Fix("Reinstall toolfold, or onnxruntime.")
        findings.add("FAILED", "model", "it does not tell near from far", started, fix)


@dataclass(slots=True)
class FoundFiles:
    """What was found below the directories of a user."""

    sizes: dict[str, int] = field(default_factory=dict)
    exposed: list[Path] = field(default_factory=list)
    """What others may read, or change, and should not."""
    foreign: list[Path] = field(default_factory=list)
    """What belongs to another user."""
    leftovers: list[Path] = field(default_factory=list)
    """What was written by a process that ended before it was done."""

    @classmethod
    def below(cls, directories: Directories) -> "FoundFiles":
        """Walk all that is there, without following links."""
        found = cls()
        for kind in ("config", "data", "cache", "state", "runtime"):
            root: Path = getattr(directories, kind)
            found.sizes[kind] = 0
            for path, status in _walk(root):
                found._take(kind, path, status, is_root=path == root)
        return found

    def _take(self, kind: str, path: Path, status: os.stat_result, *, is_root: bool) -> None:
        is_file = stat.S_ISREG(status.st_mode)
        self.sizes[kind] += status.st_size if is_file else 0
        if hasattr(os, "getuid") and status.st_uid != os.getuid():
            self.foreign.append(path)
        elif status.st_mode & _forbidden(kind, status, is_root=is_root):
            self.exposed.append(path)
        age_s = time.time() - status.st_mtime
        if is_file and path.name.startswith(".") and path.suffix == ".tmp" and age_s > _LEFT_OVER_S:
            self.leftovers.append(path)


def _walk(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield a directory and all below it but links; what goes meanwhile is left out."""
    try:
        status = root.lstat()
    except OSError:
        return
    if stat.S_ISLNK(status.st_mode):
        return
    yield root, status
    if stat.S_ISDIR(status.st_mode):
        try:
            below = sorted(root.iterdir())
        except OSError:
            return
        for path in below:
            yield from _walk(path)


def _forbidden(kind: str, status: os.stat_result, *, is_root: bool) -> int:
    """Return the bits of a mode that something must not have.

    What is private is so by its own mode and, data above all, by that of the directory around it. A
    configuration may be read: whether it holds secrets is up to the user. Nobody else may ever
    change anything.
    """
    if os.name == "nt":
        return 0
    has_content = stat.S_ISREG(status.st_mode) and status.st_size > 0
    is_closed = has_content or (is_root and kind != "state")
    return 0o077 if is_closed and kind in {"data", "state", "runtime"} else 0o022


def _examine_disk(directories: Directories, files: FoundFiles, findings: Findings) -> None:
    place = next(path for path in (directories.data, *directories.data.parents) if path.exists())
    free = shutil.disk_usage(place).free
    ours = ", ".join(f"{kind} {size(files.sizes[kind])}" for kind in ("data", "cache", "state"))
    detail = f"{size(free)} free in {place}; ours: {ours}"
    fix = Fix("Free some space. `toolfold workspace` lists files, `journal_bytes` bounds runs.")
    if free < _LOW_BYTES:
        findings.add("FAILED" if free < _FULL_BYTES else "!", "disk", detail, fix=fix)
    elif _free_files(place) < _LOW_FILES:
        findings.add("!", "disk", f"{place} has room for few more files", fix=fix)
    else:
        findings.add("ok", "disk", detail)


def _free_files(place: Path) -> int:
    """Return how many files can be made; some file systems have no number for it."""
    if not hasattr(os, "statvfs"):
        return _LOW_FILES
    found = os.statvfs(place)
    return found.f_favail if found.f_files else _LOW_FILES


def _examine_permissions(files: FoundFiles, findings: Findings) -> None:
    if files.foreign:
        detail = f"{_named(files.foreign)} of another user"
        fix = Fix("Give them to yourself with `chown`, as the administrator, or remove them.")
        findings.add("FAILED", "permissions", detail, fix=fix)
    if files.exposed:
        detail = f"{_named(files.exposed)} open to other users"
        words = f"chmod go-rwx {files.exposed[0]}" + (" …" if len(files.exposed) > 1 else "")
        findings.add(
            "!", "permissions", detail, fix=Fix(f"`{words}`", partial(_close, files.exposed))
        )
    if not files.foreign and not files.exposed:
        findings.add("ok", "permissions", "only you can read private files")


def _close(paths: list[Path]) -> str:
    for path in paths:
        path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~0o077)
    return f"closed {count(len(paths), 'file or directory', 'files and directories')}"


def _examine_leftovers(files: FoundFiles, findings: Findings) -> None:
    if files.leftovers:
        detail = f"{_named(files.leftovers)} left by a process that was killed"
        findings.add("!", "leftovers", detail, fix=Fix("Remove them.", lambda: _remove(files)))


def _remove(files: FoundFiles) -> str:
    for path in files.leftovers:
        path.unlink(missing_ok=True)
    return f"removed {count(len(files.leftovers), 'file')}"


def _named(paths: list[Path]) -> str:
    """Name some of them, and say whether there are more."""
    names = ", ".join(shown(str(path), max_chars=200) for path in paths[:_NAMED])
    more = len(paths) - _NAMED
    verb = "is" if len(paths) == 1 else "are"
    return f"{names} and {more} more {verb}" if more > 0 else f"{names} {verb}"


def _examine_databases(data: Path, findings: Findings) -> None:
    for name, schema in DATABASES.items():
        if not (data / name).exists():
            continue
        started = time.perf_counter()
        with working(f"reading {name}"):
            fault = database_fault(data / name, schema)
            lock = "" if fault else write_fault(data / name)
        if fault:
            findings.add("FAILED", name, fault, started, Fix(_database_fix(name, fault)))
        elif lock:
            fix = Fix("End the program that uses it, or make file and disk writable.")
            findings.add("FAILED", name, lock, started, fix)
        else:
            findings.add("ok", name, "intact", started)
    aside = sorted(each for each in data.glob("*.broken-*") if each.suffix[8:].isdigit())
    if aside:
        detail = f"{_named(aside)} a damaged database that another took the place of"
        fix = Fix("Look whether you need what it held, then move it elsewhere or remove it.")
        findings.add("!", "set aside", detail, fix=fix)


def _database_fix(name: str, fault: str) -> str:
    if "newer toolfold" in fault:
        return "Update this toolfold."
    restore = "`toolfold restore FILE` restores a backup."
    if name in _KEPT:
        return f"{restore} Without one, stop the daemon and move the file away to start empty."
    return f"{restore} Otherwise the next write sets it aside and starts a new one."


def _examine_audit(journal: Path, findings: Findings) -> None:
    if not journal.exists():
        return
    started = time.perf_counter()
    try:
        with working("verifying the audit log"):
            verified = check_log(journal)
    except StoreError as error:
        findings.add("FAILED", "audit log", str(error), started)
        return
    if verified.fault is not None:
        words = "`toolfold runs verify` says more; `toolfold restore FILE` restores a backup."
        if verified.fault.is_end:
            words = "If the power failed, `toolfold runs verify --accept` accepts the log as it is."
        what = shown(verified.fault.what, max_chars=500)
        findings.add("FAILED", "audit log", f"it does not verify: {what}", started, Fix(words))
    elif verified.gaps:
        gap = shown(verified.gaps[-1], max_chars=300)
        fix = Fix("`toolfold runs verify` lists all. It stays until those runs are pruned.")
        findings.add("!", "audit log", f"something is missing: {gap}", started, fix)
    else:
        entries = count(verified.entries, "entry", "entries")
        findings.add("ok", "audit log", f"{entries} of {count(verified.runs, 'run')}", started)


def _examine_clock(data: Path, findings: Findings) -> None:
    """Compare the clock with when our files were written."""
    now = time.time()
    newest = max((path.stat().st_mtime for path in data.glob("*.db*")), default=0.0)
    behind = max(newest, _EARLIEST) - now
    if behind < _SKEW_S:
        findings.add("ok", "clock", "not behind the newest files")
        return
    written = time.strftime("%Y-%m-%d %H:%M", time.localtime(max(newest, _EARLIEST)))
    detail = f"it says {time.strftime('%Y-%m-%d %H:%M')}, but files are of {written}"
    fix = Fix("Set the clock (`timedatectl set-ntp true`): times of runs and logins depend on it.")
    findings.add("!", "clock", detail, fix=fix)


def _examine_versions(findings: Findings) -> None:
    """Compare the daemon and its clients with this toolfold; nothing is said where none runs."""
    try:
        status = ask_daemon(find_daemon(), "status")
    except ToolfoldError:
        return  # what is tried of the daemon itself says it
    if status is None:
        return
    if status["version"] != __version__:
        detail = f"the daemon is toolfold {shown(str(status['version']))}, this is {__version__}"
        findings.add(
            "!", "versions", detail, fix=Fix("`toolfold stop`; the next client starts it.")
        )
    others = [each for each in status["clients"] if each.get("version", "") != __version__]
    for client in others:
        version = shown(str(client.get("version") or "of an older version"))
        detail = f"the client of process {client['pid']} in {client['project']} is {version}"
        fix = Fix("Restart that client. It is served meanwhile.")
        findings.add("!", "versions", detail, fix=fix)
    if status["version"] == __version__ and not others:
        clients = count(len(status["clients"]), "client")
        findings.add("ok", "versions", f"daemon and {clients}: toolfold {__version__}")


def _examine_processes(directory: Path, findings: Findings) -> None:
    orphans = living_orphans(directory)
    if not orphans:
        return
    numbers = ", ".join(map(str, orphans))
    detail = f"servers outlived the toolfold that started them: processes {numbers}"
    apply: Callable[[], str] = partial(_end, directory, orphans)
    findings.add("!", "processes", detail, fix=Fix(f"`kill {numbers}`", apply))


def _end(directory: Path, orphans: list[int]) -> str:
    anyio.run(end_orphans, directory)
    left = living_orphans(directory)
    if left:
        raise StoreError(f"processes {', '.join(map(str, left))} do not end")
    return f"ended {count(len(orphans), 'process', 'processes')}"
