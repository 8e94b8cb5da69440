"""The system calls that raise the walls, by ctypes. Standard library only.

Every worker of Monty starts by way of this module, so it imports next to nothing.
"""

import ctypes
import os
import struct
import sys

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
    """Let this process make the system calls of `program` only."""
    code = program(has_files=has_files, starting=starting)
    steps = ctypes.create_string_buffer(code, len(code))
    packed = struct.pack("<HxxxxxxQ", len(code) // 8, ctypes.addressof(steps))
    _call(_SYS_SECCOMP, 1, 0, packed, what="seccomp")


_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_EPERM, _ENOTTY, _ENOSYS, _ENOTSUP = 1, 25, 38, 95
# The seccomp filter: which system calls guest code may make. Linux on x86-64.
#
# Everything that is not listed fails with EPERM; a foreign architecture kills the process.

_X86_64 = 0xC000003E
_X32 = 0x40000000
_PROT_EXEC = 4
_SET_ID_BITS = 0o6000
_O_TRUNC = 0o1000
_WRITING = 0o3
_THREAD = (0x3D0F00, 0x7D0F00)  # what glibc and musl clone threads with, to the bit

_SEND_FLAGS = 0x4040  # MSG_DONTWAIT and MSG_NOSIGNAL
_CHANGE_FILES = frozenset({76, 90, 91, 268, 280})  # sizes, modes and times
_Step = tuple[int, int, int, int]

# Reading and writing what is open already, or what Landlock and the mounts let it open.
_FILES = """
    read 0, write 1, close 3, stat 4, fstat 5, lstat 6, poll 7, lseek 8, pread64 17, pwrite64
    18, readv 19, writev 20, access 21, pipe 22, select 23, dup 32, dup2 33, sendfile 40,
    flock 73, fsync 74, fdatasync 75, ftruncate 77, getcwd 79, chdir 80, fchdir 81, rename 82,
    rmdir 84, unlink 87, readlink 89, umask 95, statfs 137, fstatfs 138, getdents64 217,
    fadvise64 221, epoll_create 213, epoll_wait 232, epoll_ctl 233, newfstatat 262, unlinkat
    263, renameat 264, readlinkat 267, faccessat 269, pselect6 270, ppoll 271,
    epoll_pwait 281, fallocate 285, eventfd2 290, epoll_create1 291, dup3 292, pipe2 293,
    preadv 295, pwritev 296, renameat2 316, copy_file_range 326, statx 332, close_range 436,
    faccessat2 439
"""
# Its own memory, threads, signals, clocks, identity.
_ITSELF = """
    munmap 11, brk 12, rt_sigaction 13, rt_sigprocmask 14, rt_sigreturn 15, sched_yield 24,
    mremap 25, msync 26, mincore 27, madvise 28, pause 34, nanosleep 35, getitimer 36, alarm 37,
    setitimer 38, getpid 39, exit 60, uname 63, gettimeofday 96, getrusage 98, sysinfo 99,
    times 100, getuid 102, getgid 104, geteuid 107, getegid 108, getppid 110, getpgrp 111,
    getgroups 115, getresuid 118, getresgid 120, getpgid 121, sigaltstack 131, gettid 186,
    time 201, futex 202, sched_getaffinity 204, restart_syscall 219, clock_gettime 228,
    clock_getres 229, clock_nanosleep 230, exit_group 231, set_robust_list 273, getcpu 309,
    getrandom 318, membarrier 324, rseq 334
"""


def program(*, has_files: bool, starting: bool = False) -> bytes:
    """Return the filter as the kernel takes it: an array of `sock_filter`.

    Who has no files of its own may not change modes, sizes and times either: Landlock does not
    see all of that, so a guest that is the user outside could do it to every file of the user.

    With `starting` it lets a program be executed and load its libraries; Landlock says which.
    """
    steps = [
        *(_load(4), (_EQUAL, 1, 0, _X86_64), _give(_KILL)),
        *(_load(0), (_AT_LEAST, 0, 1, _X32), _give(_KILL)),
    ]
    for number, judged in (_conditional() | (_STARTING if starting else {})).items():
        is_refused = number in _CHANGE_FILES and not has_files
        block = [_fail(_EPERM)] if is_refused else judged
        steps += [(_EQUAL, 0, len(block), number), *block]
    for call in f"{_FILES},{_ITSELF}".split(","):
        steps += [(_EQUAL, 0, 1, int(call.split()[1])), _give(_ALLOW)]
    steps.append(_fail(_EPERM))
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


def _conditional() -> dict[int, list[_Step]]:
    """Return the calls that are judged by their arguments. Every block decides."""
    return {
        9: _without(2, _PROT_EXEC),  # mmap
        10: _without(2, _PROT_EXEC),  # mprotect
        56: _one_of(0, *_THREAD),  # clone
        435: [_fail(_ENOSYS)],  # clone3, whose flags lie in memory; glibc then uses clone
        72: _one_of(1, *range(8), 36, 37, 38, 1030),  # fcntl: descriptors, flags, locks
        16: _one_of(1, 0x5450, 0x5451, 0x5421, 0x541B, other=_ENOTTY),  # ioctl
        302: _is_zero(0),  # prlimit64 of itself: the kernel lets nobody raise a hard limit
        44: _send(),  # sendto, on the bridge; there is no other socket to name
        2: _open(flags=1, mode=2),
        257: _open(flags=2, mode=3),  # openat
        76: [_give(_ALLOW)],  # truncate
        83: _without(1, _SET_ID_BITS),  # mkdir
        90: _without(1, _SET_ID_BITS),  # chmod
        91: _without(1, _SET_ID_BITS),  # fchmod
        258: _without(2, _SET_ID_BITS),  # mkdirat
        268: _without(2, _SET_ID_BITS),  # fchmodat
        280: [_give(_ALLOW)],  # utimensat
        # Extended attributes: who copies files takes this for an answer, and no other.
        **{number: [_fail(_ENOTSUP)] for number in range(188, 200)},
    }


# mmap, mprotect, execve, arch_prctl, set_tid_address
_STARTING: dict[int, list[_Step]] = {
    number: [(_RETURN, 0, 0, _ALLOW)] for number in (9, 10, 59, 158, 218)
}


def _without(argument: int, bits: int) -> list[_Step]:
    return [_load_low(argument), (_ANY_BIT, 1, 0, bits), _give(_ALLOW), _fail(_EPERM)]


def _one_of(argument: int, *values: int, other: int = _EPERM) -> list[_Step]:
    tests = [(_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [_load_low(argument), *tests, _fail(other), _give(_ALLOW)]


def _is_zero(argument: int) -> list[_Step]:
    return [
        *(_load_low(argument), (_EQUAL, 0, 3, 0)),
        *(_load_high(argument), (_EQUAL, 0, 1, 0)),
        *(_give(_ALLOW), _fail(_EPERM)),
    ]


def _send() -> list[_Step]:
    """To nobody by name, and nothing out of band."""
    return [
        *(_load_low(4), (_EQUAL, 0, 5, 0)),
        *(_load_high(4), (_EQUAL, 0, 3, 0)),
        *(_load_low(3), (_ANY_BIT, 1, 0, ~_SEND_FLAGS & 0xFFFFFFFF)),
        *(_give(_ALLOW), _fail(_EPERM)),
    ]


def _open(*, flags: int, mode: int) -> list[_Step]:
    """No set-id bits; no emptying of files opened to read, which old Landlock does not see."""
    return [
        *(_load_low(mode), (_ANY_BIT, 3, 0, _SET_ID_BITS)),
        *(_load_low(flags), (_ANY_BIT, 0, 2, _O_TRUNC), (_ANY_BIT, 1, 0, _WRITING)),
        *(_fail(_EPERM), _give(_ALLOW)),
    ]


def _load(offset: int) -> _Step:
    return (_LOAD, 0, 0, offset)


def _load_low(argument: int) -> _Step:
    return _load(16 + 8 * argument)


def _load_high(argument: int) -> _Step:
    return _load(20 + 8 * argument)


def _give(action: int) -> _Step:
    return (_RETURN, 0, 0, action)


def _fail(errno: int) -> _Step:
    return _give(0x00050000 | errno)
