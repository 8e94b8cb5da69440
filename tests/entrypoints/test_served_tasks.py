"""Tasks of MCP that we offer: a long run as a task of its client, in both protocols."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage
from support import MakeApp, Running, test_server

from toolfold.entrypoints.mcp.server import make_server

pytestmark = pytest.mark.anyio

EXTENSION = "io.modelcontextprotocol/tasks"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
Json = dict[str, Any]


class Wire:
    """A client that speaks JSON-RPC itself, of either protocol."""

    def __init__(self, era: str, capabilities: Json, send: Any, receive: Any) -> None:
        self.era = era
        self._capabilities = capabilities
        self._send = send
        self._receive = receive
        self._next = 0
        self.questions: list[Json] = []

    async def ask(self, method: str, params: Json | None = None) -> Json:
        """Return the result or the error; a question meanwhile is accepted with a branch."""
        self._next += 1
        request = {"jsonrpc": "2.0", "id": self._next, "method": method}
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": self._capabilities,
            "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
        }
        envelope = {"_meta": meta} if self.era == MODERN else {}
        await self.send({**request, "params": {**(params or {}), **envelope}})
        while True:
            message: Json = (await self._receive.receive()).message.model_dump(by_alias=True)
            if message.get("id") == request["id"] and "method" not in message:
                return message.get("result") or message["error"]
            if "id" in message:
                self.questions.append(message["params"])
                content = {"action": "accept", "content": {"branch": "main"}}
                await self.send({"jsonrpc": "2.0", "id": message["id"], "result": content})

    async def send(self, message: Json) -> None:
        parsed = types.jsonrpc_message_adapter.validate_python(message, by_name=False)
        await self._send.send(SessionMessage(parsed))

    async def begin(self, code: str, **more: Any) -> Json:
        if self.era == LEGACY:
            more.setdefault("task", {"ttl": 60_000})
        call = {"name": "execute_code", "arguments": {"code": code}, **more}
        return await self.ask("tools/call", call)

    async def begin_task(self, code: str) -> str:
        answer = await self.begin(code)
        task_id: str = (answer["task"] if self.era == LEGACY else answer)["taskId"]
        return task_id

    async def until(self, task_id: str, *wanted: str) -> Json:
        """Ask for a task until it stands as wanted."""
        with anyio.fail_after(30):
            while True:
                state = await self.ask("tasks/get", {"taskId": task_id})
                assert "status" in state, state
                if state["status"] in wanted:
                    return state
                await anyio.sleep(0.05)

    async def result(self, task_id: str) -> Json:
        if self.era == LEGACY:
            return await self.ask("tasks/result", {"taskId": task_id})
        state = await self.until(task_id, "completed", "failed", "cancelled")
        return state.get("result") or state.get("error") or state


@asynccontextmanager
async def wire(
    toolfold: Running, era: str, *, client: str = "me", asks: bool = False, tasks: bool = True
) -> AsyncIterator[Wire]:
    to_server, read = anyio.create_memory_object_stream[SessionMessage | Exception](10)
    write, from_server = anyio.create_memory_object_stream[SessionMessage](10)
    server = make_server(toolfold.app, client=client)
    capabilities: Json = {"elicitation": {"form": {}}} if asks else {}
    if era == MODERN and tasks:
        capabilities["extensions"] = {EXTENSION: {}}
    async with to_server, from_server, anyio.create_task_group() as group:
        group.start_soon(server.run, read, write, server.create_initialization_options())
        found = Wire(era, capabilities, to_server, from_server)
        if era == LEGACY:
            about = {"name": "wire", "version": "1"}
            hello = {"protocolVersion": LEGACY, "capabilities": capabilities, "clientInfo": about}
            greeting = await found.ask("initialize", hello)
            assert greeting["capabilities"]["tasks"]["requests"] == {"tools": {"call": {}}}
            await found.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield found
        group.cancel_scope.cancel()


def entry(log: Path) -> Json:
    return {"ci": test_server("task_jobs", "tasks", "--log", log)}


def asked(log: Path) -> list[tuple[float, str]]:
    lines = log.read_text().splitlines() if log.exists() else []
    return [(json.loads(line)[0], json.loads(line)[1]) for line in lines]


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_long_run_is_a_task_of_a_client_that_has_tasks(
    running: MakeApp, tmp_path: Path, era: str
) -> None:
    """No call of the model is needed beside the first: the client asks for it by itself."""
    async with (
        running(entry(tmp_path / "log"), limits__answer_s=0.3) as toolfold,
        wire(toolfold, era) as client,
    ):
        task_id = await client.begin_task("import ci\nci.run_tests(seconds=1.5)['passed']")
        early = await client.until(task_id, "working")
        result = await client.result(task_id)
        later = await client.begin("1", **({} if era == MODERN else {"task": None}))

    assert early.get("statusMessage", "ci.run_tests").startswith("ci.run_tests")
    assert [block["text"] for block in result["content"]] == ["7"]
    assert [block["text"] for block in later["content"]] == ["1"]  # it is not said twice


async def test_a_short_run_is_answered_at_once(running: MakeApp) -> None:
    async with running({}) as toolfold, wire(toolfold, MODERN) as client:
        answer = await client.begin("6 * 7")

    assert answer["resultType"] == "complete"
    assert answer["content"][0]["text"] == "42"


async def test_a_client_without_tasks_gets_none(running: MakeApp) -> None:
    async with (
        running({}, limits__answer_s=0.2) as toolfold,
        wire(toolfold, MODERN, tasks=False) as client,
    ):
        answer = await client.begin("import time\ntime.sleep(1)")
        refused = await client.ask("tasks/get", {"taskId": "any"})

    assert "The run continues after" in answer["content"][0]["text"]
    assert refused["code"] == types.MISSING_REQUIRED_CLIENT_CAPABILITY


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_task_asks_the_user(running: MakeApp, tmp_path: Path, era: str) -> None:
    async with (
        running(entry(tmp_path / "log"), limits__answer_s=0.1) as toolfold,
        wire(toolfold, era, asks=True) as client,
    ):
        task_id = await client.begin_task("import ci\nci.ask(seconds=1)['reply']")
        state = await client.until(task_id, "input_required")
        if era == MODERN:
            [(key, question)] = state["inputRequests"].items()
            assert question["params"]["message"] == "ci: Which branch?"
            reply = {key: {"action": "accept", "content": {"branch": "main"}}}
            update = {"taskId": task_id, "inputResponses": reply}
            assert (await client.ask("tasks/update", update))["resultType"] == "complete"
        result = await client.result(task_id)

    assert [block["text"] for block in result["content"]] == ["main"]
    if era == LEGACY:
        [question] = client.questions
        assert question["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": task_id}


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_cancelling_a_task_reaches_the_server_within_a_second(
    running: MakeApp, tmp_path: Path, era: str
) -> None:
    log = tmp_path / "log"
    async with (
        running(entry(log), limits__answer_s=0.2) as toolfold,
        wire(toolfold, era) as client,
    ):
        task_id = await client.begin_task("import ci\nci.run_tests(seconds=60)")
        with anyio.fail_after(30):
            while "tasks/get" not in {method for _, method in asked(log)}:
                await anyio.sleep(0.02)
        began = time.time()
        await client.ask("tasks/cancel", {"taskId": task_id})
        state = await client.ask("tasks/get", {"taskId": task_id})
        with anyio.fail_after(5):
            while "tasks/cancel" not in {method for _, method in asked(log)}:
                await anyio.sleep(0.01)

    assert state["status"] == "cancelled"
    assert next(at for at, method in asked(log) if method == "tasks/cancel") - began < 1.0


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_what_the_code_does_wrong_is_the_result(running: MakeApp, era: str) -> None:
    code = "import time\ntime.sleep(0.5)\n1 / 0"
    async with (
        running({}, limits__answer_s=0.1) as toolfold,
        wire(toolfold, era) as client,
    ):
        result = await client.result(await client.begin_task(code))

    assert result["isError"] is True
    assert "ZeroDivisionError" in result["content"][0]["text"]


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_nobody_else_sees_a_task(running: MakeApp, era: str) -> None:
    async with (
        running({}, limits__answer_s=0.1) as toolfold,
        wire(toolfold, era) as client,
        wire(toolfold, era, client="other") as other,
    ):
        task_id = await client.begin_task("import time\ntime.sleep(0.5)")
        refused = [
            await other.ask(method, {"taskId": task_id}) for method in ("tasks/get", "tasks/cancel")
        ]
        unknown = await client.ask("tasks/get", {"taskId": task_id[:-1]})
        state = await client.until(task_id, "completed")

    assert {each["code"] for each in [*refused, unknown]} == {types.INVALID_PARAMS}
    assert state["taskId"] == task_id


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_task_is_there_for_the_next_connection(running: MakeApp, era: str) -> None:
    """Also when it has ended meanwhile: the journal knows what came of it."""
    async with running({}, limits__answer_s=0.1) as toolfold:
        async with wire(toolfold, era) as client:
            task_id = await client.begin_task("import time\ntime.sleep(1)\n'made it'")
        async with wire(toolfold, era) as client:
            joined = await client.result(task_id)
        async with wire(toolfold, era) as client:
            read = await client.result(task_id)

    assert joined["content"][0]["text"] == read["content"][0]["text"] == "made it"


async def test_only_execute_code_can_be_asked_to_be_a_task(running: MakeApp) -> None:
    async with running({}, search_tools=True) as toolfold, wire(toolfold, LEGACY) as client:
        listed = await client.ask("tools/list")
        call = {"name": "search_tools", "arguments": {"query": "notes"}, "task": {}}
        refused = await client.ask("tools/call", call)

    support = {each["name"]: each.get("execution") for each in listed["tools"]}
    assert support == {"execute_code": {"taskSupport": "optional"}, "search_tools": None}
    assert refused["code"] == types.METHOD_NOT_FOUND
