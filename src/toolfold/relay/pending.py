"""What goes on between a relay and one daemon; it ends with that daemon."""

from toolfold.relay.wire import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class PendingRequests:
    """The requests of either side that the other has not answered."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._pending: dict[str, dict[str, Any]] = {}
        self._received: set[str] = set()
        self._asked: dict[str, Any] = {}
        self._questions = 0

    def sent(self, message: "dict[str, Any]") -> None:
        """Note what was sent to the daemon."""
        if "method" in message and "id" in message:
            self._pending[key_of(message["id"])] = message

    def received(self, request_id: object) -> None:
        """Note that the daemon works on a request, which must not be asked again from now on."""
        self._received.add(key_of(request_id))

    def answered(self, request_id: object) -> "dict[str, Any] | None":
        """Return the request that the daemon answered, or the client gave up."""
        key = key_of(request_id)
        self._received.discard(key)
        return self._pending.pop(key, None)

    def unanswered(self) -> "tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]":
        """Return by key the requests that the daemon worked on, and those that it never saw."""
        begun = {key: each for key, each in self._pending.items() if key in self._received}
        rest = {key: each for key, each in self._pending.items() if key not in self._received}
        return begun, rest

    def question(self, message: "dict[str, Any]") -> "dict[str, Any]":
        """Return a question of the daemon under an id that no other daemon has given.

        Each daemon counts from the same number: an answer to one must not be taken for another.
        """
        self._questions += 1
        name = f"toolfold:{self.number}:{self._questions}"
        self._asked[name] = message["id"]
        return {**message, "id": name}

    def withdrawal(self, message: "dict[str, Any]") -> "dict[str, Any]":
        """Return a notification that cancels a question, with the id that the client knows."""
        params = message.get("params") or {}
        for name, request_id in self._asked.items():
            if request_id == params.get("requestId"):
                return {**message, "params": {**params, "requestId": name}}
        return message

    def reply(self, message: "dict[str, Any]") -> "dict[str, Any] | None":
        """Return the client's answer as the daemon knows it; None if it did not ask."""
        name = message.get("id")
        if not isinstance(name, str) or name not in self._asked:
            return None
        return {**message, "id": self._asked.pop(name)}

    def open_questions(self) -> list[str]:
        """Return the ids of the questions that the client still has."""
        return list(self._asked)
