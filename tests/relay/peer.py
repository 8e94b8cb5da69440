"""A client of the relay, line by line, and a look at the processes of this machine."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support import python

from toolfold import __version__

PATIENCE_S = 90.0
MODERN = "2026-07-28"
LEGACY = "2025-11-25"


def toolfold_command(*arguments: str, version: str = __version__, patch: str = "") -> list[str]:
    """Return the command line of a toolfold, of another version if need be."""
    if version == __version__:
        return [python(), "-P", "-m", "toolfold", *arguments]
    code = f"import sys, toolfold; toolfold.__version__ = {version!r}\n{patch}\n"
    code += "from toolfold.__main__ import main\nsys.exit(main())"
    return [sys.executable, "-c", code, *arguments]


class Peer:
    """One relay process, spoken to as a client does."""

    def __init__(
        self,
        environ: dict[str, str],
        cwd: Path,
        *arguments: str,
        era: str = MODERN,
        version: str = __version__,
    ) -> None:
        self.era = era
        self.process = subprocess.Popen(
            toolfold_command("mcp", *arguments, version=version),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environ,
            cwd=cwd,
        )
        self.notifications: list[dict[str, Any]] = []
        self._held = b""
        self._next = 0

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method: str, params: dict[str, Any] | None = None, **more: Any) -> Any:
        """Send a request; return its id."""
        self._next += 1
        request_id = more.pop("id", self._next)
        params = dict(params or {})
        if self.era == MODERN:
            envelope = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "peer", "version": "1"},
            }
            params["_meta"] = envelope | params.get("_meta", {})
        self.send({"id": request_id, "method": method, "params": params})
        return request_id

    def receive(self) -> dict[str, Any]:
        """Return the next message."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + PATIENCE_S
        while b"\n" not in self._held:
            left = deadline - time.monotonic()
            if not select.select([self.process.stdout], [], [], max(0, left))[0]:
                raise TimeoutError("The relay does not answer.")
            chunk = os.read(self.process.stdout.fileno(), 65_536)
            if not chunk:
                raise EOFError("The relay is gone.")
            self._held += chunk
        line, _, self._held = self._held.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def answer_to(self, request_id: Any) -> dict[str, Any]:
        """Return the answer to a request; keep notifications that come before it."""
        while True:
            message = self.receive()
            if "method" in message:
                self.notifications.append(message)
                continue
            assert message["id"] == request_id, message
            assert type(message["id"]) is type(request_id)
            return message

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return its answer."""
        return self.answer_to(self.request(method, params))

    def initialize(self, capabilities: dict[str, Any] | None = None) -> dict[str, Any]:
        about = {"name": "peer", "version": "1"}
        capabilities = capabilities or {}
        params = {"protocolVersion": self.era, "capabilities": capabilities, "clientInfo": about}
        answer = self.ask("initialize", params)
        self.send({"method": "notifications/initialized"})
        return answer

    def begin(self, code: str, **meta: Any) -> Any:
        """Begin a run; return the id of the request."""
        params: dict[str, Any] = {"name": "execute_code", "arguments": {"code": code}}
        if meta:
            params["_meta"] = meta
        return self.request("tools/call", params)

    def run(self, code: str) -> str:
        """Run code; return what the model reads."""
        return text_of(self.answer_to(self.begin(code)))

    def close(self) -> None:
        """Leave as a client does: close the relay's standard input."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(PATIENCE_S)
        self.process.stdout.close()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def text_of(answer: dict[str, Any]) -> str:
    assert "result" in answer, answer
    return "\n".join(block["text"] for block in answer["result"]["content"])


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"still not: {what}"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in {"Z", "X"}


def processes_with(text: str) -> set[int]:
    """Return the processes whose command line or environment holds `text`."""
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            about = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
        if text.encode() in about and is_alive(int(entry.name)):
            found.add(int(entry.name))
    return found


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid), f"process {pid} is dead")
