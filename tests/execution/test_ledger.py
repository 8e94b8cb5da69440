"""The account of tokens, from the texts that the journal has."""

import json
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from support import MakeApp, catalogue, test_server

from toolfold.catalog.tool import Definitions, ListedTool, Tool, definition, listing
from toolfold.entrypoints.mcp.server import make_server
from toolfold.errors import ToolFailed
from toolfold.journal import accounts
from toolfold.journal.accounts import AccountReader, Accounts
from toolfold.journal.journal import Journal
from toolfold.journal.ledger import Account, uses
from toolfold.journal.reader import read_journal
from toolfold.journal.run_writer import JournaledRun
from toolfold.journal.runs import Origin
from toolfold.journal.runsdb import SCHEMA
from toolfold.storage.sqlite_file import open_for_reading
from toolfold.tokens import count_tokens

NULL = {"null": test_server("null")}
SEVEN = [
    "github", "slack", "notion", "salesforce", "google-workspace", "atlassian", "playwright",
]  # fmt: skip


@pytest.fixture
def path(home: Path) -> Path:
    return home / "data" / "runs.db"


def ledger(path: Path) -> Accounts:
    found = read_journal(path, lambda each: each.accounts())
    assert found is not None
    return found


def rows(path: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()


@contextmanager
def opened(path: Path, **options: Any) -> Iterator[Journal]:
    settings: dict[str, Any] = {"days": 30, "max_bytes": 1 << 29, "code_bytes": 1000}
    journal = Journal(path, **(settings | options))
    with journal.opened():
        yield journal


def offered(*names: str, server: str = "crm") -> Definitions:
    """Return the definitions of a server whose tools have these names."""
    schema: Any = {"type": "object", "properties": {"id": {"type": "integer"}}}
    tools = [
        Tool(
            server=server,
            module=server,
            function=name,
            listed=ListedTool(name=name, description=f"The tool {name}.", input_schema=schema),
        )
        for name in names
    ]
    return Definitions({server: tools})


def end(run: JournaledRun, reply: str = "", offer: Definitions | None = None) -> None:
    run.end(failure=None, reply=reply)
    if offer is not None:
        run.offer(offer)


def written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


async def test_the_figures_of_a_run_are_those_recomputed_by_hand_from_the_recorded_texts(
    running: MakeApp, path: Path
) -> None:
    code = (
        "import null\nnull.put(value='ü' * 40)\nkept = null.echo(value={'a': [1, 2]})\n"
        "text = null.echo(value='line\\nline \"quoted\"')\n"
        "try:\n    null.put(valeu=1)\nexcept TypeError:\n    pass\nlen(text)"
    ).replace("valeu=1", "**{'valeu': 1}")
    async with running(NULL) as toolfold, Client(make_server(toolfold.app)) as client:
        await toolfold.app.catalog.learn()
        listed = toolfold.app.catalog.tools
        shown = (await client.list_tools()).tools
        await client.call_tool("execute_code", {"code": code})
    [account] = ledger(path).all

    def defined(name: str, description: str | None, schema: Any) -> int:
        tool = {"name": name, "description": description, "inputSchema": schema}
        return count_tokens(written(tool))

    [(kept_code, reply)] = rows(path, "SELECT code, reply FROM beginnings JOIN ends USING (number)")
    calls = rows(path, "SELECT tool, arguments, answer, error FROM calls ORDER BY id")
    assert kept_code == code
    assert [tool for tool, *_ in calls] == ["null.put", "null.echo", "null.echo", "null.put"]
    by_hand = 0
    for tool, arguments, answer, error in calls:
        call = {"name": tool.split(".")[1], "arguments": json.loads(arguments)}
        by_hand += count_tokens(written(call))
        value = error if answer is None else json.loads(answer)
        by_hand += count_tokens(value if isinstance(value, str) else written(value))
    names = [("null", tool) for tool in ("echo", "put")]
    definitions = {
        tool.listed.name: defined(
            tool.listed.name, tool.listed.description, tool.listed.input_schema
        )
        for tool in listed
        if tool.module == "null"
    }
    fetches = [
        {"name": "ToolSearch",
         "arguments": {"query": f"select:mcp__{server}__{tool}", "max_results": 5}}
        for server, tool in names
    ]  # fmt: skip
    assert account.direct == by_hand
    assert account.sent == count_tokens(
        written({"name": "execute_code", "arguments": {"code": code}})
    ) + count_tokens(reply)
    assert account.shown == sum(defined(t.name, t.description, t.input_schema) for t in shown)
    assert account.loaded == sum(definitions.values())
    assert account.deferred == (
        sum(count_tokens(f"mcp__{server}__{tool}\n") for server, tool in names)
        + sum(count_tokens(written(fetch)) for fetch in fetches)
        + sum(definitions.values())
    )
    assert account.passed == account.shown + account.sent
    assert (account.door, account.calls) == ("mcp", 4)


@pytest.mark.timeout(300)
async def test_two_results_of_50_000_tokens_each_pass_as_summaries_of_less_than_2_000(
    running: MakeApp, path: Path, tmp_path: Path
) -> None:
    records = [
        {"id": n, "state": "open" if n % 3 else "closed", "title": f"Invoice {n * 7919} is late"}
        for n in range(3_000)
    ]
    answer = json.dumps({"total": len(records), "records": records}, separators=(",", ":"))
    assert count_tokens(answer) >= 50_000
    (tmp_path / "answer.json").write_text(answer)
    more = ["--answer", tmp_path / "answer.json"]
    servers = {name: test_server("replay", catalogue(name), *more) for name in SEVEN}
    first = (
        "import github\nfound = github.search_issues(query='late')['records']\n"
        "print(len(found), 'issues,', sum(r['state'] == 'open' for r in found), 'open')\n"
        "[r['title'] for r in found[:5]]"
    )
    second = (
        "import atlassian, json\n"  # it declares a text, which is never parsed
        "found = json.loads(atlassian.jira_search(jql='text ~ late'))['records']\n"
        "{'total': len(found), 'closed': [r['id'] for r in found if r['state'] == 'closed'][:10]}"
    )
    async with running(servers, connect_timeout_s=120) as toolfold:
        await toolfold.app.catalog.learn()
        async with Client(make_server(toolfold.app, client="relay-1")) as client:
            shown = (await client.list_tools()).tools
            replies = [await client.call_tool("execute_code", {"code": c}) for c in (first, second)]
    found = ledger(path)

    texts = [getattr(reply.content[0], "text", "") for reply in replies]
    assert texts[0].startswith("3000 issues, 2000 open")
    assert "3000" in texts[1]
    passed = [
        written({"name": t.name, "description": t.description, "inputSchema": t.input_schema})
        for t in shown
    ]
    passed += [written({"name": "execute_code", "arguments": {"code": c}}) for c in (first, second)]
    through = sum(map(count_tokens, passed + texts))
    assert through == sum(account.passed for account in found.all)
    assert through <= 2_000
    assert found.cut == 0
    for account in found.all:  # the journal keeps 64 KB of each, and the ledger counts all
        assert count_tokens(answer) <= account.direct <= count_tokens(answer) + 40
    assert found.all[0].loaded > 100_000
    assert 1_000 < found.all[0].deferred < found.all[0].loaded
    assert found.all[1].loaded == 0


def test_definitions_are_read_once_in_a_conversation_and_names_before_use(path: Path) -> None:
    both = offered("find", "delete")
    with opened(path) as journal:
        for client, tool in [("one", "find"), ("one", "find"), ("one", "delete"), ("two", "find")]:
            with journal.begin(Origin(client=client), "x") as run:
                with run.call(f"crm.{tool}", {}):
                    pass
                end(run, offer=both)
    first, second, third, other = ledger(path).all

    assert first.loaded > 0
    assert (second.loaded, second.deferred, third.loaded) == (0, 0, 0)
    assert 0 < third.deferred < first.deferred  # one definition more, and no names
    assert (other.loaded, other.deferred) == (first.loaded, first.deferred)


def test_what_is_built_in_counts_as_a_server_where_it_is_used(path: Path) -> None:
    schema: Any = {"type": "object"}
    tools = {"memory.store": definition("store", "Keep a note.", schema)}

    class Offer:
        listings = (listing("toolfold:memory", tools, is_built_in=True),)

    with opened(path) as journal:
        for used in (False, True):
            with journal.begin(Origin(client="one"), "x") as run:
                if used:
                    with run.call("memory.store", {"content": "a"}):
                        pass
                run.end(failure=None, reply="")
                run.offer(Offer())
    without, with_it = ledger(path).all

    assert (without.loaded, without.deferred) == (0, 0)
    assert with_it.loaded == count_tokens(
        '{"name":"store","description":"Keep a note.","inputSchema":{"type":"object"}}'
    )


def test_texts_that_are_kept_in_part_are_counted_whole(path: Path) -> None:
    long = "word and number 12345, " * 10_000
    with opened(path, code_bytes=100_000) as journal, journal.begin(Origin(), "x" * 200_000) as run:
        with run.call("crm.find", {"text": long}) as call:
            call.answer = long
        end(run, reply=long)
    found = ledger(path)
    [account] = found.all

    assert found.cut == 0
    call_tokens = count_tokens('{"name":"find","arguments":{"text":"' + long + '"}}')
    assert account.direct == call_tokens + count_tokens(long)
    code_tokens = count_tokens('{"name":"execute_code","arguments":{"code":"' + "x" * 200_000)
    assert account.sent == pytest.approx(code_tokens + count_tokens(long), abs=5)


def test_where_the_whole_was_not_counted_the_head_is_and_the_ledger_says_so(path: Path) -> None:
    with opened(path) as journal, journal.begin(Origin(), "x") as run:
        with run.call("crm.find", {}) as call:
            call.answer = "word " * 50_000
        end(run)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM tokens")
    found = ledger(path)

    assert found.cut == 1
    assert 10_000 < found.all[0].direct < 20_000


def test_a_tool_that_the_model_or_a_program_called_itself_saves_nothing_but_definitions(
    path: Path,
) -> None:
    kinds: Any = ("direct", "request")
    with opened(path) as journal:
        for kind in kinds:
            with journal.begin(Origin(client=kind), "# called", kind=kind) as run:
                with run.call("crm.find", {"id": 1}) as call:
                    call.answer = {"name": "Ada"}
                end(run, reply='{"name": "Ada"}', offer=offered("find", "delete"))
    pinned, requested = ledger(path).all

    assert pinned.sent == pinned.direct == requested.sent == requested.direct > 0
    assert pinned.loaded > 0
    assert (requested.loaded, requested.deferred) == (0, 0)
    assert uses([pinned, requested], by_server=True) == {}


def test_a_run_that_saved_nothing_is_said_to_have_cost_more(path: Path) -> None:
    with opened(path) as journal, journal.begin(Origin(), "1 +\n" * 50) as run:
        run.end(failure="rejected", reply="Nothing was run.")
    [account] = ledger(path).all

    assert account.passed > account.all_deferred == account.all_loaded == 0


def test_runs_without_an_end_are_left_out(path: Path) -> None:
    with opened(path) as journal:
        journal.begin(Origin(), "lost")
        with journal.begin(Origin(), "ended") as run:
            end(run)

    assert [account.run for account in ledger(path).all] == [run.id]


@pytest.mark.parametrize(
    ("client", "kind", "door"),
    [("f00d", "code", "mcp"), ("", "code", "mcp"), ("cli", "code", "cli"), ("http", "code", "http"),
     ("rest", "request", "rest"), ("key:1", "code", "rest"), ("hook", "hook", "hook")],
)  # fmt: skip
def test_each_door_is_told_from_the_others(client: str, kind: Any, door: str, path: Path) -> None:
    with opened(path) as journal, journal.begin(Origin(client=client), "x", kind=kind) as run:
        end(run)

    assert [account.door for account in ledger(path).all] == [door]


def test_the_holder_of_a_key_is_known_by_either_door(path: Path) -> None:
    tools = listing("toolfold", {"toolfold.execute_code": definition("execute_code", "Run.", {})})
    with opened(path) as journal:
        with journal.begin(Origin(client="key:1"), "x") as run:
            end(run)
            run.offer(offered("find"), shown=tools)

    assert [account.door for account in ledger(path).all] == ["http"]


def test_an_error_that_is_too_long_to_keep_is_counted_whole_or_said_to_be_cut(path: Path) -> None:
    words = "no such customer " * 10_000
    with opened(path) as journal, journal.begin(Origin(), "x") as run:
        with suppress(ToolFailed), run.call("crm.find", {}):
            raise ToolFailed(words)
        end(run)
    whole = ledger(path)
    [(answer, size, digest, error)] = rows(
        path, "SELECT answer, answer_bytes, answer_sha256, error FROM calls"
    )
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM tokens")

    assert whole.cut == 0
    assert whole.all[0].direct == count_tokens('{"name":"find","arguments":{}}') + count_tokens(
        words
    )
    assert (answer, size, digest) == (None, len(words), sha256(words.encode()).hexdigest())
    assert words.startswith(error)
    assert ledger(path).cut == 1


def test_what_was_counted_once_is_not_counted_again(path: Path) -> None:
    with opened(path) as journal, journal.begin(Origin(), "1 + 1") as run:
        end(run, reply="2")
    before = ledger(path).all
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE ends SET reply = 'something else that is much longer'")

    assert ledger(path).all == before


def test_a_reader_reads_each_account_once_and_all_anew_where_the_past_changed(path: Path) -> None:
    reader, crm = AccountReader(), offered("get", "put")

    def news() -> tuple[list[str], bool]:
        connection = open_for_reading(path, SCHEMA)
        assert connection is not None
        with closing(connection):
            found = reader.read(connection)
        seen.extend(found.accounts.all)
        return [account.run for account in found.accounts.all], found.is_anew

    seen: list[Account] = []
    with opened(path) as journal:
        with journal.begin(Origin(client="f00d"), "first") as first:
            end(first, "1", crm)
        assert news() == ([first.id], True)
        assert news() == ([], False)
        late = journal.begin(Origin(client="f00d"), "late")
        with journal.begin(Origin(client="f00d"), "second") as second:
            end(second, "2", crm)
        assert news() == ([second.id], False)
        assert tuple(seen) == ledger(path).all  # the same figures as read at once
        with late as run:
            end(run, "3", crm)
        seen.clear()
        assert news() == ([first.id, late.id, second.id], True)
        assert tuple(seen) == ledger(path).all


def test_a_reader_reads_in_parts_what_it_reads_at_once(path: Path) -> None:
    reader, crm = AccountReader(), offered("get", "put")
    with opened(path) as journal:
        for number in range(5):
            with journal.begin(Origin(client="f00d"), f"run {number}") as run:
                end(run, str(number), crm)
    parts: list[accounts.NewAccounts] = []
    while not parts or not parts[-1].is_complete:
        connection = open_for_reading(path, SCHEMA)
        assert connection is not None
        with closing(connection):
            parts.append(reader.read(connection, 2))

    assert [len(part.accounts.all) for part in parts] == [2, 2, 1]
    assert [part.is_anew for part in parts] == [True, False, False]
    assert tuple(each for part in parts for each in part.accounts.all) == ledger(path).all


def test_a_journal_of_an_older_toolfold_is_read_on(path: Path) -> None:
    with opened(path) as journal, journal.begin(Origin(), "old") as run:
        end(run, reply="reply")
    with closing(sqlite3.connect(path)) as connection, connection:
        for kind in ("begin", "call", "end", "decision", "reveal"):
            connection.execute(f"DROP TRIGGER audit_{kind}")
        for table in ("listings", "offers", "tokens", "intents", "wholes", "clocks", "progress",
                      "decisions", "reveals", "audit", "anchor"):  # fmt: skip
            connection.execute(f"DROP TABLE {table}")
        connection.execute("DROP INDEX beginnings_by_first")
        for column in ("kind", "session", "generation", "resumes"):
            connection.execute(f"ALTER TABLE beginnings DROP COLUMN {column}")
        connection.execute("PRAGMA user_version = 1")
    [account] = ledger(path).all

    assert (account.kind, account.loaded) == ("code", 0)
    assert account.sent > 0


def test_pruning_takes_what_the_ledger_has_of_old_runs_and_nothing_else(path: Path) -> None:
    now = [1_700_000_000.0]
    with opened(path, days=1, clock=lambda: now[0]) as journal:
        for name in ("old", "new"):
            with journal.begin(Origin(client=name), "x") as run:
                with run.call("crm.find", {"id": "long " * 30_000}):
                    pass
                end(run, offer=offered("find", name))
            now[0] += 2 * 86_400.0
    assert len(ledger(path).all) == 2
    kept = rows(path, "SELECT * FROM tokens WHERE id = 2 OR id > 2 << 32")
    with opened(path, days=3, clock=lambda: now[0] - 1) as journal:
        journal.prune()

    assert rows(path, "SELECT number FROM offers") == [(2,)]
    assert len(rows(path, "SELECT id FROM listings")) == 1
    assert rows(path, "SELECT * FROM tokens") == kept
    assert ledger(path).all[0].loaded > 0


def test_runs_that_are_pruned_while_they_are_counted_count_still(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path) as journal:
        for number in range(2):
            with journal.begin(Origin(), f"print({number})") as run:
                end(run, reply=str(number))

    def count(text: str) -> int:
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("DELETE FROM beginnings")
            other.execute("DELETE FROM ends")
        return count_tokens(text)

    monkeypatch.setattr(accounts, "count_tokens", count)

    assert len(ledger(path).all) == 2
    assert ledger(path).all == ()


def test_a_ledger_that_cannot_be_written_costs_no_run(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), opened(path) as journal:
        with journal.begin(Origin(), "x") as run:
            end(run, reply="reply", offer=offered("find"))
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("DROP TABLE offers")

    assert "misses something" in caplog.text
    assert rows(path, "SELECT reply FROM ends") == [("reply",)]


def test_accounts_add_up(path: Path) -> None:
    account = Account(
        run="r", at=0.0, door="mcp", project="", kind="code",
        shown=1, sent=2, direct=10, loaded=100, deferred=20,
    )  # fmt: skip

    assert (account.passed, account.all_loaded, account.all_deferred) == (3, 110, 30)
