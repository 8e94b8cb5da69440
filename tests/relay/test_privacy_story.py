"""Customers from one server into another, by an agent that never sees who they are."""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from relay.conftest import User
from relay.peer import Peer, kill, wait_until
from support import ROOT, test_server

sys.path.insert(0, str(ROOT / "tests" / "servers"))

from people import ROWS, SECRETS

SETTINGS = """
pinned_tools = ["crm.letter"]

[privacy]
mode = "on"

[servers.mailer]
receives = ["NAME", "EMAIL"]
"""
MOVE = """
import crm, billing
rows = crm.list_customers()
print(rows)
for number, row in enumerate(rows):
    progress(number, len(rows), f"moving {row['name']}")
    billing.put(row=row)
with open("/workspace/moved.json", "w") as file:
    file.write(str(rows))
greeting = f"Dear {rows[0]['name']}"
rows
"""
FAIL = "import crm\ncrm.fail(value=rows[0]['email'])"
TRACE = "import crm\nrow = crm.list_customers()[1]\nint(row['phone'])"
REFUSED = "import crm, mailer\nmailer.put(row=crm.list_customers()[2])"
LARGE = "import crm\nprint(crm.export(rows=400))"


class Wire:
    """A client that keeps every byte that came towards the model."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.seen: list[dict[str, Any]] = []

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        answer = self.peer.ask(method, params)
        self.seen.append(answer)
        return answer

    def run(self, code: str) -> str:
        arguments = {"name": "execute_code", "arguments": {"code": code}}
        answer = self.ask("tools/call", **arguments, _meta={"progressToken": len(self.seen)})
        return "\n".join(block["text"] for block in answer["result"]["content"])


def spellings(value: str) -> set[bytes]:
    digits = "".join(filter(str.isdigit, value))
    texts = {value, value.casefold(), json.dumps(value)[1:-1], value.replace(" ", "")}
    texts |= {digits} if len(digits) > 7 else set()
    # SQLite has texts in UTF-8, but a stray UTF-16 copy would be as bad.
    return {text.encode(code) for text in texts for code in ("utf-8", "utf-16-le")}


def leaked(content: bytes) -> set[str]:
    return {value for value in SECRETS for text in spellings(value) if text in content}


def received(path: Path) -> list[Any]:
    return [json.loads(line).get("arguments") for line in path.read_text().splitlines()]


def test_customers_are_moved_and_nobody_but_the_servers_sees_them(
    user: User, tmp_path: Path
) -> None:
    user.configure(
        **{
            name: test_server("people", tmp_path / f"{name}.jsonl")
            for name in ("crm", "billing", "mailer")
        }
    )
    user.settings(SETTINGS)
    client = Wire(user.connect())

    moved = client.run(MOVE)
    assert "[NAME_1]" in moved
    assert "[EMAIL_3]" in moved
    assert received(tmp_path / "billing.jsonl") == [{"row": row} for row in ROWS]

    assert "no mailbox for [EMAIL_1]" in client.run(FAIL)
    assert "[PHONE_2]" in client.run(TRACE)
    assert "mailer may not receive" in client.run(REFUSED)
    assert not (tmp_path / "mailer.jsonl").exists()
    assert "[NAME_2]" in client.run(LARGE)
    letter = client.ask("tools/call", name="crm__letter", arguments={})
    assert "Dear [NAME_1],\\nwe could not reach you at [PHONE_1]." in json.dumps(letter["result"])
    greeting = client.ask("prompts/get", name="crm__greet", arguments={"who": "[NAME_1]"})
    assert "Greet [NAME_1], who is [EMAIL_1]." in json.dumps(greeting["result"])
    assert {"who": ROWS[0]["name"]} in received(tmp_path / "crm.jsonl")
    resource = client.ask("resources/read", uri="toolfold://crm/people://customers")
    assert "[NAME_3]" in json.dumps(resource["result"])

    # Another day: placeholders, variables and files are still good for the same.
    kill(user.daemon())
    assert "Dear [NAME_1]" in client.run("greeting")
    assert client.run("import billing\nbilling.put(row=greeting)")
    assert received(tmp_path / "billing.jsonl")[-1] == {"row": f"Dear {ROWS[0]['name']}"}

    examine(client, user)


def examine(client: Wire, user: User) -> None:
    """Look for real values in all that was said, and in all that is left."""
    wire = json.dumps([client.seen, client.peer.notifications], ensure_ascii=False).encode()
    assert b"moving [NAME_" in wire
    assert wire.count(b"[NAME_1]") > 5
    assert leaked(wire) == set()
    assert leaked(user.toolfold("runs", "show", "--json").stdout.encode()) == set()
    client.peer.close()
    kill(user.daemon())
    wait_until(lambda: not user.daemons, "the daemon is gone")
    # Read before the journal is opened, which puts its files in order.
    files = {path: path.read_bytes() for path in user.home.rglob("*") if path.is_file()}
    assert {"runs.db", "vaults.db", "moved.json"} <= {path.name for path in files}
    with closing(sqlite3.connect(user.home / "data" / "runs.db")) as journal:
        reveals = journal.execute("SELECT DISTINCT upstream, kind FROM reveals").fetchall()
    assert set(reveals) == {
        *(("billing", kind) for kind in ("NAME", "EMAIL", "PHONE")),
        *(("crm", kind) for kind in ("NAME", "EMAIL")),
    }
    assert {str(path): found for path, content in files.items() if (found := leaked(content))} == {}


def test_the_scan_finds_what_is_not_concealed(user: User, tmp_path: Path) -> None:
    user.configure(crm=test_server("people", tmp_path / "crm.jsonl"))
    client = Wire(user.connect())

    assert leaked(client.run("import crm\ncrm.list_customers()").encode()) == set(SECRETS)
    kill(user.daemon())
    journal = b"".join(path.read_bytes() for path in (user.home / "data").glob("runs.db*"))
    assert leaked(journal) == set(SECRETS)
