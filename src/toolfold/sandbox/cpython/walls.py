"""The walls around guest code: a root of its own, no rights, few system calls, bounded use.

There are two levels. With namespaces a guest has a root with nothing in it but Python, and sees
no other process and no network. Where user namespaces are forbidden, Landlock and seccomp alone
stand: it can open nothing but Python's own files, and write none.
"""

import os
import resource
import signal
import stat
from dataclasses import dataclass
from typing import Final

from toolfold.sandbox.cpython import kernel

NOBODY: Final = 65_534
_INSIDE: Final = 1_000
_MOUNT_POINT: Final = "/tmp"  # noqa: S108  # any directory that is surely there; nothing is put in it
_DEVICES: Final = ("/dev/null", "/dev/urandom", "/dev/zero")
_HIDDEN: Final = ("site-packages", "dist-packages")
_START: Final = "/workspace"  # empty: the host keeps the files, and answers for them
_QUOTAS: Final = {
    "/tmp": "size=64m,nr_inodes=1024,mode=700",  # noqa: S108
}
_QUIET: Final = kernel.NO_SET_ID | kernel.NO_DEVICES | kernel.NO_EXEC

LIMITS: Final = (
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_NOFILE, 64),
    (resource.RLIMIT_FSIZE, 64 << 20),
    (resource.RLIMIT_MEMLOCK, 0),
    (resource.RLIMIT_MSGQUEUE, 0),
    (resource.RLIMIT_SIGPENDING, 64),
    (resource.RLIMIT_NICE, 0),
    (resource.RLIMIT_RTPRIO, 0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleFiles:
    """What a guest may see of the disk."""

    library: str
    """The standard library."""
    packages: tuple[str, ...]
    """Directories of other packages."""
    zones: str = "/usr/share/zoneinfo"

    @property
    def trees(self) -> list[str]:
        """Return what is there to read."""
        return [path for path in (self.library, *self.packages, self.zones) if os.path.isdir(path)]


class Walls:
    """Raised once around the zygote, then around each guest."""

    def __init__(self, place: VisibleFiles, *, namespaces: bool) -> None:
        self._place = place
        self._namespaces = namespaces
        self._proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._threads = 64
        self._outside = (os.geteuid(), os.getegid())

    @property
    def clone_flags(self) -> int:
        """Return the namespaces that each guest gets."""
        return kernel.ALL_NEW if self._namespaces else 0

    def prepare(self) -> None:
        """Put this process, which will fork guests, where they may be, with no rights to lose."""
        if self._namespaces:
            is_root = os.geteuid() == 0
            kernel.unshare(kernel.NEW_MOUNTS | (0 if is_root else kernel.NEW_USERS))
            if not is_root:
                self._map(*self._outside)
            self._build_root()
        else:
            self._threads = 256 + _count_threads()
        if os.geteuid() == 0:
            self._become_nobody()
            kernel.be_readable(True)  # or its children could not map their users
        kernel.gain_nothing()

    def _become_nobody(self) -> None:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        except OSError as error:
            raise OSError(error.errno, "root cannot become nobody here") from error
        self._outside = (NOBODY, NOBODY)

    def enclose(self, bridge: int, *, cpu_s: int) -> int:
        """Raise all walls around this guest, which has nothing left but `bridge`; return it."""
        if self._namespaces:
            self._map(_INSIDE, _INSIDE)
            for path, quota in _QUOTAS.items():
                self._mount_quota(path, quota)
            kernel.name_host(b"sandbox")
        os.setsid()
        bridge = _keep_only(bridge)
        os.chdir(_START if self._namespaces else "/")
        for kind, limit in (*LIMITS, (resource.RLIMIT_NPROC, self._threads)):
            _limit(kind, limit)
        _limit(resource.RLIMIT_CPU, cpu_s)
        if self._namespaces:
            kernel.drop_capabilities()
        kernel.die_with_parent(signal.SIGKILL)
        kernel.be_readable(False)
        kernel.gain_nothing()
        kernel.restrict_files(*self._files())
        kernel.restrict_calls(has_files=self._namespaces)
        return bridge

    def _mount_quota(self, path: str, quota: str) -> None:
        """Give this guest a directory to write to. Python itself may live below it."""
        opened = {
            tree: os.open(tree, os.O_PATH)
            for tree in self._place.trees
            if tree.startswith(f"{path}/")
        }
        kernel.mount("tmpfs", path, "tmpfs", _QUIET, quota)
        os.fchdir(self._proc)
        for tree, descriptor in opened.items():
            os.makedirs(tree, exist_ok=True)
            kernel.mount(f"self/fd/{descriptor}", tree, "", kernel.BIND | kernel.RECURSIVE)

    def _files(self) -> tuple[list[str], list[str]]:
        if self._namespaces:
            return [*self._place.trees, *_DEVICES], [*_QUOTAS, "/dev/null"]
        library = self._place.library
        entries = (
            [os.path.join(library, name) for name in os.listdir(library) if name not in _HIDDEN]
            if os.access(library, os.R_OK)
            else []
        )
        others = [tree for tree in self._place.trees if tree != library]
        return [*entries, *others, *_DEVICES], ["/dev/null"]

    def _map(self, uid: int, gid: int) -> None:
        """Give this process, alone in a new user namespace, a user there: its own outside."""
        self._write_proc("setgroups", "deny")
        self._write_proc("uid_map", f"{uid} {self._outside[0]} 1")
        self._write_proc("gid_map", f"{gid} {self._outside[1]} 1")

    def _write_proc(self, name: str, text: str) -> None:
        descriptor = os.open(f"self/{name}", os.O_WRONLY, dir_fd=self._proc)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)

    def _build_root(self) -> None:
        kernel.mount("", "/", "", kernel.RECURSIVE | kernel.PRIVATE)
        library, trees = self._place.library, self._place.trees
        hidden = [f"{library}/{name}" for name in _HIDDEN]
        hidden = [path for path in hidden if os.path.isdir(path)]
        opened = {path: os.open(path, os.O_PATH) for path in (*trees, *_DEVICES)}
        kernel.mount("tmpfs", _MOUNT_POINT, "tmpfs", kernel.NO_SET_ID, "size=1m,mode=755")
        quiet = kernel.READ_ONLY | _QUIET
        _bind(opened.pop(library), library, quiet)
        for path in hidden:  # packages that were named come on top of it
            kernel.mount("tmpfs", _MOUNT_POINT + path, "tmpfs", 0, "size=4k,mode=755")
        for path, descriptor in opened.items():
            _bind(descriptor, path, quiet & ~kernel.NO_DEVICES if path in _DEVICES else quiet)
        for path in hidden:
            kernel.mount("", _MOUNT_POINT + path, "", kernel.REMOUNT | kernel.BIND | quiet)
        for path in (*_QUOTAS, _START):
            os.makedirs(_MOUNT_POINT + path, exist_ok=True)
        flags = kernel.REMOUNT | kernel.BIND | quiet
        kernel.mount("", _MOUNT_POINT, "", flags & ~kernel.NO_DEVICES)
        kernel.change_root(_MOUNT_POINT)
        if lost := [tree for tree in trees if not os.path.isdir(tree)]:
            raise FileNotFoundError(f"{lost[0]} is not in the guests' root")


def _bind(opened: int, path: str, flags: int) -> None:
    """Show what was `opened` in the old root at the same place of the new one."""
    target = _MOUNT_POINT + path
    if stat.S_ISDIR(os.stat(opened).st_mode):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
    # By its descriptor: what is below the mount point cannot be named any more.
    kernel.mount(f"/proc/self/fd/{opened}", target, "", kernel.BIND)
    kernel.mount("", target, "", kernel.REMOUNT | kernel.BIND | flags | _locked(opened))
    os.close(opened)


def _locked(opened: int) -> int:
    """Return what a mount forbids already: whoever mounts in a user namespace cannot lift it."""
    found = os.fstatvfs(opened).f_flag
    pairs = (
        *((os.ST_RDONLY, kernel.READ_ONLY), (os.ST_NOSUID, kernel.NO_SET_ID)),
        *((os.ST_NODEV, kernel.NO_DEVICES), (os.ST_NOEXEC, kernel.NO_EXEC)),
        *((os.ST_NOATIME, 1024), (os.ST_NODIRATIME, 2048), (os.ST_RELATIME, 1 << 21)),
    )
    flags = 0
    for seen, flag in pairs:
        flags |= flag if found & seen else 0
    return flags


def _keep_only(bridge: int) -> int:
    """Close everything but `bridge`; standard input, output and error lead nowhere."""
    nowhere = os.open("/dev/null", os.O_RDWR)
    spare = os.dup2(bridge, max(bridge, nowhere) + 1)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)
    os.dup2(spare, 3, inheritable=False)
    os.closerange(4, 1 << 30)
    return 3


def _limit(kind: int, limit: int) -> None:
    hard = resource.getrlimit(kind)[1]
    value = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(kind, (value, value))


def _count_threads() -> int:
    """Return how many threads run on this machine: the limit counts those of the user."""
    with open("/proc/loadavg") as file:
        return int(file.read().split()[3].split("/")[1])
