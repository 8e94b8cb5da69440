"""What a relay answers by itself."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from support import MakeApp, test_server

from toolfold import __version__
from toolfold.config.paths import find_project
from toolfold.entrypoints.mcp.manifest_writer import collect_first_answers
from toolfold.entrypoints.mcp.server import make_server
from toolfold.relay.manifest import (
    FirstAnswers,
    as_manifest,
    base_environ,
    deciding_project,
    file_states,
    manifest_path,
)
from toolfold.relay.surface import (
    LEGACY_VERSIONS,
    MODERN_VERSIONS,
    built_in_answers,
    execute_code,
)
from toolfold.tokens import count_tokens


def world(cwd: Path, **more: Any) -> dict[str, Any]:
    return {"cwd": str(cwd), "config": None, "set": [], "environ": {"HOME": "/h"}, **more}


async def test_what_a_relay_says_by_itself_is_what_the_server_would_say(
    running: MakeApp,
) -> None:
    async with running({"null": test_server("null")}) as toolfold:
        rehearsed = await collect_first_answers(partial(make_server, toolfold.app))

    assert rehearsed == built_in_answers(__version__, ["null"])


def test_the_relay_speaks_every_protocol_of_the_sdk() -> None:
    assert LEGACY_VERSIONS == HANDSHAKE_PROTOCOL_VERSIONS
    assert MODERN_VERSIONS == MODERN_PROTOCOL_VERSIONS


def test_directories_without_files_of_their_own_share_one_manifest(tmp_path: Path) -> None:
    plain, repository, configured = (tmp_path / name for name in ("plain", "repo", "conf"))
    (plain / "deep").mkdir(parents=True)
    (repository / ".git").mkdir(parents=True)
    (configured / ".git").mkdir(parents=True)
    (configured / ".mcp.json").write_text("{}")
    (configured / "deep").mkdir()

    paths = {
        name: manifest_path("/cache", world(place))
        for name, place in {
            "plain": plain,
            "deep": plain / "deep",
            "repository": repository,
            "configured": configured,
            "configured deep": configured / "deep",
        }.items()
    }

    assert paths["plain"] == paths["deep"] == paths["repository"]
    assert paths["configured"] == paths["configured deep"] != paths["plain"]


def test_the_project_that_decides_is_the_one_that_the_configuration_finds(tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    inner = outer / "inner"
    (inner / "deep").mkdir(parents=True)
    for project in (outer, inner):
        (project / ".toolfold").mkdir()
        (project / ".toolfold" / "mcp.json").write_text("{}")
    link = tmp_path / "link"
    link.symlink_to(inner / "deep")

    for place in (outer, inner, inner / "deep", link):
        assert deciding_project(str(place)) == str(find_project(place))


def test_answers_are_exact_while_their_files_are_as_they_were(tmp_path: Path) -> None:
    watched, missing = tmp_path / "watched", tmp_path / "missing"
    watched.write_text("1")
    path = Path(manifest_path(str(tmp_path), world(tmp_path)))
    path.parent.mkdir()
    answers = {"legacy": {"tools/list": {"tools": ["kept"]}}}
    path.write_text(as_manifest(answers, file_states([str(watched), str(missing)]), __version__))
    request = {"method": "tools/list"}

    def first(version: str = __version__) -> FirstAnswers:
        return FirstAnswers(str(tmp_path), world(tmp_path), version)

    assert first().exact(request, None) == {"tools": ["kept"]}
    assert first().exact({**request, "params": {"cursor": "2"}}, None) is None
    assert first().exact(request, "2026-07-28") is None
    assert first("9.9").exact(request, None) is None
    missing.touch()
    assert first().exact(request, None) is None
    assert first().guess(request, None) == {"tools": ["kept"]}


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b'{"version": "0.1.0"}', b"\xff", b'{"watched": 3}']
)
def test_a_damaged_manifest_counts_as_none(tmp_path: Path, content: bytes) -> None:
    path = Path(manifest_path(str(tmp_path), world(tmp_path)))
    path.parent.mkdir()
    path.write_bytes(content)

    first = FirstAnswers(str(tmp_path), world(tmp_path), __version__)

    assert first.exact({"method": "tools/list"}, None) is None
    assert first.guess({"method": "tools/list"}, None) is not None


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_of_the_environment_only_what_is_ours_is_sent(environ: dict[str, str]) -> None:
    sent = base_environ({**environ, "HOME": "/h", "TOOLFOLD_LINGER_S": "1", "TOKEN": "secret"})

    assert sent["HOME"] == "/h"
    assert sent["TOOLFOLD_LINGER_S"] == "1"
    assert "TOKEN" not in sent
    assert all(
        name in {"HOME", "USERPROFILE", "PATH"} or name.startswith(("TOOLFOLD_", "XDG_"))
        for name in sent
    )


@pytest.mark.parametrize(
    ("servers", "indent"),
    [
        (["sky", "papers", "memory", "graph", "git", "time"], 1),  # the widest that clients write
        (["github", "slack", "notion", "salesforce", "atlassian", "playwright"], 1),
        ([f"server_number_{number}" for number in range(30)], None),
    ],
)
def test_the_definition_stays_small_and_tells_our_stores_from_servers(
    servers: list[str], indent: int | None
) -> None:
    kinds = {"sky": "sqlite", "papers": "filesystem"}
    tool = execute_code(servers, kinds)
    shown = {key: tool[key] for key in ("name", "description", "inputSchema")}
    own = "toolfold.memory" if "memory" in servers else "memory"

    assert count_tokens(json.dumps([shown], indent=indent)) <= 260
    assert f"Built in: {own} (" in shown["description"]
    assert "failures raise RuntimeError or are text" in shown["description"]
    assert ("sky (sqlite), papers (filesystem), " in shown["description"]) is ("sky" in servers)
