"""What stands outside the sandbox, open to anybody without walls, and whether it was touched.

Files are readable and writable by all, sockets listen, a process waits to be killed, descriptors
are inheritable, shared memory and keys are there to be found. An attack that works leaves a mark.
"""

import contextlib
import ctypes
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

SECRET = "s3cr3t-of-the-host"  # the word to look for
REACHED = "REACHED"  # what the code of an attack prints when something gave way
NOBODY = 65534
CHANGED_LIMIT = 17
_PATIENCE_S = 60.0
_LOOK_S = 0.01

_VICTIM = """
import signal, sys, pathlib
mark = pathlib.Path(sys.argv[1])
for number in (signal.SIGURG, signal.SIGUSR1):
    signal.signal(number, lambda *_: mark.touch())
print("ready", flush=True)
while True:
    signal.pause()
"""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.shmat.restype = ctypes.c_void_p
_libc.shmdt.argtypes = [ctypes.c_void_p]
_ADD_KEY, _KEYCTL, _UNLINK, _SESSION_KEYRING = 248, 250, 9, -3
_SHM_SIZE = 4096


class Outside:
    """Everything that guest code must not reach. `places` is what attacks aim at."""

    def __init__(self) -> None:
        self._close = contextlib.ExitStack()
        self.directory = Path(tempfile.mkdtemp(prefix="toolfold-outside-"))
        self._close.callback(shutil.rmtree, self.directory, ignore_errors=True)
        self._signals = 0
        self._make_files()
        self._listen()
        self._victims = [self._start_victim(uid) for uid in self._victim_users()]
        self._open_descriptors()
        self._share_memory()
        self._add_key()
        self._catch_signals()
        self._hostname = socket.gethostname()

    def close(self) -> None:
        self._close.close()

    @property
    def places(self) -> dict[str, str]:
        """What stands for `@NAME@` in the code of attacks."""
        return {
            "DIR": str(self.directory),
            "SECRET_FILE": str(self.secret),
            "DROP": str(self.drop),
            "UNIX": str(self.directory / "unix.sock"),
            "ABSTRACT": self._abstract,
            "TCP": str(self._tcp.getsockname()[1]),
            "UDP": str(self._udp.getsockname()[1]),
            "HOST": str(os.getpid()),
            "VICTIM": str(self._victims[-1].pid),
            "OWN_VICTIM": str(self._victims[0].pid),
            "SHM": str(self._shm),
            "SHM_KEY": str(self._shm_key),
            "DEV_SHM": str(self._dev_shm),
            "UID": str(os.getuid()),
        }

    def marks(self) -> list[str]:
        """Return what was touched since the last look, and set it right again."""
        return [
            *self._file_marks(),
            *self._socket_marks(),
            *self._process_marks(),
            *self._other_marks(),
        ]

    def marks_soon(self) -> list[str]:
        """As `marks`, but wait for a while: who was killed or signalled takes a moment to show."""
        deadline = time.monotonic() + _PATIENCE_S
        while not (marks := self.marks()) and time.monotonic() < deadline:
            select.select([], [], [], _LOOK_S)
        return marks

    def _make_files(self) -> None:
        self.directory.chmod(0o777)
        self.secret = self.directory / "secret.txt"
        self.secret.write_text(SECRET)
        self.secret.chmod(0o666)
        (self.directory / "canary_module.py").write_text(f"print('{REACHED}', 'a module')\n")
        self.drop = self.directory / "drop"
        self.drop.mkdir()
        self.drop.chmod(0o777)
        self._dev_shm = Path("/dev/shm") / self.directory.name
        self._dev_shm.write_text(SECRET)
        self._dev_shm.chmod(0o666)
        self._close.callback(self._dev_shm.unlink, missing_ok=True)
        self._state = self._secret_state()

    def _secret_state(self) -> tuple[object, ...]:
        try:
            found = self.secret.lstat()
        except FileNotFoundError:
            return ("gone",)
        attributes = tuple(os.listxattr(self.secret))
        return (found.st_mode, found.st_uid, found.st_nlink, found.st_mtime_ns, attributes)

    def _file_marks(self) -> Iterator[str]:
        if self._secret_state() != self._state:
            yield f"the file changed: {self._state} -> {self._secret_state()}"
            self.secret.unlink(missing_ok=True)
            self.secret.write_text(SECRET)
            self.secret.chmod(0o666)
            self._state = self._secret_state()
        for path in (*self.drop.iterdir(), *self._strangers()):
            yield f"{path.name} was made outside"
            shutil.rmtree(path) if stat.S_ISDIR(path.lstat().st_mode) else path.unlink()

    def _strangers(self) -> Iterator[Path]:
        ours = {"secret.txt", "drop", "unix.sock", "datagrams.sock", "canary_module.py"}
        yield from (path for path in self.directory.iterdir() if path.name not in ours)

    def _listen(self) -> None:
        self._tcp = self._socket(socket.AF_INET, socket.SOCK_STREAM)
        self._tcp.bind(("127.0.0.1", 0))
        self._udp = self._socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", 0))
        self._unix = self._socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._unix.bind(str(self.directory / "unix.sock"))
        (self.directory / "unix.sock").chmod(0o777)
        self._datagrams = self._socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._datagrams.bind(str(self.directory / "datagrams.sock"))
        (self.directory / "datagrams.sock").chmod(0o777)
        self._abstract = self.directory.name
        self._hidden = self._socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._hidden.bind(f"\0{self._abstract}")
        for listener in (self._tcp, self._unix, self._hidden):
            listener.listen(64)

    def _socket(self, family: int, kind: int) -> socket.socket:
        made = socket.socket(family, kind)
        made.setblocking(False)
        self._close.callback(made.close)
        return made

    def _socket_marks(self) -> Iterator[str]:
        listeners = {self._tcp: "TCP", self._unix: "unix", self._hidden: "abstract"}
        for listener, name in listeners.items():
            with contextlib.suppress(BlockingIOError):
                listener.accept()[0].close()
                yield f"a connection arrived: {name}"
        for receiver in (self._udp, self._datagrams):
            with contextlib.suppress(BlockingIOError):
                receiver.recv(100)
                yield "a datagram arrived"

    def _victim_users(self) -> list[int]:
        """Of each user that guest code may be outside; the last is the one it is most alike."""
        return [os.getuid(), NOBODY] if os.getuid() == 0 else [os.getuid()]

    def _start_victim(self, uid: int) -> "subprocess.Popen[bytes]":
        mark = self.drop / "signalled"
        command = [_interpreter_for_all(), "-I", "-c", _VICTIM, str(mark)]
        victim = subprocess.Popen(command, user=uid, stdout=subprocess.PIPE)
        assert victim.stdout
        assert victim.stdout.readline() == b"ready\n"

        def end() -> None:
            victim.kill()
            victim.wait()
            victim.stdout and victim.stdout.close()

        self._close.callback(end)
        return victim

    def _catch_signals(self) -> None:
        def count(_number: int, _frame: FrameType | None) -> None:
            self._signals += 1

        for number in (signal.SIGURG, signal.SIGUSR1):
            self._close.callback(signal.signal, number, signal.signal(number, count))

    def _process_marks(self) -> Iterator[str]:
        for place, victim in enumerate(self._victims):
            if victim.poll() is not None:
                yield "a process outside died"
            elif _open_files_limit(victim.pid) == CHANGED_LIMIT:
                yield "the limits of a process outside were changed"
            else:
                continue
            self._victims[place] = self._start_victim(self._victim_users()[place])
        if self._signals:
            yield "the host was sent a signal"
            self._signals = 0

    def _open_descriptors(self) -> None:
        """Open what a careless host would hand down to its children."""
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        self._pipe = reading
        file = os.open(self.secret, os.O_RDWR)
        folder = os.open(self.directory, os.O_RDONLY)
        for each in (reading, writing, file, folder):
            os.set_inheritable(each, True)
            self._close.callback(os.close, each)

    def _share_memory(self) -> None:
        self._shm_key = 0x70000000 | (os.getpid() & 0xFFFFFF)
        self._shm = _libc.shmget(self._shm_key, _SHM_SIZE, 0o1666)
        assert self._shm >= 0, os.strerror(ctypes.get_errno())
        self._close.callback(_libc.shmctl, self._shm, 0, None)
        self._memory = _libc.shmat(self._shm, None, 0)
        ctypes.memmove(self._memory, SECRET.encode(), len(SECRET))
        self._close.callback(_libc.shmdt, self._memory)

    def _add_key(self) -> None:
        text = SECRET.encode()
        key = _libc.syscall(
            _ADD_KEY, b"user", b"toolfold-canary", text, len(text), _SESSION_KEYRING
        )
        self.has_key = key > 0
        if self.has_key:
            self._close.callback(_libc.syscall, _KEYCTL, _UNLINK, key, _SESSION_KEYRING)

    def _other_marks(self) -> Iterator[str]:
        if select.select([self._pipe], [], [], 0)[0]:
            os.read(self._pipe, 1000)
            yield "something came through an inherited descriptor"
        if ctypes.string_at(self._memory, len(SECRET)) != SECRET.encode():
            ctypes.memmove(self._memory, SECRET.encode(), len(SECRET))
            yield "shared memory was changed"
        if socket.gethostname() != self._hostname:
            socket.sethostname(self._hostname)
            yield "the name of the host was changed"
        if self.directory.name in Path("/proc/self/mountinfo").read_text():
            yield "something was mounted outside"


def _open_files_limit(pid: int) -> int:
    for line in Path(f"/proc/{pid}/limits").read_text().splitlines():
        if line.startswith("Max open files"):
            return int(line.split()[3])
    raise AssertionError(pid)


def _interpreter_for_all() -> str:
    """Return a Python that every user can start; ours may lie in a home directory."""
    found = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    return found or sys.executable
