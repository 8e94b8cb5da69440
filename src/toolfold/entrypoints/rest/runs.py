"""What ran: the journal, for those whose runs they were."""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio.to_thread

from toolfold.app import App
from toolfold.entrypoints.rest.execute import RESULT, outcome_json
from toolfold.entrypoints.rest.operations import (
    Operation,
    RestRequest,
    closed_object,
    page_of,
    paging,
    whole_object,
)
from toolfold.entrypoints.rest.schemas import schema_of
from toolfold.errors import NotFound
from toolfold.execution.service import ResumeRequest
from toolfold.journal.accounts import RunTokens
from toolfold.journal.audit_check import check_run
from toolfold.journal.decisions import recording_json
from toolfold.journal.reader import JournalReader, read_journal
from toolfold.journal.runs import STATES, Call, Run, RunEnding, RunFilter, RunProgress, state_of
from toolfold.jsontypes import Json, JsonObject

_Read = TypeVar("_Read")
_MAX: Final = 500
_FILTERS: Final = ("before", "since", "text", "tool", "outcome")
_ONE: Final = closed_object({"id": {"type": "string", "minLength": 1}}, required=("id",))
_TEXT: Final[JsonObject] = {"type": "string"}
_SUMMARY: Final[JsonObject] = {
    "id": _TEXT,
    "kind": _TEXT,
    "began_at": {"type": "number"},
    "client": _TEXT,
    "project": _TEXT,
    "code": _TEXT,
    "call_count": {"type": "integer"},
    "state": {"enum": list(STATES)},
    "failure": {"type": ["string", "null"]},
    "is_ended": {"type": "boolean"},
    "took_s": {"type": ["number", "null"], "description": "Null until it has ended."},
    "calling": {"type": "array", "items": _TEXT, "description": "The tools that it waits for."},
    "progress": schema_of(RunProgress | None),
}


def run_operations() -> list[Operation]:
    """Return all of them."""
    return [
        Operation(
            method="GET",
            path="/runs",
            summary="Runs, newest first; those of a key are seen by its holder alone.",
            tag="runs",
            takes=closed_object(
                {
                    "limit": {"type": "integer", "minimum": 1, "maximum": _MAX, "default": 20},
                    "before": {"type": "string", "description": "The id of the last one seen."},
                    "since": {"type": "number", "description": "Seconds since 1970."},
                    "text": {"type": "string", "description": "A part of the program."},
                    "tool": {"type": "string", "description": "`server.tool`, or `server`."},
                    "outcome": {"enum": ["ok", "failed", "open"]},
                    "client": {
                        "type": "string",
                        "maxLength": 200,
                        "description": "As runs have it.",
                    },
                }
            ),
            returns=whole_object(
                {
                    "runs": {"type": "array", "items": whole_object(_SUMMARY)},
                    "next_before": {"type": ["string", "null"]},
                }
            ),
            answer=_list,
        ),
        Operation(
            method="GET",
            path="/runs/{id}",
            summary="One run by the beginning of its id, with a page of its calls.",
            tag="runs",
            takes=closed_object(
                {"id": {"type": "string", "minLength": 1}, **paging(100, _MAX)}, required=("id",)
            ),
            returns=page_of(
                "calls",
                schema_of(Call),
                run=whole_object(
                    {
                        **_SUMMARY,
                        "ending": schema_of(RunEnding | None),
                        "code_bytes": {"type": "integer"},
                    }
                ),
            ),
            answer=_show,
        ),
        Operation(
            method="GET",
            path="/runs/{id}/recording",
            summary="What a run did, step by step, with what was decided and revealed at each.",
            tag="runs",
            takes=_ONE,
            returns=whole_object({"attempts": {"type": "array", "items": {"type": "object"}}}),
            answer=_recording,
        ),
        Operation(
            method="GET",
            path="/runs/{id}/tokens",
            summary="What a run that ended came to: written, read, and calls made directly.",
            tag="runs",
            takes=_ONE,
            returns=whole_object({"tokens": schema_of(RunTokens | None)}),
            answer=_tokens,
        ),
        Operation(
            method="GET",
            path="/runs/{id}/audit",
            summary="How many entries the audit log has of a run, and what is wrong with them.",
            tag="runs",
            takes=_ONE,
            returns=whole_object(
                {"entries": {"type": "integer"}, "fault": {"type": ["string", "null"]}}
            ),
            answer=_audit,
        ),
        Operation(
            method="POST",
            path="/runs/{id}/stop",
            summary="End a run before its next call.",
            tag="runs",
            takes=closed_object({"id": {"type": "string", "minLength": 1}}, required=("id",)),
            returns=whole_object({"stopped": _TEXT}),
            answer=_stop,
        ),
        Operation(
            method="POST",
            path="/runs/{id}/resume",
            summary="Resume a run that did not finish; no call is repeated.",
            tag="runs",
            takes=closed_object(
                {
                    "id": {"type": "string", "minLength": 1},
                    "decision": {
                        "enum": ["ask", "repeat", "skip"],
                        "default": "ask",
                        "description": "What to do about calls that may have been made already.",
                    },
                },
                required=("id",),
            ),
            returns=RESULT,
            answer=_resume,
        ),
    ]


async def _list(request: RestRequest, arguments: JsonObject) -> Json:
    limit: Any = arguments.get("limit", 20)
    chosen: Any = {name: arguments.get(name) for name in _FILTERS}
    client: Any = arguments.get("client")
    wanted = RunFilter(client=_own(request) or client, **chosen)
    found = await read_runs(request.app, lambda journal: journal.newest(limit + 1, wanted))
    shown = (found or [])[:limit]
    more = len(found or []) > limit
    return {
        "runs": [_summary(request, run) for run in shown],
        "next_before": shown[-1].id if more else None,
    }


async def _show(request: RestRequest, arguments: JsonObject) -> Json:
    run = await _found(request, arguments)
    limit: Any = arguments.get("limit", 100)
    offset: Any = arguments.get("offset", 0)
    calls = run.calls[offset : offset + limit]
    end = offset + len(calls)
    ending = asdict(run.ending) if run.ending else None
    return {
        "run": {**_summary(request, run), "ending": ending, "code_bytes": run.code.size_bytes},
        "calls": [asdict(call) for call in calls],
        "total": len(run.calls),
        "next_offset": end if calls and end < len(run.calls) else None,
    }


async def _found(request: RestRequest, arguments: JsonObject) -> Run:
    wanted = str(arguments["id"])
    run = await read_runs(request.app, lambda journal: journal.find(wanted, client=_own(request)))
    if run is None:
        raise NotFound(f"No run has an id that begins with {wanted[:100]!r}.")
    return run


async def _recording(request: RestRequest, arguments: JsonObject) -> Json:
    run = await _found(request, arguments)
    found = await read_runs(request.app, lambda journal: journal.recordings(run.id))
    attempts: Json = [recording_json(*each) for each in found or []]
    return {"attempts": attempts}


async def _tokens(request: RestRequest, arguments: JsonObject) -> Json:
    run = await _found(request, arguments)
    found = await read_runs(request.app, lambda journal: journal.tokens(run.id))
    return {"tokens": found._asdict() if found else None}


async def _audit(request: RestRequest, arguments: JsonObject) -> Json:
    run = await _found(request, arguments)
    verified = await anyio.to_thread.run_sync(check_run, _journal(request.app), run.id)
    return {"entries": verified.entries, "fault": verified.fault.what if verified.fault else None}


async def _resume(request: RestRequest, arguments: JsonObject) -> Json:
    run = await _found(request, arguments)
    decision: Any = arguments.get("decision", "ask")
    resumed = await request.app.runs.resume(
        ResumeRequest(run_id=run.id, origin=request.origin, decision=decision)
    )
    return outcome_json(resumed)


async def _stop(request: RestRequest, arguments: JsonObject) -> Json:
    run_id = str(arguments["id"])
    run = request.app.shared.background_runs.find(run_id)
    if run is None or run.over.is_set() or (request.key and run.client != request.client):
        raise NotFound(f"No run {run_id[:100]!r} is under way here. `/runs` lists them.")
    await request.app.shared.background_runs.stop(run)
    return {"stopped": run_id}


def _own(request: RestRequest) -> str | None:
    """Return whose runs may be seen; None for everybody's, which is for the user alone."""
    return request.client if request.key else None


def _summary(request: RestRequest, run: Run) -> JsonObject:
    calling: list[Json] = []
    if run.ending is None:
        calling += request.app.shared.journal.calling(run.id)
    return {
        "id": run.id,
        "kind": run.kind,
        "began_at": run.began_at,
        "client": run.origin.client,
        "project": run.origin.project,
        "code": run.code.head,
        "call_count": run.call_count,
        "state": state_of(run),
        "failure": run.ending.failure if run.ending else None,
        "is_ended": run.ending is not None,
        "took_s": run.ending.at - run.began_at if run.ending else None,
        "calling": calling,
        "progress": asdict(run.progress) if run.progress else None,
    }


async def read_runs(app: App, read: Callable[[JournalReader], _Read]) -> _Read | None:
    """Ask the journal from a thread; None if there is none."""
    return await anyio.to_thread.run_sync(partial(read_journal, _journal(app), read))


def _journal(app: App) -> Path:
    return app.config.directories.data / "runs.db"
