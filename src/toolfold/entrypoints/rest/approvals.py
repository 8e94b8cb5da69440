"""What runs wait for, and what the user decides: for the local user alone."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Final, TypeVar

import anyio.to_thread

from toolfold.app import App
from toolfold.entrypoints.rest.execute import RESULT, result_json
from toolfold.entrypoints.rest.operations import Operation, RestRequest, closed_object, whole_object
from toolfold.errors import BadInput, Denied
from toolfold.execution.report import RunReport
from toolfold.execution.service import RunOptions
from toolfold.execution.trust.approval_form import MAX_APPROVED_CALLS
from toolfold.execution.trust.approvals import (
    Approval,
    Approvals,
    approvals_of,
)
from toolfold.jsontypes import Json, JsonObject

_T = TypeVar("_T")

_TEXT: Final[JsonObject] = {"type": "string"}
_NAMED: Final[JsonObject] = {
    "id": {"type": "string", "minLength": 1, "description": "The run, as `/approvals` has it."},
    "question": {
        "type": "string",
        "description": "Which of its questions is meant; by default the one that is open.",
    },
}
_APPROVAL: Final = whole_object(
    {
        "run": _TEXT,
        "question": _TEXT,
        "tool": _TEXT,
        "arguments": _TEXT,
        "known": {"type": "integer"},
        "rule": _TEXT,
        "asked_at": {"type": "number"},
        "expires_at": {"type": "number"},
    }
)


def approval_operations() -> list[Operation]:
    """Return all of them."""
    return [
        Operation(
            method="GET",
            path="/approvals",
            summary="What runs wait for; the holder of a key sees none.",
            tag="approvals",
            returns=whole_object({"approvals": {"type": "array", "items": _APPROVAL}}),
            answer=_list,
        ),
        Operation(
            method="POST",
            path="/runs/{id}/approve",
            summary="Approve a waiting run and resume it; no call is repeated.",
            tag="approvals",
            takes=closed_object(
                {
                    **_NAMED,
                    "most": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": MAX_APPROVED_CALLS,
                        "description": "How many calls; by default, those that wait now.",
                    },
                    "always": {"type": "boolean", "default": False},
                },
                required=("id",),
            ),
            returns=whole_object(
                {
                    "approved": _TEXT,
                    "result": {
                        "anyOf": [RESULT, {"type": "null"}],
                        "description": "Null while the run continues; see `/runs/{id}`.",
                    },
                }
            ),
            answer=_approve,
        ),
        Operation(
            method="POST",
            path="/runs/{id}/reject",
            summary="Refuse what a run wants to do.",
            tag="approvals",
            takes=closed_object(_NAMED, required=("id",)),
            returns=whole_object({"rejected": _TEXT}),
            answer=_reject,
        ),
    ]


async def _list(request: RestRequest, _arguments: JsonObject) -> Json:
    if request.key:
        return {"approvals": []}
    pending = await _with_approvals(request, Approvals.pending)
    return {"approvals": [_json(approval) for approval in pending]}


async def _approve(request: RestRequest, arguments: JsonObject) -> Json:
    approval = await _found(request, arguments)
    app = await _app(request, approval)
    result = await app.runs.approve(
        approval,
        most=int(float(str(arguments.get("most", approval.known)))),
        always=bool(arguments.get("always")),
        by=_door(request),
        # Also when who approved it has left.
        options=RunOptions(patience_s=app.config.settings.limits.answer_s, is_detached=True),
    )
    told = result_json(result) if isinstance(result, RunReport) else None
    return {"approved": approval.tool, "result": told}


async def _reject(request: RestRequest, arguments: JsonObject) -> Json:
    approval = await _found(request, arguments)
    await request.app.runs.reject(approval, by=_door(request))
    return {"rejected": approval.tool}


async def _found(request: RestRequest, arguments: JsonObject) -> Approval:
    """Return the open question that is meant: a run may ask another one the next moment."""
    if request.key or not request.has_token:
        raise Denied(
            "Only the local user approves, with the token that `toolfold keys token` prints."
        )
    attempt, question = str(arguments["id"]), arguments.get("question")
    named = None if question is None else str(question)
    return await _with_approvals(request, lambda approvals: approvals.find_open(attempt, named))


def _door(request: RestRequest) -> str:
    return "the dashboard" if request.is_page else "REST"


async def _app(request: RestRequest, approval: Approval) -> App:
    """Return what goes on with a run: what it began in, and nothing else."""
    if approval.project != request.origin.project:
        raise BadInput(
            f"This run is of {approval.project or 'no project'}, and we serve "
            f"{request.origin.project}. `toolfold approve {approval.attempt}` in a terminal "
            "continues it there."
        )
    if not approval.client.startswith("key:"):
        return request.app
    return await request.app_of(approval.client.removeprefix("key:"))


async def _with_approvals(request: RestRequest, use: Callable[[Approvals], _T]) -> _T:
    """Use the file of approvals beside the event loop."""
    approvals = approvals_of(request.app.config)
    return await anyio.to_thread.run_sync(lambda: use(approvals))


def _json(approval: Approval) -> Json:
    told = asdict(approval)
    shown = ("tool", "arguments", "known", "rule", "asked_at", "expires_at")
    named = {"run": approval.attempt, "question": approval.id}
    return {**named, **{name: told[name] for name in shown}}
