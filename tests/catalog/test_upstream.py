import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from support import MakeApp, entry, node_server, test_server

PATIENCE = {"connect_timeout_s": 7}
DEAF = """
import json, os, sys, time
ANSWERS = {
    "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                   "serverInfo": {"name": "deaf", "version": "1"}},
    "tools/list": {"tools": [{"name": "answer", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "heard"}]},
}
for line in sys.stdin:
    asked = json.loads(line)
    is_last = asked["method"] == "tools/call"
    if is_last:
        os.close(0)
    if "id" in asked:
        known = asked["method"] in ANSWERS
        said = {"result": ANSWERS[asked["method"]]} if known else {
            "error": {"code": -32601, "message": "unknown"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)
    if is_last:
        time.sleep(300)
"""


async def test_servers_that_do_not_work_are_named_with_the_reason_and_the_others_work(
    running: MakeApp,
) -> None:
    servers = {
        "good": test_server("null"),
        "wrong": {"command": "no-such-command-anywhere"},
        "exits": test_server("faulty", "exit"),
        "hangs": test_server("faulty", "hang"),
        "noisy": test_server("faulty", "garbage"),
    }
    async with running(servers, **PATIENCE) as toolfold:
        with anyio.fail_after(40):
            works = await toolfold.run("import good\ngood.echo(value='there')")
            listing = await toolfold.run("import tools\nprint(tools.servers())")

    assert works.success
    assert works.value == '"there"'
    lines = dict(line.split(": ", 1) for line in listing.text.splitlines())
    assert lines["good"] == "2 tools; null"
    assert "'no-such-command-anywhere' was not found" in lines["wrong"]
    assert "the licence key is missing" in lines["exits"]
    assert "did not answer the handshake within 7 s" in lines["hangs"]
    assert "printed what is not MCP" in lines["noisy"]


async def test_a_silent_server_delays_neither_the_start_nor_the_others(running: MakeApp) -> None:
    servers = {"good": test_server("null"), "hangs": test_server("faulty", "hang")}
    async with running(servers, connect_timeout_s=600) as toolfold:
        with anyio.fail_after(40):
            result = await toolfold.run("import good\ngood.put(value=1)")

    assert result.value == {"value": 1, "count": 1}


async def test_code_that_imports_a_broken_server_is_told_why_before_it_runs(
    running: MakeApp,
) -> None:
    async with running({"exits": test_server("faulty", "exit")}, **PATIENCE) as toolfold:
        result = await toolfold.run("import exits\nexits.anything()")

    assert not result.success
    assert "The server 'exits' cannot be used" in result.text
    assert "the licence key is missing" in result.text


async def test_noise_before_the_handshake_does_no_harm(running: MakeApp) -> None:
    async with running({"noisy": test_server("faulty", "garbage-then-ok")}) as toolfold:
        result = await toolfold.run("import noisy\nnoisy.put(value=2)")

    assert result.value == {"value": 2, "count": 1}


async def test_odd_schemas_do_not_cost_a_server_its_good_tools(running: MakeApp) -> None:
    async with running({"odd": test_server("faulty", "bad-schema")}) as toolfold:
        listing = await toolfold.run("import tools\nprint(tools.describe('odd'))")
        good = await toolfold.run("import odd\nodd.good(value=1)")
        odd = await toolfold.run("import odd\nodd.type_is_12(value=2), odd.null_schema(value=3)")

    assert "\ngood(value: Any)" in listing.text
    assert "\nnull_schema(" in listing.text
    assert good.success, good.text
    assert odd.success, odd.text


async def test_a_server_killed_in_mid_run_raises_in_the_code_and_works_in_the_next_run(
    running: MakeApp,
) -> None:
    async with running({"fragile": test_server("faulty", "dies")}) as toolfold:
        first = await toolfold.run("import fragile\nfragile.pid()")
        dying = await toolfold.run(
            "import fragile\n"
            "try:\n"
            "    fragile.die()\n"
            "except RuntimeError as error:\n"
            "    print('caught:', error)\n"
        )
        third = await toolfold.run("import fragile\nfragile.pid()")

    assert "caught: fragile ended before die answered" in dying.text
    assert third.success, third.text
    assert third.value != first.value


async def test_a_server_that_lives_on_and_listens_no_more_is_started_again(
    running: MakeApp, tmp_path: Path
) -> None:
    program = tmp_path / "deaf.py"
    program.write_text(DEAF)
    async with running({"deaf": {"command": sys.executable, "args": [str(program)]}}) as toolfold:
        with anyio.fail_after(40):
            result = await toolfold.run(
                "import deaf\n"
                "print(deaf.answer())\n"
                "try:\n"
                "    deaf.answer()\n"
                "except RuntimeError as error:\n"
                "    print('caught:', error)\n"
                "print(deaf.answer())\n"
            )

    first, caught, last = result.text.splitlines()
    assert (first, last) == ("heard", "heard")
    assert caught.startswith("caught: deaf ended before answer answered")


async def test_an_idle_server_that_was_killed_is_started_again_without_an_error(
    running: MakeApp,
) -> None:
    async with running({"fragile": test_server("faulty", "dies")}) as toolfold:
        first = await toolfold.run("import fragile\nfragile.pid()")
        os.kill(int(str(first.value)), signal.SIGKILL)
        with anyio.fail_after(60):
            while _is_alive(int(str(first.value))):
                await anyio.sleep(0.01)
        second = await toolfold.run("import fragile\nfragile.pid()")

    assert second.success, second.text
    assert second.value != first.value


async def test_a_run_that_loses_its_server_says_what_had_completed(running: MakeApp) -> None:
    async with running({"fragile": test_server("faulty", "dies")}) as toolfold:
        result = await toolfold.run(
            "import fragile\nfor _ in range(3):\n    fragile.pid()\nfragile.die()"
        )

    assert not result.success
    assert "Calls completed before it stopped: fragile.pid 3. Failed: fragile.die 1." in result.text


async def test_tools_that_a_server_adds_later_can_be_called(running: MakeApp) -> None:
    async with running({"growing": test_server("faulty", "changes")}) as toolfold:
        before = await toolfold.run("import tools\nprint(tools.describe('growing'))")
        added = await toolfold.run("import growing\ngrowing.add_tool(name='later')")
        with anyio.fail_after(60):
            while True:
                after = await toolfold.run("import tools\nprint(tools.describe('growing'))")
                if "later" in after.text:
                    break
                await anyio.sleep(0.02)

    assert added.success, added.text
    assert len(after.text.splitlines()) == len(before.text.splitlines()) + 1


async def test_a_call_that_takes_too_long_is_a_timeout_the_code_can_catch(running: MakeApp) -> None:
    slow = test_server("faulty", "slow", "30") | {"timeout_s": 0.3}
    async with running({"slow": slow}) as toolfold:
        result = await toolfold.run(
            "import slow\ntry:\n    slow.put(value=1)\n"
            "except TimeoutError as error:\n    print('late:', error)"
        )

    assert "late: slow:" in result.text
    assert "did not answer within 0.3 s" in result.text


async def test_fifty_gathered_writes_all_arrive(running: MakeApp, tmp_path: Path) -> None:
    graph = tmp_path / "graph.jsonl"
    memory = entry(node_server("memory"), env={"MEMORY_FILE_PATH": str(graph)})
    async with running({"memory": memory}) as toolfold:
        result = await toolfold.run("""
import asyncio, memory_mcp

names = [f"Record_{i:03}" for i in range(50)]
memory_mcp.create_entities(
    entities=[{"name": n, "entityType": "record", "observations": []} for n in names]
)
await asyncio.gather(*[
    memory_mcp.add_observations(observations=[{"entityName": n, "contents": ["seen"]}])
    for n in names
])
""")

    assert result.success, result.text
    assert graph.read_text().count('"seen"') == 50


async def test_the_listing_is_known_from_the_disk_before_the_server_is_up(
    running: MakeApp, tmp_path: Path
) -> None:
    server = test_server("null")
    async with running({"null": server}) as toolfold:
        await toolfold.run("import tools\ntools.servers()")
    async with running({"null": server}) as toolfold:
        known = toolfold.app.catalog.functions("null")

    assert list(known) == ["echo", "put"]


async def test_a_rate_limit_is_kept_and_the_wait_is_reported(running: MakeApp) -> None:
    options = "[servers.null]\nrate_per_s = 20"
    async with running({"null": test_server("null")}, toml=options) as toolfold:
        started = time.monotonic()
        result = await toolfold.run("import null\nfor i in range(5):\n    null.echo(value=i)")
        elapsed = time.monotonic() - started

    assert result.success, result.text
    assert elapsed >= 4 / 20
    assert "Note: null is limited to 20/s: waited" in result.text


StartServer = Callable[..., Awaitable[str]]


@pytest.fixture
async def http_server() -> AsyncIterator[StartServer]:
    """Return `await http_server(mode, argument)`: the URL of `http_server.py` in that mode."""
    processes = []

    async def start(*arguments: str) -> str:
        command = test_server("http_server", "0", *arguments)
        process = await anyio.open_process([command["command"], *command["args"]], stderr=None)
        processes.append(process)
        assert process.stdout is not None
        with anyio.fail_after(30):
            return (await process.stdout.receive()).decode().split()[-1]

    yield start
    for process in processes:
        process.kill()
        await process.aclose()


async def test_http_and_sse_servers_work_like_any_other(
    running: MakeApp, http_server: StartServer
) -> None:
    servers = {
        "modern": {"type": "http", "url": await http_server("plain")},
        "legacy": {"type": "sse", "url": await http_server("sse")},
    }
    async with running(servers) as toolfold:
        result = await toolfold.run(
            "import modern, legacy\n[modern.put(value=1), legacy.put(value=2)]"
        )

    assert result.value == [{"value": 1, "count": 1}, {"value": 2, "count": 1}], result.text


LARGE = "import web\nlen(web.echo(value='x' * {size}))"


@pytest.mark.parametrize("kind", ["plain", "old", "json", "sse"])
async def test_a_large_answer_over_http_is_one_as_long_as_the_limit_allows_it(
    kind: str, running: MakeApp, http_server: StartServer
) -> None:
    web = {"type": "sse" if kind == "sse" else "http", "url": await http_server(kind)}
    async with running({"web": web}) as toolfold:
        result = await toolfold.run(LARGE.format(size=2_000_000))

    assert result.value == 2_000_002, result.text  # echo answers with JSON


@pytest.mark.parametrize("kind", ["plain", "old", "json", "sse"])
async def test_an_answer_over_http_that_is_too_long_fails_its_call_and_is_not_asked_for_again(
    kind: str, running: MakeApp, http_server: StartServer
) -> None:
    web = {"type": "sse" if kind == "sse" else "http", "url": await http_server(kind)}
    limits = {"limits__result_bytes": 10_000, "limits__large_result_bytes": 20_000}
    async with running({"web": web}, **limits) as toolfold:
        large = await toolfold.run(LARGE.format(size=1_000_000))
        small = await toolfold.run("import web\nweb.put(value=1)")

    assert "web answered with more than 125,536 bytes" in large.text
    assert small.value == {"value": 1, "count": 1}


@pytest.mark.parametrize("kind", ["plain", "old", "json", "sse"])
async def test_an_answer_over_http_that_is_too_long_for_a_value_is_a_file(
    kind: str, running: MakeApp, http_server: StartServer
) -> None:
    web = {"type": "sse" if kind == "sse" else "http", "url": await http_server(kind)}
    code = (
        "import json, web\nfrom pathlib import Path\n"
        "answer = web.echo(value='ä\\n' * 500_000)\n"
        "json.loads(Path(answer['path']).read_text()) == 'ä\\n' * 500_000"
    )
    async with running({"web": web}, limits__result_bytes=10_000) as toolfold:
        large = await toolfold.run(code)
        small = await toolfold.run("import web\nweb.put(value=1)")

    assert large.value is True, large.text  # echo answers with JSON
    assert small.value == {"value": 1, "count": 1}


async def test_what_a_server_could_compress_is_taken_as_it_is(
    running: MakeApp, http_server: StartServer
) -> None:
    servers = {
        "willing": {"type": "http", "url": await http_server("squeezable")},
        "pressing": {"type": "http", "url": await http_server("squeezing")},
    }
    async with running(servers) as toolfold:
        fine = await toolfold.run("import willing\nwilling.put(value=1)")
        refused = await toolfold.run("import pressing\npressing.put(value=1)")

    assert fine.value == {"value": 1, "count": 1}, fine.text
    assert "It answers in the encoding 'gzip', unasked." in refused.text


async def test_an_answer_over_http_that_is_too_long_costs_other_calls_nothing(
    running: MakeApp, http_server: StartServer
) -> None:
    servers = {"web": {"type": "http", "url": await http_server("old", "0.5")}}
    code = (
        "import asyncio, web\n"
        "async def read():\n"
        "    try:\n"
        "        return await web.echo(value='x' * 1_000_000)\n"
        "    except RuntimeError as error:\n"
        "        return 'failed'\n"
        "await asyncio.gather(read(), web.put(value=1))"
    )
    limits = {"limits__result_bytes": 10_000, "limits__large_result_bytes": 20_000}
    async with running(servers, **limits) as toolfold:
        result = await toolfold.run(code)

    assert result.value == ["failed", {"value": 1, "count": 1}], result.text


async def test_a_program_that_answers_with_too_long_a_line_is_ended_and_said_to_be(
    running: MakeApp,
) -> None:
    server = {"poured": test_server("faulty", "endless")}
    limits = {"limits__result_bytes": 10_000, "limits__large_result_bytes": 20_000}
    async with running(server, **limits) as toolfold:
        with anyio.fail_after(60):
            result = await toolfold.run("import poured\npoured.pour()")

    assert "poured answered with more than 125,536 bytes" in result.text


async def test_the_longest_result_fits_into_a_line_of_a_program(running: MakeApp) -> None:
    async with running({"null": test_server("null")}) as toolfold:
        result = await toolfold.run("import null\nlen(null.echo(value='\\x01' * 800_000))")

    assert result.value == 800_000 * 6 + 2, result.text


async def test_what_servers_print_is_closed_to_other_users(running: MakeApp, home: Path) -> None:
    before = os.umask(0o022)
    try:
        async with running({"null": test_server("null")}) as toolfold:
            await toolfold.run("import null\nnull.put(value=1)")
    finally:
        os.umask(before)

    [log] = (home / "state" / "logs").iterdir()
    modes = [each.stat().st_mode & 0o777 for each in (log, log.parent, log.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]


async def test_headers_reach_the_server_and_a_refusal_is_explained(
    running: MakeApp, http_server: StartServer
) -> None:
    url = await http_server("auth", "Bearer secret")
    servers = {
        "known": {"type": "http", "url": url, "headers": {"Authorization": "Bearer secret"}},
        "stranger": {"type": "http", "url": url, "headers": {"authorization": "Bearer hunter2"}},
    }
    async with running(servers, **PATIENCE) as toolfold:
        known = await toolfold.run("import known\nknown.put(value=1)")
        stranger = await toolfold.run("import stranger\nstranger.put(value=1)")

    assert known.success, known.text
    assert "refused with status 401" in stranger.text
    assert "hunter2" not in stranger.text


async def test_a_read_refused_for_now_is_repeated_after_the_wait_the_server_asked_for(
    running: MakeApp, http_server: StartServer
) -> None:
    servers = {"web": {"type": "http", "url": await http_server("busy", "2")}}
    async with running(servers) as toolfold:
        result = await toolfold.run("import web\nweb.echo(value='through')")

    assert result.success, result.text
    assert "Note: web asked to wait: waited" in result.text


async def test_a_write_refused_for_now_is_not_repeated_but_the_next_call_waits(
    running: MakeApp, http_server: StartServer
) -> None:
    servers = {"web": {"type": "http", "url": await http_server("busy", "1")}}
    async with running(servers) as toolfold:
        result = await toolfold.run(
            "import web\n"
            "try:\n    web.put(value=1)\n"
            "except RuntimeError as error:\n    print(error)\n"
            "web.put(value=2)"
        )

    assert "web is overloaded and asks to wait 1 s; put was not done." in result.text
    assert result.value == {"value": 2, "count": 1}
    assert "Note: web asked to wait: waited" in result.text


async def test_what_cannot_be_reached_is_named_without_its_secrets(running: MakeApp) -> None:
    servers = {
        "gone": {"type": "http", "url": "http://user:pw@127.0.0.1:9/mcp?key=hush"},
        "path": {"type": "http", "url": "http://127.0.0.1:9/s/hush/mcp"},
        "shell": {"command": "TOKEN=hush srv"},
    }
    async with running(servers, **PATIENCE) as toolfold:
        result = await toolfold.run("import tools\nprint(tools.servers())")

    assert "http://127.0.0.1:9/mcp?••• cannot be reached" in result.text
    assert "http://127.0.0.1:9/••• cannot be reached" in result.text
    assert "the command '•••' was not found" in result.text
    assert "hush" not in result.text
    assert "pw" not in result.text


def _is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


async def test_what_tools_return_is_learned_kept_and_shown_in_their_stubs(
    running: MakeApp,
) -> None:
    describe = "import tools\nprint(tools.describe('null.put'))"
    async with running({"null": test_server("null")}) as toolfold:
        before = await toolfold.run(describe)
        await toolfold.run("import null\nnull.put(value='x')")
        after = await toolfold.run(describe)
    async with running({"null": test_server("null")}) as toolfold:
        restarted = await toolfold.run(describe)

    assert "seen to return" not in before.text
    assert "# seen to return {value: str, count: int}" in after.text
    assert restarted.text == after.text


async def test_the_name_that_clients_give_a_tool_works_before_its_server_is_known(
    running: MakeApp,
) -> None:
    async with running({"null": test_server("null")}) as toolfold:
        result = await toolfold.run("mcp__null__put(value=4)['value']")

    assert result.value == 4, result.text


NODE = """\
node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module '/srv/index.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)
    at Module._load (node:internal/modules/cjs/loader:1038:27)
  code: 'MODULE_NOT_FOUND',
"""
LONG = "\n".join(f"step {number} of the start was done as it should be" for number in range(40))


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (NODE, "Error: Cannot find module '/srv/index.js'"),
        ("Traceback:\n  x\nValueError: no\n\nfoo.BarError: no token\n", "foo.BarError: no token"),
        (LONG, "\n".join(LONG.splitlines()[-8:])),
        ("usage: serve [-h]\n" + "x" * 500, "x" * 400),
    ],
    ids=["node", "python", "no error", "one long line"],
)
async def test_of_what_a_server_wrote_that_is_told_which_names_the_error(
    running: MakeApp, written: str, told: str
) -> None:
    code = f"import sys; sys.stderr.write({written!r}); sys.exit(1)"
    async with running({"ends": {"command": sys.executable, "args": ["-c", code]}}) as toolfold:
        await toolfold.app.catalog.learn(fresh=True)
        [status] = toolfold.app.catalog.statuses()

    assert status.fault is not None
    assert status.fault.endswith(f"the process exited during the handshake: {told}")
