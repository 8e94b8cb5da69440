"""What a session has after a program took it from Monty to CPython, and after a restart there."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support import MakeApp, Running, entry, node_server, test_server

from toolfold.execution.runtime import SessionRequest

pytestmark = pytest.mark.anyio

MINE = SessionRequest("mine")
MOVE = "import io\nio.StringIO('moved').read()"

CARRIED = {
    "number": ("n = 5", "n + 1", "6"),
    "text": ("t = 'a\\n\"b'", "t", 'a\n"b'),
    "list": ("rows = [1, (2, None), {3: {4.5}}]", "rows[2][3] == {4.5}", "true"),
    "what two names hold": ("a = [1]\nx = a", "x.append(2), a", "[null, [1, 2]]"),
    "loop variable that is a row": (
        "rows = [{'n': 1}, {'n': {2}}]\nfor row in rows:\n    pass",
        "row['n'].add(3), sorted(rows[1]['n'])", "[null, [2, 3]]"),
    "rows of another list": (
        "g = {'r': [{'n': 1}, {'n': 2}], (1, 'k'): [5]}\nold = [r for r in g['r'] if r['n'] > 1]\n"
        "t = (g[(1, 'k')], [])",
        "old[0].update(n=9), t[0].append(6), g['r'][1]['n'], g[(1, 'k')]",
        "[null, null, 9, [5, 6]]"),
    "def": ("k = 2\ndef f(n):\n    return n * k", "f(4)", "8"),
    "async def": ("async def f(n):\n    return n + 1", "await f(1)", "2"),
    "nested function": (
        "def f(n):\n    def g(m):\n        return m * n\n    return g(3)", "f(2)", "6"),
    "lambda": ("k = 3\nf = lambda n, m=1: n + m + k", "f(1)", "5"),
    "lambda of a lambda": ("a = lambda n: n + 1\nb = lambda n: a(n) * 2", "b(1)", "4"),
    "lambda that calls a tool": (
        "f = lambda n: records.put(id=n, value='v')", "f(3) is not None", "true"),
    "alias of a tool": ("put = records.put", "put(id=3, value='v') is not None", "true"),
    "alias of a function of a module": ("import json\nd = json.dumps", "d([1])", "[1]"),
    "alias of an imported name": ("from math import floor\nfl = floor", "fl(2.5)", "2"),
    "partial": (
        "import functools\nimport math\np = functools.partial(math.pow, 2)", "int(p(5))", "32"),
    "class": ("class P:\n    def x(self):\n        return 7", "P().x()", "7"),
    "import": ("import json", "json.dumps([1])", "[1]"),
    "import as": ("import math as m", "m.floor(1.5)", "1"),
    "import from": ("from math import floor as fl", "fl(1.5)", "1"),
    "docstring": (
        'def f():\n    """One.\n\n    Two.\n    """\n    return 1', "f.__name__, f()", '["f", 1]'),
    "loop variable": ("for i in range(3):\n    pass", "i", "2"),
    "unpacked": ("a, *b = [1, 2, 3]", "a, b", "[1, [2, 3]]"),
    "walrus": ("if (w := 4) > 3:\n    v = w", "v + w", "8"),
    "global of a function": ("def f():\n    global g\n    g = 5\nf()", "g", "5"),
}  # fmt: skip

NAMED = {
    "instance": ("class P:\n    pass\nx = P()", "x", "P"),
    "pattern": ("import re\nx = re.compile('a')", "x", "Pattern"),
    "counter": ("from collections import Counter\nx = Counter('aab')", "x", "Counter"),
    "iterator": ("x = iter([1, 2])", "x", "iterator"),
    "what holds itself": ("x = [1]\nx.append(x)", "x", "not plain"),
    "what shares with what does not go": (
        "x = [[1], lambda: 1]\ny = x[0]", "x", "not plain"),
    "default that is computed": ("n = 1\ndef x(v=n):\n    return v", "x", "function"),
    "lambda with a computed default": ("n = 1\nx = lambda v=n: v", "x", "function"),
    "lambda in a branch": ("if 1:\n    x = lambda: 1\nelse:\n    x = lambda: 2", "x", "function"),
    "lambda of a run that failed": ("x = lambda: 1\n{}['no']", "x", "function"),
    "alias of an import that changed": (
        "import json as m\nx = m.dumps\nimport math as m", "x", "function"),
    "list of functions": ("x = [lambda: 1]", "x", "list"),
}  # fmt: skip


@pytest.fixture
def servers(tmp_path: Path) -> dict[str, Any]:
    return {"records": test_server("records", tmp_path / "updates.jsonl", "0")}


@pytest.fixture
async def confined(running: MakeApp, servers: dict[str, Any]) -> AsyncIterator[Running]:
    async with running(servers) as toolfold:
        await needs_cpython(toolfold)
        yield toolfold


async def needs_cpython(toolfold: Running) -> None:
    works, why = await toolfold.app.tiers.examine()
    if not works:
        pytest.skip(f"There is no CPython tier here: {why}")


async def text(toolfold: Running, code: str, session: SessionRequest = MINE) -> str:
    return (await toolfold.run(code, session=session)).text


async def test_names_go_along_to_cpython_though_no_program_there_uses_them(
    running: MakeApp, servers: dict[str, Any]
) -> None:
    sessions = {kind: SessionRequest(f"s{at}") for at, kind in enumerate(CARRIED)}
    tiers, found, later = {}, {}, {}
    async with running(servers) as toolfold:
        await needs_cpython(toolfold)
        for kind, (define, ask, _) in CARRIED.items():
            session = sessions[kind]
            await text(toolfold, define, session)
            before = toolfold.app.sessions.show(str(session.name)).tier
            found[kind] = [await text(toolfold, code, session) for code in (MOVE, ask)]
            tiers[kind] = (before, toolfold.app.sessions.show(str(session.name)).tier)
    async with running(servers) as toolfold:
        for kind, (_, ask, _) in CARRIED.items():
            later[kind] = await text(toolfold, ask, sessions[kind])

    assert tiers == dict.fromkeys(CARRIED, ("monty", "cpython"))
    assert found == {kind: ["moved", value] for kind, (_, _, value) in CARRIED.items()}
    assert later == {kind: value for kind, (_, _, value) in CARRIED.items()}


@pytest.mark.parametrize("kind", NAMED)
async def test_what_does_not_go_along_is_named_and_then_unknown(
    confined: Running, kind: str
) -> None:
    define, name, why = NAMED[kind]
    await text(confined, define)
    before = confined.app.sessions.show("mine").tier
    told = (await text(confined, MOVE)).partition("Not carried over to CPython")[2]
    later = [await text(confined, name), await text(confined, "1")]

    assert before == "monty"
    assert f" {name} (" in told
    assert why in told
    assert "'x' is not defined" in later[0]
    assert later[1] == "1"


async def test_a_program_that_binds_the_name_itself_is_told_nothing(confined: Running) -> None:
    await text(confined, "import re\nx = re.compile('a')\ny = 1\ndef f():\n    return 1")

    assert await text(confined, f"del y\nx = 2\n{MOVE}") == "moved"
    assert await text(confined, "x + f()") == "3"


async def test_a_program_that_reads_the_name_before_it_binds_it_is_refused(
    confined: Running,
) -> None:
    await text(confined, "import re\nx = re.compile('a')")
    for code in ("y = x\nx = 2", "x = x", "if y:\n    x = 2\nx", "def g():\n    return x\nx = 2"):
        assert "x cannot be carried over" in await text(confined, f"import io\ny = 0\n{code}"), code


async def test_code_that_fails_in_both_leaves_all_in_monty_and_says_nothing(
    confined: Running,
) -> None:
    await text(confined, "import re\nx = re.compile('a+')")
    failed = await text(confined, "{}['missing']")

    assert "Not carried" not in failed
    assert await text(confined, "x.findall('caat')") == '["aa"]'


async def test_an_import_that_is_gone_is_named_and_stops_nothing(
    running: MakeApp, servers: dict[str, Any]
) -> None:
    async with running(servers) as toolfold:
        await needs_cpython(toolfold)
        await text(toolfold, "import records\nput = records.put\nkept = 4")
    async with running({}) as toolfold:
        told = await text(toolfold, MOVE)
        kept = await text(toolfold, "kept")

    assert told.startswith("moved")
    assert "records (it could not be made there)" in told
    assert "put (it could not be made there)" in told
    assert kept == "4"


async def test_an_alias_goes_no_more_once_its_module_is_another(confined: Running) -> None:
    await text(confined, "import json as m\nx = m.dumps")
    await text(confined, "import math as m")

    assert "x (" in (await text(confined, MOVE)).partition("Not carried over to CPython")[2]


async def test_a_lambda_of_monty_is_there_after_a_run_in_cpython(
    running: MakeApp, tmp_path: Path
) -> None:
    papers = tmp_path / "papers"
    for name in ("reports/a.draft.md", "reports/b.md", "archive/c.md"):
        (papers / name).parent.mkdir(parents=True, exist_ok=True)
        (papers / name).write_text("text")
    (papers / "calibration.csv").write_text("n,v\n1,2\n3,4\n")
    first = f"""
import json
P="{papers}"
ls=lambda d:[x.split("] ",1)[1] for x in papers.list_directory(path=P+"/"+d).splitlines() if x.startswith("[FILE]")]
moved=sorted(n for n in ls("reports") if n.endswith(".draft.md"))
print(moved)
"""  # noqa: E501  # as an agent wrote it
    second = """
import csv,io,json
from decimal import Decimal
t=papers.read_text_file(path=P+"/calibration.csv")
rows=list(csv.DictReader(io.StringIO(t)))
print(len(rows), sum(map(Decimal, ["1","2"])))
"""
    third = (
        'files=sorted([(n,d) for d in ("reports","archive") for n in ls(d)])\nprint(files, moved)'
    )
    servers = {"papers": entry(node_server("filesystem", str(papers)))}
    async with running(servers) as toolfold:
        await needs_cpython(toolfold)
        found = [(await text(toolfold, code)).strip() for code in (first, second, third)]

    assert found == [
        "['a.draft.md']",
        "2 3",
        "[('a.draft.md', 'reports'), ('b.md', 'reports'), ('c.md', 'archive')] ['a.draft.md']",
    ]


async def test_a_run_that_loses_its_process_leaves_all_in_monty_and_says_so(
    confined: Running,
) -> None:
    await text(confined, "import re\nx = re.compile('a+')\nkept = 3")
    told = await text(confined, "import os\nimport io\nos._exit(1)")

    assert "Not carried" not in told
    assert await text(confined, "kept + len(x.findall('caat'))") == "4"
