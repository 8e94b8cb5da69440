"""What an owner wants to see at a glance: servers, how tools do, and what was saved."""

import math
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import reduce
from threading import Lock
from typing import Final

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from toolfold.app import App
from toolfold.catalog.login.logins import login_state
from toolfold.config.config import Config
from toolfold.entrypoints.rest.operations import (
    Operation,
    RestRequest,
    closed_object,
    owned,
    whole_object,
)
from toolfold.entrypoints.rest.runs import read_runs
from toolfold.entrypoints.rest.schemas import schema_of
from toolfold.errors import Denied, NotFound, StoreError
from toolfold.journal.accounts import AccountReader
from toolfold.journal.ledger import NOTHING, DaySums, Sums, ToolUse
from toolfold.journal.reader import JournalReader, ToolStatistics
from toolfold.jsontypes import Json, JsonObject

_DAY_S: Final = 86_400.0
_PAGE_WAITS_S: Final = 0.1
_RUNS_AT_ONCE: Final = 2_000
_TEXT: Final[JsonObject] = {"type": "string"}
_COUNT: Final[JsonObject] = {"type": "integer"}
_SUMS: Final = whole_object(
    {
        "runs": _COUNT,
        "calls": _COUNT,
        "passed": _COUNT,
        "deferred": _COUNT,
        "loaded": _COUNT,
        "saved": _COUNT,
        "saved_of_loaded": _COUNT,
    }
)
_GROUPS: Final[JsonObject] = {"type": "object", "additionalProperties": _SUMS}


def observe_operations(savings: "Savings") -> list[Operation]:
    """Return all of them."""
    return [
        Operation(
            method="GET",
            path="/servers",
            summary="Each server: its state, how many tools it has, and what is wrong with it.",
            tag="state",
            returns=whole_object(
                {
                    "servers": {
                        "type": "array",
                        "items": whole_object(
                            {
                                "name": _TEXT,
                                "module": {"type": ["string", "null"]},
                                "state": _TEXT,
                                "tools": {"type": ["integer", "null"]},
                                "fault": {"type": ["string", "null"]},
                                "restarts": _COUNT,
                                "login": {"enum": ["unused", "absent", "valid", "ended"]},
                            }
                        ),
                    }
                }
            ),
            answer=_servers,
        ),
        Operation(
            method="POST",
            path="/servers/{name}/restart",
            summary="Restart a server's process or connection.",
            tag="state",
            takes=closed_object({"name": {**_TEXT, "minLength": 1}}, required=("name",)),
            returns=whole_object({"tools": _COUNT}),
            answer=_restart,
            calls_tools=True,
        ),
        Operation(
            method="GET",
            path="/statistics/tools",
            summary="Calls, errors and times of each tool among the newest calls.",
            tag="state",
            returns=whole_object(
                {"tools": {"type": "object", "additionalProperties": schema_of(ToolStatistics)}}
            ),
            answer=_statistics,
        ),
        Operation(
            method="GET",
            path="/savings",
            summary="The ledger: tokens used, and tokens that direct calls would have used.",
            tag="state",
            takes=closed_object({"days": {"type": "integer", "minimum": 1, "maximum": 3650}}),
            returns=whole_object(
                {
                    "is_complete": {
                        "type": "boolean",
                        "description": "False only on pages, while runs are still added up.",
                    },
                    "total": _SUMS,
                    "days": _GROUPS,
                    "doors": _GROUPS,
                    "servers": {
                        "type": "object",
                        "additionalProperties": whole_object(
                            {"calls": {"type": "integer"}, "tokens": {"type": "integer"}}
                        ),
                    },
                }
            ),
            answer=savings.answer,
        ),
    ]


async def _servers(request: RestRequest, _arguments: JsonObject) -> Json:
    upstreams = request.app.shared.upstreams.upstreams
    states = {each.name: each.state for each in upstreams}
    begun = {each.name: each.connections for each in upstreams}
    logins = await anyio.to_thread.run_sync(_logins, request.app.config)
    return {
        "servers": [
            {
                "name": status.name,
                "module": status.module,
                "state": "failed" if status.fault else states.get(status.name, "idle"),
                "tools": status.tools,
                "fault": status.fault,
                "restarts": max(0, begun.get(status.name, 0) - 1),
                "login": logins.get(status.name, "unused"),
            }
            for status in request.app.catalog.statuses()
        ]
    }


def _logins(config: Config) -> dict[str, str]:
    return {each.name: login_state(each, config.directories).status for each in config.servers}


async def _restart(request: RestRequest, arguments: JsonObject) -> Json:
    owned(request)
    name = str(arguments["name"])
    known = {each.name for each in request.app.catalog.statuses()}
    found = [each for each in request.app.shared.upstreams.upstreams if each.name == name]
    if name not in known or not found:
        raise NotFound(f"There is no server {name!r} here. `/servers` lists them.")
    for upstream in found:
        upstream.restart()
    return {"tools": sum([len(await each.tools(fresh=True)) for each in found[:1]])}


async def _statistics(request: RestRequest, _arguments: JsonObject) -> Json:
    _refuse_keys(request)
    found = await read_runs(request.app, lambda journal: journal.tool_statistics())
    return {"tools": {tool: asdict(each) for tool, each in (found or {}).items()}}


class Savings:
    """The ledger by day: what was read once is added up and not read again."""

    def __init__(self) -> None:
        self._reader = AccountReader()
        self._days: dict[str, DaySums] = {}
        self._adding: dict[str, DaySums] = {}
        """The same, or what is added up in its place, all anew."""
        self._caught_up: anyio.Event | None = None
        """Set when the reading that is under way has ended."""
        self._fault: StoreError | None = None
        self._changing = Lock()
        self._tasks: TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Read for the length of this context, also while nobody waits."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            yield
            tasks.cancel_scope.cancel()

    async def answer(self, request: RestRequest, arguments: JsonObject) -> Json:
        """Return the sums of the last days, or of all; a page does not wait for all of them."""
        _refuse_keys(request)
        with anyio.move_on_after(_PAGE_WAITS_S if request.is_page else math.inf) as waiting:
            await self._catch_up(request.app)
        first = ""
        if days := arguments.get("days"):
            first = _day(time.time() - (float(str(days)) - 1) * _DAY_S)
        with self._changing:
            shown = self._days or self._adding
            sums = _savings_json({day: each for day, each in shown.items() if day >= first})
        return {**sums, "is_complete": not waiting.cancelled_caught}

    async def _catch_up(self, app: App) -> None:
        """Have all read that is new; one reading at a time, which goes on if nobody waits.

        Raises:
            StoreError: The journal does not answer.
        """
        if self._caught_up is None:
            assert self._tasks is not None  # noqa: S101
            self._caught_up = anyio.Event()
            self._tasks.start_soon(self._read, app, self._caught_up)
        await self._caught_up.wait()
        if self._fault is not None:
            raise StoreError(str(self._fault)) from self._fault

    async def _read(self, app: App, caught_up: anyio.Event) -> None:
        self._fault = None
        try:
            while await read_runs(app, self._take_in):
                pass
        except StoreError as error:
            self._fault = error
        finally:
            self._caught_up = None
            caught_up.set()

    def _take_in(self, journal: JournalReader) -> bool:
        """Add some runs; return whether there are more."""
        found = journal.new_accounts(self._reader, _RUNS_AT_ONCE)
        with self._changing:
            if found.is_anew:
                self._adding = {}
            for account in found.accounts.all:
                self._adding.setdefault(_day(account.at), DaySums()).add(account)
            if found.is_complete:
                self._days = self._adding
        return not found.is_complete


def _savings_json(days: Mapping[str, DaySums]) -> JsonObject:
    doors: dict[str, Sums] = {}
    servers: dict[str, ToolUse] = {}
    for day in days.values():
        for door, found in day.doors.items():
            doors[door] = doors.get(door, NOTHING).plus(found)
        for server, use in day.servers.items():
            servers[server] = servers.get(server, ToolUse()).together(use)
    most = sorted(servers.items(), key=lambda each: -each[1].tokens)
    return {
        "total": _sums_json(_total(doors.values())),
        "days": {name: _sums_json(_total(day.doors.values())) for name, day in days.items()},
        "doors": {name: _sums_json(found) for name, found in doors.items()},
        "servers": {name: asdict(use) for name, use in most},
    }


def _total(parts: Iterable[Sums]) -> Sums:
    return reduce(Sums.plus, parts, NOTHING)


def _refuse_keys(request: RestRequest) -> None:
    """Raise `Denied` for the holder of a key: these figures are about everybody's runs."""
    if request.key:
        raise Denied("Only the local user sees figures about all runs.")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, tz=UTC).astimezone().strftime("%Y-%m-%d")


def _sums_json(found: Sums) -> JsonObject:
    return {**asdict(found), "saved": found.saved, "saved_of_loaded": found.saved_of_loaded}
