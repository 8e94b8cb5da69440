"""Attempts at rules by scripts, commands, hooks and the dashboard: none gets through."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2
import pytest
from entrypoints.rest_door import LOCAL, door
from execution.test_border_matrix import Accesses, all_doors
from hooks.home import said, transcript
from support import MakeApp

from toolfold.app import guest_place
from toolfold.entrypoints.dashboard.sessions import BrowserSessions
from toolfold.entrypoints.hooks.service import Hooks
from toolfold.errors import ToolfoldError
from toolfold.memory.models import as_json
from toolfold.relay.wire import decode, encode

pytestmark = pytest.mark.anyio

SECRET: Final = "the vault door opens with marzipan"
NEW: Final = "QX-4471-9920"
NOTE: Final = {"content": NEW}
ENTITY: Final = {"name": NEW, "entity_type": "person"}


@dataclass
class Own:
    """The doors of the user's own, and what is behind them."""

    accesses: Accesses
    pages: httpx2.AsyncClient
    note: str
    """The hash of a note that is there."""
    directory: Path

    async def memory(self, verb: str, **arguments: Any) -> Any:
        """Ask memory itself, which no rule is about."""
        app = self.accesses.bank.toolfold.app
        return as_json(await app.shared.memories.call(guest_place(app.config), verb, arguments))

    async def seed(self) -> None:
        """Keep one note, to be read and deleted, and nothing else."""
        tags = ["kept", "important"]
        self.note = str(await self.memory("memory.store", content=SECRET, tags=tags))
        listed = await self.memory("memory.list", limit=50)
        for each in listed["memories"]:
            if each["hash"] != self.note:
                await self.memory("memory.delete", hash=each["hash"])
        await self.memory("graph.delete_entities", entityNames=[NEW])

    async def state(self) -> str:
        """Return all that is kept and all that arrived, to see whether anything changed."""
        self.accesses.bank.toolfold.app.shared.journal.flush()
        notes = await self.memory("memory.list", limit=50)
        listed = sorted(f"{each['hash']} {each['tags']}" for each in notes["memories"])
        graph, events = (
            await self.memory("graph.read_graph"),
            await self.memory("memory.recall_events", limit=50),
        )
        documents = await self.memory("memory.documents")
        arrived = self.accesses.bank.arrived()
        return json.dumps([listed, graph, events, documents, arrived], default=str)


Attempt = Callable[[Own], Awaitable[Any]]


def script(verb: str, /, **arguments: Any) -> Attempt:
    return line(verb=verb, arguments=arguments)


def line(**request: Any) -> Attempt:
    """Send a line to the daemon's socket as it is."""

    async def attempt(own: Own) -> Any:
        text = json.dumps(request).replace("NOTE_HASH", own.note)
        lines = own.accesses.script_lines
        await lines.send(encode({"id": 1, **json.loads(text)}))
        heard = []
        while True:
            answer = decode(await lines.receive()) or {}
            heard.append(answer)
            if "page" not in answer and "progress" not in answer:
                return heard

    return attempt


def command(verb: str, /, **arguments: Any) -> Attempt:
    async def attempt(own: Own) -> Any:
        given = json.loads(json.dumps(arguments).replace("NOTE_HASH", own.note))
        return await own.accesses.terminal(verb, **given)

    return attempt


def hook(name: str, /, **payload: str) -> Attempt:
    async def attempt(own: Own) -> Any:
        app = own.accesses.bank.toolfold.app
        path = transcript(own.directory / "t.jsonl", [said("user", NEW), said("assistant", "Yes")])
        told = {"transcript_path": str(path), **payload}
        return await Hooks(app.shared.verb_doors).answer(
            app.config, {"hook": name, "payload": told}
        )

    return attempt


def page(path: str, /, **form: str) -> Attempt:
    async def attempt(own: Own) -> Any:
        place = path.replace("NOTE_HASH", own.note)
        if not form:
            return await own.pages.get(place, follow_redirects=True)
        headers = {"origin": LOCAL}
        return await own.pages.post(place, data=form, headers=headers, follow_redirects=True)

    return attempt


ATTEMPTS: Final[dict[str, Attempt]] = {
    # by a script, over the daemon's socket
    "a script stores": script("memory.store", **NOTE),
    "a script stores many": script("memory.store_batch", notes=[NOTE]),
    "a script remembers": script("memory.remember", **NOTE),
    "a script searches": script("memory.search", query="vault door"),
    "a script recalls": script("memory.recall", query="what opens the vault door"),
    "a script searches page by page": line(
        verb="memory.search_iter", arguments={"query": "vault"}, pages=True
    ),
    "a script reads a note": script("memory.get", hash="NOTE_HASH"),
    "a script changes a note": script("memory.update", hash="NOTE_HASH", tags=["x"]),
    "a script deletes a note": script("memory.delete", hash="NOTE_HASH"),
    "a script forgets a note": script("memory.forget", hash="NOTE_HASH"),
    "a script deletes by tag": script("memory.delete_by_tag", tags="kept"),
    "a script replaces a note": script("memory.update", hash="NOTE_HASH", **NOTE),
    "a script makes an entity": script("graph.create_entity", **ENTITY),
    "a script makes an entity by its other name": script("memory.create_entity", **ENTITY),
    "a script records an event": script("memory.record_event", event_type=NEW),
    "a script tells its progress": line(verb="memory.store", arguments=NOTE, progress=True),
    "a script names another namespace": line(
        verb="memory.store", arguments=NOTE, namespace="default"
    ),
    "a script names a namespace by steps": line(
        verb="memory.store", arguments=NOTE, namespace="../x"
    ),
    "a script says who it is": line(verb="memory.store", arguments=NOTE, client="terminal"),
    "a script says what door it is": line(verb="memory.store", arguments=NOTE, door="terminal"),
    "a script in another case": script("Memory.Store", **NOTE),
    "a script below toolfold": script("toolfold.memory.store", **NOTE),
    "a script with a blank": script("memory.store ", **NOTE),
    "a script calls a server": script("bank.transfer", to=NEW),
    "a script runs code": script("execute_code", code=f"bank.transfer(to={NEW!r})"),
    "a script asks for a file of ours": script("memory.export_file", path="all.jsonl"),
    # by a command at a terminal where nobody is asked
    "a command stores": command("memory.store", **NOTE),
    "a command searches": command("memory.search", query="vault door"),
    "a command lists": command("memory.list"),
    "a command deletes": command("memory.delete", hash="NOTE_HASH"),
    "a command purges": command("memory.purge"),
    "a command makes an entity": command("graph.create_entity", **ENTITY),
    "a command consolidates": command("memory.consolidate"),
    "a command reads the whole graph": command("graph.read_graph"),
    # by hooks
    "a session begins": hook("session-start", source="startup"),
    "a session is resumed": hook("session-start", source="resume", session_id="a"),
    "a session begins anew": hook("session-start", source="clear", session_id="b"),
    "a prompt asks": hook("prompt", prompt="remember what opens the vault door", session_id="c"),
    "a prompt turns": hook("prompt", prompt="the vault door and marzipan", session_id="d"),
    "a compaction": hook("pre-compact", session_id="e", trigger="auto"),
    "an end": hook("session-end", session_id="f", reason="logout"),
    "an end of a session with an odd name": hook("session-end", session_id="x','y", reason="z"),
    # by the dashboard, in a browser with a session
    "a page stores": page("/ui/memory", content=NEW, tags="x"),
    "a page searches": page("/ui/memory?query=vault+door"),
    "a page lists": page("/ui/memory"),
    "a page lists a tag": page("/ui/memory?tags=kept"),
    "a page reads a note": page("/ui/memory/notes/NOTE_HASH"),
    "a page changes a note": page("/ui/memory/notes/NOTE_HASH", content=NEW, tags=""),
    "a page deletes a note": page("/ui/memory/notes/NOTE_HASH/delete", sure="yes"),
    "a page merges notes": page("/ui/memory/merge", hashes="NOTE_HASH", content=NEW),
    "a page exports": page("/ui/memory/export"),
    "a page consolidates": page("/ui/memory/consolidation", horizon="daily"),
    "a page tries a tool": page("/ui/tools/bank.transfer", to=NEW),
    "a page tries a tool in another case": page("/ui/tools/Bank.Transfer", to=NEW),
    "a page tries an encoded tool": page("/ui/tools/bank%2Etransfer", to=NEW),
    "a page tries a tool of ours": page("/ui/tools/memory.store", content=NEW),
    "a page tries a tool of toolfold": page("/ui/tools/toolfold.memory.store", content=NEW),
    "a page lists documents": page("/ui/memory/documents"),
    "a page forgets a document": page("/ui/memory/documents/forget", path="/etc/hostname"),
    "a page draws the graph": page("/ui/memory/graph/data"),
}


@asynccontextmanager
async def own_doors(running: MakeApp, tmp_path: Path, home: Path, case: str) -> AsyncIterator[Own]:
    browsers = BrowserSessions()
    async with all_doors(running, tmp_path, home, "auto", case, "nothing") as accesses:
        app = accesses.bank.toolfold.app
        async with door(app, browsers=browsers) as pages:
            entered = await pages.get(f"/ui/open?ticket={browsers.issue_ticket()}")
            assert entered.status_code == 303
            own = Own(accesses, pages, "", tmp_path)
            yield own


async def through(own: Own) -> dict[str, str]:
    """Return the attempts that changed or showed something, each with what was said."""
    found = {}
    for name, attempt in ATTEMPTS.items():
        await own.seed()  # an attempt before may have removed it
        before = await own.state()
        try:
            with anyio.fail_after(20):
                answer = await attempt(own)
            text = getattr(answer, "text", None) or str(answer)
        except ToolfoldError as error:
            text = str(error)
        if await own.state() != before or "marzipan" in text:
            found[name] = text[:300]
    return found


@pytest.mark.timeout(240)
@pytest.mark.parametrize("case", ["deny", "unparsable"])
async def test_no_door_of_the_users_gets_round_a_rule(
    case: str, running: MakeApp, tmp_path: Path, home: Path
) -> None:
    assert len(ATTEMPTS) >= 60
    async with own_doors(running, tmp_path, home, case) as own:
        assert await through(own) == {}


@pytest.mark.timeout(240)
async def test_without_rules_most_of_these_attempts_do_something(
    running: MakeApp, tmp_path: Path, home: Path
) -> None:
    """Else it would not be the rules that stop them."""
    async with own_doors(running, tmp_path, home, "no rule") as own:
        found = await through(own)
    assert len(found) >= 30, sorted(set(ATTEMPTS) - set(found))
