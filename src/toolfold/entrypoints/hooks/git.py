"""What git says of where a conversation begins: the branch, and what was done last.

A repository may be hostile. Nothing is asked that would have git run a program that the repository
names: no pager, no signature, no file system monitor, no fetching of what is missing.
"""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

_PATIENCE_S: Final = 2.0
_COMMITS: Final = 5
_LONGEST: Final = 2_000
_NO_COMMITS: Final = "does not have any commits yet"
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

    repository: str = ""
    branch: str = ""
    subjects: tuple[str, ...] = ()
    """Of the last commits, newest first."""

    remarks: tuple[str, ...] = ()
    """Why something is not known."""

    @property
    def query(self) -> str:
        """What to look for in memory; "" where nothing is known."""
        branch = " ".join(self.branch.replace("/", " ").replace("-", " ").split())
        return " ".join([branch, *self.subjects]).strip()[:_LONGEST]

    @property
    def about(self) -> str:
        """The same in a word or two, for people and models."""
        return f"branch {self.branch}" if self.branch else ""


async def read_git(directory: Path, *, search_path: str) -> GitContext:
    """Ask git; what goes wrong is remarked, and the rest goes on without."""
    if not _is_repository(directory):
        return GitContext()
    git = shutil.which("git", path=search_path)
    if git is None:
        return GitContext(remarks=("git is not in the PATH.",))
    said: dict[str, str] = {}
    remarks: list[str] = []

    async def ask(what: str, *arguments: str) -> None:
        command = [git, "-C", str(directory), *_SAFELY, *arguments]
        try:
            said[what] = await _output(command, {**_ENVIRON, "PATH": search_path})
        except (OSError, ValueError, TimeoutError, _GitFailed) as error:
            remarks.append(f"git {arguments[0]}: {str(error) or 'it takes too long'}.")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "branch", "symbolic-ref", "--short", "--quiet", "HEAD")
        log = ("log", f"--max-count={_COMMITS}", "--no-show-signature", "--format=%s")
        tasks.start_soon(ask, "subjects", *log)
    return GitContext(
        repository=directory.name,
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
            raise _GitFailed(words.splitlines()[-1][:200] if words else "no reason given")
    return done.stdout.decode(errors="replace")[:_LONGEST]


def _is_repository(directory: Path) -> bool:
    here = directory.absolute()
    return any((parent / ".git").exists() for parent in (here, *here.parents))
