"""`toolfold runs`: what the journal knows. Nothing heavy is imported."""

import dataclasses
import json
import sqlite3
from argparse import Namespace
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from toolfold.config.faults import shown
from toolfold.config.processes import is_alive_since
from toolfold.config.settings import load_config
from toolfold.errors import ConfigError, NotFound, StoreError
from toolfold.execution.runs import Call, Run, Text, find, newest
from toolfold.execution.runsdb import open_for_reading

_Found = TypeVar("_Found")

_VERBS = frozenset({"list", "show", "resume"})

_SHOWN_CODE_CHARS = 60
_SHOWN_PROJECT_CHARS = 20
_SHOWN_NOTE_CHARS = 40
_SHOWN_TEXT_CHARS = 200
_SHOWN_LINE_CHARS = 2_000


def runs(arguments: Namespace) -> int:
    """List the newest runs, show one with its calls, or go on with one."""
    if arguments.limit < 1:
        raise ConfigError(f"--limit takes a number of runs above 0, not {arguments.limit}.")
    match arguments.words:
        case [] | ["list"]:
            return _list(arguments)
        case ["resume", run_id]:
            return _resume(arguments, run_id)
        case ["show", run_id] | [run_id] if run_id not in _VERBS:
            return _show_one(arguments, run_id)
        case words:
            raise ConfigError(
                f"toolfold runs takes [show] ID or resume ID, not {' '.join(words)!r}."
            )


def _resume(arguments: Namespace, run_id: str) -> int:
    from toolfold.entrypoints.commands import local  # heavy, and only this needs it

    run = _read(lambda connection: find(connection, run_id))
    return local.resume(arguments, run_id if run is None else run.id)


def _list(arguments: Namespace) -> int:
    found = _read(lambda connection: newest(connection, arguments.limit)) or []
    if arguments.json:
        _print_json([_summary(run) for run in found])
    else:
        print("\n".join(map(_line, found)) or "No run is in the journal.")
    return 0


def _line(run: Run) -> str:
    project = shown(Path(run.origin.project).name or "-", max_chars=_SHOWN_PROJECT_CHARS)
    code = shown(_first_line(run.code), max_chars=_SHOWN_CODE_CHARS)
    return (
        f"{run.id}  {_when(run.began_at)}  {project:<12}  {_state(run):<9}"
        f"  {run.call_count:>5} calls  {_progress(run)}{code}"
    )


def _progress(run: Run) -> str:
    progress = run.progress
    if progress is None:
        return ""
    total = "" if progress.total is None else f"/{progress.total:g}"
    note = shown(progress.note, max_chars=_SHOWN_NOTE_CHARS)
    return f"[{progress.done:g}{total}{note and f' {note}'}]  "


def _show_one(arguments: Namespace, run_id: str) -> int:
    run = _read(lambda connection: find(connection, run_id))
    if run is None:
        raise NotFound(f"No run has an id that begins with {run_id!r}: there is no journal.")
    if arguments.json:
        _print_json(_summary(run) | _details(run))
        return 0
    print(f"{run.id}  {_when(run.began_at)}  {_state(run)}")
    for word, said in (
        ("project", run.origin.project),
        ("client", run.origin.client),
        ("session", run.start.session),
        ("resumes", run.start.resumes),
        ("progress", _progress(run).strip()),
    ):
        if said:
            print(f"{word}: {shown(said)}")
    _print_text("code", run.code)
    print(f"{run.call_count} calls:" if run.calls else "No call was answered.")
    for call in run.calls:
        print(f"  {call.position:>5}  {_call_line(call)}")
    if run.ending:
        _print_text("reply", run.ending.reply)
    else:
        print("It has no end: calls that were under way are not in this list.")
    return 0


def _read(read: Callable[[sqlite3.Connection], _Found]) -> _Found | None:
    """Ask the journal; None if there is none."""
    path = load_config().directories.data / "runs.db"
    connection = open_for_reading(path)
    if connection is None:
        return None
    try:
        with closing(connection):
            return read(connection)
    except sqlite3.Error as error:
        raise StoreError(f"The journal {path} cannot be read: {error}") from error


def _state(run: Run) -> str:
    if run.ending:
        return run.ending.failure or "ok"
    return "running" if is_alive_since(run.process, run.began_at) else "lost"


def _call_line(call: Call) -> str:
    ending = call.error if call.answer is None else call.answer.head
    arguments = shown(call.arguments.head, max_chars=_SHOWN_TEXT_CHARS)
    answer = shown(ending or "", max_chars=_SHOWN_TEXT_CHARS)
    return f"{call.tool}  {call.outcome}  {call.duration_s * 1000:.1f} ms  {arguments} -> {answer}"


def _print_text(name: str, text: Text) -> None:
    print(f"{name}:")
    for line in text.head.splitlines():
        print(f"    {shown(line, max_chars=_SHOWN_LINE_CHARS)}")
    if not text.is_whole:
        print(f"    ... {text.size_bytes:,} bytes in all; the rest is not kept.")


def _first_line(code: Text) -> str:
    return next((line.strip() for line in code.head.splitlines() if line.strip()), "")


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, tz=UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _summary(run: Run) -> dict[str, object]:
    return {
        "id": run.id,
        "began_at": run.began_at,
        "state": _state(run),
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


def _print_json(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))
