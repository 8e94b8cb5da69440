"""The process that guests are forked from: everything is imported, nothing has happened yet.

It runs isolated, with an empty environment and one thread, and imports the standard library only,
and what it was told to: guests cannot load machine code any more, so every extension module has to
be here already. It forks a guest for each message on its control socket, and ends with it.
"""

import array
import contextlib
import gc
import importlib
import importlib.util
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder
from typing import Any, Final, NoReturn

from toolfold.sandbox.cpython import frames, guest, kernel
from toolfold.sandbox.cpython.walls import VisibleFiles, Walls

_COMMON: Final = (
    "ast asyncio base64 bisect calendar cmath collections concurrent.futures contextlib "
    "contextvars copy csv dataclasses datetime decimal difflib encodings.idna enum fractions "
    "functools glob gzip hashlib heapq hmac html html.parser io itertools json linecache "
    "locale logging lzma math numbers operator pathlib pickle pprint queue random re reprlib "
    "secrets shutil sqlite3 statistics string struct tempfile textwrap threading time timeit "
    "tomllib traceback types typing unicodedata unittest urllib.parse uuid warnings weakref "
    "xml.etree.ElementTree zipfile zlib zoneinfo"
)
# They open windows, print, or take long and serve nobody.
_NEVER: Final = frozenset(
    {"_tkinter", "antigravity", "ensurepip", "idlelib", "lib2to3", "pip", "pydoc_data", "readline"}
    | {"test", "tests", "this", "tkinter", "turtle", "turtledemo"}
)
_STACK_BYTES: Final = 4 << 20  # where the recursion limit, not the stack, ends what recurs
_PAGE: Final = 4096


def main() -> NoReturn:
    """Prepare, say so, and fork guests until the host is gone."""
    told = json.loads(sys.argv[1])
    control = socket.socket(fileno=told["control"])
    try:
        spawner = _prepare(told)
    except Exception as error:  # noqa: BLE001  # whatever it is, the host must hear of it
        control.send(f"failed: {type(error).__name__}: {error}".encode()[:4_000])
        os._exit(1)
    os.dup2(1, 2)  # last words are for the start alone
    control.send(b"ready")
    while True:
        _, descriptors = _receive(control)
        if not descriptors:
            os._exit(0)
        control.sendmsg(*spawner.spawn(descriptors[0]))


def _prepare(told: dict[str, Any]) -> "_Spawner":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries the dead
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path.remove(told["source"])
    kernel.use_one_arena()
    threading.stack_size(_STACK_BYTES)
    packages = _Packages(told["packages"])
    place = VisibleFiles(library=os.path.dirname(os.__file__), packages=tuple(packages.directories))
    walls = Walls(place, namespaces=told["namespaces"])
    _import_all(place, everything=not _others_can_read(place.library))
    packages.load()
    sys.dont_write_bytecode = True  # what was imported so far is compiled once, not at every start
    os.environ.clear()
    size = _address_space()
    walls.prepare()
    for name in [name for name in sys.modules if name.partition(".")[0] == "toolfold"]:
        del sys.modules[name]
    gc.collect()
    gc.freeze()
    return _Spawner(walls, cpu_s=told["cpu_s"], size=size)


def _address_space() -> int:
    """Return how much of it is taken before any guest does anything."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * _PAGE


class _Packages:
    """Packages beside the standard library, and none but those that were named."""

    def __init__(self, named: dict[str, str]) -> None:
        self._homes = named
        self.directories = [os.path.join(home, name) for name, home in named.items()]
        self.directories = [path for path in self.directories if os.path.isdir(path)]

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Find a package that was named."""
        home = self._homes.get(name) if path is None else None
        return PathFinder.find_spec(name, [home], target) if home else None

    def load(self) -> None:
        """Import them, with all their machine code."""
        sys.meta_path.append(self)
        # Numerical libraries start a thread for each core unless they are told not to.
        os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        for name in self._homes:
            _try_import(name)
        for directory in self.directories:
            name = os.path.basename(directory)
            _import_machine_code(directory, name)
            if not _others_can_read(directory):
                for module in _modules_in(directory):
                    _try_import(f"{name}.{module}")


def _import_all(place: VisibleFiles, *, everything: bool) -> None:
    for name in _COMMON.split():
        _try_import(name)
    _import_machine_code(os.path.join(place.library, "lib-dynload"), "")
    if everything:
        for name in _modules_in(place.library):
            _try_import(name)


def _modules_in(library: str) -> Iterator[str]:
    """Yield the name of every module of a library."""
    for parent, folders, files in os.walk(library):
        inner = os.path.relpath(parent, library).replace(os.sep, ".").strip(".")
        folders[:] = [name for name in folders if name.isidentifier() and name not in _NEVER]
        for name in files:
            module = name.removesuffix(".py")
            if module != name and module not in {"__init__", "__main__"}:
                yield ".".join(filter(None, (inner, module)))


def _import_machine_code(directory: str, package: str) -> None:
    for parent, folders, files in os.walk(directory):
        folders[:] = [name for name in folders if name not in {"tests", "testing"}]
        inner = os.path.relpath(parent, directory).replace(os.sep, ".").strip(".")
        for name in sorted(files):
            module = next(
                (name.removesuffix(end) for end in EXTENSION_SUFFIXES if name.endswith(end)), None
            )
            if module and "test" not in module and not module.startswith("xx"):
                _try_import(".".join(filter(None, (package, inner, module))))


def _try_import(name: str) -> None:
    if name.partition(".")[0] not in _NEVER:
        with contextlib.suppress(Exception, SystemExit):
            importlib.import_module(name)


def _others_can_read(path: str) -> bool:
    """Whether a process that is nobody could import from `path` later."""
    if os.geteuid() != 0:
        return True
    parts = path.split("/")
    parents = ["/".join(parts[: end + 1]) or "/" for end in range(len(parts))]
    return all(os.stat(parent).st_mode & 0o1 for parent in parents)


class _Spawner:
    """Forks guests."""

    def __init__(self, walls: Walls, *, cpu_s: int, size: int) -> None:
        self._walls = walls
        self._cpu_s = cpu_s
        self._size = size

    def spawn(self, bridge: int) -> tuple[list[bytes], list[tuple[int, int, Any]]]:
        """Fork a guest that talks over `bridge`; return the message that tells of it."""
        try:
            pid, descriptor = kernel.clone(self._walls.clone_flags, signal.SIGCHLD)
        except OSError as error:
            os.close(bridge)
            return [f"failed: {error}".encode()], []
        if pid == 0:
            self._become_guest(bridge)
        os.close(bridge)
        sent = array.array("i", [descriptor])
        return [str(pid).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, sent)]

    def _become_guest(self, bridge: int) -> NoReturn:
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            bridge = self._walls.enclose(bridge, cpu_s=self._cpu_s)
            guest.serve(bridge, base_bytes=self._size)
        except BaseException as error:  # noqa: BLE001  # no wall, no guest
            _report(f"{type(error).__name__}: {error}", bridge)
        finally:
            os._exit(1)


def _report(why: str, bridge: int) -> None:
    """Say why there is no guest, over the bridge, which may have been moved already."""
    told = frames.frame(frames.BROKEN, why.encode()[:4_000])
    for descriptor in (bridge, 3):
        with contextlib.suppress(OSError):
            os.write(descriptor, told)
            break


def _receive(control: socket.socket) -> tuple[bytes, list[int]]:
    message, descriptors, _, _ = socket.recv_fds(control, 64, 4)
    return message, descriptors
