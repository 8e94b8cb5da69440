import json
import os
import signal
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest
from anyio.abc import Process
from servers.authorization import Authority, serving
from support import MakeApp, MakeConfig, free_port, python, test_server, write_config

from toolfold.catalog.login.flow import log_in
from toolfold.catalog.login.logins import Logins, login_state

SENTENCE = "it needs a login. Run: toolfold login crm"
CALL = "import crm\ncrm.echo(value='there')"


def crm(site: Authority, **extra: Any) -> dict[str, Any]:
    """Return the `mcpServers` of somebody who uses the site."""
    return {"crm": {"type": "http", "url": site.resource, **extra}}


StartSite = Callable[..., Awaitable[Authority]]


@pytest.fixture
async def start_site() -> AsyncIterator[StartSite]:
    """Return `await start_site(lifetime_s=1)`: a guarded server, and who guards it."""
    async with AsyncExitStack() as sites:

        async def start(**options: Any) -> Authority:
            return await sites.enter_async_context(serving(**options))

        yield start


class Command:
    """The real command line, in the same home as the apps of the test."""

    def __init__(self, tmp_path: Path, home: Path) -> None:
        self._tmp_path = tmp_path
        self._environ = {
            "PATH": os.environ["PATH"], "HOME": str(tmp_path), "TOOLFOLD_HOME": str(home),
            "TOOLFOLD_NO_DAEMON": "1",
        }  # fmt: skip
        self.logins = home / "data" / "logins"

    @asynccontextmanager
    async def started(self, servers: dict[str, Any], *arguments: str) -> AsyncIterator[Process]:
        config = write_config(self._tmp_path / "cli.json", servers)
        command = [python(), "-m", "toolfold", *arguments, "--config", str(config)]
        async with await anyio.open_process(
            command, env=self._environ, cwd=self._tmp_path
        ) as process:
            try:
                with anyio.fail_after(55):
                    yield process
            finally:
                if process.returncode is None:
                    process.kill()

    async def run(self, servers: dict[str, Any], *arguments: str) -> "Done":
        async with self.started(servers, *arguments) as process:
            return await finished(process)

    async def log_in(self, site: Authority, servers: dict[str, Any] | None = None) -> "Done":
        async with self.started(servers or crm(site), "login", "crm", "--no-browser") as process:
            return await finished(process, await browse(await read_url(process)))

    def files(self) -> list[Path]:
        return sorted(self.logins.glob("*.json")) if self.logins.exists() else []


@dataclass(frozen=True)
class Done:
    status: int | None
    stdout: str
    stderr: str
    page: httpx2.Response | None = None


LogIn = Callable[[Authority], Awaitable[None]]


@pytest.fixture
def logged_in(make_config: MakeConfig) -> LogIn:
    """Return `await logged_in(site)`: what `toolfold login` does, without a process of its own."""

    async def enter(site: Authority) -> None:
        config = make_config(crm(site))
        logins = Logins(config.directories)
        async with anyio.create_task_group() as browsers:

            async def visit(url: str) -> None:
                browsers.start_soon(browse, url)

            granted = await log_in(config.servers[0], visit=visit, timeout_s=20)
        assert granted is not None
        async with logins.locked(config.servers[0]):
            logins.save(config.servers[0], granted)

    return enter


async def browse(url: str) -> httpx2.Response:
    """Visit a page and go where it leads, as a browser would."""
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        return await browser.get(url)


@pytest.fixture
def command(tmp_path: Path, home: Path) -> Command:
    return Command(tmp_path, home)


async def read_line(process: Process) -> str:
    return await read_until(process, "\n")


async def read_url(process: Process) -> str:
    """Return the page that `toolfold login` has printed between empty lines."""
    text = await read_until(process, "\n\n", times=2)
    return text.split("\n\n")[1].strip()


async def read_until(process: Process, end: str, *, times: int = 1) -> str:
    assert process.stdout is not None
    text = ""
    with anyio.fail_after(40):
        while text.count(end) < times:
            text += (await process.stdout.receive()).decode()
    return text


async def finished(process: Process, page: httpx2.Response | None = None) -> Done:
    assert process.stdout is not None
    assert process.stderr is not None
    stdout = b"".join([chunk async for chunk in process.stdout])
    stderr = b"".join([chunk async for chunk in process.stderr])
    return Done(await process.wait(), stdout.decode(), stderr.decode(), page)


async def test_a_login_lets_code_call_the_tools(
    command: Command, start_site: StartSite, running: MakeApp
) -> None:
    site = await start_site()
    before = await command.run(crm(site), "run", "-c", CALL)
    done = await command.log_in(site)
    async with running(crm(site)) as toolfold:
        result = await toolfold.run(CALL)

    assert before.status == 1
    assert before.stderr.count(SENTENCE) >= 1
    assert done.status == 0, done.stderr
    assert "'crm': logged in, renewed automatically. It lists 2 tools" in done.stdout
    assert done.page is not None
    assert "You can close this page" in done.page.text
    assert result.value == '"there"', result.text


async def test_what_is_stored_is_closed_to_other_users_and_shows_no_secret(
    command: Command, start_site: StartSite, make_config: MakeConfig
) -> None:
    site = await start_site()
    done = await command.log_in(site)
    [path] = command.files()
    secrets = [json.loads(path.read_text())[key] for key in ("access_token", "refresh_token")]
    config = make_config(crm(site))
    login = Logins(config.directories).load(config.servers[0])

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert login is not None
    for secret in secrets:
        assert secret
        assert secret not in done.stdout + done.stderr + repr(login)


async def test_a_token_that_has_ended_is_renewed_in_the_running_process(
    logged_in: LogIn, start_site: StartSite, running: MakeApp
) -> None:
    site = await start_site()
    await logged_in(site)
    async with running(crm(site)) as toolfold:
        first = await toolfold.run(CALL)
        site.expire()
        second = await toolfold.run(CALL)

    assert first.success, first.text
    assert second.success, second.text
    assert site.seen["renewals"] == 1


async def test_a_token_that_is_about_to_end_is_renewed_in_a_new_process_before_it_is_used(
    logged_in: LogIn, command: Command, start_site: StartSite
) -> None:
    site = await start_site(lifetime_s=1)
    await logged_in(site)
    before = site.seen["renewals"]
    done = await command.run(crm(site), "run", "-c", CALL)

    assert done.stdout == '"there"\n', done.stderr
    assert site.seen["renewals"] > before


async def test_processes_that_renew_at_once_do_not_spend_each_others_tokens(
    logged_in: LogIn, command: Command, start_site: StartSite
) -> None:
    site = await start_site(lifetime_s=1)  # so that every request of every process renews
    await logged_in(site)
    code = "import crm\nfor i in range(10):\n    crm.put(value=i)\n'done'"
    results: list[Done] = []

    async def run() -> None:
        results.append(await command.run(crm(site), "run", "-c", code))

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(run)

    assert [done.stdout for done in results] == ["done\n"] * 3, [done.stderr for done in results]
    assert site.seen["renewals"] >= 30
    assert site.seen["reuses"] == 0
    assert site.seen["refused renewals"] == 0


async def test_one_renewal_serves_all_who_were_refused(
    logged_in: LogIn, start_site: StartSite, running: MakeApp
) -> None:
    site = await start_site()
    await logged_in(site)
    code = "import asyncio, crm\nlen(await asyncio.gather(*[crm.echo(value=i) for i in range(8)]))"
    async with running(crm(site)) as toolfold:
        await toolfold.run(CALL)
        site.expire()
        result = await toolfold.run(code)

    assert result.value == 8, result.text
    assert site.seen["renewals"] == 1


async def test_a_login_that_was_taken_back_asks_for_a_new_one_which_works_without_a_restart(
    logged_in: LogIn, command: Command, start_site: StartSite, running: MakeApp
) -> None:
    site = await start_site()
    await logged_in(site)
    async with running(crm(site)) as toolfold:
        first = await toolfold.run(CALL)
        site.end()
        refused = await toolfold.run(CALL)
        again = await toolfold.run(CALL)
        done = await command.log_in(site)
        third = await toolfold.run(CALL)

    assert first.success, first.text
    assert f"The server 'crm' cannot be used: {SENTENCE}" in refused.text
    assert SENTENCE in again.text
    assert site.seen["refused renewals"] == 1
    assert done.status == 0, done.stderr
    assert third.success, third.text


async def test_an_app_that_never_was_logged_in_takes_up_a_login_within_seconds(
    logged_in: LogIn, start_site: StartSite, running: MakeApp
) -> None:
    site = await start_site()
    async with running(crm(site)) as toolfold:
        for _ in range(4):
            refused = await toolfold.run(CALL)
        await logged_in(site)
        with anyio.fail_after(60):
            while not (result := await toolfold.run(CALL)).success:
                await anyio.sleep(0.05)

    assert SENTENCE in refused.text
    assert result.value == '"there"'


async def test_an_authorization_server_that_is_down_costs_no_login(
    logged_in: LogIn, start_site: StartSite, running: MakeApp
) -> None:
    site = await start_site()
    await logged_in(site)
    async with running(crm(site)) as toolfold:
        await toolfold.run(CALL)
        site.expire()
        site.is_broken = True
        refused = await toolfold.run(CALL)
        site.is_broken = False
        with anyio.fail_after(60):
            while not (result := await toolfold.run(CALL)).success:
                await anyio.sleep(0.05)

    assert "127.0.0.1 did not renew it: it answered with status 503" in refused.text
    assert result.success, result.text


async def test_an_answer_with_the_wrong_state_is_refused_and_the_right_one_still_counts(
    command: Command, start_site: StartSite
) -> None:
    site = await start_site()
    async with command.started(crm(site), "login", "crm", "--no-browser") as process:
        url = await read_url(process)
        back = parse_qs(urlsplit(url).query)["redirect_uri"][0]
        async with httpx2.AsyncClient(follow_redirects=True) as browser:
            forged = [
                await browser.get(back, params={"code": "stolen", "state": "guessed"}),
                await browser.get(back, params={"code": "stolen"}),
                await browser.get(back, params={"error": "access_denied"}),
            ]
            still_waiting = process.returncode is None and not command.files()
            right = await browser.get(url)
        done = await finished(process)

    assert [page.status_code for page in forged] == [400, 400, 400]
    assert still_waiting
    assert right.status_code == 200
    assert done.status == 0, done.stderr


async def test_a_refused_login_says_why_and_leaves_what_was_there(
    logged_in: LogIn, command: Command, start_site: StartSite
) -> None:
    site = await start_site()
    await logged_in(site)
    [path] = command.files()
    before = path.read_bytes()
    site.denies = True
    done = await command.log_in(site)

    assert done.status == 2
    assert "The login was refused: access_denied not today." in done.stderr
    assert path.read_bytes() == before


async def test_nobody_logging_in_leaves_nothing(command: Command, start_site: StartSite) -> None:
    site = await start_site()
    done = await command.run(crm(site), "login", "crm", "--no-browser", "--timeout", "1")

    assert done.status == 2
    assert "No login to 'crm' within 1 s." in done.stderr
    assert command.files() == []


async def test_an_interrupted_login_leaves_nothing(command: Command, start_site: StartSite) -> None:
    site = await start_site()
    async with command.started(crm(site), "login", "crm", "--no-browser") as process:
        await read_url(process)
        process.send_signal(signal.SIGINT)
        done = await finished(process)

    assert done.status == 130
    assert "Traceback" not in done.stderr
    assert command.files() == []


async def test_a_server_that_wants_a_login_for_calls_only_can_be_logged_in_to(
    command: Command, start_site: StartSite, running: MakeApp
) -> None:
    site = await start_site(guards_only_calls=True)
    async with running(crm(site)) as toolfold:
        refused = await toolfold.run(CALL)
        done = await command.log_in(site)
        result = await toolfold.run(CALL)

    assert SENTENCE in refused.text
    assert done.status == 0, done.stderr
    assert result.success, result.text


async def test_what_the_entry_says_of_the_login_is_used(
    command: Command, start_site: StartSite
) -> None:
    site = await start_site()
    port = free_port()
    oauth = {
        "clientId": "known-client",
        "clientSecret": "known-secret",
        "callbackPort": port,
        "authServerMetadataUrl": f"{site.base}/elsewhere.json",
        "scopes": "read write",
    }
    done = await command.log_in(site, crm(site, oauth=oauth))

    assert done.status == 0, done.stderr
    assert site.seen["registrations"] == 0
    assert site.asked[0]["client_id"] == "known-client"
    assert site.asked[0]["redirect_uri"] == f"http://localhost:{port}/callback"
    assert site.asked[0]["scope"] == "read write"


async def test_a_header_that_the_user_wrote_is_sent_instead_of_the_login(
    logged_in: LogIn, start_site: StartSite, running: MakeApp
) -> None:
    site = await start_site()
    await logged_in(site)
    async with running(crm(site, headers={"authorization": "Bearer own"})) as toolfold:
        result = await toolfold.run(CALL)

    assert "refused with status 401. Check its headers or token." in result.text


async def test_another_url_needs_another_login(
    logged_in: LogIn, start_site: StartSite, make_config: MakeConfig
) -> None:
    site = await start_site()
    await logged_in(site)
    config = make_config({**crm(site), "moved": {"url": f"{site.resource}/v2"}})
    [ours, moved] = config.servers

    assert login_state(ours, config.directories).status == "valid"
    assert login_state(moved, config.directories).status == "absent"


async def test_a_damaged_file_counts_as_no_login_and_is_replaced(
    logged_in: LogIn, command: Command, start_site: StartSite
) -> None:
    site = await start_site()
    await logged_in(site)
    [path] = command.files()
    path.write_text('{"url": 1')
    refused = await command.run(crm(site), "run", "-c", CALL)
    await logged_in(site)
    done = await command.run(crm(site), "run", "-c", CALL)

    assert SENTENCE in refused.stderr
    assert done.stdout == '"there"\n'


async def test_logging_out_forgets_the_login_here_and_there(
    logged_in: LogIn, command: Command, start_site: StartSite
) -> None:
    site = await start_site()
    await logged_in(site)
    [path] = command.files()
    token = json.loads(path.read_text())["access_token"]
    done = await command.run(crm(site), "logout", "crm")
    again = await command.run(crm(site), "logout", "crm")
    async with httpx2.AsyncClient() as http:
        stolen = await http.post(
            site.resource, headers={"Authorization": f"Bearer {token}"}, json={}
        )

    assert done.stdout == "Logged out of 'crm'; the server has revoked the login, too.\n"
    assert again.stdout == "You were not logged in to 'crm'.\n"
    assert command.files() == []
    assert stolen.status_code == 401


async def test_a_login_is_never_sent_to_be_revoked_where_others_could_read_it(
    logged_in: LogIn, command: Command, start_site: StartSite
) -> None:
    site = await start_site()
    site.revocation = "http://revoke.example.org/"
    await logged_in(site)
    [path] = command.files()
    stored = json.loads(path.read_text())
    path.write_text(json.dumps({**stored, "revocation_endpoint": site.revocation}))
    done = await command.run(crm(site), "logout", "crm")

    assert stored["revocation_endpoint"] is None
    assert "the server was not notified: the connection is not encrypted" in done.stdout
    assert command.files() == []


@pytest.mark.parametrize("prefix", ["\r\nX-Evil: 1\r\n", "é"])
async def test_a_token_that_no_header_can_carry_is_refused(
    prefix: str, command: Command, start_site: StartSite
) -> None:
    site = await start_site()
    site.token_prefix = prefix
    done = await command.log_in(site)

    assert done.status == 2
    assert "a token that is not printable ASCII" in done.stderr
    assert "Traceback" not in done.stderr
    assert command.files() == []


@pytest.mark.parametrize(("prefix", "padding"), [("\r\n", ""), ("", "x" * 1_000_000)])
async def test_a_renewal_that_cannot_be_used_costs_no_login(
    prefix: str, padding: str, running: MakeApp, logged_in: LogIn, start_site: StartSite
) -> None:
    site = await start_site()
    await logged_in(site)
    site.expire()
    site.token_prefix, site.padding = prefix, padding
    async with running(crm(site)) as toolfold:
        result = await toolfold.run(CALL)

    assert "its login has ended and 127.0.0.1 did not renew it" in result.text


async def test_doctor_says_who_is_logged_in(
    logged_in: LogIn, command: Command, start_site: StartSite
) -> None:
    site = await start_site()
    refused = await command.run(crm(site), "doctor")
    await logged_in(site)
    done = await command.run(crm(site), "doctor")

    assert f"FAILED    crm: {SENTENCE}" in refused.stdout
    assert "ok        crm: 2 tools as `import crm`" in done.stdout
    assert ", logged in, renewed automatically" in done.stdout


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"command": "crm-server"}, "'crm' is a program on this machine (stdio)"),
        (
            {"url": "https://crm.example/mcp", "headers": {"Authorization": "Bearer x"}},
            "'crm' has an `Authorization` header in its entry",
        ),
        ({"url": "http://crm.example/mcp"}, "http://crm.example is not encrypted"),
    ],
    ids=["stdio", "header", "http"],
)
async def test_where_one_cannot_log_in_the_reason_is_said(
    command: Command, entry: dict[str, Any], said: str
) -> None:
    done = await command.run({"crm": entry}, "login", "crm", "--no-browser")

    assert done.status == 2
    assert said in done.stderr


async def test_a_misspelt_server_is_answered_with_the_nearest(command: Command) -> None:
    done = await command.run({"crm": {"url": "https://crm.example/mcp"}}, "login", "crn")

    assert done.status == 2
    assert done.stderr == "toolfold: No server is named 'crn'. Did you mean 'crm'?\n"


@asynccontextmanager
async def http_server(*arguments: str) -> AsyncIterator[str]:
    """Run `http_server.py`; yield its URL."""
    entry = test_server("http_server", "0", *arguments)
    async with await anyio.open_process([entry["command"], *entry["args"]], stderr=None) as server:
        yield (await read_line(server)).split()[-1]
        server.kill()


async def test_a_server_that_needs_no_login_is_said_to_need_none(command: Command) -> None:
    async with http_server("plain") as url:
        done = await command.run({"crm": {"url": url}}, "login", "crm", "--no-browser")

    assert done.status == 0, done.stderr
    assert done.stdout == "'crm' needs no login: it answers without one, and offers none.\n"


async def test_a_server_that_wants_a_token_and_offers_no_login_is_said_to(command: Command) -> None:
    async with http_server("auth", "Bearer secret") as url:
        done = await command.run({"crm": {"url": url}}, "login", "crm", "--no-browser")

    assert done.status == 2
    assert "'crm' refuses us, and offers no way to log in. It may want a token" in done.stderr


async def test_where_programs_must_be_registered_by_hand_the_user_is_told_so(
    command: Command, start_site: StartSite
) -> None:
    site = await start_site()
    site.registers = False
    done = await command.run(crm(site), "login", "crm", "--no-browser")

    assert done.status == 2
    assert f"{site.issuer} does not register programs by itself." in done.stderr
    assert "`clientId` under `oauth`" in done.stderr
