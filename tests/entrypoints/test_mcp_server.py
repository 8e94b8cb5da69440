import json
import random
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from random_values import random_arguments
from support import SHARED_DATA, MakeApp, catalogue, inspector, python, test_server, write_config

from toolfold.catalog.binding import parameters_of
from toolfold.catalog.tool import Tool
from toolfold.entrypoints.mcp.server import make_server
from toolfold.journal.runs import find, newest
from toolfold.journal.runsdb import SCHEMA
from toolfold.storage.sqlite_file import open_for_reading
from toolfold.tokens import count_tokens

SEVEN = [
    "github", "slack", "notion", "salesforce", "google-workspace", "atlassian", "playwright",
]  # fmt: skip
MAX_TOKENS = 260


def definition_tokens(tools: list[types.Tool]) -> int:
    definitions = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
        for tool in tools
    ]
    return count_tokens(json.dumps(definitions, separators=(",", ":")))


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


def command(config: Path, home: Path) -> StdioServerParameters:
    return StdioServerParameters(
        command=python(),
        args=["-m", "toolfold", "mcp", "--no-daemon", "--config", str(config)],
        env={"TOOLFOLD_HOME": str(home)},
    )


async def execute(client: Client, code: str, **options: Any) -> types.CallToolResult:
    return await client.call_tool("execute_code", {"code": code}, **options)


async def test_the_one_tool_is_small_with_one_server(running: MakeApp) -> None:
    async with running({"null": test_server("null")}) as toolfold:
        async with Client(make_server(toolfold.app)) as client:
            tools = (await client.list_tools()).tools

    assert [tool.name for tool in tools] == ["execute_code"]
    assert tools[0].meta == {"anthropic/alwaysLoad": True}
    assert definition_tokens(tools) <= MAX_TOKENS


@pytest.mark.timeout(300)
@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.soak)])
async def test_seven_servers_with_504_tools_are_as_small_and_every_tool_can_be_used(
    every: int, running: MakeApp, home: Path
) -> None:
    servers = {name: test_server("replay", catalogue(name)) for name in SEVEN}
    async with running(servers, connect_timeout_s=120) as toolfold:
        allowed = '[[policy]]\naction = "allow"\ntools = "*"\n'  # some say to destroy
        (home / "config" / "policy.toml").write_text(allowed)
        await toolfold.app.catalog.learn()
        tools = [tool for tool in toolfold.app.catalog.tools if not tool.is_built_in]
        modules = sorted({tool.module for tool in tools})
        chosen = [t for each in modules for t in [t for t in tools if t.module == each][::every]]
        async with Client(make_server(toolfold.app)) as client:
            definition = (await client.list_tools()).tools
            described = await execute(
                client,
                "import tools\nnames = " + repr([tool.path for tool in chosen]) + "\n"
                "print(sum(name.split('.')[1] in tools.describe(name) for name in names))\n"
                "print(sum(name in tools.search(name, limit=3) for name in names))",
            )
            rights = 0
            for module in modules:
                rights += await _call_each(client, [t for t in chosen if t.module == module])

    assert definition_tokens(definition) <= MAX_TOKENS
    assert len(tools) == 504
    assert text_of(described).split() == [str(len(chosen))] * 2
    assert rights == len(chosen)


async def _call_each(client: Client, tools: list[Tool], seed: int = 0) -> int:
    """Call each tool with random arguments; count those whose server got exactly these."""
    chance = random.Random(seed)
    sent = [random_arguments(tool.listed.input_schema, chance) for tool in tools]
    code = f"import {tools[0].module}\nresults = [\n"
    for tool, arguments in zip(tools, sent, strict=True):
        spellings = {each.name: each.identifier for each in parameters_of(tool).listed}
        given = ", ".join(f"{spellings[name]}={value!r}" for name, value in arguments.items())
        code += f"    {tool.path}({given}),\n"
    expected = [
        {"tool": tool.listed.name, "arguments": arguments}
        for tool, arguments in zip(tools, sent, strict=True)
    ]
    code += f"]\nexpected = {expected!r}\n"
    # Of a tool that says it returns text, the answer is text.
    code += "import json\nread = [json.loads(r) if isinstance(r, str) else r for r in results]\n"
    result = await execute(client, code + "sum(r == e for r, e in zip(read, expected))")
    assert not result.is_error, text_of(result)
    return int(text_of(result))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 6))
async def test_every_tool_of_every_catalogue_gets_exactly_the_arguments_it_was_given(
    seed: int, running: MakeApp
) -> None:
    for name in sorted(path.stem for path in (SHARED_DATA / "catalogue").glob("*.json")):
        async with running({name: test_server("replay", catalogue(name))}) as toolfold:
            await toolfold.app.catalog.learn()
            tools = [tool for tool in toolfold.app.catalog.tools if not tool.is_built_in]
            async with Client(make_server(toolfold.app)) as client:
                assert await _call_each(client, tools, seed) == len(tools), name


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_both_protocols_are_spoken_over_stdio(mode: str, tmp_path: Path, home: Path) -> None:
    config = write_config(tmp_path / "mcp.json", {"null": test_server("null")})
    async with Client(command(config, home), mode=mode) as client:
        result = await execute(client, "import null\nnull.put(value=7)['value']")

    assert text_of(result) == "7"
    assert not result.is_error
    assert result.structured_content is None


async def test_an_error_in_the_code_is_an_error_of_the_tool(running: MakeApp) -> None:
    async with running({}) as toolfold, Client(make_server(toolfold.app)) as client:
        result = await execute(client, "x = 1\nx / 0")
        misused = await client.call_tool("execute_code", {"cod": "1"})
        unknown = await client.call_tool("run_code", {"code": "1"})

    assert result.is_error
    assert "line 2: ZeroDivisionError" in text_of(result)
    assert "execute_code takes `code`" in text_of(misused)
    assert "There is no tool 'run_code'" in text_of(unknown)


async def test_each_call_is_progress_to_the_client(running: MakeApp) -> None:
    heard: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    code = "import null, time\nfor i in range(5):\n    null.put(value=i)\n    time.sleep(0.15)"
    fast = "import null\nfor i in range(200):\n    null.put(value=i)"
    async with running({"null": test_server("null")}) as toolfold:
        async with Client(make_server(toolfold.app)) as client:
            await execute(client, code, progress_callback=hear)
            slowly = list(heard)
            heard.clear()
            await execute(client, fast, progress_callback=hear)

    assert slowly == [(float(i), f"null.put {i}") for i in range(1, 6)]
    assert heard[-1] == (200.0, "null.put 200")
    assert len(heard) < 100


async def test_a_cancelled_request_stops_before_the_next_call(running: MakeApp) -> None:
    code = "import null, time\nfor i in range(500):\n    null.put(value=i)\n    time.sleep(0.02)"
    async with running({"null": test_server("null")}) as toolfold:
        async with Client(make_server(toolfold.app), mode="legacy") as client:
            with anyio.CancelScope() as scope:

                async def hear(progress: float, total: float | None, message: str | None) -> None:
                    if progress >= 3:
                        scope.cancel()

                await execute(client, code, progress_callback=hear)
            after = await execute(client, "import null\nnull.put(value='after')['count']")
            later = await execute(client, "import null\nnull.put(value='later')['count']")

    assert scope.cancelled_caught
    assert int(text_of(after)) < 50
    assert int(text_of(later)) == int(text_of(after)) + 1


async def test_an_image_that_a_tool_returned_can_be_shown(running: MakeApp) -> None:
    async with running({"camera": test_server("faulty", "image")}) as toolfold:
        async with Client(make_server(toolfold.app)) as client:
            result = await execute(
                client, "import camera\npicture = camera.picture()\nshow(picture)\npicture"
            )
            forged = await execute(client, "show({'blob': 'image_9'})")
            failed = await execute(client, "import camera\ncamera.fail()")

    assert [block.type for block in result.content] == ["text", "image"]
    assert json.loads(text_of(result))["mime_type"] == "image/png"
    assert "an image that a tool returned, or the path of one" in text_of(forged)
    assert "camera.fail failed: The printer is on fire." in text_of(failed)


async def test_a_search_tool_and_pinned_tools_are_added_where_the_user_wants_them(
    running: MakeApp,
) -> None:
    toml = 'search_tools = true\npinned_tools = ["null.put", "null.nothing"]'
    async with running({"null": test_server("null")}, toml=toml) as toolfold:
        async with Client(make_server(toolfold.app)) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            found = await client.call_tool("search_tools", {"query": "put", "detail": "name"})
            misused = await client.call_tool("search_tools", {"query": "put", "detail": "all"})
            put = await client.call_tool("null__put", {"value": 3})

    assert names == ["execute_code", "search_tools", "null__put"]
    assert text_of(found).splitlines()[0] == "null.put"
    assert "detail is 'name', 'brief' or 'full'" in text_of(misused)
    assert json.loads(text_of(put)) == {"value": 3, "count": 1}


async def test_a_pinned_call_is_a_run_of_one_call_and_bounded_like_any_other(
    running: MakeApp, home: Path
) -> None:
    toml = 'pinned_tools = ["null.put", "null.echo", "camera.fail"]'
    servers = {"null": test_server("null"), "camera": test_server("faulty", "image")}
    async with running(servers, toml=toml, limits__result_bytes=1_000) as toolfold:
        async with Client(make_server(toolfold.app, client="relay-1")) as client:
            await client.call_tool("null__put", {"value": 3})
            large = await client.call_tool("null__echo", {"value": "x" * 2_000})
            failed = await client.call_tool("camera__fail", {})
    connection = open_for_reading(home / "data" / "runs.db", SCHEMA)
    assert connection is not None
    with closing(connection):
        runs = [find(connection, run.id) for run in newest(connection, 10)]

    assert large.is_error
    assert "null.echo answered with 2" in text_of(large)
    assert text_of(failed) == "The printer is on fire."
    assert [run.code.head for run in runs] == [
        f"# The client called {tool}, which is pinned."
        for tool in ("camera.fail", "null.echo", "null.put")
    ]
    assert [run.ending and run.ending.failure for run in runs] == ["error", "error", None]
    [[wrong], [_], [put]] = [run.calls for run in runs]
    assert (wrong.outcome, wrong.answer) == ("failed", None)
    assert (put.tool, put.outcome, put.arguments.head) == ("null.put", "ok", '{"value":3}')
    assert put.answer is not None
    assert json.loads(put.answer.head) == {"value": 3, "count": 1}
    assert runs[0].origin.client == "relay-1"


@pytest.mark.timeout(180)
def test_the_official_inspector_lists_and_calls_execute_code(tmp_path: Path, home: Path) -> None:
    config = write_config(tmp_path / "mcp.json", {"null": test_server("null")})
    toolfold = command(config, home).model_dump(include={"command", "args", "env"})
    session = write_config(tmp_path / "inspector.json", {"toolfold": toolfold})

    def inspect(*arguments: str) -> dict[str, Any]:
        done = subprocess.run(
            inspector("--cli", "--config", str(session), "--server", "toolfold", *arguments),
            capture_output=True, text=True, timeout=80,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    listed = inspect("--method", "tools/list")
    called = inspect(
        "--method", "tools/call", "--tool-name", "execute_code",
        "--tool-arg", "code=import null\nnull.put(value='hello')['value']",
    )  # fmt: skip

    assert [tool["name"] for tool in listed["tools"]] == ["execute_code"]
    assert called["content"] == [{"type": "text", "text": "hello"}]
