"""The dashboard: who sees it, what its pages show and do, and that nothing shown becomes code."""

import html
import json
import re
import sqlite3
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from rest_door import LOCAL, door, listening
from servers.authorization import serving
from starlette.types import Message
from support import MakeApp, Running, scripted, test_server

from toolfold.app import App
from toolfold.entrypoints.dashboard.live import ChangeStream
from toolfold.entrypoints.dashboard.memory_pages import MEMORY_VIEWS
from toolfold.entrypoints.dashboard.owner_pages import OWNER_VIEWS
from toolfold.entrypoints.dashboard.pages import VIEWS
from toolfold.entrypoints.dashboard.render import (
    ago,
    arguments,
    day,
    duration,
    page,
    program_lines,
)
from toolfold.entrypoints.dashboard.sessions import (
    COOKIE,
    MAX_SESSIONS,
    SESSION_S,
    TICKET_S,
    BrowserSessions,
)
from toolfold.entrypoints.http.keys import Keys, LocalToken
from toolfold.entrypoints.rest import observe
from toolfold.execution.trust.approvals import approvals_of
from toolfold.execution.trust.pinned_definitions import definition_of
from toolfold.journal.reader import quantile
from toolfold.jsontypes import JsonObject
from toolfold.memory.memories import RequestContext

pytestmark = pytest.mark.anyio

PAGES = [
    *("/ui/", "/ui/approvals", "/ui/runs", "/ui/tools", "/ui/savings"),
    *("/ui/memory", "/ui/memory/graph", "/ui/memory/consolidation", "/ui/memory/documents"),
    *("/ui/sessions", "/ui/policy", "/ui/settings", "/ui/tools/records.list_records"),
]
OWN = {"origin": LOCAL}
RULES = '[[policy]]\naction = "ask"\ntools = ["records.update"]\n'
UPDATE = "import records\nrecords.update(id=7, value='x')\n'changed'"


class Browser:
    """A browser with a session, and the app behind the pages."""

    def __init__(self, toolfold: Running, http: httpx2.AsyncClient) -> None:
        self.app = toolfold.app
        self.http = http

    async def run(self, code: str) -> Any:
        return (await self.http.post("/execute", json={"code": code})).json()

    async def see(self, path: str) -> str:
        response = await self.http.get(path)
        assert response.status_code == 200, response.text
        return response.text

    async def send(self, path: str, /, **form: Any) -> httpx2.Response:
        return await self.http.post(path, data=form, headers=OWN)

    @contextmanager
    def journal(self) -> Iterator[sqlite3.Connection]:
        """Give somebody else's connection to the file of runs, whose changes nobody audits."""
        path = self.app.config.directories.data / "runs.db"
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            yield connection


@pytest.fixture
def opened(running: MakeApp, tmp_path: Path, home: Path) -> Any:
    rules = home / "config" / "policy.toml"
    rules.parent.mkdir(parents=True)
    rules.write_text(RULES)

    @asynccontextmanager
    async def open_browser(
        servers: dict[str, Any] | None = None, **options: Any
    ) -> AsyncIterator[Browser]:
        records = test_server("records", tmp_path / "updates.jsonl", "60")
        servers = {"records": records, **(servers or {})}
        browsers = BrowserSessions()
        async with (
            running(servers=servers) as toolfold,
            door(toolfold.app, browsers=browsers, **options) as http,
        ):
            entered = await http.get(f"/ui/open?ticket={browsers.issue_ticket()}")
            assert entered.status_code == 303
            yield Browser(toolfold, http)

    return open_browser


async def test_without_a_session_nothing_is_shown_and_nothing_is_done(opened: Any) -> None:
    async with opened() as browser:
        browser.http.cookies.clear()
        for path in [*PAGES, "/ui/runs/x", "/ui/live"]:
            response = await browser.http.get(path)
            assert response.status_code == 403
            assert "toolfold ui" in response.text
        refused = await browser.send("/ui/approvals/x/approve")
        assert refused.status_code == 403


async def test_a_ticket_opens_one_session(opened: Any) -> None:
    async with opened() as browser:
        browser.http.cookies.clear()
        assert (await browser.http.get("/ui/open?ticket=")).status_code == 403
        assert (await browser.http.get("/ui/open?ticket=guessed")).status_code == 403


def test_tickets_and_sessions_expire_and_are_bounded() -> None:
    now = [0.0]
    sessions = BrowserSessions(clock=lambda: now[0])

    def scope(session: str) -> dict[str, Any]:
        return {"type": "http", "headers": [(b"cookie", f"{COOKIE}={session}".encode())]}

    ticket = sessions.issue_ticket()
    first = sessions.redeem(ticket)
    assert first is not None
    assert sessions.redeem(ticket) is None
    assert sessions.find(scope(first))
    assert not sessions.find(scope("other"))
    late = sessions.issue_ticket()
    now[0] = TICKET_S + 1
    assert sessions.redeem(late) is None
    for _ in range(MAX_SESSIONS):
        assert sessions.redeem(sessions.issue_ticket())
    assert not sessions.find(scope(first))
    last = sessions.redeem(sessions.issue_ticket())
    assert last is not None
    now[0] += SESSION_S + 1
    assert not sessions.find(scope(last))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "null"},
        {"origin": "http://localhost:9999"},
        {"origin": "https://localhost"},
        {"origin": "http://evil.example"},
    ],
)
async def test_no_other_page_can_press_our_buttons(opened: Any, headers: dict[str, str]) -> None:
    async with opened() as browser:
        frozen = await browser.run(UPDATE)
        response = await browser.http.post(
            f"/ui/approvals/{frozen['run_id']}/approve", data={}, headers=headers
        )
        assert response.status_code == 403
        assert len((await browser.http.get("/approvals")).json()["approvals"]) == 1


async def test_pages_may_load_nothing_from_elsewhere_and_nothing_inline(opened: Any) -> None:
    async with opened() as browser:
        for path in PAGES:
            response = await browser.http.get(path)
            policy = response.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert response.headers["x-content-type-options"] == "nosniff"
            parsed = Elements.of(response.text)
            assert all(address.startswith(("/ui/", "data:,", "#")) for address in parsed.addresses)
            assert parsed.inline == []


def routes(method: str) -> list[str]:
    """Return every address of the pages that takes a method, so that none is forgotten."""
    tables = {**VIEWS, **MEMORY_VIEWS, **OWNER_VIEWS}
    found = [re.sub(r"\{\w+\}", "x", path) for known, path in tables if known == method]
    return [*found, *{"GET": ["/ui", "/ui/open", "/ui/live"], "POST": ["/ui/login"]}[method]]


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "evil.example:80"])
async def test_under_a_name_that_somebody_else_controls_there_is_no_dashboard(
    opened: Any, host: str
) -> None:
    async with opened() as browser:
        frozen = await browser.run(UPDATE)
        for method in ("GET", "POST"):
            for path in [*routes(method), f"/ui/approvals/{frozen['run_id']}/approve"]:
                headers = {"host": host, "origin": f"http://{host}"}
                refused = await browser.http.request(method, path, headers=headers)
                assert refused.status_code == 421, (method, path)
                assert "<html" not in refused.text
        assert len((await browser.http.get("/approvals")).json()["approvals"]) == 1


async def test_no_form_of_another_origin_changes_anything(opened: Any) -> None:
    async with opened() as browser:
        note = (await browser.send("/ui/memory", content="kept")).headers["location"]
        for path in [*routes("POST"), f"{note.partition('?')[0]}/delete"]:
            for origin in ("null", "http://evil.example", "http://localhost:9999", "http://[::1]"):
                refused = await browser.http.post(path, data={}, headers={"origin": origin})
                assert refused.status_code == 403, (path, origin)
            assert (await browser.http.post(path, data={})).status_code == 403, path
        assert "kept" in await browser.see(note)


async def test_nothing_of_the_dashboard_can_be_put_into_a_frame(opened: Any) -> None:
    async with opened() as browser:
        paths = [path for path in routes("GET") if path not in {"/ui/live", "/ui/memory/export"}]
        for has_session in (True, False):
            for path in [*paths, "/ui/nowhere", "/ui/static/page.js"]:
                answer = await browser.http.get(path)
                assert answer.headers["x-frame-options"] == "DENY", path
                assert "frame-ancestors 'none'" in answer.headers["content-security-policy"], path
            if has_session:
                browser.http.cookies.clear()


async def test_now_shows_servers_and_the_newest_runs(opened: Any) -> None:
    async with opened() as browser:
        await browser.run("import records\nlen(records.list_records())")
        shown = await browser.see("/ui/")
        assert "records" in shown
        assert "len(records.list_records())" in html.unescape(shown)
        assert "Nothing is running." in shown


async def test_a_run_shows_its_program_its_calls_and_its_reply(opened: Any) -> None:
    async with opened() as browser:
        ran = await browser.run("import records\nrecords.list_records()\n'the reply'")
        shown = await browser.see(f"/ui/runs/{ran['run_id']}")
        assert "records.list_records" in shown
        assert "the reply" in shown
        assert '<svg class="bar"' in shown
        assert (await browser.http.get("/ui/runs/nope")).status_code == 404


async def test_runs_are_filtered_by_text_tool_and_outcome(opened: Any) -> None:
    async with opened() as browser:
        await browser.run("'first program'")
        await browser.run("import records\nrecords.list_records()")
        await browser.run("1 / 0")

        async def programs(query: str) -> str:
            return html.unescape(await browser.see(f"/ui/runs?{query}"))

        assert "first program" in await programs("text=FIRST")
        assert "1 / 0" not in await programs("text=FIRST")
        assert "records.list_records()" in await programs("tool=records.list_records")
        assert "records.list_records()" in await programs("tool=records")
        assert "first program" not in await programs("tool=records")
        assert "1 / 0" in await programs("outcome=failed&days=1")
        assert "first program" not in await programs("outcome=failed")
        assert "No run matches." in await programs("text=nowhere")


async def test_approving_on_the_page_lets_the_run_go_on(opened: Any, tmp_path: Path) -> None:
    async with opened() as browser:
        frozen = await browser.run(UPDATE)
        asked = await browser.see("/ui/approvals")
        assert "records.update" in asked
        assert frozen["run_id"] in asked
        question = (await browser.http.get("/approvals")).json()["approvals"][0]["question"]
        response = await browser.send(
            f"/ui/approvals/{frozen['run_id']}/approve", question=question, most="1"
        )
        assert response.status_code == 303
        assert "Approved records.update." in await browser.see(response.headers["location"])
        assert "Nothing is waiting for approval." in await browser.see("/ui/approvals")
        [line] = (tmp_path / "updates.jsonl").read_text().splitlines()
        assert json.loads(line)["id"] == 7


async def test_rejecting_and_deciding_twice_each_end_with_a_sentence(opened: Any) -> None:
    async with opened() as browser:
        frozen = await browser.run(UPDATE)
        path = f"/ui/approvals/{frozen['run_id']}"
        assert (await browser.send(f"{path}/approve", most="none")).status_code == 400
        assert (await browser.send(f"{path}/reject")).status_code == 303
        again = await browser.send(f"{path}/approve")
        assert again.status_code == 404
        assert "records.update was rejected, by the dashboard" in again.text
        assert (await browser.send("/ui/approvals/nope/approve")).status_code == 404


async def test_of_two_people_who_decide_at_once_one_is_told_of_the_other(
    opened: Any, tmp_path: Path
) -> None:
    async with opened() as browser:
        frozen = await browser.run(UPDATE)
        other = await browser.run(UPDATE)
        question = (await browser.http.get("/approvals")).json()["approvals"][0]["question"]
        answers: list[httpx2.Response] = []

        async def decide(what: str) -> None:
            path = f"/ui/approvals/{frozen['run_id']}/{what}"
            answers.append(await browser.send(path, question=question))

        async with anyio.create_task_group() as people:
            for what in ("approve", "reject", "approve", "reject"):
                people.start_soon(decide, what)
        assert sorted(each.status_code for each in answers) == [303, 404, 404, 404]
        for late in (each for each in answers if each.status_code == 404):
            assert "was decided already" in late.text
            assert other["run_id"] in late.text  # what waits still is beside it
        is_approved = any("Approved" in each.headers.get("location", "") for each in answers)
        assert (tmp_path / "updates.jsonl").exists() == is_approved


async def test_a_run_that_is_not_under_way_cannot_be_stopped(opened: Any) -> None:
    async with opened() as browser:
        response = await browser.send("/ui/runs/nope/stop")
        assert response.status_code == 404
        assert "is under way" in response.text


async def test_tools_are_found_as_agents_find_them_with_their_figures(opened: Any) -> None:
    async with opened() as browser:
        await browser.run("import records\nfor n in range(5): records.list_records()")
        found = await browser.see("/ui/tools?query=list+records")
        assert "records.list_records" in found
        one = await browser.see("/ui/tools/records.list_records")
        assert "<dt>Calls</dt><dd>5</dd>" in one
        assert (await browser.http.get("/ui/tools/records.nope")).status_code == 404


async def test_a_tool_is_tried_by_its_form(opened: Any, tmp_path: Path) -> None:
    async with opened() as browser:
        await browser.run("import records\nrecords.list_records()")
        shown = await browser.see("/ui/tools/records.put")
        assert '<input name="id"' in shown
        odd = await browser.send("/ui/tools/records.put", id="seven", value="7")
        assert "write it as JSON" in odd.text
        asked = await browser.send("/ui/tools/records.update", id="7", value="x")
        assert "approv" in asked.text
        assert not (tmp_path / "updates.jsonl").exists()
        tried = await browser.send("/ui/tools/records.put", id="7", value="7")
        assert "It answered:" in tried.text
        assert "&#34;updated&#34;: 7" in tried.text
        [line] = (tmp_path / "updates.jsonl").read_text().splitlines()
        assert json.loads(line) == {"tool": "put", "id": 7, "value": "7"}


async def test_a_server_is_restarted(opened: Any) -> None:
    async with opened() as browser:
        await browser.run("import records\nrecords.list_records()")
        response = await browser.send("/ui/servers/records/restart")
        assert response.status_code == 303
        assert "Restarted records: " in await browser.see(response.headers["location"])
        ran = await browser.run("import records\nlen(records.list_records())")
        assert ran["value"] == 60
        assert (await browser.send("/ui/servers/nope/restart")).status_code == 404


async def test_notes_are_stored_found_changed_deleted_and_brought_back(opened: Any) -> None:
    async with opened() as browser:
        stored = await browser.send("/ui/memory", content="Ada likes tea", tags="people, drinks")
        note = stored.headers["location"].partition("?")[0]
        assert "Ada likes tea" in await browser.see("/ui/memory?query=tea")
        assert "Ada likes tea" in await browser.see("/ui/memory?tags=drinks")
        assert "No note matches." in await browser.see("/ui/memory?tags=other")
        changed = await browser.send(note, content="Ada likes coffee", tags="")
        shown = await browser.see(changed.headers["location"])
        assert "Ada likes coffee" in shown
        assert '<pre tabindex="0">Ada likes tea</pre>' in shown
        assert "people, drinks" not in shown.partition("<h2>Earlier")[0]
        note = changed.headers["location"].partition("?")[0]
        deleted = await browser.send(f"{note}/delete")
        assert "Undo" in await browser.see(deleted.headers["location"])
        assert (await browser.http.get(note)).status_code == 404
        assert (await browser.send(f"{note}/restore")).status_code == 303
        assert "Ada likes coffee" in await browser.see(note)


async def test_looking_is_no_run_and_costs_no_tokens(opened: Any) -> None:
    async with opened() as browser:
        await browser.run("1 + 1")
        runs = (await browser.http.get("/runs")).json()["runs"]
        savings = (await browser.http.get("/savings")).json()["total"]
        for page in PAGES:
            await browser.http.get(page)
        assert (await browser.http.get("/runs")).json()["runs"] == runs
        assert (await browser.http.get("/savings")).json()["total"] == savings


async def test_the_graph_is_drawn_from_what_is_known(opened: Any) -> None:
    async with opened() as browser:
        await browser.run(
            "from toolfold import graph\n"
            "graph.create_entities([{'name': n, 'entityType': 'person', 'observations': ['tall']}"
            " for n in ('Ada', 'Bob')])\n"
            "graph.create_relations([{'from': 'Ada', 'to': 'Bob', 'relationType': 'knows'}])"
        )
        data = (await browser.http.get("/ui/memory/graph/data")).json()
        assert data == {"names": ["Ada", "Bob"], "edges": [[0, 1]]}
        assert "Ada" in await browser.see("/ui/memory/graph?query=tall")
        assert "<em>knows</em>" in await browser.see("/ui/memory/graph?name=Ada")


async def test_consolidation_is_looked_at_before_it_is_done_and_can_be_undone(opened: Any) -> None:
    async with opened() as browser:
        for number in range(3):
            await browser.send("/ui/memory", content=f"The door code is {number}.")
        preview = await browser.see("/ui/memory/consolidation?preview=balanced")
        assert "What would change" in preview
        assert "None yet." in preview
        done = await browser.send("/ui/memory/consolidation", strategy="balanced")
        shown = await browser.see(done.headers["location"])
        assert "Done: " in shown
        undo = next(a for a in Elements.of(shown).addresses if a.endswith("/undo"))
        assert (await browser.send(undo)).status_code == 303


async def test_sessions_files_and_skills_are_shown(opened: Any) -> None:
    async with opened() as browser:
        await browser.http.post("/execute", json={"code": "answer = 42", "session": "drafts"})
        await browser.run(
            "from pathlib import Path\nPath('report.txt').write_text('all is well')\n"
            'def double(n: int) -> int:\n    """Twice."""\n    return 2 * n\n'
            "import skills\nskills.save('double', 'double', 'Doubles a number.')"
        )
        shown = await browser.see("/ui/sessions")
        assert "<code>answer</code>" in shown
        assert "report.txt" in shown
        assert "Doubles a number." in shown
        assert "all is well" in await browser.see("/ui/file?path=report.txt")
        assert (await browser.http.get("/ui/file?path=../../etc/passwd")).status_code in {400, 404}
        assert "return 2 * n" in await browser.see("/ui/skills/double")
        assert (await browser.send("/ui/sessions/drafts/forget")).status_code == 303
        assert "<code>answer</code>" not in await browser.see("/ui/sessions")


async def test_policy_says_what_would_happen_to_a_call(opened: Any) -> None:
    async with opened() as browser:
        await browser.run(UPDATE)
        shown = await browser.see("/ui/policy")
        assert "records.update" in shown
        assert 'data-label="Decided">1</td>' in shown
        checked = await browser.send("/ui/policy/check", tool="records.update", arguments="")
        assert "<b>ask</b>" in checked.text
        assert (await browser.send("/ui/policy/check", tool="records.nope")).status_code == 404
        assert (
            await browser.send("/ui/policy/check", tool="records.update", arguments="[")
        ).status_code == 400


async def test_revealing_needs_a_reason_and_is_written_down(opened: Any) -> None:
    async with opened() as browser:
        config = browser.app.config
        vault = browser.app.shared.vaults.vault(config.namespace, config.settings.privacy.patterns)
        concealed = vault.conceal_text("Write to ada@example.org")
        assert "ada@example.org" not in concealed
        refused = await browser.send("/ui/policy/reveal", text=concealed, reason=" ")
        assert refused.status_code == 400
        revealed = await browser.send("/ui/policy/reveal", text=concealed, reason="support case")
        assert "ada@example.org" in revealed.text
        runs = (await browser.http.get("/runs")).json()["runs"]
        assert any("support case" in each["code"] for each in runs)
        assert all("ada@example.org" not in each["code"] for each in runs)


async def test_settings_show_what_differs_and_where_it_was_read(opened: Any) -> None:
    async with opened() as browser:
        shown = await browser.see("/ui/settings")
        assert str(browser.app.config.directories.data) in html.unescape(shown)


async def test_settings_say_where_each_comes_from(running: MakeApp, home: Path) -> None:
    browsers, toml = BrowserSessions(), "[limits]\ncalls = 7\n"
    async with (
        running(servers={}, toml=toml, limits__wall_time_s=9) as toolfold,
        door(toolfold.app, browsers=browsers) as http,
    ):
        await http.get(f"/ui/open?ticket={browsers.issue_ticket()}")
        shown = await Browser(toolfold, http).see("/ui/settings")
    [calls] = re.findall(r"<tr><td class=.name.><code>limits.calls</code>.*?</tr>", shown)
    [time_s] = re.findall(r"<tr><td class=.name.><code>limits.wall_time_s</code>.*?</tr>", shown)
    assert f"<code>{home / 'config' / 'config.toml'}</code>" in calls
    assert "<code>--set</code>" in time_s


async def test_a_decision_leads_to_the_rule_that_made_it(opened: Any, home: Path) -> None:
    with (home / "config" / "policy.toml").open("a") as rules:
        rules.write('[[policy]]\naction = "deny"\ntools = ["records.fail"]\n')
    async with opened() as browser:
        denied = await browser.run("import records\nrecords.fail(words='x')")
        shown = await browser.see(f"/ui/runs/{denied['run_id']}")
        assert ">deny</span>" in shown
        [place] = re.findall(r'href="/ui/policy#(rule-\d+)"', shown)
        rule = (await browser.see("/ui/policy")).partition(f'<tr id="{place}">')[2]
        assert "records.fail" in rule.partition("</tr>")[0]


async def test_what_the_owner_sees_is_not_for_keys(opened: Any) -> None:
    async with opened() as browser:
        key = Keys.of(browser.app.config).create("k", "k", now=0.0)[1]
        headers = {"authorization": f"Bearer {key}"}
        for path in ("/policy", "/privacy", "/settings", "/skills", "/skills/x"):
            assert (await browser.http.get(path, headers=headers)).status_code == 403
            assert (await browser.http.get(path)).status_code == 403  # without the local token
        body = {"text": "[EMAIL_1]", "reason": "none"}
        for path in ("/privacy/reveal", "/servers/records/restart"):
            answer = await browser.http.post(path, json=body if "reveal" in path else {})
            assert answer.status_code == 403


async def test_savings_agree_with_the_ledger(opened: Any) -> None:
    async with opened() as browser:
        await browser.run("import records\nfor n in range(5): records.list_records()")
        total = (await browser.http.get("/savings")).json()["total"]
        shown = await browser.see("/ui/savings?price=3")
        assert f"<b>{total['passed']:,}</b>" in shown
        assert f"${total['saved'] * 3 / 1e6:.2f}" in shown
        assert (await browser.http.get("/ui/savings?price=cheap")).status_code == 400


async def test_savings_show_what_is_added_up_so_far(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observe, "_RUNS_AT_ONCE", 1)
    async with opened() as browser:
        for number in range(3):
            await browser.run(f"{number} + 1")
        monkeypatch.setattr(observe, "_PAGE_WAITS_S", 0)
        assert "Still counting" in await browser.see("/ui/savings")
        total = (await browser.http.get("/savings")).json()
        assert (total["is_complete"], total["total"]["runs"]) == (True, 3)
        monkeypatch.setattr(observe, "_PAGE_WAITS_S", 60)
        shown = await browser.see("/ui/savings")
        assert "Still counting" not in shown
        assert "<b>3</b>runs" in shown


async def test_pages_that_watch_and_vanish_leave_nothing(running: MakeApp, home: Path) -> None:
    browsers = BrowserSessions()
    async with running(servers={}) as toolfold, listening(toolfold.app, browsers=browsers) as url:
        await toolfold.run("1")

        async def watch() -> anyio.abc.SocketStream:
            stream = await anyio.connect_tcp("127.0.0.1", int(url.rpartition(":")[2]))
            host, cookie = url.removeprefix("http://"), f"{COOKIE}={browsers.begin()}"
            head = f"GET /ui/live HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n"
            await stream.send(head.encode())
            said = b""
            while b"retry" not in said:
                said += await stream.receive()
            return stream

        def held() -> tuple[int, int]:
            return len(anyio.get_running_tasks()), len([*Path("/proc/self/fd").iterdir()])

        with anyio.fail_after(60):
            first = await watch()
            watched, _ = held()
            await anyio.aclose_forcefully(first)
            while held()[0] >= watched:
                await anyio.sleep(0.05)
            tasks, descriptors = held()
            for stream in [await watch() for _ in range(20)]:
                await anyio.aclose_forcefully(stream)
            # The app opens a file or two of its own meanwhile; twenty pages that leak leave twenty.
            while held()[0] > tasks or held()[1] > descriptors + 4:
                await anyio.sleep(0.05)


async def test_a_page_is_told_of_what_happened_before_it_was_connected() -> None:
    told = anyio.Event()

    async def version() -> str:
        return "a run began"

    async def receive() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    async def send(message: Message) -> None:
        if b"event: changed" in message.get("body", b""):
            told.set()

    async with anyio.create_task_group() as tasks:
        stream = ChangeStream(version, shown="nothing runs")
        tasks.start_soon(stream, {"type": "http"}, receive, send)
        with anyio.fail_after(60):
            await told.wait()
        tasks.cancel_scope.cancel()


async def test_pages_say_which_version_they_show(opened: Any) -> None:
    def version(text: str) -> str:
        return re.findall(r'data-version="(\w+)"', text)[0]

    async with opened() as browser:
        await browser.run("import records")  # from now on no server changes its state
        first, same = version(await browser.see("/ui/")), version(await browser.see("/ui/runs"))
        await browser.run("1 + 1")
        assert first == same != version(await browser.see("/ui/"))


async def test_keys_see_no_figures_about_everybody(opened: Any) -> None:
    async with opened() as browser:
        key = Keys.of(browser.app.config).create("k", "k", now=0.0)[1]
        for path in ("/savings", "/statistics/tools"):
            headers = {"authorization": f"Bearer {key}"}
            assert (await browser.http.get(path, headers=headers)).status_code == 403


async def test_there_are_no_other_pages(opened: Any) -> None:
    async with opened() as browser:
        missing = await browser.http.get("/ui/../etc/passwd%00<script>")
        assert missing.status_code == 404
        assert (await browser.http.get("/")).headers["location"] == "/ui/"


PAYLOADS = [
    "<script>alert(1)</script>",
    "</pre><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg onload=alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "</title><script>alert(1)</script>",
    "<a href='javascript:alert(1)'>x</a>",
    "{{ 7 * 7 }}{% raw %}",
    "${alert(1)}",
    "<b hx-get='/ui/' hx-trigger='load'>x</b>",
    "<form action=//evil.example><input name=x>",
    "<style>*{display:none}</style>",
    "<base href=//evil.example>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "\u202e<script>\u2028alert(1)",
    "<!--<script>",
    "]]><script>alert(1)</script>",
    "<math><mtext></p><img src onerror=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<script src=//evil.example/x.js></script>",
    "<img src=x onerror='fetch(`//evil.example`)'>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><animate onbegin=alert(1) attributeName=x>",
    "<object data=javascript:alert(1)>",
    "<embed src=//evil.example>",
    "<link rel=stylesheet href=//evil.example>",
    "<video><source onerror=alert(1)>",
    "<body onload=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<select><option><style></option></select><img src=x onerror=alert(1)>",
    "<textarea></textarea><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</option></select><script>alert(1)</script>",
    '<a href="//evil.example" target=_top>x</a>',
    "<button formaction=//evil.example>x</button>",
    "<template><script>alert(1)</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<table background=//evil.example>",
    "<div style=background:url(//evil.example)>",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "\x3cscript\x3ealert(1)\x3c/script\x3e",
]


class Elements(HTMLParser):
    """What a browser would make of a page: its elements, addresses and handlers."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.addresses: list[str] = []
        self.inline: list[str] = []
        self.comments: list[str] = []
        self._in_script = False

    @classmethod
    def of(cls, text: str) -> "Elements":
        parsed = cls()
        parsed.feed(text)
        return parsed

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self._in_script = tag in {"script", "style"}
        for name, value in attrs:
            if name in {"href", "src", "action", "formaction", "hx-get", "srcdoc"}:
                self.addresses.append(value or "")
            if name.startswith("on") or name == "style":
                self.inline.append(name)

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def handle_data(self, data: str) -> None:
        if self._in_script and data.strip():
            self.inline.append(data)


GROUPS = [PAYLOADS[start::6] for start in range(6)]
NAMES = """
    html head meta title link script body a header span nav form button main h1 h2 h3 p div section
    article table thead tbody tr th td time code pre details summary dl dt dd ul ol li label input
    select option textarea svg rect figure figcaption canvas b br em progress
"""


def check_page(text: str, payloads: Iterable[str], path: str) -> None:
    """Fail unless what is foreign in a page is text, and nothing but text."""
    for payload in payloads:
        assert payload not in text or not set(payload) & set("<>\"'"), (path, payload)
    shown = Elements.of(text)
    assert shown.inline == []
    assert shown.comments == []
    assert all(a.startswith(("/ui/", "data:,", "#")) for a in shown.addresses), path
    assert shown.names[-1] != "script"
    assert set(NAMES.split()).issuperset(shown.names), path
    assert shown.names.count("script") <= 3
    assert text.rstrip().endswith("</html>")


def hostile_tools(path: Path) -> dict[str, Any]:
    """Return a server whose tools say nothing but payloads of themselves."""
    return scripted(
        path,
        [
            {
                "name": f"tool {number} {payload}",
                "description": payload,
                "inputSchema": {
                    "type": "object",
                    "properties": {payload: {"type": "string", "description": payload}},
                },
            }
            for number, payload in enumerate(PAYLOADS)
        ],
    )


async def test_what_programs_and_answers_hold_never_becomes_part_of_a_page(
    opened: Any, tmp_path: Path
) -> None:
    async with opened(servers={"odd <b>": hostile_tools(tmp_path / "odd.json")}) as browser:
        for payloads in GROUPS:
            text = "\n".join(payloads)
            ran = await browser.run(f"print({text!r})\n{text!r}")
            failed = await browser.run(f"raise ValueError({text!r})")
            frozen = await browser.run(f"import records\nrecords.update(id=1, value={text!r})")
            name = text.replace("/", "|").replace("\n", " ")[:80]
            await browser.run(f"from pathlib import Path\nPath({name!r}).write_text({text!r})")
            stored = [
                await browser.send("/ui/memory", content=f"x {each}", tags=each)
                for each in payloads
            ]
            query = str(httpx2.QueryParams({"text": text, "query": text, "told": text}))
            tried = await browser.send("/ui/tools/records.put", id=text, value=text)
            check_page(tried.text, payloads, "tried")
            paths = [
                *(each.headers["location"] for each in stored if each.status_code == 303),
                f"/ui/memory?{httpx2.QueryParams({'query': text[:500], 'deleted': text})}",
                *(f"/ui/runs/{each['run_id']}" for each in (ran, failed, frozen)),
                f"/ui/runs/{frozen['run_id']}/recording",
                f"/ui/file?{httpx2.QueryParams({'path': name})}",
                *(f"{page}?{query}" for page in PAGES),
            ]
            for path in paths:
                check_page((await browser.http.get(path)).text, payloads, path)
            await browser.send(f"/ui/approvals/{frozen['run_id']}/reject")
        listed = await browser.see("/ui/tools?category=odd_b")
        check_page(listed, PAYLOADS, "tools")
        named = [a for a in Elements.of(listed).addresses if a.startswith("/ui/tools/odd")]
        assert len(named) >= 40
        for path in named[::6]:
            check_page(await browser.see(path), PAYLOADS, path)


async def test_what_people_save_import_and_check_never_becomes_part_of_a_page(
    opened: Any, tmp_path: Path
) -> None:
    async def examine(_app: App) -> list[JsonObject]:
        said: list[JsonObject] = []
        for status, text in zip(("FAILED", "!", "ok") * 14, PAYLOADS, strict=True):
            said.append(
                {"name": text, "status": status, "detail": text, "seconds": None, "fix": text}
            )
        return said

    async with opened(examine=examine) as browser:
        check_page((await browser.send("/ui/settings/doctor")).text, PAYLOADS, "doctor")
        for number, payloads in enumerate(GROUPS):
            text = "\n".join(payloads)
            for opened_pages in (
                pages_of_skills(browser, text, f"say_{number}"),
                pages_of_runs(browser, text),
                pages_of_definitions(browser, text),
                pages_of_files(browser, payloads, tmp_path),
                pages_of_notes(browser, payloads),
                pages_of_rules(browser, text),
            ):
                async for what, shown in opened_pages:
                    check_page(shown, payloads, what)
            login = page("login", is_owner=True, server=text, address=f"https://x.example/{text}")
            assert Elements.of(bytes(login.body).decode()).inline == []


Shown = AsyncIterator[tuple[str, str]]
"""Pages that were opened, each with a name for messages."""


async def pages_of_skills(browser: Browser, text: str, skill: str) -> Shown:
    source = f'def {skill}(n: int) -> str:\n    """Say."""\n    return {{!r}}\n'
    told = "".join(each if each.isprintable() else " " for each in text)
    saved = await browser.run(
        f"{source.format(text)}import skills\nskills.save({skill!r}, {skill!r}, {told!r})"
    )
    assert saved["success"], saved
    await browser.run(f"from skills import {skill}\n{skill}(1)")
    yield "skill", await browser.see(f"/ui/skills/{skill}")
    yield "no skill", (await browser.send(f"/ui/skills/{skill}", source=text)).text
    await browser.send(f"/ui/skills/{skill}", source=source.format(f"other {text}"))
    yield "skill test", (await browser.send(f"/ui/skills/{skill}/test")).text
    yield "sessions", await browser.see("/ui/sessions")


async def pages_of_runs(browser: Browser, text: str) -> Shown:
    ran = await browser.run(
        f"import records\nrecords.put(id=1, value={text!r})\nrecords.fail(words={text!r})"
    )
    yield "run", await browser.see(f"/ui/runs/{ran['run_id']}")
    yield "replay", await browser.see(f"/ui/runs/{ran['run_id']}/recording")
    rehearsed = await browser.send(f"/ui/runs/{ran['run_id']}/rehearse")
    yield "dry run", await browser.see(rehearsed.headers["location"])
    with browser.journal() as rows:
        rows.execute("UPDATE calls SET tool = ? WHERE tool = 'records.fail'", (text,))
    yield "audit", await browser.see(f"/ui/runs/{ran['run_id']}")


async def pages_of_definitions(browser: Browser, text: str) -> Shown:
    tool = browser.app.catalog.find("records.put")
    before = json.loads(definition_of(tool)) | {"description": text, "inputSchema": {text: text}}
    definitions = approvals_of(browser.app.config).definitions
    definitions.pin(browser.app.config.namespace, tool.path, json.dumps(before, sort_keys=True))
    yield "changes", await browser.see("/ui/tools")
    yield "changed tool", await browser.see("/ui/tools/records.put")


async def pages_of_files(browser: Browser, payloads: list[str], directory: Path) -> Shown:
    text = "\n".join(payloads)
    named = directory / f"{text.replace('/', '|')[:80].encode('ascii', 'ignore').decode()}.md"
    named.write_text(f"# {text}\n\n{text}\n")
    place = RequestContext(browser.app.config.namespace, browser.app.config.settings.memory)
    await browser.app.shared.memories.call(place, "memory.ingest", {"path": str(named)})
    yield "documents", await browser.see("/ui/memory/documents")
    one = httpx2.QueryParams({"path": str(named)})
    yield "document", await browser.see(f"/ui/memory/documents/one?{one}")
    yield "no import", (await browser.send("/ui/memory/transfer", path=text)).text
    named.with_suffix(".jsonl").write_text(
        "".join(
            json.dumps({"type": "entity", "name": each, each: each}) + "\n" for each in payloads
        )
    )
    imported = await browser.send("/ui/memory/transfer", path=str(named.with_suffix(".jsonl")))
    yield "import", imported.text


async def pages_of_notes(browser: Browser, payloads: list[str]) -> Shown:
    text = "\n".join(payloads)
    entities = [{"name": each, "entityType": each, "observations": [each]} for each in payloads]
    await browser.run(f"from toolfold import graph\ngraph.create_entities({entities!r})")
    for query in ({"query": "alert script"}, {"name": payloads[0]}, {"query": text}):
        yield "graph", (await browser.http.get("/ui/memory/graph", params=query)).text
    for number in range(2):
        await browser.send("/ui/memory", content=f"{number} {text}", tags=",".join(payloads))
    notes = await browser.see("/ui/memory")
    hashes = re.findall(r'name="hash" value="(\w+)"', notes)[:2]
    merged = await browser.send("/ui/memory/merge", hash=hashes)
    yield "merged", await browser.see(merged.headers["location"])
    yield "merge of nothing", (await browser.send("/ui/memory/merge", hash=payloads)).text
    yield "superseded", await browser.see(f"/ui/memory/notes/{hashes[1]}")
    yield "consolidation", await browser.see("/ui/memory/consolidation?preview=balanced")


async def pages_of_rules(browser: Browser, text: str) -> Shown:
    rule = {"tool": "records.update", "arguments": json.dumps({"value": text})}
    yield "rule", (await browser.send("/ui/policy/check", **rule)).text
    yield "no rule", (await browser.send("/ui/policy/check", tool=text)).text
    yield "reveal", (await browser.send("/ui/policy/reveal", text=text, reason=text)).text


def test_times_are_said_as_people_say_them() -> None:
    assert [ago(0, now) for now in (0, 1, 59, 61, 7_300, 200_000)] == [
        "just now",
        "1 second ago",
        "59 seconds ago",
        "1 minute ago",
        "2 hours ago",
        "2 days ago",
    ]
    assert [duration(s) for s in (0.0123, 3.44, 125)] == ["12 ms", "3.4 s", "2 min 5 s"]


def test_a_quantile_is_a_value_that_occurred() -> None:
    assert quantile([1.0], 0.95) == 1.0
    assert quantile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.0
    assert quantile([float(n) for n in range(1, 101)], 0.95) == 95.0


async def test_a_run_shows_what_it_cost_what_was_decided_and_that_its_rows_are_unchanged(
    opened: Any,
) -> None:
    async with opened() as browser:
        ran = await browser.run(
            "import records\nrows = records.list_records()\nrecords.put(id=1, value='x')"
        )
        path = f"/ui/runs/{ran['run_id']}"
        shown = await browser.see(path)
        assert re.search(r"verified</span> [4-9] rows of this run", shown)
        assert "records.put, 1 call" in shown
        tokens = (await browser.http.get(f"/runs/{ran['run_id']}/tokens")).json()["tokens"]
        assert f"{tokens['written']} written, {tokens['read']} read" in shown
        replayed = await browser.see(f"{path}/recording")
        assert "Step 2: <code>records.put</code>" in replayed
        frozen = await browser.run(UPDATE)
        assert "ask</span> by" in await browser.see(f"/ui/runs/{frozen['run_id']}/recording")
        rehearsed = await browser.send(f"{path}/rehearse")
        assert "Dry run" in await browser.see(rehearsed.headers["location"])
        with browser.journal() as rows:
            rows.execute("UPDATE calls SET tool = 'records.other' WHERE tool = 'records.put'")
        assert "does not verify" in await browser.see(path)


async def test_what_runs_is_shown_with_its_call_and_stopped(opened: Any) -> None:
    slow = "import records\nrecords.slow_update(id=1, seconds=60)"
    async with opened() as browser, anyio.create_task_group() as tasks:
        tasks.start_soon(browser.run, slow)
        with anyio.fail_after(60):
            while "<code>records.slow_update</code>" not in (shown := await browser.see("/ui/")):
                await anyio.sleep(0.05)
        stop = next(a for a in Elements.of(shown).addresses if a.endswith("/stop"))
        assert (await browser.send(stop)).status_code == 303
        assert "cancelled" in await browser.see(stop.removesuffix("/stop"))


async def test_arguments_are_a_table_and_changes_a_difference() -> None:
    shown = arguments('{"path": "a.py", "old_text": "x = 1\\ny = 2", "new_text": "x = 1\\ny = 3"}')
    assert [(each.name, each.text) for each in shown][:1] == [("path", "a.py")]
    assert list(shown[1].diff) == ["  x = 1", "- y = 2", "+ y = 3"]
    edits = arguments('{"edits": [{"oldText": "a", "newText": "b"}], "count": 2}')
    assert list(edits[0].diff) == ["- a", "+ b"]
    assert edits[1].text == "2"
    assert arguments("no JSON")[0].text == "no JSON"


def test_calls_stand_on_their_lines() -> None:
    code = "import records as r\nfrom toolfold import memory\nr.put(id=1)\nmemory.store('x')\nr.a()"
    lines = program_lines(code, {"records.put": 12, "memory.store": 1})
    assert [list(line.calls) for line in lines] == [
        *([], [], ["records.put, 12 calls"], ["memory.store, 1 call"], ["records.a, not called"])
    ]
    assert not program_lines("this is no Python", {})[0].calls


async def test_all_calls_of_a_run_are_approved_at_once(opened: Any, tmp_path: Path) -> None:
    async with opened() as browser:
        frozen = await browser.run(
            "import records\nfor n in range(3):\n    records.update(id=n, value=str(n))"
        )
        assert "<code>value</code>" in await browser.see("/ui/approvals")
        approved = await browser.send(f"/ui/approvals/{frozen['run_id']}/approve", all="yes")
        assert approved.status_code == 303
        assert len((tmp_path / "updates.jsonl").read_text().splitlines()) == 3


async def test_tools_say_why_they_were_found_and_how_they_changed(opened: Any) -> None:
    async with opened() as browser:
        await browser.run("import records\nrecords.put(id=1, value='x')")
        assert "its name has list" in await browser.see("/ui/tools?query=list+things")
        assert "changed since last use" not in await browser.see("/ui/tools")
        definitions = approvals_of(browser.app.config).definitions
        tool = browser.app.catalog.find("records.put")
        before = json.loads(definition_of(tool)) | {"description": "puts something"}
        definitions.pin(browser.app.config.namespace, tool.path, json.dumps(before, sort_keys=True))
        shown = await browser.see("/ui/tools")
        assert "2 definitions changed since last use" in shown
        assert "puts something" in await browser.see("/ui/tools/records.put")


async def test_notes_have_days_tags_and_are_merged(opened: Any) -> None:
    async with opened() as browser:
        for tag in ("old", "new"):
            await browser.send("/ui/memory", content=f"The {tag} door code is 1234", tags=tag)
        shown = await browser.see("/ui/memory")
        assert f"{day(time.time())}</th>" in shown
        assert "old <span" in shown
        hashes = re.findall(r'name="hash" value="(\w+)"', shown)
        assert len(hashes) == 2
        assert (await browser.send("/ui/memory/merge", hash=hashes[0])).status_code == 400
        merged = await browser.send("/ui/memory/merge", hash=hashes)
        kept = await browser.see(merged.headers["location"])
        assert "new, old" in kept
        older = await browser.see(f"/ui/memory/notes/{hashes[1]}")
        assert "Superseded by" in older
        assert (await browser.send(f"/ui/memory/notes/{hashes[1]}/reinstate")).status_code == 303
        assert "Superseded by" not in await browser.see(f"/ui/memory/notes/{hashes[1]}")
        assert "No note matches." in await browser.see("/ui/memory?before=2001-01-01")


async def test_memory_is_exported_previewed_and_imported(opened: Any, tmp_path: Path) -> None:
    async with opened() as browser:
        await browser.send("/ui/memory", content="Ada likes tea")
        exported = await browser.http.get("/ui/memory/export")
        assert exported.headers["content-disposition"].startswith("attachment")
        assert "Ada likes tea" in exported.text
        lines = tmp_path / "graph.jsonl"
        entity = {"type": "entity", "name": "Bob", "entityType": "person", "observations": ["tall"]}
        lines.write_text(json.dumps(entity) + "\n")
        preview = await browser.send("/ui/memory/transfer", path=str(lines))
        assert "What would change" in preview.text
        assert (await browser.http.get("/ui/memory/graph/data")).json()["names"] == []
        done = await browser.send("/ui/memory/transfer", path=str(lines), confirmed="yes")
        assert "1 entities added" in html.unescape(await browser.see(done.headers["location"]))
        assert (await browser.http.get("/ui/memory/graph/data")).json()["names"] == ["Bob"]
        assert (await browser.send("/ui/memory/transfer", path="/nowhere")).status_code == 404


async def test_a_document_is_shown_with_its_passages(opened: Any, tmp_path: Path) -> None:
    async with opened() as browser:
        (tmp_path / "guide.md").write_text("# Guide\n\nTurn the key to the left.\n")
        place = RequestContext(browser.app.config.namespace, browser.app.config.settings.memory)
        path = {"path": str(tmp_path / "guide.md")}
        await browser.app.shared.memories.call(place, "memory.ingest", path)
        shown = await browser.see("/ui/memory/documents")
        [one] = [a for a in Elements.of(shown).addresses if "/documents/one" in a]
        assert "Turn the key to the left." in await browser.see(one)
        assert (await browser.http.get("/ui/memory/documents/one?path=x")).status_code == 404


async def test_a_skill_is_edited_and_tested(opened: Any) -> None:
    source = 'def double(n: int) -> int:\n    """Twice."""\n    return {}\n'
    async with opened() as browser:
        await browser.run(
            source.format("2 * n") + "import skills\nskills.save('double', 'double', 'Doubles.')"
        )
        untested = await browser.send("/ui/skills/double/test")
        assert "Nothing is recorded" in untested.text
        await browser.run("from skills import double\ndouble(21)")
        assert "It does what it did" in (await browser.send("/ui/skills/double/test")).text
        wrong = await browser.send("/ui/skills/double", source="def double(n: int) -> int: retur")
        assert wrong.status_code == 200
        assert "retur" in wrong.text
        saved = await browser.send("/ui/skills/double", source=source.format("3 * n"))
        assert "Saved as version" in await browser.see(saved.headers["location"])
        assert "It does not do what it did" in (await browser.send("/ui/skills/double/test")).text


async def test_doctor_says_what_to_do_about_each_problem(opened: Any) -> None:
    async def examine(_app: App) -> list[JsonObject]:
        known: JsonObject = {"name": "sandbox", "status": "ok", "detail": "runs code"}
        broken: JsonObject = {"name": "crm", "status": "FAILED", "detail": "it is gone"}
        return [
            {**known, "seconds": 0.1, "fix": ""},
            {**broken, "seconds": None, "fix": "start it"},
        ]

    async with opened(examine=examine) as browser:
        assert "Check everything" in await browser.see("/ui/settings")
        checked = (await browser.send("/ui/settings/doctor")).text
        assert checked.index("it is gone") < checked.index("runs code")
        assert "start it" in checked
        assert "1 problem." in checked
    async with opened() as browser:
        assert (await browser.send("/ui/settings/doctor")).status_code == 400


async def test_a_person_logs_in_with_the_token_or_a_key_and_out(opened: Any) -> None:
    async with opened() as browser:
        browser.http.cookies.clear()
        assert (await browser.send("/ui/login", secret="wrong")).status_code == 403
        token = LocalToken(browser.app.config.directories).get()
        foreign = {"origin": "http://evil.example"}
        stolen = await browser.http.post("/ui/login", data={"secret": token}, headers=foreign)
        assert stolen.status_code == 403
        assert (await browser.send("/ui/login", secret=token)).status_code == 303
        assert "Settings" in await browser.see("/ui/")
        out = await browser.send("/ui/logout")
        assert "You are logged out." in out.text
        assert (await browser.http.get("/ui/")).status_code == 403


async def test_the_holder_of_a_key_sees_what_is_theirs_and_decides_nothing(opened: Any) -> None:
    async with opened() as browser:
        frozen = await browser.run(UPDATE)
        note = (await browser.send("/ui/memory", content="of the user")).headers["location"]
        keys = Keys.of(browser.app.config)
        key, secret = keys.create("bot", "elsewhere", now=0.0)
        browser.http.cookies.clear()
        assert (await browser.send("/ui/login", secret=secret)).status_code == 303
        shown = await browser.see("/ui/")
        assert "/ui/settings" not in shown
        assert "records.update" not in shown
        for path in ("/ui/savings", "/ui/policy", "/ui/settings", "/ui/memory/export"):
            assert (await browser.http.get(path)).status_code == 403
        for path in ("/ui/tools", "/ui/sessions", "/ui/memory", "/ui/runs"):
            assert "of the user" not in await browser.see(path)
        assert (await browser.http.get(note.partition("?")[0])).status_code == 404
        assert (await browser.http.get(f"/ui/runs/{frozen['run_id']}")).status_code == 404
        for path in (
            *(f"/ui/approvals/{frozen['run_id']}/{verb}" for verb in ("approve", "reject")),
            *("/ui/policy/reveal", "/ui/servers/records/restart", "/ui/servers/records/login"),
            *("/ui/settings/doctor", "/ui/skills/x/rollback", "/ui/memory/transfer"),
            f"/ui/runs/{frozen['run_id']}/resume",
        ):
            form = {"text": "[EMAIL_1]", "reason": "x", "version": "1", "path": "/x"}
            assert (await browser.send(path, **form)).status_code in {403, 404}
        assert len(approvals_of(browser.app.config).pending()) == 1
        keys.revoke(key.id, now=1.0)
        assert (await browser.http.get("/ui/")).status_code == 403


async def test_a_server_is_logged_in_to_from_the_page(
    running: MakeApp, home: Path, make_config: Any
) -> None:
    async with serving() as site:
        browsers = BrowserSessions()
        async with (
            running(servers={"crm": {"type": "http", "url": site.resource}}) as toolfold,
            door(toolfold.app, browsers=browsers) as http,
        ):
            await http.get(f"/ui/open?ticket={browsers.issue_ticket()}")
            browser = Browser(toolfold, http)
            await browser.run("import crm\ncrm.echo(value='x')")
            shown = await browser.see("/ui/")
            assert "it needs a login" in shown
            assert "Log in to crm" in shown
            begun = await browser.send("/ui/servers/crm/login")
            [address] = [a for a in Elements.of(begun.text).addresses if a.startswith("http://")]
            async with httpx2.AsyncClient(follow_redirects=True) as person:
                assert (await person.get(address)).status_code == 200
            with anyio.fail_after(60):
                while "it needs a login" in await browser.see("/ui/"):
                    await anyio.sleep(0.05)
            assert "Log in to crm" not in await browser.see("/ui/")
            ran = await browser.run("import crm\ncrm.echo(value='there')")
            assert ran["success"], ran
