"""What a server was started with is said, and filled in where it plainly fits."""

from pathlib import Path
from typing import Any

import pytest
from support import MakeApp, scripted

from toolfold.catalog.known_values import KnownValue, known_values, program_kind, program_of

SHOWN: dict[str, tuple[list[str], dict[str, str], list[KnownValue]]] = {
    "a root": (["/srv/files"], {}, [KnownValue("path", "/srv/files")]),
    "a repository": (["--repository", "/srv/app"], {}, [KnownValue("repository", "/srv/app")]),
    "as a pair": (["--repository=/srv/app"], {}, [KnownValue("repository", "/srv/app")]),
    "a database": (["--db-path", "/srv/shop.db"], {}, [KnownValue("database", "/srv/shop.db")]),
    "in the environment": (
        [],
        {"MEMORY_FILE_PATH": "/srv/graph.jsonl"},
        [KnownValue("path", "/srv/graph.jsonl")],
    ),
    "an address": (
        ["--base-url", "https://wiki.example.org/api?key=abc"],
        {},
        [KnownValue("url", "https://wiki.example.org/api")],
    ),
    "an address with a password": (
        [],
        {"DATABASE_URL": "postgresql://me:hunter2@db.example.org:5432/shop"},
        [KnownValue("url", "postgresql://db.example.org:5432/shop")],
    ),
    "the program itself": (["/opt/server/index.js", "/usr/bin/tool"], {}, []),
    "a package": (["-y", "@scope/server-files"], {}, []),
    "a key": (["--api-key", "/abc/def"], {"GITHUB_TOKEN": "/abc", "DB_PASSWORD": "/x/y"}, []),
    "a key in an address": (["https://example.org/" + "k" * 60], {}, []),
    "what is no path": (["--mode", "fast", "a=/b c"], {"OPTIONS": "/srv/x"}, []),
}


@pytest.mark.parametrize("name", SHOWN)
def test_only_paths_and_addresses_are_shown(name: str) -> None:
    args, env, expected = SHOWN[name]
    found = known_values(args, env.items())

    assert [each.value for each in found] == [each.value for each in expected]
    assert "hunter2" not in str(found)


STATUS: dict[str, Any] = {
    "name": "git_status",
    "annotations": {"readOnlyHint": True},
    "inputSchema": {
        "type": "object",
        "properties": {"repo_path": {"type": "string"}},
        "required": ["repo_path"],
    },
}
DIFF = {
    **STATUS,
    "name": "git_diff",
    "inputSchema": {
        "type": "object",
        "properties": {"repo_path": {"type": "string"}, "target": {"type": "string"}},
        "required": ["repo_path", "target"],
    },
}
FAILS = {**STATUS, "name": "fail", "inputSchema": {"type": "object"}}
FAILS["answers"] = [{"isError": True, "content": [{"type": "text", "text": "no such place"}]}]


async def test_a_repository_is_filled_in(running: MakeApp, tmp_path: Path) -> None:
    tools = [STATUS, DIFF, FAILS]
    entry = scripted(tmp_path / "git.json", tools, "--repository", "/srv/app")
    async with running({"git": entry}) as app:

        async def sent(call: str) -> Any:
            result = await app.run(f"git.{call}")
            assert result.success, result.text
            return result.value["arguments"]

        assert await sent("git_status()") == {"repo_path": "/srv/app"}
        assert await sent("git_status('/other')") == {"repo_path": "/other"}
        assert await sent("git_status(repo_path='/other')") == {"repo_path": "/other"}
        assert await sent("git_diff('HEAD')") == {"repo_path": "/srv/app", "target": "HEAD"}
        assert await sent("git_diff('/o', 'HEAD')") == {"repo_path": "/o", "target": "HEAD"}
        assert await sent("git_diff(target='HEAD')") == {"repo_path": "/srv/app", "target": "HEAD"}
        assert "target" in (await app.run("git.git_diff()")).text
        listed = (await app.run("tools.describe('git')")).text
        stub = (await app.run("tools.describe('git.git_diff')")).text
        servers = (await app.run("tools.servers()")).text
        fault = (await app.run("git.fail()")).text

    assert "\ngit_diff(target: str)" in listed
    values = f"{tmp_path}/git.json, /srv/app"
    assert listed.startswith(f"# git: scripted; started with {values} (repo_path filled in)\n")
    assert "repo_path: str = '/srv/app'" in stub
    assert f"git: 3 tools; scripted; started with {values}" in servers
    assert f"no such place (git was started with {values})" in fault


@pytest.mark.parametrize(
    ("command", "args", "program"),
    [
        ("uvx", ["mcp-server-sqlite", "--db-path", "/srv/shop.db"], "mcp-server-sqlite"),
        ("npx", ["-y", "@modelcontextprotocol/server-files@1.2", "/srv"], "server-files"),
        ("python", ["-m", "mcp_server_git", "--repository", "/srv"], "mcp_server_git"),
        ("/opt/venv/bin/mcp-server-time", [], "mcp-server-time"),
        ("node", ["/srv/index.js"], ""),
        ("node", ["/x/node_modules/@scope/server-files/dist/index.js", "/srv"], "server-files"),
        ("node", ["/srv/mcp-server/index.js"], ""),
        ("tool", ["--token", "mcp-0123456789"], ""),
        ("tool", ["mcp://me:secret@host"], ""),
        ("docker", ["run", "-e", "MCP_KEY=1", "image"], ""),
    ],
)
def test_a_program_is_named_where_its_entry_does(
    command: str, args: list[str], program: str, make_config: Any
) -> None:
    [server] = make_config({"box": {"command": command, "args": args}}).servers

    assert program_of(server) == program


@pytest.mark.parametrize(
    ("name", "program", "kind"),
    [
        ("sky", "mcp-server-sqlite", "sqlite"),
        ("sqlite", "mcp-server-sqlite", ""),
        ("my-sqlite", "mcp-server-sqlite", ""),
        ("papers", "@modelcontextprotocol/server-filesystem", "filesystem"),
        ("papers", "something", ""),
    ],
)
def test_the_definition_says_what_a_server_is_whose_name_does_not(
    name: str, program: str, kind: str, make_config: Any
) -> None:
    [server] = make_config({name: {"command": "npx", "args": ["-y", program]}}).servers

    assert program_kind(server) == kind


async def test_a_listing_says_where_relative_paths_start(running: MakeApp, tmp_path: Path) -> None:
    files = scripted(tmp_path / "files.json", [{"name": "read"}])
    script, *others = files["args"]
    place = tmp_path / "node_modules" / "server-filesystem" / "scripted.py"
    place.parent.mkdir(parents=True)
    place.symlink_to(script)
    moved = {**files, "args": [str(place), *others]}
    async with running({"papers": moved, "other": files}) as app:
        papers = (await app.run("tools.describe('papers')")).text
        other = (await app.run("tools.describe('other')")).text

    started = f"started with {tmp_path}/files.json"
    assert papers.startswith(f"# papers: server-filesystem; {started} (relative paths start there)")
    assert other.startswith(f"# other: scripted; {started}\n")
