"""The way from a script to memory: through the daemon, or into the store itself."""

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from toolfold import errors
from toolfold.api.values import Terminal, as_json
from toolfold.errors import BadInput, StoreError, ToolfoldError
from toolfold.relay.client import DaemonClient, Interrupted, NoDaemon, RequestTooLong
from toolfold.relay.manifest import base_environ
from toolfold.relay.paths import NoUsableDirectory, find_directories

# It brings the event loop and the model along, and few need it.
if TYPE_CHECKING:
    from toolfold.api.own import OwnMemory

OnProgress = Callable[[int, int, str], None]

_ATTEMPTS: Final = 4
_MAX_IDLE: Final = 8
_PATIENCE_S: Final = 60.0


def ask(
    verb: str,
    arguments: Mapping[str, Any],
    *,
    may_repeat: bool = False,
    namespace: str | None = None,
    on_progress: OnProgress | None = None,
    by: Terminal | None = None,
) -> Any:
    """Have a verb done, and return its answer as JSON.

    `may_repeat` says that it may be asked again when the daemon ended before it answered. Scripts
    ask, unless it is `by` a command.

    Raises:
        ToolfoldError: It could not be done; the message says why.
    """
    question = {
        "verb": verb,
        "arguments": as_json(verb, arguments),
        "namespace": namespace,
        "progress": on_progress is not None,
    }
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _answer(_doors.parts(question, by), on_progress)
        except Interrupted:
            if not may_repeat or attempt == _ATTEMPTS:
                break
    raise StoreError(f"The toolfold daemon ended during {verb}; its outcome is unknown.")


def _answer(parts: Iterator[dict[str, Any]], on_progress: OnProgress | None) -> Any:
    """Return the value in the last of all parts, or raise the error."""
    answer: dict[str, Any] = {}
    for part in parts:  # to their end: a connection that is left half-way cannot be used again
        if "progress" in part and on_progress is not None:
            on_progress(*part["progress"])
        answer = part
    if "error" in answer:
        raise _error(answer["error"])
    return answer["value"]


def ask_for_pages(
    verb: str, arguments: Mapping[str, Any], *, namespace: str | None = None
) -> Iterator[Any]:
    """Have a verb done whose answer comes in pages, and give them as they are asked for.

    Raises:
        ToolfoldError: It could not be done; the message says why.
    """
    question = {
        "verb": verb,
        "arguments": as_json(verb, arguments),
        "namespace": namespace,
        "pages": True,
    }

    def pages() -> Iterator[Any]:
        failure: ToolfoldError | None = None
        try:
            for part in _doors.parts(question):
                if "page" in part:
                    yield part["page"]
                elif "error" in part:
                    failure = _error(part["error"])
        except Interrupted:
            raise StoreError(f"The way to the toolfold daemon ended during {verb}.") from None
        if failure is not None:
            raise failure

    return pages()


class _ProcessContext:
    """What decides whose notes are meant: where this process is, and its variables."""

    def __init__(self) -> None:
        """See how it is now.

        Raises:
            BadInput: The current directory is gone.
        """
        try:
            self.directory = os.getcwd()
        except OSError as error:
            words = f"The current directory cannot be used: {error.strerror}."
            raise BadInput(words) from error
        self.environ = base_environ(os.environ)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ProcessContext) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def connect(self) -> DaemonClient:
        """Begin a connection to the daemon that serves here."""
        about: dict[str, Any] = {"cwd": self.directory, "config": None, "set": []}
        return DaemonClient({**about, "environ": self.environ}, os.environ)

    def data_directory(self) -> str:
        """Return where the store is; "" if that cannot be said."""
        try:
            return find_directories(self.environ)["data"]
        except NoUsableDirectory:
            return ""


def absolute(path: str | os.PathLike[str]) -> str:
    """Return a path as the daemon, which is elsewhere, understands it."""
    return os.path.join(_ProcessContext().directory, os.path.expanduser(os.fspath(path)))


class _Doors:
    """The connections that this process holds, and the stores that it has opened itself."""

    def __init__(self) -> None:
        self._idle: list[tuple[_ProcessContext, DaemonClient]] = []
        self._all: set[DaemonClient] = set()
        self._lock = threading.Lock()
        self._own: dict[str, OwnMemory] = {}
        self._daemonless: dict[str, float] = {}
        """Until when none is sought for a data directory for which none could be started."""
        self._opening = threading.Lock()

    def parts(
        self, question: dict[str, Any], by: Terminal | None = None
    ) -> Iterator[dict[str, Any]]:
        """Give what comes of a question, in order.

        Raises:
            Interrupted: The daemon ended before it answered.
            ToolfoldError: The question cannot be asked.
        """
        context = _ProcessContext()
        data = context.data_directory()
        is_wanted = os.environ.get("TOOLFOLD_NO_DAEMON", "0") in {"", "0"}
        if is_wanted and time.monotonic() >= self._daemonless.get(data, 0):
            try:
                yield from self._through_daemon(context, question)
            except (
                NoDaemon,
                NoUsableDirectory,
            ):  # whatever is wrong with the store is said by itself
                self._daemonless[data] = time.monotonic() + _PATIENCE_S
            else:
                return
        yield from self._opened(data).ask(question, by)

    def _through_daemon(
        self, context: _ProcessContext, question: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        client = self._take(context)
        try:
            yield from client.ask(question)
        except RequestTooLong as error:
            self._keep(context, client)
            raise BadInput(f"{question['verb']}: {error} Give it in parts.") from error
        except BaseException:  # also a caller who does not want the rest
            self._part(client)
            raise
        self._keep(context, client)

    def _take(self, context: _ProcessContext) -> DaemonClient:
        with self._lock:
            for place in reversed(range(len(self._idle))):
                if self._idle[place][0] == context:
                    return self._idle.pop(place)[1]
        client = context.connect()
        with self._lock:
            self._all.add(client)
        return client

    def _keep(self, context: _ProcessContext, client: DaemonClient) -> None:
        with self._lock:
            self._idle.append((context, client))
            too_many = self._idle[:-_MAX_IDLE]
            del self._idle[:-_MAX_IDLE]
        for _, old in too_many:
            self._part(old)

    def _part(self, client: DaemonClient) -> None:
        client.close()
        self._all.discard(client)

    def _opened(self, data: str) -> "OwnMemory":
        with self._opening:
            if data not in self._own:
                from toolfold.api.own import OwnMemory

                self._own[data] = OwnMemory()
            return self._own[data]

    def close(self) -> None:
        """Leave the daemon, and close the stores."""
        with self._lock:
            self.abandon()
        while self._own:
            self._own.popitem()[1].close()

    def abandon(self) -> None:
        """Close every connection, also of those who wait for an answer. No other thread may run."""
        for client in [*self._all]:
            client.close()
        self._idle.clear()

    def hold(self) -> None:
        """Wait until nothing is under way that a child could never finish."""
        self._opening.acquire()
        for own in self._own.values():
            own.hold()

    def go_on(self) -> None:
        """Let stores be opened and used again."""
        for own in self._own.values():
            own.go_on()
        self._opening.release()


def _error(reason: Mapping[str, str]) -> ToolfoldError:
    kinds: dict[str, type[ToolfoldError]] = {
        kind.code: kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, ToolfoldError)
    }
    return kinds.get(reason["code"], StoreError)(reason["message"])


_doors = _Doors()


def close() -> None:
    """Leave the daemon and close what is open; the next call opens it again."""
    _doors.close()


def _begin_as_child() -> None:
    """Leave the parent's connections to it: what both would write to would be of no use."""
    global _doors
    _doors.abandon()
    _doors = _Doors()


atexit.register(close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _doors.hold(),
        after_in_parent=lambda: _doors.go_on(),
        after_in_child=_begin_as_child,
    )
