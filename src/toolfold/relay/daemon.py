"""Find the daemon, start it once, talk to it."""

import _socket
import os
import sys

from toolfold import __version__
from toolfold.relay.paths import DaemonPaths, NoUsableDirectory, is_private
from toolfold.relay.wire import WIRE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_LOG_BYTES = 5_000_000
_LAST_WORDS_BYTES = 800
_MAX_DESCRIPTORS = 4096
# What a daemon is given of the environment of the relay that happens to start it. Variables of
# servers are not among them: those come with each client.
_PASSED_ON = frozenset(
    {
        *("HOME", "USERPROFILE", "PATH", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "TMPDIR"),
        *("TMP", "TEMP", "SYSTEMROOT", "LANG", "LC_ALL", "LC_CTYPE", "PYTHONPATH"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    }
)


class DaemonHandle:
    """The daemon of one user and data directory as seen from outside, whether it runs or not."""

    def __init__(self, environ: "Mapping[str, str]") -> None:
        self._environ = environ
        self.places = DaemonPaths(environ)
        self.uses_port = not hasattr(_socket, "AF_UNIX") or bool(environ.get("TOOLFOLD_LOOPBACK"))

    def connect(self) -> "tuple[_socket.socket, str] | None":
        """Return a connection and the token to show first, or None when nobody listens."""
        try:
            return self._connect()
        except (OSError, ValueError):
            return None

    def hello(self, kind: str, token: str, nonce: str) -> "dict[str, object]":
        """Return what every connection begins with; it shows that we know the token."""
        proof = self.proof(token, f"client:{nonce}")
        about = {"wire": WIRE, "version": __version__, "nonce": nonce, "proof": proof}
        return {"kind": kind, **about}

    def proof(self, token: str, nonce: str) -> str:
        """Return what only somebody who knows the token can say to `nonce`; "" without a token."""
        if not token:
            return ""
        import hmac

        return hmac.new(token.encode(), nonce.encode(), "sha256").hexdigest()

    def _connect(self) -> "tuple[_socket.socket, str]":
        if not self.uses_port:
            if not is_private(os.path.dirname(self.places.socket)):
                raise OSError("others could have put that socket there")
            link = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
            return _connected(link, self.places.socket), ""
        with open(self.places.port_file) as file:
            port, token = file.read().split()
        link = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        return _connected(link, ("127.0.0.1", int(port))), token

    def start(self) -> bool:
        """Start the daemon unless it runs or somebody is starting it; return whether we did.

        The lock that decides goes over to the daemon, which holds it as long as it lives.

        Raises:
            Misplaced: There is no place for its lock or its log.
        """
        self.places.make()
        lock = take_lock(self.places.lock)
        if lock is None:
            return False
        try:
            self._spawn(lock)
        finally:
            os.close(lock)
        return True

    def is_locked(self) -> bool:
        """Whether a daemon lives, or is being started."""
        try:
            lock = take_lock(self.places.lock)
        except NoUsableDirectory:
            return False
        if lock is not None:
            os.close(lock)
        return lock is None

    def last_words(self) -> str:
        """Return the end of what the daemon wrote to its log."""
        try:
            with open(self.places.log, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _LAST_WORDS_BYTES))
                return file.read().decode(errors="replace").strip()
        except OSError:
            return ""

    def _spawn(self, lock: int) -> None:
        # -P: a module in the directory where we happen to be must not be taken for one of ours.
        command = [sys.executable, "-P", "-m", "toolfold", "daemon", "--lock", str(lock)]
        environ = {
            name: value
            for name, value in self._environ.items()
            if name.upper() in _PASSED_ON or name.startswith(("XDG_", "TOOLFOLD_"))
        }
        log = _open_log(self.places.log)
        try:
            if hasattr(os, "fork"):
                _fork_away(command, environ, log, lock)
            else:
                _start_detached(command[:-2], environ, log)
        finally:
            os.close(log)


def take_lock(path: str) -> int | None:
    """Return a descriptor that holds the lock, or None when it is taken.

    Raises:
        Misplaced: The file cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise NoUsableDirectory(f"{path}: cannot be opened: {error.strerror}.") from error
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError as error:
        os.close(descriptor)
        if sys.platform == "win32":
            return None
        raise NoUsableDirectory(f"{path}: cannot be locked: {error.strerror}.") from error
    return descriptor


def _connected(link: "_socket.socket", address: "str | tuple[str, int]") -> "_socket.socket":
    try:
        link.connect(address)
    except OSError:
        link.close()
        raise
    return link


def _open_log(path: str) -> int:
    try:
        if os.path.exists(path) and os.path.getsize(path) > _MAX_LOG_BYTES:
            os.replace(path, f"{path}.1")
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise NoUsableDirectory(f"{path}: cannot be opened: {error.strerror}.") from error


def _fork_away(command: list[str], environ: dict[str, str], log: int, lock: int) -> None:
    """Start a process that is nobody's child and has no terminal."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        os.setsid()
        if os.fork() == 0:
            nothing = os.open(os.devnull, os.O_RDONLY)
            for source, target in ((nothing, 0), (log, 1), (log, 2)):
                os.dup2(source, target)
            os.set_inheritable(lock, True)
            os.closerange(3, lock)
            os.closerange(lock + 1, max(_MAX_DESCRIPTORS, log + 1))
            os.chdir("/")
            os.execve(command[0], command, environ)  # noqa: S606
    finally:
        os._exit(127)


def _start_detached(command: list[str], environ: dict[str, str], log: int) -> None:
    import subprocess

    flags = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(
        subprocess, "CREATE_NEW_PROCESS_GROUP", 0
    )
    subprocess.Popen(  # noqa: S603
        command,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        creationflags=flags,
        close_fds=True,
    )
