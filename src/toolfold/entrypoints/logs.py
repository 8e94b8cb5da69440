"""Logs for machines: a line of JSON each, with the run that it is about."""

import json
import logging
import time
from typing import Any, Final

from toolfold.config.settings import Settings
from toolfold.journal.journal import Journal
from toolfold.journal.observers import RUN_ID, BegunRun, EndedCall

_log = logging.getLogger(__name__)

_FIELDS: Final = "toolfold_fields"
_NONE: Final = (None, None, None)


class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON; `run_id` is there for what is logged within a run."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "time": _utc(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if run_id := RUN_ID.get():
            line["run_id"] = run_id
        line |= getattr(record, _FIELDS, {})
        if record.exc_text or record.exc_info:
            line["error"] = record.exc_text or self.formatException(record.exc_info or _NONE)
        return json.dumps(line, ensure_ascii=False, default=str)


def use_format(settings: Settings, journal: Journal) -> None:
    """Have this process log as the settings say; in JSON, a line for each run that ends too."""
    if settings.log_format != "json":
        return
    root = logging.getLogger()
    for handler in root.handlers:
        handler.setFormatter(JsonLines())
    root.setLevel(logging.INFO)
    for noisy in ("mcp", "httpx", "httpx2", "httpcore"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    journal.observers.append(RunLog())


class RunLog:
    """Logs each run as it ends: a `JournalObserver`."""

    def run(self, begun: BegunRun) -> "_LoggedRun":
        """Begin to count."""
        return _LoggedRun(begun)


class _LoggedRun:
    def __init__(self, begun: BegunRun) -> None:
        self._begun = begun
        self._began = time.perf_counter()
        self._calls = self._failed = 0

    def call(self, _tool: str, _position: int) -> "_LoggedCall":
        self._calls += 1
        return _LoggedCall(self)

    def note(self, call: EndedCall) -> None:
        self._failed += call.outcome != "ok"

    def end(self, failure: str | None) -> None:
        fields = {
            "run_id": self._begun.id,
            "kind": self._begun.kind,
            "client": self._begun.origin.client,
            "outcome": failure or "ok",
            "calls": self._calls,
            "failed_calls": self._failed,
            "duration_s": round(time.perf_counter() - self._began, 4),
        }
        _log.info("A run ended.", extra={_FIELDS: fields})


class _LoggedCall:
    def __init__(self, run: _LoggedRun) -> None:
        self._run = run

    def end(self, call: EndedCall) -> None:
        self._run.note(call)


def _utc(at: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))
    return f"{whole}.{int(at % 1 * 1000):03d}Z"
