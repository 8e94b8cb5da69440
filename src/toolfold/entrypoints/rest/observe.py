"""What an owner wants to see at a glance: servers, how tools do, and what was saved."""

import math
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Final

from toolfold.entrypoints.rest.operations import Operation, RestRequest, closed_object, whole_object
from toolfold.entrypoints.rest.runs import read_runs
from toolfold.entrypoints.rest.schemas import schema_of
from toolfold.errors import Denied
from toolfold.journal.ledger import Account, Sums, sums, uses
from toolfold.journal.statistics import ToolStatistics
from toolfold.jsontypes import Json, JsonObject

_DAY_S: Final = 86_400.0
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


def observe_operations() -> list[Operation]:
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
                            }
                        ),
                    }
                }
            ),
            answer=_servers,
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
            summary="The ledger: tokens that passed, and that direct calls would have taken.",
            tag="state",
            takes=closed_object({"days": {"type": "integer", "minimum": 1, "maximum": 3650}}),
            returns=whole_object(
                {
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
            answer=_savings,
        ),
    ]


async def _servers(request: RestRequest, _arguments: JsonObject) -> Json:
    states = {each.name: each.state for each in request.app.shared.upstreams.upstreams}
    return {
        "servers": [
            {
                "name": status.name,
                "module": status.module,
                "state": "failed" if status.fault else states.get(status.name, "idle"),
                "tools": status.tools,
                "fault": status.fault,
            }
            for status in request.app.catalog.statuses()
        ]
    }


async def _statistics(request: RestRequest, _arguments: JsonObject) -> Json:
    _refuse_keys(request)
    found = await read_runs(request.app, lambda journal: journal.tool_statistics())
    return {"tools": {tool: asdict(each) for tool, each in (found or {}).items()}}


async def _savings(request: RestRequest, arguments: JsonObject) -> Json:
    _refuse_keys(request)
    days = arguments.get("days")
    since = time.time() - float(str(days)) * _DAY_S if days else -math.inf
    found = await read_runs(request.app, lambda journal: journal.accounts())
    accounts = [each for each in found.all if each.at >= since] if found else []
    return {
        "total": _sums_json(sums(accounts)),
        "days": _grouped(accounts, [_day(each) for each in accounts]),
        "doors": _grouped(accounts, [each.door for each in accounts]),
        "servers": {name: asdict(use) for name, use in uses(accounts, by_server=True).items()},
    }


def _refuse_keys(request: RestRequest) -> None:
    """Raise `Denied` for the holder of a key: these figures are about everybody's runs."""
    if request.key:
        raise Denied("Only the local user sees figures about all runs.")


def _grouped(accounts: Sequence[Account], names: Sequence[str]) -> JsonObject:
    groups: dict[str, list[Account]] = {}
    for account, name in zip(accounts, names, strict=True):
        groups.setdefault(name, []).append(account)
    return {name: _sums_json(sums(group)) for name, group in groups.items()}


def _day(account: Account) -> str:
    return datetime.fromtimestamp(account.at, tz=UTC).astimezone().strftime("%Y-%m-%d")


def _sums_json(found: Sums) -> JsonObject:
    return {**asdict(found), "saved": found.saved, "saved_of_loaded": found.saved_of_loaded}
