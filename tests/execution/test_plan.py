"""What is known of a program from its text alone."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold.errors import CodeRejected
from toolfold.execution.analysis.plan import ProgramPlan, make_plan


def plan_of(source: str) -> ProgramPlan:
    return make_plan(source, max_bytes=1_000_000)


def awaited(source: str) -> list[str]:
    """Return the calls that count as awaited, as they are written, in their order."""
    plan = plan_of(source)
    encoded = plan.source.encode()
    return [call_at(encoded[offset:].decode()) for offset in sorted(plan.awaited)]


def call_at(text: str) -> str:
    """Return the call that `text` begins with."""
    depth = 0
    for end, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == ")" and depth == 0:
            return text[: end + 1]
    return text


# (code, the calls that count as awaited); calls of `gather` itself are left out.
AWAITED = [
    ("m.a()", []),
    ("await m.a()", ["m.a()"]),
    ("x = await m.a(1)\ny = m.a(2)", ["m.a(1)"]),
    ("print(await m.a(1), m.a(2))", ["m.a(1)"]),
    ("await m.a(m.b())", ["m.a(m.b())"]),
    ("(await m.a())['k']", ["m.a()"]),
    ("[await m.a(i) for i in x]", ["m.a(i)"]),
    ("{i: await m.a(i) for i in x}", ["m.a(i)"]),
    ("f'{await m.a(1)} {m.a(2)}'", ["m.a(1)"]),
    ("await (m.a(1) if x else m.a(2))", ["m.a(1)", "m.a(2)"]),
    ("return_ = [m.a(i) for i in x]", []),
    ("await asyncio.gather(m.a(1), m.a(2))", ["m.a(1)", "m.a(2)"]),
    ("await gather(m.a(1))", ["m.a(1)"]),
    ("await asyncio.gather(*[m.a(i) for i in x])", ["m.a(i)"]),
    ("await asyncio.gather(*(m.a(i) for i in x))", ["m.a(i)"]),
    ("await asyncio.gather(*[m.a(i) for i in x], *[m.b(i) for i in y])", ["m.a(i)", "m.b(i)"]),
    ("await asyncio.gather(*[m.a(i) for i in x][:5])", ["m.a(i)"]),
    ("await asyncio.gather(*([m.a(1)] + [m.a(2)]))", ["m.a(1)", "m.a(2)"]),
    ("await asyncio.gather(asyncio.gather(m.a(1)), m.a(2))", ["m.a(1)", "m.a(2)"]),
    ("asyncio.gather(m.a(1))", []),
    ("await asyncio.gather(*[one(m.a(1))])", ["one(m.a(1))"]),
    ("t = m.a(1)\nu = m.a(2)\nawait t", ["m.a(1)"]),
    ("t: object = m.a(1)\nawait t", ["m.a(1)"]),
    ("if (t := m.a(1)):\n    await t", ["m.a(1)"]),
    ("t = u = m.a(1)\nawait u", ["m.a(1)"]),
    ("a, b = m.a(1), m.a(2)\nawait asyncio.gather(a, b)", ["m.a(1)", "m.a(2)"]),
    ("a, b = m.a(1), m.a(2)\nawait a", ["m.a(1)"]),
    ("t = [m.a(i) for i in x]\nawait asyncio.gather(*t)", ["m.a(i)"]),
    ("t = [m.a(1), m.a(2)]\nr = await asyncio.gather(*t)", ["m.a(1)", "m.a(2)"]),
    ("g = asyncio.gather(m.a(1))\nawait g", ["m.a(1)"]),
    ("t = []\nt.append(m.a(1))\nawait asyncio.gather(*t)", ["m.a(1)"]),
    ("t = []\nt.extend([m.a(1)])\nawait asyncio.gather(*t)", ["m.a(1)"]),
    ("t = []\nt += [m.a(1)]\nawait asyncio.gather(*t)", ["m.a(1)"]),
    ("t = set()\nt.add(m.a(1))\nawait asyncio.gather(*t)", ["set()", "m.a(1)"]),
    ("t = []\nt.append(m.a(1))\nprint(t)", []),
    ("t = {}\nt['k'] = m.a(1)\nawait asyncio.gather(*t.values())", ["m.a(1)"]),
    ("t = {k: m.a(k) for k in x}\nawait asyncio.gather(*t.values())", ["m.a(k)"]),
    ("t = {'k': m.a(1)}\nfor k, v in t.items():\n    await v", ["m.a(1)"]),
    ("t = [m.a(1)]\nfor v in t:\n    await v", ["m.a(1)"]),
    ("t = [m.a(1)]\n[await v for v in t]", ["m.a(1)"]),
    ("t = [m.a(1)]\nfor i, v in enumerate(t):\n    await v", ["m.a(1)"]),
    ("t = [m.a(1)]\nfor n, v in zip(x, t):\n    await v", ["m.a(1)"]),
    ("t = [('k', m.a(1))]\nfor n, v in t:\n    await v", ["m.a(1)"]),
    ("rows = m.a(1)\nfor r in rows:\n    await m.b(r)", ["m.b(r)"]),
    ("rows = m.a(1)\nawait asyncio.gather(*[m.b(r) for r in rows])", ["m.b(r)"]),
    ("async def f():\n    t = m.a(1)\n    return await t", ["m.a(1)"]),
    ("t = m.a(1)\nasync def f(t):\n    return await t", []),
    ("async def f():\n    return m.a(1)\nawait f()", ["f()"]),
    ("async def f():\n    await m.a(1)\nt = m.a(2)", ["m.a(1)"]),
    ("f = lambda i: m.a(i)\nawait m.b(1)", ["m.b(1)"]),
]  # fmt: skip


@pytest.mark.parametrize(("source", "calls"), AWAITED, ids=[source for source, _ in AWAITED])
def test_a_call_counts_as_awaited_when_its_value_is_awaited(source: str, calls: list[str]) -> None:
    assert [call for call in awaited(source) if "gather(" not in call] == calls


@pytest.mark.parametrize(
    "before",
    [
        *("'é'; ", "'日本'; ", "'😀'; ", "# é\n", "é = 1\n", "x = '''é\n日本\n'''; "),
        *("\t\n", "\f\n", "\f", "x = '\u2028\x0b\x85'\n", "\ufeff", "\ufeff'é'\n"),
    ],
)
def test_offsets_count_bytes_whatever_stands_before_the_call(before: str) -> None:
    assert awaited(f"{before}await m.a(1)") == ["m.a(1)"]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_every_kind_of_newline_is_taken(newline: str) -> None:
    source = newline.join(["x = 1", "if x:", "    await m.a('é')", "del x"])

    assert awaited(source) == ["m.a('é')"]
    assert plan_of(source).unsupported[0].line == 4


def test_the_source_that_runs_is_the_one_that_was_planned() -> None:
    assert plan_of("x = 1\r\ny = 2\r").source == "x = 1\ny = 2\n"


@pytest.mark.parametrize(
    ("source", "imports"),
    [
        ("import a", {"a"}),
        ("import a, b as c", {"a", "b"}),
        ("import a.b.c", {"a"}),
        ("from a import b", {"a"}),
        ("from a.b import c as d", {"a"}),
        ("def f():\n    import a\n    from b import c", {"a", "b"}),
        ("try:\n    import a\nexcept ImportError:\n    import b", {"a", "b"}),
        ("if False:\n    import a", {"a"}),
        ("from . import a", set()),
        ("a.b()", set()),
        ("'import a'", set()),
    ],
)
def test_imports_are_found_wherever_they_stand(source: str, imports: set[str]) -> None:
    assert plan_of(source).imports == imports


def test_every_plain_name_is_listed() -> None:
    plan = plan_of("x = mcp__a__b(y.z)\ndef f(p):\n    return q")

    assert plan.names == {"x", "mcp__a__b", "y", "q"}


def test_code_over_the_limit_is_refused_with_both_sizes() -> None:
    with pytest.raises(CodeRejected, match=r"1,001 bytes.*1,000"):
        make_plan("x" * 1_001, max_bytes=1_000)


def test_the_limit_counts_bytes() -> None:
    assert make_plan("#" + "é" * 49, max_bytes=99)
    with pytest.raises(CodeRejected, match="101"):
        make_plan("#" + "é" * 50, max_bytes=100)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = = 1", "line 1.*x = = 1"),
        ("x = 1\nfor i in x\n    pass", "line 2.*expected ':'"),
        ("def f():\nreturn 1", "line 2"),
        ("x = 1\n  y = 2", "line 2.*indent"),
        ("print('a", "line 1.*unterminated"),
        ("x = (1,\n", "line 1"),
        ("```python\nx = 1\n```", "line 1"),
        ("print 'a'", "line 1"),
        ("x = 1\0", "NUL|null|character"),
        ("x = '\ud800'", "character"),
        ("\ud800", "character"),
        ("\ufeff\ufeffx = 1", "U\\+FEFF"),
    ],
)
def test_what_is_not_python_is_refused_with_the_line(source: str, words: str) -> None:
    with pytest.raises(CodeRejected) as rejection:
        plan_of(source)

    assert re.search(words, str(rejection.value), re.DOTALL)


@pytest.mark.filterwarnings("error")
def test_a_warning_of_pythons_own_parser_does_not_stop_the_code() -> None:
    assert plan_of(r"import re; re.findall('\d+', '1')").imports == {"re"}


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("(" * 100_000 + ")" * 100_000, id="brackets"),
        pytest.param("[" * 300 + "]" * 300, id="lists"),
        pytest.param("-" * 100_000 + "1", id="signs"),
        pytest.param("x = " + "~" * 5_000 + "1", id="fewer signs"),
        pytest.param("1" + "+1" * 100_000, id="terms"),
        pytest.param("await gather(*" + "+".join(["[m.a()]"] * 900) + ")", id="awaited terms"),
        pytest.param("await (" + " if x else ".join(["m.a()"] * 50) + ")", id="awaited choices"),
        pytest.param("await gather(" * 60 + "m.a()" + ")" * 60, id="gathered gathers"),
        pytest.param("a" + ".a" * 100_000, id="attributes"),
        pytest.param("a" + "()" * 100_000, id="calls"),
        pytest.param("a" + "[0]" * 100_000, id="subscripts"),
        pytest.param("lambda: " * 50_000 + "1", id="lambdas"),
        pytest.param("not " * 100_000 + "1", id="nots"),
        pytest.param("x = " * 100_000 + "1", id="assignments"),
        pytest.param("if 0: pass\n" + "elif 0: pass\n" * 50_000, id="branches"),
        pytest.param("".join(" " * i + "if 1:\n" for i in range(500)), id="blocks"),
        pytest.param('f"{' * 100 + "1" + '}"' * 100, id="f-strings"),
        pytest.param("x = '" + "a" * 900_000 + "'", id="a long line"),
        pytest.param("\0" * 100_000, id="zeros"),
        pytest.param("\ud800" * 100_000, id="halves of pairs"),
        pytest.param("\n" * 900_000, id="empty lines"),
        pytest.param("\\\n" * 100_000, id="continued lines"),
        pytest.param("9" * 900_000, id="digits"),
        pytest.param("class A:\n def f(self): pass\n" * 5_000, id="classes"),
        pytest.param("# coding: utf-16\nx = 1", id="a coding"),
        pytest.param("\x1a\x00\x1b", id="control characters"),
        pytest.param("", id="nothing"),
    ],
)
def test_hostile_text_is_planned_or_refused(source: str) -> None:
    try:
        plan = plan_of(source)
    except CodeRejected as rejection:
        assert len(str(rejection)) < 1_000  # noqa: PT017  # either is right
    else:
        assert plan.source == source


@given(st.text())
def test_any_text_is_planned_or_refused(source: str) -> None:
    try:
        plan_of(source)
    except CodeRejected as rejection:
        assert str(rejection)  # noqa: PT017  # either is right
