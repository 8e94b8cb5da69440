"""Everything that grows, on the disk and in memory, and what keeps it within bounds."""

import gc
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from toolfold.config.config import Config
from toolfold.execution.sessions.folder import SessionFolder
from toolfold.storage.files import DAY_S, FileKind, rotate_log, sweep, sweep_leftovers

_FIRST_S: Final = 5.0
_LOGS_S: Final = 10.0
_SWEEP_S: Final = 3_600.0
_WARM_S: Final = (1.0, 30.0)  # after the imports, and once servers have listed their tools
_UNUSED_DAYS: Final = 90.0

KINDS: Final = (
    FileKind(
        "data", "memory.db*", "what you store; `toolfold memory` forgets, purges, consolidates"
    ),
    FileKind("data", "runs.db*", "`journal_days`, `journal_bytes`"),
    FileKind("data", "skills.db*", "100 versions of a skill, 5,000 in all"),
    FileKind("data", "vaults.db*", "1 GiB; `toolfold privacy forget`"),
    FileKind("data", "vaults.key*", "one"),
    FileKind("data", "approvals.db*", "decided ones go after `limits.approval_s` and a day"),
    FileKind("data", "definitions.db*", "20 versions of a tool that is used"),
    FileKind("data", "*.broken-*", "none are made while disks work; `toolfold doctor` names them"),
    FileKind("data", "*.lock", "one, empty, for each file"),
    FileKind("data", "keys.json*", "one entry for each API key"),
    FileKind("data", "logins/*", "one for each server that you log in to"),
    FileKind("data", "secrets.json*", "one entry for each secret"),
    FileKind("data", "sessions/key", "one"),
    FileKind(
        "data",
        "sessions/*/*",
        "`sessions`, `session_days`, `limits.session_bytes`; for all projects",
    ),
    FileKind("data", "sessions/*/starts/*", "what runs began with; gone with them"),
    FileKind("data", "projects/*/usage", "one for each project"),
    FileKind("data", "projects/*/drafts/*", "what is being written; gone with the run"),
    FileKind(
        "data",
        "projects/*/workspace/**",
        "`limits.workspace_bytes`, `limits.workspace_files`; never removed for you",
    ),
    FileKind("data", "namespaces/**", "the same, for each namespace of a key"),
    FileKind(
        "data", "sync/**", "for each remote of `memory sync`: what was last known of its notes"
    ),
    FileKind("data", "tenants/**", "skills, for each namespace of a key"),
    FileKind("cache", "tools/*.json", "the newest 500, used in 90 days", 500, _UNUSED_DAYS),
    FileKind("cache", "offers/*.json", "the same", 500, _UNUSED_DAYS),
    FileKind("cache", "shapes/*.json", "the same", 500, _UNUSED_DAYS),
    FileKind("cache", "openapi/*.json", "the newest 100, used in 90 days", 100, _UNUSED_DAYS),
    FileKind("cache", "manifests/*.json", "the newest 500, used in 90 days", 500, _UNUSED_DAYS),
    FileKind("cache", "vectors/*.json", "20,000 texts; of two models", 2, None),
    FileKind("cache", "answers/*", "`limits.large_result_bytes`; gone with the call", None, 1.0),
    FileKind(
        "state", "logs/*.log", "5 MB each; the newest 200, used in 90 days", 200, _UNUSED_DAYS
    ),
    FileKind("state", "logs/*.log.1", "the same: what was in it before", 200, _UNUSED_DAYS),
    FileKind("state", "logs/*.log.crash", "the same: the last crash", 200, _UNUSED_DAYS),
    FileKind("state", "children/*.json", "one for each process of ours; gone with it"),
    FileKind("state", "backups/**", "one for each file of a client that was changed"),
    FileKind("state", "*", "trust, local token, clients, what was installed: one file each"),
    FileKind("runtime", "*", "a lock and a socket for each data directory"),
)
"""The first that fits counts. docs/configuration.md says the same."""


def kind_of(root: str, name: str) -> FileKind | None:
    """Return of which kind a file is by its path below a directory; None if it is of none."""
    fits = (kind for kind in KINDS if kind.root == root and _fits(name, kind.pattern))
    return next(fits, None)


def _fits(name: str, pattern: str) -> bool:
    """Whether a path fits, part by part; `**` at the end is for all that is below."""
    if pattern.endswith("/**"):
        parts = pattern.split("/")[:-1]
        within = name.split("/")[: len(parts)]
        return len(name.split("/")) > len(parts) and _fits("/".join(within), "/".join(parts))
    names, patterns = name.split("/"), pattern.split("/")
    return len(names) == len(patterns) and all(map(fnmatchcase, names, patterns))


async def keep_within_bounds(config: Config) -> None:
    """Rotate logs and remove what is not needed, as long as this process lives."""
    await anyio.sleep(_FIRST_S)  # those who run one command do not wait for it
    swept_at = -_SWEEP_S
    while True:
        await anyio.to_thread.run_sync(rotate_logs, config.directories.state / "logs")
        if anyio.current_time() - swept_at >= _SWEEP_S:
            swept_at = anyio.current_time()
            await anyio.to_thread.run_sync(sweep_all, config)
        await anyio.sleep(_LOGS_S)


async def keep_collections_short(warm_s: Iterable[float] = _WARM_S) -> None:
    """Set aside what lives as long as this process, in the memory of Python.

    Each full collection would look through all of it, for as long as two hundred calls take.
    """
    has_frozen = False
    try:
        for seconds in warm_s:
            await anyio.sleep(seconds)
            gc.freeze()
            has_frozen = True
        while True:
            await anyio.sleep(_SWEEP_S)
            gc.unfreeze()
            gc.collect()
            gc.freeze()
    finally:
        if has_frozen:  # and not what whoever started us set aside
            gc.unfreeze()


def rotate_logs(directory: Path) -> None:
    """Bound every log, whoever writes to it."""
    for path in directory.glob("*.log"):
        rotate_log(path)


def sweep_all(config: Config, *, now: float | None = None) -> int:
    """Remove what is too old or too much of every kind; return how many files."""
    directories = config.directories
    roots: Mapping[str, Path] = {
        "data": directories.data,
        "cache": directories.cache,
        "state": directories.state,
    }
    bounded = [kind for kind in KINDS if kind.most is not None or kind.days is not None]
    count = sum(sweep(roots[kind.root], kind, now=now) for kind in bounded)
    count += sum(sweep_leftovers(roots[name], now=now) for name in ("cache", "state"))
    settings = config.settings
    oldest = (time.time() if now is None else now) - settings.session_days * DAY_S
    return count + sweep_sessions(
        directories.data / "sessions", most=settings.sessions, oldest=oldest
    )


def sweep_sessions(directory: Path, *, most: int, oldest: float) -> int:
    """End sessions that were not used for long, also of projects that nobody opens any more."""
    removed: list[Path] = []

    def remove(path: Path) -> None:
        path.unlink(missing_ok=True)
        removed.append(path)

    for place in directory.glob("*/"):
        SessionFolder(place).prune(remove, most=most, oldest=oldest)
        for emptied in (place / "starts", place):
            with suppress(OSError):
                emptied.rmdir()
    return len(removed)
