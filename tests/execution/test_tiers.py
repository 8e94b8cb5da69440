"""Which interpreter runs a program, and what happens where there is only one."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from support import MakeApp, test_server

from toolfold.errors import CodeRejected, RunCrashed
from toolfold.execution.analysis.plan import make_plan
from toolfold.execution.executor import PrintedOnce
from toolfold.execution.tiers import Tiers
from toolfold.sandbox.cpython.kernel import missing_walls
from toolfold.sandbox.sandbox import GuestFailure, GuestFiles, Modules, Session

NULL = {"null": test_server("null")}
needs_walls = pytest.mark.skipif(missing_walls() is not None, reason=str(missing_walls()))


class FakeSandbox:
    """A sandbox that may or may not be there, and runs nothing."""

    def __init__(self, fault: str | None = None) -> None:
        self.fault = fault
        self.level = None
        self.shortfall: str | None = None
        self.packages = frozenset({"numpy"})

    async def warm(self) -> None:
        if self.fault:
            raise RunCrashed(self.fault)

    @asynccontextmanager
    async def open(
        self, modules: Modules, names: frozenset[str], *, files: GuestFiles | None = None
    ) -> AsyncIterator[Session]:
        raise AssertionError
        yield


def chosen(code: str, *, setting: str = "auto", fault: str | None = None) -> str:
    tiers = Tiers(FakeSandbox(), FakeSandbox(fault), setting=setting)
    return tiers.choose(make_plan(code, max_bytes=10_000), ["crm", "statistics_mcp"])


@pytest.mark.parametrize(
    ("code", "tier"),
    [
        ("1 + 1", "monty"),
        ("import crm, json, asyncio\nawait asyncio.gather(crm.get(1))", "monty"),
        ("class A:\n    def __init__(self):\n        self.x = 1", "monty"),
        ("any(x > 1 for x in [1, 2])", "monty"),
        ("import nothing_of_that_name", "monty"),
        ("def f():\n    yield 1", "cpython"),
        ("class A(dict): pass", "cpython"),
        ("class A:\n    def __lt__(self, other):\n        return True", "cpython"),
        ("import statistics", "cpython"),
        ("from numpy import array", "cpython"),
        ("import os\nos.environ", "cpython"),
        ("print(dir())", "cpython"),
        ("import crm\nany(crm.get(x) for x in [1, 2])", "cpython"),
        ("raise ValueError('none')", "monty"),
        ("raise ValueError(f'{1} of 2')", "monty"),
        ("try:\n    1\nexcept KeyError as error:\n    pass", "monty"),
        ("raise ValueError('a', 3)", "cpython"),
        ("raise ValueError(amount)", "cpython"),
        ("try:\n    {}[3]\nexcept (KeyError, OSError) as error:\n    print(error.args)", "cpython"),
        ("try:\n    {}[3]\nexcept KeyError as error:\n    print(error, f'{error}')", "monty"),
    ],
)
def test_the_text_tells_the_interpreter(code: str, tier: str) -> None:
    assert chosen(code) == tier
    assert chosen(code, setting="monty") == "monty"
    assert chosen(code, setting="cpython") == "cpython"
    assert chosen(code, fault="no walls") == "monty"


def test_a_setting_that_cannot_be_kept_is_told() -> None:
    with pytest.raises(CodeRejected, match="no walls"):
        chosen("1", setting="cpython", fault="no walls")


@pytest.mark.parametrize(
    ("kind", "again"),
    [("error", True), ("unsupported", True), ("timeout", False), ("calls", False)],
)
def test_only_what_may_be_montys_own_fault_is_tried_again(kind: str, again: bool) -> None:
    failure = GuestFailure(kind=kind, message="")  # type: ignore[arg-type]
    tiers = Tiers(FakeSandbox(), FakeSandbox())

    assert tiers.may_try_again("monty", failure) is again
    assert not tiers.may_try_again("cpython", failure)
    assert not tiers.may_try_again("monty", None)
    assert not Tiers(FakeSandbox(), None).may_try_again("monty", failure)


RUNS = (
    ("sum([1, 2])", "monty", 3),
    ("def f():\n    yield 1\nlist(f())", "cpython", [1]),
    ("import collections.abc\nisinstance([], collections.abc.Sized)", "cpython", True),
    ("import math\nmath.fsum([0.1] * 10)", "monty", 1.0),
    ("'abc'.translate(str.maketrans('a', 'b'))", "cpython", "bbc"),
    ("import null\nlist(map(lambda x: null.echo(value=x), [1]))", "cpython", ["1"]),
)


@needs_walls
async def test_code_runs_where_it_can(running: MakeApp) -> None:
    async with running(NULL) as toolfold:
        results = [await toolfold.run(code) for code, _, _ in RUNS]

    assert [(each.tier, each.value) for each in results] == [each[1:] for each in RUNS]


@needs_walls
async def test_mistakes_about_tools_are_found_in_code_for_cpython(running: MakeApp) -> None:
    async with running(NULL) as toolfold:
        result = await toolfold.run(
            "import null, statistics\nclass A(dict): pass\nnull.put(value=1)\nnull.ecko(value=1)\n"
            "null.echo(valve=statistics.mean([1]))\nundefined_name\ndir()"
        )

    assert "Nothing was run" in result.text
    assert [line.partition(":")[0] for line in result.text.split("\n") if line[:4] == "Line"] == [
        "Line 4",
        "Line 5",
        "Line 6",
    ]


@needs_walls
async def test_code_that_has_called_a_tool_is_not_run_again(running: MakeApp) -> None:
    code = "import null\nnull.put(value=1)\nx = getattr('abc', 'translate')({})"

    async with running(NULL) as toolfold:
        result = await toolfold.run(code)

    assert result.tier == "monty"
    assert not result.success
    assert [(count.tool, count.completed) for count in result.calls] == [("null.put", 1)]


@needs_walls
@pytest.mark.parametrize(
    ("raised", "said"),
    [
        ("raise ValueError('a', 3)", "ValueError: ('a', 3)"),
        ("x = 3\nraise ValueError(x)", "ValueError: 3"),
        ("raise SystemExit(3)", "SystemExit: 3"),
    ],
)
async def test_exceptions_of_any_arguments_are_python_s_own_after_a_call(
    running: MakeApp, raised: str, said: str
) -> None:
    async with running(NULL) as toolfold:
        result = await toolfold.run(f"import null\nnull.put(value=1)\n{raised}")

    assert said in result.text
    assert "monty" not in result.text


@needs_walls
async def test_exceptions_of_any_arguments_are_caught_as_in_python(running: MakeApp) -> None:
    code = (
        "import null\nnull.put(value=1)\n"
        "try:\n    raise ValueError('a', 3)\nexcept ValueError as error:\n    print(error.args)\n"
        "try:\n    {}[3]\nexcept KeyError as error:\n    print(error)"
    )

    async with running(NULL) as toolfold:
        result = await toolfold.run(code)

    assert result.text.startswith("('a', 3)\n3")


async def test_without_cpython_an_exception_of_two_arguments_is_refused_before_it_runs(
    running: MakeApp,
) -> None:
    async with running(NULL, sandbox="monty") as toolfold:
        told = await toolfold.run("import null\nnull.put(value=1)\nraise ValueError('a', 3)")
        late = await toolfold.run("import null\nnull.put(value=1)\nx = 3\nraise ValueError(x)")

    assert "Line 3: ValueError() of anything but one text is not supported" in told.text
    assert told.calls == ()
    assert "an exception takes one text here" in late.text
    assert "monty" not in late.text


async def test_without_cpython_the_construct_is_told_with_its_line_and_a_rewrite(
    running: MakeApp,
) -> None:
    async with running({}, sandbox="monty") as toolfold:
        result = await toolfold.run("x = 1\nclass A(dict): pass")

    assert "Line 2: class inheritance is not supported in this sandbox" in result.text


@needs_walls
async def test_a_cpython_that_fails_to_start_leaves_the_advice_for_monty(
    running: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolfold.sandbox.cpython.pool._BOOT", "raise OSError('no such wall')")

    async with running({}) as toolfold:
        result = await toolfold.run("x = 1\nclass A(dict): pass")
        state = await toolfold.app.tiers.examine()

    assert "Line 2: class inheritance is not supported in this sandbox" in result.text
    assert "CPython, which has all of Python, is not available: " in result.text
    assert "no such wall" in result.text
    assert state[0] is False
    assert "no such wall" in state[1]


async def test_that_cpython_is_missed_is_told_to_nobody_who_needs_or_wants_it_not(
    running: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolfold.sandbox.cpython.sandbox.missing_walls", lambda: "no such wall")

    async with running({}) as toolfold:
        simple = await toolfold.run("undefined_name")
    async with running({}, sandbox="monty") as toolfold:
        unwanted = await toolfold.run("class A(dict): pass")

    assert "Nothing was run" in simple.text
    assert "Nothing was run" in unwanted.text
    assert "CPython" not in simple.text + unwanted.text


@needs_walls
@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("import subprocess\nsubprocess.run(['ls'])", "no other processes"),
        ("import os\nos.fork()", "no other processes"),
        ("import multiprocessing\nmultiprocessing.Pool(2)", "no other processes"),
        ("import urllib.request\nurllib.request.urlopen('http://192.0.2.1')", "no network"),
        ("import socket\nsocket.create_connection(('192.0.2.1', 80))", "no network"),
        ("import statistics, math\nmath.sqroot(2)", None),
        ("import os\nopen('/none/such')\ndir()", None),
    ],
)
async def test_what_the_walls_forbid_gets_a_hint_of_its_own(
    running: MakeApp, code: str, hint: str | None
) -> None:
    async with running({}, sandbox="cpython") as toolfold:
        result = await toolfold.run(code)

    assert not result.success
    assert result.tier == "cpython"
    assert ("Hint: there is" in result.text or "Hint: there are" in result.text) == bool(hint)
    assert hint in result.text if hint else "Hint" not in result.text


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system is the reason")
async def test_on_another_processor_it_is_off_and_says_why(
    running: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*ours[:4], "aarch64")))

    async with running({}) as toolfold:
        state = await toolfold.app.tiers.examine()
        result = await toolfold.run("x = 1\nclass A(dict): pass")

    assert state[0] is False
    assert "x86-64, and this is aarch64" in state[1]
    assert "Line 2: class inheritance is not supported in this sandbox" in result.text


async def test_cpython_says_how_it_stands() -> None:
    assert await Tiers(FakeSandbox(), FakeSandbox("no walls")).examine() == (False, "no walls")
    assert await Tiers(FakeSandbox(), FakeSandbox(), setting="monty").examine() == (
        False,
        'switched off by sandbox = "monty"',
    )
    works, detail = await Tiers(FakeSandbox(), FakeSandbox()).examine()
    assert works
    assert "numpy" in detail


async def test_doctor_is_told_why_there_are_no_better_walls() -> None:
    cpython = FakeSandbox()
    cpython.shortfall = "namespaces: no such thing"

    assert "because namespaces: no such thing" in (await Tiers(FakeSandbox(), cpython).examine())[1]


@pytest.mark.parametrize("tier", ["monty", pytest.param("cpython", marks=needs_walls)])
async def test_what_code_prints_is_heard_while_it_runs(running: MakeApp, tier: str) -> None:
    heard: list[str] = []
    async with running({}, sandbox=tier, limits__sleep_s=1000.0) as toolfold:
        with anyio.move_on_after(100) as scope:

            def hear(text: str) -> None:
                heard.append(text)
                scope.cancel()

            await toolfold.run("import time\nprint('one')\ntime.sleep(900)", on_print=hear)

    assert "".join(heard) == "one\n"


def test_what_a_program_prints_again_when_it_begins_anew_is_passed_on_once() -> None:
    heard: list[str] = []
    printed = PrintedOnce(heard.append)
    printed("one\n")
    printed("tw")
    printed.begin_again()
    for text in ("on", "e\ntwo\n", "three\n"):
        printed(text)

    assert "".join(heard) == "one\ntwo\nthree\n"


async def test_what_is_not_python_is_told_with_its_line_and_that_nothing_was_run(
    running: MakeApp,
) -> None:
    async with running({}) as toolfold:
        result = await toolfold.run("x = 1\nif x\n    print(x)")

    assert result.text.startswith("Nothing was run. SyntaxError on line 2: ")
