import time
from contextlib import contextmanager

@contextmanager
def timed(name, times):
    start = time.perf_counter()
    try:
        yield
    finally:
        times[name] = time.perf_counter() - start

times = {}
with timed("sum", times):
    total = sum(range(1000))
(total, list(times), times["sum"] >= 0)

#: value
#| [499500, ["sum"], true]
