"""Write assets/tool_shapes.json: what tools of public servers return that do not declare it.

Calls the real servers below `.tools` (`make tools`) on data made for it, at least twice where
answers differ. Kept is what all answers had in common.
"""

import json
import subprocess
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import which
from typing import Any

import anyio

from toolfold.app import running_app
from toolfold.catalog.observed_shapes import SHIPPED, from_json, stable, to_json
from toolfold.config.config import load_config
from toolfold.jsontypes import JsonObject

ROOT = Path(__file__).parents[1]
TOOLS = ROOT / ".tools"

_CALLS = {
    "sqlite": """
sqlite.create_table(query="CREATE TABLE t (n INTEGER PRIMARY KEY, name TEXT DEFAULT 'x')")
sqlite.create_table(query="CREATE TABLE u (at TEXT NOT NULL)")
for statement in ("INSERT INTO t VALUES (1, 'a')", "UPDATE t SET name = 'b'", "DELETE FROM u"):
    sqlite.write_query(query=statement)
for statement in ("SELECT n FROM t", "SELECT name FROM t", "SELECT * FROM u", "SELECT * FROM v"):
    sqlite.read_query(query=statement)
sqlite.create_table(query="CREATE TABLE t (n INTEGER)")
sqlite.write_query(query="DELETE FROM v")
for name in ("t", "u", "t"):
    sqlite.list_tables()
    sqlite.describe_table(table_name=name)
sqlite.append_insight(insight="Few rows.")
""",
    "git": """
git.git_status()
git.git_log(max_count=1)
git.git_log()
git.git_show(revision="HEAD")
git.git_branch(branch_type="local")
git.git_create_branch(branch_name="other")
git.git_checkout(branch_name="other")
git.git_diff_unstaged()
git.git_add(files=["b.txt"])
git.git_diff_staged()
git.git_reset()
git.git_add(files=["b.txt"])
git.git_commit(message="Add b")
git.git_diff(target="HEAD~1")
""",
    "time": """
time.get_current_time(timezone="Europe/Berlin")
time.get_current_time(timezone="Asia/Tokyo")
for zone in ("Asia/Tokyo", "UTC"):
    time.convert_time(source_timezone="Europe/Berlin", time="16:30", target_timezone=zone)
""",
    "fetch": """
fetch.fetch(url="{address}/page.html")
fetch.fetch(url="{address}/data.json")
fetch.fetch(url="{address}/data.json", raw=True)
""",
    "everything": """
everything.echo(message="hello")
everything.get_sum(a=1, b=2)
everything.get_annotated_message(messageType="success")
everything.trigger_long_running_operation(duration=0.1, steps=1)
everything.get_resource_links(count=2)
""",
}


def main() -> None:
    """Record and write, as if nothing were known yet."""
    SHIPPED.write_text("{}")
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        recorded = anyio.run(_record, root, _prepare(root))
    SHIPPED.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{SHIPPED.relative_to(ROOT)}: {len(recorded)} tools")


def _prepare(root: Path) -> JsonObject:
    """Make the data that servers work on; return their entries."""
    repository, pages = root / "repository", root / "pages"
    repository.mkdir()
    pages.mkdir()
    (pages / "page.html").write_text("<html><body><h1>Title</h1><p>Text</p></body></html>")
    (pages / "data.json").write_text('{"a": [1]}')
    git = ["git", "-C", str(repository), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    for name, value in (("user.name", "A"), ("user.email", "a@example.org")):
        subprocess.run([*git, "config", name, value], check=True)
    (repository / "a.txt").write_text("a\n")
    subprocess.run([*git, "add", "a.txt"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "Add a"], check=True)
    (repository / "a.txt").write_text("b\n")
    (repository / "b.txt").write_text("b\n")
    package = TOOLS / "npm" / "node_modules" / "@modelcontextprotocol" / "server-everything"
    return {
        "sqlite": _entry(TOOLS / "sqlite/bin/mcp-server-sqlite", "--db-path", root / "data.db"),
        "git": _entry(TOOLS / "servers/bin/mcp-server-git", "--repository", repository),
        "time": _entry(TOOLS / "servers/bin/mcp-server-time", "--local-timezone=UTC"),
        "fetch": _entry(TOOLS / "servers/bin/mcp-server-fetch", "--allow-private-ips"),
        "everything": _entry(which("node") or "node", package / "dist" / "index.js", "stdio"),
    }


def _entry(command: str | Path, *arguments: str | Path) -> JsonObject:
    return {"command": str(command), "args": [str(each) for each in arguments]}


async def _record(root: Path, servers: JsonObject) -> JsonObject:
    file = root / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    config = load_config(
        config_file=file,
        cwd=root,
        environ={"TOOLFOLD_HOME": str(root / "home"), "TOOLFOLD_APPROVALS": "never"},
    )
    handler = partial(SimpleHTTPRequestHandler, directory=root / "pages")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as pages:
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{pages.server_port}"
        async with running_app(config) as app:
            for name, code in _CALLS.items():
                report = await app.runtime.run(code.replace("{address}", address))
                print(f"{name}: {report.text or 'done'}")
        pages.shutdown()
    kept: JsonObject = {}
    for path in sorted(config.directories.cache.glob("shapes/*.json")):
        for tool, entry in json.loads(path.read_bytes()).items():
            kept[f"{tool} {entry.pop('definition')}"] = _stable(entry)
    return kept


def _stable(entry: dict[str, Any]) -> JsonObject:
    if "shape" in entry:
        entry["shape"] = to_json(stable(from_json(entry["shape"])))
    return entry


if __name__ == "__main__":
    main()
