"""Notice that the files of a configuration say something else, so that nothing needs a restart."""

import logging
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
from watchfiles import awatch

from toolfold.config.config import Config
from toolfold.config.layers import read_toml
from toolfold.config.paths import locate
from toolfold.config.serverfile import outline_servers
from toolfold.config.settings import settings_schema
from toolfold.entrypoints.daemon.app_pool import CurrentApp
from toolfold.errors import ConfigError, ToolfoldError
from toolfold.storage.files import read_file

_log = logging.getLogger(__name__)

_QUIET_MS: Final = 50
_LOOK_MS: Final = 2_000  # for what changed before the watch stood, and where none can stand
_MAX_FILES: Final = 1_000


@dataclass(slots=True, eq=False)
class UnusableEdit:
    """A file that cannot be understood as it is now, in whose place an earlier content counts."""

    path: Path
    content: bytes | None
    reason: str
    told: set[str] = field(default_factory=set)
    """The clients that know of it."""

    def __str__(self) -> str:
        """One sentence for a person or a model: what happened, and what to do."""
        return (
            f"The last edit of {self.path} is not in force: {self.reason.rstrip('.')}. Its "
            "previous content is; correct the file, and the next run uses it."
        )


class GoodFiles:
    """Reads files; of one that cannot be understood, what it said when it last could be."""

    def __init__(self) -> None:
        self._good: OrderedDict[Path, bytes | None] = OrderedDict()
        self._unusable: dict[Path, UnusableEdit] = {}

    def read(self, path: Path) -> bytes | None:
        """Return what counts of a file, None where there is none.

        Raises:
            ConfigError: It cannot be read, and nothing is known of it.
        """
        content = None
        try:
            content = read_file(path)
            _understand(path, content)
        except ConfigError as error:
            if path not in self._good:
                return read_file(path)
            known = self._unusable.get(path)
            if known is None or known.content != content:
                self._unusable[path] = UnusableEdit(path, content, str(error))
            return self._good[path]
        self._unusable.pop(path, None)
        self._good[path] = content
        self._good.move_to_end(path)
        if len(self._good) > _MAX_FILES:
            self._unusable.pop(self._good.popitem(last=False)[0], None)
        return content

    def unusable(self, files: Iterable[Path] | None = None) -> list[UnusableEdit]:
        """Return which of these files, by default of all, do not count as they are now."""
        if files is None:
            return list(self._unusable.values())
        found = (self._unusable.get(path) for each in files for path in {each, locate(each)})
        return [edit for edit in found if edit is not None]

    def news(self, client: str, files: Iterable[Path]) -> list[str]:
        """Return what a client has not been told of these files."""
        fresh = [edit for edit in self.unusable(files) if client not in edit.told]
        for edit in fresh:
            edit.told.add(client)
        return [str(edit) for edit in fresh]


def _understand(path: Path, content: bytes | None) -> None:
    if content is None:
        return
    if path.suffix == ".toml":
        read_toml(content, settings_schema())
    else:
        outline_servers(content)


class FileWatch:
    """Says when files may have changed. One thread watches for all who ask."""

    def __init__(self) -> None:
        self._directories: Counter[Path] = Counter()
        self._pulse = anyio.Event()
        self._stop = anyio.Event()
        """Ends the watch that stands, so that another one with other directories begins."""

    async def serve(self) -> None:
        """Watch until cancelled."""
        logging.getLogger("watchfiles").setLevel(logging.WARNING)  # it tells of every event
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_watching)
            try:
                await anyio.sleep_forever()
            finally:
                tasks.cancel_scope.cancel()
                self._stop.set()  # the thread would look for some time yet

    async def _keep_watching(self) -> None:
        while True:
            self._stop = anyio.Event()
            watching = awatch(
                *filter(Path.is_dir, set(self._directories)),
                recursive=False,
                step=_QUIET_MS,
                watch_filter=None,
                rust_timeout=_LOOK_MS,
                yield_on_timeout=True,
                stop_event=self._stop,
            )
            try:
                async for _ in watching:
                    self._beat()
            except OSError as error:  # a directory went, or no more can be watched
                _log.info("Files are looked at, not watched: %s", error)
                await anyio.sleep(_LOOK_MS / 1000)
            self._beat()

    def _beat(self) -> None:
        self._pulse.set()
        self._pulse = anyio.Event()

    @contextmanager
    def watching(self, files: Iterable[Path]) -> Iterator[None]:
        """Watch where these files are for the length of this context."""
        directories = {_nearest(path.parent) for path in files}
        if directories - self._directories.keys():
            self._stop.set()
        self._directories.update(directories)
        try:
            yield
        finally:
            self._directories -= Counter(directories)

    def next(self) -> anyio.Event:
        """Return what is set when something may have changed, and every now and then."""
        return self._pulse


class ConfigWatch:
    """The files of one client's configuration."""

    def __init__(
        self,
        watch: FileWatch,
        files: Iterable[Path],
        load: Callable[[], Config],
        on_read: Callable[[], None],
    ) -> None:
        """`files` are all that have a say, there or not; `on_read` is told of each reading."""
        self._watch = watch
        self._files = sorted(set(files))
        self._load = load
        self._on_read = on_read
        self._seen: object = None  # what changed before we looked must be noticed, too

    async def serve(self) -> None:
        """Look at the files until cancelled, where nobody else does."""
        await self._watch.serve()

    async def changed(self, config: Config) -> Config:
        """Return another configuration than this one, once the files say so."""
        with self._watch.watching(self._files):
            while True:
                pulse = self._watch.next()
                states = [_state(path) for path in self._files]
                if states != self._seen:
                    self._seen = states
                    current = await anyio.to_thread.run_sync(self._usable)
                    if current is not None and current != config:
                        return current
                await pulse.wait()

    def _usable(self) -> Config | None:
        """Return what the files say now; None if that cannot be."""
        try:
            return self._load()
        except ToolfoldError as error:
            _log.warning("An edit was not applied: %s", error)
            return None
        finally:
            self._on_read()


@dataclass(slots=True, kw_only=True)
class Following:
    """How one client goes with its files."""

    watch: ConfigWatch
    config: Config
    is_known: Callable[[Config], Awaitable[bool]] | None = None
    """Whether the client has said all that another configuration asks for."""

    async def switch(self, current: CurrentApp, on_switch: Callable[[], None]) -> None:
        """Have what the files say count from the next request on.

        Returns when the client must be greeted anew, because it has not said all that they ask for.
        """
        while True:
            self.config = await self.watch.changed(self.config)
            try:
                if self.is_known is not None and not await self.is_known(self.config):
                    return
                await current.switch(self.config)
            except ToolfoldError as error:
                _log.warning("An edit was not applied: %s", error)
            else:
                on_switch()


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _nearest(directory: Path) -> Path:
    """Return a directory, or what will hold it once it is made."""
    while not directory.is_dir() and directory != directory.parent:
        directory = directory.parent
    return directory
