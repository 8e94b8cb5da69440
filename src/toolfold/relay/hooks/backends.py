"""The ways in which a hook is answered: by the daemon, by a child, by a server of the user's."""

import sys

from toolfold.relay.client import DaemonClient, Interrupted, NoDaemon, RequestTooLong
from toolfold.relay.hooks.request import HookRequest
from toolfold.relay.manifest import base_environ
from toolfold.relay.paths import NoUsableDirectory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from toolfold.relay.hooks.settings import HookOptions

_NO_TIME = "There was no time left for it."
_LAST_WORDS = 300


class BackendFailed(Exception):
    """A way did not lead to an answer; the message says why."""


def ask_daemon(request: HookRequest, _options: "HookOptions", timeout_s: float) -> "dict[str, Any]":
    """Have the daemon answer, which is started if it does not run."""
    context: dict[str, Any] = {"cwd": request.cwd, "config": None, "set": []}
    context["environ"] = base_environ(request.environ)
    try:
        client = DaemonClient(context, request.environ, kind="hook")
        try:
            *_, part = client.ask(request.question(), timeout_s=timeout_s)
        finally:
            client.close()
    except TimeoutError:
        raise BackendFailed(f"It did not answer within {timeout_s:.1f} s.") from None
    except Interrupted:
        raise BackendFailed("It ended before it answered.") from None
    except (NoDaemon, RequestTooLong, NoUsableDirectory, OSError) as error:
        raise BackendFailed(str(error)) from error
    return _value(part)


def ask_child(request: HookRequest, _options: "HookOptions", timeout_s: float) -> "dict[str, Any]":
    """Have a process answer that opens the store itself."""
    return _ask_process(request.question(), request, timeout_s)


def ask_server(request: HookRequest, options: "HookOptions", timeout_s: float) -> "dict[str, Any]":
    """Have a process ask an MCP server that the user named, as the rules allow."""
    if not options.server:
        raise BackendFailed("No server is named: `hooks.server` in config.toml.")
    return _ask_process({**request.question(), "server": options.server}, request, timeout_s)


def _ask_process(
    question: "dict[str, Any]", request: HookRequest, timeout_s: float
) -> "dict[str, Any]":
    import json
    import subprocess

    if timeout_s <= 0:
        raise BackendFailed(_NO_TIME)
    # -P: a module in the project must not be taken for one of ours.
    command = [sys.executable, "-P", "-m", "toolfold", "memory", "hook", "--json"]
    try:
        child = subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=request.cwd,
            env={**request.environ, "TOOLFOLD_NO_DAEMON": "1"},
        )
    except (OSError, ValueError) as error:
        raise BackendFailed(f"It cannot be started: {error}.") from error
    with child:
        try:
            said, complaint = child.communicate(json.dumps(question).encode(), timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise BackendFailed(f"It did not answer within {timeout_s:.1f} s.") from None
        finally:
            child.kill()
    if child.returncode != 0:
        words = complaint.decode(errors="replace").strip()[-_LAST_WORDS:]
        raise BackendFailed(f"It ended with status {child.returncode}: {words}")
    try:
        return _value({"value": json.loads(said)})
    except ValueError as error:
        raise BackendFailed(f"Its answer cannot be read: {error}.") from error


def _value(part: "dict[str, Any]") -> "dict[str, Any]":
    if "error" in part:
        error = part["error"]
        raise BackendFailed(str(error.get("message") if isinstance(error, dict) else error))
    value = part.get("value")
    if not isinstance(value, dict):
        raise BackendFailed("Its answer is not an object.")
    return value


WAYS: "dict[str, Callable[[HookRequest, HookOptions, float], dict[str, Any]]]" = {
    "daemon": ask_daemon,
    "child": ask_child,
    "server": ask_server,
}
