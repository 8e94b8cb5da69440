"""`toolfold runs verify` and `toolfold runs export`: the audit log."""

import dataclasses
import sqlite3
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from toolfold.config.config import load_config
from toolfold.config.faults import shown
from toolfold.entrypoints.commands.times import parse_since
from toolfold.entrypoints.screen import count, print_json
from toolfold.entrypoints.terminal import absolute
from toolfold.errors import NotFound, StoreError
from toolfold.journal.audit.chain import Signer, key_path, read_signer
from toolfold.journal.audit.export import lines
from toolfold.journal.audit.head import accept, head_path, last_entry, read_head
from toolfold.journal.audit.verify import AuditFault, Verified, snapshot
from toolfold.journal.audit.verify import verify as verify_log
from toolfold.journal.runsdb import open_for_reading, read_journal
from toolfold.memory.transfer.files import NewFile
from toolfold.storage.sqlite_file import is_damage

_ACCEPT = (
    "If you know why its end is missing (the power failed), `toolfold runs verify --accept` "
    "takes the log as it is."
)


def verify(arguments: Namespace) -> int:
    """Verify the audit log; 1 if something is wrong."""
    path = _journal()
    aside = _set_aside(path)
    try:
        verified = _verified(path, is_accepting=arguments.accept)
    except StoreError as error:
        if not _is_evidence(error):
            raise
        verified = _nothing(AuditFault(what=str(error)))
    if arguments.json:
        print_json(dataclasses.asdict(verified) | {"set_aside": aside})
    else:
        print("\n".join(_verified_lines(verified, aside)))
    return int(verified.fault is not None or bool(aside) or bool(verified.gaps))


def _verified(path: Path, *, is_accepting: bool) -> Verified:
    connection = open_for_reading(path)
    if connection is None:
        is_gone = head_path(path).exists()
        return _nothing(AuditFault(what=f"the journal {path} is gone") if is_gone else None)
    with closing(connection):
        signer = read_signer(path)
        if signer is None:
            return _nothing(AuditFault(what=f"the key {key_path(path)} is missing"))
        if is_accepting:
            return _accepted(path, connection, signer)
        try:
            head = read_head(path, signer)
        except StoreError as error:
            return _nothing(AuditFault(what=str(error), is_end=True))
        with snapshot(connection):
            return verify_log(connection, signer, head)


def _accepted(path: Path, connection: sqlite3.Connection, signer: Signer) -> Verified:
    """Take the log to end where it does, if all that is there holds."""
    with snapshot(connection):
        verified = verify_log(connection, signer, last_entry(connection))
    if verified.fault is None:
        accept(path, connection, signer)
    return verified


def _nothing(fault: AuditFault | None) -> Verified:
    return Verified(entries=0, runs=0, pruned=0, trimmed=0, older=0, fault=fault)


def _is_evidence(error: StoreError) -> bool:
    """Whether it says that the log is damaged, and not that it cannot be read just now."""
    return isinstance(error.__cause__, sqlite3.Error) and is_damage(error.__cause__)


def _verified_lines(verified: Verified, aside: list[str]) -> Iterator[str]:
    if verified.fault:
        yield from _fault_lines(verified.fault)
    else:
        entries = count(verified.entries, "entry", "entries")
        yield f"Audit log verified: {entries} of {count(verified.runs, 'run')}."
    for gap in verified.gaps:
        yield f"Something is missing: {shown(gap, max_chars=500)}"
    if verified.pruned or verified.trimmed:
        yield (
            f"Retention has deleted the rows of {verified.pruned:,} entries, "
            f"and {verified.trimmed:,} entries before the first one."
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

    def written(connection: sqlite3.Connection) -> int:
        with snapshot(connection):
            return _write(lines(connection, since=since), arguments.out)

    status = read_journal(path, written)
    if status is None:
        raise NotFound("Nothing has run yet: there is nothing to export.")
    return status


def _write(exported: Iterator[str], out: str | None) -> int:
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
    print(f"{count(file.lines - 1, 'entry', 'entries')} written to {out}.", file=sys.stderr)
    return 0


def _journal() -> Path:
    return load_config().directories.data / "runs.db"


def _set_aside(path: Path) -> list[str]:
    found = path.parent.glob(f"{path.name}.broken-*")
    return sorted(each.name for each in found if each.name.rpartition("-")[2].isdigit())
