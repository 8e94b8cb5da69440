"""Reads of a loop begin before their turn, and nobody can tell."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from support import MakeApp, Running, test_server

from toolfold.execution.runtime import SessionRequest

OVERLAPPING = {
    "loop": "out = []\nfor n in range(8):\n    out.append(library.meet(id=n))\nout",
    "keys": "xs = [{'id': k} for k in 'abcdefgh']\nout = {}\nfor n in xs:\n"
    "    out[n['id']] = library.meet(id=n['id'])\nlist(out.values())",
    "comprehension": "names = list(range(8))\n[library.meet(id=f'x{n}') for n in names]",
    "items": "d = dict(zip('abcdefgh', range(8)))\n"
    "list({k: library.meet(id=v + 1) for k, v in d.items()}.values())",
    "generator": "xs = ['a', 'b', 'c', 'd']\nlist(library.meet(id='p-' + x) for x in xs)",
    "caught": "out = []\nfor i, x in enumerate(['a', 'b', 'c', 'd']):\n    try:\n"
    "        r = library.meet(id=x)\n    except Exception as e:\n        r = str(e)\n"
    "    if i > 1:\n        print(i)\n    out.append(r)\nout",
    "imported": "from library import meet\nout = []\nfor n in (1, 2, 3, 4):\n"
    "    answer = meet(id=n)\n    out += [answer]\nout",
}

SERIAL = {
    "one thing again and again": "for n in range(4):\n    print(library.look(id=7))",
    "a write between": "for n in range(4):\n    library.look(id=n)\n    library.write(id=n)",
    "what was read decides": "at = 0\nfor n in range(4):\n"
    "    at = library.look(id=at)['pages']\nat",
    "it may end early": "for n in range(4):\n    if library.look(id=n)['pages']:\n        break",
    "not in every turn": "for n in range(4):\n    if n % 2:\n        library.look(id=n)",
    "an unknown function": "def f(x):\n    return library.write(id=x)\n"
    "for n in range(4):\n    library.look(id=n)\n    f(n)",
    "the list grows": "xs = [1]\nfor n in xs:\n    if library.look(id=n) and len(xs) < 4:\n"
    "        xs.append(n + 1)",
    "a clock": "import time\nfor n in range(2):\n    library.look(id=n)\n    time.sleep(0.01)",
}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "calls.log"


def library(log: Path, together: int = 1) -> dict[str, Any]:
    return {"library": test_server("library", log, together)}


async def on_both(toolfold: Running) -> list[str]:
    works, _ = await toolfold.app.tiers.examine()
    return ["", "import sqlite3\n"] if works else [""]


async def test_reads_of_a_loop_are_under_way_together(running: MakeApp, log: Path) -> None:
    async with running(library(log, 4)) as toolfold:
        for before in await on_both(toolfold):
            for name, code in OVERLAPPING.items():
                result = await toolfold.run(before + code)
                assert result.success, result.text
                assert set(result.value) == {"together"}, name


async def test_what_is_not_sure_to_be_independent_is_done_in_turn(
    running: MakeApp, log: Path
) -> None:
    async with running(library(log)) as toolfold:
        found = [await calls_of(toolfold, log, each) for each in await on_both(toolfold)]
    async with running(library(log), limits__read_ahead=0) as toolfold:
        plain = await calls_of(toolfold, log, "")

    assert found == [plain] * len(found)


async def calls_of(toolfold: Running, log: Path, before: str) -> dict[str, list[str]]:
    """Run every program that is to be done in turn; return what each called."""
    found = {}
    for name, code in SERIAL.items():
        result = await toolfold.run(before + code)
        assert result.success, result.text
        found[name] = log.read_text().splitlines()
        log.unlink()
    return found


async def test_a_failure_comes_in_its_turn_and_few_calls_after_it(
    running: MakeApp, log: Path
) -> None:
    code = "for n in range(100):\n    print(n, library.read(id=n))"
    async with running(library(log)) as toolfold:
        result = await toolfold.run(code)
        called = log.read_text().splitlines()
        recorded = toolfold.app.shared.journal.find(result.run_id)

    assert result.output == "".join(
        f"{n} {{'id': {n}, 'pages': 10, 'writes': 0}}\n" for n in range(3)
    )
    assert "There is no book 3." in result.text
    assert "_toolfold" not in result.text
    assert 4 <= len(called) <= 4 + 8
    assert {f"{each.tool[8:]} {each.arguments.head}" for each in recorded.calls} >= {
        f'read {{"id":{n}}}' for n in range(4)
    }


async def test_what_was_read_before_something_changed_is_read_again(
    running: MakeApp, log: Path
) -> None:
    hidden = "change = library.write"
    code = (
        "xs = [1, 2, 4, 5]\nout = []\nfor n in xs:\n    out.append(library.look(id=n)['writes'])\n"
        "    out.index(out[0])\nlibrary.write(id=1)\n"
        "[library.look(id=n)['writes'] for n in xs]"
    )
    async with running(library(log)) as toolfold:
        assert (await toolfold.run(f"{hidden}\n1")).success
        result = await toolfold.run(code)

    assert result.value == [1, 1, 1, 1], result.text


async def test_calls_and_limits_count_as_without(running: MakeApp, log: Path) -> None:
    code = "for n in range(4):\n    library.look(id=n)"
    async with running(library(log), limits__calls=4) as toolfold:
        result = await toolfold.run(code)
        more = await toolfold.run(code.replace("4", "5"))

    assert result.success, result.text
    assert [(each.tool, each.completed) for each in result.calls] == [("library.look", 4)]
    assert "more than 4 tool calls" in more.text


@pytest.mark.parametrize("rule", ['action = "ask"', 'action = "deny"\nmore_than = 2'])
async def test_what_a_rule_is_about_is_not_read_ahead(
    rule: str, running: MakeApp, log: Path, home: Path
) -> None:
    (home / "config").mkdir(parents=True)
    (home / "config" / "policy.toml").write_text(f'[[policy]]\ntools = ["library.look"]\n{rule}\n')
    async with running(library(log)) as toolfold:
        result = await toolfold.run("for n in range(8):\n    print(library.look(id=n))")

    assert not result.success
    assert len(log.read_text().splitlines() if log.exists() else []) == (2 if "deny" in rule else 0)


async def test_a_session_keeps_no_trace_of_it(running: MakeApp, log: Path) -> None:
    mine = SessionRequest("mine")
    async with running(library(log)) as toolfold:
        await toolfold.run("xs = [1, 2]\nys = [library.look(id=x) for x in xs]", session=mine)
        known = toolfold.app.sessions.show("mine")

    assert "_toolfold" not in repr(known)


SOURCES = (
    *("xs", "range(4)", "xs[1:]", "sorted(xs)", "range(k, k + 3)", "reversed(xs)", "[5, 3, 4]"),
    *("ids", "rows", "'abc'", "['a', 'b3', 'c']", "set(xs)", "list(xs)", "(n for n in xs)"),
)
CALLS = (
    *("library.look(id=n)", "library.read(id=n)", "library.look(id=f'{n}-{k}')"),
    *("library.look(id=n + 1)", "library.look(id='p' + n)", "library.read(id=n['id'])"),
    *("library.look(id=[n, k])", "library.look(id=k)", "library.look(id=total)"),
    *("library.look({'a': n}['a'])", "library.look(id=n * k)", "library.look(id=-n)"),
)
STATEMENTS = (
    *("r = {}", "out.append({})", "total += {}['pages']", "seen[str(n)] = {}", "print(n, {})"),
    *("try:\n        r = {}\n    except Exception as e:\n        r = str(e)", "r = {} if k else 0"),
    *("if total < 40:\n        r = {}", "r = [{} for n in range(2)]", "out.append(({}, {}))"),
    *("for m in range(2):\n        out.append({})", "r = len(out) and {}", "r = {}['writes']"),
)
OTHERS = (
    *("library.write(id=n)", "print(r)", "k += 1", "if n == 2:\n        continue", "out.append(n)"),
    *("if total > 30:\n        break", "n = 1", "r = 1", "xs = [9]", "seen.update(a=n)", "pass"),
    *(
        "if str(n) == '4':\n        raise ValueError(n)",
        "progress(1)",
        "change(1)",
        "ids.append(7)",
    ),
)
BEFORE = """
import library
def change(n):
    library.write(id=n)
xs, ids, rows = [1, 2, 4, 5], [11, 12, 13, 14, 15], [{'id': 1}, {'id': 2, 'x': 3}, {'x': 1}]
out, seen, total, r, k = [], {}, 0, None, 2
"""
WHOLE = ("[{} for n in {}]", "{{str(n): {} for n in {}}}", "sum(len(str({})) for n in {})")


def made_program(seed: int) -> str:
    """Make up a program of loops, some of which only read."""
    rng, lines = Random(seed), [BEFORE]
    for _ in range(rng.randint(1, 3)):
        if rng.random() < 0.25:
            lines.append(
                f"print({rng.choice(WHOLE).format(rng.choice(CALLS), rng.choice(SOURCES))})"
            )
            continue
        lines.append(f"for n in {rng.choice(SOURCES)}:")
        for _ in range(rng.randint(1, 3)):
            call = rng.choice(CALLS)
            is_call = rng.random() < 0.6
            lines.append(
                "    "
                + (rng.choice(STATEMENTS).replace("{}", call) if is_call else rng.choice(OTHERS))
            )
    return "\n".join([*lines, "[out, seen, total, r, k]"])


async def compared(running: MakeApp, tmp_path: Path, seeds: range, *, is_cpython: bool) -> None:
    """Run programs with and without, and see that they do the same."""
    log = tmp_path / "calls.log"
    found: dict[int, list[Any]] = {}
    for most in (0, 8):
        async with running(library(log), limits__read_ahead=most) as toolfold:
            if is_cpython and len(await on_both(toolfold)) == 1:
                pytest.skip("There is no CPython tier here.")
            found[most] = []
            for seed in seeds:
                log.write_text("")
                before = "import sqlite3" if is_cpython else ""
                result = await toolfold.run(before + made_program(seed))
                calls = Counter(log.read_text().splitlines())
                seen = result.output, result.value, result.error
                found[most].append((seen, calls, result.success))
    for seed, without, ahead in zip(seeds, found[0], found[8], strict=True):
        assert ahead[0] == without[0], made_program(seed)
        more = ahead[1] - without[1]
        assert not without[1] - ahead[1], made_program(seed)
        assert not any(each.startswith("write") for each in more), made_program(seed)
        assert sum(more.values()) <= (0 if without[2] else 8), made_program(seed)


@pytest.mark.parametrize("is_cpython", [False, True])
async def test_programs_do_the_same_with_and_without(
    is_cpython: bool, running: MakeApp, tmp_path: Path
) -> None:
    await compared(running, tmp_path, range(40 if not is_cpython else 10), is_cpython=is_cpython)


@pytest.mark.soak
@pytest.mark.parametrize("is_cpython", [False, True])
async def test_thousands_of_programs_do_the_same_with_and_without(
    is_cpython: bool, running: MakeApp, tmp_path: Path
) -> None:
    await compared(running, tmp_path, range(2_000), is_cpython=is_cpython)
