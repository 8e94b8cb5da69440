"""`toolfold savings`, as a user reads it."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from machine import Machine
from support import catalogue, python, test_server

from toolfold.catalog.tool import definition, listing
from toolfold.entrypoints.commands.estimate import Estimate, ServerCost, as_json_value, text
from toolfold.entrypoints.commands.price import Price
from toolfold.entrypoints.commands.savings_text import money
from toolfold.journal.journal import Journal
from toolfold.journal.runs import Origin
from toolfold.tokens import count_tokens

DAY_S = 86_400.0


class Offer:
    """The definitions of a server with two tools."""

    listings = (
        listing(
            "crm",
            {f"crm.{name}": definition(name, f"To {name} it.", {}) for name in ("find", "drop")},
        ),
    )


@contextmanager
def journal_of(machine: Machine, *, days_ago: float = 0.0) -> Iterator[Journal]:
    path = machine.home / ".local/share/toolfold/runs.db"
    journal = Journal(
        path, days=30, max_bytes=1 << 29, code_bytes=10_000,
        clock=lambda: time.time() - days_ago * DAY_S,
    )  # fmt: skip
    with journal.opened():
        yield journal


def one_run(journal: Journal, *, client: str, calls: int, answer: str) -> None:
    with journal.begin(Origin(client=client, project="/p"), "import crm") as run:
        for number in range(calls):
            with run.call("crm.find", {"id": number}) as call:
                call.answer = answer
        with run.call("tools.read", {"uri": "a://b"}) as call:
            call.answer = "short"
        run.end(failure=None, reply="done")
        run.offer(Offer())


@pytest.fixture
def used(machine: Machine) -> Machine:
    """A user who ran something ten days ago, and twice today."""
    with journal_of(machine, days_ago=10) as journal:
        one_run(journal, client="relay-1", calls=2, answer="an old answer " * 50)
    with journal_of(machine) as journal:
        one_run(journal, client="relay-2", calls=20, answer="a long answer " * 100)
        one_run(journal, client="cli", calls=1, answer="a long answer " * 100)
    return machine


def read(machine: Machine, *options: str) -> Any:
    ran = machine.run("savings", "--json", *options)
    assert (ran.status, ran.err) == (0, "")
    return json.loads(ran.out)


def test_savings_are_shown_beside_both_ways_of_calling_tools_directly(used: Machine) -> None:
    found = read(used)
    ran = used.run("savings")

    lines = ran.out.splitlines()
    assert lines[0].startswith("3 runs with 26 calls of tools since ")
    figures = {line.split("  ")[0].strip(): line for line in lines[2:5]}
    for title, key in {
        "passed through the model": "passed",
        "by direct calls, definitions deferred": "deferred",
        "by direct calls, all definitions loaded": "loaded",
    }.items():
        line = next(line for name, line in figures.items() if name.startswith(title))
        assert f"{found[key]:,}" in line
        assert "█" in line or "▏" in line
    assert f"{1 - found['passed'] / found['deferred']:.1%} saved" in lines[3]
    assert found["saved"] == found["deferred"] - found["passed"] > 0
    assert max(map(len, lines)) <= 120


def test_groups_add_up_to_the_whole(used: Machine) -> None:
    whole = read(used)
    for by in ("run", "day", "door"):
        groups = read(used, "--by", by)["by"]
        for key in ("runs", "calls", "passed", "deferred", "loaded", "saved"):
            assert sum(group[key] for group in groups.values()) == whole[key], (by, key)

    assert len(read(used, "--by", "run")["by"]) == 3
    assert len(read(used, "--by", "day")["by"]) == 2
    assert read(used, "--by", "door")["by"].keys() == {"mcp", "cli"}


def test_tools_and_servers_are_listed_with_the_most_tokens_first(used: Machine) -> None:
    tools = read(used, "--by", "tool")["by"]
    servers = read(used, "--by", "server")["by"]
    lines = used.run("savings", "--by", "tool").out.splitlines()

    assert [(name, use["calls"]) for name, use in tools.items()] == [
        ("crm.find", 23),
        ("tools.read", 3),
    ]
    assert servers["crm"] == tools["crm.find"]
    expected = sum(
        count_tokens(f'{{"name":"find","arguments":{{"id":{number}}}}}') + count_tokens(answer)
        for calls, answer in ((2, "an old answer " * 50), (20, "a long answer " * 100),
                              (1, "a long answer " * 100))
        for number in range(calls)
    )  # fmt: skip
    assert tools["crm.find"]["tokens"] == expected
    assert lines[-2].startswith("crm.find")
    assert lines[-2].endswith(f"{expected:,}")


@pytest.mark.parametrize(("since", "runs"), [("7d", 2), ("240h", 2), ("2w", 3), ("2020-01-01", 3)])
def test_since_takes_a_date_or_how_long_ago(used: Machine, since: str, runs: int) -> None:
    assert read(used, "--since", since)["runs"] == runs


def test_a_price_and_a_number_of_users_make_dollars(used: Machine) -> None:
    found = read(used, "--price", "3", "--users", "200")
    said = used.run("savings", "--price", "3", "--users", "200").out.splitlines()[-1]

    assert found["dollars"] == round(found["saved"] * 200 * 3 / 1_000_000, 2) > 0
    assert said == (
        f"At $3.00 for a million tokens, ${found['dollars']:,.2f} were saved for 200 users who "
        "work like this."
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--since", "yore"], "--since takes a date"),
        (["--since", "99999999d"], "--since takes a date"),
        (["--price", "-1"], "--price takes dollars"),
        (["--price", "nan"], "--price takes dollars"),
        (["--users", "0"], "--users takes a number of people"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    machine: Machine, options: list[str], words: str
) -> None:
    ran = machine.run("savings", *options)

    assert (ran.status, ran.out) == (2, "")
    assert words in ran.err


def test_without_runs_there_is_nothing_to_show(machine: Machine) -> None:
    assert machine.run("savings").out == "No run is in the journal yet.\n"
    assert read(machine)["runs"] == 0


def test_where_more_passed_than_direct_calls_would_have_that_is_said(machine: Machine) -> None:
    with journal_of(machine) as journal:
        with journal.begin(Origin(client="relay"), "import crm\n" * 30) as run:
            with run.call("crm.find", {"id": 1}) as call:
                call.answer = "no"
            run.end(failure=None, reply="It is a long story. " * 20)

    assert "% more passed" in machine.run("savings").out
    assert read(machine)["saved"] < 0


def estimate(machine: Machine, *options: str) -> str:
    done = subprocess.run(
        [python(), "-m", "toolfold", "savings", "--estimate", *options],
        capture_output=True, text=True, cwd=machine.project, timeout=100,
        env={"HOME": str(machine.home), "PATH": str(machine.home), "TOOLFOLD_NO_DAEMON": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.timeout(120)
def test_an_estimate_reads_the_clients_asks_the_servers_and_changes_nothing(
    machine: Machine,
) -> None:
    servers = {"git": test_server("replay", catalogue("git"))}
    machine.write("claude", json.dumps({"mcpServers": servers}))
    machine.write("cursor", json.dumps({"mcpServers": {"null": test_server("null")}}))
    broken = {"mcpServers": {"broken": {"command": str(machine.home / "nothing")}}}
    machine.write("vscode", json.dumps({"servers": broken["mcpServers"]}))
    before = {client: machine.path(client).read_bytes() for client in ("claude", "cursor")}

    found = json.loads(estimate(machine, "--json", "--price", "3"))

    costs = {each["server"]: each for each in found["servers"]}
    recorded = json.loads(catalogue("git").read_text())["tools"]
    assert costs.keys() == {"git", "null"}
    assert costs["git"]["tools"] == len(recorded)
    assert costs["git"]["loaded"] == sum(
        count_tokens(
            json.dumps(
                {key: tool[key] for key in ("name", "description", "inputSchema")},
                ensure_ascii=False, separators=(",", ":"),
            )
        )
        for tool in recorded
    )  # fmt: skip
    assert costs["git"]["names"] == sum(count_tokens(f"mcp__git__{t['name']}\n") for t in recorded)
    assert found["loaded"] == sum(each["loaded"] for each in costs.values())
    assert 100 < found["toolfold"] < 260
    assert list(found["faults"]) == ["broken"]
    assert {client: machine.path(client).read_bytes() for client in before} == before
    assert not machine.servers_file.exists()


def test_an_estimate_without_any_server_says_so(machine: Machine) -> None:
    ran = machine.run("savings", "--estimate")

    assert (ran.status, ran.out) == (0, "Your clients name no server that could be asked.\n")


def test_an_estimate_is_a_line_for_each_server_the_dearest_first() -> None:
    found = Estimate(
        servers=(
            ServerCost(server="big", tools=100, loaded=40_000, names=1_000),
            ServerCost(server="small", tools=2, loaded=400, names=20),
        ),
        toolfold=190,
        faults={"gone": "it did not answer"},
    )
    lines = text(found, Price(3.0, 50)).splitlines()

    assert [line.split()[:4] for line in lines[3:6]] == [
        ["big", "100", "1,000", "40,000"],
        ["small", "2", "20", "400"],
        ["total", "102", "1,020", "40,400"],
    ]
    assert "!  gone: it did not answer" in lines
    assert "$6.03" in lines[-2]  # 40,210 tokens of 50 users
    assert as_json_value(found, Price(3.0, 50))["dollars"] == 6.03
    assert text(Estimate(servers=(), toolfold=1, faults={}), Price(None, 1)).startswith(
        "No server answered"
    )


def test_a_loss_is_said_to_be_one() -> None:
    assert list(money(-0.12, 3.0, 1)) == [
        "At $3.00 for a million tokens, it cost $0.12 more than direct calls would have."
    ]
