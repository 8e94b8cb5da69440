"""Memory, events, the graph, consolidation and runs over REST."""

import json
import math
from typing import Any

import anyio
import httpx2
import pytest
from rest_door import door, listening
from support import MakeApp, test_server

from toolfold.entrypoints.rest.answers import encode

ENDLESS = "import null, time\nfor i in range(2000):\n    null.put(value=i)\n    time.sleep(0.02)"


async def test_a_note_is_stored_found_changed_forgotten_and_brought_back(running: MakeApp) -> None:
    async with running({}) as toolfold, door(toolfold.app) as http:
        body = {"content": "Staging runs on port 5433", "tags": ["db", "ports"]}
        stored = await http.post("/memory/notes", json=body)
        note = f"/memory/notes/{stored.json()['hash']}"
        found = await http.get("/memory/search", params={"query": "port", "tags": "ports,other"})
        recalled = await http.get("/memory/recall", params={"query": "what port, today"})
        changed = await http.patch(note, json={"content": "Staging runs on port 5434"})
        versions = await http.get(f"{note}/history")
        deleted = await http.delete(note)
        gone = await http.get(note)
        restored = await http.post(f"{note}/restore")
        whole = await http.get(note)

    assert stored.status_code == 201
    assert found.json()["memories"][0]["preview"] == "Staging runs on port 5433"
    assert recalled.json()["total"] == 1
    assert changed.json()["hash"] != stored.json()["hash"]
    assert [each["version"] for each in versions.json()["versions"]] == [1, 2]
    assert deleted.json() == {"deleted": True}
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "not_found")
    assert restored.json() == {"restored": True}
    assert whole.json()["content"] == "Staging runs on port 5434"


async def test_notes_come_in_pages_that_say_where_the_next_begins(running: MakeApp) -> None:
    async with running({}) as toolfold, door(toolfold.app) as http:
        notes: Any = [f"note number {number}" for number in range(5)]
        batch = {"arguments": {"notes": notes}}
        assert (await http.post("/tools/memory.store_batch/execute", json=batch)).is_success
        pages = []
        offset = 0
        while offset is not None:
            page = (await http.get("/memory/notes", params={"limit": 2, "offset": offset})).json()
            pages.append([memory["preview"] for memory in page["memories"]])
            offset = page["next_offset"]

    assert [len(page) for page in pages] == [2, 2, 1]
    assert sorted(preview for page in pages for preview in page) == notes


async def test_events_the_graph_and_consolidation_answer(running: MakeApp) -> None:
    async with running({}) as toolfold, door(toolfold.app) as http:
        event = await http.post("/events", json={"event_type": "deploy", "outcome": "ok"})
        events = await http.get("/events", params={"event_type": "deploy", "since": "today"})
        whole = await http.get(f"/events/{event.json()['id']}")
        for name in ("Ada", "Acme", "Bern"):
            await http.post("/graph/entities", json={"name": name, "entity_type": "thing"})
        relation = {"from": "Ada", "to": "Acme", "relationType": "works at"}
        await http.post("/graph/relations", json={"relations": [relation]})
        entities = await http.get("/graph/entities", params={"limit": 2})
        relations = await http.get("/graph/relations")
        path = await http.get("/graph/path", params={"source": "Acme", "target": "Ada"})
        done = await http.post("/consolidation", json={"strategy": "minimal", "dry_run": True})
        past = await http.get("/consolidation")

    assert event.status_code == 201
    assert events.json()["total"] == 1
    assert whole.json()["outcome"] == "ok"
    assert [each["name"] for each in entities.json()["entities"]] == ["Ada", "Acme"]
    assert entities.json()["next_offset"] == 2
    assert relations.json()["relations"] == [relation]
    assert path.json()["names"] == ["Acme", "Ada"]
    assert done.json()["strategy"] == "minimal"
    assert past.json() == {"consolidations": []}


UNUSABLE: list[tuple[str, str, bytes | None, str]] = [
    ("GET", "/memory/search", None, "'query' is a required property"),
    ("GET", "/memory/search?query=a&limit=many", None, "`limit`"),
    ("GET", "/memory/search?query=a&limit=1&limit=2", None, "given twice"),
    ("GET", "/memory/search?query=%ff", None, "cannot be read"),
    ("GET", "/memory/search?q=a", None, "no argument 'q'"),
    ("GET", "/memory/notes/xyz", None, "not the hash of a note"),
    ("POST", "/memory/notes", b"{", "not JSON"),
    ("POST", "/memory/notes", b"[]", "must be a JSON object"),
    ("POST", "/memory/notes", b'{"content": NaN}', "NaN"),
    ("POST", "/memory/notes", b'{"content": "a", "importance": 1e400}', "1e400 is too large"),
    ("POST", "/tools/memory.store/execute", b'{"arguments": {"x": -1e999}}', "too large"),
    ("POST", "/memory/notes", b'{"content": "\xff"}', "not JSON"),
    ("POST", "/memory/notes", b'{"content": "\\ud800"}', "surrogates"),
    ("POST", "/memory/notes", b"[" * 100_000, "not JSON"),
    ("POST", "/memory/notes", b'{"content": 7}', "`content`"),
    ("POST", "/memory/notes", b'{"content": "a", "contents": 1}', "'contents'"),
    ("POST", "/memory/notes?content=a", None, "in the body"),
    ("POST", "/documents", b'{"path": "/etc/passwd"}', "ingest_roots"),
    ("POST", "/tools/memory.store/execute", b'{"arguments": {}}', "content"),
    ("POST", "/execute", b"{}", "'code' is a required property"),
]


async def test_what_cannot_be_used_is_refused_with_a_sentence_and_changes_nothing(
    running: MakeApp,
) -> None:
    async with running({}) as toolfold, door(toolfold.app) as http:
        for method, path, content, said in UNUSABLE:
            headers = {} if content is None else {"content-type": "application/json"}
            answer = await http.request(method, path, headers=headers, content=content)
            assert answer.status_code == 400, (path, answer.text)
            assert answer.json()["error"]["code"] in {"bad_input", "bad_call"}
            assert said in answer.json()["error"]["message"]
        after = (await http.get("/memory/notes")).json()

    assert after["total"] == 0


def test_values_that_json_has_no_words_for_do_not_make_an_answer_unreadable() -> None:
    assert encode({"a": "ü"}) == '{"a":"ü"}'.encode()
    assert json.loads(encode([math.inf, {"x": math.nan}, "\ud800", "ü", (1,)])) == [
        None, {"x": None}, "\ud800", "ü", [1],
    ]  # fmt: skip


async def test_a_run_tells_of_its_calls_as_events_and_then_of_its_result(running: MakeApp) -> None:
    code = "import null, time\nfor i in range(3):\n    null.put(value=i)\n    time.sleep(0.15)\n7"
    async with running({"null": test_server("null")}) as toolfold, door(toolfold.app) as http:
        headers = {"accept": "text/event-stream"}
        answer = await http.post("/execute", json={"code": code}, headers=headers)
    events = [event.split("\n") for event in answer.text.strip().split("\n\n")]
    heard = [(kind, json.loads(data.removeprefix("data: "))) for kind, data in events]

    assert answer.headers["content-type"].startswith("text/event-stream")
    assert [value["call"] for kind, value in heard if kind == "event: progress"] == [
        "null.put 1", "null.put 2", "null.put 3",
    ]  # fmt: skip
    assert heard[-1][0] == "event: result"
    assert heard[-1][1]["value"] == 7


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_closing_the_connection_cancels_the_run(running: MakeApp, accept: str) -> None:
    async with running({"null": test_server("null")}) as toolfold:
        async with listening(toolfold.app) as url, httpx2.AsyncClient(base_url=url) as http:
            host, port = url.removeprefix("http://").split(":")
            body = json.dumps({"code": ENDLESS}).encode()
            head = f"POST /execute HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: {accept}\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            async with await anyio.connect_tcp(host, int(port)) as stream:
                await stream.send(head.encode() + body)
                with anyio.fail_after(60):
                    while not (await http.get("/runs")).json()["runs"]:
                        pass
            with anyio.fail_after(60):
                while not (run := (await http.get("/runs")).json()["runs"][0])["is_ended"]:
                    pass

    assert run["failure"] == "cancelled"
    assert run["call_count"] < 1_000


async def test_calls_and_runs_are_in_the_journal_with_their_failures(running: MakeApp) -> None:
    async with running({"null": test_server("null")}) as toolfold, door(toolfold.app) as http:
        call = (await http.post("/tools/null.put/execute", json={"arguments": {"value": 1}})).json()
        wrong = await http.post("/tools/null.put/execute", json={"arguments": {"valu": 1}})
        run = (await http.post("/execute", json={"code": "import null\nnull.echo(value=2)"})).json()
        listed = (await http.get("/runs", params={"limit": 2})).json()
        older = (await http.get("/runs", params={"before": listed["next_before"]})).json()
        shown = (await http.get(f"/runs/{call['run_id']}")).json()
        unknown = await http.get("/runs/ffff")

    assert wrong.json()["error"]["code"] == "bad_call"
    assert [each["failure"] for each in listed["runs"]] == [None, "error"]
    assert listed["runs"][0]["id"] == run["run_id"]
    assert [each["id"] for each in older["runs"]] == [call["run_id"]]
    assert older["next_before"] is None
    assert shown["run"]["client"] == "rest"
    assert shown["calls"][0]["tool"] == "null.put"
    assert json.loads(shown["calls"][0]["answer"]["head"])["value"] == 1
    assert unknown.status_code == 404


async def test_a_server_that_fails_is_named_and_a_tool_that_fails_says_why(
    running: MakeApp,
) -> None:
    servers = {"broken": test_server("faulty", "exit"), "events": test_server("null")}
    async with running(servers) as toolfold, door(toolfold.app) as http:
        categories = (await http.get("/tools/discover")).json()["categories"]
        call = await http.post("/tools/broken.anything/execute", json={})

    assert "licence key is missing" in categories["broken"]["description"]
    assert categories["broken"]["count"] == 0
    assert categories["events_mcp"]["count"] == 2
    assert categories["events"]["count"] == 3
    assert call.status_code == 404
    assert "licence key is missing" in call.json()["error"]["message"]


async def test_metrics_count_requests_by_route_and_status(running: MakeApp) -> None:
    async with running({"null": test_server("null")}) as toolfold, door(toolfold.app) as http:
        await http.get("/memory/notes/abcd1234")
        await http.get("/memory/notes/abcd5678")
        answer = await http.get("/metrics")
    lines = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if line[0] != "#")
    route = '{method="GET",route="/memory/notes/{hash}",status="404"}'

    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert lines[f"toolfold_requests_total{route}"] == "2"
    assert lines['toolfold_request_seconds_count{route="/memory/notes/{hash}"}'] == "2"
    assert lines['toolfold_request_seconds_bucket{route="/memory/notes/{hash}",le="+Inf"}'] == "2"
    assert lines['toolfold_server_up{server="null"}'] == "1"
    assert int(lines["process_resident_memory_bytes"]) > 10_000_000


async def test_a_request_that_takes_too_long_is_given_up(running: MakeApp) -> None:
    servers = {"null": test_server("null")}
    async with running(servers, request_time_s=0.5) as toolfold, door(toolfold.app) as http:
        answer = await http.post("/execute", json={"code": ENDLESS})
        runs = (await http.get("/runs")).json()["runs"]

    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "request_timeout")
    assert [run["failure"] for run in runs] == ["cancelled"]
