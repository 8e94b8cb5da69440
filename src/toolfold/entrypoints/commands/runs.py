"""`toolfold runs`: what the journal knows. Nothing heavy is imported."""

import dataclasses
from argparse import Namespace
from pathlib import Path

from toolfold.config.faults import shown
from toolfold.entrypoints.commands.audit import export, verify
from toolfold.entrypoints.commands.replay import replay
from toolfold.entrypoints.commands.runs_text import (
    print_json,
    print_text,
    read_journal,
    state_of,
)
from toolfold.entrypoints.commands.times import show_moment
from toolfold.errors import ConfigError, NotFound
from toolfold.journal.runs import Call, Run, RunKind, Text, find, newest

_VERBS = frozenset({"list", "show", "resume", "replay", "verify", "export"})
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


def runs(arguments: Namespace) -> int:
    """List the newest runs; show, replay or go on with one; verify or export the audit log."""
    if arguments.limit < 1:
        raise ConfigError(f"--limit takes a number of runs above 0, not {arguments.limit}.")
    match arguments.words:
        case [] | ["list"]:
            return _list(arguments)
        case ["resume", run_id]:
            return _resume(arguments, run_id)
        case ["replay", run_id]:
            return replay(arguments, run_id)
        case ["verify"]:
            return verify(arguments)
        case ["export"]:
            return export(arguments)
        case ["show", run_id] | [run_id] if run_id not in _VERBS:
            return _show_one(arguments, run_id)
        case words:
            raise ConfigError(
                "toolfold runs takes [show] ID, resume ID, replay ID, verify or export, "
                f"not {' '.join(words)!r}."
            )


def _resume(arguments: Namespace, run_id: str) -> int:
    from toolfold.entrypoints.commands import local  # heavy, and only this needs it

    run = read_journal(lambda connection: find(connection, run_id))
    return local.resume(arguments, run_id if run is None else run.id)


def _list(arguments: Namespace) -> int:
    found = read_journal(lambda connection: newest(connection, arguments.limit)) or []
    if arguments.json:
        print_json([_summary(run) for run in found])
    else:
        print("\n".join(map(_line, found)) or "No run is in the journal.")
    return 0


def _line(run: Run) -> str:
    project = shown(Path(run.origin.project).name or "-", max_chars=_SHOWN_PROJECT_CHARS)
    code = shown(_first_line(run.code), max_chars=_SHOWN_CODE_CHARS)
    return (
        f"{run.id}  {show_moment(run.began_at)}  {project:<12}  {state_of(run):<9}"
        f"  {run.call_count:>5} calls  {_kind(run)}{_progress(run)}{code}"
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


def _show_one(arguments: Namespace, run_id: str) -> int:
    run = read_journal(lambda connection: find(connection, run_id))
    if run is None:
        raise NotFound(f"No run has an id that begins with {run_id!r}: there is no journal.")
    if arguments.json:
        print_json(_summary(run) | _details(run))
        return 0
    print(f"{run.id}  {show_moment(run.began_at)}  {state_of(run)}")
    for word, said in (
        ("kind", _KINDS[run.kind]),
        ("project", run.origin.project),
        ("client", run.origin.client),
        ("session", run.start.session),
        ("resumes", run.start.resumes),
        ("progress", _progress(run).strip()),
    ):
        if said:
            print(f"{word}: {shown(said)}")
    print_text("code", run.code)
    print(f"{run.call_count} calls:" if run.calls else "No call was answered.")
    for call in run.calls:
        print(f"  {call.position:>5}  {_call_line(call)}")
    if run.ending:
        print_text("reply", run.ending.reply)
    else:
        print("It has no end: calls that were under way are not in this list.")
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
