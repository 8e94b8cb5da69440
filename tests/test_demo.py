import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from support import ROOT, node_server

from toolfold.journal.journal import Journal
from toolfold.journal.runs import Origin
from toolfold.tokens import count_tokens

_ROW = re.compile(
    r"^(?P<task>\S.*?) +(?P<way>direct|code) +(?P<calls>[\d,]+) +(?P<tokens>[\d,]+)"
    r" +(?P<tool_s>[\d.]+) s +(?P<projected_s>[\d.]+) s$",
    re.MULTILINE,
)

# The servers start in seconds; a machine that is busy with other tests takes longer.
pytestmark = pytest.mark.timeout(180)


class Row(NamedTuple):
    calls: int
    tokens: int
    tool_s: float
    projected_s: float


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "examples")
    import demo

    return demo


def rows_of(report: str) -> dict[tuple[str, str], Row]:
    return {
        (match["task"], match["way"]): Row(
            calls=int(match["calls"].replace(",", "")),
            tokens=int(match["tokens"].replace(",", "")),
            tool_s=float(match["tool_s"]),
            projected_s=float(match["projected_s"]),
        )
        for match in _ROW.finditer(report)
    }


def run_demo(*arguments: str, home: Path) -> str:
    home.mkdir()
    command = [sys.executable, str(ROOT / "examples" / "demo.py"), "--quick", *arguments]
    environ = os.environ | {"HOME": str(home), "TMPDIR": str(home)}
    done = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("server", ["npm", "python"])
def test_the_demo_shows_one_call_and_fewer_tokens_by_code(server: str, tmp_path: Path) -> None:
    if server == "npm":
        node_server("memory")  # skips the test where it cannot run

    report = run_demo("--server", server, home=tmp_path / "home")

    rows = rows_of(report)
    calls = {key: row.calls for key, row in rows.items()}
    assert calls == {
        ("look up the tools", "code"): 2,
        ("update 5 records", "direct"): 10,
        ("update 5 records", "code"): 1,
        ("five steps among 5", "direct"): 5,
        ("five steps among 5", "code"): 1,
        ("how many of 5 active?", "direct"): 1,
        ("how many of 5 active?", "code"): 1,
    }
    for task in ("update 5 records", "five steps among 5", "how many of 5 active?"):
        assert 0 < rows[task, "code"].tokens < rows[task, "direct"].tokens
    for row in rows.values():
        assert row.projected_s == pytest.approx(row.tool_s + row.calls * 4.27, abs=0.1)
    assert "left the same graph" in report
    assert "ledger has the same tokens" in report
    said = re.search(r"([\d,]+) tokens passed in place of ([\d,]+)\.", report)
    assert said is not None
    passed, direct = (int(each.replace(",", "")) for each in said.groups())
    jobs = ("update 5 records", "five steps among 5", "how many of 5 active?")
    apart = sum(rows[job, "direct"].tokens - rows[job, "code"].tokens for job in jobs)
    assert 0 < direct - passed < apart  # by the definitions, which are not in the ledger's line
    assert (apart - (direct - passed)) % len(jobs) == 0
    assert "\x1b" not in report
    assert max(map(len, report.splitlines())) <= 100
    assert list((tmp_path / "home").iterdir()) == []  # neither files of its own nor of the user's


def test_the_commands_that_the_demo_ends_with_work(
    demo: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("TOOLFOLD_HOME", str(tmp_path))
    demo.print_next_steps()
    commands = [line for line in capsys.readouterr().out.splitlines() if line.startswith("    ")]

    run, doctor = [
        subprocess.run(shlex.split(command), capture_output=True, text=True, check=True).stdout
        for command in commands
    ]

    assert "records.add_observations" in run
    assert "records: 9 tools" in doctor


def test_without_node_the_demo_says_so_and_runs_on_python(
    demo: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")

    assert demo.choose_server() == "python"
    assert "Node.js is not installed" in capsys.readouterr().out


async def test_the_demo_fails_when_a_way_loses_an_update(demo: ModuleType) -> None:
    class Way:
        name = "direct"

        def __init__(self, *, loses: int) -> None:
            self.model = self
            self.spent = demo.Spent(tokens=0)
            self._loses = loses

        def begin(self) -> None: ...

        async def fill(self, records: object) -> None: ...

        async def do(self, job: object, size: int) -> str:
            return f"{size} records updated"

        async def read(self) -> list[object]:
            records: list[object] = demo.some_records(5, counts=(0, 1))
            return records[self._loses :]

    await demo.compare([demo.INCREMENT], 5, Way(loses=0), Way(loses=0))
    with pytest.raises(demo.Disagreement):
        await demo.compare([demo.INCREMENT], 5, Way(loses=0), Way(loses=1))
    with pytest.raises(demo.Disagreement):
        await demo.compare([demo.INCREMENT], 5, Way(loses=1))


def test_the_demo_fails_when_the_ledger_has_other_tokens(demo: ModuleType, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "runs.db", days=1, max_bytes=1 << 20, code_bytes=1000)
    with journal.opened(), journal.begin(Origin(), "1 + 1") as run:
        run.end(failure=None, reply="2")
    right = count_tokens('{"name":"execute_code","arguments":{"code":"1 + 1"}}') + 1

    def row(tokens: int) -> object:
        return demo.Row(task="add", way="code", spent=demo.Spent(tokens=tokens), code="1 + 1")

    [account] = demo.agree_with_ledger([row(right + 100)], 900, 100, tmp_path / "runs.db")
    assert account.sent == right
    with pytest.raises(demo.Disagreement):
        demo.agree_with_ledger([row(right + 101)], 900, 100, tmp_path / "runs.db")


def test_34_of_50_records_are_active(demo: ModuleType) -> None:
    for size, active in [(5, 3), (50, 34), (1000, 680)]:
        statuses = [record["observations"][1] for record in demo.some_records(size)]
        assert statuses.count("status: active") == active
