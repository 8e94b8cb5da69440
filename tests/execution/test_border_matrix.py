"""Every door, kind of access, mode of approvals and case: outcomes from one table."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, get_args

import mcp_types as types
import pytest
from execution.test_border import Doors, door, full_disk, rule
from mcp import Client, MCPError
from support import MakeApp, test_server

from toolfold.entrypoints.mcp.memory import make_memory_server
from toolfold.entrypoints.mcp.server import make_server
from toolfold.execution.context import Door

MODES: Final = ("always", "auto", "never")
ABILITIES: Final = ("nothing", "elicitation")
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
}
CELLS: Final[dict[tuple[Door, str], bool]] = {
    ("code", "tool"): True,
    ("code", "resource"): False,
    ("code", "verb"): True,
    ("mcp", "tool"): True,
    ("mcp", "resource"): False,
    ("mcp", "prompt"): False,
    ("mcp", "completion"): False,
    ("rest", "tool"): True,
    ("rest", "verb"): True,
    ("memory", "verb"): True,
}
"""Every door and what can be done there, and whether that changes anything."""

OUTCOMES: Final = ("done", "denied", "asked", "unrecorded")


def expected(cell: tuple[Door, str], mode: str, case: str, ability: str) -> str:
    """Return what must become of an access: the table."""
    where, kind = cell
    can_ask = ability == "elicitation" and where in {"code", "mcp"} and kind != "completion"
    match case:
        case "no rule" | "privacy":
            return "done"
        case "deny" | "unparsable" | "more_than":
            return "denied"
        case "tainted":
            return "done" if where == "memory" else "denied"
        case "ask":
            return "done" if can_ask else "asked"
        case "disk full":
            return "unrecorded" if CELLS[cell] else "done"
        case "destructive" if kind != "tool" or can_ask or mode == "never":
            return "done"
        case "destructive":
            return "asked" if mode == "always" or where == "rest" else "done"
    raise AssertionError(case)


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


class Accesses:
    """Does one thing by one door, with arguments that hold what the page said."""

    def __init__(self, bank: Doors, client: Client, memory: Client, case: str) -> None:
        self.bank, self.client, self.memory = bank, client, memory
        self.times = 2 if case == "more_than" else 1  # in one run
        self.tool = "close" if case == "destructive" else "transfer"
        self.name = "account" if case == "destructive" else "to"

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
        }
        try:
            answer = await ways[cell]()
        except MCPError as error:
            return outcome(str(error), is_error=True)
        if isinstance(answer, types.CallToolResult):
            return outcome(text_of(answer), is_error=bool(answer.is_error))
        if cell[0] == "rest":
            return outcome(answer.text, is_error=not answer.is_success)
        return outcome("", is_error=False)

    async def _code(self, line: str) -> Any:
        code = "import bank, memory, tools\n" + f"{line}\n" * self.times
        return await self.client.call_tool("execute_code", {"code": code})

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

    answers: dict[str, Any] = {"elicitation_callback": approve} if ability == "elicitation" else {}
    async with running(servers, toml=toml) as toolfold:
        app = toolfold.app
        config = replace(app.config, settings=replace(app.config.settings, tools="memory"))
        surface = make_memory_server(app.shared.stores, config, client="notes")
        async with (
            door(app) as http,
            Client(make_server(app, client="me", session="me"), **answers) as client,
            Client(surface) as memory,
        ):
            await app.catalog.learn()
            await app.catalog.offered.learn()
            bank = Doors(toolfold, http, client, home, tmp_path / "bank.jsonl")
            yield Accesses(bank, client, memory, case)


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
            found = {cell: await do(cell) for cell in CELLS}
        sent = len(do.bank.arrived()) - before
        decided = {action for _, action in do.bank.decisions()}

    wanted = {cell: expected(cell, mode, case, ability) for cell in CELLS}
    assert found == wanted
    first = 2 if case == "more_than" else 0  # calls of code before the one that is too many
    assert sent == first + sum(
        each == "done" and kind != "verb" for (_, kind), each in wanted.items()
    )
    actions = {"denied": "deny", "asked": "ask"}
    assert decided >= {actions[each] for each in wanted.values() if each in actions}


def test_no_door_is_without_its_cells() -> None:
    assert {where for where, _ in CELLS} == set(get_args(Door))
