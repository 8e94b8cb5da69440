"""`toolfold runs`: what the journal knows. Nothing heavy is imported."""

import dataclasses
from argparse import Namespace
from pathlib import Path

from toolfold.config.faults import shown
from toolfold.entrypoints.commands.runs_text import print_text, read_journal, state_cell
from toolfold.entrypoints.screen import (
    Cell,
    Column,
    count,
    exact_moment,
    moment,
    print_json,
    print_line,
    print_table,
)
from toolfold.errors import ConfigError, NotFound
from toolfold.journal.runs import Call, Run, RunKind, Text
from toolfold.journal.states import state_of

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
    "direct": "one tool",
    "request": "one tool, for a program",
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
    if arguments.limit < 1:
        raise ConfigError(f"--limit takes a number above 0, not {arguments.limit}.")
    found = read_journal(lambda journal: journal.newest(arguments.limit)) or []
    if arguments.json:
        print_json([_summary(run) for run in found])
    elif found:
        print_table(_COLUMNS, map(_row, found))
    else:
        print("No runs yet. `toolfold run -c '1 + 1'` makes one.")
    return 0


def runs_resume(arguments: Namespace) -> int:
    """Resume a run that did not come to its own end."""
    from toolfold.entrypoints.commands import local  # heavy, and only this needs it

    run = read_journal(lambda journal: journal.find(arguments.run))
    return local.resume(arguments, arguments.run if run is None else run.id)


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
    run = read_journal(lambda journal: journal.find(run_id))
    if run is None:
        raise NotFound(
            f"No run has an id that begins with {run_id!r}: nothing has run yet. "
            "`toolfold run` runs code."
        )
    if arguments.json:
        print_json(_summary(run) | _details(run))
        return 0
    print_line(Cell(run.id, "name"), f"  {exact_moment(run.began_at)}  ", state_cell(run))
    for word, said in (
        ("kind", _KINDS[run.kind]),
        ("project", run.origin.project),
        ("client", run.origin.client),
        ("session", run.start.session),
        ("resumes", run.start.resumes),
        ("progress", _progress(run).strip()),
        ("failure", (run.ending.failure if run.ending else "") or ""),
    ):
        if said:
            print(f"{word}: {shown(said)}")
    print_text("code", run.code)
    calls = count(run.call_count, "call")
    print_line(Cell(f"{calls}:" if run.calls else "No call was answered.", "strong"))
    for call in run.calls:
        print(f"  {call.position:>5}  {_call_line(call)}")
    if run.ending:
        print_text("reply", run.ending.reply)
    else:
        print("The run has not ended: calls in progress are not listed.")
    return 0


def _call_line(call: Call) -> str:
    ending = call.error if call.answer is None else call.answer.head
    arguments = shown(call.arguments.head, max_chars=_SHOWN_TEXT_CHARS)
    answer = shown(ending or "", max_chars=_SHOWN_TEXT_CHARS)
    return f"{call.tool}  {call.outcome}  {call.duration_s * 1000:.1f} ms  {arguments} -> {answer}"


def _first_line(code: Text) -> str:
    return next((line.strip() for line in code.head.splitlines() if line.strip()), "")


def _summary(run: Run) -> dict[str, object]:
    return {
        "id": run.id,
        "began_at": run.began_at,
        "state": state_of(run),
        "failure": run.ending.failure if run.ending else None,
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
