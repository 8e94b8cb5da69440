"""Where toolfold keeps things, as plain strings: what a relay must know before anything else."""

import os
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_SOCKET_PATH = 100  # the kernel takes 107 bytes, on macOS 103


class NoUsableDirectory(Exception):
    """There is no place to keep files in."""


class DaemonPaths:
    """The directories of one user, and where the daemon of these directories is reached."""

    def __init__(self, environ: "Mapping[str, str]") -> None:
        directories = find_directories(environ)
        self.state = directories["state"]
        self.cache = directories["cache"]
        self.runtime = directories["runtime"]
        # Several data directories may share one runtime directory, and each has its daemon.
        stem = os.path.join(self.runtime, digest(directories["data"]))
        self.lock = f"{stem}.lock"
        self.port_file = f"{stem}.port"
        self.socket = _short(f"{stem}.sock")
        self.log = os.path.join(self.state, "logs", "daemon.log")

    def make(self) -> None:
        """Make the directories that a daemon needs to be reached, closed to other users.

        Raises:
            Misplaced: One of them cannot be made, or is not ours alone.
        """
        for directory in (self.runtime, os.path.dirname(self.log), os.path.dirname(self.socket)):
            try:
                os.makedirs(directory, mode=0o700, exist_ok=True)
                _make_private(directory)
            except OSError as error:
                raise NoUsableDirectory(
                    f"{directory}: cannot be used: {error.strerror}."
                ) from error


def find_directories(environ: "Mapping[str, str]") -> dict[str, str]:
    """Follow `TOOLFOLD_HOME` if it is set, else the XDG variables, else their defaults.

    `TOOLFOLD_DATA_DIR` comes before all of them where data is concerned.

    Raises:
        Misplaced: A path is relative, or a default is needed and there is no `HOME`.
    """
    found = _find_all(environ)
    if data := environ.get("TOOLFOLD_DATA_DIR"):
        found["data"] = _absolute("TOOLFOLD_DATA_DIR", data)
    return found


def _find_all(environ: "Mapping[str, str]") -> dict[str, str]:
    kinds = ("config", "data", "cache", "state")
    if root := environ.get("TOOLFOLD_HOME"):
        root = _absolute("TOOLFOLD_HOME", root)
        return {kind: os.path.join(root, kind) for kind in (*kinds, "runtime")}
    defaults = (".config", ".local/share", ".cache", ".local/state")
    found = {
        kind: _xdg(environ, kind, default) for kind, default in zip(kinds, defaults, strict=True)
    }
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    found["runtime"] = (
        os.path.join(runtime, "toolfold")
        if os.path.isabs(runtime)
        else os.path.join(found["state"], "run")
    )
    return found


def _xdg(environ: "Mapping[str, str]", kind: str, default: str) -> str:
    # The XDG specification tells programs to ignore relative paths.
    given = environ.get(f"XDG_{kind.upper()}_HOME", "")
    if not os.path.isabs(given):
        given = os.path.join(_home(environ), default)
    return os.path.join(given, "toolfold")


def _home(environ: "Mapping[str, str]") -> str:
    home = environ.get("HOME") or environ.get("USERPROFILE")
    if not home:
        raise NoUsableDirectory(
            "There is no HOME in the environment: set it, or set TOOLFOLD_HOME."
        )
    return _absolute("HOME", home)


def _absolute(variable: str, text: str) -> str:
    if not os.path.isabs(text):
        raise NoUsableDirectory(f"{variable} must be an absolute path, not {text!r}.")
    return text


def _short(path: str) -> str:
    """Return `path`, or one in a short directory of ours if the kernel would not take it."""
    if len(os.fsencode(path)) <= _MAX_SOCKET_PATH or not hasattr(os, "getuid"):
        return path
    return os.path.join(f"/tmp/toolfold-{os.getuid()}", f"{digest(path)}.sock")  # noqa: S108


def digest(text: str) -> str:
    """Return a short name for a text; nobody gains anything by making two meet."""
    content = os.fsencode(text)
    return f"{zlib.crc32(content):08x}{zlib.adler32(content):08x}"


def is_private(directory: str) -> bool:
    """Whether nobody else can put anything into a directory."""
    if not hasattr(os, "getuid"):
        return True
    found = os.lstat(directory)
    return _is_own(found) and not found.st_mode & 0o077


def _make_private(directory: str) -> None:
    """Close a directory to others. What another user made under our name is not used."""
    if not hasattr(os, "getuid"):
        return
    found = os.lstat(directory)
    if not _is_own(found):
        raise NoUsableDirectory(
            f"{directory}: belongs to another user. Remove it, or set TOOLFOLD_HOME."
        )
    if found.st_mode & 0o077:
        os.chmod(directory, 0o700)


def _is_own(found: os.stat_result) -> bool:
    return found.st_uid == os.getuid() and found.st_mode & 0o170000 == 0o040000
