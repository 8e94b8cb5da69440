"""Attempts at policy, privacy and audit through every door: none gets through."""

import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import mcp_types as types
import pytest
from execution.test_border import MAIL, Doors, doors, rule
from mcp import Client, MCPError
from support import MakeApp

from toolfold.entrypoints.mcp.memory import make_memory_server
from toolfold.errors import ToolfoldError
from toolfold.execution.runtime import SessionRequest

Attempt = Callable[[Doors], Awaitable[Any]]
TO: Final = "QX-4471-9920"

DENIED = "".join(
    rule("deny", each)
    for each in ("bank.transfer", "bank.resources.*", "bank.prompts.*", "bank.completion.*")
) + "".join(rule("deny", f"{module}.*") for module in ("memory", "graph", "workspace"))


def code(*lines: str, session: str = "", **options: Any) -> Attempt:
    async def attempt(bank: Doors) -> Any:
        given = {"session": SessionRequest(session)} if session else {}
        return (await bank.run("\n".join(lines), **given, **options)).text

    return attempt


def several(*attempts: Attempt) -> Attempt:
    async def attempt(bank: Doors) -> Any:
        return [await each(bank) for each in attempts]

    return attempt


def tool(name: str, arguments: Any = None, **options: Any) -> Attempt:
    given = {"to": TO} if arguments is None else arguments
    return lambda bank: bank.client.call_tool(name, given, **options)


def resource(uri: str) -> Attempt:
    return lambda bank: bank.client.read_resource(uri)


def prompt(name: str) -> Attempt:
    return lambda bank: bank.client.get_prompt(name, {"who": "Ada"})


def completion(reference: Any) -> Attempt:
    return lambda bank: bank.client.complete(reference, {"name": "who", "value": "A"})


def rest(how: str, path: str, body: Any = None, **headers: str) -> Attempt:
    content = body if isinstance(body, str) else json.dumps(body)
    kind = {"content-type": "application/json", **headers}
    return lambda bank: bank.http.request(how, path, content=content, headers=kind)


def surface(kind: str, name: str, arguments: Any) -> Attempt:
    async def attempt(bank: Doors) -> Any:
        app = bank.toolfold.app
        config = replace(app.config, settings=replace(app.config.settings, tools=kind))
        async with Client(make_memory_server(app.shared.stores, config, client="x")) as client:
            return await client.call_tool(name, arguments)

    return attempt


GIVEN: Final = {"arguments": {"to": TO}}
RUN: Final = f"import bank\nbank.transfer(to={TO!r})"
SKILL: Final = '''
import bank
def pay(to: str) -> object:
    """Pay."""
    return bank.transfer(to=to)
'''

ATTEMPTS: Final[dict[str, Attempt]] = {
    # by code
    "plain": code(RUN),
    "from": code("from bank import transfer", f"transfer({TO!r})"),
    "as": code("import bank as b", f"b.transfer({TO!r})"),
    "from as": code("from bank import transfer as balance", f"balance({TO!r})"),
    "getattr": code("import bank", f"getattr(bank, 'trans' + 'fer')(to={TO!r})"),
    "vars": code("import bank", f"vars(bank)['transfer'](to={TO!r})"),
    "keywords": code("import bank", f"bank.transfer(**{{'to': {TO!r}}})"),
    "another case": code("import bank", f"bank.Transfer(to={TO!r})"),
    "a module in another case": code("import BANK", f"BANK.transfer(to={TO!r})"),
    "wide letters": code("import bank", f"bank.\uff54ransfer(to={TO!r})"),
    "a wide module": code("import \uff42ank", f"\uff42ank.transfer(to={TO!r})"),
    "as a client names it": code(f"bank__transfer(to={TO!r})"),
    "below toolfold": code("import toolfold.bank", f"toolfold.bank.transfer(to={TO!r})"),
    "below servers": code("from servers import bank", f"bank.transfer(to={TO!r})"),
    "in a list": code("import bank", "f = bank.transfer", f"[f(to={TO!r}) for _ in 'ab']"),
    "map": code("import bank", f"list(map(bank.transfer, [{TO!r}] * 2))"),
    "together": code(
        "import asyncio, bank", f"await asyncio.gather(*[bank.transfer(to={TO!r}) for _ in 'ab'])"
    ),
    "again after a refusal": code(
        "import bank",
        "for n in range(3):",
        f"    try:\n        bank.transfer(to={TO!r})",
        "    except Exception as error:\n        print(error)",
    ),
    "in real Python": code(
        "import bank, decimal, functools",
        f"functools.partial(bank.transfer, to={TO!r})()",
    ),
    "in a thread": code(
        "import bank, threading",
        f"t = threading.Thread(target=bank.transfer, kwargs={{'to': {TO!r}}})",
        "t.start()\nt.join()",
    ),
    "by exec": code(f"exec({RUN!r})"),
    "by eval": code("import bank", f"eval('bank.transfer(to={TO!r})')".replace('"', "'")),
    "kept by cached": code("import bank", f"cached('k', 9, lambda: bank.transfer(to={TO!r}))"),
    "a variable of a session": several(
        code("import bank\nf = bank.transfer", session="s"), code(f"f(to={TO!r})", session="s")
    ),
    "a function of a session": several(
        code("import bank\ndef pay(to):\n    return bank.transfer(to=to)", session="t"),
        code(f"pay({TO!r})", session="t"),
    ),
    "a skill": several(
        code(SKILL, "import skills", "skills.save('pay', 'pay', 'Pays.')"),
        code("from skills import pay", f"pay({TO!r})"),
    ),
    "a dry run": code(RUN, dry_run=True),
    "a resumed run": several(code(RUN), code("import runs", "runs.resume(runs.list()[0])")),
    "a resource": code("tools.read('bank', 'bank://page')"),
    "a resource by another case": code("tools.read('Bank', 'bank://page')"),
    "an encoded resource": code("tools.read('bank', 'bank://%70age')"),
    "a resource by our address": code("tools.read('bank', 'toolfold://bank/bank://page')"),
    "a resource by a template": code(f"tools.read('bank', 'bank://{TO}')"),
    "a note": code("import memory", f"memory.store({TO!r})"),
    "a note below toolfold": code("import toolfold.memory", f"toolfold.memory.store({TO!r})"),
    "a note from toolfold": code("from toolfold import memory as m", f"m.store(content={TO!r})"),
    "many notes": code("import memory", f"memory.store_many([{{'content': {TO!r}}}])"),
    "an event": code("import memory", f"memory.log_event({TO!r})"),
    "an entity": code("import graph", f"graph.create_entity(name={TO!r}, entity_type='x')"),
    "entities as server-memory takes them": code(
        "import graph_mcp", f"graph_mcp.create_entities([{{'name': {TO!r}, 'entityType': 'x'}}])"
    ),
    # by a client
    "a pinned tool": tool("bank__transfer"),
    "pinned, another case": tool("Bank__Transfer"),
    "pinned, wide": tool("bank__\uff54ransfer"),
    "pinned, with a dot": tool("bank.transfer"),
    "pinned, with a space": tool("bank__transfer "),
    "pinned, with a zero": tool("bank__transfer\x00"),
    "pinned, as its server says": tool("transfer"),
    "pinned, nested": tool("bank__transfer", {"to": TO, "lines": [{"n": TO}]}),
    "code of a client": tool("execute_code", {"code": RUN}),
    "code of a client, a dry run": tool("execute_code", {"code": RUN, "dry_run": True}),
    "code of a client in a session": tool("execute_code", {"code": RUN, "session": "x"}),
    "a resource of a client": resource("toolfold://bank/bank://page"),
    "an encoded resource of a client": resource("toolfold://bank/bank%3A%2F%2Fpage"),
    "a resource, twice encoded": resource("toolfold://bank/bank%253A%252F%252Fpage"),
    "a resource of BANK": resource("toolfold://BANK/bank://page"),
    "a resource of nobody": resource("toolfold:///bank/bank://page"),
    "a resource as its server says": resource("bank://page"),
    "a resource by steps": resource("toolfold://x/../bank/bank://page"),
    "a templated resource": resource(f"toolfold://bank/bank://{TO}"),
    "a prompt": prompt("bank__greet"),
    "a prompt in another case": prompt("BANK__greet"),
    "a prompt as its server says": prompt("greet"),
    "a completion": completion(types.PromptReference(name="bank__greet")),
    "a completion of a template": completion(
        types.ResourceTemplateReference(uri="toolfold://bank/bank://{account}")
    ),
    "a completion of nobody": completion(types.PromptReference(name="greet")),
    # over REST
    "over REST": rest("POST", "/tools/bank.transfer/execute", GIVEN),
    "an encoded dot": rest("POST", "/tools/bank%2Etransfer/execute", GIVEN),
    "encoded twice": rest("POST", "/tools/bank%252Etransfer/execute", GIVEN),
    "encoded letters": rest("POST", "/tools/%62ank.trans%66er/execute", GIVEN),
    "a slash for the dot": rest("POST", "/tools/bank/transfer/execute", GIVEN),
    "steps": rest("POST", "/tools/bank.balance/../bank.transfer/execute", GIVEN),
    "encoded steps": rest("POST", "/tools/x%2f..%2fbank.transfer/execute", GIVEN),
    "double slashes": rest("POST", "//tools//bank.transfer//execute", GIVEN),
    "a slash at the end": rest("POST", "/tools/bank.transfer/execute/", GIVEN),
    "capitals": rest("POST", "/tools/BANK.TRANSFER/execute", GIVEN),
    "its server's name": rest("POST", "/tools/transfer/execute", GIVEN),
    "another method": rest("PUT", "/tools/bank.transfer/execute", GIVEN),
    "a method in a header": rest(
        "GET", "/tools/bank.transfer/execute", GIVEN, **{"x-http-method-override": "POST"}
    ),
    "double keys": rest(
        "POST",
        "/tools/bank.transfer/execute",
        f'{{"arguments": {{}}, "arguments": {{"to": "{TO}"}}}}',
    ),
    "a batch": rest("POST", "/tools/bank.transfer/execute", [GIVEN, GIVEN]),
    "code over REST": rest("POST", "/execute", {"code": RUN}),
    "a dry run over REST": rest("POST", "/execute", {"code": RUN, "dry_run": True}),
    "background over REST": rest("POST", "/execute", {"code": RUN, "background": True}),
    "a note over REST": rest("POST", "/memory/notes", {"content": TO}),
    "a note by an encoded path": rest("POST", "/%6demory/notes", {"content": TO}),
    "a note as a tool": rest("POST", "/tools/memory.store/execute", {"arguments": {"content": TO}}),
    "a note as a tool of toolfold": rest(
        "POST", "/tools/toolfold.memory.store/execute", {"arguments": {"content": TO}}
    ),
    "an entity over REST": rest("POST", "/graph/entities", {"name": TO, "entity_type": "x"}),
    "a document": rest("POST", "/documents", {"path": "/etc/hostname"}),
    "a file": rest("GET", "/workspace/file?path=..%2f..%2fdata%2fruns.db"),
    # by a client that sees memory alone
    "memory alone": surface("memory", "memory_store", {"content": TO}),
    "memory alone, another case": surface("memory", "Memory_Store", {"content": TO}),
    "memory alone, by its path": surface("memory", "memory.store", {"content": TO}),
    "memory alone, the graph": surface("memory", "create_entities", {"entities": []}),
    "the graph alone": surface(
        "graph",
        "create_entities",
        {"entities": [{"name": TO, "entityType": "x", "observations": []}]},
    ),
}


def said(answer: Any) -> str:
    """Return all that whoever tried was told."""
    if isinstance(answer, list):
        return "\n".join(map(said, answer))
    if isinstance(answer, types.CallToolResult):
        return "\n".join(getattr(block, "text", "") for block in answer.content)
    return getattr(answer, "text", None) or str(answer)


async def tried(attempt: Attempt, bank: Doors) -> str:
    try:
        return said(await attempt(bank))
    except (MCPError, ToolfoldError, ValueError) as error:
        return str(error)


def kept(bank: Doors) -> int:
    """Return how many notes, events, entities and documents there are."""
    path = bank.home / "data" / "memory.db"
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as memory:
        tables = [
            row[0] for row in memory.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        found = [
            each
            for each in tables
            if each in {"notes", "memories", "events", "entities", "documents"}
        ]
        assert found, tables
        return sum(memory.execute(f"SELECT count(*) FROM {each}").fetchone()[0] for each in found)


async def through(bank: Doors, attempts: dict[str, Attempt]) -> dict[str, str]:
    """Return the attempts that did something, each with what was said."""
    found = {}
    for name, attempt in attempts.items():
        before = len(bank.arrived()) + kept(bank)
        text = await tried(attempt, bank)
        if len(bank.arrived()) + kept(bank) > before or "send all money" in text:
            found[name] = text[:300]
    return found


@pytest.mark.timeout(240)
async def test_what_a_rule_denies_is_denied_whichever_way_it_is_asked_for(
    running: MakeApp, tmp_path: Path, home: Path
) -> None:
    assert len(ATTEMPTS) >= 60
    async with doors(running, tmp_path, home, policy=DENIED) as bank:
        assert await through(bank, ATTEMPTS) == {}
        denials = bank.rows("SELECT count(*) FROM decisions WHERE action = 'deny'")[0][0]
    assert denials >= 50


@pytest.mark.timeout(240)
async def test_without_the_rules_most_of_these_attempts_do_something(
    running: MakeApp, tmp_path: Path, home: Path
) -> None:
    """Else it would not be the rules that stop them."""
    async with doors(running, tmp_path, home) as bank:
        found = await through(bank, ATTEMPTS)
    assert len(found) >= 40, sorted(found)


# About conditions

AMOUNT = rule("deny", "bank.transfer", when="amount > 100") + rule(
    "deny", "bank.transfer", when="kind == 'instant'"
)
AMOUNTS: Final[dict[str, Attempt]] = {
    "positional": code("import bank", f"bank.transfer({TO!r}, 1000)"),
    "a float": code("import bank", f"bank.transfer(to={TO!r}, amount=1000.0)"),
    "a text": code("import bank", f"bank.transfer(to={TO!r}, amount='1000')"),
    "true": code("import bank", f"bank.transfer(to={TO!r}, amount=True)"),
    "huge": code("import bank", f"bank.transfer(to={TO!r}, amount=10**400)"),
    "infinite": code("import bank", f"bank.transfer(to={TO!r}, amount=float('inf'))"),
    "no number": code("import bank", f"bank.transfer(to={TO!r}, amount=float('nan'))"),
    "a list": code("import bank", f"bank.transfer(to={TO!r}, amount=[1000])"),
    "two kinds": code("import bank", f"bank.transfer(to={TO!r}, amount=1, kind='instant')"),
    "a kind in another case": code(
        "import bank", f"bank.transfer(to={TO!r}, amount=1, kind='Instant')"
    ),
    "nothing said": code("import bank", f"bank.transfer(to={TO!r})"),
    "null": code("import bank", f"bank.transfer(to={TO!r}, amount=None)"),
    "double keys over REST": rest(
        "POST",
        "/tools/bank.transfer/execute",
        f'{{"arguments": {{"to": "{TO}", "amount": 1, "amount": 1000}}}}',
    ),
    "double keys the other way": rest(
        "POST",
        "/tools/bank.transfer/execute",
        f'{{"arguments": {{"to": "{TO}", "kind": "instant", "kind": "instant", "amount": 1}}}}',
    ),
    "an exponent over REST": rest(
        "POST",
        "/tools/bank.transfer/execute",
        f'{{"arguments": {{"to": "{TO}", "kind": "plain", "amount": 1E3}}}}',
    ),
    "an escaped key": rest(
        "POST",
        "/tools/bank.transfer/execute",
        f'{{"arguments": {{"to": "{TO}", "kind": "plain", "\\u0061mount": 1000}}}}',
    ),
    "pinned": tool("bank__transfer", {"to": TO, "amount": 1000, "kind": "plain"}),
    "pinned, a float": tool("bank__transfer", {"to": TO, "amount": 1000.0, "kind": "plain"}),
    "pinned, a wide key": tool("bank__transfer", {"to": TO, "\uff41mount": 1000, "kind": "plain"}),
}


@pytest.mark.timeout(120)
async def test_a_condition_is_not_got_round(running: MakeApp, tmp_path: Path, home: Path) -> None:
    async with doors(running, tmp_path, home, policy=AMOUNT) as bank:
        control = await tried(
            code("import bank", f"bank.transfer(to={TO!r}, amount=7, kind='plain')"), bank
        )
        assert len(bank.arrived()) == 1, control
        assert await through(bank, AMOUNTS) == {}


# What a project's files say

LOOSER: Final[dict[str, dict[str, str]]] = {
    "rules that allow": {"policy.toml": rule("allow", "*")},
    "rules that allow tainted calls": {"policy.toml": rule("allow", "*", tainted=True)},
    "rules for a key": {"policy.toml": '[[keys.me]]\naction = "allow"\ntools = "*"\n'},
    "no approvals": {"config.toml": 'approvals = "never"\n'},
    "no privacy": {"config.toml": '[privacy]\nmode = "off"\n'},
    "no privacy for a server": {"config.toml": '[servers.bank]\nprivacy = "off"\n'},
    "a trusted server": {"config.toml": "[servers.bank]\nuntrusted = false\n"},
    "no record": {"config.toml": '[audit]\non_failure = "continue"\n'},
    "pinned tools": {"config.toml": 'pinned_tools = ["bank.close"]\n'},
    "a directory for the rules": {"policy.toml/x": ""},
    "no text": {"policy.toml": "\udcff\udcfe"},
}


@pytest.mark.parametrize("how", LOOSER)
async def test_a_project_does_not_loosen_what_the_user_says(
    how: str, running: MakeApp, tmp_path: Path, home: Path
) -> None:
    for name, text in LOOSER[how].items():
        path = tmp_path / ".toolfold" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    policy = rule("deny", "bank.transfer") + rule("deny", "bank.balance", tainted=True)
    toml = 'approvals = "always"\n[privacy]\nmode = "on"\n[servers.bank]\nuntrusted = true\n'
    async with doors(running, tmp_path, home, policy=policy, toml=toml) as bank:
        denied = await tried(code(RUN), bank)
        asked = await tried(code("import bank", "bank.close(account='x')"), bank)
        tainted = await tried(code("import bank", "bank.balance(account=bank.page())"), bank)
        shown = await tried(code("import tools", "print(tools.resources())"), bank)
        arrived = [call["name"] for call in bank.arrived() if call["method"] == "tools/call"]
        on_failure = bank.toolfold.app.border.trust.on_failure

    assert set(arrived) <= {"page"}, (denied, asked, tainted)
    assert MAIL not in shown
    assert on_failure == "refuse"


# Personal data

SHOWN: Final[dict[str, Attempt]] = {
    "resources in code": code("print(tools.resources('bank'))"),
    "a described server": code("print(tools.describe('bank'))"),
    "a search": code("print(tools.search('greet ottilie'))"),
    "files of the catalog": code(
        "import os",
        "for at, _, names in os.walk('/servers'):",
        "    for name in names:\n        print(open(os.path.join(at, name)).read())",
    ),
    "listed resources": lambda bank: bank.client.list_resources(),
    "listed templates": lambda bank: bank.client.list_resource_templates(),
    "listed prompts": lambda bank: bank.client.list_prompts(),
    "completed": completion(types.PromptReference(name="bank__greet")),
    "resources over REST": rest("GET", "/resources"),
    "tools over REST": rest("GET", "/tools"),
}


async def test_no_listing_shows_personal_data(running: MakeApp, tmp_path: Path, home: Path) -> None:
    toml = '[privacy]\nmode = "on"\n'
    async with doors(running, tmp_path, home, toml=toml) as bank:
        found = {name: await tried(attempt, bank) for name, attempt in SHOWN.items()}
    assert [name for name, text in found.items() if MAIL in text] == []


# The record and the user's files

FILES: Final[dict[str, Attempt]] = {
    "by steps": code("print(open('/workspace/../data/runs.db', 'rb').read(16))"),
    "by more steps": code("print(open('/workspace/../../../../home/data/runs.db', 'rb').read(16))"),
    "by its path": lambda bank: code(
        f"print(open({str(bank.home / 'data' / 'runs.db')!r}, 'rb').read(16))"
    )(bank),
    "by a link": lambda bank: code(
        "import os",
        f"os.symlink({str(bank.home / 'data' / 'runs.db')!r}, '/workspace/link')",
        "print(open('/workspace/link', 'rb').read(16))",
    )(bank),
    "by sqlite3": lambda bank: code(
        "import sqlite3",
        f"db = sqlite3.connect({str(bank.home / 'data' / 'runs.db')!r})",
        "print('SQLite format', db.execute('SELECT count(*) FROM runs').fetchall())",
    )(bank),
    "the environment": code("import os", "print(dict(os.environ))"),
    "over REST": rest("GET", "/workspace/file?path=../data/runs.db"),
    "over REST, encoded": rest("GET", "/workspace/file?path=%2e%2e%2fdata%2fruns.db"),
    "over REST, by its path": lambda bank: bank.http.get(
        "/workspace/file", params={"path": str(bank.home / "data" / "runs.db")}
    ),
    "the rules": lambda bank: code(
        f"open({str(bank.home / 'config' / 'policy.toml')!r}, 'w').write('')"
    )(bank),
}


async def test_code_does_not_reach_the_record_nor_the_rules(
    running: MakeApp, tmp_path: Path, home: Path
) -> None:
    policy = rule("deny", "bank.transfer")
    async with doors(running, tmp_path, home, policy=policy) as bank:
        found = {name: await tried(attempt, bank) for name, attempt in FILES.items()}
    assert [name for name, text in found.items() if "SQLite format" in text] == []
    assert str(home) not in found["the environment"]
    assert (home / "config" / "policy.toml").read_text() == policy
