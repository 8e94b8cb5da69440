"""What a server was started with is said, and filled in where it plainly fits."""

from pathlib import Path
from typing import Any

import pytest
from support import MakeApp, scripted

from toolfold.catalog.known_values import KnownValue, known_values

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

    assert "git.git_diff(target: str)" in listed
    values = f"{tmp_path}/git.json, /srv/app"
    assert listed.startswith(f"# started with {values} (repo_path filled in)\n")
    assert "repo_path: str = '/srv/app'" in stub
    assert f"git: 3 tools; started with {values}" in servers
    assert f"no such place (git was started with {values})" in fault
