import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from support import MakeApp, test_server

from toolfold.execution.report import ToolTally

ERAS = ["2025", "2026"]


@pytest.fixture
def curious(tmp_path: Path) -> dict[str, Any]:
    return {"curious": test_server("curious", tmp_path / "log")}


@pytest.mark.parametrize("era", ERAS)
async def test_code_lists_and_reads_resources(era: str, tmp_path: Path, running: MakeApp) -> None:
    servers = {"Curious One": test_server("curious", tmp_path / "log", era)}
    async with running(servers) as toolfold:
        listed = await toolfold.run("import tools\ntools.resources('curious_one')")
        read = await toolfold.run(
            "import tools\n"
            "async def read(uri): return await tools.read(server='Curious One', uri=uri)\n"
            "tools.read('curious_one', 'memo://plain'), await read('memo://numbers?from=1#all'), "
            "await read('memo://said/a'), await read('memo://dot')"
        )

    assert listed.success, listed.text
    uris = [entry.get("uri", entry.get("uri_template")) for entry in listed.value]  # type: ignore[union-attr]
    assert uris == [
        "memo://plain", "memo://numbers?from=1#all", "memo://dot", "memo://huge",
        "memo://said/{word}{?times}",
    ]  # fmt: skip
    assert listed.value[0] == {  # type: ignore[index,call-overload]
        "server": "curious_one",
        "uri": "memo://plain",
        "name": "plain",
        "mime_type": None,
        "description": "",
    }
    *texts, image = read.value  # type: ignore[misc]
    assert texts == ["a memo", "[1, 2, 3]", ["memo://said/a", "memo://said/a"]]
    assert image["path"].startswith("/workspace/results/")  # type: ignore[index,call-overload]
    assert image["mime_type"] == "image/png"  # type: ignore[index,call-overload]
    assert read.calls == (ToolTally(tool="tools.read", completed=4),)


async def test_an_image_that_was_read_can_be_shown(
    curious: dict[str, Any], running: MakeApp
) -> None:
    async with running(curious) as toolfold:
        result = await toolfold.run("import tools\nshow(tools.read('curious', 'memo://dot'))")

    assert [image.mime_type for image in result.images] == ["image/png"]


async def test_what_cannot_be_read_is_named_with_what_may_have_been_meant(
    curious: dict[str, Any], running: MakeApp
) -> None:
    async with running(curious) as toolfold:
        await toolfold.run("import tools\ntools.resources()")
        misspelt = await toolfold.run("import tools\ntools.read('curious', 'memo://plan')")
        nowhere = await toolfold.run("import tools\ntools.read('curios', 'memo://plain')")
        misused = await toolfold.run("import tools\nuri = None\ntools.read('curious', uri)")
        huge = await toolfold.run("import tools\ntools.read('curious', 'memo://huge')")

    assert "There is no such memo. Did you mean 'memo://plain'?" in misspelt.text
    assert "There is no server 'curios'. Did you mean 'curious'?" in nowhere.text
    assert not misused.success
    assert "holds 6,000,000 characters; at most 5,000,000 are taken" in huge.text


async def test_the_servers_are_shown_with_their_resources(
    curious: dict[str, Any], tmp_path: Path, running: MakeApp
) -> None:
    async with running({**curious, "null": test_server("null")}) as toolfold:
        await toolfold.run("import tools\ntools.resources()")
        result = await toolfold.run("import tools\nprint(tools.servers())")

    assert result.output.splitlines() == [
        "curious: 8 tools, 5 resources (tools.resources('curious')); "
        f"started with {tmp_path / 'log'}",
        "null: 2 tools",
        "graph: built in, 17 functions",
        "memory: built in, 32 functions",
        "skills: built in, 4 functions",
        "workspace: built in, 6 functions",
    ]


async def test_a_list_without_end_is_cut(tmp_path: Path, running: MakeApp) -> None:
    servers = {"endless": test_server("curious", tmp_path / "log", "2026", "endless")}
    async with running(servers) as toolfold:
        result = await toolfold.run("import tools\nlen(tools.resources())")

    assert result.value == 1_001  # and one template


async def test_a_server_that_never_says_what_it_offers_can_be_called(
    tmp_path: Path, running: MakeApp
) -> None:
    servers = {"mute": test_server("curious", tmp_path / "log", "2026", "mute")}
    async with running(servers, connect_timeout_s=10) as toolfold:
        with anyio.fail_after(60):
            noted = await toolfold.run("import mute\nmute.note(text='a')")
            listed = await toolfold.run("import tools\ntools.resources()")
            read = await toolfold.run("import tools\ntools.read('mute', 'memo://plain')")

    assert noted.value == "1"
    assert listed.value == []
    assert read.value == "a memo"


async def test_a_damaged_file_is_as_good_as_none(
    curious: dict[str, Any], home: Path, running: MakeApp
) -> None:
    async with running(curious) as toolfold:
        await toolfold.run("import tools\ntools.resources()")
    [kept] = (home / "cache" / "offers").iterdir()
    json.loads(kept.read_text())
    assert kept.stat().st_mode & 0o077 == 0
    kept.write_text('{"prompts": [{"nam')
    async with running(curious) as toolfold:
        result = await toolfold.run("import tools\nlen(tools.resources())")

    assert result.value == 5


@pytest.mark.parametrize("era", ERAS)
async def test_a_list_that_changed_is_read_again(
    era: str, tmp_path: Path, running: MakeApp
) -> None:
    servers = {"growing": test_server("curious", tmp_path / "log", era, "growing")}
    async with running(servers) as toolfold:
        before = await toolfold.run("import tools\nlen(tools.resources())")
        await toolfold.run("import growing\ngrowing.note(text='a')")
        with anyio.fail_after(60):
            while len(toolfold.app.catalog.offered.resources()) < 5:
                await anyio.sleep(0.01)

    assert before.value == 5
