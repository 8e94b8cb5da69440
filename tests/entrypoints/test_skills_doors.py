"""Skills through the doors: MCP, keys of other namespaces, the REST registry."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from rest_door import door
from support import MakeApp, MakeConfig, test_server

from toolfold.app import running_app
from toolfold.entrypoints.http.tenants import in_namespace
from toolfold.entrypoints.mcp.server import make_server
from toolfold.skills.library import open_library
from toolfold.tokens import count_tokens

SAVE = '''
import null, skills

def double_all(values: list[int]) -> list[int]:
    """Double every number, by way of a server."""
    return [2 * null.echo(value=[each])[0] for each in values]

print(double_all([1]))
print(skills.save("double_all", "double_all", "Double the numbers of a list"))
'''


@pytest.fixture(autouse=True)
def project(tmp_path: Path) -> None:
    (tmp_path / ".toolfold").mkdir()


async def reply(client: Client, code: str) -> str:
    result = await client.call_tool("execute_code", {"code": code})
    assert not result.is_error, result
    return "\n".join(block.text for block in result.content if block.type == "text")


async def test_what_one_session_saved_another_finds_by_its_description_and_runs_in_few_tokens(
    running: MakeApp,
) -> None:
    servers: dict[str, Any] = {"null": test_server("null")}
    async with running(servers) as first, Client(make_server(first.app)) as client:
        assert "from skills import double_all" in await reply(client, SAVE)
    async with running(servers) as second, Client(make_server(second.app)) as client:
        found = await reply(client, "import tools\ntools.search('double numbers in a list')")
        code = "from skills import double_all\ndouble_all([20, 1])"
        answer = await reply(client, code)

    assert found.startswith("skills.double_all(values: list[int]) -> list[int]: Double the numbers")
    assert answer == "[40, 2]"
    assert count_tokens(json.dumps({"code": code})) < 60


async def test_who_has_a_key_of_another_namespace_has_skills_of_that_namespace_alone(
    make_config: MakeConfig, home: Path, tmp_path: Path
) -> None:
    config = make_config({})
    tenant = in_namespace(config, "partner")
    save = "import skills\nskills.save('f', 'def f():\\n    \"Doc.\"\\n    return 1', 'Mine')"
    async with running_app(config) as app, running_app(tenant, app.shared) as theirs:
        assert (await app.runtime.run(save)).success
        seen = await theirs.runtime.run("from skills import f")
        refused = await theirs.runtime.run(save.replace("'Mine'", "'Theirs', scope='project'"))
        assert (await theirs.runtime.run(save.replace("Mine", "Theirs"))).success

    assert "There is no skill 'f'" in seen.text
    assert "scope is 'user' here" in refused.text
    assert open_library(config).find("f").description == "Mine"
    assert open_library(tenant).find("f").description == "Theirs"
    assert open_library(tenant).find("f").folder.is_relative_to(home / "data")


async def test_skills_are_searched_and_shown_over_rest(running: MakeApp) -> None:
    async with running({"null": test_server("null")}) as toolfold, door(toolfold.app) as http:
        assert (await toolfold.run(SAVE)).success
        found = await http.post(
            "/tools/skills.search/execute", json={"arguments": {"query": "double"}}
        )
        listed = await http.get("/tools/list", params={"category": "skills"})

    assert "skills.double_all(" in json.dumps(found.json())
    assert [tool["name"] for tool in listed.json()["tools"]] == [
        *("skills.delete", "skills.save", "skills.search", "skills.show")
    ]
