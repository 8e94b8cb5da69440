"""What is particular to Monty: values that it cannot give away, and the walls around it."""

from pathlib import Path

import pytest
from guests import (
    Host,
    failure_kind,
    host_modules,
    process_of,
    run,
    run_in,
    running_sandbox,
    value_of,
)

from toolfold.sandbox.cpython.kernel import missing_walls
from toolfold.sandbox.monty import MontySandbox


@pytest.mark.parametrize("code", ["class A: pass\n{A(): 1}", "class A: pass\n[{A()}]"])
async def test_a_last_value_that_cannot_leave_the_sandbox_is_a_failure_of_the_code(
    sandbox: MontySandbox, code: str
) -> None:
    assert await failure_kind(sandbox, code) == "value"


@pytest.mark.parametrize("argument", ["{Empty(): 1}", "{Empty()}"])
async def test_an_argument_that_cannot_leave_the_sandbox_ends_the_run(
    sandbox: MontySandbox, argument: str
) -> None:
    host = Host()

    outcome = await run(sandbox, f"import host\nclass Empty: pass\nhost.echo({argument})", host)

    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.failure.line) == ("value", 3)
    assert "sandbox" in outcome.failure.message
    assert not host.calls


async def test_a_program_that_it_cannot_take_changes_nothing(sandbox: MontySandbox) -> None:
    async with sandbox.open(host_modules(), frozenset()) as session:
        await run_in(session, "x = 1\n1 / 0")
        await run_in(session, "x = 2\nclass A(dict): pass")
        outcome = await run_in(session, "x")

    assert outcome.value == 1


@pytest.mark.skipif(missing_walls() is not None, reason=str(missing_walls()))
async def test_its_workers_stand_behind_walls_of_the_kernel(sandbox: MontySandbox) -> None:
    async with sandbox.open(host_modules(), frozenset()) as session:
        await run_in(session, "1")
        lines = Path(f"/proc/{process_of(session)}/status").read_text().splitlines()

    status = dict(line.split(":\t", 1) for line in lines)
    assert (status["Name"], status["Seccomp"], status["NoNewPrivs"]) == ("monty", "2", "1")


async def test_where_the_walls_do_not_work_it_runs_without_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("toolfold.sandbox.walled._SOURCE", "/nowhere")

    async with running_sandbox() as sandbox:
        assert await value_of(sandbox, "1 + 1") == 2
        assert sandbox.binary is None

    assert ("without walls" in caplog.text) is (missing_walls() is None)
