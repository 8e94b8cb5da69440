"""Counts and times of requests, as Prometheus reads them."""

import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from toolfold import __version__
from toolfold.catalog.catalog import ServerStatus

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_BUCKETS_S: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


class Metrics:
    """What the REST API did since it opened. Labels are of few values: routes, not addresses."""

    def __init__(self) -> None:
        self._started = time.time()
        self._requests: Counter[tuple[str, str, str]] = Counter()
        self._within: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(_BUCKETS_S))
        self._seconds: Counter[str] = Counter()
        self._count: Counter[str] = Counter()
        self.in_flight = 0

    def note(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request that was answered."""
        self._requests[method, route, str(status)] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]  # a sum
        self._count[route] += 1
        within = self._within[route]
        for number, bound in enumerate(_BUCKETS_S):
            within[number] += seconds <= bound

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
        yield from self._request_lines()

    def _request_lines(self) -> Iterator[str]:
        yield from _head("toolfold_requests_total", "counter", "Requests that were answered.")
        for (method, route, status), count in sorted(self._requests.items()):
            yield _line("toolfold_requests_total", count, method=method, route=route, status=status)
        name = "toolfold_request_seconds"
        yield from _head(name, "histogram", "How long that took.")
        for route, within in sorted(self._within.items()):
            for bound, count in zip(_BUCKETS_S, within, strict=True):
                yield _line(f"{name}_bucket", count, route=route, le=f"{bound:g}")
            yield _line(f"{name}_bucket", self._count[route], route=route, le="+Inf")
            yield _line(f"{name}_sum", self._seconds[route], route=route)
            yield _line(f"{name}_count", self._count[route], route=route)


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
