"""The head of the audit log: a small file beside the journal that says how far the log goes.

It is moved on as runs end, so that entries which are cut off at the end are missed.
"""

import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hmac import compare_digest
from pathlib import Path
from typing import Final, NamedTuple

from toolfold.errors import StoreError
from toolfold.journal.audit.chain import NO_CHAIN, ChainLink, Signer
from toolfold.storage.files import make_file, replace_file
from toolfold.storage.locks import try_lock

SUFFIX: Final = "-head"
"""The end of its name, behind that of the journal."""

_FORM: Final = re.compile(rb"(\d{20}) ([0-9a-f]{64}) ([0-9a-f]{64})\n")
_SIZE: Final = 20 + 1 + 64 + 1 + 64 + 1
_TRY_S: Final = 0.0005
_MOVING_S: Final = 0.0025  # others hold it for microseconds, and move it as well
_READING_S: Final = 10.0  # unless they are made to wait by others still


class Head(NamedTuple):
    """How far the log goes."""

    seq: int
    chain: bytes


NOWHERE: Final = Head(0, NO_CHAIN)


def head_path(journal: Path) -> Path:
    """Return where the head of a journal is."""
    return journal.with_name(f"{journal.name}{SUFFIX}")


def read_head(journal: Path, signer: Signer) -> Head | None:
    """Return the head of a journal; None if it has none.

    Raises:
        StoreError: It cannot be read, or was changed by somebody else.
    """
    path = head_path(journal)
    try:
        with _held(path, os.O_RDONLY, _READING_S) as descriptor:
            return _parsed(path, os.read(descriptor, _SIZE + 1), signer)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"the head {path} cannot be read: {error.strerror or error}") from error


def advance(journal: Path, connection: sqlite3.Connection, signer: Signer) -> None:
    """Move the head on to the last entry, unless the log does not hold the entry it is at.

    Without entries a head is made, if there is none.

    Raises:
        TimeoutError: Another process moves it just now.
        StoreError: It cannot be moved, and the message says why.
        sqlite3.Error: The database does not answer.
    """
    path = head_path(journal)
    try:
        if not path.exists():
            if last_entry(connection) != NOWHERE:
                raise StoreError(f"the head {path} is missing")
            make_file(path, _text(NOWHERE, signer))
        with _held(path, os.O_RDWR, _MOVING_S) as descriptor:
            head = _parsed(path, os.read(descriptor, _SIZE + 1), signer)
            last = last_entry(connection)
            if last.seq == head.seq and last.chain == head.chain:
                return
            if not _is_in(connection, head):
                raise StoreError(f"entry {head.seq} of the audit log is missing or another")
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.write(descriptor, _text(last, signer))  # in one piece, whenever we are killed
    except TimeoutError:
        raise
    except OSError as error:
        raise StoreError(f"the head {path} cannot be moved: {error.strerror or error}") from error


def accept(journal: Path, connection: sqlite3.Connection, signer: Signer) -> Head:
    """Have the head say that the log goes as far as it does now; return that.

    Raises:
        StoreError: It cannot be written.
        sqlite3.Error: The database does not answer.
    """
    last = last_entry(connection)
    try:
        replace_file(head_path(journal), _text(last, signer))
    except OSError as error:
        raise StoreError(f"the head {head_path(journal)} cannot be written: {error}") from error
    return last


def last_entry(connection: sqlite3.Connection) -> Head:
    """Return where the log ends."""
    row = connection.execute("SELECT seq, link FROM audit ORDER BY seq DESC LIMIT 1").fetchone()
    return Head(row[0], ChainLink.of(row[1]).chain) if row else NOWHERE


def _is_in(connection: sqlite3.Connection, head: Head) -> bool:
    """Whether the log holds the entry, or pruning has deleted it."""
    row = connection.execute("SELECT link FROM audit WHERE seq = ?", (head.seq,)).fetchone()
    if row is not None:
        return ChainLink.of(row[0]).chain == head.chain
    anchored = connection.execute("SELECT seq, chain FROM anchor").fetchone()
    return anchored is not None and (head.seq < anchored[0] or head == anchored)


def _text(head: Head, signer: Signer) -> bytes:
    signed = signer.head(head.seq, head.chain)
    return f"{head.seq:020d} {head.chain.hex()} {signed.hex()}\n".encode()


def _parsed(path: Path, text: bytes, signer: Signer) -> Head:
    match = _FORM.fullmatch(text)
    if match is None:
        raise StoreError(f"the head {path} is damaged")
    head = Head(int(match[1]), bytes.fromhex(match[2].decode()))
    if head.seq >= 1 << 63 or not compare_digest(
        signer.head(head.seq, head.chain), bytes.fromhex(match[3].decode())
    ):
        raise StoreError(f"the head {path} was changed, or the key is another")
    return head


@contextmanager
def _held(path: Path, flags: int, patience_s: float) -> Iterator[int]:
    descriptor = os.open(path, flags)
    deadline = time.monotonic() + patience_s
    try:
        while not try_lock(descriptor):
            if time.monotonic() > deadline:
                raise TimeoutError("another process holds it")
            time.sleep(_TRY_S)
        yield descriptor
    finally:
        os.close(descriptor)
