"""What git says of where a conversation begins: the branch, and what was done last.

A repository may be hostile. Nothing is asked that would have git run a program that the repository
names: no pager, no signature, no file system monitor, no fetching of what is missing.
"""

import os
import re
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

_PATIENCE_S: Final = 2.0
_COMMITS: Final = 5
_MAX_KNOWN: Final = 200
_MAX: Final = 2_000
_MAX_NAME: Final = 100
_NO_NAME: Final = re.compile(r"[^\w./-]")
_NO_COMMITS: Final = "does not have any commits yet"
_BOUNDARY: Final = "Stopping at filesystem boundary"  # where its search for a repository ended
_SAFELY: Final = (
    "--no-pager",
    *("-c", "core.fsmonitor=false"),
    *("-c", "log.showSignature=false"),
    *("-c", "protocol.allow=never"),
)
_ENVIRON: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C.UTF-8",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GitContext:
    """Where work goes on; empty where there is no repository."""

    branch: str = ""
    subjects: tuple[str, ...] = ()
    """Of the last commits, newest first."""

    remarks: tuple[str, ...] = ()
    """Why something is not known."""

    @property
    def query(self) -> str:
        """What to look for in memory; "" where nothing is known."""
        branch = " ".join(self.branch.replace("/", " ").replace("-", " ").split())
        return " ".join([branch, *self.subjects]).strip()[:_MAX]

    @property
    def about(self) -> str:
        """The same in a word or two, for people and models.

        It stands in a sentence of ours, so whoever named the branch must not go on with it.
        """
        return f"branch {_NO_NAME.sub('_', self.branch)[:_MAX_NAME]}" if self.branch else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitLocation:
    """Where and for whom git is asked."""

    directory: Path
    search_path: str
    home: str
    """With the user's own configuration, which says whose repositories to trust."""


class Git:
    """Asks git, and asks it again only when something was committed or checked out since."""

    def __init__(self) -> None:
        self._known: dict[GitLocation, tuple[object, GitContext]] = {}

    async def read(self, place: GitLocation) -> GitContext:
        """Return where work goes on; what goes wrong is remarked, and left out."""
        found = await anyio.to_thread.run_sync(_git_directory, place.directory)
        if found is None:
            return GitContext()
        state = await anyio.to_thread.run_sync(_state, found)
        known_state, known = self._known.get(place, (None, None))
        if known is not None and state is not None and state == known_state:
            return known
        context = await _ask_git(place)
        if not context.remarks:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[place] = state, context
        return context


async def _ask_git(place: GitLocation) -> GitContext:
    git = shutil.which("git", path=place.search_path)
    if git is None:
        return GitContext(remarks=("git is not in the PATH.",))
    said: dict[str, str] = {}
    remarks: list[str] = []

    async def ask(what: str, *arguments: str) -> None:
        command = [git, "-C", str(place.directory), *_SAFELY, *arguments]
        environ = {**_ENVIRON, "PATH": place.search_path, "HOME": place.home}
        try:
            said[what] = await _output(command, environ)
        except (OSError, ValueError, TimeoutError, _GitFailed) as error:
            remarks.append(f"git {arguments[0]}: {str(error) or 'it takes too long'}.")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "branch", "symbolic-ref", "--short", "--quiet", "HEAD")
        log = ("log", f"--max-count={_COMMITS}", "--no-show-signature", "--format=%s")
        tasks.start_soon(ask, "subjects", *log)
    return GitContext(
        branch=said.get("branch", "").strip(),
        subjects=tuple(said.get("subjects", "").splitlines()),
        remarks=tuple(remarks),
    )


class _GitFailed(Exception):
    """Git ended with an error."""


async def _output(command: list[str], environ: dict[str, str]) -> str:
    with anyio.fail_after(_PATIENCE_S):
        done = await anyio.run_process(command, stdin=subprocess.DEVNULL, check=False, env=environ)
    # A detached head has no branch, which is no trouble: that is status 1, and no words.
    if done.returncode > 1:
        words = done.stderr.decode(errors="replace").strip()
        if _NO_COMMITS not in words:
            raise _GitFailed(_reason(words)[:200])
    return done.stdout.decode(errors="replace")[:_MAX]


def _reason(words: str) -> str:
    """Return the line of git's words that says what is wrong, not how far git has looked."""
    lines = [line for line in words.splitlines() if not line.startswith(_BOUNDARY)]
    return lines[-1] if lines else "no reason given"


def _git_directory(directory: Path) -> Path | None:
    """Return where a repository keeps its state: in `.git`, or where that file says."""
    here = directory.absolute()
    for parent in (here, *here.parents):
        place = parent / ".git"
        try:
            if place.is_file():
                told = _beginning(place).decode(errors="replace")
                return parent / told.removeprefix("gitdir:").strip()
            if place.exists():
                return place
        except (OSError, ValueError):
            return place
    return None


def _state(git_directory: Path) -> object:
    """Return what changes with every commit and checkout; None where that cannot be told."""
    try:
        head = _beginning(git_directory / "HEAD")
        log = (git_directory / "logs" / "HEAD").stat()
    except (OSError, ValueError):
        return None
    return head, log.st_mtime_ns, log.st_size


def _beginning(path: Path) -> bytes:
    """Return the first bytes of a file that is ours; git judges what others own.

    Raises:
        OSError: It cannot be read, is no file, or somebody else's.
    """
    # A pipe would have us wait for whoever writes into it.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or not _is_ours(about):
            raise OSError(f"{path} is not a file of ours")
        return file.read(_MAX)


def _is_ours(about: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or about.st_uid in {0, os.getuid()}
