"""Notice that the files of a configuration say something else, so that nothing needs a restart."""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import anyio.to_thread
from watchfiles import awatch

from toolfold.config.config import Config
from toolfold.config.jsonc import parse_jsonc
from toolfold.errors import ConfigError, ToolfoldError
from toolfold.storage.files import read_file

_log = logging.getLogger(__name__)

_QUIET_MS: Final = 50
_LOOK_MS: Final = 2_000  # for what changed before the watch stood, and where none can stand


async def until_changed(config: Config, files: Iterable[Path], load: Callable[[], Config]) -> None:
    """Return when `load` gives another configuration than `config`.

    `files` are all that have a say in it, whether they exist or not. While one of them cannot be
    read, the configuration that was read last stays.
    """
    logging.getLogger("watchfiles").setLevel(logging.WARNING)  # it tells of every event
    names = set(files)
    directories = {_nearest(path.parent) for path in names}
    seen: object = None  # what changed before we looked must be noticed, too
    watching = awatch(
        *directories,
        recursive=False,
        step=_QUIET_MS,
        watch_filter=None,
        rust_timeout=_LOOK_MS,
        yield_on_timeout=True,
    )
    async for _ in watching:
        states = [_state(path) for path in names]
        if states == seen:
            continue
        seen = states
        current = await anyio.to_thread.run_sync(_usable, names, load)
        if current is not None and current != config:
            return


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _usable(files: Iterable[Path], load: Callable[[], Config]) -> Config | None:
    """Return what the files say now; None if one of them cannot be read."""
    try:
        for path in files:
            if path.suffix == ".json" and (content := read_file(path)) is not None:
                parse_jsonc(content)
        return load()
    except (ConfigError, ToolfoldError) as error:
        _log.warning("An edit is not taken over: %s", error)
        return None


def _nearest(directory: Path) -> Path:
    """Return a directory, or what will hold it once it is made."""
    while not directory.is_dir() and directory != directory.parent:
        directory = directory.parent
    return directory
