"""Try the relay as a client does, for `toolfold doctor`."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from toolfold import __version__
from toolfold.config.config import current_directory, environment
from toolfold.entrypoints.commands.daemon import ask_daemon, find_daemon
from toolfold.errors import ToolfoldError

_PATIENCE_S: Final = 60.0
_PROTOCOL: Final = "2025-11-25"


def probe_relay(options: Sequence[str]) -> tuple[bool, str]:
    """Start a relay and reach the daemon through it; say whether that works, in words.

    A daemon that was not there before is not there afterwards.
    """
    started = time.perf_counter()
    # -P: a module of the project that we stand in must not be taken for one of ours.
    command = [sys.executable, "-P", "-m", "toolfold", "mcp", *options]
    try:
        daemon = find_daemon()
        was_running = ask_daemon(daemon, "status") is not None
        with subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=current_directory(),
            env=dict(environment()),
        ) as relay:
            reply = _converse(relay)
        status = ask_daemon(daemon, "status" if was_running else "stop")
    except (OSError, ValueError, ToolfoldError, subprocess.TimeoutExpired) as error:
        return False, f"`toolfold mcp` does not work: {error}. See `toolfold logs`."
    if status is None or "result" not in reply or reply["result"].get("isError"):
        return False, f"`toolfold mcp` gave no result: {_words(reply)} See `toolfold logs`."
    elapsed_ms = (time.perf_counter() - started) * 1000
    if status["version"] != __version__:
        return False, (
            f"the daemon is toolfold {status['version']}, this is {__version__}: "
            "run `toolfold stop`, and restart clients that use the other one."
        )
    return True, f"answered in {elapsed_ms:.0f} ms, process {status['pid']}"


def _converse(relay: "subprocess.Popen[str]") -> dict[str, Any]:
    """Say hello and ask whether anybody is there; return the answer to that.

    No code is run: what is only tried shall not be among the user's runs.
    """
    about = {"name": "toolfold-doctor", "version": __version__}
    greeting = {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": about}
    assert relay.stdin is not None  # noqa: S101
    assert relay.stdout is not None  # noqa: S101
    _send(relay, {"id": 1, "method": "initialize", "params": greeting})
    _receive(relay)
    _send(relay, {"method": "notifications/initialized"})
    _send(relay, {"id": 2, "method": "ping"})
    answer = _receive(relay)
    relay.stdin.close()
    relay.wait(_PATIENCE_S)
    return answer


def _send(relay: "subprocess.Popen[str]", message: dict[str, Any]) -> None:
    assert relay.stdin is not None  # noqa: S101
    relay.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    relay.stdin.flush()


def _receive(relay: "subprocess.Popen[str]") -> dict[str, Any]:
    """Return the next answer. The relay gives up by itself, so this cannot wait for ever."""
    assert relay.stdout is not None  # noqa: S101
    while True:
        message: dict[str, Any] = json.loads(relay.stdout.readline())
        if "id" in message and "method" not in message:
            return message


def _words(reply: dict[str, Any]) -> str:
    if "error" in reply:
        return str(reply["error"].get("message"))
    return " ".join(block.get("text", "") for block in reply["result"].get("content", []))
