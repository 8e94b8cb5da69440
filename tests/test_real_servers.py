"""One configuration with eight real servers, each called from guest code."""

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support import MakeApp, Running, entry, node_server, python_server

PAGE = "<html><body><h1>Fetched</h1><p>From this machine.</p></body></html>"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with one commit."""
    path = tmp_path / "repository"
    path.mkdir()
    (path / "a.txt").write_text("hello")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "First"]):
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=path, check=True)
    return path


@pytest.fixture
def servers(tmp_path: Path, repository: Path) -> dict[str, Any]:
    files = tmp_path / "files"
    files.mkdir()
    (files / "note.txt").write_text("a note")
    return {
        "memory": entry(node_server("memory"), env={"MEMORY_FILE_PATH": str(tmp_path / "m.jsonl")}),
        "everything": entry(node_server("everything", "stdio")),
        "filesystem": entry(node_server("filesystem", str(files))),
        "sequential-thinking": entry(node_server("sequential-thinking")),
        "git": entry(python_server("git", "--repository", str(repository))),
        "time": entry(python_server("time", "--local-timezone", "UTC")),
        "fetch": entry(python_server("fetch", "--ignore-robots-txt", "--allow-private-ips")),
        "sqlite": entry(python_server("sqlite", "--db-path", str(tmp_path / "data.db"))),
    }


@pytest.fixture
async def toolfold(running: MakeApp, servers: dict[str, Any]) -> AsyncIterator[Running]:
    async with running(servers, connect_timeout_s=100) as toolfold:
        await toolfold.app.catalog.learn()
        yield toolfold


async def value(toolfold: Running, code: str) -> Any:
    result = await toolfold.run(code)
    assert result.success, result.text
    return result.value


@pytest.mark.timeout(300)
async def test_eight_real_servers_are_listed_and_called(
    toolfold: Running, tmp_path: Path, repository: Path
) -> None:
    tools = {status.name: status.tools for status in toolfold.app.catalog.statuses()}
    assert tools == {
        "memory": 9, "everything": 15, "filesystem": 14, "sequential-thinking": 1,
        "git": 12, "time": 2, "fetch": 1, "sqlite": 6,
    }  # fmt: skip

    found = await value(
        toolfold,
        """
memory.create_entities(
    entities=[{"name": "Ada", "entityType": "person", "observations": ["writes programs"]}]
)
memory.search_nodes(query="programs")["entities"][0]["name"]
""",
    )
    assert found == "Ada"

    summed = await value(toolfold, "import everything\neverything.get_sum(a=2, b=3)")
    assert "5" in str(summed)

    note = str(tmp_path / "files" / "note.txt")
    read = await value(toolfold, f"import filesystem\nfilesystem.read_text_file(path={note!r})")
    assert "a note" in str(read)

    thought = await value(
        toolfold,
        """
import sequential_thinking
sequential_thinking.sequentialthinking(
    thought="One step.", nextThoughtNeeded=False, thoughtNumber=1, totalThoughts=1
)["thoughtHistoryLength"]
""",
    )
    assert thought == 1

    log = await value(toolfold, f"import git\ngit.git_log(repo_path={str(repository)!r})")
    assert "First" in str(log)

    converted = await value(
        toolfold,
        """
time.convert_time(
    source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"
)["target"]["datetime"]
""",
    )
    assert "T21:00" in converted

    rows = await value(
        toolfold,
        """
import sqlite
sqlite.create_table(query="CREATE TABLE t (n INTEGER)")
for n in range(5):
    sqlite.write_query(query=f"INSERT INTO t VALUES ({n})")
sqlite.read_query(query="SELECT sum(n) AS total FROM t")
""",
    )
    assert "10" in str(rows)


@pytest.mark.timeout(300)
async def test_a_page_is_fetched_an_image_shown_and_an_error_caught(
    toolfold: Running, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text(PAGE)
    web = subprocess.Popen(
        ["python3", "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"],
        cwd=site, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert web.stdout is not None
        port = int(web.stdout.readline().split("port ")[1].split()[0])
        page = await value(
            toolfold, f"import fetch\nfetch.fetch(url='http://127.0.0.1:{port}/index.html')"
        )
    finally:
        web.kill()
        web.communicate()
    assert "From this machine." in str(page)

    picture = await toolfold.run(
        "import everything\n"
        "for part in everything.get_tiny_image():\n"
        "    if isinstance(part, dict):\n"
        "        show(part)"
    )
    assert [image.mime_type for image in picture.images] == ["image/png"], picture.text

    caught = await toolfold.run(
        "import filesystem\n"
        "try:\n"
        "    filesystem.read_text_file(path='/etc/passwd')\n"
        "except RuntimeError as error:\n"
        "    print('refused:', error)"
    )
    assert "refused: filesystem.read_text_file failed: Access denied" in caught.text


@pytest.mark.timeout(120)
async def test_a_task_of_the_reference_server_is_a_plain_call(
    running: MakeApp, servers: dict[str, Any]
) -> None:
    code = "import everything\neverything.simulate_research_query(topic='tides')"
    async with running({"everything": servers["everything"]}, connect_timeout_s=60) as toolfold:
        report = await value(toolfold, code)

    assert "# Research Report: tides" in str(report)
