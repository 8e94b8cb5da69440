"""The state of a run, as every door tells it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from support import MakeApp, Running, test_server

from toolfold.errors import NotFound
from toolfold.execution.trust.approvals import approvals_of, decided
from toolfold.journal.decisions import DecidedAction
from toolfold.journal.journal import journal_of
from toolfold.journal.runs import Run, newest, state_of
from toolfold.journal.runsdb import read_journal

RULES = '[[policy]]\naction = "ask"\ntools = "records.update"\n'
ASKS = "import records\nrecords.update(id=1, value='new')\n'updated'"


@pytest.fixture
async def toolfold(running: MakeApp, tmp_path: Path, home: Path) -> AsyncIterator[Running]:
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "policy.toml").write_text(RULES)
    async with running({"records": test_server("records", tmp_path / "updates")}) as opened:
        yield opened


def listed(toolfold: Running) -> dict[str, str]:
    """Return the states of all runs, by id, as `toolfold runs` lists them."""
    path = toolfold.app.config.directories.data / "runs.db"
    found: list[Run] = read_journal(path, lambda connection: newest(connection, 100)) or []
    return {run.id: state_of(run) for run in found}


def decide(toolfold: Running, run_id: str, action: Any) -> None:
    """Decide as `toolfold approve` and `toolfold reject` do."""
    config = toolfold.app.config
    approvals = approvals_of(config)
    approval = approvals.find(run_id)
    approvals.decide(approval.id, action, most=100, by="a test")
    written: DecidedAction = action
    journal_of(config).decide(approval.attempt, decided(approval, written, by="a test"))


async def test_a_run_that_needs_approval_waits(toolfold: Running) -> None:
    frozen = await toolfold.run(ASKS)

    assert listed(toolfold)[frozen.run_id] == "waiting"


async def test_after_a_rejection_the_run_is_denied(toolfold: Running) -> None:
    frozen = await toolfold.run(ASKS)
    decide(toolfold, frozen.run_id, "rejected")

    assert listed(toolfold)[frozen.run_id] == "denied"


async def test_where_nobody_answered_in_time_the_run_is_denied(
    running: MakeApp, tmp_path: Path, home: Path
) -> None:
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "policy.toml").write_text(RULES)
    servers = {"records": test_server("records", tmp_path / "updates")}
    async with running(servers, limits__approval_s=0.2) as toolfold:
        frozen = await toolfold.run(ASKS)
        before = listed(toolfold)[frozen.run_id]
        await anyio.sleep(0.3)
    async with running(servers, limits__approval_s=0.2) as toolfold:
        with anyio.fail_after(60):
            while listed(toolfold)[frozen.run_id] != "denied":
                await anyio.sleep(0.05)
        told = await toolfold.run(f"import runs\nruns.get({frozen.run_id!r})['state']")
        with pytest.raises(NotFound, match="waits for approval"):
            approvals_of(toolfold.app.config).find(frozen.run_id)

    assert before == "waiting"
    assert told.value == "denied"


async def test_after_approval_the_run_has_the_state_of_what_went_on_with_it(
    toolfold: Running,
) -> None:
    frozen = await toolfold.run(ASKS)
    decide(toolfold, frozen.run_id, "approved")
    resumed = await toolfold.app.runtime.resume(frozen.run_id)

    assert resumed.success, resumed.text
    assert listed(toolfold)[frozen.run_id] == "done"
    assert listed(toolfold)[resumed.run_id] == "done"


@pytest.mark.parametrize(
    ("code", "state"),
    [("1 + 1", "done"), ("1 / 0", "failed"), ("import records\nrecords.nope()", "invalid")],
)
async def test_other_runs_are_done_failed_or_invalid(
    toolfold: Running, code: str, state: str
) -> None:
    ran = await toolfold.run(code)

    assert listed(toolfold)[ran.run_id] == state
    told = await toolfold.run(f"import runs\nruns.get({ran.run_id!r})['state']")
    assert told.value == state
