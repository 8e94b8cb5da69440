"""Forks programs with toolfold and the SDK loaded: `python server.py DIRECTORY OWNER PADDING`.

`interpreter.py` asks for them. It ends with the process OWNER. PADDING, and a variable of that
name, are room in which each program writes its own command line and environment, since that is
where tests look for it.
"""

import ctypes
import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

LOADED = (
    "toolfold.app",
    "toolfold.entrypoints.cli",
    "toolfold.entrypoints.mcp.server",
    "toolfold.entrypoints.http.app",
    "toolfold.entrypoints.commands.daemon",
    "toolfold.entrypoints.commands.doctor",
    "toolfold.entrypoints.commands.local",
    "toolfold.entrypoints.commands.memory",
    "toolfold.entrypoints.commands.serve",
    "toolfold.entrypoints.mcp.memory",
    "toolfold.memory.ranking.index",
    "anyio._backends._asyncio",
    "numpy",
    "onnxruntime",
)
MAX_BYTES = 1_000_000


@dataclass
class Program:
    """What to become."""

    about: dict[str, Any]
    descriptors: list[int]

    @property
    def is_daemon(self) -> bool:
        return bool(self.about["arguments"][:1] == ["daemon"])

    @property
    def script(self) -> str:
        """The file to run; empty for toolfold itself."""
        first: str = self.about["arguments"][0]
        return first if first.endswith(".py") else ""


def serve(listener: socket.socket, owner: int) -> Program:
    """Answer requests until the owner is gone; returns in each program, never here."""
    while True:
        while select.select([listener], [], [], 1.0)[0]:
            connection, _ = listener.accept()
            if (program := forked(listener, connection)) is not None:
                return program
            connection.close()
            reap()
        reap()
        if not is_alive(owner):
            sys.exit()


def forked(listener: socket.socket, connection: socket.socket) -> Program | None:
    """Fork the one who minds the program, and by it the program, where this returns one."""
    if os.fork():
        return None
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    listener.close()
    message, descriptors, _, _ = socket.recv_fds(connection, MAX_BYTES, 8)
    program = Program(json.loads(message), descriptors)
    pid = os.fork()
    if pid:
        mind(connection, pid, is_daemon=program.is_daemon)
        os._exit(0)
    connection.close()
    return program


def mind(connection: socket.socket, pid: int, *, is_daemon: bool) -> None:
    """Tell the asker how the program ended, and end it when the asker is gone."""
    connection.send(str(pid).encode())
    if is_daemon:
        return
    handle = os.pidfd_open(pid)
    if handle not in select.select([handle, connection], [], [])[0]:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def become(program: Program) -> None:
    """Take on what the asker has: descriptors, directory, environment, command line."""
    about, descriptors = program.about, program.descriptors
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests
    for source, target in zip(descriptors, (0, 1, 2), strict=False):
        os.dup2(source, target)
    os.fchdir(descriptors[3])
    if about["lock"] is not None and descriptors[4] != about["lock"]:
        os.dup2(descriptors[4], about["lock"], inheritable=False)
    for each in [int(name) for name in os.listdir("/proc/self/fd")]:
        if each not in (0, 1, 2, about["lock"]):
            with suppress(OSError):  # the one by which the directory was read
                os.close(each)
    os.umask(about["umask"])
    os.environ.clear()
    os.environ.update(about["environ"])
    script = program.script
    flags = ["-P"] if about["is_safe"] else []
    what = [] if script else ["-m", "toolfold"]
    show([sys.executable, *flags, *what, *about["arguments"]], about["environ"])
    if not program.is_daemon:
        sys.executable = about["executable"]
    sys.argv[1:] = about["arguments"][1 if script else 0 :]
    if not about["is_safe"]:
        sys.path.insert(0, str(Path(script).resolve().parent if script else Path.cwd()))
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(2, "w", 1, "utf-8", "backslashreplace", closefd=False)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]


def show(argv: list[str], environ: dict[str, str]) -> None:
    """Have the system show this command line and environment for our process."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    starts_and_ends = [int(field) for field in fields[45:49]]
    lines = (argv, [f"{name}={value}" for name, value in environ.items()])
    for words, start, end in zip(lines, starts_and_ends[::2], starts_and_ends[1::2], strict=True):
        text = b"".join(word.encode(errors="surrogateescape") + b"\0" for word in words)
        ctypes.memset(start, 0, end - start)
        ctypes.memmove(start, text, min(len(text), end - start - 1))


def reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def main(directory: Path, owner: int) -> None:
    try:
        for name in LOADED:
            import_module(name)
    except Exception:  # it is the subject of some test, then, not ours
        (directory / "failed").touch()
        raise
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(directory / "socket.new"))
    listener.listen(256)
    (directory / "socket.new").rename(directory / "socket")
    program = serve(listener, owner)
    become(program)
    if program.script:
        sys.argv[0] = program.script
        runpy.run_path(program.script, run_name="__main__")
    else:
        runpy.run_module("toolfold", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
