"""The dashboard of the daemon: what it shows of another client's run, and its end."""

import re
import signal
import subprocess
from http.cookiejar import CookieJar
from urllib.request import HTTPCookieProcessor, OpenerDirector, build_opener

import pytest
from relay.conftest import User
from relay.peer import toolfold_command

pytestmark = pytest.mark.timeout(120)


def opened(process: "subprocess.Popen[str]") -> tuple[OpenerDirector, str]:
    """Return a browser that has used the address that the command printed, and that address."""
    assert process.stdout is not None
    found = re.search(r"http://127\.0\.0\.1:\d+/ui/open\?ticket=\S+", process.stdout.readline())
    assert found
    browser = build_opener(HTTPCookieProcessor(CookieJar()))
    browser.open(found[0], timeout=30).close()
    return browser, found[0].partition("/ui/")[0]


def test_the_dashboard_shows_what_clients_of_the_daemon_do(user: User) -> None:
    user.connect().run("'a program of a client'")
    process = subprocess.Popen(
        toolfold_command("ui", "--no-browser"),
        env=user.environ,
        cwd=user.project,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        browser, address = opened(process)
        with browser.open(f"{address}/ui/runs", timeout=30) as page:
            shown = page.read().decode()
        process.send_signal(signal.SIGINT)

    assert "a program of a client" in shown
    assert process.returncode == 130
    assert len(user.daemons) == 1
