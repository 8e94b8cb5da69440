"""The dashboard in a real browser: every page opened, used, and checked for accessibility."""

import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from playwright.async_api import Browser, Locator, Page, async_playwright
from rest_door import listening
from support import ROOT, MakeApp, test_server

from toolfold.entrypoints.commands.state_checks import examine_app
from toolfold.entrypoints.dashboard.sessions import BrowserSessions
from toolfold.execution.service import RunOptions, RunRequest
from toolfold.execution.trust.approvals import Approvals
from toolfold.journal.runs import Origin

pytestmark = pytest.mark.anyio

_log = logging.getLogger(__name__)
PATIENCE_MS = 60_000
BROWSER = ROOT / ".tools" / "browser" / "chromium"
AXE = BROWSER.parent / "node_modules" / "axe-core" / "axe.min.js"
PAGES = [
    *("/ui/", "/ui/approvals", "/ui/runs", "/ui/tools", "/ui/tools/records.put", "/ui/savings"),
    *("/ui/memory", "/ui/memory?query=tea", "/ui/memory/graph", "/ui/memory/documents"),
    *("/ui/memory/consolidation?preview=balanced", "/ui/sessions", "/ui/policy", "/ui/settings"),
    *("/ui/memory/transfer", "/ui/skills/total"),
]
SEED = """
import records
from toolfold import memory, graph
rows = records.list_records()
memory.store("Ada likes tea", tags=["people"])
memory.store("The deploy of Friday failed because the disk was full", tags=["ops"])
people = [{"name": n, "entityType": "person", "observations": []} for n in ("Ada", "Bob")]
graph.create_entities(people)
graph.create_relations([{"from": "Ada", "to": "Bob", "relationType": "knows"}])
from pathlib import Path
Path("report.txt").write_text("all is well")
def total(rows: list[dict]) -> int:
    'Add up amounts.'
    return sum(row["amount"] for row in rows)
import skills
skills.save("total", "total", "Add up the amounts of rows.")
total(rows)
"""
UPDATE = "import records\nrecords.update(id=7, value='x')\n'changed'"


class Visitor:
    """A browser at the dashboard of a running app, with what its console complained of."""

    def __init__(self, url: str, app: Any, browsers: BrowserSessions, browser: Browser) -> None:
        self.url = url
        self.app = app
        self.complaints: list[str] = []
        self._browsers = browsers
        self._browser = browser

    async def enter(self, *, width: int = 1280, scheme: Any = "light") -> Page:
        context = await self._browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, locale="en-US"
        )
        context.set_default_timeout(PATIENCE_MS)
        page = await context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "console",
            lambda line: self.complaints.append(line.text) if line.type == "error" else None,
        )
        await page.goto(f"{self.url}/ui/open?ticket={self._browsers.issue_ticket()}")
        return page

    async def run(self, code: str) -> Any:
        config = self.app.config
        origin = Origin(client="agent", project=str(config.project or config.start_directory))
        return await self.app.runtime.run(code, origin=origin)


@pytest.fixture
def visiting(running: MakeApp, tmp_path: Path, home: Path) -> Any:
    if not BROWSER.exists():
        pytest.skip("there is no browser in .tools/browser: `make tools` installs it")
    rules = home / "config" / "policy.toml"
    rules.parent.mkdir(parents=True)
    rules.write_text('[[policy]]\naction = "ask"\ntools = ["records.update"]\n')

    @asynccontextmanager
    async def visit() -> AsyncIterator[Visitor]:
        servers = {"records": test_server("records", tmp_path / "updates.jsonl", "60")}
        browsers = BrowserSessions()
        arguments = ["--no-sandbox", "--headless=shell", "--disable-gpu"]
        async with (
            running(servers=servers) as toolfold,
            listening(toolfold.app, browsers=browsers, examine=examine_app) as url,
            async_playwright() as playwright,
        ):
            browser = await playwright.chromium.launch(
                executable_path=str(BROWSER), args=arguments, headless=True
            )
            yield Visitor(url, toolfold.app, browsers, browser)
            await browser.close()

    return visit


@pytest.mark.timeout(600)
async def test_every_page_opens_without_complaint_and_is_accessible(
    visiting: Any, tmp_path: Path
) -> None:
    async with visiting() as visitor:
        ran = await visitor.run(SEED)
        await visitor.run(UPDATE)
        await visitor.run("import records\nrecords.fail(words='the disk is full')")
        await visitor.run("from skills import total\ntotal([{'amount': 7}])")
        for scheme, width in (("light", 1280), ("dark", 360)):
            page = await visitor.enter(scheme=scheme, width=width)
            for path in [*PAGES, *(f"/ui/runs/{ran.run_id}{part}" for part in ("", "/recording"))]:
                await page.goto(visitor.url + path)
                await check_accessible(page)
            await check_what_opens_by_a_click(visitor, page, tmp_path)
        assert visitor.complaints == []


async def check_what_opens_by_a_click(visitor: Visitor, page: Page, directory: Path) -> None:
    exported = directory / "graph.jsonl"
    entity = {"type": "entity", "name": "Bob", "entityType": "person", "observations": ["tall"]}
    exported.write_text(json.dumps(entity) + "\nno JSON\n")

    async def click(found: Locator) -> None:
        async with page.expect_navigation():
            await found.first.click()
        await check_accessible(page)

    async def press(path: str, button: str, **fields: str) -> None:
        await page.goto(visitor.url + path)
        for label, value in fields.items():
            await page.get_by_label(label).first.fill(value)
        await click(page.get_by_role("button", name=button))

    await press("/ui/settings", "Check everything")
    await press("/ui/memory/transfer", "Preview", **{"File on this machine": str(exported)})
    await press("/ui/skills/total", "Run the test")
    await press("/ui/skills/total", "Save", Python="def total(rows: list) -> int: retur")
    await press("/ui/policy", "Check", Tool="records.update")
    await page.goto(f"{visitor.url}/ui/sessions")
    await click(page.get_by_role("link", name="report.txt"))
    await page.goto(f"{visitor.url}/ui/memory?query=tea")
    await click(page.get_by_role("link", name="Ada likes tea"))


async def check_accessible(page: Page) -> None:
    """Fail where axe finds something serious, or where the page is wider than the screen."""
    await page.locator("[data-reload]").wait_for(state="detached")
    assert await page.locator("h1").count() == 1, page.url
    await page.evaluate(AXE.read_text())
    found = await page.evaluate("axe.run({resultTypes: ['violations']})")
    serious = [
        (each["id"], each["nodes"][0]["html"])
        for each in found["violations"]
        if each["impact"] in {"serious", "critical"}
    ]
    assert serious == [], page.url
    overflow = await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert overflow <= 0, page.url


async def test_pages_do_what_people_come_for(visiting: Any) -> None:
    async with visiting() as visitor:
        await a_note_is_found_changed_and_deleted_by_keyboard_alone(visitor)
        await a_graph_of_ten_thousand_nodes_stays_usable(visitor)
        await a_run_shows_by_itself_when_it_begins_and_when_it_ends(visitor)
        assert visitor.complaints == []


async def test_questions_are_answered_once_whatever_people_do(
    visiting: Any, tmp_path: Path
) -> None:
    async with visiting() as visitor:
        await one_of_two_people_is_told_that_the_other_was_first(visitor)
        await a_run_that_is_rejected_does_nothing(visitor)
        assert updates(tmp_path) == [7]
        await a_browser_that_closes_takes_neither_question_nor_answer_with_it(visitor, tmp_path)
        await an_expired_question_says_so_and_a_page_catches_up_by_itself(visitor)
        assert updates(tmp_path) == [7, 7]
        refusals = [
            "Failed to load resource: the server responded with a status of 404 (Not Found)"
        ]
        assert visitor.complaints == refusals * 2


def updates(directory: Path) -> list[int]:
    path = directory / "updates.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line)["id"] for line in lines]


async def asked(visitor: Visitor, button: str) -> Page:
    """Open the questions, with the focus on a button: the page does not change any more then."""
    page = await visitor.enter()
    await page.goto(f"{visitor.url}/ui/approvals")
    await page.get_by_role("button", name=button, exact=True).focus()
    return page


async def one_of_two_people_is_told_that_the_other_was_first(visitor: Visitor) -> None:
    await visitor.run(UPDATE)
    people = [await asked(visitor, "Approve"), await asked(visitor, "Approve")]
    async with anyio.create_task_group() as hands:
        for page in people:
            hands.start_soon(page.keyboard.press, "Enter")
    told = [str(await page.get_by_role("status").nth(1).text_content()) for page in people]
    assert sorted(told) == [
        "Approved records.update.",
        "This was decided already: records.update was approved, by the dashboard. "
        "Your answer changed nothing.",
    ]
    for page in people:
        await page.get_by_text("Nothing is waiting for approval.").wait_for()


async def a_run_that_is_rejected_does_nothing(visitor: Visitor) -> None:
    frozen = await visitor.run(UPDATE)
    page = await asked(visitor, "Reject")
    await page.get_by_role("button", name="Reject").click()
    await page.get_by_text("Rejected records.update.").wait_for()
    await page.goto(f"{visitor.url}/ui/runs/{frozen.run_id}")
    await page.locator("h1 .state", has_text="denied").wait_for()


async def a_browser_that_closes_takes_neither_question_nor_answer_with_it(
    visitor: Visitor, directory: Path
) -> None:
    await visitor.run(UPDATE)
    await (await asked(visitor, "Approve")).context.close()
    page = await asked(visitor, "Approve")
    async with page.expect_request("**/approve"):
        await page.keyboard.press("Enter")
    await page.context.close()
    with anyio.fail_after(60):
        while len(updates(directory)) < 2:
            await anyio.sleep(0.05)


async def an_expired_question_says_so_and_a_page_catches_up_by_itself(visitor: Visitor) -> None:
    await visitor.run(UPDATE)
    late, looking = await asked(visitor, "Approve"), await asked(visitor, "Approve")
    await looking.get_by_text("live", exact=True).wait_for()
    config = visitor.app.config
    tomorrow = Approvals(config.directories.data, valid_s=3_600, clock=lambda: time.time() + 86_400)
    tomorrow.expire(lambda _approval: None)
    await looking.get_by_text("paused", exact=True).wait_for()
    await looking.locator("h1").click()
    await looking.get_by_text("Nothing is waiting for approval.").wait_for()
    await late.keyboard.press("Enter")
    await late.get_by_text("The question about records.update has expired.").wait_for()


async def a_run_shows_by_itself_when_it_begins_and_when_it_ends(visitor: Visitor) -> None:
    page = await visitor.enter()
    await page.get_by_text("live", exact=True).wait_for(timeout=PATIENCE_MS)
    began = time.monotonic()
    code = "import records\nrecords.slow_update(id=1, seconds=60)"
    options = RunOptions(patience_s=0)
    run = await visitor.app.runs.run(RunRequest(code=code, origin=Origin(), options=options))
    calling = page.locator("section[aria-labelledby=running] td[data-label=Calling] code")
    await calling.wait_for()
    _log.info("%.2f s until a run is shown with its call", time.monotonic() - began)
    assert await calling.text_content() == "records.slow_update"
    await visitor.app.shared.background_runs.stop(run)
    ended = time.monotonic()
    await page.get_by_text("Nothing is running.").wait_for()
    _log.info("%.2f s until its end is shown", time.monotonic() - ended)


async def a_note_is_found_changed_and_deleted_by_keyboard_alone(visitor: Visitor) -> None:
    await visitor.run(SEED)
    page = await visitor.enter()
    await page.goto(f"{visitor.url}/ui/memory")
    await page.get_by_label("Search, ranked as for agents").focus()
    await page.keyboard.type("why did the deploy fail")
    await page.keyboard.press("Enter")
    await page.get_by_role("link", name="The deploy of Friday").focus()
    await page.keyboard.press("Enter")
    await page.get_by_label("Text").focus()
    await page.keyboard.press("Control+End")
    await page.keyboard.type(" again")
    await page.get_by_role("button", name="Save").focus()
    await page.keyboard.press("Enter")
    await page.get_by_text("The previous version is kept.").wait_for()
    assert "disk was full again" in await page.content()
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("button", name="Undo").click()
    await page.get_by_text("Restored.").wait_for()


async def a_graph_of_ten_thousand_nodes_stays_usable(visitor: Visitor) -> None:
    filled = await visitor.run(
        "from toolfold import graph\n"
        "for start in range(0, 10_000, 1_000):\n"
        "    graph.create_entities([{'name': f'n{i}', 'entityType': 't', 'observations': []}"
        " for i in range(start, start + 1_000)])\n"
        "    graph.create_relations([{'from': f'n{i // 2}', 'to': f'n{i}', 'relationType': 'r'}"
        " for i in range(max(1, start), start + 1_000)])\n"
    )
    assert filled.success, filled.text
    page = await visitor.enter()
    await page.goto(f"{visitor.url}/ui/memory/graph")
    await page.get_by_text("10,000 entities").wait_for()
    await page.locator("#graph").focus()
    await page.keyboard.press("+")
    painted = await page.evaluate(
        "(() => { const c = document.getElementById('graph');"
        " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        " let n = 0; for (let i = 3; i < d.length; i += 4) if (d[i]) n++; return n; })()"
    )
    assert painted > 10_000
