from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared.uri_template import UriTemplate
from support import MakeApp, entry, node_server, python, test_server, write_config

from toolfold.entrypoints.mcp.server import make_server

MODES = ["legacy", "2026-07-28"]


def command(config: Path, home: Path) -> StdioServerParameters:
    return StdioServerParameters(
        command=python(),
        args=["-m", "toolfold", "mcp", "--no-daemon", "--config", str(config)],
        env={"TOOLFOLD_HOME": str(home)},
    )


def curious(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    return {"Curious One": test_server("curious", tmp_path / "log", *arguments)}


@pytest.mark.parametrize("era", ["2025", "2026"])
@pytest.mark.parametrize("mode", MODES)
async def test_prompts_and_resources_pass_through_with_the_name_of_their_server(
    mode: str, era: str, tmp_path: Path, running: MakeApp
) -> None:
    async with running(curious(tmp_path, era)) as toolfold:
        async with Client(make_server(toolfold.app), mode=mode) as client:
            [prompt] = (await client.list_prompts()).prompts
            greeting = await client.get_prompt(prompt.name, {"who": "Ada"})
            resources = (await client.list_resources()).resources
            held = {
                each.uri: (await client.read_resource(each.uri)).contents for each in resources[:3]
            }

    assert (prompt.name, prompt.title) == ("curious_one__greet_people", "Curious One: Greet people")
    assert prompt.arguments is not None
    assert prompt.arguments[0].name == "who"
    assert greeting.messages[0].content == types.TextContent(text="Greet people: hello Ada")
    link = greeting.messages[1].content
    assert isinstance(link, types.ResourceLink)
    assert link.uri == "toolfold://curious_one/memo://plain"
    assert [(each.uri, each.title) for each in resources[:2]] == [
        ("toolfold://curious_one/memo://plain", "Curious One: plain"),
        ("toolfold://curious_one/memo://numbers?from=1#all", "Curious One: numbers?from=1#all"),
    ]
    assert [uri for uri in held if held[uri][0].uri != uri] == []
    numbers = held["toolfold://curious_one/memo://numbers?from=1#all"][0]
    assert isinstance(numbers, types.TextResourceContents)
    assert numbers.text == "[1, 2, 3]"


@pytest.mark.parametrize(
    "rule", ['upstreams = "Curious*"', 'upstreams = "curious_one"', 'tools = "curious_one.*"']
)
async def test_what_a_rule_denies_does_not_pass_through(
    rule: str, tmp_path: Path, home: Path, running: MakeApp
) -> None:
    (home / "config").mkdir(parents=True)
    (home / "config" / "policy.toml").write_text(f'[[policy]]\naction = "deny"\n{rule}\n')
    async with running(curious(tmp_path, "2026")) as toolfold:
        async with Client(make_server(toolfold.app)) as client:
            with pytest.raises(MCPError, match="a rule forbids it"):
                await client.get_prompt("curious_one__greet_people", {"who": "Ada"})
            with pytest.raises(MCPError, match="a rule forbids it"):
                await client.read_resource("toolfold://curious_one/memo://plain")


async def test_what_a_client_expands_from_a_template_reaches_the_server_as_its_own(
    tmp_path: Path, running: MakeApp
) -> None:
    async with running(curious(tmp_path)) as toolfold:
        async with Client(make_server(toolfold.app)) as client:
            [template] = (await client.list_resource_templates()).resource_templates
            values = {"word": "a/b c", "times": "2"}
            uri = UriTemplate.parse(template.uri_template).expand(values)
            [said, _] = (await client.read_resource(uri)).contents

    assert template.uri_template == "toolfold://curious_one/memo://said/{word}{?times}"
    assert isinstance(said, types.TextResourceContents)
    assert said.text == UriTemplate.parse("memo://said/{word}{?times}").expand(values)
    assert said.uri == uri


async def test_arguments_of_prompts_and_templates_are_completed_by_their_server(
    tmp_path: Path, running: MakeApp
) -> None:
    async with running({**curious(tmp_path), "null": test_server("null")}) as toolfold:
        async with Client(make_server(toolfold.app)) as client:
            await client.list_prompts()
            prompt = await client.complete(
                types.PromptReference(name="curious_one__greet_people"),
                {"name": "who", "value": "A"},
            )
            template = await client.complete(
                types.ResourceTemplateReference(
                    uri="toolfold://curious_one/memo://said/{word}{?times}"
                ),
                {"name": "word", "value": "B"},
            )
            nothing = await client.complete(
                types.ResourceTemplateReference(uri="toolfold://null/x"), {"name": "a", "value": ""}
            )

    assert prompt.completion.values == ["Ada", "Greet people", '"who"']
    assert template.completion.values == ["Bda", "memo://said/{word}{?times}", '"word"']
    assert nothing.completion.values == []


async def test_a_completion_is_bounded_like_any_other_answer(
    tmp_path: Path, running: MakeApp
) -> None:
    async with running(curious(tmp_path), limits__result_bytes=100) as toolfold:
        async with Client(make_server(toolfold.app)) as client:
            await client.list_prompts()
            with pytest.raises(MCPError, match="at most 100 are taken"):
                await client.complete(
                    types.PromptReference(name="curious_one__greet_people"),
                    {"name": "who", "value": "A" * 200},
                )


async def test_what_is_not_there_is_named_with_what_may_have_been_meant(
    tmp_path: Path, running: MakeApp
) -> None:
    async with running(curious(tmp_path)) as toolfold:
        async with Client(make_server(toolfold.app)) as client:
            with pytest.raises(
                MCPError, match="Did you mean 'curious_one__greet_people'"
            ) as prompt:
                await client.get_prompt("curious_one__greet_peple")
            with pytest.raises(MCPError, match="URIs start with toolfold://<server>/"):
                await client.read_resource("memo://plain")
            with pytest.raises(MCPError, match="Did you mean 'memo://plain'"):
                await client.read_resource("toolfold://curious_one/memo://plan")
            with pytest.raises(MCPError, match="at most 5,000,000 are taken"):
                await client.read_resource("toolfold://curious_one/memo://huge")

            with pytest.raises(MCPError) as far:
                await client.read_resource("memo://" + "x" * 100_000)

    assert prompt.value.code == types.INVALID_PARAMS
    assert len(str(far.value.error.model_dump_json())) < 2_000


async def test_a_server_that_does_not_work_costs_the_others_nothing(
    tmp_path: Path, running: MakeApp
) -> None:
    servers = {
        **curious(tmp_path),
        "exits": test_server("faulty", "exit"),
        "wrong": {"command": "no-such-command-anywhere"},
    }
    async with running(servers, connect_timeout_s=7) as toolfold:
        async with Client(make_server(toolfold.app)) as client:
            with anyio.fail_after(40):
                prompts = (await client.list_prompts()).prompts
                resources = (await client.list_resources()).resources

    assert [prompt.name for prompt in prompts] == ["curious_one__greet_people"]
    assert len(resources) == 4


@pytest.mark.parametrize("mode", MODES)
async def test_a_later_start_lists_all_without_starting_a_server(
    mode: str, tmp_path: Path, home: Path
) -> None:
    config = write_config(tmp_path / "mcp.json", curious(tmp_path))
    log = tmp_path / "log"
    async with Client(command(config, home), mode="legacy") as client:
        first = await client.list_prompts()
    assert log.read_text() == "start\n"

    async with Client(command(config, home), mode=mode) as client:
        prompts = await client.list_prompts()
        resources = await client.list_resources()
        templates = await client.list_resource_templates()
        await client.list_tools()
        started = log.read_text()
        await client.read_resource(resources.resources[0].uri)

    assert prompts.prompts == first.prompts
    assert len(resources.resources) == 4
    assert len(templates.resource_templates) == 1
    assert started == "start\n"
    assert log.read_text() == "start\nstart\n"


async def test_a_server_of_which_only_the_tools_are_known_is_not_started_for_a_list(
    tmp_path: Path, home: Path, running: MakeApp
) -> None:
    async with running(curious(tmp_path)) as toolfold:
        await toolfold.app.catalog.offered.learn()
    [kept] = (home / "cache" / "offers").iterdir()
    kept.unlink()
    async with running(curious(tmp_path)) as toolfold:
        async with Client(make_server(toolfold.app)) as client:
            before = (await client.list_prompts()).prompts
            started = (tmp_path / "log").read_text()
            await client.call_tool(
                "execute_code", {"code": "import curious_one\ncurious_one.note(text='a')"}
            )
            after = (await client.list_prompts()).prompts

    assert before == []
    assert started == "start\n"
    assert [prompt.name for prompt in after] == ["curious_one__greet_people"]


async def test_everything_is_declared_and_a_server_without_it_adds_nothing(
    running: MakeApp,
) -> None:
    async with running({"null": test_server("null")}) as toolfold:
        await toolfold.app.catalog.offered.learn()
        async with Client(make_server(toolfold.app)) as client:
            assert client.server_capabilities.prompts is not None
            assert client.server_capabilities.resources is not None
            assert (await client.list_prompts()).prompts == []
            assert (await client.list_resources()).resources == []
            assert (await client.list_resource_templates()).resource_templates == []


@pytest.mark.parametrize("mode", MODES)
async def test_prompts_and_resources_of_a_real_server_pass_through(
    mode: str, tmp_path: Path, home: Path
) -> None:
    config = write_config(
        tmp_path / "mcp.json", {"everything": entry(node_server("everything", "stdio"))}
    )
    async with Client(command(config, home), mode=mode) as client:
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        resources = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        simple = await client.get_prompt("everything__simple_prompt")
        weather = await client.get_prompt("everything__args_prompt", {"city": "Oslo"})
        document = await client.read_resource(resources[0].uri)
        uri = UriTemplate.parse(templates[0].uri_template).expand({"resourceId": "1"})
        dynamic = await client.read_resource(uri)

    assert prompts["everything__args_prompt"].title == "everything: Arguments Prompt"
    assert simple.messages[0].content.type == "text"
    assert "Oslo" in weather.messages[0].content.text  # type: ignore[union-attr]
    assert resources[0].uri.startswith("toolfold://everything/demo://resource/static/document/")
    assert document.contents[0].uri == resources[0].uri
    assert dynamic.contents[0].uri == uri


PLAIN = "toolfold://curious_one/memo://plain"
TOUCH = "curious_one.touch(uri='memo://plain')"


async def logged(tmp_path: Path, line: str) -> None:
    """Wait until the server has written a line."""
    with anyio.fail_after(60):
        while line not in (tmp_path / "log").read_text().splitlines():
            await anyio.sleep(0.02)


class Heard:
    """What a client of 2025 was told of resources."""

    def __init__(self) -> None:
        self._uris: list[str] = []
        self._more = anyio.Event()

    async def __call__(self, message: object) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            self._uris.append(str(message.params.uri))
            self._more.set()

    async def next(self) -> str:
        with anyio.fail_after(60):
            while not self._uris:
                self._more = anyio.Event()
                await self._more.wait()
        return self._uris.pop(0)


async def subscribe(client: Client, uri: str) -> None:
    request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
    await client.session.send_request(request, types.EmptyResult)


async def unsubscribe(client: Client, uri: str) -> None:
    request = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))
    await client.session.send_request(request, types.EmptyResult)


@pytest.mark.parametrize("era", ["2025", "2026"])
async def test_a_client_that_listens_is_told_of_the_resources_it_names(
    era: str, tmp_path: Path, running: MakeApp
) -> None:
    wanted = [PLAIN, "toolfold://nobody/memo://x", "memo://plain"]
    async with running(curious(tmp_path, era)) as toolfold:
        async with Client(make_server(toolfold.app), mode="2026-07-28") as client:
            async with client.listen(resource_subscriptions=wanted) as changes:
                assert changes.honored.resource_subscriptions == [PLAIN]
                await toolfold.run(TOUCH)
                with anyio.fail_after(60):
                    event = await anext(changes)
            await logged(tmp_path, "unwatch memo://plain")

    assert event == ResourceUpdated(uri=PLAIN)


@pytest.mark.parametrize("era", ["2025", "2026"])
async def test_an_older_client_is_told_of_the_resources_it_subscribed_to(
    era: str, tmp_path: Path, running: MakeApp
) -> None:
    heard, others = Heard(), Heard()
    async with running(curious(tmp_path, era)) as toolfold:
        server = make_server(toolfold.app)
        async with Client(server, mode="legacy", message_handler=heard) as client:
            assert client.server_capabilities.resources is not None
            assert client.server_capabilities.resources.subscribe
            await subscribe(client, PLAIN)
            await subscribe(client, PLAIN)
            await toolfold.run(TOUCH)
            assert await heard.next() == PLAIN
            with pytest.raises(MCPError, match="There is no server 'nobody'"):
                await subscribe(client, "toolfold://nobody/memo://x")
            await unsubscribe(client, PLAIN)
            await logged(tmp_path, "unwatch memo://plain")
        (tmp_path / "log").write_text("")
        async with Client(make_server(toolfold.app), mode="legacy", message_handler=others) as left:
            await subscribe(left, PLAIN)
        await logged(tmp_path, "unwatch memo://plain")


async def test_what_its_server_refuses_cannot_be_subscribed_to(
    tmp_path: Path, running: MakeApp
) -> None:
    servers = {**curious(tmp_path, "2025"), "null": test_server("null")}
    async with running(servers) as toolfold:
        async with Client(make_server(toolfold.app), mode="legacy") as client:
            with pytest.raises(MCPError, match="Nobody may watch this"):
                await subscribe(client, "toolfold://curious_one/memo://closed")
            with pytest.raises(MCPError, match="does not say when a resource changes"):
                await subscribe(client, "toolfold://null/memo://x")


async def test_what_may_not_be_read_cannot_be_subscribed_to(
    tmp_path: Path, home: Path, running: MakeApp
) -> None:
    (home / "config").mkdir(parents=True)
    rule = '[[policy]]\naction = "deny"\ntools = "curious_one.resources.read"\n'
    (home / "config" / "policy.toml").write_text(rule)
    async with running(curious(tmp_path, "2026")) as toolfold:
        async with Client(make_server(toolfold.app), mode="legacy") as client:
            with pytest.raises(MCPError, match="a rule forbids it"):
                await subscribe(client, PLAIN)

    assert "watch memo://plain" not in (tmp_path / "log").read_text()


async def test_subscriptions_are_bounded(tmp_path: Path, running: MakeApp) -> None:
    async with running(curious(tmp_path, "2025")) as toolfold:
        async with Client(make_server(toolfold.app), mode="legacy") as client:
            for number in range(100):
                await subscribe(client, f"{PLAIN}/{number}")
            with pytest.raises(MCPError, match="the most there may be"):
                await subscribe(client, PLAIN)
            await unsubscribe(client, f"{PLAIN}/7")
            await subscribe(client, PLAIN)


@pytest.mark.parametrize("era", ["2025", "2026"])
async def test_a_server_that_died_is_watched_again(
    era: str, tmp_path: Path, running: MakeApp
) -> None:
    heard = Heard()
    async with running(curious(tmp_path, era)) as toolfold:
        async with Client(
            make_server(toolfold.app), mode="legacy", message_handler=heard
        ) as client:
            await subscribe(client, PLAIN)
            (tmp_path / "log").write_text("")
            [upstream] = toolfold.app.shared.upstreams.upstreams
            upstream.restart()
            assert await heard.next() == PLAIN  # it may have changed meanwhile
            await logged(tmp_path, "watch memo://plain")
            await toolfold.run(TOUCH)
            assert await heard.next() == PLAIN
