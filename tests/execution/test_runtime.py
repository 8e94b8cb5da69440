import anyio
import pytest
from support import MakeApp, test_server

NULL = {"null": test_server("null")}


@pytest.mark.timeout(180)
async def test_five_thousand_calls_succeed_by_default(running: MakeApp) -> None:
    async with running(NULL) as toolfold:
        result = await toolfold.run(
            "import null\ntotal = 0\nfor i in range(5000):\n    null.echo(value=i)\n"
            "    total += 1\ntotal"
        )

    assert result.value == 5000, result.text
    assert [(count.tool, count.completed) for count in result.calls] == [("null.echo", 5000)]


@pytest.mark.parametrize(
    ("ending", "settings", "reason"),
    [
        ("null.echo(value=1)", {"limits__calls": 4}, "more than 4 tool calls"),
        ("while True: pass", {"limits__guest_time_s": 1}, "ran for more than 1 s"),
        ("null.missing", {}, ""),
        ("raise ValueError('enough')", {}, "ValueError: enough"),
        ("{}['missing']", {}, "KeyError"),
    ],
)
async def test_a_run_that_stops_early_says_what_had_completed(
    ending: str, settings: dict[str, object], reason: str, running: MakeApp
) -> None:
    code = f"import null\nnull.put(value=1)\nfor i in range(3):\n    null.echo(value=i)\n{ending}"
    async with running(NULL, **settings) as toolfold:
        result = await toolfold.run(code)
        after = await toolfold.run("1 + 1")

    assert not result.success
    assert reason in result.text
    if ending == "null.missing":  # found before anything ran
        assert "Nothing was run" in result.text
    else:
        assert "Calls completed before it stopped: null.put 1, null.echo 3." in result.text
    assert after.value == 2


async def test_a_run_stopped_by_the_wall_clock_says_which_call_is_in_doubt(
    running: MakeApp,
) -> None:
    servers = {**NULL, "slow": test_server("faulty", "slow", "60")}
    async with running(servers, limits__wall_time_s=8.0) as toolfold:
        await toolfold.app.catalog.learn()
        with anyio.fail_after(40):
            result = await toolfold.run(
                "import null, slow\nnull.put(value=1)\nslow.put(value=2)\nprint('never')"
            )

    assert result.error is not None
    assert result.error.kind == "timeout"
    assert "longer than 8 s of wall time" in result.text
    assert "completed before it stopped: null.put 1." in result.text
    assert "Begun, outcome not known: slow.put 1." in result.text


async def test_the_reply_keeps_the_head_and_the_tail_of_long_output(running: MakeApp) -> None:
    async with running({}) as toolfold:
        result = await toolfold.run("for i in range(5000):\n    print('line', i)")

    assert len(result.text) < 9_000
    assert result.text.startswith("line 0\n")
    assert "\nline 4999\nWhat was printed has" in result.text
    assert "characters left out" in result.text


async def test_every_run_has_its_times(running: MakeApp) -> None:
    async with running(NULL) as toolfold:
        result = await toolfold.run("import null\nnull.echo(value=1)")

    times = result.times
    assert min(times.plan_ms, times.check_ms, times.sandbox_ms, times.upstream_ms) > 0


async def test_runs_at_the_same_time_do_not_mix(running: MakeApp) -> None:
    outputs: dict[int, str] = {}

    async with running(NULL, workers=4) as toolfold:

        async def run(number: int) -> None:
            code = f"import null\nx = {number}\nfor _ in range(5): null.echo(value=x)\nprint(x)"
            outputs[number] = (await toolfold.run(code)).text

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(run, number)

    assert outputs == {number: str(number) for number in range(20)}


async def test_others_go_on_while_long_code_is_read(running: MakeApp) -> None:
    turns = 0

    async def go_on() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with running({}) as toolfold, anyio.create_task_group() as others:
        others.start_soon(go_on)
        plan = await toolfold.app.runtime._plan("x\n" * 50_000)
        others.cancel_scope.cancel()

    assert plan.names == {"x"}
    assert turns > 100
