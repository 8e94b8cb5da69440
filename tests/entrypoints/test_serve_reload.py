"""Files that change while `toolfold serve` runs: nothing needs a restart."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from http_daemon import Serving, serve_command, serving
from mcp import Client
from relay.peer import wait_until
from support import test_server, write_config

from toolfold.entrypoints.http.keys import KeyFile, Keys

pytestmark = pytest.mark.timeout(300)
SERVERS = "import tools; print(tools.servers())"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path / "mcp.json", {"first": test_server("null")})


@pytest.fixture
def served(config: Path, tmp_path: Path) -> Iterator[Serving]:
    with serving(serve_command(config), home=tmp_path / "home") as served:
        yield served


def run(served: Serving, code: str = SERVERS, **headers: str) -> str:
    """Run code over REST."""
    answer = httpx2.post(f"{served.root}/execute", json={"code": code}, headers=headers, timeout=90)
    assert answer.is_success, answer.text
    return str(answer.json()["output"])


async def execute(client: Client, code: str = SERVERS) -> str:
    result: Any = await client.call_tool("execute_code", {"code": code})
    return "\n".join(block.text for block in result.content)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_servers_come_and_go_in_sessions_that_go_on(
    mode: str, served: Serving, config: Path
) -> None:
    async with Client(served.url, mode=mode) as client:
        assert "second:" not in await execute(client)
        write_config(config, {"first": test_server("null"), "second": test_server("null")})
        wait_until(lambda: "second:" in run(served), "REST has the added server")
        assert "second:" in await execute(client)
        assert "second" in (await client.list_tools()).tools[0].description  # type: ignore[operator]

        write_config(config, {"second": test_server("null")})
        wait_until(lambda: "first:" not in run(served), "the removed server is gone")
        assert "first:" not in await execute(client)


def test_a_key_of_another_namespace_has_the_new_servers_too(
    served: Serving, config: Path, tmp_path: Path
) -> None:
    keys = Keys(KeyFile(tmp_path / "home" / "data" / "keys.json"))
    _, secret = keys.create("ci", "team", now=0.0)
    shown = {"authorization": f"Bearer {secret}"}
    assert "second:" not in run(served, **shown)
    write_config(config, {"second": test_server("null")})
    wait_until(lambda: "second:" in run(served, **shown), "the key's namespace has it")
    assert "first:" not in run(served, **shown)


def test_a_run_under_way_keeps_what_it_began_with(served: Serving, config: Path) -> None:
    answers: list[str] = []
    code = (
        "import first\nfor number in range(30):\n"
        "    first.put(value=number); await __import__('asyncio').sleep(0.1)\nprint('to its end')"
    )
    under_way = threading.Thread(target=lambda: answers.append(run(served, code)))
    under_way.start()
    runs = f"{served.root}/runs"
    wait_until(lambda: "running" in httpx2.get(runs, timeout=90).text, "the run is under way")
    write_config(config, {"second": test_server("null")})
    wait_until(lambda: "second:" in run(served), "the next run has the new server")
    under_way.join()
    assert "to its end" in answers[0]


async def test_a_broken_edit_keeps_the_last_good_state_and_is_told_once(
    served: Serving, config: Path, tmp_path: Path
) -> None:
    stderr = tmp_path / "home" / "stderr"
    async with Client(served.url) as client:
        await execute(client)
        config.write_text('{"mcpServers": {')
        wait_until(lambda: "is not in force" in stderr.read_text(), "the terminal says so")
        told = await execute(client)
        assert "first:" in told
        assert "is not in force" in told
        assert "is not in force" not in await execute(client)

    write_config(config, {"second": test_server("null")})
    wait_until(lambda: "second:" in run(served), "the mended file counts")
