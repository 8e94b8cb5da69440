"""`toolfold runs verify` and `toolfold runs export`: the audit log."""

import dataclasses
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from toolfold.config.config import load_config
from toolfold.entrypoints.commands.times import parse_since
from toolfold.entrypoints.screen import print_json
from toolfold.entrypoints.terminal import absolute, read_file
from toolfold.errors import BadInput, NotFound, count, shown
from toolfold.journal.audit.chain import key_path, read_signer
from toolfold.journal.audit.exported import verify_export
from toolfold.journal.audit.verify import AuditFault, Verified
from toolfold.journal.audit_check import check_log
from toolfold.journal.reader import JournalReader, read_journal
from toolfold.memory.transfer.items import NewFile

_ACCEPT = (
    "If you know why its end is missing (the power failed), `toolfold runs verify --accept` "
    "accepts the log as it is."
)


def verify(arguments: Namespace) -> int:
    """Verify the audit log, or an export of it; 1 if something is wrong."""
    path = _journal()
    if arguments.file:
        return _verify_export(arguments, path)
    aside = _set_aside(path)
    verified = check_log(path, is_accepting=arguments.accept)
    if arguments.json:
        print_json(dataclasses.asdict(verified) | {"set_aside": aside})
    else:
        print("\n".join(_verified_lines(verified, aside)))
    return int(verified.fault is not None or bool(aside) or bool(verified.gaps))


def _verify_export(arguments: Namespace, path: Path) -> int:
    if arguments.accept:
        raise BadInput("--accept and FILE exclude each other: give one of them.")
    exported, signer = read_file(arguments.file), read_signer(path)
    if signer is None:
        raise NotFound(f"The key {key_path(path)} is missing: the export cannot be verified here.")
    verified = verify_export(exported.splitlines(), signer)
    if arguments.json:
        print_json(dataclasses.asdict(verified))
    elif verified.fault:
        print(f"The export does not verify: {shown(verified.fault, max_chars=500)}.")
    else:
        print(f"Export verified: {count(verified.entries, 'entry', 'entries')}.")
    return int(bool(verified.fault))


def _verified_lines(verified: Verified, aside: list[str]) -> Iterator[str]:
    if verified.fault:
        yield from _fault_lines(verified.fault)
    else:
        entries = count(verified.entries, "entry", "entries")
        yield f"Audit log verified: {entries} of {count(verified.runs, 'run')}."
    for gap in verified.gaps:
        yield f"Missing: {shown(gap, max_chars=500)}"
    if verified.pruned or verified.trimmed:
        yield (
            f"Retention has deleted rows: of entries {verified.pruned:,}, before the first one "
            f"{verified.trimmed:,}."
        )
    if verified.older:
        older = count(verified.older, "older run")
        yield f"{older} from before the audit log: no entries."
    for name in aside:
        yield (
            f"{shown(name)} was set aside because it was damaged. What it logged is not verified; "
            "move it elsewhere once you have looked at it."
        )


def _fault_lines(fault: AuditFault) -> Iterator[str]:
    of = f" It belongs to run {shown(fault.run)}." if fault.run else ""
    yield f"The audit log does not verify: {shown(fault.what, max_chars=500)}.{of}"
    if fault.is_end:
        yield _ACCEPT


def export(arguments: Namespace) -> int:
    """Write the audit log as lines of JSON."""
    since = parse_since(arguments.since, now=time.time()) if arguments.since else 0.0
    path = _journal()

    def written(journal: JournalReader) -> int:
        return _write(journal.audit_lines(since=since), arguments)

    status = read_journal(path, written)
    if status is None:
        raise NotFound("Nothing has run yet: there is nothing to export.")
    return status


def _write(exported: Iterator[str], arguments: Namespace) -> int:
    out = arguments.out
    if out in (None, "-"):
        for line in exported:
            sys.stdout.buffer.write(line.encode() + b"\n")
        sys.stdout.buffer.flush()
        return 0
    file = NewFile(Path(absolute(out or "")))
    try:
        for line in exported:
            file.write(line)
        file.finish()
    finally:
        file.discard()
    written = file.lines - 1
    if arguments.json:
        print_json({"file": out, "entries": written})
    else:
        print(f"{count(written, 'entry', 'entries')} written to {out}.", file=sys.stderr)
    return 0


def _journal() -> Path:
    return load_config().directories.data / "runs.db"


def _set_aside(path: Path) -> list[str]:
    found = path.parent.glob(f"{path.name}.broken-*")
    return sorted(each.name for each in found if each.name.rpartition("-")[2].isdigit())
