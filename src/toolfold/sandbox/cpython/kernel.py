"""The system calls that raise the walls, by ctypes. Standard library only.

Every worker of Monty starts by way of this module, so it imports next to nothing.
"""

import ctypes
import os
import struct
import sys

from toolfold.sandbox.cpython import bpf

NEW_MOUNTS = 0x00020000
NEW_CGROUP = 0x02000000
NEW_NAMES = 0x04000000
NEW_IPC = 0x08000000
NEW_USERS = 0x10000000
NEW_PIDS = 0x20000000
NEW_NET = 0x40000000
ALL_NEW = NEW_MOUNTS | NEW_CGROUP | NEW_NAMES | NEW_IPC | NEW_USERS | NEW_PIDS | NEW_NET

READ_ONLY, NO_SET_ID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8
REMOUNT, BIND, RECURSIVE, PRIVATE = 32, 4096, 16384, 1 << 18

_CLONE_PIDFD = 0x1000
_SYS_CLONE, _SYS_PIVOT_ROOT, _SYS_CAPSET, _SYS_SECCOMP = 56, 155, 126, 317
_SYS_LANDLOCK_CREATE, _SYS_LANDLOCK_ADD, _SYS_LANDLOCK_RESTRICT = 444, 445, 446
_PR_PDEATHSIG, _PR_DUMPABLE, _PR_NO_NEW_PRIVS = 1, 4, 38
_MNT_DETACH = 2
_M_ARENA_MAX = -8

if sys.platform == "linux":
    _libc = ctypes.CDLL(None, use_errno=True)


def missing_walls() -> str | None:
    """Say which wall this system lacks for certain; None if all may be there."""
    if sys.platform != "linux":
        return f"only Linux has the walls that it needs, and this is {sys.platform}"
    machine = os.uname().machine
    if machine != "x86_64" or sys.maxsize < 1 << 32:
        return f"its list of system calls is that of x86-64, and this is {machine}"
    if not landlock_version():
        return "this kernel has no Landlock, or it is switched off"
    return None


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)} ({what})")
    return result


def _call(number: int, *arguments: object, what: str) -> int:
    return _checked(_libc.syscall(ctypes.c_long(number), *arguments), what)


def clone(flags: int, exit_signal: int) -> tuple[int, int]:
    """Fork into new namespaces. Return the process and a descriptor of it; 0 in the new one.

    `os.fork` makes no namespaces, and to unshare that of processes takes a second fork. So this
    does what `os.fork` does around the system call. Nothing else may run in this process.
    """
    descriptor = ctypes.c_int(-1)
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = _libc.syscall(
        ctypes.c_long(_SYS_CLONE),
        ctypes.c_ulong(flags | _CLONE_PIDFD | exit_signal),
        None,
        ctypes.byref(descriptor),
        None,
        None,
    )
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
        return 0, -1
    ctypes.pythonapi.PyOS_AfterFork_Parent()
    return _checked(pid, "clone"), descriptor.value


def unshare(flags: int) -> None:
    """Leave the namespaces of others."""
    _checked(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount, bind, or change a mount, as `flags` say."""
    result = _libc.mount(
        source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode()
    )
    _checked(result, f"mount {target}")


def change_root(root: str) -> None:
    """Make `root` the root of everything, and let go of the old one."""
    os.chdir(root)
    _call(_SYS_PIVOT_ROOT, b".", b".", what="pivot_root")
    _checked(_libc.umount2(b".", _MNT_DETACH), "umount")
    os.chdir("/")


def name_host(name: bytes) -> None:
    """Set the name of this machine, as this process sees it."""
    _checked(_libc.sethostname(name, len(name)), "sethostname")


def die_with_parent(signal: int) -> None:
    """Ask for `signal` when the parent ends."""
    _checked(_libc.prctl(_PR_PDEATHSIG, signal, 0, 0, 0), "PR_SET_PDEATHSIG")


def be_readable(readable: bool) -> None:
    """Whether processes of the same user may look into this one; and whether it dumps core."""
    _checked(_libc.prctl(_PR_DUMPABLE, int(readable), 0, 0, 0), "PR_SET_DUMPABLE")


def gain_nothing() -> None:
    """Never gain rights by executing a file."""
    _checked(_libc.prctl(_PR_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS")


def drop_capabilities() -> None:
    """Give up what rights this process has over its namespaces."""
    header = struct.pack("<Ii", 0x20080522, 0)
    _call(_SYS_CAPSET, header, bytes(24), what="capset")


def use_one_arena() -> None:
    """Allocate from one place: an arena for each thread reserves 64 MB of address space."""
    if hasattr(_libc, "mallopt"):  # musl has one arena anyway
        _libc.mallopt(_M_ARENA_MAX, 1)


def landlock_version() -> int:
    """Return the version of Landlock that this kernel has; 0 if it has none."""
    return max(0, int(_libc.syscall(ctypes.c_long(_SYS_LANDLOCK_CREATE), None, 0, 1)))


def restrict_files(
    readable: list[str], writable: list[str], executable: tuple[str, ...] = ()
) -> None:
    """Let this process read below `readable`, read and write below `writable`, and no more.

    It may read and execute what is `executable`.

    What a newer Landlock can forbid besides (TCP, abstract sockets, signals), it forbids.
    """
    version = landlock_version()
    handled = (1 << 13) - 1
    for since, right in ((2, 13), (3, 14), (5, 15)):
        handled |= (1 << right) if version >= since else 0
    scopes = struct.pack("<QQQ", handled, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = _call(_SYS_LANDLOCK_CREATE, scopes, size, 0, what="landlock_create_ruleset")
    reading = 1 << 2 | 1 << 3
    # Writing is all but execute, and making devices, sockets, pipes and links.
    writing = handled & ~(1 << 0 | 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12 | 1 << 15)
    lists = ((readable, reading), (writable, writing), (executable, reading | 1))
    for paths, rights in lists:
        for path in paths:
            _allow(rules, path, rights)
    _call(_SYS_LANDLOCK_RESTRICT, rules, 0, what="landlock_restrict_self")
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not os.path.isdir(path):
        rights &= 1 | 1 << 1 | 1 << 2 | 1 << 14
    rule = struct.pack("<Qi", rights, place)
    _call(_SYS_LANDLOCK_ADD, rules, 1, rule, 0, what=f"landlock_add_rule {path}")
    os.close(place)


def restrict_calls(*, has_files: bool, starting: bool = False) -> None:
    """Let this process make the system calls of `bpf` only."""
    code = bpf.program(has_files=has_files, starting=starting)
    steps = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("<HxxxxxxQ", len(code) // 8, ctypes.addressof(steps))
    _call(_SYS_SECCOMP, 1, 0, program, what="seccomp")
