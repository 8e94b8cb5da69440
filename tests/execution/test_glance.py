"""Below the tools of well-known servers stands what they have, read where that is open."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support import MakeApp, node_server, python_server, scripted

from toolfold.catalog import observed_shapes
from toolfold.catalog.observed_shapes import definition_digest
from toolfold.catalog.tool import ListedTool
from toolfold.execution.modules.glance import glance_line

pytestmark = pytest.mark.anyio

LIST = {"name": "list", "answers": ['["one", "two"]']}


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have it known how the tool `list` shows what its server has."""
    listed = ListedTool(name="list", input_schema={"type": "object"})
    entries = {f"list {definition_digest(listed)}": {"glance": {}}}
    monkeypatch.setattr(observed_shapes, "_shipped", lambda: entries)


def calls(home: Path) -> list[tuple[str, str]]:
    """Return the calls of the journal: which tool, how they ended."""
    with closing(sqlite3.connect(home / "data" / "runs.db")) as runs:
        return runs.execute("SELECT tool, outcome FROM calls").fetchall()


def arrived(path: Path) -> int:
    log = path.with_name(f"{path.name}.log")
    return len(log.read_text().splitlines()) if log.exists() else 0


async def test_tables_and_files_of_real_servers_are_shown(
    running: MakeApp, tmp_path: Path, home: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop, shop:
        shop.execute("CREATE TABLE orders (\n  id INTEGER PRIMARY KEY,\n  total REAL)")
        shop.execute("CREATE TABLE people (name TEXT)")
    (tmp_path / "papers" / "logs").mkdir(parents=True)
    (tmp_path / "papers" / "plan.md").write_text("text")
    database, *of_database = python_server("sqlite", "--db-path", str(tmp_path / "shop.db"))
    node, *of_files = node_server("filesystem", str(tmp_path / "papers"))
    servers = {
        "shop": {"command": database, "args": of_database},
        "papers": {"command": node, "args": of_files},
    }
    async with running(servers) as app:
        shown = (await app.run("print(tools.describe('shop', 'papers'))")).text
        again = (await app.run("print(tools.describe('shop'))")).text

    tables = "# has: orders ( id INTEGER PRIMARY KEY, total REAL); people (name TEXT)"
    assert tables in shown
    assert "# has: [DIR] logs; [FILE] plan.md" in shown
    assert tables in again
    assert "read_query(query: str) -> list[dict]" in again  # learned from nothing that we asked
    assert calls(home) == [
        ("shop.read_query", "ok"),
        ("papers.list_directory", "ok"),
        ("shop.read_query", "ok"),
    ]


@pytest.mark.parametrize(
    ("policy", "toml", "dry_run"),
    [
        ('[[policy]]\naction = "deny"\ntools = "box.list"\n', "", False),
        ('[[policy]]\naction = "ask"\ntools = "box.*"\n', "", False),
        ('[[policy]]\naction = "deny"\ntools = "box.list"\nmore_than = 3\n', "", False),
        ("", "[servers.box]\nuntrusted = true\n", False),
        ("", "", True),
    ],
    ids=["denied", "asked", "conditional", "untrusted", "dry run"],
)
async def test_nothing_is_read_where_it_is_not_open(
    policy: str, toml: str, dry_run: bool, known: None, running: MakeApp, tmp_path: Path, home: Path
) -> None:
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "policy.toml").write_text(policy)
    async with running({"box": scripted(tmp_path / "box.json", [LIST])}, toml=toml) as app:
        shown = await app.run("print(tools.describe('box'))", dry_run=dry_run)

    assert shown.success, shown.text
    assert "# has:" not in shown.text
    assert arrived(tmp_path / "box.json") == 0


async def test_where_it_is_open_it_is_read_once_a_listing(
    known: None, running: MakeApp, tmp_path: Path
) -> None:
    """Else the test above would show nothing."""
    async with running({"box": scripted(tmp_path / "box.json", [LIST])}) as app:
        shown = (await app.run("print(tools.describe('box'), tools.describe('box.list'))")).text

    assert shown.count("# has: one; two") == 1
    assert arrived(tmp_path / "box.json") == 1


async def test_a_server_that_fails_is_listed_without(
    known: None, running: MakeApp, tmp_path: Path
) -> None:
    failing = {**LIST, "answers": [{"isError": True, "content": [{"type": "text", "text": "No."}]}]}
    async with running({"box": scripted(tmp_path / "box.json", [failing])}) as app:
        shown = await app.run("print(tools.describe('box'))")

    assert shown.success
    assert shown.text.startswith("# box")
    assert "# has:" not in shown.text


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ([{"has": "a (n\n INTEGER)"}, {"has": "b (n)"}], "a (n INTEGER); b (n)"),
        ("[DIR] a\n[FILE] b\n", "[DIR] a; [FILE] b"),
        ([], ""),
        ("", ""),
        ({"rows": []}, ""),
        (None, ""),
        ([{}, 3], "3"),
    ],
)
def test_rows_and_lines_become_one_line(value: Any, line: str) -> None:
    assert glance_line(value) == line


def test_a_long_line_is_cut_between_its_parts() -> None:
    line = glance_line([{"t": f"table_{number} (a, b, c)"} for number in range(1000)])

    assert len(line) <= 603
    assert line.endswith("(a, b, c); …")
    assert json.dumps(line).isascii() is True
