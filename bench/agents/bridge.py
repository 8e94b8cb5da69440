"""Hold one connection to an agent's door, answer the command `tool` on a socket, log every call.

`bridge.py DIR -- COMMAND ARGS...` for one MCP server over stdio; several are `NAME=COMMAND ARGS...`
with `--` between them. DIR gets `tools.json`, what a model would have in its context, and
`calls.jsonl`. Ends with its standard input.
"""

import json
import queue
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

_WAIT_S = 300.0


class Door:
    """One MCP server, spoken to line by line."""

    def __init__(self, command: list[str]) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._number = 0
        threading.Thread(target=self._read, daemon=True).start()
        info = {"name": "agent-bench", "version": "1"}
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        self.call("initialize", hello)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Make one request, and wait for its answer."""
        self._number += 1
        number, end = self._number, time.monotonic() + _WAIT_S
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})
        while True:
            answer = self._answers.get(timeout=max(0.1, end - time.monotonic()))
            if answer.get("id") == number and "method" not in answer:
                if "error" in answer:
                    raise RuntimeError(answer["error"].get("message", answer["error"]))
                return answer["result"]

    def close(self) -> None:
        """End the server."""
        self._process.terminate()
        self._process.wait(10)

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                self._answers.put(json.loads(line))
            except ValueError:
                continue


def open_doors(words: list[str]) -> dict[str, Door]:
    """Start what the command line names; each by the prefix of its tools."""
    doors: dict[str, Door] = {}
    command: list[str] = []
    for word in [*words, "--"]:
        if word != "--":
            command.append(word)
            continue
        name, is_named, first = command[0].partition("=")
        prefix = f"{name}__" if is_named else ""
        doors[prefix] = Door([first, *command[1:]] if is_named else command)
        command = []
    return doors


def answer(doors: dict[str, Door], asked: dict[str, Any]) -> dict[str, Any]:
    """Make one call for an agent."""
    try:
        name = str(asked["name"])
        prefix = next(
            each for each in sorted(doors, key=len, reverse=True) if name.startswith(each)
        )
        params = {"name": name.removeprefix(prefix), "arguments": asked["arguments"]}
        result = doors[prefix].call("tools/call", params)
        texts = [block.get("text", f"[{block['type']}]") for block in result["content"]]
        return {"text": "\n".join(texts), "error": bool(result.get("isError"))}
    except (RuntimeError, StopIteration, queue.Empty, KeyError) as error:
        return {"text": f"{type(error).__name__}: {error}", "error": True}


def serve(root: Path, doors: dict[str, Door]) -> None:
    """Answer commands one after the other, until the socket is closed."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / ".sock"))
        listener.listen(8)
        print("ready", flush=True)
        while True:
            connection, _ = listener.accept()
            with connection, (root / "calls.jsonl").open("a", encoding="utf-8") as log:
                content = b""
                while chunk := connection.recv(1 << 16):
                    content += chunk
                asked, began = json.loads(content), time.monotonic()
                told = answer(doors, asked)
                seconds = round(time.monotonic() - began, 3)
                log.write(json.dumps({**asked, **told, "seconds": seconds}) + "\n")
                connection.sendall(json.dumps(told).encode())


def main() -> None:
    root = Path(sys.argv[1]).resolve()
    doors = open_doors(sys.argv[3:])
    time.sleep(3)  # for servers behind a door to be known to it
    tools = [
        {**tool, "name": prefix + tool["name"]}
        for prefix, door in doors.items()
        for tool in door.call("tools/list")["tools"]
    ]
    shown = [
        {key: each.get(key) for key in ("name", "description", "inputSchema")} for each in tools
    ]
    (root / "tools.json").write_text(json.dumps(shown, indent=1), encoding="utf-8")
    threading.Thread(target=serve, args=(root, doors), daemon=True).start()
    sys.stdin.read()
    for door in doors.values():
        door.close()


if __name__ == "__main__":
    main()
