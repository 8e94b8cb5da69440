"""Tools called by themselves over REST: placeholders for the caller, real values for the server."""

import base64
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from rest_door import door
from support import MakeApp, test_server

TOML = '[privacy]\nmode = "on"\n[servers.mailer]\nreceives = ["NAME"]\n'


async def test_a_tool_called_over_rest_answers_with_placeholders_and_gets_real_values(
    running: MakeApp, tmp_path: Path, home: Path
) -> None:
    servers = {
        name: test_server("people", tmp_path / f"{name}.jsonl") for name in ("crm", "mailer")
    }
    async with running(servers, toml=TOML) as toolfold, door(toolfold.app) as http:

        async def call(tool: str, **arguments: Any) -> Any:
            answer = await http.post(f"/tools/{tool}/execute", json={"arguments": arguments})
            return answer.json()

        rows = (await call("crm.list_customers"))["result"]
        echoed = await call("mailer.echo", value=rows[0]["name"])
        refused = await call("mailer.echo", value=rows[0]["email"])
        failed = await call("crm.fail", value="x")
        file = await call("crm.attachment")

    assert rows[0]["email"] == "[EMAIL_1]"
    assert echoed["result"]["value"] == "[NAME_1]"
    assert "may not receive" in json.dumps(refused)
    assert "no mailbox for [EMAIL_1]" in json.dumps(failed)
    [blob] = file["blobs"].values()
    assert json.loads(base64.b64decode(blob["base64"]))[0]["name"] == "[NAME_1]"
    [received] = (tmp_path / "mailer.jsonl").read_text().splitlines()
    assert json.loads(received)["arguments"] == {"value": "Ottilie Brandhuber"}
    journal = b"".join(path.read_bytes() for path in (home / "data").glob("runs.db*"))
    assert b"[EMAIL_1]" in journal
    assert b"Ottilie" not in journal
    assert b"@example.org" not in journal


async def test_rules_decide_about_what_is_sent_and_the_audit_log_has_every_reveal(
    running: MakeApp, tmp_path: Path, home: Path
) -> None:
    servers = {
        name: test_server("people", tmp_path / f"{name}.jsonl") for name in ("crm", "mailer")
    }
    rule = """
[[policy]]
action = "deny"
tools = "mailer.*"
when = "value contains '@quillfeather'"
"""
    async with (
        running(servers, toml='[privacy]\nmode = "on"\n') as toolfold,
        door(toolfold.app) as http,
    ):
        (home / "config" / "policy.toml").write_text(rule)

        async def call(tool: str, **arguments: Any) -> Any:
            answer = await http.post(f"/tools/{tool}/execute", json={"arguments": arguments})
            return answer.json()

        rows = (await call("crm.list_customers"))["result"]
        await call("mailer.echo", value=rows[0]["email"])
        refused = await call("mailer.echo", value=rows[1]["email"])

    assert "a rule forbids it" in json.dumps(refused)
    assert len((tmp_path / "mailer.jsonl").read_text().splitlines()) == 1
    with closing(sqlite3.connect(home / "data" / "runs.db")) as journal:
        reveals = journal.execute("SELECT upstream, kind, count FROM reveals").fetchall()
    assert reveals == [("mailer", "EMAIL", 1)]
