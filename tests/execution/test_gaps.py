"""What the sandbox lacks is known beforehand, with a way to write it instead."""

from collections.abc import AsyncIterator

import pytest

from toolfold.config.settings import Limits
from toolfold.execution.analysis.gaps import MISSING_BUILTINS, MISSING_NAMES
from toolfold.execution.analysis.plan import make_plan
from toolfold.sandbox.monty import MontySandbox
from toolfold.sandbox.sandbox import GuestCall, GuestOutcome, Program

# (code, line, construct, a word of the rewrite)
GAPS = [
    ("def f():\n    yield 1\nlist(f())", 2, "yield", "list"),
    ("def f():\n    yield from [1]\nlist(f())", 2, "yield", "list"),
    ("async def f():\n    async for x in y:\n        pass\nawait f()", 2, "async for", "plain for"),
    ("async def f():\n    async with y:\n        pass\nawait f()", 2, "async with", "await"),
    ("x = {'a': 1}\ndel x['a']", 2, "del", "pop"),
    ("try:\n    1 / 0\nexcept* ValueError:\n    pass", 1, "except*", "except"),
    ("class A(dict):\n    pass", 1, "inheritance", "dict"),
    ("x = 1\nclass A(Exception):\n    pass", 2, "inheritance", "RuntimeError"),
    ("class A(metaclass=type):\n    pass", 1, "inheritance", "dataclass"),
    ("class A:\n    @property\n    def x(self):\n        return 1\nA().x", 1, "'x'", "method"),
    ("class A:\n    @staticmethod\n    def x():\n        return 1\nA.x()", 1, "'x'", "function"),
    ("from math import *\nsqrt(4)", 1, "import *", "name"),
    ("next((x for x in [1]), None)", 1, "next", "[0]"),
    ("next(x for x in [1])", 1, "next", "[0]"),
    ("import asyncio\nasync def f(): pass\n"
     "await asyncio.gather(f(), return_exceptions=True)", 3, "return_exceptions", "catch"),
    ("import json\njson.dumps({}, default=str)", 2, "default", "str"),
    ("from dataclasses import dataclass\n@dataclass(order=True)\nclass A:\n    x: int",
     2, "order", "key="),
    ("import re\nre.sub('a', lambda m: 'b', 'a')", 2, "re.sub", "finditer"),
    ("import asyncio\nasyncio.create_task(1)", 2, "asyncio.create_task", "gather"),
    ("from asyncio import TaskGroup", 1, "asyncio.TaskGroup", "gather"),
    ("from dataclasses import dataclass, asdict", 1, "dataclasses.asdict", "dict"),
    ("import functools\n@functools.wraps(print)\ndef f(): pass", 2, "functools.wraps", "leave"),
    ("x = 1\nraise ValueError(3)", 2, "ValueError()", "one text"),
    ("try:\n    raise KeyError('a', 3)\nexcept KeyError:\n    pass", 2, "KeyError()", "one text"),
    ("raise SystemExit(3)", 1, "SystemExit()", "one text"),
    ("RuntimeError({'code': 1})", 1, "RuntimeError()", "one text"),
    ("import os\nos.environ['A']", 2, "os.environ", "into the code"),
]  # fmt: skip


@pytest.fixture(scope="module")
async def sandbox(anyio_backend: str) -> AsyncIterator[MontySandbox]:
    sandbox = MontySandbox(Limits(guest_time_s=5.0), workers=1)
    async with sandbox.running():
        yield sandbox


async def run(sandbox: MontySandbox, source: str) -> GuestOutcome:
    async def no_tools(call: GuestCall) -> None:
        raise AssertionError(call)

    async with sandbox.open({}, frozenset()) as session:
        return await session.run(Program(source=source), no_tools)


@pytest.mark.parametrize(
    ("source", "line", "construct", "rewrite"), GAPS, ids=[source for source, *_ in GAPS]
)
async def test_a_gap_is_found_with_its_line_and_a_way_around(
    sandbox: MontySandbox, source: str, line: int, construct: str, rewrite: str
) -> None:
    found = make_plan(source, max_bytes=10_000).unsupported

    assert [gap.line for gap in found] == [line]
    assert construct in found[0].construct
    assert rewrite in found[0].rewrite
    assert (await run(sandbox, source)).failure is not None  # it is a gap indeed


@pytest.mark.parametrize(
    "source",
    [
        "x = [i for i in range(3)]\nnext(iter(x))",
        "class A:\n    def f(self):\n        return 1\nA().f()",
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\nA(1).x",
        "def f(g):\n    return g\n@f\ndef h():\n    return 1\nh()",
        "import asyncio\nasync def f():\n    return 1\nawait asyncio.gather(f())",
        "import json\njson.dumps({}, indent=2, sort_keys=True)",
        "import re\nre.sub('a', 'b', 'a')",
        "d = {'a': 1}\nd.pop('a')",
        "sum(x for x in [1, 2])",
        "x = 3\n[ValueError('a'), ValueError(), ValueError(f'{x}'), ValueError(str(x))]",
        "x = 'b'\n[ValueError('a' + x), ValueError('%s' % x), ValueError('{}'.format(x))]",
    ],
)
async def test_what_works_is_no_gap(sandbox: MontySandbox, source: str) -> None:
    assert make_plan(source, max_bytes=10_000).unsupported == ()
    assert (await run(sandbox, source)).failure is None


@pytest.mark.parametrize("path", MISSING_NAMES)
async def test_a_name_said_to_be_missing_is_missing(sandbox: MontySandbox, path: str) -> None:
    module = path.partition(".")[0]

    assert (await run(sandbox, f"import {module}")).failure is None
    use = f"{path}('HOME')" if path == "os.getenv" else path
    assert (await run(sandbox, f"import {module}\n{use}")).failure is not None


@pytest.mark.parametrize("name", MISSING_BUILTINS)
async def test_a_builtin_said_to_be_missing_is_missing(sandbox: MontySandbox, name: str) -> None:
    assert (await run(sandbox, name)).failure is not None


def test_each_gap_is_told_once_and_in_the_order_of_lines() -> None:
    found = make_plan("def f():\n    yield 1; yield 2\ndel f\n", max_bytes=1_000).unsupported

    assert [(gap.line, gap.construct[:5]) for gap in found] == [(2, "yield"), (3, "del")]
