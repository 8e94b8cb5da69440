"""The same rule at every door: what happens around a call is the same, whoever makes it."""

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from entrypoints.rest_door import door
from mcp import Client, MCPError
from support import MakeApp, MakeConfig, Running, test_server

from toolfold.app import running_app
from toolfold.config.config import load_config
from toolfold.entrypoints.mcp.memory import make_memory_server
from toolfold.entrypoints.mcp.server import make_server
from toolfold.execution.report import RunReport
from toolfold.journal.audit.verify import Verified
from toolfold.journal.audit_check import check_log

MAIL = "ottilie.brandhuber@example.org"
PINNED = 'pinned_tools = ["bank.transfer", "bank.close", "bank.page", "bank.balance"]\n'


@dataclass
class Doors:
    """A running toolfold with a bank behind it, and all doors to it."""

    toolfold: Running
    http: httpx2.AsyncClient
    client: Client
    home: Path
    received: Path

    async def run(self, code: str, **options: Any) -> RunReport:
        return await self.toolfold.run(code, **options)

    async def pinned(self, tool: str, **arguments: Any) -> types.CallToolResult:
        result = await self.client.call_tool(f"bank__{tool}", arguments)
        assert isinstance(result, types.CallToolResult)
        return result

    async def rest(self, tool: str, **arguments: Any) -> httpx2.Response:
        return await self.http.post(f"/tools/{tool}/execute", json={"arguments": arguments})

    def arrived(self) -> list[dict[str, Any]]:
        if not self.received.exists():
            return []
        return [json.loads(line) for line in self.received.read_text().splitlines()]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.home / "data" / "runs.db")) as journal:
            return journal.execute(query).fetchall()

    def decisions(self) -> list[tuple[Any, ...]]:
        return self.rows("SELECT tool, action FROM decisions ORDER BY id")


@asynccontextmanager
async def doors(
    running: MakeApp, tmp_path: Path, home: Path, *, policy: str = "", toml: str = ""
) -> AsyncIterator[Doors]:
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "policy.toml").write_text(policy)
    received = tmp_path / "bank.jsonl"
    servers = {"bank": test_server("bank", received)}
    async with (
        running(servers, toml=PINNED + toml) as toolfold,
        door(toolfold.app) as http,
        Client(make_server(toolfold.app, client="me")) as client,
    ):
        await toolfold.app.catalog.learn()
        await toolfold.app.catalog.offered.learn()
        yield Doors(toolfold, http, client, home, received)


def rule(action: str, tools: str, **conditions: Any) -> str:
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in conditions.items())
    return f'[[policy]]\naction = "{action}"\ntools = {json.dumps(tools)}\n{lines}'


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


async def test_a_project_pins_no_tool(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    (project / ".toolfold").mkdir(parents=True)
    (project / ".git").mkdir()
    (project / ".toolfold" / "config.toml").write_text('pinned_tools = ["bank.transfer"]\n')
    (home / "config").mkdir(parents=True)
    environ = {"HOME": str(tmp_path), "TOOLFOLD_HOME": str(home)}

    config = load_config(cwd=project, environ=environ)

    assert config.settings.pinned_tools == ()
    assert any("pinned_tools" in str(fault) for fault in config.faults)


async def test_a_pinned_tool_is_asked_about_like_any_other(
    running: MakeApp, tmp_path: Path, home: Path
) -> None:
    policy, toml = rule("ask", "bank.transfer"), 'approvals = "always"\n'
    async with doors(running, tmp_path, home, policy=policy, toml=toml) as bank:
        by_user_rule = await bank.pinned("transfer", to="QX-1")
        built_in = await bank.pinned("close", account="QX-1")
        decided = bank.decisions()

    assert by_user_rule.is_error
    assert "approv" in text_of(by_user_rule)
    assert built_in.is_error
    assert bank.arrived() == []
    assert decided == [("bank.transfer", "ask"), ("bank.close", "ask")]


async def test_rules_hold_for_notes_the_graph_documents_and_files_over_rest(
    running: MakeApp, tmp_path: Path, home: Path
) -> None:
    policy = "".join(rule("deny", f"{module}.*") for module in ("memory", "graph", "workspace"))
    asked: list[tuple[str, str, Any]] = [
        ("GET", "/memory/notes", None),
        ("POST", "/memory/notes", {"content": "a note"}),
        ("DELETE", "/memory/notes/abc", None),
        ("GET", "/memory/search?query=a", None),
        ("GET", "/graph/entities", None),
        ("POST", "/graph/entities", {"name": "a", "entity_type": "b"}),
        ("GET", "/documents", None),
        ("POST", "/documents", {"path": "/etc/hostname"}),
        ("GET", "/events", None),
        ("GET", "/memory/tags", None),
        ("GET", "/documents/passages?path=a", None),
        ("GET", "/workspace", None),
        ("GET", "/workspace/file?path=a", None),
    ]
    async with doors(running, tmp_path, home, policy=policy) as bank:
        denied = [await bank.http.request(how, path, json=body) for how, path, body in asked]
        decided = bank.decisions()
        (home / "config" / "policy.toml").write_text("[[policy]]\nnonsense = 1\n")
        unreadable = [await bank.http.request(how, path, json=body) for how, path, body in asked]
        (home / "config" / "policy.toml").write_text("")
        notes = await bank.http.get("/memory/notes")

    assert [each.status_code for each in denied] == [403] * len(asked)
    assert [action for _, action in decided] == ["deny"] * len(asked)
    assert [each.status_code for each in unreadable] == [403] * len(asked)
    assert notes.json()["total"] == 0


@pytest.mark.parametrize("surface", ["memory", "graph"])
async def test_rules_hold_where_memory_is_all_that_a_client_sees(
    surface: str, make_config: MakeConfig, home: Path
) -> None:
    config = make_config({}, tools=surface)
    (home / "config" / "policy.toml").write_text(rule("deny", f"{surface}.*"))
    tool, arguments = {
        "memory": ("memory_store", {"content": "a note"}),
        "graph": ("create_entities", {"entities": []}),
    }[surface]
    async with running_app(config) as app:
        async with Client(make_memory_server(app.shared.stores, config)) as client:
            result = await client.call_tool(tool, arguments)

    assert isinstance(result, types.CallToolResult)
    assert result.is_error
    assert "a rule forbids it" in text_of(result)


async def test_side_doors_leave_rows_and_denials_leave_decisions(
    running: MakeApp, tmp_path: Path, home: Path
) -> None:
    async with doors(running, tmp_path, home) as bank:
        await bank.client.read_resource("toolfold://bank/bank://page")
        await bank.client.get_prompt("bank__greet", {"who": "Ada"})
        who = {"name": "who", "value": "A"}
        completed = await bank.client.complete(types.PromptReference(name="bank__greet"), who)
        rows = bank.rows("SELECT tool, outcome FROM calls ORDER BY id")
        (home / "config" / "policy.toml").write_text(rule("deny", "bank.*"))
        with pytest.raises(MCPError, match="a rule forbids it"):
            await bank.client.read_resource("toolfold://bank/bank://page")
        with pytest.raises(MCPError, match="a rule forbids it"):
            await bank.client.get_prompt("bank__greet", {"who": "Ada"})
        with pytest.raises(MCPError, match="a rule forbids it"):
            await bank.client.complete(types.PromptReference(name="bank__greet"), who)
        listed = [
            (await bank.client.list_resources()).resources,
            (await bank.client.list_resource_templates()).resource_templates,
            (await bank.client.list_prompts()).prompts,
        ]
        in_code = await bank.run("import tools\ntools.resources()")
        decided = bank.decisions()

    assert completed.completion.values == [MAIL]
    assert rows == [
        ("bank.resources.read", "ok"),
        ("bank.prompts.get", "ok"),
        ("bank.completion.complete", "ok"),
    ]
    assert len(bank.arrived()) == 3
    assert [action for _, action in decided] == ["deny"] * 3
    assert listed == [[], [], []]
    assert in_code.value == []


async def test_rules_about_many_calls_and_about_tainted_ones_fit_at_side_doors(
    running: MakeApp, tmp_path: Path, home: Path
) -> None:
    policy = rule("deny", "bank.balance", more_than=2) + rule("deny", "bank.transfer", tainted=True)
    toml = "[servers.bank]\nuntrusted = true\n"
    async with doors(running, tmp_path, home, policy=policy, toml=toml) as bank:
        pinned = [(await bank.pinned("balance", account="1")).is_error for _ in range(4)]
        rest = [(await bank.rest("bank.balance", account="1")).status_code for _ in range(4)]
        await bank.client.read_resource("toolfold://bank/bank://page")
        tainted = await bank.pinned("transfer", to="QX-4471-9920")
        await bank.rest("bank.page")
        also = await bank.rest("bank.transfer", to="QX-4471-9920")

    assert pinned == [False, False, True, True]
    assert rest == [200, 200, 403, 403]
    assert tainted.is_error
    assert "contains an answer of bank.resources.read" in text_of(tainted)
    assert also.status_code == 403


async def test_listings_conceal_personal_data_whichever_they_are(
    running: MakeApp, tmp_path: Path, home: Path
) -> None:
    async with doors(running, tmp_path, home, toml='[privacy]\nmode = "on"\n') as bank:
        listed = [
            await bank.client.list_resources(),
            await bank.client.list_resource_templates(),
            await bank.client.list_prompts(),
        ]

    for each in listed:
        assert MAIL not in each.model_dump_json()
        assert "[EMAIL_1]" in each.model_dump_json()


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"to": 7}, "to"),
        ({"to": "x"}, "to"),
        ({"to": "QX-1", "amount": 0}, "amount"),
        ({"to": "QX-1", "lines": [{"n": "1"}, {"n": 2}]}, "lines[1].n"),
        ({"to": "QX-1", "kind": "slow"}, "kind"),
    ],
)
async def test_arguments_are_validated_against_the_whole_schema_at_every_door(
    given: dict[str, Any], fault: str, running: MakeApp, tmp_path: Path, home: Path
) -> None:
    async with doors(running, tmp_path, home) as bank:
        code = f"import bank\ntool = bank.transfer\ntool(**{given!r})"
        told = [
            (await bank.run(code)).text,
            text_of(await bank.pinned("transfer", **given)),
            (await bank.rest("bank.transfer", **given)).text,
        ]

    assert bank.arrived() == []
    assert all(f"`{fault}`" in each for each in told), told


FULL = "database or disk is full"


@asynccontextmanager
async def full_disk(home: Path) -> AsyncIterator[None]:
    """Let the journal take no row for the length of a context, as a full disk does."""
    path = home / "data" / "runs.db"
    tables = ("beginnings", "calls", "ends", "intents", "decisions", "reveals")
    with closing(sqlite3.connect(path, isolation_level=None)) as journal:
        for table in tables:
            journal.execute(
                f"CREATE TRIGGER full_{table} BEFORE INSERT ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{FULL}'); END"
            )
        yield
        for table in tables:
            journal.execute(f"DROP TRIGGER full_{table}")


def verified(home: Path) -> Verified:
    return check_log(home / "data" / "runs.db")


@pytest.mark.parametrize("mode", ["refuse", "continue"])
async def test_what_cannot_be_recorded_is_not_done_or_the_gap_is_named(
    mode: str, running: MakeApp, tmp_path: Path, home: Path
) -> None:
    toml = f'[audit]\non_failure = "{mode}"\n'
    async with doors(running, tmp_path, home, toml=toml) as bank:
        await bank.pinned("balance", account="1")
        async with full_disk(home):
            made = [
                (await bank.run("import bank\nbank.transfer(to='QX')")).text,
                text_of(await bank.pinned("transfer", to="QX")),
                (await bank.rest("bank.transfer", to="QX")).text,
                (await bank.http.post("/memory/notes", json={"content": "a note"})).text,
            ]
            read = await bank.pinned("balance", account="2")
        await bank.pinned("balance", account="3")
        notes = (await bank.http.get("/memory/notes")).json()["total"]
    found = verified(home)

    refused = [f"was not called: it changes something, and the journal cannot be written ({FULL})"]
    transfers = [each for each in bank.arrived() if each["name"] == "transfer"]
    if mode == "refuse":
        assert all(refused[0] in each for each in made), made
        assert (transfers, notes) == ([], 0)
    else:
        assert "1 changing call went unrecorded" in made[0]
        assert (len(transfers), notes) == (3, 1)
    assert not read.is_error
    assert found.fault is None
    [gap] = found.gaps
    assert FULL in gap


async def test_replayed_reads_of_resources_are_followed_again(
    running: MakeApp, tmp_path: Path, home: Path
) -> None:
    policy = rule("ask", "bank.close") + rule("deny", "bank.transfer", tainted=True)
    toml = "[servers.bank]\nuntrusted = true\n"
    code = """
import bank, tools
page = tools.read("bank", "bank://page")
bank.close(account="1")
bank.transfer(to=page.split()[12])
"""
    async with doors(running, tmp_path, home, policy=policy, toml=toml) as bank:
        frozen = await bank.run(code)
        approvals = bank.toolfold.app.border.trust.approvals
        [asked] = approvals.pending()
        approvals.decide(asked.id, "approved", most=1, by="test")
        resumed = await bank.toolfold.app.runtime.resume(frozen.run_id)

    assert "contains an answer of tools.read (call 1)" in resumed.text
    assert [each.get("name") for each in bank.arrived()] == [None, "close"]
