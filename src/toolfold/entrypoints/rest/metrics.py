"""Counts and times of requests, runs and calls, as Prometheus reads them."""

import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from toolfold import __version__
from toolfold.catalog.catalog import ServerStatus
from toolfold.journal.observers import BegunRun, EndedCall

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_BUCKETS_S: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
REFUSED: Final = "refused"
"""The route of requests that came no further than the guard."""

_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


class Histogram:
    """How long things of one kind took, by a label of few values."""

    def __init__(self, name: str, said: str, label: str) -> None:
        self._name = name
        self._said = said
        self._label = label
        self._within: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(_BUCKETS_S))
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._count: Counter[str] = Counter()

    def note(self, label: str, seconds: float) -> None:
        """Count one that took so long."""
        self._seconds[label] += seconds
        self._count[label] += 1
        within = self._within[label]
        for number, bound in enumerate(_BUCKETS_S):
            within[number] += seconds <= bound

    def lines(self) -> Iterator[str]:
        """Return all of it, a line each."""
        name = self._name
        yield from _head(name, "histogram", self._said)
        for label, within in sorted(self._within.items()):
            labels = {self._label: label}
            for bound, count in zip(_BUCKETS_S, within, strict=True):
                yield _line(f"{name}_bucket", count, **labels, le=f"{bound:g}")
            yield _line(f"{name}_bucket", self._count[label], **labels, le="+Inf")
            yield _line(f"{name}_sum", self._seconds[label], **labels)
            yield _line(f"{name}_count", self._count[label], **labels)


class Metrics:
    """What was done since the door opened. Labels are of few values: routes, not addresses.

    As a `JournalObserver` it counts runs and calls, whichever door they come by.
    """

    def __init__(self) -> None:
        self._started = time.time()
        self._requests: Counter[tuple[str, str, str]] = Counter()
        self._request_times = Histogram("toolfold_request_seconds", "How long that took.", "route")
        self._runs: Counter[tuple[str, str]] = Counter()
        self._calls: Counter[tuple[str, str]] = Counter()
        self._call_times = Histogram("toolfold_call_seconds", "How long calls took.", "server")
        self.in_flight = 0
        self._runs_in_flight = 0

    def note(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request that was answered."""
        self._requests[method, route, str(status)] += 1
        self._request_times.note(route, seconds)

    def run(self, begun: BegunRun) -> "_RunCounter":
        """Count a run that begins."""
        self._runs_in_flight += 1
        return _RunCounter(self, begun.kind)

    def end_run(self, kind: str, failure: str | None) -> None:
        """Count a run that has ended."""
        self._runs_in_flight -= 1
        self._runs[kind, failure or "ok"] += 1

    def end_call(self, call: EndedCall) -> None:
        """Count a call that was made."""
        if not call.is_replayed:
            server = call.tool.partition(".")[0]
            self._calls[server, call.error or call.outcome] += 1
            self._call_times.note(server, call.duration_s)

    def text(self, tools: int, servers: Iterable[ServerStatus]) -> str:
        """Return everything, a line each."""
        return "\n".join([*self._lines(tools, servers), ""])

    def _lines(self, tools: int, servers: Iterable[ServerStatus]) -> Iterator[str]:
        yield from _head("toolfold_info", "gauge", "The version that runs.")
        yield _line("toolfold_info", 1, version=__version__)
        yield from _head("toolfold_start_time_seconds", "gauge", "When the door opened.")
        yield _line("toolfold_start_time_seconds", self._started)
        yield from _head("toolfold_tools", "gauge", "Tools that are known.")
        yield _line("toolfold_tools", tools)
        yield from _head("toolfold_server_up", "gauge", "Whether a server can be used.")
        for status in servers:
            yield _line("toolfold_server_up", status.fault is None, server=status.name)
        yield from _head("toolfold_requests_in_flight", "gauge", "Requests under way.")
        yield _line("toolfold_requests_in_flight", self.in_flight)
        if (resident := _resident_bytes()) is not None:
            name = "process_resident_memory_bytes"
            yield from _head(name, "gauge", "Memory of this process.")
            yield _line(name, resident)
        yield from _head("process_cpu_seconds_total", "counter", "Processor time of this process.")
        yield _line("process_cpu_seconds_total", time.process_time())
        yield from self._request_lines()
        yield from self._run_lines()

    def _request_lines(self) -> Iterator[str]:
        yield from _head("toolfold_requests_total", "counter", "Requests that were answered.")
        for (method, route, status), count in sorted(self._requests.items()):
            yield _line("toolfold_requests_total", count, method=method, route=route, status=status)
        yield from self._request_times.lines()

    def _run_lines(self) -> Iterator[str]:
        yield from _head("toolfold_runs_in_flight", "gauge", "Runs under way.")
        yield _line("toolfold_runs_in_flight", self._runs_in_flight)
        yield from _head("toolfold_runs_total", "counter", "Runs that have ended, by any door.")
        for (kind, outcome), count in sorted(self._runs.items()):
            yield _line("toolfold_runs_total", count, kind=kind, outcome=outcome)
        yield from _head("toolfold_calls_total", "counter", "Calls of tools and of memory.")
        for (server, outcome), count in sorted(self._calls.items()):
            yield _line("toolfold_calls_total", count, server=server, outcome=outcome)
        yield from self._call_times.lines()


class _RunCounter:
    def __init__(self, metrics: Metrics, kind: str) -> None:
        self._metrics = metrics
        self._kind = kind

    def call(self, _tool: str, _position: int) -> "_CallCounter":
        return _CallCounter(self._metrics)

    def end(self, failure: str | None) -> None:
        self._metrics.end_run(self._kind, failure)


class _CallCounter:
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def end(self, call: EndedCall) -> None:
        self._metrics.end_call(call)


def _head(name: str, kind: str, said: str) -> Iterator[str]:
    yield f"# HELP {name} {said}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, value: float, **labels: str) -> str:
    return f"{name}{_labels(labels)} {float(value):.10g}"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    parts = (f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items())
    return "{" + ",".join(parts) + "}"


def _resident_bytes() -> int | None:
    """Return how much memory this process has, where the system says so."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
