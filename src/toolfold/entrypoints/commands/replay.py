"""`toolfold runs replay`: a run once more, from what was recorded. Nothing is called."""

from argparse import Namespace

from toolfold.entrypoints.commands.runs import find_run
from toolfold.entrypoints.commands.runs_text import print_text, read_journal, state_cell
from toolfold.entrypoints.screen import Cell, exact_moment, print_json, print_line
from toolfold.errors import NotFound, shown
from toolfold.journal.decisions import (
    DecisionEvent,
    RevealEvent,
    TimedDecision,
    recording_json,
    steps,
)
from toolfold.journal.runs import Call, Run, Text

_SHOWN_CHARS = 2_000

RecordedRun = tuple[Run, list[TimedDecision]]


def replay(arguments: Namespace) -> int:
    """Show what a run did, step by step, with all attempts that it took."""
    found = find_run(arguments.run)
    run_id = arguments.run if found is None else found.id
    recordings = read_journal(lambda journal: journal.recordings(run_id))
    if recordings is None:
        raise NotFound(f"No run has an id that begins with {run_id!r}: nothing has run yet.")
    if arguments.json:
        print_json([recording_json(*recording) for recording in recordings])
        return 0
    for run, events in recordings:
        _print(run, events)
    print("Nothing was called: these are recorded answers.")
    return 0


def _print(run: Run, events: list[TimedDecision]) -> None:
    when = exact_moment(run.began_at)
    print_line("run ", Cell(run.id, "name"), f"  {when}  ", state_cell(run))
    print_text("code", run.code)
    for position, said, call in steps(run, events):
        tool = (
            call.tool if call else next((e.tool for e in said if isinstance(e, DecisionEvent)), "")
        )
        print(f"step {position}: {shown(tool)}" if position else "of the run:")
        if call:
            print(f"    arguments: {_text(call.arguments)}")
        for each in said:
            print(f"    {_event_line(each)}")
        print(f"    {_answer_line(run, call)}" if call else "    no answer is recorded")
    if run.ending:
        print_text("reply", run.ending.reply)
    else:
        print("The run has not ended.")


def _event_line(event: DecisionEvent | RevealEvent) -> str:
    if isinstance(event, RevealEvent):
        return f"revealed to {shown(event.upstream)}: {event.count} {shown(event.kind)}"
    return f"{event.action} by {shown(event.by)}: {shown(event.rule)}"


def _answer_line(run: Run, call: Call) -> str:
    when = f"after {call.started_at - run.began_at:.3f} s, in {call.duration_s * 1000:.1f} ms"
    answer = shown(call.error or "", max_chars=_SHOWN_CHARS)
    if call.answer is not None:
        answer = _text(call.answer)
    return f"{call.outcome}, {when}: {answer}"


def _text(text: Text) -> str:
    said = shown(text.head, max_chars=_SHOWN_CHARS)
    return said if text.is_whole else f"{said} ({text.size_bytes:,} bytes in all)"
