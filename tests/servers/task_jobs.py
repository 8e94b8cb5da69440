"""Serve work that takes long: `python task_jobs.py ERA --log LOG`. The standard library only.

ERA is `tasks` for the tasks of 2025-11-25, `extension` for those of 2026-07-28, and `plain` for a
server that knows no tasks and says how far it is. `run_tests(seconds)` works for that long;
`ask(seconds)` asks the user half way. What is asked of the server is written to LOG, with the time.
"""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

ERA, LOG = sys.argv[1], Path(sys.argv[3])
_lock = threading.Lock()
_jobs: dict[str, "Job"] = {}
_replies: dict[str, Any] = {}
_cancelled: set[Any] = set()

Json = dict[str, Any]


def send(message: Json) -> None:
    with _lock:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def note(*words: object) -> None:
    with _lock, LOG.open("a", encoding="utf-8") as log:
        log.write(json.dumps([time.time(), *words]) + "\n")


class Job:
    """One task: it ends by itself, or is cancelled."""

    def __init__(self, name: str, seconds: float) -> None:
        self.id = f"job-{len(_jobs)}"
        self.name = name
        self.begun = time.monotonic()
        self.seconds = seconds
        self.status = "working"
        self.reply: Any = None
        self.needs_reply = name == "ask"
        self.ended = threading.Event()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        self.ended.wait(self.seconds / 2)
        if self.needs_reply and self.status == "working":
            self.status = "input_required"
            while self.reply is None and not self.ended.is_set():
                time.sleep(0.01)
            self.status = "working" if self.reply is not None else self.status
        if self.ended.wait(self.seconds / 2):
            return
        self.status = "failed" if self.name == "fail" else "completed"
        self.ended.set()

    def cancel(self) -> None:
        self.status = "cancelled"
        self.ended.set()

    def state(self) -> Json:
        done = min(100, round(100 * (time.monotonic() - self.begun) / self.seconds))
        stamp = "2026-01-01T00:00:00Z"
        state: Json = {"taskId": self.id, "status": self.status, "createdAt": stamp}
        state |= {"lastUpdatedAt": stamp, "statusMessage": f"{done} % of the tests"}
        if ERA == "tasks":
            return state | {"ttl": None, "pollInterval": 50}
        state |= {"ttlMs": None, "pollIntervalMs": 50}
        if self.status == "completed":
            state["result"] = self.result()
        if self.status == "failed":
            state["error"] = {"code": -32000, "message": "the runner is gone"}
        if self.status == "input_required":
            state["inputRequests"] = {"which": question()}
        return state

    def result(self) -> Json:
        value = {"passed": 7, "reply": self.reply}
        return {"content": [{"type": "text", "text": json.dumps(value)}]}


def question() -> Json:
    schema = {"type": "object", "properties": {"branch": {"type": "string"}}}
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "Which branch?", "requestedSchema": schema},
    }


def tools() -> list[Json]:
    schema = {"type": "object", "properties": {"seconds": {"type": "number"}}}
    extra = {"execution": {"taskSupport": "required"}} if ERA == "tasks" else {}
    hints = {"annotations": {"readOnlyHint": True}}
    return [
        {"name": name, "inputSchema": schema, **extra, **hints}
        for name in ("run_tests", "ask", "fail")
    ]


def answer(message: Json) -> Json:
    """Return the result of a request, or an error."""
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        found: Json = {"tools": {}, "logging": {}}
        if ERA == "tasks":
            found["tasks"] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
        info = {"name": "jobs", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": found, "serverInfo": info}
    if method == "server/discover" and ERA == "extension":
        extensions = {"io.modelcontextprotocol/tasks": {}}
        found = {"tools": {}, "extensions": extensions}
        return {"supportedVersions": ["2026-07-28"], "capabilities": found, **cached()}
    if method == "tools/list":
        return {"tools": tools(), **cached()}
    if method == "tools/call":
        return called(message["id"], params)
    if method.startswith("tasks/"):
        return of_task(method, params)
    raise KeyError(method)


def cached() -> Json:
    if ERA != "extension":
        return {}
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def called(request_id: Any, params: Json) -> Json:
    seconds = float((params.get("arguments") or {}).get("seconds", 0.3))
    if ERA == "plain":
        return worked(request_id, params, seconds)
    is_task = "task" in params if ERA == "tasks" else _declares_tasks(params)
    if not is_task:
        raise KeyError("it must be a task")
    job = Job(params["name"], seconds)
    _jobs[job.id] = job
    if ERA == "tasks":
        return {"task": job.state()}
    return {"resultType": "task", **job.state()}


def _declares_tasks(params: Json) -> bool:
    can = (params.get("_meta") or {}).get("io.modelcontextprotocol/clientCapabilities") or {}
    return "io.modelcontextprotocol/tasks" in (can.get("extensions") or {})


def worked(request_id: Any, params: Json, seconds: float) -> Json:
    """Work without a task, and say how far it is."""
    token = (params.get("_meta") or {}).get("progressToken")
    until = time.monotonic() + seconds
    begun = time.monotonic()
    while time.monotonic() < until and request_id not in _cancelled:
        time.sleep(0.05)
        if token is not None:
            done = time.monotonic() - begun
            told = {"progressToken": token, "progress": done, "total": seconds}
            send({"method": "notifications/progress", "params": {**told, "message": "tests"}})
        log = {"level": "info", "data": "compiling the tests"}
        send({"method": "notifications/message", "params": log})
    return {"content": [{"type": "text", "text": '{"passed": 7}'}]}


def of_task(method: str, params: Json) -> Json:
    job = _jobs[params["taskId"]]
    if method == "tasks/get":
        return job.state()
    if method == "tasks/cancel":
        job.cancel()
        return job.state() if ERA == "tasks" else {"resultType": "complete"}
    if method == "tasks/update":
        job.reply = params["inputResponses"]["which"]["content"]["branch"]
        return {"resultType": "complete"}
    while not job.ended.is_set():  # tasks/result, which waits
        if job.status == "input_required" and job.id not in _replies:
            _replies[job.id] = job
            send({"id": f"ask:{job.id}", **question()})
        job.ended.wait(0.02)
    if job.status != "completed":
        raise KeyError("the runner is gone")
    return job.result()


def serve(message: Json) -> None:
    try:
        send({"id": message["id"], "result": answer(message)})
    except KeyError as error:
        code = -32601 if message["method"] == "server/discover" else -32602
        send({"id": message["id"], "error": {"code": code, "message": str(error.args[0])}})


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            job = _replies[str(message["id"]).removeprefix("ask:")]
            job.reply = message["result"]["content"]["branch"]
            continue
        note(message["method"], message.get("params", {}).get("taskId"))
        if message["method"] == "notifications/cancelled":
            _cancelled.add(message["params"]["requestId"])
        if "id" in message:
            threading.Thread(target=serve, args=(message,), daemon=True).start()


if __name__ == "__main__":
    main()
