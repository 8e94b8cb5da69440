"""The dashboard of the daemon: what it shows of another client's run, approving it, and its end."""

import json
import logging
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.request import HTTPCookieProcessor, OpenerDirector, build_opener

import pytest
from playwright.sync_api import Page, sync_playwright
from relay.conftest import User
from relay.peer import Peer, toolfold_command, wait_until
from support import ROOT, test_server

_log = logging.getLogger(__name__)

pytestmark = pytest.mark.timeout(240)

CHROMIUM = ROOT / ".tools" / "browser" / "chromium"
UPDATE = "import records\nprint(records.update(id=7, value='x'))"
RULES = '[[policy]]\naction = "ask"\ntools = "records.update"\n'


@contextmanager
def dashboard(user: User) -> Iterator[str]:
    """Run `toolfold ui`, and give the address that it prints."""
    process = subprocess.Popen(
        toolfold_command("ui", "--no-browser"),
        env=user.environ,
        cwd=user.project,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/ui/open\?ticket=\S+", process.stdout.readline())
        assert found
        try:
            yield found[0]
        finally:
            process.send_signal(signal.SIGINT)
    assert process.returncode == 130


def opened(address: str) -> tuple[OpenerDirector, str]:
    """Return a browser that has used an address, and where the pages are."""
    browser = build_opener(HTTPCookieProcessor(CookieJar()))
    browser.open(address, timeout=30).close()
    return browser, address.partition("/ui/")[0]


@pytest.fixture
def updates(user: User) -> Path:
    path = user.home / "updates.jsonl"
    user.configure(records=test_server("records", path, "60"))
    (user.home / "config" / "policy.toml").write_text(RULES)
    return path


def frozen(peer: Peer) -> str:
    """Have a program of a client ask; return its run."""
    found = re.search(r"toolfold approve (\w+)", peer.run(UPDATE))
    assert found
    return found[1]


def test_the_dashboard_shows_what_clients_of_the_daemon_do(user: User) -> None:
    user.connect().run("'a program of a client'")
    with dashboard(user) as address:
        browser, origin = opened(address)
        with browser.open(f"{origin}/ui/runs", timeout=30) as page:
            shown = page.read().decode()

    assert "a program of a client" in shown
    assert len(user.daemons) == 1


@pytest.mark.parametrize("sandbox", ["cpython", "monty"])  # waits alive; was frozen
def test_a_click_lets_the_run_of_a_client_go_on(user: User, updates: Path, sandbox: str) -> None:
    if not CHROMIUM.exists():
        pytest.skip("there is no browser in .tools/browser: `make tools` installs it")
    user.settings(f'sandbox = "{sandbox}"\n')
    peer = user.connect()
    run = frozen(peer)
    with dashboard(user) as address, sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--headless=shell", "--disable-gpu"]
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=arguments)
        page: Page = chromium.new_page()
        page.goto(address)
        page.get_by_role("link", name="Approvals").click()
        page.get_by_role("heading", name="records.update").wait_for(timeout=60_000)
        assert run in page.content()
        assert not updates.exists()
        clicked = time.monotonic()
        page.get_by_role("button", name="Approve", exact=True).click(no_wait_after=True)
        wait_until(updates.exists, "the call that was approved")
        _log.info("%.2f s from the click to the call, %s", time.monotonic() - clicked, sandbox)
        page.get_by_text("Nothing is waiting for approval.").wait_for(timeout=60_000)
        chromium.close()

    ended = f"import runs\nprint(runs.wait({run!r}))"
    wait_until(lambda: "updated" in peer.run(ended), "the client to be told of the end")
    assert [json.loads(line)["id"] for line in updates.read_text().splitlines()] == [7]
