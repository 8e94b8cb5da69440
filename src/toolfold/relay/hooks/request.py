"""What a hook asks, whoever answers it."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class HookRequest:
    """What a hook asks."""

    def __init__(
        self, *, hook: str, payload: "dict[str, str]", cwd: str, environ: "Mapping[str, str]"
    ) -> None:
        self.hook = hook
        self.payload = payload
        self.cwd = cwd
        self.environ = environ

    def question(self) -> "dict[str, Any]":
        """Return it as it crosses the wire."""
        return {"hook": self.hook, "payload": self.payload, "cwd": self.cwd}
