"""What guest code can do in any sandbox, and how its runs end: one contract, both tiers."""

import math
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import anyio
import pytest
from guests import (
    Host,
    Running,
    failure_kind,
    host_modules,
    process_of,
    run,
    run_in,
    running_sandbox,
    sharing,
    value_of,
)

from toolfold.errors import (
    BadCall,
    NotFound,
    RunError,
    ToolFailed,
    UpstreamTimedOut,
    UpstreamUnavailable,
    ValueRejected,
)
from toolfold.jsontypes import Json
from toolfold.sandbox.sandbox import GuestCall, Sandbox


@pytest.fixture(scope="module", params=["monty", "cpython"])
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
async def running(anyio_backend: str, tier: str) -> AsyncIterator[Running]:
    """Runs sandboxes with limits of their own, all of CPython's on one zygote."""
    if tier == "monty":
        yield running_sandbox
        return
    async with running_sandbox(tier=tier) as cpython:
        yield partial(sharing, cpython)


@pytest.fixture(scope="module")
async def sandbox(anyio_backend: str, running: Running) -> AsyncIterator[Sandbox]:
    async with running() as sandbox:
        yield sandbox


def raising(error: Exception) -> Callable[[GuestCall], Awaitable[Json]]:
    async def answer(call: GuestCall) -> Json:
        raise error

    return answer


class Gate:
    """A tool that answers when it is told to, and says when it was called."""

    def __init__(self) -> None:
        self.called = anyio.Event()
        self.opened = anyio.Event()

    async def wait(self, call: GuestCall) -> Json:
        self.called.set()
        await self.opened.wait()
        return "opened"


# Calls


async def test_a_plain_call_gives_its_value(sandbox: Sandbox) -> None:
    host = Host()

    assert await value_of(sandbox, "import host\nhost.echo(1) + 1", host) == 2
    assert host.calls == [GuestCall("host.echo", (1,), {})]


async def test_an_awaited_call_gives_its_value(sandbox: Sandbox) -> None:
    assert await value_of(sandbox, "import host\n(await host.echo(1)) + 1") == 2


async def test_arguments_arrive_as_plain_json(sandbox: Sandbox) -> None:
    host = Host()

    await value_of(sandbox, "import host\nhost.echo((1, 2), when={3, 1}, deep=[{'a': (0,)}])", host)

    assert host.calls == [GuestCall("host.echo", ([1, 2],), {"when": [1, 3], "deep": [{"a": [0]}]})]


@pytest.mark.parametrize(
    "code",
    [
        "from host import echo\necho(1)",
        "from host import echo as e\ne(1)",
        "import host as h\nh.echo(1)",
        "import host\nf = host.echo\nf(1)",
        "def f():\n    import host\n    return host.echo(1)\nf()",
        "mcp__host__echo(1)",
        "await mcp__host__echo(1)",
        "import host\nprint(f'{await host.echo(1)}')\n1",
        "import host\n'é', (await host.echo(1))\n1",
        "import host\nexec('x = host.echo(1)')\nx",
        "import host\n[await host.echo(i) for i in [1]][0]",
        "import host\nasync def f(x):\n    return await host.echo(x)\nawait f(1)",
        "import asyncio, host\nasync def f():\n    return await host.echo(1)\nasyncio.run(f())",
    ],
)
async def test_a_tool_can_be_reached_in_every_usual_way(sandbox: Sandbox, code: str) -> None:
    host = Host()

    assert await value_of(sandbox, code, host) == 1
    assert [call.args for call in host.calls] == [(1,)]


@pytest.mark.parametrize(
    "code",
    [
        "await asyncio.gather(host.echo(0), host.echo(1), host.echo(2))",
        "await asyncio.gather(*[host.echo(i) for i in range(3)])",
        "await asyncio.gather(*(host.echo(i) for i in range(3)))",
        "tasks = [host.echo(i) for i in range(3)]\nawait asyncio.gather(*tasks)",
        "t = []\nfor i in range(3):\n    t.append(host.echo(i))\nawait asyncio.gather(*t)",
        "t = []\nfor i in range(3):\n    t += [host.echo(i)]\nawait asyncio.gather(*t)",
        "tasks = {i: host.echo(i) for i in range(3)}\nawait asyncio.gather(*tasks.values())",
        "t = {}\nfor i in range(3):\n    t[i] = host.echo(i)\n[await x for x in t.values()]",
        "t = [(i, host.echo(i)) for i in range(3)]\n[await x for _, x in t]",
        "a, b, c = host.echo(0), host.echo(1), host.echo(2)\nawait asyncio.gather(a, b, c)",
        "one = host.echo(0)\n[await one, await host.echo(1), host.echo(2)]",
        "tasks = [host.echo(i) for i in range(3)]\n[await t for i, t in enumerate(tasks)]",
        "g = asyncio.gather(host.echo(0), host.echo(1), host.echo(2))\nawait g",
        "g = asyncio.gather(host.echo(1), host.echo(2))\n"
        "a, b = await asyncio.gather(host.echo(0), g)\n[a, *b]",
        "async def f(i):\n    return await host.echo(i)\nawait asyncio.gather(*map(f, range(3)))",
        "async def f(i):\n    return host.echo(i)\nawait asyncio.gather(*[f(i) for i in range(3)])",
    ],
)
async def test_calls_can_be_gathered_however_they_were_collected(
    sandbox: Sandbox, code: str
) -> None:
    host = Host()

    assert await value_of(sandbox, f"import asyncio, host\n{code}", host) == [0, 1, 2]
    assert len(host.calls) == 3


async def test_gathered_calls_are_in_flight_at_the_same_time(sandbox: Sandbox) -> None:
    arrived, together = [], anyio.Event()

    async def wait(call: GuestCall) -> Json:
        arrived.append(call)
        if len(arrived) == 3:
            together.set()
        await together.wait()
        return None

    with anyio.fail_after(60):
        code = "import asyncio, host\nawait asyncio.gather(*[host.wait(i) for i in range(3)])"
        await value_of(sandbox, code, Host({"wait": wait}))


async def test_a_call_that_was_begun_and_never_awaited_is_waited_for(sandbox: Sandbox) -> None:
    gate, host_calls = Gate(), []

    async def wait(call: GuestCall) -> Json:
        answer = await gate.wait(call)
        host_calls.append(call)
        return answer

    async with anyio.create_task_group() as tasks:

        async def open_when_called() -> None:
            await gate.called.wait()
            gate.opened.set()

        tasks.start_soon(open_when_called)
        with anyio.fail_after(60):
            code = "import host\nlater = host.wait(1)\nif False:\n    await later\n'end'"
            assert await value_of(sandbox, code, Host({"wait": wait})) == "end"

    assert len(host_calls) == 1


async def test_a_call_that_was_begun_and_never_ends_is_cancelled_with_the_wall_time(
    running: Running,
) -> None:
    gate = Gate()

    async with running(wall_time_s=0.5) as sandbox:
        with anyio.fail_after(60):
            code = "import host\nlater = host.wait(1)\nif False:\n    await later\n'end'"
            outcome = await run(sandbox, code, Host({"wait": gate.wait}))

    assert outcome.failure is not None
    assert outcome.failure.kind == "timeout"


async def test_a_tool_can_return_anything_that_json_can_say(sandbox: Sandbox, tier: str) -> None:
    half = {"monty": "a?", "cpython": "a\ufffd"}[tier]
    deep: Json = []
    for _ in range(500):
        deep = [deep]

    async def answer(call: GuestCall) -> Json:
        return {"half": "a\ud83d", "\udc00": 1, "huge": 10**4000, "deep": deep, "nan": math.nan}

    code = "import host\nx = host.wait()\n[x['half'], x['huge'] % 7, x['nan'] == x['nan'], len(x)]"
    assert await value_of(sandbox, code, Host({"wait": answer})) == [half, 10**4000 % 7, False, 5]
    awaited = code.replace("host.wait()", "await host.wait()")
    assert await value_of(sandbox, awaited, Host({"wait": answer})) == [
        half,
        10**4000 % 7,
        False,
        5,
    ]


# Failures of tools


@pytest.mark.parametrize(
    ("error", "caught_as"),
    [
        (ToolFailed("no such record"), "RuntimeError"),
        (UpstreamUnavailable("the server died"), "RuntimeError"),
        (UpstreamTimedOut("no answer in 5 s"), "TimeoutError"),
        (BadCall("needs 'name'"), "TypeError"),
        (NotFound("no such tool"), "NameError"),
    ],
)
@pytest.mark.parametrize("call", ["host.wait()", "await host.wait()"])
async def test_a_failed_call_can_be_caught_by_name(
    sandbox: Sandbox, error: Exception, caught_as: str, call: str
) -> None:
    code = f"import host\ntry:\n    {call}\nexcept {caught_as} as error:\n    x = str(error)\nx"

    assert await value_of(sandbox, code, Host({"wait": raising(error)})) == str(error)


async def test_a_failed_call_that_nobody_catches_ends_the_run_at_its_line(
    sandbox: Sandbox,
) -> None:
    outcome = await run(sandbox, "import host\nx = 1\nhost.fail('no such record')")

    assert outcome.failure is not None
    assert outcome.failure.kind == "error"
    assert outcome.failure.message == "RuntimeError: no such record"
    assert outcome.failure.line == 3


@pytest.mark.parametrize(
    ("error", "kind"), [(RunError("stop here"), "error"), (ValueRejected("too large"), "value")]
)
async def test_an_error_of_the_run_itself_cannot_be_caught(
    sandbox: Sandbox, error: RunError, kind: str
) -> None:
    code = "import host\nwhile True:\n  try:\n    host.wait()\n  except BaseException:\n    pass"

    with anyio.fail_after(60):
        outcome = await run(sandbox, code, Host({"wait": raising(error)}))

    assert outcome.failure is not None
    assert outcome.failure.kind == kind
    assert outcome.failure.message == str(error)


# Values


async def test_objects_of_guest_classes_are_sent_as_their_attributes(sandbox: Sandbox) -> None:
    host = Host()
    code = """
import host
from dataclasses import dataclass

@dataclass
class Point:
    x: int
    y: int

class Box:
    def __init__(self):
        self.content = [Point(1, 2)]

host.echo(Box())
"""
    await value_of(sandbox, code, host)

    assert host.calls[0].args == ({"content": [{"x": 1, "y": 2}]},)


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("class A:\n    def __init__(self):\n        self.x = 1\nA()", {"A": {"x": 1}}),
        ("class A: pass\n[A()]", [{"A": {}}]),
        ("int", "<int>"),
        ("b'abc'", "<3 bytes>"),
        ("float('nan')", "nan"),
        (
            "try:\n    1 / 0\nexcept Exception as e:\n    x = e\nx",
            "ZeroDivisionError: division by zero",
        ),
        ("from collections import Counter\nCounter('aab')", {"a": 2, "b": 1}),
        ("from collections import namedtuple\nnamedtuple('P', 'x y')(1, 2)", {"x": 1, "y": 2}),
        ("from datetime import date\n{'day': date(2026, 3, 1)}", {"day": "2026-03-01"}),
        ("{1: 'a', (1, 2): 'b'}", {"1": "a", "[1, 2]": "b"}),
        ("x = []\nx.append(x)\nx", ["[...]"]),
        ("'\\ud800'", "\ufffd"),
        ("print('shown')", None),
    ],
)
async def test_the_last_value_is_shown_whatever_it_is(
    sandbox: Sandbox, code: str, shown: Json
) -> None:
    assert await value_of(sandbox, code) == shown


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("b'abc'", "base64"),
        ("float('nan')", "nan"),
        ("Empty()", "not data"),
        ("[0] * 300_000", "parts"),
        ("deep", "levels"),
        ("'x' * 9_000_000", "bytes"),
    ],
)
async def test_an_argument_that_cannot_be_sent_ends_the_run_at_its_line(
    sandbox: Sandbox, argument: str, words: str
) -> None:
    host = Host()
    code = f"""import host
class Empty: pass
deep = []
for _ in range(100):
    deep = [deep]
host.echo('before')
try:
    host.echo({argument})
except BaseException:
    pass
host.echo('after')
"""
    outcome = await run(sandbox, code, host)

    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.failure.line) == ("value", 8)
    assert words in outcome.failure.message
    assert [call.args for call in host.calls] == [("before",)]


async def test_a_value_over_budget_cancels_the_calls_in_flight(sandbox: Sandbox) -> None:
    host = Host({"wait": Gate().wait})
    code = "import host\nlater = host.wait()\nhost.echo([0] * 300_000)\nawait later"

    with anyio.fail_after(60):
        assert await failure_kind(sandbox, code, host) == "value"

    assert not host.ended


# Names


async def test_an_undefined_function_is_a_name_error_and_no_call(sandbox: Sandbox) -> None:
    host = Host()

    outcome = await run(sandbox, "x = 1\nnope(b'abc')", host)

    assert outcome.failure is not None
    assert outcome.failure.message == "NameError: name 'nope' is not defined"
    assert outcome.failure.line == 2
    assert not host.calls


@pytest.mark.parametrize("code", ["nope", "nope.x", "nope.x()", "sleep(1e9)", "mcp__host__other()"])
async def test_undefined_names_are_name_errors(sandbox: Sandbox, code: str) -> None:
    outcome = await run(sandbox, code)

    assert outcome.failure is not None
    assert outcome.failure.message.startswith("NameError: ")


async def test_names_of_the_host_can_be_called_and_passed_around(sandbox: Sandbox) -> None:
    host = Host()

    await value_of(sandbox, "show(1)\nf = show\nf(2)\n[s(3) for s in [show]]", host)

    assert [(call.function, call.args) for call in host.calls] == [
        ("show", (1,)),
        ("show", (2,)),
        ("show", (3,)),
    ]


async def test_guest_code_may_use_a_name_of_the_host_for_itself(sandbox: Sandbox) -> None:
    host = Host()

    assert await value_of(sandbox, "def show(x):\n    return x + 1\nshow(1)", host) == 2
    assert not host.calls


# Sessions


async def test_the_programs_of_a_session_share_their_state(sandbox: Sandbox) -> None:
    async with sandbox.open(host_modules(), frozenset()) as session:
        await run_in(session, "x = 40\ndef add(y):\n    return x + y")
        outcome = await run_in(session, "add(2)")

    assert outcome.value == 42


async def test_a_function_of_an_earlier_program_still_awaits_its_calls(
    sandbox: Sandbox,
) -> None:
    async with sandbox.open(host_modules(), frozenset()) as session:
        await run_in(
            session, "import asyncio, host\nasync def get(i):\n    return await host.echo(i)"
        )
        await run_in(session, "class A(dict): pass")
        outcome = await run_in(
            session, "[await get(1), host.echo(2), *await asyncio.gather(get(3), host.echo(4))]"
        )

    assert outcome.failure is None
    assert outcome.value == [1, 2, 3, 4]


async def test_sessions_do_not_see_each_other(sandbox: Sandbox) -> None:
    await value_of(sandbox, "secret = 1")

    assert await failure_kind(sandbox, "secret") == "error"


async def test_more_sessions_than_workers_take_turns(running: Running) -> None:
    values: list[Json] = []

    async with running(workers=2) as sandbox:

        async def one(number: int) -> None:
            values.append(await value_of(sandbox, f"import host\nhost.echo({number})"))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for number in range(20):
                    tasks.start_soon(one, number)

    assert sorted(values) == list(range(20))  # type: ignore[type-var]


# Limits


async def test_the_call_limit_ends_the_run_and_cannot_be_caught(running: Running) -> None:
    host = Host()
    code = "import host\nwhile True:\n  try:\n    host.echo(1)\n  except BaseException:\n    pass"

    async with running(calls=7) as sandbox:
        outcome = await run(sandbox, code, host)

    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.failure.line) == ("calls", 4)
    assert "7" in outcome.failure.message
    assert len(host.calls) == 7


async def test_exactly_as_many_calls_as_the_limit_are_fine(running: Running) -> None:
    async with running(calls=7) as sandbox:
        assert await value_of(sandbox, "import host\nsum(host.echo(1) for _ in range(7))") == 7


async def test_many_calls_go_through_in_one_run(running: Running) -> None:
    host, code = Host(), "import host\nsum(host.echo(1) for _ in range(5_000))"
    async with running(guest_time_s=30) as sandbox:
        assert await value_of(sandbox, code, host) == 5_000

    assert len(host.calls) == 5_000


async def test_the_wall_clock_counts_the_time_in_tools(running: Running) -> None:
    async with running(wall_time_s=0.5) as sandbox:
        with anyio.fail_after(60):
            outcome = await run(
                sandbox,
                "import host\ntry:\n    host.wait()\nexcept BaseException:\n    pass",
                Host({"wait": Gate().wait}),
            )
        assert await value_of(sandbox, "1") == 1

    assert outcome.failure is not None
    assert outcome.failure.kind == "timeout"
    assert "wall time" in outcome.failure.message


async def test_the_guests_clock_does_not_count_the_time_in_tools(running: Running) -> None:
    async def slowly(call: GuestCall) -> Json:
        await anyio.sleep(1.8)
        return 1

    async with running(guest_time_s=1.5) as sandbox:
        assert await value_of(sandbox, "import host\nhost.wait()", Host({"wait": slowly})) == 1


async def test_an_endless_loop_ends_with_the_guests_time(running: Running) -> None:
    async with running(guest_time_s=0.3) as sandbox:
        with anyio.fail_after(60):
            outcome = await run(sandbox, "print('begun')\nwhile True:\n    pass")
        assert await value_of(sandbox, "1") == 1

    assert outcome.failure is not None
    assert outcome.failure.kind == "timeout"
    assert "0.3 s" in outcome.failure.message
    assert outcome.output == "begun\n"


async def test_too_much_memory_is_a_failure_of_its_own_kind(sandbox: Sandbox) -> None:
    outcome = await run(sandbox, "x = [0]\nwhile True:\n    x += x")

    assert outcome.failure is not None
    assert outcome.failure.kind == "memory"
    assert "64 MB" in outcome.failure.message


async def test_output_over_the_limit_is_cut_and_the_run_goes_on(running: Running) -> None:
    code = "for i in range(1000):\n    print('x' * 99)\nprint('last')\n'end'"

    async with running(output_bytes=1_000) as sandbox:
        outcome = await run(sandbox, code)

    assert outcome.failure is None
    assert outcome.value == "end"
    assert outcome.output == ("x" * 99 + "\n") * 10
    assert outcome.output_dropped == 990 * 100 + len("last\n")


async def test_what_goes_to_standard_error_is_output_too(sandbox: Sandbox) -> None:
    outcome = await run(sandbox, "import sys\nprint('a')\nprint('b', file=sys.stderr)")

    assert outcome.output == "a\nb\n"


async def test_the_times_of_guest_and_tools_are_told_apart(sandbox: Sandbox) -> None:
    async def slowly(call: GuestCall) -> Json:
        await anyio.sleep(1)
        return None

    outcome = await run(sandbox, "import host\nhost.wait()", Host({"wait": slowly}))

    assert outcome.waiting_s >= 0.9
    assert outcome.guest_s < outcome.waiting_s


# Sleeping


@pytest.mark.parametrize(
    "code",
    [
        "import time\ntime.sleep(0.01)\n'end'",
        "import asyncio\nawait asyncio.sleep(0.01)\n'end'",
        "import asyncio\nawait asyncio.gather(asyncio.sleep(0.01), asyncio.sleep(0))\n'end'",
        "from asyncio import sleep\nawait sleep(0.01, 'end')",
        "import time\ntime.sleep(0)\n'end'",
    ],
)
async def test_guest_code_can_sleep(sandbox: Sandbox, code: str) -> None:
    with anyio.fail_after(60):
        assert await value_of(sandbox, code) == "end"


async def test_all_sleeps_together_have_a_limit(running: Running) -> None:
    host = Host()
    code = """
import time, host
slept = 0
try:
    while True:
        time.sleep(0.04)
        slept += 1
except TimeoutError as error:
    host.echo(str(error))
slept
"""
    async with running(sleep_s=0.1) as sandbox:
        assert await value_of(sandbox, code, host) == 2

    assert "0.1 s" in str(host.calls[0].args[0])


@pytest.mark.parametrize("length", ["1e9", "10**400", "float('inf')", "float('nan')", "'long'"])
@pytest.mark.parametrize("sleep", ["time.sleep({})", "await asyncio.sleep({})"])
async def test_an_odd_sleep_is_an_exception_for_the_guest(
    sandbox: Sandbox, length: str, sleep: str
) -> None:
    with anyio.fail_after(60):
        kind = await failure_kind(sandbox, f"import time, asyncio\n{sleep.format(length)}")

    assert kind == "error"


# Ending


async def test_cancelling_in_a_tool_call_ends_the_run_at_once(sandbox: Sandbox) -> None:
    gate, host = Gate(), Host()
    host = Host({"wait": gate.wait})
    code = "import host\ntry:\n    host.wait()\nexcept BaseException:\n    pass\nhost.echo('next')"

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, sandbox, code, host)
            await gate.called.wait()
            tasks.cancel_scope.cancel()

    assert [call.function for call in host.calls] == ["host.wait"]
    assert not host.ended
    assert await value_of(sandbox, "1") == 1


async def test_cancelling_in_a_busy_loop_ends_the_run_at_once(running: Running) -> None:
    begun = anyio.Event()

    async def note(call: GuestCall) -> Json:
        begun.set()
        return None

    async with running(guest_time_s=60.0, workers=1) as sandbox:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                code = "import host\nhost.wait()\nwhile True:\n    pass"
                tasks.start_soon(run, sandbox, code, Host({"wait": note}))
                await begun.wait()
                tasks.cancel_scope.cancel()
            assert await value_of(sandbox, "1") == 1


async def test_cancelling_while_waiting_for_a_worker_leaves_nothing_behind(
    running: Running,
) -> None:
    gate = Gate()

    async with running(workers=1) as sandbox, anyio.create_task_group() as tasks:
        tasks.start_soon(run, sandbox, "import host\nhost.wait()", Host({"wait": gate.wait}))
        await gate.called.wait()
        with anyio.move_on_after(0.05) as scope:
            await run(sandbox, "2")
        gate.opened.set()
        with anyio.fail_after(60):
            assert await value_of(sandbox, "1") == 1

    assert scope.cancelled_caught


async def test_a_fault_in_the_host_is_raised_and_not_given_to_the_guest(
    sandbox: Sandbox,
) -> None:
    code = "import host\ntry:\n    host.wait()\nexcept BaseException:\n    pass"

    with anyio.fail_after(60), pytest.raises(ExceptionGroup) as raised:
        await run(sandbox, code, Host({"wait": raising(KeyError("ours"))}))

    assert raised.group_contains(KeyError, match="ours")
    assert await value_of(sandbox, "1") == 1


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("import host\nhost.crash()\nwhile True:\n    pass", id="while it computes"),
        pytest.param("import host\nhost.crash()\nhost.echo(1)", id="while it waits for a tool"),
        pytest.param("import host\nawait host.crash()", id="while it awaits a tool"),
    ],
)
async def test_a_killed_worker_is_a_clear_failure_and_the_next_run_works(
    code: str, running: Running
) -> None:
    async with running(workers=1) as sandbox:
        async with sandbox.open(host_modules(), frozenset()) as session:
            # While code runs, this would wait for it with the interpreter lock in hand.
            worker = process_of(session)

            async def kill(call: GuestCall) -> Json:
                os.kill(worker, signal.SIGKILL)
                return None

            with anyio.fail_after(60):
                outcome = await run_in(session, code, Host({"crash": kill}))

        assert outcome.failure is not None
        assert outcome.failure.kind == "crash"
        assert "next run" in outcome.failure.message
        with anyio.fail_after(60):
            assert await value_of(sandbox, "1") == 1


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("while True:\n    pass", id="a clock"),
        pytest.param("x = [0]\nwhile True:\n    x += x", id="memory"),
        pytest.param("import host\nwhile True:\n    host.echo(1)", id="the call limit"),
        pytest.param("import host\nhost.echo(b'')", id="a value"),
        pytest.param("import host\nhost.wait()", id="an error of the run"),
    ],
)
async def test_a_session_that_was_stopped_is_over_and_says_so(code: str, running: Running) -> None:
    host = Host({"wait": raising(RunError("stop"))})

    async with running(guest_time_s=0.3, calls=5) as sandbox:
        async with sandbox.open(host_modules(), frozenset()) as session:
            await run_in(session, "x = 1")
            stopped = await run_in(session, code, host)
            after = await run_in(session, "x")
        assert await value_of(sandbox, "1") == 1

    assert stopped.failure is not None
    assert after.failure is not None
    assert "variables are lost" in after.failure.message


async def test_the_workers_end_with_the_sandbox(tier: str) -> None:
    async with running_sandbox(tier=tier) as sandbox:
        async with sandbox.open(host_modules(), frozenset()) as session:
            pid = process_of(session)
        os.kill(pid, 0)

    with anyio.fail_after(60):
        while is_alive(pid):
            await anyio.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
