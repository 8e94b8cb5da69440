"""Where machines leave what they know for each other: a folder, or a branch of a git repository."""

import hashlib
import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

import anyio
import anyio.to_thread

from toolfold.errors import BadInput, StoreError

SUFFIX: Final = ".journal"
MAX_FILES: Final = 1_000
MAX_BYTES: Final = 1024**3

_FOLDER: Final = "toolfold-memory"
_BRANCH: Final = "refs/heads/toolfold-memory"
_FETCHED: Final = "refs/remotes/memory"
_PATIENCE_S: Final = 300.0
_ADDRESS: Final = re.compile(r"(?:[\w.+-]+://|[\w.-]+@?[\w.-]+:(?![/\\]{2}))\S+")
_LOST_RACE: Final = ("rejected", "cannot lock ref", "failed to update ref", "fetch first")
_VARIABLES: Final = ("PATH", "HOME", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "XDG_CONFIG_HOME", "TMPDIR")


class SyncRemote(Protocol):
    """Keeps a file of each machine. No machine writes that of another."""

    async def read(self) -> dict[str, bytes]:
        """Return all files by name.

        Raises:
            StoreError: It cannot be reached, or holds more than it should.
        """

    async def write(self, name: str, content: bytes) -> bool:
        """Leave a file; False where another machine came first, so that `read` is due again.

        Raises:
            StoreError: It cannot be reached.
        """


def is_address(remote: str) -> bool:
    """Tell whether a remote is an address of git, and no path."""
    is_drive = re.match(r"[A-Za-z]:[\\/]", remote) is not None
    return not is_drive and _ADDRESS.fullmatch(remote) is not None


def open_remote(
    remote: str, namespace: str, scratch: Path, environ: Mapping[str, str]
) -> SyncRemote:
    """Return the remote of a namespace: a folder or a bare repository by its path, or an address.

    Raises:
        BadInput: There is no such folder, or it cannot be a remote.
    """
    words = re.sub(r"[^A-Za-z0-9.-]+", "-", namespace)[:60].strip(".-")
    place = f"{words}-{_digest(namespace)}"
    if is_address(remote):
        if remote.startswith("ext:"):
            raise BadInput("A remote that is a command is not used. Give an address or a folder.")
        return GitRemote(remote, place, scratch, environ)
    folder = Path(remote).expanduser()
    if not folder.is_absolute():
        raise BadInput(f"{remote!r} is no address. Give the whole path of a folder.")
    if not folder.is_dir():
        raise BadInput(f"There is no folder {folder}. Make it, or mount the disk that it is on.")
    if (folder / "HEAD").is_file() and (folder / "objects").is_dir():
        return GitRemote(str(folder), place, scratch, environ)
    return FolderRemote(folder / _FOLDER / place)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


class FolderRemote:
    """A folder that something else carries from machine to machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def read(self) -> dict[str, bytes]:
        return await anyio.to_thread.run_sync(self._read)

    async def write(self, name: str, content: bytes) -> bool:
        await anyio.to_thread.run_sync(self._write, name, content)
        return True

    def _read(self) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        try:
            if not self._folder.is_dir():
                return found
            # Copies that such programs make of files in conflict are read as well.
            for path in sorted(self._folder.iterdir()):
                about = path.lstat()
                if path.suffix == SUFFIX and stat.S_ISREG(about.st_mode):
                    _check_size(len(found), sum(map(len, found.values())) + about.st_size)
                    found[path.name] = path.read_bytes()
        except OSError as error:
            raise StoreError(f"{self._folder} cannot be read: {error.strerror}.") from error
        return found

    def _write(self, name: str, content: bytes) -> None:
        path = self._folder / name
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if path.exists() and path.read_bytes() == content:
                return
            descriptor, partial = tempfile.mkstemp(prefix=".toolfold-", dir=self._folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                Path(partial).replace(path)
            finally:
                Path(partial).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}.") from error


class GitRemote:
    """A branch of a repository. Nothing of it is ever checked out, so nothing in it runs."""

    def __init__(self, address: str, place: str, scratch: Path, environ: Mapping[str, str]) -> None:
        self._address = address
        self._place = place
        self._repository = scratch / "repository.git"
        self._index = scratch / "index"
        self._environ = {name: environ[name] for name in _VARIABLES if name in environ} | {
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_SSH_COMMAND": environ.get("GIT_SSH_COMMAND", "ssh -oBatchMode=yes"),
            "GIT_DIR": str(self._repository),
            "GIT_INDEX_FILE": str(self._index),
            "LC_ALL": "C",
            **{f"GIT_{who}_NAME": "toolfold" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "toolfold@localhost" for who in ("AUTHOR", "COMMITTER")},
        }

    async def read(self) -> dict[str, bytes]:
        if not await anyio.Path(self._repository / "HEAD").exists():
            await self._git("init", "--quiet", "--bare", str(self._repository))
        await self._git("update-ref", "-d", _FETCHED)
        if not await self._git("ls-remote", "--", self._address, _BRANCH):
            return {}
        spec = f"+{_BRANCH}:{_FETCHED}"
        await self._git("fetch", "--quiet", "--no-tags", "--", self._address, spec)
        listed = await self._git("ls-tree", "-l", "-z", f"{_FETCHED}:", f"{self._place}/")
        found: dict[str, bytes] = {}
        total = 0
        for line in filter(None, listed.decode("utf-8", "replace").split("\0")):
            about, _, path = line.partition("\t")
            mode, kind, blob, size = about.split()
            if kind == "blob" and mode == "100644" and path.endswith(SUFFIX):
                total += int(size)
                _check_size(len(found), total)
                found[path.rpartition("/")[2]] = await self._git("cat-file", "blob", blob)
        return found

    async def write(self, name: str, content: bytes) -> bool:
        head = await self._word("for-each-ref", "--format=%(objectname)", _FETCHED)
        await self._git("read-tree", *([head] if head else ["--empty"]))
        blob = await self._word("hash-object", "-w", "--stdin", content=content)
        entry = f"100644,{blob},{self._place}/{name}"
        await self._git("update-index", "--add", "--cacheinfo", entry)
        tree = await self._word("write-tree")
        if head and tree == await self._word("rev-parse", f"{head}^{{tree}}"):
            return True
        parents = ["-p", head] if head else []
        made = await self._word("commit-tree", *parents, "-m", "Sync notes", tree)
        try:
            await self._git("push", "--quiet", "--", self._address, f"{made}:{_BRANCH}")
        except StoreError as error:
            if any(words in str(error) for words in _LOST_RACE):
                return False
            raise
        return True

    async def _word(self, *arguments: str, content: bytes = b"") -> str:
        return (await self._git(*arguments, content=content)).decode().strip()

    async def _git(self, *arguments: str, content: bytes = b"") -> bytes:
        options = ("-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never")
        try:
            with anyio.fail_after(_PATIENCE_S):
                done = await anyio.run_process(
                    ["git", *options, "-c", "gc.auto=0", *arguments],
                    input=content,
                    stderr=subprocess.PIPE,
                    check=False,
                    env=self._environ,
                )
        except FileNotFoundError as error:
            raise StoreError("git is not installed, or not in PATH.") from error
        except TimeoutError as error:
            raise StoreError(f"git {arguments[0]} did not end in {_PATIENCE_S:.0f} s.") from error
        if done.returncode:
            words = " ".join(done.stderr.decode("utf-8", "replace").split())[-500:]
            raise StoreError(f"git {arguments[0]} failed: {words}")
        return done.stdout


def _check_size(files: int, size: int) -> None:
    if files >= MAX_FILES or size > MAX_BYTES:
        raise StoreError(
            f"The remote holds more than {MAX_FILES:,} files or {MAX_BYTES:,} bytes for these "
            "notes. Take out the files of machines that are gone."
        )
