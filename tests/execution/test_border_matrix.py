"""Every door, kind of access, mode of approvals, ability and case: all from one table.

The table says what becomes of an access, and which rows the journal and the audit log get by it.
"""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, NamedTuple, get_args

import mcp_types as types
import pytest
from anyio import create_task_group, to_thread
from anyio.abc import SocketStream
from anyio.from_thread import BlockingPortal
from execution.test_border import Doors, door, full_disk, rule
from hooks.home import said, transcript
from mcp import Client, MCPError
from support import MakeApp, test_server

from toolfold.app import App
from toolfold.catalog.questions import Elicitor, Question, Reply
from toolfold.entrypoints.daemon.app_pool import AppPool
from toolfold.entrypoints.daemon.commands import SocketTerminal
from toolfold.entrypoints.daemon.verbs import VerbServer
from toolfold.entrypoints.hooks.program_review import ProgramReview
from toolfold.entrypoints.hooks.service import Hooks
from toolfold.entrypoints.mcp.lines import InFlight, LineStream
from toolfold.entrypoints.mcp.memory import make_memory_server
from toolfold.entrypoints.mcp.server import TOOL_USE, make_server
from toolfold.errors import ToolfoldError
from toolfold.execution.access import (
    Access,
    Completion,
    ForwardedCall,
    PromptText,
    ResourceContents,
    ResourceSubscription,
    ResourceValue,
    ToolCall,
    VerbAccess,
)
from toolfold.execution.context import Door
from toolfold.journal.runs import RunKind
from toolfold.jsontypes import JsonObject
from toolfold.relay.wire import decode, encode

MODES: Final = ("always", "auto", "never")
ABILITIES: Final = ("nothing", "elicitation", "hook")
EVIL: Final = "QX-4471-9920"
CASES: Final[dict[str, str]] = {
    "no rule": "",
    "deny": rule("deny", "*"),
    "ask": rule("ask", "*"),
    "tainted": rule("deny", "*", tainted=True),
    "more_than": rule("deny", "*", more_than=1),
    "unparsable": "[[policy]]\nnonsense = 1\n",
    "privacy": "",
    "disk full": "",
    "destructive": "",
    "dry run": "",
}


class Cell(NamedTuple):
    """What is done by a door."""

    changes: bool
    """Whether that changes anything."""
    run: RunKind
    """What the journal calls a run by this door."""
    calls: tuple[str, ...]
    """What it calls, each in a run of its own."""
    ruled: str = ""
    """What rules call that, where it is something else."""


CELLS: Final[dict[tuple[Door, str], Cell]] = {
    ("code", "tool"): Cell(True, "code", ("bank.transfer",)),
    ("code", "resource"): Cell(False, "code", ("tools.read",), "bank.resources.read"),
    ("code", "verb"): Cell(True, "code", ("memory.store",)),
    ("mcp", "tool"): Cell(True, "direct", ("bank.transfer",)),
    ("mcp", "resource"): Cell(False, "direct", ("bank.resources.read",)),
    ("mcp", "prompt"): Cell(False, "direct", ("bank.prompts.get",)),
    ("mcp", "completion"): Cell(False, "direct", ("bank.completion.complete",)),
    ("rest", "tool"): Cell(True, "request", ("bank.transfer",)),
    ("rest", "verb"): Cell(True, "request", ("memory.store",)),
    ("memory", "verb"): Cell(True, "direct", ("memory.store",)),
    ("script", "verb"): Cell(True, "request", ("memory.store",)),
    ("hook", "verb"): Cell(
        True, "request", ("memory.store", "memory.recall_events", "memory.record_event")
    ),
    ("terminal", "verb"): Cell(True, "request", ("memory.store",)),
}
"""Every door and what can be done there."""

NEVER_TAINTED: Final = {"memory", "script", "hook", "terminal"}
"""The doors by which no upstream is seen."""

OUTCOMES: Final = ("done", "denied", "asked", "unrecorded")


def expected(cell: tuple[Door, str], mode: str, case: str, ability: str) -> str:
    """Return what must become of an access: the table."""
    where, kind = cell
    can_ask = is_asked(cell, mode, ability)
    match case:
        case "no rule" | "privacy" | "dry run":
            return "done"
        case "deny" | "unparsable" | "more_than":
            return "denied"
        case "tainted":
            return "done" if where in NEVER_TAINTED else "denied"
        case "ask":
            return "done" if can_ask else "asked"
        case "disk full":
            return "unrecorded" if CELLS[cell].changes else "done"
        case "destructive" if kind != "tool" or can_ask or mode == "never":
            return "done"
        case "destructive":
            return "asked" if mode == "always" or where == "rest" else "done"
    raise AssertionError(case)


def is_asked(cell: tuple[Door, str], mode: str, ability: str) -> bool:
    """Whether the user is asked about an access before it is done."""
    where, kind = cell
    match ability:
        case "elicitation":
            return where in {"code", "mcp", "terminal"} and kind != "completion"
        case "hook":  # which asks about programs that do more than read
            return where == "code" and mode == "auto" and kind != "resource"
    return False


def expected_rows(cell: tuple[Door, str], mode: str, case: str, ability: str) -> list[str]:
    """Return what the journal and the audit log have of an access, in order: the other table."""
    result = expected(cell, mode, case, ability)
    changes, run, calls, ruled = CELLS[cell]
    is_code = cell[0] == "code"
    if case == "disk full":
        return []
    if case == "destructive":
        calls = tuple(each.replace("transfer", "close") for each in calls)
    if case == "dry run" and is_code:
        return ["begin rehearsal", *([] if changes else [f"ok {calls[0]}"]), "end"]
    if case == "unparsable" and is_code:  # the program is not begun
        return ["begin code", "end rejected"]
    match result:
        case "denied":
            before = [f"ok {calls[0]}"] if case == "more_than" and is_code else []
            said = [f"deny {ruled or calls[0]}", f"failed {calls[0]}", "end error"]
            return [f"begin {run}", *before, *said]
        case "asked":
            end = "end approval" if is_code else "end error"
            return [f"begin {run}", f"ask {ruled or calls[0]}", end]
    is_built_in = case == "destructive" and cell[1] == "tool" and mode != "never"
    is_ruled = case == "ask" or (is_built_in and ability == "elicitation")
    rows = []
    for call in calls:
        approved = [f"approved {ruled or call}"] if is_ruled else []
        rows += [f"begin {run}", *approved, f"ok {call}", "end"]
    return rows


def outcome(said: str, *, is_error: bool) -> str:
    if "it changes something, and the journal cannot be written" in said:
        return "unrecorded"
    if "a rule forbids it" in said or "No tool is called until this is fixed" in said:
        return "denied"
    if "approval" in said and is_error:
        return "asked"
    return f"failed: {said}" if is_error else "done"


def text_of(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


ENTRIES: Final = """
    SELECT seq, trim(CASE audit.kind
        WHEN 'begin' THEN 'begin ' || (SELECT kind FROM beginnings WHERE number = ref)
        WHEN 'call' THEN (SELECT outcome || ' ' || tool FROM calls WHERE id = ref)
        WHEN 'decision' THEN (SELECT action || ' ' || tool FROM decisions WHERE id = ref)
        WHEN 'end' THEN 'end ' || (SELECT ifnull(failure, '') FROM ends WHERE number = ref)
        ELSE audit.kind END)
    FROM audit WHERE seq > {since} ORDER BY seq
"""
"""What the audit log has, with what the journal says there: nothing but the two together."""


class Accesses:
    """Does one thing by one door, with arguments that hold what the page said."""

    def __init__(
        self, bank: Doors, client: Client, memory: Client, script: LineStream, case: str
    ) -> None:
        self.bank, self.client, self.memory, self.script_lines = bank, client, memory, script
        self.times = 2 if case == "more_than" else 1  # in one run
        self.tool = "close" if case == "destructive" else "transfer"
        self.name = "account" if case == "destructive" else "to"
        self.options = {"dry_run": True} if case == "dry run" else {}
        self.elicitor: Elicitor | None = None
        self.has_hook = False

    async def __call__(self, cell: tuple[Door, str]) -> str:
        ways: dict[tuple[Door, str], Callable[[], Awaitable[Any]]] = {
            ("code", "tool"): lambda: self._code(f"bank.{self.tool}({self.name}={EVIL!r})"),
            ("code", "resource"): lambda: self._code(f"tools.read('bank', 'bank://pay {EVIL}')"),
            ("code", "verb"): lambda: self._code(f"memory.store(content={EVIL!r})"),
            ("mcp", "tool"): lambda: self.client.call_tool(f"bank__{self.tool}", {self.name: EVIL}),
            ("mcp", "resource"): lambda: self.client.read_resource(
                f"toolfold://bank/bank://pay {EVIL}"
            ),
            ("mcp", "prompt"): lambda: self.client.get_prompt("bank__greet", {"who": EVIL}),
            ("mcp", "completion"): lambda: self.client.complete(
                types.PromptReference(name="bank__greet"), {"name": "who", "value": EVIL}
            ),
            ("rest", "tool"): lambda: self.bank.rest(f"bank.{self.tool}", **{self.name: EVIL}),
            ("rest", "verb"): lambda: self.bank.http.post("/memory/notes", json={"content": EVIL}),
            ("memory", "verb"): lambda: self.memory.call_tool("memory_store", {"content": EVIL}),
            ("script", "verb"): lambda: self.script("memory.store", content=EVIL),
            ("hook", "verb"): self.hook,
            ("terminal", "verb"): lambda: self.terminal("memory.store", content=EVIL),
        }
        try:
            answer = await ways[cell]()
        except (MCPError, ToolfoldError) as error:
            return outcome(str(error), is_error=True)
        if isinstance(answer, types.CallToolResult):
            return outcome(text_of(answer), is_error=bool(answer.is_error))
        if cell[0] == "rest":
            return outcome(answer.text, is_error=not answer.is_success)
        return outcome("", is_error=False)

    async def hook(self) -> None:
        """Keep a record of a conversation, as the hook before its compaction does."""
        app = self.bank.toolfold.app
        path = transcript(self.bank.received.with_name("t.jsonl"), [said("user", EVIL)])
        payload: JsonObject = {"transcript_path": str(path)}
        hooks = Hooks(app.shared.verb_doors)
        answer = await hooks.answer(app.config, {"hook": "pre-compact", "payload": payload})
        if answer:
            raise ToolfoldError("\n".join(answer["remarks"]))

    async def terminal(self, verb: str, **arguments: Any) -> Any:
        """Ask as commands do: from a thread of the daemon that works for a terminal."""
        app = self.bank.toolfold.app

        def ask(terminal: SocketTerminal) -> Any:
            try:
                return terminal.ask_memory(
                    app.config, "", verb, arguments, on_progress=None, elicitor=self.elicitor
                )
            except ToolfoldError as error:  # raised below, where no task group wraps it
                return error

        async with BlockingPortal() as portal:
            terminal = SocketTerminal(
                id="a terminal",
                apps=AppPool(app.shared, linger_s=0),
                shared=app.shared,
                lines=self.script_lines,
                portal=portal,
                streams={},
            )
            answer = await to_thread.run_sync(ask, terminal)
        if isinstance(answer, ToolfoldError):
            raise answer
        return answer

    async def script(self, verb: str, **arguments: Any) -> Any:
        """Ask as scripts do: over the daemon's socket, a line a verb."""
        await self.script_lines.send(encode({"id": 1, "verb": verb, "arguments": arguments}))
        answer = decode(await self.script_lines.receive()) or {}
        if "error" in answer:
            raise ToolfoldError(answer["error"]["message"])
        return answer["value"]

    async def _code(self, line: str) -> Any:
        code = "import bank, memory, tools\n" + f"{line}\n" * self.times
        call = self.client.call_tool
        meta: Any = {TOOL_USE: await self._review(code)} if self.has_hook else None
        return await call("execute_code", {"code": code, **self.options}, meta=meta)

    async def _review(self, code: str) -> str:
        """Have the client's hook look at a program, about which its user says yes."""
        tool_use = f"toolu_{token_hex(4)}"
        payload = {"code": code, "tool_use_id": tool_use, "session_id": "talk"}
        await ProgramReview(self.bank.toolfold.app).answer(payload)
        return tool_use

    def entries(self, since: int = 0) -> tuple[int, list[str]]:
        """Return the last number of the audit log, and what is logged after another, in order."""
        self.bank.toolfold.app.shared.journal.flush()
        rows = self.bank.rows(ENTRIES.format(since=since))
        return max([since, *(row[0] for row in rows)]), [row[1] for row in rows]

    async def taint(self) -> None:
        """Let every door that can see the page, before its words are used."""
        await self.client.read_resource("toolfold://bank/bank://page")
        await self.bank.rest("bank.page")
        await self.client.call_tool("execute_code", {"code": "import bank\nbank.page()"})


@asynccontextmanager
async def all_doors(
    running: MakeApp, tmp_path: Path, home: Path, mode: str, case: str, ability: str
) -> AsyncIterator[Accesses]:
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "policy.toml").write_text(CASES[case])
    toml = f'approvals = "{mode}"\npinned_tools = ["bank.transfer", "bank.close"]\n'
    toml += '[privacy]\nmode = "on"\n' if case == "privacy" else ""
    toml += "[servers.bank]\nuntrusted = true\n" if case == "tainted" else ""
    servers = {"bank": test_server("bank", tmp_path / "bank.jsonl")}

    async def approve(_context: Any, _params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"approve": True})

    async def agree(_question: Question) -> Reply:
        return Reply(action="accept", content={"approve": True})

    answers: dict[str, Any] = {"elicitation_callback": approve} if ability == "elicitation" else {}
    async with running(servers, toml=toml) as toolfold:
        app = toolfold.app
        config = replace(app.config, settings=replace(app.config.settings, tools="memory"))
        surface = make_memory_server(app.shared.stores, config, client="notes")
        async with (
            door(app) as http,
            Client(make_server(app, client="me", session="me"), **answers) as client,
            Client(surface) as memory,
            scripts(app) as script,
        ):
            await app.catalog.learn()
            await app.catalog.offered.learn()
            bank = Doors(toolfold, http, client, home, tmp_path / "bank.jsonl")
            accesses = Accesses(bank, client, memory, script, case)
            accesses.elicitor = Elicitor(user="the terminal", put=agree) if answers else None
            accesses.has_hook = ability == "hook"
            yield accesses


@asynccontextmanager
async def scripts(app: App) -> AsyncIterator[LineStream]:
    """Serve a script as the daemon does; yield the script's side of the socket."""
    ours, theirs = socket.socketpair()
    async with (
        await SocketStream.from_socket(ours) as stream,
        await SocketStream.from_socket(theirs) as script,
        create_task_group() as tasks,
    ):
        server = VerbServer(
            doors=app.shared.verb_doors,
            config=app.config,
            client="a script",
            lines=LineStream(stream),
            in_flight=InFlight(),
        )
        tasks.start_soon(server.serve)
        yield LineStream(script)
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("ability", ABILITIES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES)
async def test_every_cell_is_as_the_table_says(
    case: str, mode: str, ability: str, running: MakeApp, tmp_path: Path, home: Path
) -> None:
    async with all_doors(running, tmp_path, home, mode, case, ability) as do:
        if case == "tainted":
            await do.taint()
        if case == "more_than":
            for cell in CELLS:
                await do(cell)
        before = len(do.bank.arrived())
        async with full_disk(home) if case == "disk full" else nullcontext():
            found: dict[tuple[Door, str], tuple[str, list[str]]] = {}
            last, _ = do.entries()
            for cell in CELLS:
                result = await do(cell)
                last, rows = do.entries(last)
                found[cell] = result, rows
        sent = len(do.bank.arrived()) - before

    wanted = {
        cell: (expected(cell, mode, case, ability), expected_rows(cell, mode, case, ability))
        for cell in CELLS
    }
    assert found == wanted
    # Calls of code before the one that is too many; that of code which is only rehearsed.
    first = {"more_than": 2, "dry run": -1}.get(case, 0)
    assert sent == first + sum(
        result == "done" and kind != "verb" for (_, kind), (result, _) in wanted.items()
    )


def test_no_door_is_without_its_cells() -> None:
    assert {where for where, _ in CELLS} == set(get_args(Door))


def test_no_kind_of_access_is_without_its_cell() -> None:
    kinds: dict[str, set[type[Access[Any]]]] = {
        "tool": {ToolCall, ForwardedCall},
        # Who may read a resource may hear of its changes: `test_passthrough.py`.
        "resource": {ResourceValue, ResourceContents, ResourceSubscription},
        "prompt": {PromptText},
        "completion": {Completion},
        "verb": {VerbAccess},
    }

    assert kinds.keys() == {kind for _, kind in CELLS}
    assert set().union(*kinds.values()) == set(leaves(Access))


def leaves(kind: type[Any]) -> list[type[Any]]:
    """Return the classes below one that have none below them."""
    below = kind.__subclasses__()
    return [leaf for each in below for leaf in leaves(each)] if below else [kind]
