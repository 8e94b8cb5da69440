"""What runs wait for, and what the user decides: for the local user alone."""

from dataclasses import asdict
from typing import Final

import anyio.to_thread

from toolfold.entrypoints.rest.operations import Operation, Visit, closed_object, whole_object
from toolfold.entrypoints.rest.running import RESULT, result_json
from toolfold.errors import Denied
from toolfold.execution.approvals import Approval, approvals_of, decided
from toolfold.execution.guarding import DEFAULT_MOST
from toolfold.execution.runs import Origin
from toolfold.jsontypes import Json, JsonObject

_TEXT: Final[JsonObject] = {"type": "string"}
_ID: Final[JsonObject] = {"type": "string", "minLength": 1}
_APPROVAL: Final = whole_object(
    {
        "run": _TEXT,
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
            summary="Let a run go on that waits for the user; nothing is done twice.",
            tag="approvals",
            takes=closed_object(
                {
                    "id": _ID,
                    "most": {"type": "integer", "minimum": 1, "default": DEFAULT_MOST},
                    "always": {"type": "boolean", "default": False},
                },
                required=("id",),
            ),
            returns=RESULT,
            answer=_approve,
        ),
        Operation(
            method="POST",
            path="/runs/{id}/reject",
            summary="Refuse what a run wants to do.",
            tag="approvals",
            takes=closed_object({"id": _ID}, required=("id",)),
            returns=whole_object({"rejected": _TEXT}),
            answer=_reject,
        ),
    ]


async def _list(visit: Visit, _arguments: JsonObject) -> Json:
    if visit.key:
        return {"approvals": []}
    pending = await anyio.to_thread.run_sync(approvals_of(visit.app.config).pending)
    return {"approvals": [_json(approval) for approval in pending]}


async def _approve(visit: Visit, arguments: JsonObject) -> Json:
    approval = _found(visit, arguments)
    approvals, config = approvals_of(visit.app.config), visit.app.config
    most = arguments.get("most", DEFAULT_MOST)
    approvals.decide(approval.id, "approved", most=int(str(most)), by="REST")
    journal = visit.app.shared.journal
    journal.decide(approval.attempt, decided(approval, "approved", by="REST"))
    if arguments.get("always"):
        approvals.allow_always(config.namespace, approval.tool)
    origin = Origin(client=approval.client, project=approval.project)
    return result_json(await visit.app.runtime.resume(approval.attempt, origin=origin))


async def _reject(visit: Visit, arguments: JsonObject) -> Json:
    approval = _found(visit, arguments)
    approvals_of(visit.app.config).decide(approval.id, "rejected", most=0, by="REST")
    journal = visit.app.shared.journal
    journal.decide(approval.attempt, decided(approval, "rejected", by="REST"))
    return {"rejected": approval.tool}


def _found(visit: Visit, arguments: JsonObject) -> Approval:
    if visit.key or not visit.has_token:
        raise Denied(
            "Only the local user approves, with the token that `toolfold keys token` prints."
        )
    return approvals_of(visit.app.config).find(str(arguments["id"]))


def _json(approval: Approval) -> Json:
    told = asdict(approval)
    shown = ("tool", "arguments", "known", "rule", "asked_at", "expires_at")
    return {"run": approval.attempt, **{name: told[name] for name in shown}}
