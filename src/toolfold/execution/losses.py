"""What can be said of requests whose daemon died before they were answered."""

import logging
from collections.abc import Iterable

from toolfold.errors import StoreError
from toolfold.execution.report import Tally, completed_text
from toolfold.journal.journal import Journal
from toolfold.journal.runs import Run
from toolfold.jsontypes import JsonObject

_log = logging.getLogger(__name__)


def describe_losses(
    journal: Journal, client: str, requests: Iterable[str]
) -> dict[str, JsonObject | None]:
    """Say of each request of a client what came of it; None where that is not known."""
    try:
        return {request: _describe(journal.latest(client, request)) for request in requests}
    except StoreError as error:
        _log.warning("What lost runs had done cannot be said: %s", error)
        return {}


def interrupted_text(journal: Journal, run_id: str) -> str:
    """Say what a run had done when the person who waited for it interrupted it."""
    run = journal.find(run_id)
    return f"Interrupted. {_done(run)} `toolfold runs resume {run.id}` goes on from there."


def _describe(run: Run | None) -> JsonObject | None:
    if run is None:
        return None
    if run.ending is None:
        return {"text": _lost(run), "isError": True}
    if run.ending.failure == "cancelled":
        return {"text": f"The run was ended with the daemon. {_done(run)}", "isError": True}
    # It had ended, and only the answer was lost.
    return {"text": run.ending.reply.head, "isError": run.ending.failure is not None}


def _lost(run: Run) -> str:
    return (
        "The toolfold daemon ended during this run, and the run with it. "
        f"{_done(run)} One more call may have been under way. Do not run the code again: "
        f"`import runs; runs.resume({run.id!r})`, or `toolfold runs resume {run.id}`, goes on from "
        "there and repeats nothing that was done."
    )


def _done(run: Run) -> str:
    tally = Tally()
    for call in run.calls:
        tally.begin(call.tool)
        if call.outcome == "ok":
            tally.complete(call.tool)
        elif call.outcome == "failed":
            tally.fail(call.tool)
    return completed_text(tally.counts())
