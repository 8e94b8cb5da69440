"""`toolfold hook NAME`: what Claude Code starts when a conversation begins, goes on or ends.

The client's payload comes in, and what the model shall know goes out. Whatever goes wrong stands in
a log: the client is told nothing of it, and never waits longer than the timeout.
"""

import os
import sys
import time

from toolfold.relay.hooks.backends import WAYS, BackendFailed
from toolfold.relay.hooks.log import HookLog
from toolfold.relay.hooks.request import HookRequest
from toolfold.relay.hooks.settings import HookOptions, is_off_in_project, read_hook_options
from toolfold.relay.wire import encode, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

EVENTS = {
    "session-start": "SessionStart",
    "prompt": "UserPromptSubmit",
    "pre-tool-use": "PreToolUse",
    "pre-compact": "PreCompact",
    "session-end": "SessionEnd",
}
"""By our name of a hook, the client's name of the event."""

MAX_PAYLOAD = 4 * 1024 * 1024
_MAX_PROMPT = 20_000
_TOLD = (
    "session_id", "source", "transcript_path", "reason", "trigger", "tool_use_id", "permission_mode"
)  # fmt: skip
_INPUT = ("code", "session")
_CHUNK = 1024 * 1024
_ENDING_S = 1.0
_LATE_S = 60.0
# The rest is for giving up in good order.
_WORKING = 0.9
# Of what is left of the timeout, so much for each way that is not the last.
_SHARE = {"daemon": 0.4, "child": 0.6}


def hook(arguments: list[str], environ: "Mapping[str, str]") -> int:
    """Run one hook; the status is 0 whatever happens, but for a name that there is not."""
    if len(arguments) != 1 or arguments[0] not in EVENTS:
        print(
            f"toolfold: Name one hook: {', '.join(EVENTS)}. For example, to see what a "
            "conversation here would begin with: `toolfold hook session-start`.",
            file=sys.stderr,
        )
        return 1  # 2 would have the client stop the conversation
    log = HookLog(environ, arguments[0])
    try:
        _Hook(arguments[0], environ, log).run()
    except Exception as error:  # noqa: BLE001  # the outer edge
        log.failed("hook", f"{type(error).__name__}: {error}")
    return 0


class _Hook:
    """One start of one hook."""

    def __init__(self, name: str, environ: "Mapping[str, str]", log: HookLog) -> None:
        self._name = name
        self._environ = environ
        self._log = log
        self._began = time.monotonic()

    def run(self) -> None:
        """Serve the client on our standard input and output."""
        options = read_hook_options(self._environ, self._log)
        timeout_s = options.timeout_of(self._name)
        _exit_after(timeout_s, self._log)
        is_tried = os.isatty(0)  # by a person, who has no payload
        payload = {} if is_tried else read_payload(self._log)
        if not options.is_on(self._name) or not is_attended(self._name, self._environ):
            return
        request = make_request(self._name, payload, self._environ)
        if self._name == "session-end":
            answer = self._ask_at_the_end(request, options)
        else:
            answer = self._ask(request, options, _WORKING * timeout_s)
        _exit_after(0, self._log)
        output = make_output(self._name, answer)
        if is_tried:
            write_all(1, as_text(self._name, answer).encode())
        elif output:
            write_all(1, encode(output))

    def _ask_at_the_end(self, request: HookRequest, options: HookOptions) -> "dict[str, Any]":
        """Store what is to be stored. Clients end a hook of theirs after a second or so.

        What takes longer goes on without us, and without anybody who waits for it.
        """
        if options.ways[:1] == ["daemon"]:
            try:
                return self._try(
                    "daemon", request, options, min(_ENDING_S, _WORKING * options.timeout_s)
                )
            except BackendFailed as error:
                self._log.failed("daemon", str(error))
        if leave_behind():
            return {}
        # A daemon that is slow to begin, or hangs, is not waited for: the store can be shared.
        options.ways = [way for way in options.ways if way != "daemon"] or options.ways
        if not hasattr(os, "fork"):
            return self._ask(request, options, _WORKING * options.timeout_s)
        self._began = time.monotonic()
        return self._ask(request, options, max(_LATE_S, options.timeout_s))

    def _ask(
        self, request: HookRequest, options: HookOptions, timeout_s: float
    ) -> "dict[str, Any]":
        """Return the first answer that there is; none at all is empty."""
        for way in options.ways:
            if not _may_ask(way, request):
                continue
            # The others read the project's file themselves.
            if way == "server" and is_off_in_project(self._name, request.cwd, self._log):
                return {}
            left_s = self._began + timeout_s - time.monotonic()
            if way != options.ways[-1]:
                left_s *= _SHARE.get(way, 1.0)
            try:
                return self._try(way, request, options, left_s)
            except BackendFailed as error:
                self._log.failed(way, str(error))
        return {}

    def _try(
        self, way: str, request: HookRequest, options: HookOptions, timeout_s: float
    ) -> "dict[str, Any]":
        answer = WAYS[way](request, options, timeout_s)
        for remark in answer.get("remarks") or ():
            self._log.remarked(way, str(remark))
        if options.metrics:
            self._log.served(way, time.monotonic() - self._began, answer)
        return answer


def _may_ask(way: str, request: HookRequest) -> bool:
    """Whether a way can lead to an answer: only the daemon knows when the topic has turned.

    Only the daemon runs programs, too.
    """
    if request.hook == "pre-tool-use":
        return way == "daemon"
    if request.hook != "prompt" or not request.payload.get("prompt"):
        return request.hook != "prompt"
    if way == "daemon":
        return True
    from toolfold.relay.hooks.text import asks_for_memory

    return asks_for_memory(request.payload["prompt"])


def read_payload(log: HookLog, source: int = 0) -> "dict[str, Any]":
    """Return what the client says; {} where that cannot be read.

    All of it is taken in, so that the client is not left with a broken pipe.
    """
    import json

    parts: list[bytes] = []
    size = 0
    while chunk := os.read(source, _CHUNK):
        size += len(chunk)
        if size <= MAX_PAYLOAD:
            parts.append(chunk)
    if size > MAX_PAYLOAD:
        log.failed("input", f"{size:,} bytes are too many: {MAX_PAYLOAD:,} are read.")
        return {}
    try:
        payload = json.loads(b"".join(parts))
    except (ValueError, RecursionError) as error:
        log.failed("input", f"It is not JSON: {error}.")
        return {}
    if not isinstance(payload, dict):
        log.failed("input", f"It is not an object, but {type(payload).__name__}.")
        return {}
    return payload


def make_request(name: str, payload: "dict[str, Any]", environ: "Mapping[str, str]") -> HookRequest:
    """Return what is asked, with what matters of the payload and nothing else."""
    told = {key: payload[key] for key in _TOLD if isinstance(payload.get(key), str)}
    if isinstance(payload.get("prompt"), str):
        told["prompt"] = payload["prompt"][:_MAX_PROMPT]
    given = payload.get("tool_input")
    if isinstance(given, dict):
        told |= {key: given[key] for key in _INPUT if isinstance(given.get(key), str)}
    return HookRequest(hook=name, payload=told, cwd=_directory(payload.get("cwd")), environ=environ)


def make_output(name: str, answer: "dict[str, Any]") -> "dict[str, Any]":
    """Return what the client is told; empty where there is nothing to tell."""
    output: dict[str, Any] = {}
    if answer.get("context") and name in {"session-start", "prompt"}:
        output["hookSpecificOutput"] = {
            "hookEventName": EVENTS[name],
            "additionalContext": str(answer["context"]),
        }
    if answer.get("decision") in {"allow", "ask"} and name == "pre-tool-use":
        output["hookSpecificOutput"] = {
            "hookEventName": EVENTS[name],
            "permissionDecision": answer["decision"],
            "permissionDecisionReason": str(answer.get("reason", "")),
        }
    if answer.get("message"):
        output["systemMessage"] = str(answer["message"])
    return output


def as_text(name: str, answer: "dict[str, Any]") -> str:
    """Return what a person reads who tries a hook at a terminal."""
    words = [str(answer[key]) for key in ("context", "reason", "message") if answer.get(key)]
    nothing = (
        f"The hook {name} shows nothing without the payload of a client (docs/hooks.md). "
        "`toolfold logs hooks` shows failures."
    )
    return "\n".join(words or [nothing]) + "\n"


def is_attended(name: str, environ: "Mapping[str, str]") -> bool:
    """Whether a hook shall speak: what asks a person says nothing where none attends."""
    return name != "pre-tool-use" or environ.get("CLAUDE_CODE_SESSION_ATTENDED") != "0"


def leave_behind() -> bool:
    """Return True at once in this process, and False in one that nobody waits for."""
    if not hasattr(os, "fork"):
        return False
    if child := os.fork():
        os.waitpid(child, 0)
        return True
    os.setsid()
    if os.fork():
        os._exit(0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    return False


def _directory(given: object) -> str:
    if isinstance(given, str) and "\0" not in given and os.path.isdir(given):
        return given
    try:
        return os.getcwd()
    except OSError:
        return os.path.abspath(os.sep)


def _exit_after(seconds: float, log: HookLog) -> None:
    """End this process in so many seconds, wherever it is then; 0 takes that back."""
    import signal

    if sys.platform == "win32":
        return

    def end(*_: object) -> None:
        log.failed("hook", f"The timeout of {seconds:g} s has passed.")
        os._exit(0)

    if seconds:
        signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
