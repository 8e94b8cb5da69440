"""Stands in for the interpreter where tests start toolfold: has `server.py` fork it, loaded.

It is copied to `bin/python` of a directory that looks like a virtual environment. A script is
forked, too: test servers need the SDK. What is neither `-m toolfold` nor a script, what of toolfold
is light, and what is told how to start, runs in the real one.
The forked program has our descriptors, directory and environment; we pass signals on, and end as
it ends.
"""

import _socket
import fcntl
import json
import os
import signal
import sys
import time

LIGHT = {"mcp", "hook", "status", "stop"}
HERE = os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[0])))
STARTS_WITHIN_S = 60


def main(arguments: list[str]) -> int:
    given = arguments[1:] if arguments[:1] == ["-P"] else arguments
    is_told = any(name.startswith("PYTHON") for name in os.environ)
    is_script = given[:1] != [] and given[0].endswith(".py")
    if is_told or not (is_script or given[:2] == ["-m", "toolfold"]):
        os.execv(sys.executable, [sys.executable if is_told else sys.argv[0], *arguments])
    command = given[:1] if is_script else given[2:3]
    if not command or (command[0] in LIGHT and "--no-daemon" not in given):
        # Under our name, so that the daemon it starts is forked, too.
        os.execv(sys.executable, [sys.argv[0], *arguments])
    connection = connect()
    if connection is None:
        os.execv(sys.executable, [sys.executable, *arguments])
    ask(connection, given if is_script else given[2:], is_safe=given is not arguments)
    pid = int(connection.recv(32))
    return 0 if command == ["daemon"] else follow(connection, pid)


def connect() -> _socket.socket | None:
    """Return a connection to the server, started if need be; None where it cannot start."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    address = os.path.join(HERE, "socket")
    end = time.monotonic() + STARTS_WITHIN_S
    while True:
        try:
            connection.connect(address)
        except OSError:
            if time.monotonic() > end or os.path.exists(os.path.join(HERE, "failed")):
                return None
            start()
            time.sleep(0.02)
        else:
            return connection


def start() -> None:
    """Start the server unless somebody does so already."""
    lock = os.open(os.path.join(HERE, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return
    with open(os.path.join(HERE, "command"), encoding="utf-8") as file:
        command = json.load(file)
    if os.fork() == 0:
        os.setsid()
        log = os.open(os.path.join(HERE, "log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.dup2(lock, 3)
        os.closerange(4, 4096)  # what our own asker gave us is not for the server
        os.execve(command["argv"][0], command["argv"], command["environ"])
    os.close(lock)


def ask(connection: _socket.socket, arguments: list[str], *, is_safe: bool) -> None:
    here = os.open(".", os.O_PATH)
    descriptors = [0, 1, 2, here]
    lock = int(arguments[-1]) if arguments[-2:-1] == ["--lock"] else None
    if lock is not None:
        descriptors.append(lock)
    mask = os.umask(0)
    os.umask(mask)
    about = {
        "arguments": arguments,
        "environ": dict(os.environ),
        "is_safe": is_safe,
        "lock": lock,
        "umask": mask,
        "executable": sys.argv[0],
    }
    packed = b"".join(number.to_bytes(4, sys.byteorder) for number in descriptors)
    connection.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF, 2_000_000)
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)]
    connection.sendmsg([json.dumps(about).encode()], rights)


def follow(connection: _socket.socket, pid: int) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, lambda number, _frame: os.kill(pid, number))
    told = connection.recv(32)
    status = int(told) if told else 125
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
