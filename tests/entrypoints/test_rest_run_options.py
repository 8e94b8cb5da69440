"""The options of a run at the REST API are those of every door: dry run, background, asking."""

import json
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from rest_door import door, listening
from support import MakeApp, test_server

from toolfold.entrypoints.http.keys import Keys, LocalToken

pytestmark = pytest.mark.anyio

UPDATE = "import records\nrecords.update(id=1, value='')\n'done'"
EVENTS = {"accept": "text/event-stream"}
RULES = '[[policy]]\naction = "ask"\ntools = ["records.update"]\n'


@pytest.fixture
def updates(tmp_path: Path) -> Path:
    return tmp_path / "updates.jsonl"


@pytest.fixture
def servers(updates: Path) -> dict[str, Any]:
    return {"records": test_server("records", updates, "3")}


def events(text: str) -> list[tuple[str, Any]]:
    parts = [event.split("\n") for event in text.strip().split("\n\n")]
    return [
        (kind.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for kind, data in (part for part in parts if len(part) == 2)
    ]


async def test_a_dry_run_changes_nothing_and_lists_what_it_would_call(
    running: MakeApp, servers: dict[str, Any], updates: Path
) -> None:
    async with running(servers) as toolfold, door(toolfold.app) as http:
        answer = await http.post("/execute", json={"code": UPDATE, "dry_run": True})

    assert answer.status_code == 200
    assert "records.update" in answer.json()["text"]
    assert not updates.exists()


async def test_a_run_in_the_background_is_answered_at_once_and_comes_to_its_end(
    running: MakeApp, servers: dict[str, Any], updates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolfold.journal.journal._MOMENT_S", 0.3)  # longer than the request takes
    code = f"import time\ntime.sleep(0.5)\n{UPDATE}"
    async with running(servers) as toolfold, door(toolfold.app) as http:
        answer = (await http.post("/execute", json={"code": code, "background": True})).json()
        run_id = answer["run_id"]
        assert (await http.get(f"/runs/{run_id}")).json()["run"]["id"] == run_id
        with anyio.fail_after(30):
            while not (await http.get(f"/runs/{run_id}")).json()["run"]["is_ended"]:
                await anyio.sleep(0.05)

    assert answer == {"run_id": run_id, "is_running": True}
    assert len(updates.read_text().splitlines()) == 1


@pytest.mark.parametrize("action", ["accept", "decline"])
async def test_who_asks_to_be_asked_hears_the_question_and_answers_it(
    running: MakeApp, servers: dict[str, Any], updates: Path, home: Path, action: str
) -> None:
    (home / "config").mkdir(parents=True)
    (home / "config" / "policy.toml").write_text(RULES)
    async with running(servers) as toolfold:
        token = LocalToken(toolfold.app.config.directories).get()
        user = {"authorization": f"Bearer {token}"}
        async with (
            listening(toolfold.app) as url,
            httpx2.AsyncClient(base_url=url, timeout=60) as http,
            http.stream(
                "POST", "/execute", json={"code": UPDATE, "ask": True}, headers={**EVENTS, **user}
            ) as stream,
        ):
            heard = ""
            async for chunk in stream.aiter_text():
                heard += chunk
                for kind, question in events(heard[: heard.rfind("\n\n") + 2] or heard):
                    if kind == "question":
                        reply = {"action": action, "content": {"approve": True, "most": 1}}
                        await http.post(f"/questions/{question['id']}", json=reply, headers=user)
    kind, result = events(heard)[-1]

    assert kind == "result", heard
    assert result["success"] is (action == "accept")
    assert updates.exists() is (action == "accept")


async def test_a_key_cannot_be_asked_in_its_users_stead(
    running: MakeApp, servers: dict[str, Any], updates: Path
) -> None:
    async with running(servers) as toolfold, door(toolfold.app) as http:
        key = Keys.of(toolfold.app.config).create("agent", "agent", now=0.0)[1]
        theirs = {"authorization": f"Bearer {key}"}
        asked = await http.post(
            "/execute", json={"code": UPDATE, "ask": True}, headers={**EVENTS, **theirs}
        )
        replied = await http.post("/questions/0", json={"action": "accept"}, headers=theirs)
        plain = await http.post("/execute", json={"code": UPDATE, "ask": True})

    assert events(asked.text)[-1][1]["error"]["code"] == "denied"
    assert replied.status_code == 403
    assert plain.status_code == 400
    assert not updates.exists()
