"""What those who watch a server ask for, and how it ends when it is told to."""

import signal
import threading
import time
from pathlib import Path

import httpx2 as httpx
import pytest
from http_daemon import serve_command, serving
from postgres_server import database_url
from support import write_config


def ready(root: str) -> httpx.Response:
    return httpx.get(f"{root}/health/ready", timeout=60)


def test_a_server_is_live_and_ready_and_says_how_its_servers_are(tmp_path: Path) -> None:
    config = write_config(tmp_path / "mcp.json", {})
    with serving(serve_command(config), home=tmp_path / "home") as served:
        assert httpx.get(f"{served.root}/health/live", timeout=60).json() == {"status": "ok"}
        answer = ready(served.root)
        assert answer.status_code == 200
        assert answer.json() == {"status": "ready", "memory": "ok", "servers": []}
        assert not (tmp_path / "home" / "data" / "memory.db").exists(), "asking makes nothing"


def test_a_server_without_its_database_is_live_and_not_ready(tmp_path: Path) -> None:
    config = write_config(tmp_path / "mcp.json", {})
    url = "postgresql://ada:hunter2@127.0.0.1:1/notes"
    command = serve_command(config, "--set", f"database_url={url}")
    with serving(command, home=tmp_path / "home") as served:
        assert httpx.get(f"{served.root}/health/live", timeout=60).is_success
        answer = ready(served.root)
        assert answer.status_code == 503
        assert answer.json()["status"] == "not ready"
        assert answer.json()["memory"].startswith("Database notes at 127.0.0.1:1 cannot be opened:")
        assert "hunter2" not in answer.text
    assert "hunter2" not in (tmp_path / "home" / "stderr").read_text()


def test_a_server_is_ready_again_when_its_database_is(tmp_path: Path) -> None:
    config = write_config(tmp_path / "mcp.json", {})
    command = serve_command(config, "--set", f"database_url={database_url(tmp_path)}")
    with serving(command, home=tmp_path / "home") as served:
        assert ready(served.root).json()["memory"] == "ok"


@pytest.mark.parametrize("is_told_again", [False, True], ids=["once", "twice"])
def test_what_is_under_way_finishes_before_a_server_ends(
    tmp_path: Path, is_told_again: bool
) -> None:
    config = write_config(tmp_path / "mcp.json", {})
    answers: list[httpx.Response | httpx.HTTPError] = []

    def run() -> None:
        code = "import asyncio\nawait asyncio.sleep(4)\nprint('done at last')"
        try:
            answers.append(httpx.post(f"{root}/execute", json={"code": code}, timeout=60))
        except httpx.HTTPError as error:
            answers.append(error)

    command = serve_command(config, "--set", "drain_s=30")
    with serving(command, home=tmp_path / "home") as served:
        root = served.root
        client = threading.Thread(target=run)
        client.start()
        deadline = time.monotonic() + 60
        while not httpx.get(f"{root}/runs", timeout=60).json()["runs"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        served.process.send_signal(signal.SIGTERM)
        while ready(root).json()["status"] != "ending":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        if is_told_again:
            served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(timeout=60) == 128 + signal.SIGTERM
        client.join(timeout=60)
    [answer] = answers
    is_whole = isinstance(answer, httpx.Response) and "done at last" in answer.text
    assert is_whole is not is_told_again
