"""The way from a script to memory: through the daemon, or into the store itself."""

import atexit
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from toolfold import errors
from toolfold.errors import BadInput, StoreError, ToolfoldError
from toolfold.relay.asking import Asking, Interrupted, NoDaemon, TooLong
from toolfold.relay.manifest import base_environ
from toolfold.relay.places import Misplaced

# It brings the event loop and the model along, and few need it.
if TYPE_CHECKING:
    from toolfold.api.own import OwnMemory

OnProgress = Callable[[int, int, str], None]

_ATTEMPTS: Final = 4
_MOST_IDLE: Final = 8


def ask(
    verb: str,
    arguments: Mapping[str, Any],
    *,
    may_repeat: bool = False,
    namespace: str | None = None,
    on_progress: OnProgress | None = None,
) -> Any:
    """Have a verb done, and return its answer as JSON.

    `may_repeat` says that it may be asked again when the daemon ended before it answered.

    Raises:
        ToolfoldError: It could not be done; the message says why.
    """
    question = {
        "verb": verb,
        "arguments": _as_json(arguments),
        "namespace": namespace,
        "progress": on_progress is not None,
    }
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            for part in _doors.parts(question):
                if "progress" in part and on_progress is not None:
                    on_progress(*part["progress"])
                elif "value" in part:
                    return part["value"]
                elif "error" in part:
                    raise _error(part["error"])
        except Interrupted:
            if not may_repeat or attempt == _ATTEMPTS:
                break
    raise StoreError(f"The toolfold daemon ended during {verb}; whether it was done is not known.")


def ask_for_pages(
    verb: str, arguments: Mapping[str, Any], *, namespace: str | None = None
) -> Iterator[Any]:
    """Have a verb done whose answer comes in pages, and give them as they are asked for.

    Raises:
        ToolfoldError: It could not be done; the message says why.
    """
    question = {
        "verb": verb,
        "arguments": _as_json(arguments),
        "namespace": namespace,
        "pages": True,
    }

    def pages() -> Iterator[Any]:
        try:
            for part in _doors.parts(question):
                if "page" in part:
                    yield part["page"]
                elif "error" in part:
                    raise _error(part["error"])
        except Interrupted:
            raise StoreError(f"The toolfold daemon ended during {verb}.") from None

    return pages()


class _Doors:
    """The connections that this process holds, and the store if it has opened that itself."""

    def __init__(self) -> None:
        self._idle: dict[str, list[Asking]] = {}
        self._own: OwnMemory | None = None
        self._opening = threading.Lock()

    def parts(self, question: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Give what comes of a question, in order.

        Raises:
            Interrupted: The daemon ended before it answered.
            ToolfoldError: The question cannot be asked.
        """
        if self._own is None and os.environ.get("TOOLFOLD_NO_DAEMON", "0") in {"", "0"}:
            try:
                yield from self._through_daemon(question)
            except (NoDaemon, Misplaced):
                pass  # whatever is wrong with the store is said by itself
            else:
                return
        yield from self._opened().ask(question)

    def _through_daemon(self, question: dict[str, Any]) -> Iterator[dict[str, Any]]:
        place = _current_directory()
        idle = self._idle.setdefault(place, [])
        asking = idle.pop() if idle else _connect(place)
        try:
            yield from asking.ask(question)
        except TooLong as error:
            raise BadInput(f"{question['verb']}: {error}") from error
        except BaseException:  # also a caller who does not want the rest
            asking.close()
            raise
        if len(idle) < _MOST_IDLE:
            idle.append(asking)
        else:
            asking.close()

    def _opened(self) -> "OwnMemory":
        with self._opening:
            if self._own is None:
                from toolfold.api.own import OwnMemory

                self._own = OwnMemory()
            return self._own

    def close(self) -> None:
        """Leave the daemon, and close the store."""
        for idle in self._idle.values():
            while idle:
                idle.pop().close()
        if self._own is not None:
            self._own.close()
            self._own = None


def _connect(place: str) -> Asking:
    environ = base_environ(os.environ)
    world: dict[str, Any] = {"cwd": place, "config": None, "set": [], "environ": environ}
    return Asking(world, os.environ)


def _current_directory() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        raise BadInput(f"The current directory cannot be used: {error.strerror}.") from error


def _as_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what is not given, and turn datetimes into seconds."""
    return {
        name: value.timestamp() if isinstance(value, datetime) else _listed(value)
        for name, value in arguments.items()
        if value is not None
    }


def _listed(value: Any) -> Any:
    return [*value] if isinstance(value, set | frozenset | tuple) else value


def _error(reason: Mapping[str, str]) -> ToolfoldError:
    kinds: dict[str, type[ToolfoldError]] = {
        kind.code: kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, ToolfoldError)
    }
    return kinds.get(reason["code"], StoreError)(reason["message"])


_doors = _Doors()


def _forget_in_child() -> None:
    """Leave the parent's connections to it: what both would write to would be of no use."""
    global _doors
    _doors = _Doors()


atexit.register(lambda: _doors.close())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
