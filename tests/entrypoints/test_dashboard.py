"""The dashboard: who sees it, what its pages show and do, and that nothing shown becomes code."""

import html
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx2
import pytest
from rest_door import LOCAL, door
from support import MakeApp, Running, test_server

from toolfold.entrypoints.dashboard.render import ago, duration
from toolfold.entrypoints.dashboard.sessions import (
    COOKIE,
    MAX_SESSIONS,
    SESSION_S,
    TICKET_S,
    BrowserSessions,
)
from toolfold.journal.statistics import quantile

pytestmark = pytest.mark.anyio

PAGES = ["/ui/", "/ui/approvals", "/ui/runs", "/ui/tools", "/ui/savings"]
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

    async def send(self, path: str, **form: str) -> httpx2.Response:
        return await self.http.post(path, data=form, headers=OWN)


@pytest.fixture
def opened(running: MakeApp, tmp_path: Path, home: Path) -> Any:
    rules = home / "config" / "policy.toml"
    rules.parent.mkdir(parents=True)
    rules.write_text(RULES)

    @asynccontextmanager
    async def open_browser() -> AsyncIterator[Browser]:
        servers = {"records": test_server("records", tmp_path / "updates.jsonl", "60")}
        browsers = BrowserSessions()
        async with (
            running(servers=servers) as toolfold,
            door(toolfold.app, browsers=browsers) as http,
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
    assert sessions.knows(scope(first))
    assert not sessions.knows(scope("other"))
    late = sessions.issue_ticket()
    now[0] = TICKET_S + 1
    assert sessions.redeem(late) is None
    for _ in range(MAX_SESSIONS):
        assert sessions.redeem(sessions.issue_ticket())
    assert not sessions.knows(scope(first))
    last = sessions.redeem(sessions.issue_ticket())
    assert last is not None
    now[0] += SESSION_S + 1
    assert not sessions.knows(scope(last))


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
        assert "No run fits." in await programs("text=nowhere")


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
        assert "Nothing waits for you." in await browser.see("/ui/approvals")
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
        assert "waits for approval" in again.text


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


async def test_savings_agree_with_the_ledger(opened: Any) -> None:
    async with opened() as browser:
        await browser.run("import records\nfor n in range(5): records.list_records()")
        total = (await browser.http.get("/savings")).json()["total"]
        shown = await browser.see("/ui/savings?price=3")
        assert f"<b>{total['passed']:,}</b>" in shown
        assert f"${total['saved'] * 3 / 1e6:.2f}" in shown
        assert (await browser.http.get("/ui/savings?price=cheap")).status_code == 400


async def test_keys_see_no_figures_about_everybody(opened: Any) -> None:
    from toolfold.entrypoints.http.keys import Keys

    async with opened() as browser:
        key = Keys.of(browser.app.config.directories).create("k", "k", now=0.0)[1]
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
]


class Elements(HTMLParser):
    """What a browser would make of a page: its elements, addresses and handlers."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.addresses: list[str] = []
        self.inline: list[str] = []
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

    def handle_data(self, data: str) -> None:
        if self._in_script and data.strip():
            self.inline.append(data)


async def test_what_programs_and_answers_hold_never_becomes_part_of_a_page(opened: Any) -> None:
    async with opened() as browser:
        for payload in PAYLOADS:
            ran = await browser.run(f"print({payload!r})\n{payload!r}")
            failed = await browser.run(f"raise ValueError({payload!r})")
            frozen = await browser.run(f"import records\nrecords.update(id=1, value={payload!r})")
            query = str(httpx2.QueryParams({"text": payload, "query": payload, "told": payload}))
            paths = [
                *(f"/ui/runs/{each['run_id']}" for each in (ran, failed, frozen)),
                *(f"{page}?{query}" for page in PAGES),
            ]
            for path in paths:
                shown = Elements.of((await browser.http.get(path)).text)
                assert shown.inline == []
                assert all(a.startswith(("/ui/", "data:,", "#")) for a in shown.addresses), path
                assert {"iframe", "img", "base", "style", "math"}.isdisjoint(shown.names)
                assert shown.names.count("script") <= 3
            await browser.send(f"/ui/approvals/{frozen['run_id']}/reject")


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
