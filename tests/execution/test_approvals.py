"""Calls that the user is asked about: one question, bound to run, tool and arguments."""

import json
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from postgres_server import database_url
from support import MakeApp, Running, test_server

from toolfold.catalog.questions import Elicitor, Question, Reply
from toolfold.clocks import PausableClock
from toolfold.errors import NeedsApproval, NotFound, QuestionExpired, StoreError
from toolfold.execution.runtime import SessionRequest
from toolfold.execution.trust import guard as guarding
from toolfold.execution.trust.approvals import Approval, ApprovalRequest, Approvals
from toolfold.execution.trust.guard import CallGuard, RunFacts
from toolfold.execution.trust.preapproval import WaitingRuns
from toolfold.journal.decisions import DecisionEvent, happened
from toolfold.journal.runs import Origin
from toolfold.policy.decide import Policy, ToolFacts
from toolfold.policy.rules import read_rules

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
    return toolfold.app.border.trust.approvals


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
    def ask(self) -> Elicitor:
        return Elicitor(user=self, put=self._put)

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
        frozen = await toolfold.run(code, session=SessionRequest("mine"))
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
    async with running(servers, limits__approval_s=1) as toolfold:
        frozen = await toolfold.run(FIFTY)
        question = approvals(toolfold).find(frozen.run_id)
        await anyio.sleep(1.1)
        with pytest.raises(NotFound, match="has expired"):
            approvals(toolfold).decide(question.id, "approved", most=5, by="late")


async def test_an_approval_that_has_expired_is_not_used(
    running: MakeApp, servers: dict[str, Any], rules: object, updates: Path
) -> None:
    async with running(servers, limits__approval_s=1) as toolfold:
        frozen = await toolfold.run(FIFTY)
        decide(toolfold, frozen.run_id)
        await anyio.sleep(1.1)
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


async def test_an_odd_answer_of_a_client_approves_nothing(toolfold: Running, updates: Path) -> None:
    for content in (None, {}, {"approve": "false"}, {"approve": None}):
        odd: Any = content
        frozen = await toolfold.run(FIFTY, ask=User(Reply(action="accept", content=odd)).ask)
        assert frozen.error
        assert frozen.error.kind == "approval"
    assert done(updates) == []


async def test_a_run_has_one_open_question_however_often_it_is_resumed(
    toolfold: Running, updates: Path, rules: Callable[[str], None]
) -> None:
    rules('[[policy]]\naction = "ask"\n')
    code = """
import asyncio, records
await asyncio.gather(records.update(id=1, value=""), records.put(id=2, value=""))
"""
    frozen = await toolfold.run(code)
    for _ in range(3):
        frozen = await toolfold.app.runtime.resume(frozen.run_id)
        [question] = approvals(toolfold).pending()
        assert question.attempt == frozen.run_id
    for _ in range(2):
        decide(toolfold, frozen.run_id)
        frozen = await toolfold.app.runtime.resume(frozen.run_id)

    assert frozen.success, frozen.text
    assert approvals(toolfold).pending() == []
    assert sorted(done(updates)) == [1, 2]


async def test_a_call_approved_while_another_freezes_the_run_is_not_begun(
    toolfold: Running,
    updates: Path,
    rules: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules('[[policy]]\naction = "ask"\n')
    code = """
import asyncio, records
await asyncio.gather(records.update(id=1, value=""), records.put(id=2, value=""))
"""
    frozen = await toolfold.run(code)
    approved = decide(toolfold, frozen.run_id).tool
    ask, latest = Approvals.ask, Approvals.latest

    def ask_slowly(self: Approvals, wanted: ApprovalRequest) -> Approval:
        time.sleep(0.4)
        return ask(self, wanted)

    def recall_slowly(self: Approvals, run: str, tool: str) -> Approval | None:
        time.sleep(0.2 if tool == approved else 0)
        return latest(self, run, tool)

    monkeypatch.setattr(Approvals, "ask", ask_slowly)
    monkeypatch.setattr(Approvals, "latest", recall_slowly)
    frozen = await toolfold.app.runtime.resume(frozen.run_id)
    assert frozen.error
    assert frozen.error.kind == "approval"
    assert done(updates) == []

    decide(toolfold, frozen.run_id)
    result = await toolfold.app.runtime.resume(frozen.run_id)
    assert result.success, result.text
    assert sorted(done(updates)) == [1, 2]


async def test_calls_whose_order_is_a_matter_of_time_are_approved_once(
    toolfold: Running, updates: Path
) -> None:
    code = """
import asyncio, records
async def move(number):
    await records.slow_update(id=number, seconds=0.3 - number / 10)
    await records.update(id=100 + number, value="")
await asyncio.gather(*[move(number) for number in range(3)])
"done"
"""
    frozen = await toolfold.run(code)
    decide(toolfold, frozen.run_id)
    result = await toolfold.app.runtime.resume(frozen.run_id)

    assert result.success, result.text
    assert sorted(done(updates)) == [0, 1, 2, 100, 101, 102]


async def test_nothing_begins_while_a_run_is_being_frozen(toolfold: Running, updates: Path) -> None:
    code = """
import asyncio, records
async def chain():
    for number in range(20):
        await records.slow_update(id=number, seconds=0.1)
await asyncio.gather(chain(), records.update(id=99, value=""))
"done"
"""
    frozen = await toolfold.run(code)
    before = done(updates)
    assert 99 not in before
    assert len(before) < 20
    decide(toolfold, frozen.run_id)
    result = await toolfold.app.runtime.resume(frozen.run_id)

    assert result.success, result.text
    assert sorted(done(updates)) == [*range(20), 99]


async def test_calls_made_together_are_not_repeated_by_the_third_attempt(
    running: MakeApp, updates: Path, rules: Callable[[str], None]
) -> None:
    rules('[[policy]]\naction = "ask"\ntools = ["records.update", "records.put"]\n')
    code = """
import asyncio, records, others
async def asked():
    await records.slow_update(id=0, seconds=0.6)
    await records.update(id=100, value="")
    await records.put(id=101, value="")
    await records.update(id=102, value="")
async def chain():
    for number in range(1, 6):
        await others.slow_update(id=number, seconds=0.05)
await asyncio.gather(asked(), chain())
"""
    servers = {name: test_server("records", updates) for name in ("records", "others")}
    async with running(servers, sandbox="monty") as toolfold:
        attempts = [await toolfold.run(code)]
        while attempts[-1].error and len(attempts) < 6:
            decide(toolfold, attempts[-1].run_id)
            attempts.append(await toolfold.app.runtime.resume(attempts[-1].run_id))

    assert attempts[-1].success, attempts[-1].text
    assert len(attempts) == 3  # one question for each tool
    assert sorted(done(updates)) == [*range(6), 100, 101, 102]


async def test_a_run_that_waits_may_be_resumed_as_often_as_a_model_likes(
    toolfold: Running, updates: Path
) -> None:
    code = f"import records\nrecords.put(id=99, value='')\n{FIFTY}"
    frozen = await toolfold.run(code)
    for _ in range(60):
        frozen = await toolfold.app.runtime.resume(frozen.run_id)
    decide(toolfold, frozen.run_id)
    assert (await toolfold.app.runtime.resume(frozen.run_id)).success

    assert done(updates) == [99, *range(50)]


def guard(
    kept: Approvals, *, run: str = "first", attempt: str = "later", made: int = 0
) -> CallGuard:
    ask = read_rules([{"action": "ask"}], origin="a test")
    facts = RunFacts(
        first=run, attempt=attempt, origin=Origin(), scope="here", made=lambda _tool: made
    )
    return CallGuard(Policy(ask), kept, facts)


TRANSFER, ERASE = ToolFacts("bank.transfer", "bank"), ToolFacts("bank.erase", "bank")
GIVEN: dict[str, Any] = {"to": "Ada", "amount": 5}


@pytest.fixture
async def approved(tmp_path: Path, either_url: str) -> Approvals:
    """Of a call that is the third of its run, two of its tool."""
    kept = Approvals(tmp_path, valid_s=60, database_url=either_url)
    with pytest.raises(NeedsApproval):
        await guard(kept, attempt="first", made=2).admit(TRANSFER, GIVEN, 3)
    kept.decide(kept.find("first").id, "approved", most=2, by="a test")
    return kept


@pytest.fixture
def replicas(tmp_path: Path) -> tuple[Approvals, Approvals]:
    """Two that have one database and one key, and nothing else in common."""
    url = database_url(tmp_path)
    directories = tmp_path / "a", tmp_path / "b"
    for directory in directories:
        directory.mkdir()
        (directory / "approvals.key").write_bytes(b"k" * 32)
    here, there = (Approvals(each, valid_s=60, database_url=url) for each in directories)
    return here, there


async def test_a_run_that_waits_goes_on_when_another_replica_approves(
    replicas: tuple[Approvals, Approvals],
) -> None:
    here, there = replicas
    waiting = guard(here, attempt="first")
    waiting.tier, waiting.clock, waiting.waiting = "cpython", PausableClock(60), WaitingRuns(1)
    admitted = anyio.Event()

    async def admit() -> None:
        await waiting.admit(TRANSFER, GIVEN, 1)
        admitted.set()

    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(admit)
            while not (pending := await anyio.to_thread.run_sync(there.pending)):
                await anyio.sleep(0.05)
            assert not admitted.is_set()
            [asked] = pending
            assert asked.waits_alive
            await anyio.to_thread.run_sync(
                lambda: there.decide(asked.id, "approved", most=1, by="a test")
            )
    assert admitted.is_set()
    assert there.latest_of("first") == here.latest_of("first")


def test_a_replica_with_another_key_is_told_which_file_it_lacks(
    replicas: tuple[Approvals, Approvals], tmp_path: Path
) -> None:
    here, _ = replicas
    here.allow_always("here", "bank.erase")
    (tmp_path / "c").mkdir()
    url = database_url(tmp_path)
    stranger = Approvals(tmp_path / "c", valid_s=60, database_url=url)
    for use in (stranger.pending, lambda: stranger.allow_always("here", "bank.transfer")):
        with pytest.raises(StoreError, match=r"c/approvals\.key is not the key"):
            use()
    assert here.always_allowed("here") == [("here", "bank.erase")]


async def test_another_replica_approves_what_waits_alive_and_leaves_the_rest_to_the_first(
    running: MakeApp, replicas: tuple[Approvals, Approvals], tmp_path: Path
) -> None:
    here, _ = replicas
    wanted = ApprovalRequest(
        run="1", attempt="1", project="", client="", tool="bank.erase", position=1,
        arguments="{}", arguments_sha256="", known=1, made=0, rule="", waits_alive=True,
    )  # fmt: skip
    alive, frozen = (
        here.ask(wanted),
        here.ask(replace(wanted, run="2", attempt="2", waits_alive=False)),
    )
    (tmp_path / "home" / "data").mkdir(parents=True)
    (tmp_path / "home" / "data" / "approvals.key").write_bytes(b"k" * 32)
    async with running({}, database_url=database_url(tmp_path)) as other:
        assert await other.app.runs.approve(alive, most=1, always=True, by="a test") is None
        with pytest.raises(NotFound, match="Approve it where it began"):
            await other.app.runs.approve(frozen, most=1, always=False, by="a test")
        await other.app.runs.reject(frozen, by="a test")
        assert here.is_always_allowed(other.app.config.namespace, "bank.erase")
    assert here.latest_of("1") is not None
    assert [each and each.state for each in map(here.latest_of, "12")] == ["approved", "rejected"]


async def test_an_approval_covers_the_call_that_waited_and_others_up_to_its_number(
    approved: Approvals,
) -> None:
    background_runs = guard(approved, made=2)
    await background_runs.admit(TRANSFER, GIVEN, 3)
    await background_runs.admit(TRANSFER, {"to": "Bob", "amount": 9}, 4)
    with pytest.raises(NeedsApproval):
        await background_runs.admit(TRANSFER, GIVEN, 5)


@pytest.mark.parametrize(("made", "left"), [(2, 2), (3, 1), (4, 0), (9, 0)])
async def test_what_was_made_before_a_crash_counts_wherever_it_stands(
    approved: Approvals, made: int, left: int
) -> None:
    background_runs = guard(approved, made=made)
    for position in range(left):
        await background_runs.admit(TRANSFER, GIVEN, position)
    with pytest.raises(NeedsApproval):
        await background_runs.admit(TRANSFER, GIVEN, 1)


@pytest.mark.parametrize(
    ("run", "tool", "given"),
    [
        ("first", TRANSFER, {"to": "Eve", "amount": 5}),
        ("first", TRANSFER, {"to": "Ada", "amount": 5, "twice": True}),
        ("first", TRANSFER, {}),
        ("first", ERASE, GIVEN),
        ("other", TRANSFER, GIVEN),
    ],
)
async def test_an_approval_is_none_for_another_run_tool_or_other_arguments(
    approved: Approvals, run: str, tool: ToolFacts, given: dict[str, Any]
) -> None:
    with pytest.raises(NeedsApproval):
        await guard(approved, run=run, made=2).admit(tool, given, 3)


async def test_what_is_always_allowed_is_looked_up_once_in_a_run(
    toolfold: Running, updates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, looked = approvals(toolfold), []
    kept.allow_always(toolfold.app.config.namespace, "records.update")
    look_up = kept.is_always_allowed
    monkeypatch.setattr(
        kept, "is_always_allowed", lambda *asked: looked.append(asked) or look_up(*asked)
    )
    monkeypatch.setattr(guarding, "_GATHER_S", 0.3)
    began = anyio.current_time()
    assert (await toolfold.run(FIFTY)).success

    assert len(looked) == 1
    assert anyio.current_time() - began < 10  # 50 waits for others would be 15 s alone


async def test_a_beginning_that_several_runs_have_names_none(toolfold: Running) -> None:
    one, other = await toolfold.run(FIFTY), await toolfold.run(FIFTY)

    for session_start in ("", one.run_id[:4]):
        with pytest.raises(NotFound):
            approvals(toolfold).find(session_start)
    assert approvals(toolfold).find(other.run_id).attempt == other.run_id


async def test_reading_resources_is_decided_by_rules_too(
    running: MakeApp, rules: Callable[[str], None], tmp_path: Path
) -> None:
    servers = {"my-mail": test_server("people", tmp_path / "calls.jsonl")}
    reads = [
        f"import tools\nlen(tools.read({name!r}, 'people://customers'))"
        for name in ("my_mail", "my-mail")
    ]
    async with running(servers, sandbox="monty") as toolfold:
        assert all([(await toolfold.run(code)).success for code in reads])
        for rule in ('upstreams = "my-mail"', 'tools = "my_mail.*"', 'tools = "my-mail.*"'):
            rules(f'[[policy]]\naction = "deny"\n{rule}\n')
            for code in reads:
                assert "a rule forbids it" in (await toolfold.run(code)).text
        rules('[[policy]]\naction = "ask"\ntools = "my_mail.resources.read"\n')
        frozen = await toolfold.run(reads[0])
        assert frozen.error
        assert frozen.error.kind == "approval"
        decide(toolfold, frozen.run_id)
        assert (await toolfold.app.runtime.resume(frozen.run_id)).success


async def test_runs_that_wait_alive_leave_workers_for_others(
    running: MakeApp, servers: dict[str, Any], rules: object, updates: Path
) -> None:
    async with running(servers, workers=2) as toolfold:
        if not (await toolfold.app.tiers.examine())[0]:
            pytest.skip("There is no CPython tier here.")
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(toolfold.run, f"import enum\n{FIFTY}")
            with anyio.fail_after(30):
                while len(approvals(toolfold).pending()) < 4:
                    await anyio.sleep(0.1)
                other = await toolfold.run("import enum\n6 * 7")
            waiting = approvals(toolfold).pending()
            frozen = [each for each in waiting if not each.waits_alive]
            decide(toolfold, frozen[0].attempt)
            with anyio.fail_after(60):
                result = await toolfold.app.runtime.resume(frozen[0].attempt)
            tasks.cancel_scope.cancel()

    assert other.text == "42"
    assert len(frozen) == 3
    assert result.success, result.text
    assert done(updates) == list(range(50))


async def test_waiting_alive_it_says_how_to_decide_and_that_nobody_did(
    running: MakeApp, servers: dict[str, Any], rules: object, updates: Path
) -> None:
    notes: list[str] = []
    async with running(servers, limits__approval_s=2) as toolfold:
        if not (await toolfold.app.tiers.examine())[0]:
            pytest.skip("There is no CPython tier here.")
        result = await toolfold.run(
            f"import enum\n{FIFTY}", on_progress=lambda _done, _total, note: notes.append(note)
        )
        journal = toolfold.app.shared.journal
        told = journal._read(result.run_id, happened)

    assert "records.update was not approved in time" in result.text
    assert any(f"toolfold approve {result.run_id}" in note for note in notes)
    [expired] = [each.what for each in told if isinstance(each.what, DecisionEvent)]
    assert (expired.action, expired.by) == ("expired", "policy")
    assert done(updates) == []


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
    mine = SessionRequest("mine")
    result = await toolfold.run(code, dry_run=True, session=mine)

    assert result.success, result.text
    assert "13 calls would be made" in result.text
    assert "records.update: 12" in result.text
    assert "memory.store: 1" in result.text
    assert "guesses: the real answer of records.update is unknown" in result.text
    assert done(updates) == []
    assert toolfold.app.sessions.list() == []


async def test_a_dry_run_writes_no_file(toolfold: Running) -> None:
    result = await toolfold.run("open('/workspace/a.txt', 'w').write('x')", dry_run=True)

    assert "this is a dry run" in result.text
    listed = await toolfold.run("import os\nos.listdir('/workspace')")
    assert listed.text == "[]"


async def test_a_dry_run_does_nothing_with_other_runs(toolfold: Running, updates: Path) -> None:
    frozen = await toolfold.run(FIFTY)
    decide(toolfold, frozen.run_id)
    for verb in ("resume", "stop"):
        refused = await toolfold.run(f"import runs\nruns.{verb}({frozen.run_id!r})", dry_run=True)
        assert "this is a dry run" in refused.text
    told = await toolfold.run(f"import runs\nruns.get({frozen.run_id!r})['state']", dry_run=True)

    assert told.value == "waiting"
    assert done(updates) == []


async def test_what_a_dry_run_makes_up_is_not_kept_for_others(toolfold: Running) -> None:
    made_up = await toolfold.run(
        "import records\nmade = records.update(id=1, value='')\ncached('k', 100, lambda: made)",
        dry_run=True,
    )
    later = await toolfold.run("cached('k', 100, lambda: 'real')")

    assert made_up.success, made_up.text
    assert later.value == "real"


async def test_a_dry_run_says_what_rules_would_make_of_the_calls(
    toolfold: Running, updates: Path, rules: Callable[[str], None]
) -> None:
    rules(
        '[[policy]]\naction = "ask"\ntools = ["records.put", "records.list_records"]\n'
        '[[policy]]\naction = "deny"\ntools = "records.update"\n'
    )
    asked = await toolfold.run(
        "import records\nrecords.put(id=1, value='')\nrecords.list_records()", dry_run=True
    )
    denied = await toolfold.run(
        "import records\nrecords.update(id=1, value='')\nrecords.put(id=1, value='')", dry_run=True
    )

    assert "records.put: 1 (you would be asked first)" in asked.text
    assert "records.list_records: 1 (you would be asked first)" in asked.text
    assert "records.update was not called: a rule forbids it" in denied.text
    assert approvals(toolfold).pending() == []
    assert done(updates) == []


async def test_what_stands_in_is_what_code_can_go_on_with(toolfold: Running) -> None:
    code = """
import memory
kept = memory.store("something").upper()
entity = memory.create_entity("Ada", "person", [])
f"{kept} {entity.name} {len(entity.observations)}"
"""
    result = await toolfold.run(code, dry_run=True)

    assert result.value == "DRY-RUN dry-run 0", result.text


async def test_only_real_runs_that_came_to_their_end_say_something_of_a_skill(
    toolfold: Running,
) -> None:
    saved = await toolfold.run('''
import records, skills
def wipe() -> None:
    """Wipe one record."""
    records.update(id=1, value="")
skills.save("wipe", "wipe", "Wipe one record")
''')
    assert saved.success, saved.text
    library, code = toolfold.app.library, "from skills import wipe\nwipe()"
    root = library.root_of(library.find("wipe"))
    assert "would be made" in (await toolfold.run(code, dry_run=True)).text
    await toolfold.run(code)
    await toolfold.run(code, ask=User(Reply(action="decline")).ask)

    assert library.skill_store.usage(root, "wipe").used == 0
    assert library.skill_store.recording(root, "wipe") is None
    assert (await toolfold.run(code, ask=User(YES).ask)).success
    assert library.skill_store.usage(root, "wipe").used == 1


async def test_a_server_that_was_removed_is_not_called_after_an_approval(
    toolfold: Running, updates: Path
) -> None:
    frozen = await toolfold.run(FIFTY)
    question = approvals(toolfold).find(frozen.run_id)
    [server] = toolfold.app.config.servers
    server.source.write_text('{"mcpServers": {}}')

    with pytest.raises(NotFound, match="There is no server 'records' any more; nothing was called"):
        await toolfold.app.runs.approve(question, most=50, always=False, by="a test")

    assert done(updates) == []
    assert approvals(toolfold).find(frozen.run_id).state == "pending"
