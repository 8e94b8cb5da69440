"""Programs are checked before they run, and nothing of them runs while they are."""

import builtins
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from guests import Host, run, value_of

from toolfold.errors import CodeRejected
from toolfold.sandbox import checker as checker_module
from toolfold.sandbox.checker import MontyChecker
from toolfold.sandbox.monty import MontySandbox
from toolfold.sandbox.sandbox import Diagnostic, GuestModule, Modules, Verdict

STUB = "def get(name: str, *, count: int | None = None) -> dict[str, int]: ...\n"
CLEAN = Verdict()


def modules(stub: str = STUB, name: str = "host") -> Modules:
    return {name: lambda: GuestModule(functions=("get",), stub=stub)}


@asynccontextmanager
async def running_checker(*, time_limit_s: float = 20.0) -> AsyncIterator[MontyChecker]:
    checker = MontyChecker(time_limit_s=time_limit_s, memory_bytes=256 << 20)
    checker.use(modules())
    async with checker.running():
        yield checker


@pytest.fixture(scope="module")
async def checker(anyio_backend: str) -> AsyncIterator[MontyChecker]:
    async with running_checker() as checker:
        yield checker


def places(verdict: Verdict) -> list[tuple[str, int, int]]:
    return [(found.rule, found.line, found.column) for found in verdict.diagnostics]


async def test_a_program_without_faults_gives_a_clean_verdict(checker: MontyChecker) -> None:
    assert await checker.check("import host\nprint(host.get('a', count=1)['n'] + 1)") == CLEAN


async def test_an_empty_program_is_clean(checker: MontyChecker) -> None:
    assert await checker.check("") == CLEAN


async def test_a_fault_is_found_with_its_place_and_words(checker: MontyChecker) -> None:
    verdict = await checker.check("import host\n\nx = host.get(7)")

    assert verdict.diagnostics == (
        Diagnostic(
            rule="invalid-argument-type",
            message="Argument to function `get` is incorrect: Expected `str`, found `Literal[7]`",
            line=3,
            column=14,
        ),
    )


@pytest.mark.parametrize("text", ["é", "日本", "😀", "e\u0301"])
async def test_columns_count_characters(checker: MontyChecker, text: str) -> None:
    verdict = await checker.check(f"'{text}'; nope")

    assert places(verdict) == [("unresolved-reference", 1, len(text) + 5)]


async def test_all_faults_of_a_program_are_found_at_once(checker: MontyChecker) -> None:
    verdict = await checker.check(
        "import host\nhost.got('a')\nhost.get()\nhost.get('a', cnt=1)\nnope"
    )

    assert places(verdict) == [
        ("unresolved-attribute", 2, 1),
        ("missing-argument", 3, 1),
        ("unknown-argument", 4, 15),
        ("unresolved-reference", 5, 1),
    ]


@pytest.mark.parametrize(
    "prelude",
    [
        "",
        "x = 1",
        "x = 1\n",
        "def show(image: object, /) -> None: ...\nfrom host import get as g\n",
    ],
)
async def test_a_prelude_does_not_move_the_lines(checker: MontyChecker, prelude: str) -> None:
    verdict = await checker.check("1\nnope", prelude=prelude)

    assert places(verdict) == [("unresolved-reference", 2, 1)]


async def test_the_names_of_a_prelude_are_known(checker: MontyChecker) -> None:
    prelude = "from host import get as mcp__host__get"

    assert await checker.check("mcp__host__get('a')", prelude=prelude) == CLEAN
    assert places(await checker.check("mcp__host__get(1)", prelude=prelude)) == [
        ("invalid-argument-type", 1, 16)
    ]


async def test_a_program_knows_nothing_of_those_before_it(checker: MontyChecker) -> None:
    await checker.check("import host\nx = 1\ndef f(): pass", prelude="y = 1")

    verdict = await checker.check("x\ny\nf()\nhost.get('a')")

    assert [found.line for found in verdict.diagnostics] == [1, 2, 3, 4]


async def test_names_of_an_earlier_program_do_not_change_a_later_one(
    checker: MontyChecker,
) -> None:
    await checker.check("host = 1\nprint = 2\nget = 3")

    assert await checker.check("import host\nprint(host.get('a'))") == CLEAN


async def test_nothing_of_a_program_runs_while_it_is_checked() -> None:
    made: list[str] = []

    def make() -> GuestModule:
        made.append("module")
        return GuestModule(functions=("get",), stub=STUB)

    checker = MontyChecker(time_limit_s=20.0, memory_bytes=256 << 20)
    checker.use({"host": make})
    async with checker.running():
        with anyio.fail_after(60):
            loops = await checker.check("import host\nwhile True:\n    host.get('a')")
            fails = await checker.check("import host\nhost.get('a')\nraise ValueError")
            prints = await checker.check("print('x')\n1 / 0\nimport time\ntime.sleep(100)")

    assert (loops, fails, prints) == (CLEAN, CLEAN, CLEAN)
    assert made == ["module"]


async def test_nothing_is_printed_by_a_check(
    checker: MontyChecker, capfd: pytest.CaptureFixture[str]
) -> None:
    await checker.check("print('x')\nimport sys\nprint('y', file=sys.stderr)")

    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("class A(dict):\n    pass", "inheritance"),
        ("def f():\n    yield 1", "yield"),
        ("x = {}\ndel x['a']", "del"),
        ("from math import *", "import"),
        ("x = '\ud800'", "surrogate"),
        ("x = " + "-" * 3_000 + "1", "nested"),
    ],
)
async def test_what_the_interpreter_would_not_take_is_refused_in_its_words(
    checker: MontyChecker, source: str, words: str
) -> None:
    verdict = await checker.check(source)

    assert verdict.refusal is not None
    assert words in verdict.refusal


async def test_a_syntax_error_is_a_finding(checker: MontyChecker) -> None:
    assert places(await checker.check("x = 1\nx = = 2")) == [("invalid-syntax", 2, 5)]


async def test_a_program_that_takes_too_long_is_refused_and_the_next_is_checked() -> None:
    steps = [f"x{i} = x{i - 1} + x{i - 1} if x{i - 1} else (x{i - 1},)" for i in range(1, 3000)]

    async with running_checker(time_limit_s=1.0) as checker:
        with anyio.fail_after(60):
            with pytest.raises(CodeRejected, match="1 s"):
                await checker.check("\n".join(["x0 = (1,)", *steps]))
            assert places(await checker.check("nope")) == [("unresolved-reference", 1, 1)]


async def test_a_killed_checker_is_replaced_unnoticed() -> None:
    async with running_checker() as checker:
        await checker.check("1")
        assert checker._session is not None
        os.kill(checker._session.worker_pid or 0, signal.SIGKILL)

        with anyio.fail_after(60):
            assert places(await checker.check("nope")) == [("unresolved-reference", 1, 1)]


async def test_other_modules_count_from_the_next_check_on(checker: MontyChecker) -> None:
    source = "import host\nhost.get('a')"
    assert await checker.check(source) == CLEAN

    checker.use(modules("def get(name: int) -> int: ...\n"))
    changed = await checker.check(source)
    checker.use({})
    removed = await checker.check(source)
    checker.use(modules(name="other"))
    renamed = await checker.check(source.replace("host", "other"))
    checker.use(modules())

    assert places(changed) == [("invalid-argument-type", 2, 10)]
    assert places(removed) == [("unresolved-import", 1, 8)]
    assert renamed == CLEAN
    assert await checker.check(source) == CLEAN


async def test_a_session_is_renewed_after_its_share_of_checks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checker_module, "_CHECKS_PER_SESSION", 3)
    sessions = []

    async with running_checker() as checker:
        for _ in range(7):
            assert await checker.check("import host\nhost.get('a')") == CLEAN
            sessions.append(checker._session)

    assert [sessions.index(session) for session in sessions] == [0, 0, 0, 3, 3, 3, 6]


async def test_checks_that_arrive_together_are_all_answered(checker: MontyChecker) -> None:
    verdicts: dict[int, Verdict] = {}

    async def one(number: int) -> None:
        verdicts[number] = await checker.check("\n" * number + "nope")

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(one, number)

    assert [verdicts[number].diagnostics[0].line for number in range(10)] == list(range(1, 11))


async def test_a_module_with_a_broken_stub_stops_neither_check_nor_others() -> None:
    async with running_checker() as checker:
        checker.use(modules("def get(: ...\n") | modules(name="good"))

        assert (await checker.check("import host\nhost.get(1)")).refusal is None
        assert await checker.check("import good\ngood.get('a')") == CLEAN


async def test_every_builtin_that_the_interpreter_runs_is_known(
    checker: MontyChecker, sandbox: MontySandbox
) -> None:
    names = [name for name in dir(builtins) if not name.startswith("_")]
    verdict = await checker.check("\n".join(names))
    unknown = [names[found.line - 1] for found in verdict.diagnostics]

    defined = [name for name in unknown if (await run(sandbox, name)).failure is None]

    assert "callable" in unknown
    assert defined == []


async def test_a_checked_program_then_runs(checker: MontyChecker, sandbox: MontySandbox) -> None:
    host = Host()
    source = "import host\nlist(map(str, filter(None, [0, 1]))), hasattr(host, 'echo')"
    checker.use({"host": lambda: GuestModule(functions=("echo",), stub="def echo(x): ...\n")})

    assert await checker.check(source) == CLEAN
    assert await value_of(sandbox, source, host) == [["1"], True]
    checker.use(modules())
