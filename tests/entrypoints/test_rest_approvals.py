"""Approving at the REST API: by the local user alone, what was shown, in the run's own world."""

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from rest_door import door
from support import MakeApp, Running, test_server

from toolfold.entrypoints.http.keys import Keys, LocalToken
from toolfold.entrypoints.mcp.server import make_server

pytestmark = pytest.mark.anyio

RULES = '[[policy]]\naction = "ask"\ntools = ["records.update", "records.put"]\n'
FIFTY = """
import records
for number in range(50):
    records.update(id=number, value="gone")
"fifty"
"""
BOTH = "import records\nrecords.update(id=1, value='')\nrecords.put(id=2, value='')\n'both'"


@pytest.fixture
def updates(tmp_path: Path, home: Path) -> Path:
    rules = home / "config" / "policy.toml"
    rules.parent.mkdir(parents=True)
    rules.write_text(RULES)
    return tmp_path / "updates.jsonl"


def done(updates: Path) -> list[int]:
    lines = updates.read_text().splitlines() if updates.exists() else []
    return [json.loads(line)["id"] for line in lines]


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


class Door:
    """The REST API of an app, for its user and for others."""

    def __init__(self, toolfold: Running, http: httpx2.AsyncClient) -> None:
        self.app = toolfold.app
        self.http = http
        self.user = bearer(LocalToken(self.app.config.directories).get())

    def key(self, name: str) -> dict[str, str]:
        return bearer(Keys.of(self.app.config).create(name, name, now=0.0)[1])

    async def run(self, code: str, headers: dict[str, str] | None = None) -> Any:
        return (await self.http.post("/execute", json={"code": code}, headers=headers)).json()

    async def pending(self, headers: dict[str, str] | None = None) -> list[Any]:
        answer = await self.http.get("/approvals", headers=headers)
        return list(answer.json()["approvals"])

    async def decide(
        self, run: str, what: str = "approve", *, headers: dict[str, str] | None = None, **body: Any
    ) -> httpx2.Response:
        headers = self.user if headers is None else headers
        return await self.http.post(f"/runs/{run}/{what}", json=body, headers=headers)


@pytest.fixture
def opened(running: MakeApp, updates: Path) -> Any:
    servers = {"records": test_server("records", updates, "60")}

    @asynccontextmanager
    async def open_door(**settings: Any) -> AsyncIterator[Door]:
        async with running(servers, **settings) as toolfold, door(toolfold.app) as http:
            yield Door(toolfold, http)

    return open_door


async def test_what_waits_is_listed_approved_and_done_once(opened: Any, updates: Path) -> None:
    async with opened() as rest:
        frozen = await rest.run(FIFTY)
        [waiting] = await rest.pending()
        answer = await rest.decide(frozen["run_id"], most=50)
        again = await rest.decide(frozen["run_id"])
        left = await rest.pending()

    assert frozen["error"]["kind"] == "approval"
    assert waiting["run"] == frozen["run_id"]
    assert waiting["tool"] == "records.update"
    assert waiting["arguments"] == '{"id": 0, "value": "gone"}'
    assert answer.json()["approved"] == "records.update"
    assert answer.json()["result"]["value"] == "fifty"
    assert again.status_code == 404
    assert left == []
    assert done(updates) == list(range(50))


async def test_rejected_nothing_is_done_and_whoever_asks_is_told(
    opened: Any, updates: Path
) -> None:
    async with opened() as rest:
        frozen = await rest.run(FIFTY)
        answer = await rest.decide(frozen["run_id"], "reject")
        told = await rest.run(f"import runs\nruns.get({frozen['run_id']!r})['text']")
        later = await rest.decide(frozen["run_id"])

    assert answer.json() == {"rejected": "records.update"}
    assert "The user rejected records.update" in told["value"]
    assert later.status_code == 404
    assert done(updates) == []


async def test_approved_for_good_it_is_not_asked_again(opened: Any, updates: Path) -> None:
    async with opened() as rest:
        frozen = await rest.run(FIFTY)
        await rest.decide(frozen["run_id"], always=True)
        again = await rest.run(FIFTY)

    assert again["value"] == "fifty"
    assert len(done(updates)) == 100


async def test_after_a_restart_exactly_what_is_left_is_done(opened: Any, updates: Path) -> None:
    async with opened() as rest:
        frozen = await rest.run(FIFTY)
        first = await rest.decide(frozen["run_id"], most=20)
    async with opened() as rest:
        [waiting] = await rest.pending()
        answer = await rest.decide(waiting["run"], most=100)

    assert first.json()["result"]["error"]["kind"] == "approval"
    assert waiting["arguments"] == '{"id": 20, "value": "gone"}'
    assert answer.json()["result"]["value"] == "fifty"
    assert done(updates) == list(range(50))


async def test_only_who_shows_the_local_token_decides(opened: Any, updates: Path) -> None:
    async with opened() as rest:
        key = rest.key("ci")
        frozen = await rest.run(FIFTY)
        refused = [
            await rest.decide(frozen["run_id"], what, headers=headers)
            for what in ("approve", "reject")
            for headers in ({}, key, bearer("wrong"))
        ]
        seen = await rest.pending(key)
        open_still = await rest.pending()

    assert {answer.status_code for answer in refused} <= {401, 403}
    assert seen == []
    assert len(open_still) == 1
    assert done(updates) == []


@pytest.mark.parametrize("given", ["6", "", "0" * 16, "' OR 1=1 --", "%"])
async def test_a_run_is_named_whole(opened: Any, updates: Path, given: str) -> None:
    async with opened() as rest:
        await rest.run(FIFTY)
        answer = await rest.decide(given)

    assert answer.status_code in {400, 404}
    assert done(updates) == []


async def test_a_second_click_does_not_approve_what_comes_next(opened: Any, updates: Path) -> None:
    async with opened() as rest:
        frozen = await rest.run(BOTH)
        [shown] = await rest.pending()
        await rest.decide(shown["run"], question=shown["question"])
        [following] = await rest.pending()
        clicks = [
            await rest.decide(shown["run"]),
            await rest.decide(following["run"], question=shown["question"]),
        ]

    assert shown["run"] == frozen["run_id"]
    assert following["tool"] == "records.put"
    assert [click.status_code for click in clicks] == [404, 404]
    assert done(updates) == [1]


@pytest.mark.parametrize("most", [0, -1, True, "5", 10**30, 1.5])
async def test_a_number_of_calls_that_is_none_decides_nothing(
    opened: Any, updates: Path, most: Any
) -> None:
    async with opened() as rest:
        frozen = await rest.run(FIFTY)
        answer = await rest.decide(frozen["run_id"], most=most)
        left = await rest.pending()

    assert answer.status_code == 400
    assert len(left) == 1
    assert done(updates) == []


async def test_a_whole_number_may_be_written_as_a_fraction(opened: Any, updates: Path) -> None:
    async with opened() as rest:
        frozen = await rest.run(FIFTY)
        await rest.decide(frozen["run_id"], most=2.0)

    assert done(updates) == [0, 1]


async def test_what_has_expired_or_was_forged_is_not_there(
    opened: Any, updates: Path, home: Path
) -> None:
    async with opened(limits__approval_s=0.3) as rest:
        frozen = await rest.run(FIFTY)
        await anyio.sleep(0.4)
        late = await rest.decide(frozen["run_id"])
    async with opened() as rest:
        frozen = await rest.run(FIFTY)
        with closing(sqlite3.connect(home / "data" / "approvals.db")) as connection, connection:
            connection.execute("UPDATE approvals SET tool = 'records.put'")
        forged = await rest.decide(frozen["run_id"])
        seen = await rest.pending()

    assert [late.status_code, forged.status_code] == [404, 404]
    assert seen == []
    assert done(updates) == []


async def test_the_run_of_a_key_goes_on_in_its_own_namespace(opened: Any, updates: Path) -> None:
    code = """
import records, memory
records.update(id=1, value='')
str(memory.list())
"""
    async with opened() as rest:
        key = rest.key("team")
        await rest.http.post("/memory/notes", json={"content": "of the user"})
        await rest.http.post("/memory/notes", json={"content": "of the team"}, headers=key)
        frozen = await rest.run(code, key)
        answer = await rest.decide(frozen["run_id"], always=True)
        same_key = await rest.run(code, key)
        user, other = await rest.run(code), await rest.run(code, rest.key("other"))

    text = answer.json()["result"]["text"]
    assert "of the team" in text
    assert "of the user" not in text
    assert same_key["success"]
    assert [each["error"]["kind"] for each in (user, other)] == ["approval", "approval"]
    assert done(updates) == [1, 1]


async def test_a_run_of_another_project_is_not_gone_on_with_here(
    opened: Any, updates: Path
) -> None:
    async with opened() as rest:
        frozen = await rest.run(FIFTY)
        approvals = rest.app.border.trust.approvals
        wanted = approvals.find(frozen["run_id"])
        elsewhere = replace(wanted, project="/elsewhere")
        approvals._tables.write(lambda tables: approvals._write(tables, elsewhere))
        answer = await rest.decide(frozen["run_id"])
        left = await rest.pending()

    assert answer.status_code == 400
    assert "/elsewhere" in answer.json()["error"]["message"]
    assert len(left) == 1
    assert done(updates) == []


async def test_a_run_that_waits_alive_goes_on_where_it_waits(opened: Any, updates: Path) -> None:
    async with opened() as rest:
        if not (await rest.app.tiers.examine())[0]:
            pytest.skip("There is no CPython tier here.")
        results: list[Any] = []

        async def run() -> None:
            results.append(await rest.run(f"import enum\n{FIFTY}"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            with anyio.fail_after(30):
                while not (waiting := await rest.pending()):
                    await anyio.sleep(0.1)
            answer = await rest.decide(waiting[0]["run"], most=50)

    assert answer.json() == {"approved": "records.update", "result": None}
    assert results[0]["value"] == "fifty"
    assert done(updates) == list(range(50))


async def test_who_approves_may_leave_and_the_run_goes_on(opened: Any, updates: Path) -> None:
    code = (
        "import records\nrecords.put(id=1, value='')\nrecords.slow_update(id=2, seconds=1)\n'end'"
    )
    async with opened(limits__answer_s=0.2) as rest:
        frozen = await rest.run(code)
        answer = await rest.decide(frozen["run_id"])
        told = await rest.run(f"import runs\nruns.get({frozen['run_id']!r})['state']")

    assert answer.json()["result"] is None
    assert told["value"] == "done"
    assert done(updates) == [1, 2]


async def test_what_is_denied_is_not_listed_for_those_to_whom_it_is(
    opened: Any, updates: Path, home: Path
) -> None:
    async with opened() as rest:
        key = rest.key("ci")
        [made] = Keys.of(rest.app.config).all()
        (home / "config" / "policy.toml").write_text(
            f'[[policy]]\naction = "deny"\ntools = "records.put"\n'
            f'[[keys.{made.id}]]\naction = "deny"\ntools = "records.update"\n'
        )
        search = (
            "import tools\nprint(tools.search('records update put', 20), tools.describe('records'))"
        )
        found = {}
        for name, headers in {"key": key, "user": {}}.items():
            listed = [
                await rest.http.get(f"/tools/list?{query}", headers=headers)
                for query in ("query=records+update+put", "category=records")
            ]
            found[name] = [[tool["name"] for tool in each.json()["tools"]] for each in listed]
            found[name].append((await rest.run(search, headers))["output"])

    assert all("records.put" not in each for lists in found.values() for each in lists)
    assert all("records.update" not in str(each) for each in found["key"])
    assert all("records.update" in str(each) for each in found["user"])


async def test_rules_decide_about_what_is_sent_not_about_placeholders(
    running: MakeApp, home: Path, tmp_path: Path
) -> None:
    (home / "config").mkdir(parents=True)
    (home / "config" / "policy.toml").write_text(
        '[[policy]]\naction = "deny"\ntools = "people.put"\nwhen = "row contains \'ottilie\'"\n'
    )
    received = tmp_path / "calls.jsonl"
    servers = {"people": test_server("people", received)}
    pinned = ["people.list_customers", "people.put"]
    async with (
        running(servers, privacy__mode="on", pinned_tools=pinned) as toolfold,
        door(toolfold.app) as http,
        Client(make_server(toolfold.app, client="me")) as client,
    ):
        listed = await http.post("/tools/people.list_customers/execute", json={})
        emails = [row["email"] for row in listed.json()["result"]]
        answers = [
            await http.post("/tools/people.put/execute", json={"arguments": {"row": email}})
            for email in emails
        ]
        results = [await client.call_tool("people__put", {"row": email}) for email in emails]

    assert emails[0].startswith("[EMAIL")
    assert [answer.status_code for answer in answers] == [403, 200, 200]
    assert [result.is_error for result in results] == [True, False, False]
    assert "ottilie" not in received.read_text()
