"""Check the audit log beside a journal as a whole: its key, its head, and every entry."""

import sqlite3
from contextlib import closing
from pathlib import Path

from toolfold.errors import StoreError
from toolfold.journal.audit.chain import (
    Signer,
    accept,
    head_path,
    key_path,
    last_entry,
    read_head,
    read_signer,
)
from toolfold.journal.audit.verify import AuditFault, Verified, snapshot, verify, verify_run
from toolfold.journal.runsdb import open_for_reading
from toolfold.storage.sqlite_file import is_damage


def check_log(path: Path, *, is_accepting: bool = False) -> Verified:
    """Return what there is of the log of a journal, and what is wrong with it.

    With `is_accepting` the log is taken to end where it does, if all that is there holds.

    Raises:
        StoreError: It cannot be read just now.
    """
    try:
        return _verified(path, is_accepting=is_accepting)
    except StoreError as error:
        if not _is_evidence(error):
            raise
        return _nothing(AuditFault(what=str(error)))


def check_run(path: Path, run_id: str) -> Verified:
    """Return what the log of a journal has of one run that is there, and what is wrong with it.

    Raises:
        StoreError: It cannot be read just now.
    """
    connection = open_for_reading(path)
    if connection is None:
        return _nothing(AuditFault(what=f"the journal {path} is missing"))
    with closing(connection):
        signer = read_signer(path)
        if signer is None:
            return _nothing(AuditFault(what=f"the key {key_path(path)} is missing"))
        with snapshot(connection):
            return verify_run(connection, signer, run_id)


def _verified(path: Path, *, is_accepting: bool) -> Verified:
    connection = open_for_reading(path)
    if connection is None:
        is_gone = head_path(path).exists()
        return _nothing(AuditFault(what=f"the journal {path} is missing") if is_gone else None)
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
            return verify(connection, signer, head)


def _accepted(path: Path, connection: sqlite3.Connection, signer: Signer) -> Verified:
    """Take the log to end where it does, if all that is there holds."""
    with snapshot(connection):
        verified = verify(connection, signer, last_entry(connection))
    if verified.fault is None:
        accept(path, connection, signer)
    return verified


def _nothing(fault: AuditFault | None) -> Verified:
    return Verified(entries=0, runs=0, pruned=0, trimmed=0, older=0, fault=fault)


def _is_evidence(error: StoreError) -> bool:
    """Whether it says that the log is damaged, and not that it cannot be read just now."""
    return isinstance(error.__cause__, sqlite3.Error) and is_damage(error.__cause__)
