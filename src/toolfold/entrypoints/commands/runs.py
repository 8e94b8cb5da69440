"""`toolfold runs`: what the journal knows. Nothing heavy is imported."""

import dataclasses
import sys
from argparse import Namespace
from pathlib import Path

from toolfold.entrypoints.commands.runs_text import print_text, read_journal, state_cell
from toolfold.entrypoints.screen import (
    Cell,
    Column,
    exact_moment,
    moment,
    print_json,
    print_line,
    print_table,
)
from toolfold.errors import NotFound, count, shown
from toolfold.journal.decisions import DecisionEvent
from toolfold.journal.runs import Call, Run, RunKind, Text, state_of

_COLUMNS = (
    Column("RUN"),
    Column("STARTED"),
    Column("PROJECT"),
    Column("STATE"),
    Column("CALLS", is_number=True),
    Column("CODE", is_wide=True),
)
_KINDS: dict[RunKind, str] = {
    "code": "",
    "rehearsal": "dry run",
    "direct": "call",
    "request": "call",
    "hook": "hook",
    "reveal": "reveal",
}
"""What people read; nothing for what most runs are."""

_SHOWN_CODE_CHARS = 60
_SHOWN_PROJECT_CHARS = 20
_SHOWN_NOTE_CHARS = 40
_SHOWN_TEXT_CHARS = 200


def runs_list(arguments: Namespace) -> int:
    """List the newest runs."""
    found = read_journal(lambda journal: journal.newest(arguments.limit)) or []
    if arguments.json:
        print_json([_summary(run) for run in found])
    elif found:
        print_table(_COLUMNS, map(_row, found))
        if len(found) == arguments.limit:
            print("These are the newest; --limit N shows more.", file=sys.stderr)
    else:
        print("No runs yet. `toolfold run -c '1 + 1'` makes one.")
    return 0


def runs_resume(arguments: Namespace) -> int:
    """Resume a run that did not come to its own end."""
    from toolfold.entrypoints.commands import local  # heavy, and only this needs it

    run = find_run(arguments.run)
    return local.resume(arguments, arguments.run if run is None else run.id)


def find_run(wanted: str) -> Run | None:
    """Return the run whose id begins so, or the newest for `last`; None if there is no journal."""
    if wanted != "last":
        return read_journal(lambda journal: journal.find(wanted))
    newest = read_journal(lambda journal: journal.newest(1))
    return read_journal(lambda journal: journal.find(newest[0].id)) if newest else None


def _row(run: Run) -> tuple[str | Cell, ...]:
    project = shown(Path(run.origin.project).name or "-", max_chars=_SHOWN_PROJECT_CHARS)
    code = shown(_first_line(run.code), max_chars=_SHOWN_CODE_CHARS)
    return (
        Cell(run.id, "name"),
        Cell(moment(run.began_at), "dim"),
        project,
        state_cell(run),
        f"{run.call_count:,}",
        f"{_kind(run)}{_progress(run)}{code}",
    )


def _kind(run: Run) -> str:
    return f"[{kind}]  " if (kind := _KINDS[run.kind]) else ""


def _progress(run: Run) -> str:
    progress = run.progress
    if progress is None:
        return ""
    total = "" if progress.total is None else f"/{progress.total:g}"
    note = shown(progress.note, max_chars=_SHOWN_NOTE_CHARS)
    return f"[{progress.done:g}{total}{note and f' {note}'}]  "


def runs_show(arguments: Namespace) -> int:
    """Show a run with its calls."""
    run_id = arguments.run
    run = find_run(run_id)
    if run is None:
        raise NotFound(
            f"No run has an id that begins with {run_id!r}: nothing has run yet. "
            "`toolfold run` runs code."
        )
    following = _following(run)
    if arguments.json:
        resumed_as = {"resumed_as": following.id if following else None}
        print_json(_summary(run) | resumed_as | _details(run))
        return 0
    print_line(Cell(run.id, "name"), f"  {exact_moment(run.began_at)}  ", state_cell(run))
    for word, said in (
        ("kind", _KINDS[run.kind]),
        ("project", run.origin.project),
        ("client", run.origin.client),
        ("session", run.start.session),
        ("resumes", run.start.resumes),
        ("resumed as", f"{following.id}, {state_of(following)}" if following else ""),
        ("progress", _progress(run).strip()),
        ("failure", _failure(run) or ""),
        *(("decided", each) for each in _decisions(run)),
    ):
        if said:
            print(f"{word}: {shown(said)}")
    print_text("code", run.code)
    calls = count(run.call_count, "call")
    print_line(Cell(f"{calls}:" if run.calls else "No calls.", "strong"))
    for call in run.calls:
        print(f"  {call.position:>5}  {_call_line(call)}")
    if run.ending:
        print_text("reply", run.ending.reply)
    else:
        print(_without_end(run, following))
    return 0


def _following(run: Run) -> Run | None:
    """Return the newest run that went on with this one; None where none did."""
    found = read_journal(lambda journal: journal.find_following(run.id))
    return None if found is None or found.id == run.id else found


def _without_end(run: Run, following: Run | None) -> str:
    if following is None and state_of(run) != "lost":
        return "The run has not ended: calls in progress are not listed."
    lost = "The run was lost with its process: calls that were in progress are not listed."
    if following:
        return f"{lost} {following.id} resumed it."
    return f"{lost} `toolfold runs resume {run.id}` resumes it."


def _call_line(call: Call) -> str:
    ending = call.error if call.answer is None else call.answer.head
    arguments = shown(call.arguments.head, max_chars=_SHOWN_TEXT_CHARS)
    answer = shown(ending or "", max_chars=_SHOWN_TEXT_CHARS)
    return f"{call.tool}  {call.outcome}  {call.duration_s * 1000:.1f} ms  {arguments} -> {answer}"


def _first_line(code: Text) -> str:
    """Return the first line that says what a program does: imports come before it."""
    lines = [line.strip() for line in code.head.splitlines() if line.strip()]
    telling = (line for line in lines if not line.startswith(("import ", "from ", "#")))
    return next(telling, lines[0].removeprefix("# ") if lines else "")


def _failure(run: Run) -> str | None:
    """Return how a run failed; None where it did not, or another went on with it and did not."""
    return None if run.ending is None or state_of(run) == "done" else run.ending.failure


def _decisions(run: Run) -> list[str]:
    """Say what was decided about calls of a run."""
    found = read_journal(lambda journal: journal.recordings(run.id)) or []
    events = (timed.what for attempt, timeds in found for timed in timeds)
    return [
        f"{event.tool} {event.action} by {event.by}"
        for event in events
        if isinstance(event, DecisionEvent) and event.action in {"approved", "rejected", "expired"}
    ]


def _summary(run: Run) -> dict[str, object]:
    return {
        "id": run.id,
        "began_at": run.began_at,
        "state": state_of(run),
        "failure": _failure(run),
        "kind": run.kind,
        "project": run.origin.project,
        "client": run.origin.client,
        "request": run.origin.request,
        "session": run.start.session,
        "resumes": run.start.resumes,
        "progress": dataclasses.asdict(run.progress) if run.progress else None,
        "calls": run.call_count,
        "code": run.code.head,
        "code_bytes": run.code.size_bytes,
    }


def _details(run: Run) -> dict[str, object]:
    ending = dataclasses.asdict(run.ending) if run.ending else None
    return {"ending": ending, "calls": [dataclasses.asdict(call) for call in run.calls]}
