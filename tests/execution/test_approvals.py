"""Calls that the user is asked about: one question, bound to run, tool and arguments."""

import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from support import MakeApp, Running, test_server

from toolfold.catalog.questions import Ask, Question, Reply
from toolfold.errors import NotFound, QuestionExpired
from toolfold.execution.approvals import Approval, Approvals
from toolfold.execution.runtime import SessionWish

pytestmark = pytest.mark.anyio

FIFTY = """
import records
for number in range(50):
    records.update(id=number, value="gone")
"done"
"""
RULES = '[[policy]]\naction = "ask"\ntools = "records.update"\n'


@pytest.fixture
def updates(tmp_path: Path) -> Path:
    return tmp_path / "updates.jsonl"


@pytest.fixture
def rules(home: Path) -> Callable[[str], None]:
    def write(text: str) -> None:
        path = home / "config" / "policy.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    write(RULES)
    return write


@pytest.fixture
def servers(updates: Path) -> dict[str, Any]:
    return {"records": test_server("records", updates, "60")}


@pytest.fixture
async def toolfold(
    running: MakeApp, servers: dict[str, Any], rules: object
) -> AsyncIterator[Running]:
    async with running(servers, sandbox="monty") as opened:
        yield opened


def approvals(toolfold: Running) -> Approvals:
    return toolfold.app.runtime._trust.approvals


def decide(toolfold: Running, run_id: str, state: Any = "approved", most: int = 100) -> Approval:
    kept = approvals(toolfold)
    return kept.decide(kept.find(run_id).id, state, most=most, by="a test")


def done(updates: Path) -> list[int]:
    if not updates.exists():
        return []
    return [json.loads(line)["id"] for line in updates.read_text().splitlines()]


class User:
    """One who can be asked through the client."""

    def __init__(self, reply: Reply | Exception, *, after_s: float = 0) -> None:
        self.questions: list[Question] = []
        self._reply = reply
        self._after_s = after_s

    @property
    def ask(self) -> Ask:
        return Ask(user=self, put=self._put)

    async def _put(self, question: Question) -> Reply:
        self.questions.append(question)
        await anyio.sleep(self._after_s)
        if isinstance(self._reply, Exception):
            raise self._reply
        return self._reply


YES = Reply(action="accept", content={"approve": True, "most": 100})


async def test_fifty_calls_are_one_question_and_made_when_approved(
    toolfold: Running, updates: Path
) -> None:
    user = User(YES)
    result = await toolfold.run(FIFTY, ask=user.ask)

    assert result.success, result.text
    assert len(user.questions) == 1
    assert "records.update: 1 call so far" in user.questions[0].message
    assert '{"id": 0, "value": "gone"}' in user.questions[0].message
    assert done(updates) == list(range(50))


@pytest.mark.parametrize(
    "reply",
    [Reply(action="decline"), Reply(action="accept", content={"approve": False})],
)
async def test_what_the_user_rejects_is_not_done_and_the_model_is_told(
    toolfold: Running, updates: Path, reply: Reply
) -> None:
    user = User(reply)
    result = await toolfold.run(FIFTY, ask=user.ask)

    assert not result.success
    assert "The user rejected records.update" in result.text
    assert len(user.questions) == 1
    assert done(updates) == []


async def test_calls_made_together_are_known_together(toolfold: Running, updates: Path) -> None:
    code = """
import asyncio, records
await asyncio.gather(*[records.update(id=n, value="") for n in range(20)])
"done"
"""
    user = User(YES)
    result = await toolfold.run(code, ask=user.ask)

    assert result.success, result.text
    assert "records.update: 20 calls so far" in user.questions[0].message
    assert len(user.questions) == 1
    assert sorted(done(updates)) == list(range(20))


async def test_without_a_client_that_asks_the_run_is_frozen_and_survives_a_restart(
    running: MakeApp, servers: dict[str, Any], rules: object, updates: Path
) -> None:
    async with running(servers) as toolfold:
        code = f"import records\nrecords.put(id=99, value='')\n{FIFTY}"
        frozen = await toolfold.run(code, session=SessionWish("mine"))
        assert frozen.error
        assert frozen.error.kind == "approval"
        assert f"toolfold approve {frozen.run_id}" in frozen.text
        assert "Failed" not in frozen.text
        assert "as they were before" not in frozen.text
        assert done(updates) == [99]
        decide(toolfold, frozen.run_id)
    async with running(servers) as toolfold:
        result = await toolfold.app.runtime.resume(frozen.run_id)

    assert result.text.startswith("done"), result.text
    assert done(updates) == [99, *range(50)]


@pytest.mark.parametrize(
    "trouble", [QuestionExpired("too late"), Reply(action="cancel")], ids=["late", "cancel"]
)
async def test_a_user_who_does_not_answer_in_time_can_do_so_later(
    toolfold: Running, updates: Path, trouble: Any
) -> None:
    frozen = await toolfold.run(FIFTY, ask=User(trouble).ask)
    assert frozen.error
    assert frozen.error.kind == "approval"
    assert done(updates) == []
    decide(toolfold, frozen.run_id)

    await toolfold.app.runtime.resume(frozen.run_id)
    assert done(updates) == list(range(50))


async def test_rejected_later_nothing_is_done(toolfold: Running, updates: Path) -> None:
    frozen = await toolfold.run(FIFTY)
    decide(toolfold, frozen.run_id, "rejected")

    result = await toolfold.app.runtime.resume(frozen.run_id)
    assert "The user rejected" in result.text
    assert done(updates) == []


async def test_an_approval_covers_so_many_calls_and_no_more(
    toolfold: Running, updates: Path
) -> None:
    frozen = await toolfold.run(FIFTY)
    decide(toolfold, frozen.run_id, most=7)

    again = await toolfold.app.runtime.resume(frozen.run_id)
    assert again.error
    assert again.error.kind == "approval"
    assert done(updates) == list(range(7))
    decide(toolfold, again.run_id, most=43)
    result = await toolfold.app.runtime.resume(again.run_id)
    assert result.success, result.text
    assert done(updates) == list(range(50))


async def test_resumed_without_approval_it_is_frozen_again(
    toolfold: Running, updates: Path
) -> None:
    frozen = await toolfold.run(FIFTY)
    again = await toolfold.app.runtime.resume(frozen.run_id)

    assert again.error
    assert again.error.kind == "approval"
    assert done(updates) == []


async def test_an_approval_of_one_run_is_none_of_another(toolfold: Running, updates: Path) -> None:
    one, other = await toolfold.run(FIFTY), await toolfold.run(FIFTY)
    decide(toolfold, one.run_id)

    again = await toolfold.app.runtime.resume(other.run_id)
    assert again.error
    assert again.error.kind == "approval"
    assert done(updates) == []


async def test_an_approval_of_one_tool_is_none_of_another(
    toolfold: Running, updates: Path, rules: Callable[[str], None]
) -> None:
    rules('[[policy]]\naction = "ask"\ntools = ["records.update", "records.put"]\n')
    code = "import records\nrecords.update(id=1, value='')\nrecords.put(id=2, value='')"
    frozen = await toolfold.run(code)
    decide(toolfold, frozen.run_id)

    again = await toolfold.app.runtime.resume(frozen.run_id)
    assert again.error
    assert "records.put" in again.text
    assert done(updates) == [1]


async def test_it_is_decided_once(toolfold: Running) -> None:
    frozen = await toolfold.run(FIFTY)
    decided = decide(toolfold, frozen.run_id)

    with pytest.raises(NotFound, match="decided already"):
        approvals(toolfold).decide(decided.id, "approved", most=1000, by="again")
    with pytest.raises(NotFound, match="waits for approval"):
        approvals(toolfold).find(frozen.run_id)


async def test_an_expired_question_cannot_be_approved(
    running: MakeApp, servers: dict[str, Any], rules: object, updates: Path
) -> None:
    async with running(servers, limits__approval_s=0.2) as toolfold:
        frozen = await toolfold.run(FIFTY)
        question = approvals(toolfold).find(frozen.run_id)
        await anyio.sleep(0.3)
        with pytest.raises(NotFound, match="has expired"):
            approvals(toolfold).decide(question.id, "approved", most=5, by="late")


async def test_an_approval_that_has_expired_is_not_used(
    running: MakeApp, servers: dict[str, Any], rules: object, updates: Path
) -> None:
    async with running(servers, limits__approval_s=0.3) as toolfold:
        frozen = await toolfold.run(FIFTY)
        decide(toolfold, frozen.run_id)
        await anyio.sleep(0.4)
        again = await toolfold.app.runtime.resume(frozen.run_id)

    assert again.error
    assert again.error.kind == "approval"
    assert done(updates) == []


def edit(home: Path, statement: str) -> None:
    with closing(sqlite3.connect(home / "data" / "approvals.db")) as connection, connection:
        connection.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE approvals SET state = 'approved', most = 100",
        "UPDATE approvals SET state = 'approved', most = 100, seal = 'x'",
        "UPDATE approvals SET arguments_sha256 = 'x'",
        "UPDATE approvals SET expires_at = expires_at + 100000",
        "UPDATE approvals SET run = 'x'",
    ],
)
async def test_a_forged_approval_is_none(
    toolfold: Running, updates: Path, home: Path, statement: str
) -> None:
    frozen = await toolfold.run(FIFTY)
    edit(home, statement)

    again = await toolfold.app.runtime.resume(frozen.run_id)
    assert again.error
    assert again.error.kind == "approval"
    assert done(updates) == []


async def test_raising_the_count_of_an_approval_is_no_use(
    toolfold: Running, updates: Path, home: Path
) -> None:
    frozen = await toolfold.run(FIFTY)
    decide(toolfold, frozen.run_id, most=3)
    edit(home, "UPDATE approvals SET most = 50")

    again = await toolfold.app.runtime.resume(frozen.run_id)
    assert again.error
    assert done(updates) == []


@pytest.mark.parametrize(
    "code",
    [
        "import runs\nruns.approve('{run}')",
        "import runs\nruns.resume('{run}', approve=True)",
        "import records\nrecords.update(id=1, value='', approved=True)",
        "open('/workspace/approvals.db', 'w').write('x')\nimport runs\nruns.resume('{run}')",
    ],
)
async def test_guest_code_cannot_approve(toolfold: Running, updates: Path, code: str) -> None:
    frozen = await toolfold.run(FIFTY)
    await toolfold.run(code.replace("{run}", frozen.run_id))

    assert approvals(toolfold).find(frozen.run_id).state == "pending"
    assert done(updates) == []


async def test_allowed_for_good_it_is_not_asked_again(toolfold: Running, updates: Path) -> None:
    approvals(toolfold).allow_always(toolfold.app.config.namespace, "records.update")
    assert (await toolfold.run(FIFTY)).success
    approvals(toolfold).ask_again(toolfold.app.config.namespace, "records.update")
    assert not (await toolfold.run(FIFTY)).success
    assert len(done(updates)) == 50


async def test_a_rule_that_denies_is_stronger_than_always(
    toolfold: Running, updates: Path, rules: Callable[[str], None]
) -> None:
    rules('[[policy]]\naction = "deny"\ntools = "records.update"\n')
    approvals(toolfold).allow_always(toolfold.app.config.namespace, "records.update")
    result = await toolfold.run(FIFTY)

    assert "a rule forbids it" in result.text
    assert done(updates) == []


async def test_conditions_and_counts(
    toolfold: Running, updates: Path, rules: Callable[[str], None]
) -> None:
    rules(
        '[[policy]]\naction = "deny"\ntools = "records.*"\nwhen = "id > 40"\n'
        '[[policy]]\naction = "ask"\ntools = "records.update"\nmore_than = 20\n'
    )
    frozen = await toolfold.run(FIFTY)

    assert frozen.error
    assert frozen.error.kind == "approval"
    assert done(updates) == list(range(20))


async def test_rules_that_cannot_be_read_allow_nothing(
    toolfold: Running, updates: Path, rules: Callable[[str], None]
) -> None:
    rules("[[policy]\n")
    result = await toolfold.run(FIFTY)

    assert result.text.startswith("Nothing was run.")
    assert "policy.toml" in result.text
    assert done(updates) == []


async def test_a_project_closes_what_the_user_leaves_open_and_opens_nothing(
    running: MakeApp,
    servers: dict[str, Any],
    rules: Callable[[str], None],
    tmp_path: Path,
    updates: Path,
) -> None:
    (tmp_path / ".toolfold").mkdir()
    path = tmp_path / ".toolfold" / "policy.toml"
    async with running(servers) as toolfold:
        path.write_text('[[policy]]\naction = "allow"\ntools = "*"\n')
        assert not (await toolfold.run(FIFTY)).success
        rules("")
        path.write_text('[[policy]]\naction = "deny"\ntools = "records.*"\n')
        assert "a rule forbids it" in (await toolfold.run(FIFTY)).text
    assert done(updates) == []


async def test_in_cpython_the_run_waits_alive(
    running: MakeApp, servers: dict[str, Any], rules: object, updates: Path
) -> None:
    async with running(servers, limits__wall_time_s=2) as toolfold:
        if not (await toolfold.app.tiers.examine())[0]:
            pytest.skip("There is no CPython tier here.")
        results: list[Any] = []

        async def run() -> None:
            results.append(await toolfold.run(f"import enum\n{FIFTY}"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            with anyio.fail_after(30):
                while not approvals(toolfold).pending():
                    await anyio.sleep(0.1)
            await anyio.sleep(2.2)  # longer than the wall time, which stands still
            assert approvals(toolfold).pending()[0].waits_alive
            assert done(updates) == []
            question = approvals(toolfold).pending()[0]
            approvals(toolfold).decide(question.id, "approved", most=50, by="a test")

    assert results[0].success, results[0].text
    assert done(updates) == list(range(50))


async def test_a_dry_run_changes_nothing_and_lists_what_it_would(
    toolfold: Running, updates: Path
) -> None:
    code = """
import records, memory
rows = records.list_records()
for row in rows[:12]:
    records.update(id=row["id"], value=row["city"])
memory.store("updated")
kept = 1
"""
    mine = SessionWish("mine")
    result = await toolfold.run(code, dry_run=True, session=mine)

    assert result.success, result.text
    assert "13 calls would be made" in result.text
    assert "records.update: 12" in result.text
    assert "memory.store: 1" in result.text
    assert "Certain up to call 1, records.update" in result.text
    assert done(updates) == []
    assert toolfold.app.sessions.list() == []


async def test_a_dry_run_writes_no_file(toolfold: Running) -> None:
    result = await toolfold.run("open('/workspace/a.txt', 'w').write('x')", dry_run=True)

    assert "this is a dry run" in result.text
    listed = await toolfold.run("import os\nos.listdir('/workspace')")
    assert listed.text == "[]"
