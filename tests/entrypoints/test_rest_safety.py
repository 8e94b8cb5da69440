"""Who gets in at the REST API, with what, and what is refused."""

import json
import os
import stat
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import SocketStream
from http_daemon import serve_command, serving
from machine import Machine
from rest_door import door, listening
from support import MakeApp, python, test_server, write_config

from toolfold.app import App, running_app
from toolfold.config.config import Config, load_config
from toolfold.entrypoints.daemon import app_pool
from toolfold.entrypoints.http import callers, connection, guard
from toolfold.entrypoints.http.guard import MAX_BODY_BYTES
from toolfold.entrypoints.http.keys import KeyFile, Keys, LocalToken
from toolfold.errors import ConfigError, NotFound

NOTE = {"content": "something to remember"}


def make_key(app: App, name: str = "ci", namespace: str = "team") -> str:
    _, secret = Keys.of(app.config).create(name, namespace, now=0.0)
    return secret


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


@pytest.mark.parametrize(
    "marks",
    [
        {"origin": "http://localhost"},
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-mode": "cors"},
        {"origin": "http://localhost", "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"},
    ],
)
async def test_a_page_changes_nothing_without_the_local_token(
    running: MakeApp, marks: dict[str, str]
) -> None:
    async with running({}) as toolfold, door(toolfold.app) as http:
        refused = [
            await http.post("/memory/notes", json=NOTE, headers=marks),
            await http.post("/execute", json={"code": "1"}, headers=marks),
            await http.delete("/memory/notes/abcd1234", headers=marks),
            await http.post("/memory/notes", json=NOTE, headers={**marks, **bearer("wrong")}),
        ]
        reading = await http.get("/memory/notes", headers=marks)
        token = LocalToken(toolfold.app.config.directories).get()
        stored = await http.post("/memory/notes", json=NOTE, headers={**marks, **bearer(token)})

    assert [answer.status_code for answer in refused] == [401] * 4
    codes = [answer.json()["error"]["code"] for answer in refused]
    assert codes == ["token_required"] * 3 + ["bad_key"]
    assert reading.json()["total"] == 0
    assert stored.status_code == 201


async def test_pages_of_other_sites_get_nothing_at_all(running: MakeApp) -> None:
    async with running({}) as toolfold, door(toolfold.app) as http:
        token = LocalToken(toolfold.app.config.directories).get()
        cross = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
        foreign = {"origin": "https://evil.example", **bearer(token)}
        answers = [
            await http.get("/memory/notes", headers=cross),
            await http.get("/memory/notes", headers=foreign),
            await http.post("/memory/notes", json=NOTE, headers=foreign),
            await http.get("/memory/notes", headers={"host": "evil.example"}),
        ]
        visit = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
        page = await http.get("/docs", headers=visit)

    assert [answer.status_code for answer in answers] == [403, 403, 403, 421]
    codes = [answer.json()["error"]["code"] for answer in answers]
    assert codes == ["forbidden", "forbidden", "forbidden", "wrong_host"]
    assert page.status_code == 200


async def test_sleeping_runs_of_a_key_do_not_delay_the_local_user(
    running: MakeApp, tmp_path: Path
) -> None:
    received = tmp_path / "bank.jsonl"
    servers = {"bank": test_server("bank", received)}
    ended: list[int] = []
    async with (
        running(servers, toml="workers = 2\n") as toolfold,
        door(toolfold.app) as http,
        anyio.create_task_group() as tasks,
    ):
        headers = bearer(make_key(toolfold.app))
        sleep = {"code": "import bank, time\nbank.balance(account='1')\ntime.sleep(59)"}

        async def run() -> None:
            ended.append((await http.post("/execute", json=sleep, headers=headers)).status_code)

        for _ in range(12):
            tasks.start_soon(run)
        with anyio.fail_after(120):
            while not received.exists():  # a server of its own writes it
                await anyio.sleep(0.02)
        mine = await http.post("/execute", json={"code": "6 * 7"})
        ended_meanwhile = list(ended)
        tasks.cancel_scope.cancel()

    assert mine.json()["value"] == 42
    assert ended_meanwhile == []
    assert len(received.read_text().splitlines()) == 1  # the other place is the user's


async def test_a_key_has_only_so_much_under_way_at_once(running: MakeApp) -> None:
    toml = "[keys]\nat_once = 2\n"
    async with running({}, toml=toml) as toolfold, door(toolfold.app) as http:
        key, other = (bearer(make_key(toolfold.app, name)) for name in ("ci", "cd"))
        sleep = {"code": "import time\ntime.sleep(59)", "background": True}
        begun = [await http.post("/execute", json=sleep, headers=key) for _ in range(2)]
        refused = [
            await http.post("/execute", json=sleep, headers=key),
            await http.post("/memory/notes", json=NOTE, headers=key),
            await http.post("/tools/memory.store/execute", json={"arguments": NOTE}, headers=key),
        ]
        reading = await http.get("/runs", headers=key)
        others = await http.post("/memory/notes", json=NOTE, headers=other)
        mine = await http.post("/memory/notes", json=NOTE)
        for each in begun:
            run = toolfold.app.shared.background_runs.find(each.json()["run_id"])
            assert run is not None
            await toolfold.app.shared.background_runs.stop(run)
        again = await http.post("/memory/notes", json={"content": "later"}, headers=key)

    assert [each.status_code for each in begun] == [200, 200]
    assert [each.status_code for each in refused] == [429] * 3
    assert {each.headers["retry-after"] for each in refused} == {"1"}
    assert refused[0].json()["error"] == {
        "code": "too_many_requests",
        "message": "This key has 2 runs and calls under way, which is as many as it may have at "
        "one time (`keys.at_once`). Wait for one to end, then try again.",
    }
    assert [each.status_code for each in (reading, others, mine, again)] == [200, 201, 201, 201]


async def test_a_key_asks_only_so_often_in_a_minute(
    running: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000.0
    monkeypatch.setattr(callers.time, "monotonic", lambda: now)
    pace = callers.RequestPace(3)
    assert [pace.objection("a") for _ in range(3)] == [None] * 3
    refused = pace.objection("a")
    assert refused is not None
    assert (refused.status, refused.retry_after_s) == (429, 20)
    assert pace.objection("b") is None
    now += 20
    assert pace.objection("a") is None
    assert pace.objection("a") is not None
    monkeypatch.undo()

    toml = "[keys]\nper_minute = 1\n"
    async with running({}, toml=toml) as toolfold, door(toolfold.app) as http:
        key = bearer(make_key(toolfold.app))
        first, second = [await http.get("/runs", headers=key) for _ in range(2)]
        local = await http.get("/runs")
        mcp = await http.post("/mcp", json={}, headers=key)

    assert (first.status_code, second.status_code, local.status_code) == (200, 429, 200)
    assert second.json()["error"]["code"] == "too_many_requests"
    assert "1 requests" not in second.json()["error"]["message"]
    assert 0 < int(second.headers["retry-after"]) <= 60
    assert mcp.status_code == 429


async def test_wrong_keys_are_answered_late_and_logged(
    running: MakeApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert [callers.delay_s(each) for each in (1, 3, 4, 5, 6, 10**6)] == [0, 0, 1.6, 3.2, 5, 5]
    asked: list[int] = []

    def delay_s(count: int) -> float:
        asked.append(count)
        return 0.0 if count < 5 else 3600.0

    monkeypatch.setattr(callers, "delay_s", delay_s)
    statuses: list[int] = []
    async with running({}) as toolfold, door(toolfold.app) as http:
        good = make_key(toolfold.app)
        wrong = bearer(good[:-4] + "oops")

        async def ask() -> None:
            statuses.append((await http.get("/runs", headers=wrong)).status_code)

        for _ in range(4):
            await ask()
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(ask)
            with anyio.fail_after(60):
                while len(asked) < 24:
                    await anyio.sleep(0.01)
            beyond = await http.get("/runs", headers=wrong)
            right = await http.get("/runs", headers=bearer(good))
            tasks.cancel_scope.cancel()

    assert statuses == [401] * 4
    assert beyond.status_code == 429
    assert beyond.headers["retry-after"] == "5"
    assert right.status_code == 200
    logged = [record.getMessage() for record in caplog.records if "wrong API key" in record.msg]
    assert [line.rpartition(", ")[2] for line in logged] == [
        f"{count} so far." for count in (1, 2, 4, 8, 16)
    ]
    assert all(good[:11] in line and good[12:20] not in line for line in logged)


FORMS = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]


async def test_what_a_form_could_send_is_not_taken_for_json(running: MakeApp) -> None:
    async with running({}) as toolfold, door(toolfold.app) as http:
        for kind in FORMS:
            answer = await http.post(
                "/memory/notes", content=json.dumps(NOTE), headers={"content-type": kind}
            )
            assert answer.status_code == 415, kind
            assert answer.json()["error"]["code"] == "unsupported_media_type"
        after = (await http.get("/memory/notes")).json()

    assert after["total"] == 0


async def test_the_page_to_try_it_loads_nothing_from_elsewhere(running: MakeApp) -> None:
    async with running({}) as toolfold, door(toolfold.app) as http:
        page = await http.get("/docs")
        script = await http.get("/docs/try.js")
        style = await http.get("/docs/try.css")
        answer = await http.get("/tools/list")

    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "//" not in page.text.replace("<!doctype html>", "")
    assert script.headers["content-type"].startswith("text/javascript")
    assert "innerHTML" not in script.text
    assert style.headers["content-type"].startswith("text/css")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


async def test_notes_of_a_key_are_seen_by_its_namespace_alone_whichever_way_they_come(
    running: MakeApp,
) -> None:
    async with running({"null": test_server("null")}) as toolfold, door(toolfold.app) as http:
        ours, theirs = (bearer(make_key(toolfold.app, name, name)) for name in ("red", "blue"))
        await http.post("/memory/notes", json={"content": "red by REST"}, headers=ours)
        code = "import memory, null\nnull.put(value=1)\nmemory.store('red by code')"
        ran = await http.post("/execute", json={"code": code}, headers=ours)
        tool = {"arguments": {"content": "red by tool"}}
        await http.post("/tools/memory.store/execute", json=tool, headers=ours)
        await http.post("/memory/notes", json={"content": "of the user"})
        seen = {
            name: (await http.get("/memory/notes", headers=headers)).json()["memories"]
            for name, headers in {"red": ours, "blue": theirs, "user": {}}.items()
        }
        code = "import memory\nlen(memory.list().memories)"
        counted = (await http.post("/execute", json={"code": code}, headers=theirs)).json()
        run_id = ran.json()["run_id"]
        runs = {
            name: len((await http.get("/runs", headers=headers)).json()["runs"])
            for name, headers in {"red": ours, "blue": theirs, "user": {}}.items()
        }
        own = await http.get(f"/runs/{run_id}", headers=ours)
        foreign = await http.get(f"/runs/{run_id}", headers=theirs)

    previews = {name: {each["preview"] for each in notes} for name, notes in seen.items()}
    assert ran.json()["success"], ran.text
    assert previews == {
        "red": {"red by REST", "red by code", "red by tool"},
        "blue": set(),
        "user": {"of the user"},
    }
    assert counted["value"] == 0
    # Each request that reads or writes notes is a run of its own, and so is each of code.
    assert runs == {"red": 4, "blue": 2, "user": 8}
    assert foreign.status_code == 404
    assert run_id not in foreign.json()["error"]["message"].replace(repr(run_id), "")
    assert own.json()["run"]["client"].startswith("key:")


async def test_mcp_serves_the_namespace_of_the_key_too(running: MakeApp) -> None:
    async with running({}) as toolfold:
        secret = make_key(toolfold.app, namespace="team")
        async with listening(toolfold.app) as url:
            headers = bearer(secret)
            async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=60) as http:
                await http.post("/memory/notes", json=NOTE)
                call = {"name": "execute_code", "arguments": {"code": COUNT}}
                answer = await http.post("/mcp", json=rpc(call), headers=MODERN)
                other = await http.post(
                    "/mcp", json=rpc(call), headers={**MODERN, "authorization": ""}
                )
                runs = (await http.get("/runs")).json()["runs"]
                local = (await http.get("/runs", headers={"authorization": ""})).json()["runs"]

    assert [run["client"][:4] for run in runs] == ["key:", "key:"]
    assert {run["client"][:4] for run in local} == {"key:", "http"}
    assert text_of(answer) == "1"
    assert text_of(other) == "0"


async def test_a_namespace_that_does_not_open_is_refused_and_the_others_go_on(
    running: MakeApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    @asynccontextmanager
    async def failing(config: Config, shared: Any) -> AsyncIterator[App]:
        if config.namespace == "broken" and is_broken:
            raise OSError("no space left")
        async with running_app(config, shared) as app:
            yield app

    is_broken = True
    monkeypatch.setattr(app_pool, "running_app", failing)
    async with running({}) as toolfold, door(toolfold.app) as http:
        headers = bearer(make_key(toolfold.app, namespace="broken"))
        other = bearer(make_key(toolfold.app, "other", namespace="team"))
        refused = await http.get("/memory/notes", headers=headers)
        call = {"name": "execute_code", "arguments": {"code": COUNT}}
        by_mcp = await http.post("/mcp", json=rpc(call), headers={**MODERN, **headers})
        served = await http.get("/memory/notes", headers=other)
        is_broken = False
        mended = await http.get("/memory/notes", headers=headers)

    assert (refused.status_code, by_mcp.status_code) == (503, 503)
    assert "did not start" in refused.json()["error"]["message"]
    assert "did not start" in by_mcp.json()["error"]["message"]
    assert (served.status_code, mended.status_code) == (200, 200)
    assert "no space left" in caplog.text


COUNT = "import memory\nmemory.health().count"
VERSION = "2026-07-28"
MODERN = {
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": VERSION,
    "mcp-method": "tools/call",
    "mcp-name": "execute_code",
}


def rpc(params: dict[str, Any]) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {**params, "_meta": meta}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def text_of(answer: httpx2.Response) -> str:
    lines = [line for line in answer.text.splitlines() if line.startswith("data: {")]
    body = json.loads(lines[-1].removeprefix("data: ")) if lines else answer.json()
    return str(body["result"]["content"][0]["text"])


async def test_where_keys_are_required_nothing_but_health_is_said_without_one(
    running: MakeApp,
) -> None:
    async with running({"null": test_server("null")}) as toolfold:
        secret = make_key(toolfold.app)
        async with door(toolfold.app, must_have_key=True) as http:
            described = (await http.get("/openapi.json", headers=bearer(secret))).json()
            bare = {
                path: (await http.get(path)).status_code
                for path, methods in described["paths"].items()
                if "get" in methods and "{" not in path
            }
            page = await http.get("/docs")
            mcp = await http.post("/mcp", json={})
            health = (await http.get("/health")).json()
            whole = (await http.get("/health", headers={"x-api-key": secret})).json()
            stored = await http.post("/memory/notes", json=NOTE, headers=bearer(secret))

    public = ("/health", "/health/live", "/health/ready")
    assert {path: bare.pop(path) for path in public} == dict.fromkeys(public, 200)
    assert set(bare.values()) == {401}
    assert (page.status_code, mcp.status_code) == (401, 401)
    assert mcp.json()["jsonrpc"] == "2.0"
    assert health.keys() == {"status", "version"}
    assert whole["servers"][0]["name"] == "null"
    assert stored.status_code == 201


async def test_a_key_that_is_revoked_opens_nothing_from_the_next_request_on(
    running: MakeApp,
) -> None:
    async with running({}) as toolfold, door(toolfold.app) as http:
        secret = make_key(toolfold.app)
        before = await http.get("/memory/notes", headers=bearer(secret))
        Keys.of(toolfold.app.config).revoke("ci", now=1.0)
        after = await http.get("/memory/notes", headers=bearer(secret))

    assert before.status_code == 200
    assert (after.status_code, after.json()["error"]["code"]) == (401, "bad_key")
    assert after.headers["www-authenticate"] == "Bearer"


async def test_beyond_loopback_we_start_only_with_keys_and_serve_only_those_who_have_one(
    running: MakeApp,
) -> None:
    async with running({}) as toolfold:
        with pytest.raises(ExceptionGroup) as refused:
            async with listening(toolfold.app, host="0.0.0.0"):
                pass
        secret = make_key(toolfold.app)
        async with listening(toolfold.app, host="0.0.0.0") as url:
            port = url.rsplit(":", 1)[1]
            async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
                bare = await http.get("/tools/discover")
                shown = await http.get("/tools/discover", headers=bearer(secret))
                address = {**bearer(secret), "host": f"192.0.2.7:{port}"}
                by_address = await http.get("/tools/discover", headers=address)
                by_name = await http.get(
                    "/tools/discover", headers={**bearer(secret), "host": f"evil.example:{port}"}
                )

    assert refused.group_contains(ConfigError, match="toolfold keys create")
    assert (bare.status_code, shown.status_code) == (401, 200)
    assert (by_address.status_code, by_name.status_code) == (200, 421)


async def too_much() -> AsyncIterator[bytes]:
    for _ in range(MAX_BODY_BYTES // 65536 + 1):
        yield bytes(65536)


async def test_huge_and_slow_requests_are_refused_in_the_shape_of_this_door(
    running: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {"content-type": "application/json"}
    async with running({}) as toolfold, listening(toolfold.app) as url:
        async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
            huge = await http.post("/memory/notes", content=too_much(), headers=headers)
            monkeypatch.setattr(guard, "BODY_TIME_S", 0.2)
            host, port = url.removeprefix("http://").split(":")
            async with await anyio.connect_tcp(host, int(port)) as stream:
                head = f"POST /memory/notes HTTP/1.1\r\nHost: {host}:{port}\r\n"
                await stream.send(f"{head}Content-Length: 10\r\n\r\n{{".encode())
                with anyio.fail_after(60):
                    slow = b"".join([part async for part in stream])
            async with await anyio.connect_tcp(host, int(port)) as stream:
                await stream.send(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
                with anyio.fail_after(60):
                    malformed = await stream.receive()
            alive = await http.get("/health")

    assert (huge.status_code, huge.json()["error"]["code"]) == (413, "too_large")
    assert slow.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"body_timeout"' in slow
    assert malformed.startswith(b"HTTP/1.1 400 ")
    assert b'"code": "bad_request"' in malformed
    assert alive.status_code == 200


async def drip(stream: SocketStream, http: httpx2.AsyncClient, url: str) -> None:
    """Send a first line that never ends, a letter at a time, while others are served."""
    while True:
        await stream.send(b"X")
        await http.get(f"{url}/health")


async def test_headers_that_come_drop_by_drop_or_not_at_all_are_not_waited_for(
    running: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_TIME_S", 0.3)
    async with running({}) as toolfold, listening(toolfold.app) as url:
        host, port = url.removeprefix("http://").split(":")
        whole = f"GET /health HTTP/1.1\r\nHost: {host}:{port}\r\n".encode()
        answers: dict[str, bytes] = {}
        for name, sent in {
            "begun": whole,
            "silent": b"",
            "second": whole + b"\r\n" + whole,
        }.items():
            async with await anyio.connect_tcp(host, int(port)) as stream:
                if sent:
                    await stream.send(sent)
                with anyio.fail_after(60):
                    answers[name] = b"".join([part async for part in stream])
        async with await anyio.connect_tcp(host, int(port)) as stream, httpx2.AsyncClient() as http:
            with anyio.fail_after(60), pytest.raises((anyio.BrokenResourceError, BrokenPipeError)):
                await drip(stream, http, url)
            alive = await http.get(f"{url}/health")

    assert answers["begun"].startswith(b"HTTP/1.1 408 ")
    assert b'"code": "body_timeout"' in answers["begun"]
    assert answers["silent"] == b""
    assert answers["second"].startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 408 " in answers["second"]
    assert alive.status_code == 200


async def test_unknown_places_and_methods_are_told_in_the_same_shape(running: MakeApp) -> None:
    async with running({}) as toolfold, door(toolfold.app) as http:
        place = await http.get("/nowhere")
        method = await http.put("/memory/notes")

    assert (place.status_code, place.json()["error"]["code"]) == (404, "not_found")
    assert (method.status_code, method.json()["error"]["code"]) == (405, "method_not_allowed")
    assert set(method.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}


def test_who_makes_a_second_key_of_a_name_is_told_of_the_first(machine: Machine) -> None:
    first = machine.run("keys", "create", "ci")
    listed = machine.run("keys", "list", "--json")
    second = machine.run("keys", "create", "ci")

    [key] = json.loads(listed.out)
    assert "another that is valid" not in first.err
    assert f"'ci' has another that is valid: `toolfold keys revoke {key['id']}` ends it." in (
        second.err
    )


def test_a_key_is_shown_once_and_kept_hashed_in_a_private_file(machine: Machine) -> None:
    made = machine.run("keys", "create", "ci", "--namespace", "team")
    secret = made.out.strip()
    listed = machine.run("keys", "list", "--json")
    revoked = machine.run("keys", "revoke", "ci", "--yes")
    again = machine.run("keys", "revoke", "ci")
    path = machine.home / ".local/share/toolfold/keys.json"

    assert secret.startswith("tf_")
    assert len(secret) > 50
    assert secret not in path.read_text() + listed.out
    assert secret.split("_", 2)[2] not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(listed.out)[0]["namespace"] == "team"
    assert (revoked.status, again.status) == (0, 2)
    assert "`toolfold keys list`" in again.err


def test_the_token_stays_until_it_is_renewed(machine: Machine) -> None:
    first, second = machine.run("keys", "token"), machine.run("keys", "token")
    renewed = machine.run("keys", "token", "--renew")
    third = machine.run("keys", "token")
    path = machine.home / ".local/state/toolfold/token"

    assert first.out == second.out != renewed.out == third.out
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_keys_that_several_make_at_once_are_all_kept(tmp_path: Path) -> None:
    command = [python(), "-m", "toolfold", "keys", "create"]
    environ = {"PATH": os.environ["PATH"], "TOOLFOLD_HOME": str(tmp_path)}
    makers = [
        subprocess.Popen([*command, str(number)], env=environ, stdout=subprocess.PIPE, text=True)
        for number in range(4)
    ]
    secrets = {maker.communicate(timeout=50)[0].strip() for maker in makers}
    keys = Keys(KeyFile(tmp_path / "data" / "keys.json"))

    assert len(secrets) == 4
    assert {key.name for key in map(keys.find, secrets) if key} == {"0", "1", "2", "3"}


def test_keys_are_told_apart_and_found_by_nothing_else(tmp_path: Path) -> None:
    keys = Keys(KeyFile(tmp_path / "data" / "keys.json"))
    one, secret = keys.create("ci", "team", now=0.0)
    other, _ = keys.create("ci", "team", now=0.0)

    assert keys.find(secret) == one
    assert keys.find(secret[:-1]) is keys.find("") is keys.find("\ud800") is None
    with pytest.raises(NotFound, match=f"2 keys are named 'ci': say which, {one.id}, {other.id}"):
        keys.revoke("ci", now=1.0)
    assert keys.revoke(other.id[:7], now=1.0).revoked == 1.0
    assert keys.valid() == (one,)
    (tmp_path / "data" / "keys.json").write_text("{")
    with pytest.raises(ConfigError, match="cannot be read"):
        keys.find(secret)


def test_the_data_directory_comes_from_the_flag_before_the_environment(tmp_path: Path) -> None:
    config = write_config(tmp_path / "mcp.json", {})
    chosen = tmp_path / "chosen"
    with serving(serve_command(config, "--data-dir", str(chosen)), home=tmp_path / "home") as here:
        with httpx2.Client(base_url=here.root, timeout=60) as http:
            assert http.post("/memory/notes", json=NOTE).status_code == 201
    environ = {"HOME": str(tmp_path), "TOOLFOLD_HOME": str(tmp_path / "home")}
    named = load_config(cwd=tmp_path, environ={**environ, "TOOLFOLD_DATA_DIR": str(chosen)})

    assert {"memory.db", "runs.db"} <= {path.name for path in chosen.iterdir()}
    assert not (tmp_path / "home" / "data").exists()
    assert named.directories.data == chosen
    assert named.directories.state == tmp_path / "home" / "state"
    with pytest.raises(ConfigError, match="TOOLFOLD_DATA_DIR must be an absolute path"):
        load_config(cwd=tmp_path, environ={**environ, "TOOLFOLD_DATA_DIR": "here"})
