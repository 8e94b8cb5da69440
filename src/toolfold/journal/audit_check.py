"""Check the audit log beside a journal as a whole: its key, its head, and every entry."""

from pathlib import Path

from toolfold.errors import StoreDamaged, StoreError
from toolfold.journal.audit.chain import (
    Signer,
    accept,
    head_path,
    key_path,
    last_entry,
    read_head,
    read_signer,
)
from toolfold.journal.audit.verify import AuditFault, Verified, verify, verify_run
from toolfold.journal.runsdb import read_journal
from toolfold.storage.tables import SqlTransaction


def check_log(path: Path, database_url: str = "", *, is_accepting: bool = False) -> Verified:
    """Return what there is of the log of a journal, and what is wrong with it.

    With `is_accepting` the log is taken to end where it does, if all that is there holds.

    Raises:
        StoreError: It cannot be read just now.
    """
    try:
        return _verified(path, database_url, is_accepting=is_accepting)
    except StoreDamaged as error:  # that is evidence, and no reason to look again later
        return _nothing(AuditFault(what=str(error)))


def check_run(path: Path, run_id: str, database_url: str = "") -> Verified:
    """Return what the log of a journal has of one run that is there, and what is wrong with it.

    Raises:
        StoreError: It cannot be read just now.
    """
    signer = read_signer(path)
    if signer is None:
        return _nothing(AuditFault(what=f"the key {key_path(path)} is missing"))
    found = read_journal(path, lambda each: verify_run(each, signer, run_id), database_url)
    return found or _nothing(AuditFault(what=f"the journal {path} is missing"))


def _verified(path: Path, database_url: str, *, is_accepting: bool) -> Verified:
    is_there = read_journal(path, lambda _: True, database_url)  # a file of before has a key then
    signer = read_signer(path)
    if not is_there:
        return _gone(path)
    if signer is None:
        return _nothing(AuditFault(what=f"the key {key_path(path)} is missing"))
    if is_accepting:
        found = read_journal(path, lambda each: _accepted(path, each, signer), database_url)
        return found or _gone(path)
    try:
        head = read_head(path, signer)
    except StoreError as error:
        return _nothing(AuditFault(what=str(error), is_end=True))
    return read_journal(path, lambda each: verify(each, signer, head), database_url) or _gone(path)


def _accepted(path: Path, transaction: SqlTransaction, signer: Signer) -> Verified:
    """Take the log to end where it does, if all that is there holds."""
    verified = verify(transaction, signer, last_entry(transaction))
    if verified.fault is None:
        accept(path, transaction, signer)
    return verified


def _gone(path: Path) -> Verified:
    is_missed = head_path(path).exists()
    return _nothing(AuditFault(what=f"the journal {path} is missing") if is_missed else None)


def _nothing(fault: AuditFault | None) -> Verified:
    return Verified(entries=0, runs=0, pruned=0, trimmed=0, older=0, fault=fault)
