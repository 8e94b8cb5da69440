"""The seccomp filter: which system calls guest code may make. Linux on x86-64.

Everything that is not listed fails with EPERM; a foreign architecture kills the process.
"""

import struct

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_EPERM, _ENOTTY, _ENOSYS, _ENOTSUP = 1, 25, 38, 95
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
