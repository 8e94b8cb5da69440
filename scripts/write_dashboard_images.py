"""Take pictures of every page of the dashboard for the documents, from a real browser.

The app, its server and its data are those of the tests, in a home of their own:
`PYTHONPATH=tests:tests/entrypoints python scripts/write_dashboard_images.py`.
"""

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from playwright.async_api import async_playwright
from rest_door import listening
from support import ROOT, test_server, write_config

from toolfold.app import running_app
from toolfold.config.config import environment, load_config
from toolfold.entrypoints.dashboard.sessions import BrowserSessions
from toolfold.execution.runtime import SessionRequest
from toolfold.journal.runs import Origin

IMAGES = ROOT / "docs" / "images" / "dashboard"
PAGES = {
    "now": "/ui/",
    "approvals": "/ui/approvals",
    "runs": "/ui/runs",
    "run": "",
    "recording": "/recording",
    "tools": "/ui/tools",
    "tool": "/ui/tools/records.put",
    "savings": "/ui/savings",
    "notes": "/ui/memory",
    "memory": "/ui/memory?query=why+did+the+deploy+fail",
    "graph": "/ui/memory/graph",
    "transfer": "/ui/memory/transfer",
    "sessions": "/ui/sessions",
    "skill": "/ui/skills/total",
    "policy": "/ui/policy",
    "settings": "/ui/settings",
}
_RENAME = """([from, to]) => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const node = texts.currentNode;
        node.textContent = node.textContent.replaceAll(from, to);
    }
}"""
SIZES = ((1280, "light"), (360, "dark"))
GOES_ON = "progress(340, 1_000, 'copying')\nimport records\nrecords.slow_update(id=3, seconds=90)"
WORK = [
    "import records\nrows = records.list_records()\nsum(row['amount'] for row in rows)",
    "import records\nfor row in records.list_records()[:12]:\n    records.put(id=row['id'], value=row['city'])",
    "from toolfold import memory\n"
    "memory.store('The deploy of Friday failed because the disk of build-2 was full', tags=['ops'])\n"
    "memory.store('Releases are cut on Tuesdays; Ada signs them', tags=['process', 'people'])\n"
    "memory.store('Ada prefers tea, Bob prefers coffee', tags=['people'])",
    "from toolfold import graph\n"
    "graph.create_entities([{'name': f'service {n}', 'entityType': 'service', 'observations': []}"
    " for n in range(60)])\n"
    "graph.create_relations([{'from': f'service {n // 3}', 'to': f'service {n}',"
    " 'relationType': 'calls'} for n in range(1, 60)])",
    "import records\nrecords.fail(words='the disk is full')",
    'def total(rows: list[dict]) -> int:\n    """Add up amounts."""\n'
    "    return sum(row['amount'] for row in rows)\n"
    "import skills\nskills.save('total', 'total', 'Add up the amounts of rows.')",
    "import records\nrecords.put(id=60, value=7)",
    "import records\nrecords.update(id=7, value='Rome')",
]


async def main() -> None:
    """Fill a home, open every page in two widths and both schemes, keep the pictures."""
    home = Path(tempfile.mkdtemp(prefix="home-"))
    environ = {"HOME": str(home), "PATH": environment()["PATH"]}
    rules = home / ".config" / "toolfold" / "policy.toml"
    rules.parent.mkdir(parents=True)
    rules.write_text(
        '[[policy]]\naction = "ask"\ntools = ["records.update"]\n'
        '[[policy]]\naction = "deny"\ntools = ["records.fail"]\n'
    )
    project = home / "shop"
    project.mkdir()
    servers = write_config(
        home / "servers.json",
        {
            "records": test_server("records", home / "updates.jsonl", "60"),
            "tickets": {"command": "tickets-server", "args": ["--stdio"]},
        },
    )
    config = load_config(config_file=servers, cwd=project, environ=environ)
    origin = Origin(client="claude-code", project=str(project))
    browsers = BrowserSessions()
    async with running_app(config) as app, anyio.create_task_group() as tasks:
        for code in WORK:
            await app.runtime.run(code, origin=origin, session=SessionRequest("work"))
        await app.catalog.learn()
        tasks.start_soon(partial(app.runtime.run, GOES_ON, origin=origin))
        async with listening(app, browsers=browsers) as url, async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=str(ROOT / ".tools" / "browser" / "chromium"),
                args=["--no-sandbox", "--headless=shell", "--disable-gpu"],
            )
            for width, scheme in SIZES:
                ticket = browsers.issue_ticket()
                await _take(browser, url, ticket, str(home), width=width, scheme=scheme)
            await browser.close()
        tasks.cancel_scope.cancel()


async def _take(browser: Any, url: str, ticket: str, home: str, *, width: int, scheme: Any) -> None:
    context = await browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, locale="en-US"
    )
    page = await context.new_page()
    await page.goto(f"{url}/ui/open?ticket={ticket}")
    await page.goto(f"{url}/ui/runs?tool=records.put")
    run = await page.locator("tbody a").first.get_attribute("href")
    for name, path in PAGES.items():
        await page.goto(url + (path if path.startswith("/ui/") else f"{run}{path}"))
        await page.wait_for_timeout(1_500 if name in {"graph", "savings"} else 100)
        await page.evaluate(_RENAME, [home, "/home/ada"])
        await page.screenshot(path=IMAGES / f"{name}-{scheme}-{width}.png")


if __name__ == "__main__":
    IMAGES.mkdir(parents=True, exist_ok=True)
    anyio.run(main)
