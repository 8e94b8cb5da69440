import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
import uvicorn
from mcp import Client, StdioServerParameters
from support import MakeApp, Running, entry, node_server, python, test_server, write_config

from toolfold.entrypoints.mcp.server import make_server

ERAS = ["2025", "2026"]
MODES = ["legacy", "2026-07-28"]
SIGN = "import curious\ncurious.note(text='before')\ncurious.sign(document='a will')"


class User:
    """Somebody who answers what a client asks, and remembers it."""

    def __init__(self, reply: types.ElicitResult | None) -> None:
        self.reply = reply
        self.asked: list[types.ElicitRequestParams] = []
        self.was_asked = anyio.Event()

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.asked.append(params)
        self.was_asked.set()
        if self.reply is None:
            await anyio.sleep_forever()
        assert self.reply is not None
        return self.reply


def ada() -> User:
    return User(types.ElicitResult(action="accept", content={"name": "Ada"}))


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


def curious(tmp_path: Path, era: str = "2026") -> dict[str, Any]:
    return {"curious": test_server("curious", tmp_path / "log", era)}


def log(tmp_path: Path) -> list[str]:
    return (tmp_path / "log").read_text().splitlines()


async def execute(client: Client, code: str) -> types.CallToolResult:
    return await client.call_tool("execute_code", {"code": code})


async def first_leg(client: Client, code: str) -> types.InputRequiredResult:
    """Call as a client that drives the rounds itself, and return the questions."""
    answer = await client.session.call_tool(
        "execute_code", {"code": code}, allow_input_required=True
    )
    assert isinstance(answer, types.InputRequiredResult)
    return answer


async def next_leg(
    client: Client, code: str, state: str | None, replies: dict[str, types.InputResponse]
) -> types.CallToolResult:
    answer = await client.session.call_tool(
        "execute_code", {"code": code}, input_responses=replies, request_state=state
    )
    assert isinstance(answer, types.CallToolResult)
    return answer


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("mode", MODES)
async def test_a_question_reaches_the_user_and_the_answer_the_server(
    mode: str, era: str, tmp_path: Path, home: Path
) -> None:
    config = write_config(tmp_path / "mcp.json", curious(tmp_path, era))
    toolfold = StdioServerParameters(
        command=python(),
        args=["-m", "toolfold", "mcp", "--no-daemon", "--config", str(config)],
        env={"TOOLFOLD_HOME": str(home)},
    )
    user = ada()
    async with Client(toolfold, mode=mode, elicitation_callback=user) as client:
        result = await execute(client, SIGN)

    assert json.loads(text_of(result)) == {"action": "accept", "content": {"name": "Ada"}}
    [question] = user.asked
    assert isinstance(question, types.ElicitRequestFormParams)
    assert question.message == "curious: Who signs a will?"
    assert question.requested_schema["required"] == ["name"]
    assert log(tmp_path) == ["start", "note before", "sign a will accept"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("mode", MODES)
async def test_no_and_never_mind_are_answers_too(
    mode: str, era: str, tmp_path: Path, running: MakeApp
) -> None:
    user = User(types.ElicitResult(action="decline"))
    async with running(curious(tmp_path, era)) as toolfold:
        server = make_server(toolfold.app)
        async with Client(server, mode=mode, elicitation_callback=user) as client:
            declined = await execute(client, SIGN)
            user.reply = types.ElicitResult(action="cancel")
            cancelled = await execute(client, SIGN)

    assert json.loads(text_of(declined)) == {"action": "decline", "content": None}
    assert json.loads(text_of(cancelled)) == {"action": "cancel", "content": None}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("mode", MODES)
async def test_a_page_to_open_reaches_the_user(
    mode: str, era: str, tmp_path: Path, running: MakeApp
) -> None:
    user = User(types.ElicitResult(action="accept"))
    async with running(curious(tmp_path, era)) as toolfold:
        server = make_server(toolfold.app)
        async with Client(server, mode=mode, elicitation_callback=user) as client:
            result = await execute(client, "import curious\ncurious.pay()['action']")

    assert text_of(result) == "accept"
    [question] = user.asked
    assert isinstance(question, types.ElicitRequestURLParams)
    assert (question.message, question.url) == ("curious: Pay there.", "https://pay.example.org/7")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_cannot_ask_makes_the_call_fail_with_the_question(
    mode: str, era: str, tmp_path: Path, running: MakeApp
) -> None:
    code = (
        "import curious\ntry:\n    curious.sign(document='a will')\n"
        "except RuntimeError as error:\n    print('caught:', error)\ncurious.note(text='after')"
    )
    async with running(curious(tmp_path, era)) as toolfold:
        async with Client(make_server(toolfold.app), mode=mode) as client:
            result = await execute(client, code)
        without_client = await toolfold.run(code)

    expected = (
        "caught: curious asks the user for input: 'Who signs a will?', and this client cannot put "
        "questions to its user."
    )
    assert expected in text_of(result)
    assert expected in without_client.text
    assert log(tmp_path) == ["start", "note after", "note after"]


@pytest.mark.parametrize("mode", MODES)
async def test_calls_that_ask_at_once_each_get_their_own_answer(
    mode: str, tmp_path: Path, running: MakeApp
) -> None:
    async def reply(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"name": params.message[-2]})

    names = [f"{first}{second}" for first in "ab" for second in "cd"]
    servers = {name: test_server("curious", tmp_path / "log") for name in names}
    code = f"import asyncio, {', '.join(names)}\nanswers = await asyncio.gather(\n"
    code += "".join(f"    {name}.sign(document='{name}'),\n" for name in names)
    code += ")\n''.join(answer['content']['name'] for answer in answers)"
    async with running(servers) as toolfold:
        server = make_server(toolfold.app)
        async with Client(server, mode=mode, elicitation_callback=reply) as client:
            result = await execute(client, code)

    assert text_of(result) == "".join(name[-1] for name in names)


MEET = "import curious\ncurious.meet(me='{me}', other='{other}', asks={asks})"


@pytest.mark.parametrize("mode", MODES)
async def test_a_question_never_goes_to_the_user_of_another_client(
    mode: str, tmp_path: Path, running: MakeApp
) -> None:
    first, second = ada(), User(types.ElicitResult(action="accept", content={"name": "Eve"}))
    results: dict[str, types.CallToolResult] = {}

    async def meet(client: Client, me: str, other: str, *, asks: bool) -> None:
        results[me] = await execute(client, MEET.format(me=me, other=other, asks=asks))

    async with (
        running(curious(tmp_path, "2025")) as toolfold,
        Client(make_server(toolfold.app), mode=mode, elicitation_callback=first) as one,
        Client(make_server(toolfold.app), mode=mode, elicitation_callback=second) as other,
    ):
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(meet, one, "a", "b", asks=True))
                tasks.start_soon(partial(meet, other, "b", "a", asks=False))

    assert second.asked == []
    assert "Eve" not in text_of(results["a"])
    assert "Several calls of different users are under way" in text_of(results["a"])
    assert "met" in text_of(results["b"])


async def test_two_calls_of_one_client_have_one_user(tmp_path: Path, running: MakeApp) -> None:
    user = ada()
    code = (
        "import asyncio, curious\nawait asyncio.gather(\n"
        "    curious.meet(me='a', other='b', asks=True),\n"
        "    curious.meet(me='b', other='a', asks=False),\n)"
    )
    async with running(curious(tmp_path, "2025")) as toolfold:
        async with Client(make_server(toolfold.app), elicitation_callback=user) as client:
            result = await execute(client, code)

    assert "Ada" in text_of(result)


@pytest.mark.parametrize("mode", MODES)
async def test_a_pinned_tool_asks_in_the_same_way(
    mode: str, tmp_path: Path, running: MakeApp
) -> None:
    user = ada()
    toml = 'pinned_tools = ["curious.sign"]'
    async with running(curious(tmp_path), toml=toml) as toolfold:
        server = make_server(toolfold.app)
        async with Client(server, mode=mode, elicitation_callback=user) as client:
            result = await client.call_tool("curious__sign", {"document": "a will"})
        async with Client(server, mode=mode) as client:
            refused = await client.call_tool("curious__sign", {"document": "a will"})

    assert json.loads(text_of(result))["content"] == {"name": "Ada"}
    assert refused.is_error
    assert "this client cannot put questions to its user" in text_of(refused)


@pytest.mark.parametrize("era", ERAS)
async def test_a_question_that_nobody_answers_ends_the_run(
    era: str, tmp_path: Path, running: MakeApp
) -> None:
    user = User(None)
    async with running(curious(tmp_path, era), limits__ask_s=0.3) as toolfold:
        server = make_server(toolfold.app)
        async with Client(server, mode="legacy", elicitation_callback=user) as client:
            ended = await execute(client, SIGN + "\ncurious.note(text='after')")

    assert ended.is_error
    told = "No answer within 0.3 s to the question of curious: 'Who signs a will?'"
    assert told in text_of(ended)
    assert "Calls completed before it stopped: curious.note 1." in text_of(ended)
    assert log(tmp_path) == ["start", "note before"]


async def test_an_answer_that_comes_too_late_is_told_what_became_of_the_run(
    tmp_path: Path, running: MakeApp
) -> None:
    async with running(curious(tmp_path), limits__ask_s=0.3) as toolfold:
        async with Client(
            make_server(toolfold.app), mode="2026-07-28", elicitation_callback=ada()
        ) as client:
            questions = await first_leg(client, SIGN)
            await _until_idle(toolfold)
            replies = {"question_1": types.ElicitResult(action="accept", content={"name": "Ada"})}
            late = await next_leg(client, SIGN, questions.request_state, replies)
            again = await next_leg(client, SIGN, questions.request_state, replies)

    assert late.is_error
    assert "No answer within 0.3 s to the question of curious" in text_of(late)
    assert "Calls completed before it stopped: curious.note 1." in text_of(late)
    assert again.is_error
    assert "No run waits for this answer." in text_of(again)
    assert log(tmp_path) == ["start", "note before"]


async def _until_idle(toolfold: Running) -> None:
    """Wait until every run has left its worker."""
    with anyio.fail_after(60):
        places = toolfold.app.runtime._tiers._monty._places  # type: ignore[attr-defined]
        while places.taken:
            await anyio.sleep(0.01)


async def test_a_handle_is_good_once_and_for_the_same_call_only(
    tmp_path: Path, running: MakeApp
) -> None:
    async with running(curious(tmp_path)) as toolfold:
        async with Client(
            make_server(toolfold.app), mode="2026-07-28", elicitation_callback=ada()
        ) as client:
            questions = await first_leg(client, SIGN)
            assert questions.input_requests is not None
            [key] = questions.input_requests
            replies = {key: types.ElicitResult(action="accept", content={"name": "Ada"})}
            state = questions.request_state
            guessed = await next_leg(client, SIGN, "guessed", replies)
            other = await next_leg(client, SIGN + "\n1", state, replies)
            right = await next_leg(client, SIGN, state, replies)
            again = await next_leg(client, SIGN, state, replies)

    for refused in (guessed, other, again):
        assert refused.is_error
        assert "No run waits for this answer." in text_of(refused)
    assert json.loads(text_of(right))["content"] == {"name": "Ada"}
    assert log(tmp_path) == ["start", "note before", "sign a will accept"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_question_reaches_the_user_over_http(
    mode: str, tmp_path: Path, running: MakeApp
) -> None:
    user = ada()
    async with running(curious(tmp_path)) as toolfold:
        async with _over_http(make_server(toolfold.app)) as url:
            async with Client(url, mode=mode, elicitation_callback=user) as client:
                result = await execute(client, SIGN)

    assert json.loads(text_of(result))["content"] == {"name": "Ada"}
    assert len(user.asked) == 1


@asynccontextmanager
async def _over_http(server: Any) -> AsyncIterator[str]:
    listener = socket.create_server(("127.0.0.1", 0))
    http = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: http.serve(sockets=[listener]))
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        http.should_exit = True


async def test_a_run_belongs_to_the_client_that_began_it(tmp_path: Path, running: MakeApp) -> None:
    def named(name: str) -> types.Implementation:
        return types.Implementation(name=name, version="1")

    replies = {"question_1": types.ElicitResult(action="accept", content={"name": "Eve"})}
    async with running(curious(tmp_path)) as toolfold:
        server = make_server(toolfold.app)
        transport = _OneServer(server)
        async with (
            transport.client(named("one")) as one,
            transport.client(named("two")) as two,
        ):
            questions = await first_leg(one, SIGN)
            stolen = await next_leg(two, SIGN, questions.request_state, replies)
            right = await next_leg(one, SIGN, questions.request_state, replies)

    assert "No run waits for this answer." in text_of(stolen)
    assert not right.is_error


class _OneServer:
    """Clients of one server that share its state, as over HTTP."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._lifespan = server.lifespan
        self._state: Any = None

    @asynccontextmanager
    async def client(self, info: types.Implementation) -> AsyncIterator[Client]:
        @asynccontextmanager
        async def shared(server: Any) -> AsyncIterator[Any]:
            if self._state is None:
                async with self._lifespan(server) as self._state:
                    yield self._state
            else:
                yield self._state

        self._server.lifespan = shared
        async with Client(
            self._server, mode="2026-07-28", client_info=info, elicitation_callback=ada()
        ) as client:
            yield client


async def test_a_question_without_an_answer_is_asked_again(
    tmp_path: Path, running: MakeApp
) -> None:
    async with running(curious(tmp_path)) as toolfold:
        async with Client(
            make_server(toolfold.app), mode="2026-07-28", elicitation_callback=ada()
        ) as client:
            questions = await first_leg(client, SIGN)
            second = await client.session.call_tool(
                "execute_code",
                {"code": SIGN},
                request_state=questions.request_state,
                allow_input_required=True,
            )
            assert isinstance(second, types.InputRequiredResult)
            replies = {"question_1": types.ElicitResult(action="accept", content={"name": "Ada"})}
            end = await next_leg(client, SIGN, second.request_state, replies)

    assert second.input_requests == questions.input_requests
    assert second.request_state != questions.request_state
    assert not end.is_error
    assert log(tmp_path) == ["start", "note before", "sign a will accept"]


@pytest.mark.soak
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("mode", MODES)
async def test_time_in_which_a_person_thinks_counts_for_no_clock_of_the_run(
    mode: str, era: str, tmp_path: Path, running: MakeApp
) -> None:
    async def think(context: Any, params: Any) -> types.ElicitResult:
        await anyio.sleep(5)
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    servers = curious(tmp_path, era)
    servers["curious"]["timeout_s"] = 3
    async with running(servers, limits__wall_time_s=4) as toolfold:
        await toolfold.app.catalog.learn()
        server = make_server(toolfold.app)
        async with Client(server, mode=mode, elicitation_callback=think) as client:
            result = await execute(client, SIGN)
            slow = await execute(client, "import time\ntime.sleep(8)")

    assert not result.is_error, text_of(result)
    assert "longer than 4 s of wall time" in text_of(slow)


async def test_a_run_that_waits_for_its_user_leaves_workers_to_others(
    tmp_path: Path, running: MakeApp
) -> None:
    async with running(curious(tmp_path), workers=4) as toolfold:
        async with Client(
            make_server(toolfold.app), mode="2026-07-28", elicitation_callback=ada()
        ) as client:
            code = "import curious\ncurious.pay()"
            await first_leg(client, code)
            await first_leg(client, code)
            third = await client.session.call_tool(
                "execute_code", {"code": code}, allow_input_required=True
            )
            other = await execute(client, "import curious\ncurious.note(text='b')")

    assert isinstance(third, types.CallToolResult)
    assert "2 other runs wait for answers already" in text_of(third)
    assert text_of(other) == "1"


async def test_a_client_that_leaves_takes_its_waiting_run_with_it(
    tmp_path: Path, running: MakeApp
) -> None:
    async with running(curious(tmp_path)) as toolfold:
        async with Client(
            make_server(toolfold.app), mode="2026-07-28", elicitation_callback=ada()
        ) as client:
            await first_leg(client, SIGN + "\ncurious.note(text='after')")
        await _until_idle(toolfold)

    assert log(tmp_path) == ["start", "note before"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("mode", MODES)
async def test_a_cancelled_request_withdraws_its_question(
    mode: str, era: str, tmp_path: Path, running: MakeApp
) -> None:
    user = User(None)
    async with running(curious(tmp_path, era)) as toolfold:
        server = make_server(toolfold.app)
        async with Client(server, mode=mode, elicitation_callback=user) as client:
            with anyio.fail_after(30):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(execute, client, SIGN)
                    await user.was_asked.wait()
                    tasks.cancel_scope.cancel()
                user.reply = types.ElicitResult(action="accept", content={"name": "Ada"})
                after = await execute(client, "import curious\ncurious.note(text='after')")

    assert text_of(after) == "2"
    assert "sign a will accept" not in log(tmp_path)


async def test_only_questions_to_the_user_are_passed_on(tmp_path: Path, running: MakeApp) -> None:
    user = ada()
    async with running(curious(tmp_path)) as toolfold:
        async with Client(make_server(toolfold.app), elicitation_callback=user) as client:
            roots = await execute(client, "import curious\ncurious.sample()")
            endless = await execute(client, "import curious\ncurious.insist()")
            large = await execute(client, "import curious\ncurious.fill()")

    assert "curious asks for roots/list, which is not passed on" in text_of(roots)
    assert "curious asked for input 10 times in a row" in text_of(endless)
    assert "a form that is too large" in text_of(large)
    assert len(user.asked) == 10


@pytest.mark.parametrize("mode", MODES)
async def test_an_answer_that_is_too_large_never_reaches_the_server(
    mode: str, tmp_path: Path, running: MakeApp
) -> None:
    user = User(types.ElicitResult(action="accept", content={"name": "x" * 100_000}))
    async with running(curious(tmp_path)) as toolfold:
        server = make_server(toolfold.app)
        async with Client(server, mode=mode, elicitation_callback=user) as client:
            result = await execute(client, SIGN)

    assert result.is_error
    assert "the answer was longer than 64,000 characters" in text_of(result)
    assert log(tmp_path) == ["start", "note before"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_real_server_asks_by_form_and_by_page(mode: str, running: MakeApp) -> None:
    user = User(types.ElicitResult(action="accept", content={"name": "Ada", "check": True}))
    async with running({"everything": entry(node_server("everything", "stdio"))}) as toolfold:
        server = make_server(toolfold.app)
        async with Client(server, mode=mode, elicitation_callback=user) as client:
            form = await execute(
                client, "import everything\nprint(everything.trigger_elicitation_request())"
            )
            user.reply = types.ElicitResult(action="accept")
            page = await execute(
                client,
                "import everything\n"
                "print(everything.trigger_url_elicitation(url='https://example.org/x'))",
            )
            first = await execute(
                client,
                "import everything\nprint(everything.trigger_url_elicitation("
                "url='https://example.org/y', errorPath=True))",
            )

    assert "Ada" in text_of(form), text_of(form)
    assert "User completed the URL elicitation flow" in text_of(page)
    assert "User completed the URL elicitation flow" in text_of(first)
    pages = [each.url for each in user.asked[1:] if isinstance(each, types.ElicitRequestURLParams)]
    assert pages == [
        "https://example.org/x", "https://modelcontextprotocol.io", "https://example.org/y",
    ]  # fmt: skip
