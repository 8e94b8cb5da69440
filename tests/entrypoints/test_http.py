import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from http_daemon import Serving, serve_command, serving
from mcp import Client
from mcp.server import Server
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from support import MakeApp, entry, inspector, node_server, test_server, write_config

from toolfold.app import App
from toolfold.config.config import load_config
from toolfold.entrypoints.http import guard, stack
from toolfold.entrypoints.http.app import serve_http
from toolfold.entrypoints.http.guard import MAX_BODY_BYTES, AccessControl

MODERN = "2026-07-28"
ERAS = ["legacy", MODERN]
ACCEPT = {"accept": "application/json, text/event-stream"}
CAPABILITIES: dict[str, Any] = {"elicitation": {}}
COUNT = "import null\nnull.put(value=0)['count']"
ENDLESS = "import null, time\nfor i in range(2000):\n    null.put(value=i)\n    time.sleep(0.02)"


@asynccontextmanager
async def listening(app: App) -> AsyncIterator[str]:
    """Serve in this process, and give the address."""
    urls: list[str] = []
    is_started = anyio.Event()

    def started(url: str) -> None:
        urls.append(url)
        is_started.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(serve_http, app, host="127.0.0.1", port=0, started=started))
        with anyio.fail_after(60):
            await is_started.wait()
        yield urls[0]
        tasks.cancel_scope.cancel()


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


async def execute(client: Client, code: str, **options: Any) -> str:
    result = await client.call_tool("execute_code", {"code": code}, **options)
    assert not result.is_error, text_of(result)
    return text_of(result)


async def put_count(client: Client) -> int:
    return int(await execute(client, COUNT))


def request_body(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


def modern_call(code: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Return headers and body of a call as a client of 2026-07-28 sends it."""
    meta = {
        "progressToken": 1,
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
    }
    params = {"name": "execute_code", "arguments": {"code": code}, "_meta": meta}
    routing = {"mcp-method": "tools/call", "mcp-name": "execute_code"}
    headers = {**ACCEPT, "mcp-protocol-version": MODERN, **routing}
    return headers, request_body("tools/call", params)


def legacy_call(code: str, session: dict[str, str]) -> tuple[dict[str, str], dict[str, Any]]:
    arguments = {"name": "execute_code", "arguments": {"code": code}, "_meta": {"progressToken": 1}}
    return session, request_body("tools/call", arguments)


def initialization() -> dict[str, Any]:
    client = {"name": "test", "version": "1"}
    versions = {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES}
    return request_body("initialize", {**versions, "clientInfo": client})


def session_headers(answer: httpx2.Response) -> dict[str, str]:
    assert answer.status_code == 200, answer.text
    session = {"mcp-session-id": answer.headers["mcp-session-id"]}
    return {**ACCEPT, "mcp-protocol-version": "2025-11-25", **session}


async def new_session(http: httpx2.AsyncClient, url: str) -> dict[str, str]:
    headers = session_headers(await http.post(url, headers=ACCEPT, json=initialization()))
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await http.post(url, headers=headers, json=ready)).status_code == 202
    return headers


@pytest.mark.parametrize("mode", ERAS)
async def test_both_protocols_are_spoken_over_http(mode: str, running: MakeApp) -> None:
    async with running({"null": test_server("null")}) as toolfold, listening(toolfold.app) as url:
        async with Client(url, mode=mode) as client:
            tools = (await client.list_tools()).tools
            answer = await execute(client, "import null\nnull.put(value=7)['value']")

    assert [tool.name for tool in tools] == ["execute_code"]
    assert answer == "7"


@pytest.mark.parametrize("mode", ERAS)
async def test_progress_arrives_while_the_run_goes_on(mode: str, running: MakeApp) -> None:
    heard = anyio.Event()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.set()

    code = "import null, time\nfor i in range(40):\n    null.put(value=i)\n    time.sleep(0.05)"
    answers: list[str] = []

    async def ask(client: Client) -> None:
        answers.append(await execute(client, code, progress_callback=hear))

    async with running({"null": test_server("null")}) as toolfold, listening(toolfold.app) as url:
        async with Client(url, mode=mode) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(ask, client)
            with anyio.fail_after(60):
                await heard.wait()
            answered_before = list(answers)

    assert answered_before == []
    assert len(answers) == 1


@pytest.mark.parametrize("mode", ERAS)
async def test_a_run_ends_when_its_client_closes_the_connection(
    mode: str, running: MakeApp
) -> None:
    async with running({"null": test_server("null")}) as toolfold, listening(toolfold.app) as url:
        async with httpx2.AsyncClient(timeout=60) as http:
            if mode == MODERN:
                headers, body = modern_call(ENDLESS)
            else:
                headers, body = legacy_call(ENDLESS, await new_session(http, url))
            async with http.stream("POST", url, headers=headers, json=body) as stream:
                async for line in stream.aiter_lines():
                    if "notifications/progress" in line:
                        break
        async with Client(url) as client:
            with anyio.fail_after(60):
                before, now = await put_count(client), await put_count(client)
                while now != before + 1:
                    before, now = now, await put_count(client)

    assert now < 500


@pytest.mark.timeout(120)
@pytest.mark.parametrize("clients", [12, pytest.param(50, marks=pytest.mark.soak)])
async def test_clients_at_once_get_each_their_own_answer(clients: int, running: MakeApp) -> None:
    answers: dict[int, str] = {}

    async def ask(url: str, number: int) -> None:
        async with Client(url, mode=ERAS[number % 2]) as client:
            code = f"import null\n[null.echo(value={number}), null.put(value={number})['value']]"
            answers[number] = await execute(client, code)

    async with running({"null": test_server("null")}) as toolfold, listening(toolfold.app) as url:
        async with anyio.create_task_group() as tasks:
            for number in range(clients):
                tasks.start_soon(ask, url, number)

    assert {number: json.loads(answer) for number, answer in answers.items()} == {
        number: [str(number), number] for number in range(clients)
    }


async def test_health_says_how_each_server_is(running: MakeApp) -> None:
    servers = {"null": test_server("null"), "broken": test_server("faulty", "exit")}
    async with running(servers) as toolfold, listening(toolfold.app) as url:
        async with httpx2.AsyncClient(base_url=url.removesuffix("/mcp"), timeout=60) as http:
            before = (await http.get("/health")).json()
            await toolfold.app.catalog.learn()
            after = (await http.get("/health")).json()

    assert before["status"] == "ok"
    assert [server["name"] for server in before["servers"]] == ["broken", "null"]
    broken, null = after["servers"]
    assert (null["name"], null["state"], null["tools"]) == ("null", "known", 2)
    assert broken["state"] == "failed"
    assert "licence key is missing" in broken["fault"]


async def chunks() -> AsyncIterator[bytes]:
    for _ in range(MAX_BODY_BYTES // 65536 + 1):
        yield bytes(65536)


JSON = {"content-type": "application/json", **ACCEPT}
REFUSED: dict[str, tuple[int, str, dict[str, Any]]] = {
    "a foreign host": (421, "/mcp", {"headers": {**JSON, "host": "evil.example"}}),
    "our port under a foreign host": (421, "/health", {"headers": {"host": "evil.example:{port}"}}),
    "another port": (421, "/health", {"headers": {"host": "localhost:1"}}),
    "no port": (421, "/health", {"headers": {"host": "localhost"}}),
    "a foreign origin": (403, "/mcp", {"headers": {**JSON, "origin": "http://evil.example"}}),
    "an origin with another port": (403, "/mcp", {"headers": {"origin": "http://localhost:1"}}),
    "an origin that hides": (403, "/mcp", {"headers": {"origin": "null"}}),
    "an unknown place": (404, "/nowhere", {}),
    "an unknown method": (405, "/mcp", {"method": "PUT", "headers": JSON}),
    "a method of the old protocol": (
        405, "/mcp", {"method": "GET", "headers": {**JSON, "mcp-protocol-version": MODERN}},
    ),
    "text": (400, "/mcp", {"content": "hello"}),
    "what is not JSON": (400, "/mcp", {"content": "{", "headers": JSON}),
    "no way to answer": (
        406, "/mcp",
        {"content": "{}", "headers": {"content-type": "application/json", "accept": "text/html"}},
    ),
    "a large body": (413, "/mcp", {"content": bytes(MAX_BODY_BYTES + 1), "headers": JSON}),
    "a large body in chunks": (413, "/mcp", {"content": chunks, "headers": JSON}),
    "a long header": (431, "/health", {"headers": {"x-long": "a" * 100_000}}),
    "many headers": (431, "/mcp", {"headers": {f"x-{n}": "a" * 9_000 for n in range(8)}}),
}  # fmt: skip


async def test_what_is_refused_is_told_why_in_a_sentence(running: MakeApp) -> None:
    refused = {}
    async with running({}) as toolfold, listening(toolfold.app) as url:
        port = url.split(":")[2].split("/")[0]
        for name, (_, path, options) in REFUSED.items():
            async with httpx2.AsyncClient(base_url=url.removesuffix("/mcp"), timeout=60) as http:
                refused[name] = await http.request(**prepared(path, port, options))

    for name, (status, _, _) in REFUSED.items():
        answer = refused[name]
        assert answer.status_code == status, f"{name}: {answer.text}"
        assert answer.json()["error"]["message"], name
        assert "server" not in answer.headers
    assert "/mcp does not take PUT." in refused["an unknown method"].text
    assert "POST" in refused["an unknown method"].headers["allow"]


def prepared(path: str, port: str, options: dict[str, Any]) -> dict[str, Any]:
    headers = {key: text.format(port=port) for key, text in options.get("headers", {}).items()}
    content = options.get("content")
    content = content() if callable(content) else content
    method = options.get("method", "GET" if path == "/health" else "POST")
    return {"method": method, "url": path, "headers": headers, "content": content}


async def test_a_body_that_does_not_come_is_not_waited_for(
    running: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "BODY_TIME_S", 0.2)
    async with running({}) as toolfold, listening(toolfold.app) as url:
        host = url.split("/")[2]
        name, port = host.split(":")
        async with await anyio.connect_tcp(name, int(port)) as stream:
            await stream.send(f"POST /mcp HTTP/1.1\r\nHost: {host}\r\n".encode())
            await stream.send(b"Content-Length: 10\r\n\r\n{")
            with anyio.fail_after(60):
                answer = b"".join([part async for part in stream])

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"did not arrive within" in answer


async def test_a_body_that_is_announced_as_too_large_is_refused_before_it_is_sent(
    running: MakeApp,
) -> None:
    async with running({}) as toolfold, listening(toolfold.app) as url:
        host = url.split("/")[2]
        name, port = host.split(":")
        async with await anyio.connect_tcp(name, int(port)) as stream:
            head = f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nExpect: 100-continue\r\n"
            await stream.send(f"{head}Content-Length: {MAX_BODY_BYTES + 1}\r\n\r\n".encode())
            with anyio.fail_after(60):
                answer = await stream.receive()

    assert answer.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("host", "origin", "objection"),
    [
        ("127.0.0.1:8765", None, None),
        ("LOCALHOST:8765", "http://localhost:8765", None),
        ("[::1]:8765", "http://[::1]:8765", None),
        ("127.9.9.9:8765", None, None),
        ("tools.example", None, None),
        ("tools.example:99", "https://app.example", None),
        ("other.example:8443", None, None),
        ("other.example", None, 421),
        ("localhost.evil.example:8765", None, 421),
        ("127.0.0.1.evil.example:8765", None, 421),
        ("evil.example#@localhost:8765", None, 421),
        ("0.0.0.0:8765", None, 421),
        ("[::]:8765", None, 421),
        ("[::1%25x]:8765", None, 421),
        ("[::1%x]:8765", None, 421),
        ("", None, 421),
        ("127.0.0.1:8765", "https://localhost:8765", 403),
        ("127.0.0.1:8765", "http://localhost:8765.evil.example", 403),
        ("127.0.0.1:8765", "https://app.example.evil.example", 403),
        ("127.0.0.1:8765", "", 403),
    ],
)
def test_only_loopback_names_and_those_the_user_allowed_get_in(
    host: str, origin: str | None, objection: int | None
) -> None:
    access_control = AccessControl(
        allowed_hosts=frozenset({"tools.example", "other.example:8443"}),
        allowed_origins=frozenset({"https://app.example"}),
    )
    headers = [(b"host", host.encode())]
    headers += [] if origin is None else [(b"origin", origin.encode())]
    scope = {"type": "http", "headers": headers, "server": ("127.0.0.1", 8765)}

    assert access_control.objection(scope) == objection


async def test_pages_of_an_allowed_origin_can_read_our_answers(running: MakeApp) -> None:
    toml = 'allowed_origins = ["https://app.example"]\nallowed_hosts = ["tools.example"]'
    page = {"origin": "https://app.example", "host": "tools.example"}
    asking = {"access-control-request-method": "POST"}
    async with running({}, toml=toml) as toolfold, listening(toolfold.app) as url:
        async with httpx2.AsyncClient(timeout=60) as http:
            before = await http.options(url, headers={**page, **asking})
            answer = await http.post(url, headers={**page, **ACCEPT}, json=initialization())

    assert before.status_code == 200
    assert before.headers["access-control-allow-origin"] == "https://app.example"
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    assert "mcp-session-id" in answer.headers["access-control-expose-headers"]


async def test_sessions_are_bounded_and_end_when_idle(
    running: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack, "_MAX_SESSIONS", 1)
    monkeypatch.setattr(stack, "_SESSION_IDLE_S", 0.5)
    async with running({}) as toolfold, listening(toolfold.app) as url:
        async with httpx2.AsyncClient(timeout=60) as http:
            session = await new_session(http, url)
            refused = await http.post(url, headers=ACCEPT, json=initialization())
            with anyio.fail_after(60):
                while refused.status_code == 503:
                    refused_once = refused.json()
                    refused = await http.post(url, headers=ACCEPT, json=initialization())
            late = await http.post(url, headers=session, json=request_body("tools/list", {}))

    assert refused_once["error"]["message"] == "Too many open sessions"
    assert refused.status_code == 200
    assert late.status_code == 404


def test_the_address_comes_from_flags_before_environment_before_file(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "config").mkdir(parents=True)
    (home / "config" / "config.toml").write_text('host = "::1"\nport = 1\nallowed_hosts = ["a"]')
    project = tmp_path / "project"
    (project / ".toolfold").mkdir(parents=True)
    (project / ".toolfold" / "config.toml").write_text(
        'host = "0.0.0.0"\nport = 2\nallowed_hosts = ["b"]\nallowed_origins = ["http://b"]'
    )
    environ = {"PATH": "", "HOME": str(tmp_path), "TOOLFOLD_HOME": str(home), "TOOLFOLD_PORT": "3"}

    from_environ = load_config(cwd=project, environ=environ)
    from_flags = load_config(cwd=project, environ=environ, overrides={"port": "0"})

    assert (from_environ.settings.host, from_environ.settings.port) == ("::1", 3)
    assert from_environ.settings.allowed_hosts == ("a",)
    assert from_environ.settings.allowed_origins == ()
    assert len([fault for fault in from_environ.faults if "a project may not" in str(fault)]) == 4
    assert from_flags.settings.port == 0


async def test_a_request_that_is_ended_with_us_is_told_so(running: MakeApp) -> None:
    answers: list[httpx2.Response] = []
    headers, body = modern_call("import null, time\nnull.put(value=0)\ntime.sleep(50)")
    del body["params"]["_meta"]["progressToken"]

    async def ask(url: str) -> None:
        async with httpx2.AsyncClient(timeout=60) as http:
            answers.append(await http.post(url, headers=headers, json=body))

    async with running({"null": test_server("null")}) as toolfold:
        async with anyio.create_task_group() as tasks:
            async with listening(toolfold.app) as url:
                tasks.start_soon(ask, url)
                asked = 1
                with anyio.fail_after(60):
                    while (await toolfold.run(COUNT)).value == asked:
                        asked += 1

    assert answers[0].status_code == 503
    assert "toolfold is ending" in answers[0].json()["error"]["message"]


async def test_our_own_failure_is_a_sentence_too() -> None:
    async def fail(_request: Request) -> Response:
        raise LookupError("a secret")

    app = stack.mcp_app(
        Server("broken"), access_control=AccessControl(), routes=[Route("/broken", fail)]
    )
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        answer = await http.get("/broken")

    assert answer.status_code == 500
    assert "Internal error." in answer.json()["error"]["message"]
    assert "secret" not in answer.text


@contextmanager
def open_streams(served: Serving) -> Iterator[list[threading.Thread]]:
    """Keep a run of each protocol and a stream of a session open, each read in a thread."""
    progress = threading.Semaphore(0)

    def read(method: str, headers: dict[str, str], body: dict[str, Any] | None) -> None:
        with httpx2.Client(timeout=None) as http:
            with http.stream(method, served.url, headers=headers, json=body) as stream:
                if method == "GET":
                    progress.release()
                for line in stream.iter_lines():
                    if "notifications/progress" in line:
                        progress.release()

    with httpx2.Client(timeout=60) as http:
        session = session_headers(http.post(served.url, headers=ACCEPT, json=initialization()))
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        http.post(served.url, headers=session, json=ready)
    requests = [("POST", *modern_call(ENDLESS)), ("POST", *legacy_call(ENDLESS, session))]
    requests.append(("GET", session, None))  # type: ignore[arg-type]
    readers = [threading.Thread(target=read, args=request) for request in requests]
    for reader in readers:
        reader.start()
    for _ in readers:
        assert progress.acquire(timeout=30)
    yield readers
    for reader in readers:
        reader.join(timeout=60)
        assert not reader.is_alive()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("signal_number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_open_streams_and_every_process(
    signal_number: int, status: int, tmp_path: Path, home: Path
) -> None:
    config = write_config(tmp_path / "mcp.json", {"null": test_server("null")})
    command = serve_command(config, interpreter=sys.executable)
    with serving(command, home=home) as served, open_streams(served):
        children = served.children()
        served.process.send_signal(signal_number)
        ended = served.process.wait(timeout=60)

    assert children
    assert ended == status
    assert [pid for pid in children if Path(f"/proc/{pid}").exists()] == []
    assert (home / "stderr").read_text() == ""


def refused_start(tmp_path: Path, home: Path, *arguments: str) -> str:
    config = write_config(tmp_path / "mcp.json", {})
    done = subprocess.run(
        [*serve_command(config), *arguments],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "TOOLFOLD_HOME": str(home)},
    )
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


def test_a_port_that_is_taken_is_said_to_be(tmp_path: Path, home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = refused_start(tmp_path, home, "--port", port)

    assert said.startswith(f"toolfold: Port {port} of 127.0.0.1 is in use")
    assert "--port 0" in said


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_other_machines_are_not_served_without_keys(host: str, tmp_path: Path, home: Path) -> None:
    said = refused_start(tmp_path, home, "--host", host)

    assert f"{host!r} is not loopback, so clients need an API key, and there is none." in said


def test_a_port_that_is_none_is_refused(tmp_path: Path, home: Path) -> None:
    assert "`port` must be a port" in refused_start(tmp_path, home, "--port", "70000")


@pytest.mark.timeout(180)
def test_the_official_inspector_works_over_http(tmp_path: Path, home: Path) -> None:
    servers = {
        "notes": entry(
            node_server("memory"), env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
        ),
        "everything": entry(node_server("everything", "stdio")),
    }
    config = write_config(tmp_path / "mcp.json", servers)
    code = (
        "import notes, everything\n"
        "entity = {'name': 'Ada', 'entityType': 'person', 'observations': ['wrote programs']}\n"
        "notes.create_entities(entities=[entity])\n"
        "[notes.read_graph()['entities'][0]['name'], everything.get_sum(a=2, b=3)]"
    )

    with serving(serve_command(config), home=home) as served:

        def inspect(*arguments: str) -> dict[str, Any]:
            url = ["--transport", "http", "--server-url", served.url]
            done = subprocess.run(
                inspector("--cli", *url, *arguments), capture_output=True, text=True, timeout=80
            )
            assert done.returncode == 0, done.stdout + done.stderr
            answer: dict[str, Any] = json.loads(done.stdout)
            return answer

        listed = inspect("--method", "tools/list")
        call = ("--tool-name", "execute_code", "--tool-arg", f"code={code}")
        called = inspect("--method", "tools/call", *call)

    assert [tool["name"] for tool in listed["tools"]] == ["execute_code"]
    assert not called.get("isError"), called
    name, total = json.loads(called["content"][0]["text"])
    assert name == "Ada"
    assert "5" in total
