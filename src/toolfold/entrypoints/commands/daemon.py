"""`toolfold status`, `stop` and `logs`, and the hidden `daemon`."""

import os
import re
import secrets
import sys
import time
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from toolfold.config.paths import Directories
from toolfold.config.processes import is_alive_since
from toolfold.entrypoints.parser import unknown
from toolfold.entrypoints.screen import print_json, tell
from toolfold.errors import ConfigError, NotFound, count
from toolfold.relay.daemon import DaemonHandle, take_lock
from toolfold.relay.paths import NoUsableDirectory
from toolfold.relay.wire import decode, encode
from toolfold.storage.files import CRASH

_ANSWER_S: Final = 10.0
_POLL_S: Final = 0.05
_MAX_STOP_S: Final = 340.0
_MAX_START_S: Final = 60.0


def daemon(arguments: Namespace) -> int:
    """Be the daemon; relays start this."""
    from toolfold.config.config import load_config
    from toolfold.entrypoints.daemon.daemon import run_daemon

    reach = find_daemon()
    lock = arguments.lock if arguments.lock is not None else take_place(reach)
    if lock is None:
        return 0  # another one lives
    run_daemon(load_config(cwd=Path(reach.places.state)), reach, lock)
    return 0


def status(arguments: Namespace) -> int:
    """Say whether the daemon runs, and for whom."""
    reach = find_daemon()
    answer = ask_daemon(reach, "status")
    if arguments.json:
        print_json({"running": answer is not None, **(answer or {})})
    elif answer is None:
        print("The daemon is not running. It starts when a client needs it.")
    else:
        _print_status(answer)
    return 0


def stop(arguments: Namespace) -> int:
    """End the daemon once nobody waits for an answer, or at once."""
    was_running = end_daemon(now=arguments.now)
    sentence = "The daemon has ended." if was_running else "The daemon is not running."
    tell(arguments, sentence, was_running=was_running)
    return 0


def end_daemon(*, now: bool) -> bool:
    """End the daemon, and wait until its process is gone; return whether there was one.

    Raises:
        ConfigError: It does not end.
    """
    reach = find_daemon()
    answer = ask_daemon(reach, "stop", now=now)
    if answer is None and reach.is_locked():  # it is just being started
        _until(lambda: ask_daemon(reach, "status") or not reach.is_locked(), _MAX_START_S)
        answer = ask_daemon(reach, "stop", now=now)
    if answer is None:
        return False
    if answer["in_flight"] and not now:
        waiting = count(answer["in_flight"], "request")
        print(f"Waiting for {waiting}; --now does not wait.", file=sys.stderr, flush=True)
    if not _until(lambda: not is_alive_since(answer["pid"], answer["started"]), _MAX_STOP_S):
        raise ConfigError(
            f"The daemon, process {answer['pid']}, has not ended. `toolfold logs` may say why; "
            "`toolfold stop --now` also ends runs in progress."
        )
    return True


def logs(arguments: Namespace) -> int:
    """Print the end of the daemon's log, or of a server's."""
    path = _log_of(arguments.server)
    if arguments.crash:
        path = path.with_name(f"{path.name}{CRASH}")
    if arguments.json and arguments.follow:
        raise ConfigError("--json and -f exclude each other: give one of them.")
    lines = deque(_lines(path), maxlen=arguments.lines)
    if arguments.json:
        print_json({"file": str(path), "lines": [line.rstrip("\n") for line in lines]})
        return 0
    print("".join(lines), end="")
    if not lines:
        print(_empty(path), file=sys.stderr)
    if arguments.follow:
        _follow(path)
    return 0


def ask_daemon(reach: DaemonHandle, kind: str, **details: object) -> dict[str, Any] | None:
    """Return the daemon's answer; None when there is none."""
    found = reach.connect()
    if found is None:
        return None
    link, token = found
    link.settimeout(_ANSWER_S)
    try:
        hello = reach.hello(kind, token, secrets.token_hex(16))
        link.sendall(encode({**hello, **details}))
        received = b""
        while not received.endswith(b"\n"):
            chunk = link.recv(65_536)
            if not chunk:
                return None
            received += chunk
    except OSError as error:
        raise ConfigError(
            f"The daemon does not answer: {error}. End its process; see `toolfold logs`."
        ) from error
    finally:
        link.close()
    return decode(received)


def use_data_directory(directory: str) -> None:
    """Keep data there from now on, as if the environment had said so: it names the daemon too."""
    os.environ["TOOLFOLD_DATA_DIR"] = str(Path(directory).absolute())


def find_daemon() -> DaemonHandle:
    """Return the daemon of this user, whether it runs or not.

    Raises:
        ConfigError: There is no place where it could be.
    """
    try:
        return DaemonHandle(dict(os.environ))
    except NoUsableDirectory as error:
        raise ConfigError(str(error)) from error


def take_place(reach: DaemonHandle) -> int | None:
    """Return the lock that makes us the daemon; None while another one has it.

    Raises:
        ConfigError: There is no place for it.
    """
    try:
        reach.places.make()
        return take_lock(reach.places.lock)
    except NoUsableDirectory as error:
        raise ConfigError(str(error)) from error


def _print_status(answer: dict[str, Any]) -> None:
    since = _ago(answer["started"])
    print(f"daemon    process {answer['pid']}, toolfold {answer['version']}, up {since}")
    for client in answer["clients"]:
        requests = count(client["in_flight"], "request")
        busy = f", {requests} in progress" if client["in_flight"] else ""
        print(
            f"client    process {client['pid']} in {client['project']}, "
            f"connected for {_ago(client['since'])}{busy}"
        )
    for server in answer["servers"]:
        print(f"server    {server['name']}: {server['fault'] or server['state']}")
    if not answer["clients"] and answer["idle_s"] is not None:
        print(f"No clients: the daemon stops after {answer['idle_s']:g} s without one.")


def _ago(then: float) -> str:
    seconds = max(0, round(time.time() - then))
    hours, minutes = divmod(seconds // 60, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds % 60} s" if minutes else f"{seconds} s"


def _until(condition: Callable[[], object], limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _log_of(server: str | None) -> Path:
    directory = Directories.from_environ(os.environ).state / "logs"
    if server in {None, "daemon"}:
        return directory / "daemon.log"
    if server == "hooks":
        return directory / "hooks.log"
    of_server = re.compile(re.escape(str(server)) + r"-[0-9a-f]{8}\.log")
    logs = [path for path in directory.glob("*.log") if of_server.fullmatch(path.name)]
    found = sorted(logs, key=lambda path: path.stat().st_mtime)
    if not found:
        names = {path.stem.rpartition("-")[0] for path in directory.glob("*-????????.log")}
        see = f"No server has written a log in {directory} yet."
        raise NotFound(unknown("log", str(server), sorted({"daemon", "hooks", *names}), see=see))
    return found[-1]


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            yield from file
    except FileNotFoundError:
        if path.stem == "hooks":
            return
        raise NotFound(f"Nothing has been logged yet: {path} does not exist.") from None


def _empty(path: Path) -> str:
    if path.stem == "hooks":
        return "No hook has failed so far."
    return f"The log is empty: {path}."


def _follow(path: Path) -> None:
    with path.open(encoding="utf-8", errors="replace") as file:
        file.seek(0, os.SEEK_END)
        while True:
            if text := file.read():
                print(text, end="", flush=True)
            else:
                if os.fstat(file.fileno()).st_size < file.tell():  # it was cut
                    file.seek(0)
                time.sleep(0.2)
