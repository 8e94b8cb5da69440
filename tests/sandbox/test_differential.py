"""Programs made by chance mean the same in both interpreters, or Monty refuses them."""

import ast
import os
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from corpus.reading import snippets
from generated import program
from support import write_config

from toolfold.app import App, running_app
from toolfold.config.config import load_config

Both = dict[str, App]
SOAK_S = 1_500
"""How long the soak may take; what was compared until then is told."""


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Both]:
    async with AsyncExitStack() as stack:
        apps = {}
        for tier in ("monty", "cpython"):
            home = tmp_path / tier
            home.mkdir()
            config = load_config(
                config_file=write_config(home / "mcp.json", {}),
                cwd=home,
                environ={"PATH": os.environ["PATH"], "HOME": str(home), "TOOLFOLD_HOME": str(home)},
                overrides={"sandbox": tier},
            )
            apps[tier] = await stack.enter_async_context(running_app(config))
        is_there, why = await apps["cpython"].runtime._tiers.examine()
        if not is_there:
            pytest.skip(f"there is no CPython tier here: {why}")
        yield apps


async def compare(both: Both, code: str) -> tuple[str, str]:
    """Return how a program fared, and what differs: Monty may refuse or stop, and never differ."""
    in_monty = await both["monty"].runtime.run(code)
    if not in_monty.success:
        return ("refused" if in_monty.text.startswith("Nothing was run") else "stopped"), ""
    in_cpython = await both["cpython"].runtime.run(code)
    if not in_cpython.success:
        return "silent", f"only CPython stops: {in_cpython.text}"
    ours = (in_monty.output, in_monty.value)
    if ours == (in_cpython.output, in_cpython.value):
        return "same", ""
    pairs = zip(in_monty.output.splitlines(), in_cpython.output.splitlines(), strict=False)
    lines = [f"monty: {one}\npython: {other}" for one, other in pairs if one != other]
    return "silent", "\n".join(lines) or f"values: {in_monty.value} {in_cpython.value}"


async def compare_all(both: Both, seeds: range) -> Counter[str]:
    fared: Counter[str] = Counter()
    end = time.monotonic() + SOAK_S
    for seed in seeds:
        code = program(seed)
        how, difference = await compare(both, code)
        fared[how] += 1
        assert how != "silent", f"seed {seed}\n{difference}\n\n{code}"
        if time.monotonic() > end:
            break
    return fared


async def test_programs_by_chance_mean_the_same_in_both_interpreters(both: Both) -> None:
    fared = await compare_all(both, range(150))

    assert fared["same"] > 50
    assert fared["stopped"] < 30


@pytest.mark.soak
async def test_twenty_thousand_programs_mean_the_same(
    both: Both, capsys: pytest.CaptureFixture[str]
) -> None:
    fared = await compare_all(both, range(1_000, 21_000))

    with capsys.disabled():
        print(f"\nprograms by chance: {dict(fared)}")
    assert fared.total() == 20_000, f"{fared.total()} in {SOAK_S} s"


async def test_no_program_of_the_corpus_is_silently_wrong_in_monty_alone(both: Both) -> None:
    wrong, right = [], 0
    for snippet in snippets():
        result = await both["monty"].runtime.run(snippet.code)
        if not result.success:
            continue
        if (result.output, result.value) == (snippet.output, snippet.value):
            right += 1
        elif "shop" not in snippet.code:
            wrong.append(snippet.name)

    assert wrong == []
    assert right >= 60


DEVIATIONS = [
    ("class A:\n    def __add__(self, other):\n        return 1", 1, "__add__"),
    ("def f(x):\n    print(x)\n    return True\nany(f(x) for x in [1, 2])", 4, "any() of calls"),
    ("try:\n    {}[3]\nexcept KeyError as error:\n    print(error.args)", 3, "KeyError"),
    ("hasattr('a', 'upper')", 1, "hasattr()"),
    ("x = 'a'\ngetattr(x, 'upper', None)", 2, "getattr()"),
    ("import re\nre.sub('a*', '-', 'baac')", 2, "re.sub()"),
    ("from datetime import datetime\ndatetime.strptime('09:00', '%H:%M')", 2, "strptime()"),
    ("x = 5\ntry:\n    x.bit_length()\nexcept Exception:\n    x = 0\nx", 3, ".bit_length"),
    ("sorted(['b'], key=str.lower)", 1, "str.lower"),
    ("d = {'a': 1}\nmax(d, key=d.get)", 2, ".get"),
]


@pytest.mark.parametrize(("code", "line", "construct"), DEVIATIONS)
async def test_what_monty_does_otherwise_is_refused_there_and_runs_in_cpython(
    both: Both, code: str, line: int, construct: str
) -> None:
    refused = await both["monty"].runtime.run(code)

    assert refused.text.startswith("Nothing was run; no tool was called.")
    assert any(
        each.startswith(f"Line {line}: ") and construct in each
        for each in refused.text.splitlines()
    ), refused.text
    assert (await both["cpython"].runtime.run(code)).success


@pytest.mark.parametrize(
    "code",
    [
        "[round(x, 2) for x in (2.675, 1.115, 1.005, -2.675, 5.0)]",
        "[round(7, 1), round(1234.5, -2), round(2.5), round(0.125, 2)]",
        "import re\nre.sub(r'\\s*,\\s*', ',', 'a , b')",
        "from datetime import datetime\nstr(datetime.strptime('2026-03-05', '%Y-%m-%d'))",
        "try:\n    {}['a']\nexcept KeyError as error:\n    print(f'no {error}')",
        "any(w.startswith('a') for w in ['b', 'a'])",
        "class A:\n    def __init__(self):\n        self.items = [1]\na = A()\na.items",
        "sorted({'a': 1}.items(), key=lambda pair: pair[1])",
        "'-'.join(dict.fromkeys('aba'))",
    ],
)
async def test_ordinary_programs_mean_the_same_in_monty(both: Both, code: str) -> None:
    assert await compare(both, code) == ("same", "")


def test_programs_by_chance_are_programs_and_stay_the_same() -> None:
    for seed in range(300):
        ast.parse(program(seed))
    assert program(7) == program(7) != program(8)
