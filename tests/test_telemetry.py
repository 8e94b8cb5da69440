import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from entrypoints.rest_door import door
from mcp import Client
from otlp_receiver import collecting
from support import MakeApp, scripted, write_config

from toolfold.entrypoints.logs import JsonLines, RunLog
from toolfold.entrypoints.mcp.server import make_server
from toolfold.errors import ConfigError

pytestmark = pytest.mark.anyio

TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE}-b7ad6b7169203331-01"

PROGRAM = """
import asyncio, crm, memory
for number in range(3):
    crm.add(a=number)
await asyncio.gather(*[crm.add(a=number) for number in range(2)])
memory.store("Staging has a secret-word")
try:
    crm.fail(a=1)
except RuntimeError as error:
    print("failed")
"""


def crm(path: Path) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    failure = {"content": [{"type": "text", "text": "secret-word"}], "isError": True}
    return {
        "crm": scripted(
            path / "crm.json",
            [
                {"name": "add", "inputSchema": schema, "annotations": {"readOnlyHint": True}},
                {"name": "fail", "inputSchema": schema, "answers": [failure]},
            ],
        )
    }


async def test_every_journaled_call_has_a_span_within_the_span_of_its_run(
    running: MakeApp, tmp_path: Path
) -> None:
    with collecting() as collector:
        async with running(crm(tmp_path), telemetry__endpoint=collector.url) as app:
            report = await app.run(PROGRAM)
            assert report.success, report.text
            found = app.app.shared.journal.find(report.run_id)
            journaled = {(found.id, each.position, each.tool) for each in found.calls}

        [run] = collector.named("run code")
        spans = {
            (
                span.attributes["toolfold.run.id"],
                span.attributes["toolfold.call.position"],
                span.attributes["gen_ai.tool.name"],
            )
            for span in collector.below(run)
        }

    assert len(journaled) == 7
    assert spans == journaled
    assert run.attributes["toolfold.run.id"] == report.run_id
    assert {span.trace for span in collector.spans} == {run.trace}


async def test_every_request_to_a_server_is_a_span_of_its_call_and_told_to_the_server(
    running: MakeApp, tmp_path: Path
) -> None:
    with collecting() as collector:
        async with running(crm(tmp_path), telemetry__endpoint=collector.url) as app:
            await app.run("import crm\ncrm.add(a=1)\ncrm.fail(a=2)")

    [added] = collector.named("execute_tool crm.add")
    [request] = collector.below(added)
    [failed] = collector.named("execute_tool crm.fail")
    assert request.name == "tools/call add"
    assert request.kind == 3  # client
    assert request.attributes["mcp.method.name"] == "tools/call"
    assert request.attributes["toolfold.server"] == "crm"
    assert failed.failed
    assert failed.attributes["error.type"] == "tool_failed"


async def test_servers_are_told_of_the_trace(running: MakeApp, tmp_path: Path) -> None:
    servers = {"world": scripted(tmp_path / "w.json", [{"name": "meta", "tells_meta": True}])}
    with collecting() as collector:
        async with running(servers, telemetry__endpoint=collector.url) as app:
            report = await app.run("import world\nworld.meta()")

    [request] = collector.named("tools/call meta")
    assert report.value["traceparent"].startswith(f"00-{request.trace}-{request.id}-")


async def test_nothing_that_passes_is_in_a_span(running: MakeApp, tmp_path: Path) -> None:
    with collecting() as collector:
        async with running(crm(tmp_path), telemetry__endpoint=collector.url) as app:
            await app.run(PROGRAM)

    assert collector.spans
    assert not any(b"secret-word" in body for body in collector.raw)


async def test_a_run_joins_the_trace_of_a_client_that_names_it_in_meta(
    running: MakeApp, tmp_path: Path
) -> None:
    with collecting() as collector:
        async with running(crm(tmp_path), telemetry__endpoint=collector.url) as app:
            async with Client(make_server(app.app)) as client:
                await client.call_tool(
                    "execute_code",
                    {"code": "import crm\ncrm.add(a=1)"},
                    meta={"traceparent": TRACEPARENT},
                )

    [run] = collector.named("tools/call execute_code")
    assert (run.trace, run.parent) == (TRACE, "b7ad6b7169203331")
    assert run.attributes["gen_ai.tool.name"] == "execute_code"
    assert {span.trace for span in collector.spans} == {TRACE}


@pytest.mark.parametrize("path", ["/execute", "/tools/crm.add/execute"])
async def test_a_request_joins_the_trace_that_its_header_names(
    running: MakeApp, tmp_path: Path, path: str
) -> None:
    body = {"code": "import crm\ncrm.add(a=1)"} if path == "/execute" else {"arguments": {"a": 1}}
    with collecting() as collector:
        async with running(crm(tmp_path), telemetry__endpoint=collector.url) as app:
            async with door(app.app) as client:
                answer = await client.post(path, json=body, headers={"traceparent": TRACEPARENT})
                assert answer.status_code == 200, answer.text

    assert {span.trace for span in collector.spans} == {TRACE}
    assert len(collector.named("execute_tool crm.add")) == 1


async def test_a_collector_that_is_not_there_keeps_nobody(
    running: MakeApp, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(crm(tmp_path), telemetry__endpoint="http://127.0.0.1:1") as app:
        report = await app.run("import crm\ncrm.add(a=1)")

    assert report.success


def test_nothing_of_it_is_imported_where_nobody_watches(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from toolfold.__main__ import main\n"
        "main()\n"
        "print(sorted(m for m in sys.modules if m.startswith('opentelemetry.sdk')"
        " or m in {'toolfold.telemetry', 'joserfc'}))"
    )
    config = write_config(tmp_path / "mcp.json", {})
    ended = subprocess.run(
        [sys.executable, "-c", program, "run", "--no-daemon", "--config", str(config), "-c", "1"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TOOLFOLD_HOME": str(tmp_path / "h")},
    )

    assert ended.stdout.splitlines()[-1:] == ["[]"], ended.stderr


async def test_where_the_sdk_is_missing_the_message_says_what_to_install(
    running: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "toolfold.telemetry", None)

    with pytest.raises(ConfigError, match=r"toolfold\[otel\]"):
        async with running({}, telemetry__endpoint="http://127.0.0.1:4318"):
            pass


async def test_lines_of_the_log_name_the_run_they_are_about(running: MakeApp) -> None:
    lines: list[dict[str, Any]] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(self.format(record)))

    kept = Kept()
    kept.setFormatter(JsonLines())
    ours = logging.getLogger("toolfold")
    ours.addHandler(kept)
    level, _ = ours.level, ours.setLevel(logging.INFO)
    try:
        async with running({"gone": {"command": "/nowhere/program"}}) as app:
            app.app.shared.journal.observers.append(RunLog())
            report = await app.run("import memory\nmemory.store('a')\n1 / 0")
    finally:
        ours.removeHandler(kept)
        ours.setLevel(level)

    [ended] = [line for line in lines if line["message"] == "A run ended."]
    assert ended["run_id"] == report.run_id
    assert (ended["outcome"], ended["calls"], ended["kind"]) == ("error", 1, "code")


async def test_metrics_count_runs_calls_mcp_and_what_is_refused(
    running: MakeApp, tmp_path: Path
) -> None:
    async with running(crm(tmp_path)) as app:
        async with door(app.app) as client:
            await client.post("/execute", json={"code": "import crm\ncrm.add(a=1)\ncrm.fail(a=1)"})
            await client.post("/mcp", json={})
            await client.get("/runs", headers={"host": "evil.example"})
            text = (await client.get("/metrics")).text
        assert app.app.shared.journal.observers == []

    assert 'toolfold_runs_total{kind="code",outcome="error"} 1' in text
    assert 'toolfold_calls_total{server="crm",outcome="ok"} 1' in text
    assert 'toolfold_calls_total{server="crm",outcome="tool_failed"} 1' in text
    assert 'toolfold_call_seconds_count{server="crm"} 2' in text
    assert 'toolfold_requests_total{method="POST",route="/mcp",status=' in text
    assert 'toolfold_requests_total{method="GET",route="refused",status="421"} 1' in text
    assert "toolfold_runs_in_flight 0" in text
