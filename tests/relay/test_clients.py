"""Whole clients through relay and daemon."""

import json
import subprocess
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from relay.conftest import User
from support import entry, inspector, node_server, python, test_server

pytestmark = pytest.mark.timeout(180)


def relay(user: User) -> StdioServerParameters:
    return StdioServerParameters(
        command=python(), args=["-m", "toolfold", "mcp"], env=user.environ, cwd=user.project
    )


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


@pytest.mark.parametrize("era", ["2025", "2026"])
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_servers_question_reaches_the_user(user: User, mode: str, era: str) -> None:
    user.configure(curious=test_server("curious", user.home / "log", era))
    asked: list[str] = []

    async def answer(_context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async with Client(relay(user), mode=mode, elicitation_callback=answer) as client:
        code = "import curious\ncurious.sign(document='a will')"
        result = await client.call_tool("execute_code", {"code": code})

    assert json.loads(text_of(result)) == {"action": "accept", "content": {"name": "Ada"}}
    assert asked == ["curious: Who signs a will?"]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_prompts_resources_and_tools_of_a_real_server_are_there(
    user: User, mode: str
) -> None:
    user.configure(everything=entry(node_server("everything", "stdio")))
    async with Client(relay(user), mode=mode) as client:
        await client.call_tool("execute_code", {"code": "import everything"})
        prompts = (await client.list_prompts()).prompts
        resources = (await client.list_resources()).resources
        tools = (await client.list_tools()).tools

    assert "everything__simple_prompt" in {prompt.name for prompt in prompts}
    assert all(str(each.uri).startswith("toolfold://everything/") for each in resources)
    assert resources
    assert [tool.name for tool in tools] == ["execute_code"]


def test_the_inspector_lists_and_calls_through_the_relay(user: User) -> None:
    session = user.project / "session.json"
    entry = {"command": python(), "args": ["-m", "toolfold", "mcp"], "env": user.environ}
    session.write_text(json.dumps({"mcpServers": {"toolfold": entry}}))

    def inspect(*arguments: str) -> Any:
        done = subprocess.run(
            inspector("--cli", "--config", str(session), "--server", "toolfold", *arguments),
            cwd=user.project,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    listed = inspect("--method", "tools/list")
    code = "code=import world\nworld.double(number=21)"
    arguments = ("--tool-name", "execute_code", "--tool-arg", code)
    called = inspect("--method", "tools/call", *arguments)

    assert [tool["name"] for tool in listed["tools"]] == ["execute_code"]
    assert called["content"][0]["text"] == "42"
