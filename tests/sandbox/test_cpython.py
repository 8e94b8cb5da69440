"""What is particular to the CPython tier: all of Python, on both levels of confinement."""

import os
import resource
import signal
import time
from collections import namedtuple
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from guests import (
    Host,
    failure_kind,
    host_modules,
    process_of,
    run,
    run_in,
    running_sandbox,
    value_of,
)

from toolfold.errors import RunCrashed
from toolfold.jsontypes import Json
from toolfold.sandbox.cpython import frames
from toolfold.sandbox.cpython.sandbox import CPythonSandbox
from toolfold.sandbox.failures import CRASHED
from toolfold.sandbox.sandbox import GuestCall, Program
from toolfold.sandbox.trees import ReadOnlyTree, Roots, TextTree


@pytest.fixture(scope="module", params=["namespaces", "landlock"])
async def cpython(
    anyio_backend: str, request: pytest.FixtureRequest
) -> AsyncIterator[CPythonSandbox]:
    async with running_sandbox(tier="cpython", level=request.param, workers=4) as sandbox:
        yield sandbox


# The language


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("def f():\n    yield 1\n    yield from [2]\nlist(f())", [1, 2]),
        ("class A(dict):\n    @property\n    def n(self):\n        return len(self)\nA(a=1).n", 1),
        ("import enum\nclass C(enum.Enum):\n    RED = 'r'\nC.RED", "r"),
        ("import statistics, fractions\n[statistics.mean([1, 3]), fractions.Fraction(1, 3)]", [2, "1/3"]),
        ("import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('select 1 + 1').fetchone()", [2]),
        ("from dataclasses import dataclass, asdict\n@dataclass\nclass P:\n    x: int\n[asdict(P(1)), P(2)]",
         [{"x": 1}, {"P": {"x": 2}}]),
        ("import typing\nclass T(typing.NamedTuple):\n    x: int\nT(1)", {"x": 1}),
        ("x = {'a': 1}\ndel x['a']\nx", {}),
        ("next(i for i in range(9) if i > 3)", 4),
        ("import re\nre.sub('a', lambda m: m.group().upper(), 'banana')", "bAnAnA"),
        ("try:\n    raise ExceptionGroup('g', [ValueError()])\nexcept* ValueError:\n    x = 1\nx", 1),
        ("import pickle, copy\npickle.loads(pickle.dumps({1: 2}))", {"1": 2}),
        ("import zoneinfo, datetime\n"
         "str(datetime.datetime(2026, 7, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Zurich')))",
         "2026-07-01 00:00:00+02:00"),
        ("import numpy as np\nnp.linalg.inv(np.eye(2)) * np.float64(2)", [[2.0, 0.0], [0.0, 2.0]]),
        ("import numpy as np\n{'n': np.int64(3), 'a': np.arange(2)}", {"n": 3, "a": [0, 1]}),
        ("import threading\nx = []\nt = threading.Thread(target=x.append, args=(1,))\nt.start()\n"
         "t.join()\nx", [1]),
        ("import sys\nsys.stdout.buffer.write(b'')\nsys.exit(0)", None),
        ("globals()['__name__']", "__main__"),
    ],
)  # fmt: skip
async def test_all_of_python_works(cpython: CPythonSandbox, code: str, value: Json) -> None:
    assert await value_of(cpython, code) == value


async def test_pandas_works_and_a_table_is_shown_as_it_prints(cpython: CPythonSandbox) -> None:
    pytest.importorskip("pandas")
    code = "import pandas as pd\npd.DataFrame({'a': [1, 1], 'b': [2, 4]}).groupby('a').mean()"

    assert await value_of(cpython, code) == "     b\na     \n1  3.0"


@pytest.mark.parametrize(
    "code",
    [
        "tasks = [asyncio.create_task(host.echo(i)) for i in range(3)]\n[await t for t in tasks]",
        "async def f():\n    async with asyncio.TaskGroup() as g:\n"
        "        t = [g.create_task(host.echo(i)) for i in range(3)]\n"
        "    return [x.result() for x in t]\nawait f()",
        "[await asyncio.wait_for(host.echo(i), 5) for i in range(3)]",
        "sorted([await t for t in asyncio.as_completed([host.echo(i) for i in range(3)])])",
        "await asyncio.gather(*map(host.echo, range(3)))",
        "await asyncio.gather(*[asyncio.to_thread(host.echo, i) for i in range(3)])",
        "await asyncio.gather(host.echo(0), host.echo(1), host.echo(2), return_exceptions=True)",
        "import concurrent.futures as c\n"
        "with c.ThreadPoolExecutor() as p:\n    x = list(p.map(host.echo, range(3)))\nx",
        "list(map(host.echo, range(3)))",
        "def f():\n    for i in range(3):\n        yield host.echo(i)\nlist(f())",
        "async def f():\n    for i in range(3):\n        yield await host.echo(i)\n[x async for x in f()]",
        "async def f(i):\n    return host.echo(i)\n"
        "asyncio.run(f(0))\nx = [asyncio.run(f(i)) for i in range(3)]\nx",
        "async def f(i):\n    return await host.echo(i)\nx = [asyncio.run(f(i)) for i in range(2)]\n"
        "[*x, await f(2)]",
        "loop = asyncio.new_event_loop()\nasync def f():\n    return [await host.echo(i) for i in range(3)]\n"
        "loop.run_until_complete(f())",
    ],
)
async def test_tools_are_called_in_every_way_that_asyncio_and_threads_know(
    cpython: CPythonSandbox, code: str
) -> None:
    with anyio.fail_after(60):
        assert await value_of(cpython, f"import asyncio, host\n{code}") == [0, 1, 2]


async def test_threads_and_tasks_call_at_the_same_time(cpython: CPythonSandbox) -> None:
    code = """
import asyncio, host, threading
async def main():
    calls = [asyncio.to_thread(host.echo, i) for i in range(20)]
    calls += [host.echo(i) for i in range(20, 40)]
    return sum(await asyncio.gather(*calls))
asyncio.run(main())
"""
    code = code.replace("calls += [host.echo(i)", "calls += [one(i)").replace(
        "async def main", "async def one(i):\n    return await host.echo(i)\nasync def main"
    )
    with anyio.fail_after(60):
        assert await value_of(cpython, code) == sum(range(40))


# Values


async def test_named_tuples_of_the_host_stay_named_tuples(cpython: CPythonSandbox) -> None:
    point = namedtuple("point", "x y")

    async def answer(call: GuestCall) -> Json:
        return {"p": [point(1, (2,))], "t": (3,)}  # type: ignore[dict-item]

    code = "import host\nv = host.wait()\np = v['p'][0]\n[p.x, p.y, type(p).__name__, type(v['t']).__name__]"
    assert await value_of(cpython, code, Host({"wait": answer})) == [1, [2], "point", "tuple"]


@pytest.mark.parametrize(
    ("argument", "arrives"),
    [
        ("np.arange(3)", [0, 1, 2]),
        ("np.float64(0.5)", 0.5),
        ("collections.deque([1])", [1]),
        ("{'a': 1}.keys()", ["a"]),
        ("collections.OrderedDict(a=1)", {"a": 1}),
        ("datetime.date(2026, 1, 2)", "2026-01-02"),
        ("True", True),
    ],
)
async def test_what_is_nearly_json_is_sent_as_json(
    cpython: CPythonSandbox, argument: str, arrives: Json
) -> None:
    host = Host()

    await value_of(
        cpython,
        f"import collections, datetime, host\nimport numpy as np\nhost.echo({argument})",
        host,
    )

    assert host.calls[0].args == (arrives,)


@pytest.mark.parametrize(
    "argument", ["{Empty(): 1}", "object()", "float('inf')", "endless", "{1: 'a', '1': 'b'}"]
)
async def test_what_is_no_data_is_not_sent(cpython: CPythonSandbox, argument: str) -> None:
    host = Host()
    code = f"import host\nclass Empty: pass\nendless = []\nendless.append(endless)\nhost.echo({argument})"

    outcome = await run(cpython, code, host)

    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.failure.line) == ("value", 5)
    assert not host.calls


@pytest.mark.parametrize(
    "code",
    [
        "class A:\n    def __getattr__(self, name):\n        return getattr(self, name + 'x')\nA().x",
        "def f(*_):\n    return sorted([1, 2], key=f)\nf()",
        "import json\nx = []\nfor _ in range(100_000):\n    x = [x]\njson.dumps(x)",
        "def f(*_):\n    return functools.reduce(f, [1, 2, 3])\nf()",
    ],
)
async def test_recursion_in_a_thread_ends_as_an_error_not_with_the_process(
    cpython: CPythonSandbox, code: str
) -> None:
    body = "\n    ".join(f"exec({code!r}, globals())".split("\n"))
    code = (
        "import functools, threading\nkinds = []\ndef recur():\n    try:\n"
        f"        {body}\n    except BaseException as error:\n"
        "        kinds.append(type(error).__name__)\n"
        "t = threading.Thread(target=recur)\nt.start()\nt.join()\nkinds"
    )
    assert await value_of(cpython, code) == ["RecursionError"]


async def test_a_time_that_pandas_lacks_is_not_sent_and_is_shown(cpython: CPythonSandbox) -> None:
    pytest.importorskip("pandas")
    host = Host()

    outcome = await run(cpython, "import host, pandas as pd\nhost.echo([pd.NaT])", host)

    assert outcome.failure is not None
    assert "NaT, which JSON cannot carry" in outcome.failure.message
    assert not host.calls
    assert await value_of(cpython, "import pandas as pd\npd.NaT") == "NaT"


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("import pandas as pd\npd.Series(range(300_000))", "Length: 300000"),
        ("import numpy as np\nnp.arange(300_000)", "[     0      1      2 ... "),
    ],
)
async def test_what_is_too_large_to_be_sent_is_shown_as_it_prints(
    cpython: CPythonSandbox, code: str, shown: str
) -> None:
    pytest.importorskip("pandas")

    assert shown in str(await value_of(cpython, code))


async def test_large_answers_to_many_calls_in_flight_arrive(cpython: CPythonSandbox) -> None:
    async def answer(call: GuestCall) -> Json:
        return "x" * 100_000

    code = (
        "import asyncio, host\n"
        "sum(map(len, await asyncio.gather(*[host.wait('y' * 1000) for _ in range(300)])))"
    )
    with anyio.fail_after(40):
        assert await value_of(cpython, code, Host({"wait": answer})) == 300 * 100_000


async def test_who_has_very_much_under_way_is_not_heard_until_it_is_answered(
    cpython: CPythonSandbox,
) -> None:
    gate, most = anyio.Event(), 20

    async def wait(call: GuestCall) -> Json:
        await gate.wait()
        return None

    async def open_gate() -> None:
        with anyio.fail_after(60):
            while len(host.calls) < 9:
                await anyio.sleep(0.01)
        before = len(host.calls)
        await anyio.sleep(0.5)
        assert len(host.calls) == before < 12
        gate.set()

    host = Host({"wait": wait})
    code = f"import asyncio, host\nx = 'x' * 7_500_000\nlen(await asyncio.gather(*[host.wait(x) for _ in range({most})]))"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(open_gate)
        with anyio.fail_after(30):
            assert await value_of(cpython, code, host) == most


# Failures


async def test_an_error_in_a_function_is_told_with_the_way_to_it(cpython: CPythonSandbox) -> None:
    outcome = await run(cpython, "import json\ndef f(x):\n    return json.loads(x)\n\nf('{')")

    assert outcome.failure is not None
    assert outcome.failure.line == 3
    assert outcome.failure.message.startswith("json.decoder.JSONDecodeError: Expecting")
    assert 'File "<python-input-0>", line 5, in <module>' in outcome.failure.traceback
    assert "toolfold" not in outcome.failure.traceback


async def test_a_session_goes_on_after_an_error_in_the_code(cpython: CPythonSandbox) -> None:
    async with cpython.open(host_modules(), frozenset()) as session:
        await run_in(session, "x = 1\n1 / 0")
        await run_in(session, "import sys\nsys.stdout.close()\nsys.stdout = None")
        outcome = await run_in(session, "print('heard')\nx")

    assert (outcome.value, outcome.output) == (1, "heard\n")


async def test_a_thread_that_waits_for_a_tool_does_not_take_the_next_program(
    cpython: CPythonSandbox,
) -> None:
    gate = anyio.Event()

    async def wait(call: GuestCall) -> Json:
        await gate.wait()
        return "late"

    async def open_gate(call: GuestCall) -> Json:
        gate.set()
        return None

    waiting = "import host, threading\nx = []\nt = threading.Thread(target=lambda: x.append(host.wait()), daemon=True)\nt.start()"
    async with cpython.open(host_modules(), frozenset()) as session:
        host = Host({"wait": wait, "crash": open_gate})
        with anyio.fail_after(60):
            first = await run_in(session, f"{waiting}\nhost.crash()", host)
            second = await run_in(session, "t.join()\nx", host)

    assert first.failure is None
    assert second.value == ["late"]


@pytest.mark.parametrize(
    "begun",
    [
        "threading.Thread(target=host.echo, args=(1,)).start()",
        "threading.Timer(0.01, host.echo, [1]).start()",
        "pool = futures.ThreadPoolExecutor()\npool.submit(host.echo, 1)",
        "def f():\n    with futures.ThreadPoolExecutor() as pool:\n        pool.submit(host.echo, 1)\n"
        "threading.Thread(target=f).start()",
        "asyncio.get_event_loop().run_in_executor(None, host.echo, 1)",
        "atexit.register(host.echo, 1)",
        "class A: pass\na = A()\nweakref.finalize(a, host.echo, 1)",
        "threading.Thread(target=host.echo, args=(1,)).start()\nraise SystemExit",
    ],
)
async def test_what_python_waits_for_before_it_ends_is_waited_for(
    cpython: CPythonSandbox, begun: str
) -> None:
    code = "import asyncio, atexit, host, threading, weakref\nfrom concurrent import futures\n"
    async with cpython.open(host_modules(), frozenset()) as session:
        for _ in range(2):
            host = Host()
            with anyio.fail_after(60):
                outcome = await run_in(session, code + begun, host)
            assert outcome.failure is None
            assert [call.args for call in host.ended] == [(1,)]


async def test_answers_come_in_while_a_task_never_waits(cpython: CPythonSandbox) -> None:
    code = (
        "import asyncio, host\nt = asyncio.create_task(host.echo(1))\n"
        "while not t.done():\n    await asyncio.sleep(0)\nt.result()"
    )
    with anyio.fail_after(60):
        assert await value_of(cpython, code) == 1


AFTER_THE_END = """
import os, struct, sys, threading, traceback
def late():
    main = threading.main_thread().ident
    while "next_program" not in str(traceback.extract_stack(sys._current_frames()[main])):
        threading.Event().wait(0.01)
    {late}
threading.Thread(target=late, daemon=True).start()
"""


@pytest.mark.parametrize(
    "late",
    [
        "os._exit(3)",
        "os.write(3, struct.pack('<IB', 2, 8) + b'[]')",
        "os.write(3, struct.pack('<IB', 0, 5))",
        "while True: os.write(3, struct.pack('<IB', 60_000, 5) + b'x' * 60_000)",
    ],
)
async def test_a_guest_that_dies_or_speaks_between_programs_is_ended_and_the_next_run_says_so(
    cpython: CPythonSandbox, late: str
) -> None:
    async with cpython.open(host_modules(), frozenset()) as session:
        first = await run_in(session, AFTER_THE_END.format(late=late))
        with anyio.fail_after(60):
            while session.guest.is_alive:
                await anyio.sleep(0.01)
            second = await run_in(session, "1")

    assert first.failure is None
    assert second.failure == CRASHED


async def test_what_is_printed_between_programs_is_dropped(cpython: CPythonSandbox) -> None:
    async with cpython.open(host_modules(), frozenset()) as session:
        await run_in(session, AFTER_THE_END.format(late="print('late')"))
        talk: Any = getattr(session._link.on_frame, "__self__", None)
        with anyio.fail_after(60):
            while not talk._late_bytes:
                await anyio.sleep(0.01)
            second = await run_in(session, "1")

    assert (second.value, second.output) == (1, "")


@pytest.mark.parametrize(
    "code", ["import sys\nsys.exit(3)", "exit('no')", "raise KeyboardInterrupt"]
)
async def test_an_exit_with_a_status_is_a_failure(cpython: CPythonSandbox, code: str) -> None:
    assert await failure_kind(cpython, code) == "error"


async def test_computing_in_a_thread_while_a_call_waits_counts() -> None:
    gate = anyio.Event()

    async def wait(call: GuestCall) -> Json:
        await gate.wait()
        return None

    code = "import host, threading\nthreading.Thread(target=host.wait).start()\nwhile True: pass"
    async with running_sandbox(tier="cpython", guest_time_s=1.0) as sandbox:
        with anyio.fail_after(60):
            assert await failure_kind(sandbox, code, Host({"wait": wait})) == "timeout"


async def test_what_the_host_computes_to_read_a_large_call_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read_slowly(payload: bytes, *, nodes: int) -> Any:
        end = time.thread_time() + 0.3
        while time.thread_time() < end:
            pass
        return frames.read_call(payload, nodes=nodes)

    monkeypatch.setattr("toolfold.sandbox.cpython.conversation.read_call", read_slowly)
    async with running_sandbox(tier="cpython", guest_time_s=1.0) as sandbox:
        code = "import host\nfor _ in range(20):\n    host.wait('x' * 300_000)"
        with anyio.fail_after(60):
            assert await failure_kind(sandbox, code, Host()) == "timeout"


# Files


class Tree:
    def entries(self, path: str) -> Sequence[str] | None:
        return {"/servers": ["index.txt", "crm"], "/servers/crm": []}.get(path)

    def read(self, path: str) -> str | None:
        return "one\ntwo é\n" if path == "/servers/index.txt" else None


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("open('/servers/index.txt').read()", "one\ntwo é\n"),
        ("[line.strip() for line in open('/servers/index.txt')]", ["one", "two é"]),
        ("open('/servers/index.txt', 'rb').read().decode()", "one\ntwo é\n"),
        ("import os\nsorted(os.listdir('/servers'))", ["crm", "index.txt"]),
        ("import os\n[os.path.isfile('/servers/index.txt'), os.path.isdir('/servers/crm')]", [True, True]),
        ("import pathlib\npathlib.Path('/servers/../servers/index.txt').read_text()", "one\ntwo é\n"),
        ("import pathlib\nsorted(p.name for p in pathlib.Path('/servers').glob('*'))", ["crm", "index.txt"]),
        ("import os\nos.path.exists('/servers/none')", False),
    ],
)  # fmt: skip
async def test_files_that_the_host_makes_up_are_read_like_any(
    cpython: CPythonSandbox, code: str, value: Json
) -> None:
    async with cpython.open({}, frozenset(), files=servers(Tree())) as session:
        outcome = await session.run(Program(source=code), Host().call)

    assert outcome.failure is None
    assert outcome.value == value


def servers(texts: TextTree) -> Roots:
    return Roots({"servers": ReadOnlyTree(texts, "servers")})


class Counting:
    """Files that count how often they were read since somebody else had a turn."""

    def __init__(self) -> None:
        self.since, self.most, self.all = 0, 0, 0
        self.paths: set[str] = set()

    def entries(self, path: str) -> None:
        return None

    def read(self, path: str) -> str:
        self.since, self.all = self.since + 1, self.all + 1
        self.paths.add(path)
        self.most = max(self.most, self.since)
        return "x" * 1000

    async def be_somebody_else(self) -> None:
        while True:
            self.since = 0
            await anyio.lowlevel.checkpoint()


async def test_who_asks_for_files_without_end_leaves_others_their_turn(
    cpython: CPythonSandbox,
) -> None:
    files = Counting()
    code = (
        "import os, struct\nasked = b''.join(struct.pack('<IB', len(q), 6) + q for q in "
        '[b\'[%d,"read","/servers/a","",0,9]\' % n for n in range(1000, 1200)])\nos.write(3, asked)\nopen(\'/servers/b\').read()'
    )
    async with anyio.create_task_group() as others:
        others.start_soon(files.be_somebody_else)
        async with cpython.open({}, frozenset(), files=servers(files)) as session:
            await run_in(session, code)
        others.cancel_scope.cancel()

    assert files.all > 200
    assert files.most == 1


async def test_the_host_is_asked_for_nothing_but_its_own_files(cpython: CPythonSandbox) -> None:
    files = Counting()
    code = (
        "import os\n[os.path.exists('/elsewhere/none') for _ in range(9)]\nos.path.exists('/serversx')\n"
        "try:\n    open('/none')\nexcept OSError:\n    pass\nopen('/servers/../servers/b').read()"
    )
    async with cpython.open({}, frozenset(), files=servers(files)) as session:
        outcome = await run_in(session, code)

    assert outcome.failure is None
    assert files.paths == {"/servers/b"}


@pytest.mark.parametrize("code", ["open('/servers/none')", "open('/servers/index.txt', 'w')"])
async def test_files_that_are_not_there_cannot_be_opened(
    cpython: CPythonSandbox, code: str
) -> None:
    async with cpython.open({}, frozenset(), files=servers(Tree())) as session:
        outcome = await session.run(Program(source=code), Host().call)

    assert outcome.failure is not None
    assert outcome.failure.kind == "error"


# Processes


async def test_guests_have_random_numbers_of_their_own(cpython: CPythonSandbox) -> None:
    code = "import random, uuid\nimport numpy as np\n[random.random(), str(uuid.uuid4()), np.random.rand()]"

    first, second = await value_of(cpython, code), await value_of(cpython, code)

    assert isinstance(first, list)
    assert isinstance(second, list)
    assert not set(map(str, first)) & set(map(str, second))


async def test_a_killed_zygote_costs_nothing_but_time() -> None:
    async with running_sandbox(tier="cpython", workers=2) as sandbox:
        zygote = sandbox._pool._zygote._process.pid
        os.kill(zygote, signal.SIGKILL)

        with anyio.fail_after(60):
            assert await value_of(sandbox, "1") == 1
            assert await value_of(sandbox, "2") == 2
            assert await value_of(sandbox, "3") == 3


async def test_a_run_whose_zygote_is_killed_says_so_and_the_next_works() -> None:
    async with running_sandbox(tier="cpython", workers=2) as sandbox:

        async def kill(call: GuestCall) -> Json:
            os.kill(sandbox._pool._zygote._process.pid, signal.SIGKILL)
            await anyio.sleep_forever()

        with anyio.fail_after(60):
            code = "import host\nhost.wait()"
            assert await failure_kind(sandbox, code, Host({"wait": kill})) == "crash"
            assert await value_of(sandbox, "1") == 1


async def test_a_zygote_that_does_not_answer_is_retired_and_its_guests_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running_sandbox(tier="cpython", workers=3) as sandbox:
        pool = sandbox._pool
        with anyio.fail_after(60):
            while len(pool._ready) < 2:
                await anyio.sleep(0.01)
        stopped = pool._zygote
        async with sandbox.open(host_modules(), frozenset()) as session:
            os.kill(stopped._process.pid, signal.SIGSTOP)
            monkeypatch.setattr("toolfold.sandbox.cpython.pool._SPAWN_S", 0.2)
            with anyio.fail_after(30):
                while pool._zygote in (None, stopped):
                    assert await value_of(sandbox, "1") == 1
            monkeypatch.undo()
            assert (await run_in(session, "2")).value == 2
        with anyio.fail_after(30):
            while stopped.is_alive:
                assert await value_of(sandbox, "3") == 3


async def test_a_host_out_of_descriptors_keeps_its_zygote() -> None:
    async with running_sandbox(tier="cpython", workers=2) as sandbox:
        pool = sandbox._pool
        with anyio.fail_after(60):
            while len(pool._ready) < 2:
                await anyio.sleep(0.01)
        highest = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
        spare = [os.dup(0)]
        while spare[-1] <= highest:
            spare.append(os.dup(0))
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        # Enough for a pair of sockets, and not for the guest besides.
        resource.setrlimit(resource.RLIMIT_NOFILE, (spare[-1] + 3, limits[1]))
        try:
            with pytest.raises(RunCrashed, match="too many files"):
                await pool._spawn()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            for descriptor in spare:
                os.close(descriptor)
        before = pool._zygote
        guest = await pool._spawn()
        guest.close()

        assert pool._zygote is before
        assert not pool._retired


async def test_one_task_may_open_two_sessions(cpython: CPythonSandbox) -> None:
    async with (
        cpython.open(host_modules(), frozenset()) as first,
        cpython.open(host_modules(), frozenset()) as second,
    ):
        assert [(await run_in(each, "1")).value for each in (first, second)] == [1, 1]


async def test_a_zygote_that_dies_again_and_again_ends_nothing_but_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running_sandbox(tier="cpython", workers=2) as sandbox:
        with monkeypatch.context() as broken:
            broken.setattr("toolfold.sandbox.cpython.pool._BOOT", "raise SystemExit(1)")
            os.kill(sandbox._pool._zygote._process.pid, signal.SIGKILL)
            for _ in range(3):
                with suppress(RunCrashed):
                    await run(sandbox, "1")
        with anyio.fail_after(60):
            assert await value_of(sandbox, "1") == 1


async def test_a_guest_that_died_while_it_waited_is_not_given_out(cpython: CPythonSandbox) -> None:
    await value_of(cpython, "1")
    with anyio.fail_after(60):
        while not cpython._pool._ready:
            await anyio.sleep(0.01)
    for guest in list(cpython._pool._ready):
        guest.kill()
        with anyio.fail_after(60):
            while guest.is_alive:
                await anyio.sleep(0.01)

    assert await value_of(cpython, "2") == 2


async def test_every_guest_ends_with_its_session(cpython: CPythonSandbox) -> None:
    async with cpython.open(host_modules(), frozenset()) as session:
        await run_in(
            session,
            "import threading\n"
            "threading.Thread(target=lambda: [0 for _ in iter(int, 1)], daemon=True).start()",
        )
        pid = process_of(session)

    with anyio.fail_after(60):
        while Path(f"/proc/{pid}").exists():
            await anyio.sleep(0.01)
