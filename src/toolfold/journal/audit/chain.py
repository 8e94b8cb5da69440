"""The audit log: an entry for every row of a run, each chained to the one before by a keyed hash.

An entry holds a digest of its row, and a chain: a signature over that digest and the chain before
it. Both are written in one transaction, in which nobody else writes, so that all processes that
write to one journal make one chain.
"""

import hashlib
import os
import re
import secrets
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hmac import compare_digest
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from toolfold.errors import StoreError
from toolfold.journal.runs import CALLS_BITS
from toolfold.storage.files import make_file, make_private, replace_file, try_lock
from toolfold.storage.migrations import SqlFunctions
from toolfold.storage.tables import SqlTransaction

EntryKind = Literal["begin", "call", "end", "decision", "reveal"]

RUN_KEYS: Final = 1 << CALLS_BITS
"""How many keys one run has in a table whose rows have a place in it."""

HASH_BYTES: Final = 32
NO_CHAIN: Final = bytes(HASH_BYTES)
"""What stands before the first entry."""

_BLOCK_BYTES: Final = 64
_TAGS: Final = {int: "q", float: "d", str: "s", type(None): "n"}
_MARK: Final = struct.Struct(">qd").pack
_ANCHOR: Final = struct.Struct(">qqq").pack
_HEAD: Final = struct.Struct(">q").pack


class Audited(NamedTuple):
    """A table whose rows have entries."""

    table: str
    at: str
    """The column with the time of its entries."""
    columns: tuple[str, ...]
    """What is hashed, in this order; the first is the key."""
    is_numbered: bool = False
    """Whether the key is the number of the run alone, without a place in it."""

    def run_number(self, ref: int) -> int:
        """Return the number of the run that a row belongs to."""
        return ref if self.is_numbered else ref >> CALLS_BITS

    def first_key(self, number: int) -> int:
        """Return the lowest key that a row of that run can have."""
        return number if self.is_numbered else number << CALLS_BITS


# What is hashed can never change: a table with another column needs another kind beside these.
AUDITED: Final[dict[EntryKind, Audited]] = {
    "begin": Audited(
        "beginnings",
        "began_at",
        ("number", "id", "began_at", "client", "request", "project", "process", "code",
         "code_bytes", "code_sha256", "kind", "session", "generation", "resumes"),
        is_numbered=True,
    ),
    "call": Audited(
        "calls",
        "started_at",
        ("id", "tool", "outcome", "arguments", "arguments_bytes", "arguments_sha256", "answer",
         "answer_bytes", "answer_sha256", "error", "started_at", "duration_s"),
    ),
    "end": Audited(
        "ends",
        "ended_at",
        ("number", "ended_at", "failure", "reply", "reply_bytes", "reply_sha256"),
        is_numbered=True,
    ),
    "decision": Audited(
        "decisions",
        "at",
        ("id", "position", "tool", "rule", "action", "decided_by", "arguments_sha256", "at"),
    ),
    "reveal": Audited("reveals", "at", ("id", "position", "upstream", "kind", "count", "at")),
}  # fmt: skip


class ChainLink(NamedTuple):
    """What an entry holds of its row, and of all entries before it."""

    digest: bytes
    chain: bytes

    @classmethod
    def of(cls, stored: bytes) -> "ChainLink":
        """Take apart what is stored as one."""
        return cls(stored[:HASH_BYTES], stored[HASH_BYTES:])


class Signer:
    """Signs with the key of a journal: HMAC-SHA-256.

    The two hashes that it begins with are kept: `hmac` takes several times as long for each row.
    """

    def __init__(self, key: bytes) -> None:
        padded = key.ljust(_BLOCK_BYTES, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in padded))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in padded))

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()

    def chain(self, before: bytes, digest: bytes, kind: bytes, ref: int, at: float) -> bytes:
        """Return the chain of an entry."""
        return self.sign(before + digest + _MARK(ref, at) + kind)

    def anchor(self, seq: int, chain: bytes, since: int, below: int) -> bytes:
        """Return the signature of an anchor."""
        return self.sign(b"anchor" + _ANCHOR(seq, since, below) + chain)

    def head(self, seq: int, chain: bytes) -> bytes:
        """Return the signature of a head."""
        return self.sign(b"head" + _HEAD(seq) + chain)


def digest(row: tuple[Any, ...]) -> bytes:
    """Return the hash of a row: of the kinds, numbers and lengths of its values, and its texts.

    Raises:
        KeyError: It holds a value that is never written.
        struct.error: It holds a number that is never written.
    """
    types = tuple(map(type, row))
    tags, pack, pick_numbers, pick_texts = _forms.get(types) or _form(types)
    texts = pick_texts(row)
    head = tags + pack(*pick_numbers(row), *map(len, texts))
    return hashlib.sha256(head + "".join(texts).encode("utf-8", "surrogateescape")).digest()


_Pick = Callable[[tuple[Any, ...]], tuple[Any, ...]]
_forms: dict[tuple[type, ...], tuple[bytes, Callable[..., bytes], _Pick, _Pick]] = {}
"""By the types of values: there are as many as columns may be null."""


def _form(types: tuple[type, ...]) -> tuple[bytes, Callable[..., bytes], _Pick, _Pick]:
    tags = "".join(_TAGS[each] for each in types)
    numbers = [place for place, tag in enumerate(tags) if tag in "qd"]
    texts = [place for place, tag in enumerate(tags) if tag == "s"]
    layout = "".join(tags[place] for place in numbers) + "q" * len(texts)
    pack = struct.Struct(f">{layout}").pack
    form = _forms[types] = tags.encode(), pack, _picking(numbers), _picking(texts)
    return form


def _picking(places: list[int]) -> _Pick:
    if len(places) > 1:
        return itemgetter(*places)
    return lambda row: tuple(row[place] for place in places)


def key_path(journal: Path) -> Path:
    """Return where the key of a journal is."""
    return journal.with_name(f"{journal.name}-key")


def read_signer(journal: Path) -> Signer | None:
    """Return what signs for a journal; None if it has no key.

    Raises:
        StoreError: The key cannot be read.
    """
    path = key_path(journal)
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"The key {path} cannot be read: {error.strerror}.") from error
    if len(key) != HASH_BYTES:
        raise StoreError(f"The key {path} is damaged: it has {len(key)} bytes, not {HASH_BYTES}.")
    return Signer(key)


def signer_of(journal: Path) -> Signer:
    """Return what signs for a journal, with a new key if it has none.

    Raises:
        StoreError: The key cannot be read, or made.
    """
    if (signer := read_signer(journal)) is not None:
        return signer
    path = key_path(journal)
    try:
        make_private(path.parent)
        make_file(path, secrets.token_bytes(HASH_BYTES))
    except OSError as error:
        raise StoreError(f"The key {path} cannot be made: {error.strerror or error}.") from error
    return signer_of(journal)


def prepare(connection: SqlFunctions, journal: Path) -> None:
    """Give a connection the function that signs the first anchor of a file."""

    def anchor(seq: int, chain: bytes, since: int, below: int) -> bytes:
        return signer_of(journal).anchor(seq, chain, since, below)

    connection.create_function("audit_anchor", 4, anchor)


def trigger(kind: EntryKind) -> str:
    """Return the statement that has rows of a kind refused whose entry was not written before.

    A process of an older version does not write entries. While there is no anchor, rows are copied.
    """
    audited = AUDITED[kind]
    return f"""
        CREATE TRIGGER audit_{kind} AFTER INSERT ON {audited.table}
        WHEN EXISTS (SELECT 1 FROM anchor) AND NOT EXISTS (
            SELECT 1 FROM audit WHERE seq = (SELECT max(seq) FROM audit)
                AND kind = '{kind}' AND ref = NEW.{audited.columns[0]}
        ) BEGIN
            SELECT RAISE(ABORT, 'a newer toolfold has updated the journal: restart this one');
        END
    """  # noqa: S608


# The head of the audit log: a small file beside the journal that says how far the log goes.
#
# It is moved on as runs end, so that entries which are cut off at the end are missed.

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
        StoreError: It cannot be read, or was changed by another process.
    """
    path = head_path(journal)
    try:
        with _held(path, os.O_RDONLY, _READING_S) as descriptor:
            return _parsed(path, os.read(descriptor, _SIZE + 1), signer)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"the head {path} cannot be read: {error.strerror or error}") from error


def advance(journal: Path, signer: Signer, last: Head, is_logged: Callable[[Head], bool]) -> Head:
    """Move the head on to the last entry, unless the log does not hold the entry it is at.

    Without entries a head is made, if there is none. Return where it is then.

    Raises:
        TimeoutError: Another process moves it just now.
        StoreError: It cannot be moved, and the message says why; or the log does not answer.
    """
    path = head_path(journal)
    try:
        if not path.exists():
            if last != NOWHERE:
                raise StoreError(f"the head {path} is missing")
            make_file(path, _text(NOWHERE, signer))
        with _held(path, os.O_RDWR, _MOVING_S) as descriptor:
            head = _parsed(path, os.read(descriptor, _SIZE + 1), signer)
            if last == head:
                return head
            if not is_logged(head):
                raise StoreError(f"entry {head.seq} of the audit log is missing or another")
            if last.seq > head.seq:
                os.lseek(descriptor, 0, os.SEEK_SET)
                os.write(descriptor, _text(last, signer))  # in one piece, whenever we are killed
            return max(last, head)
    except TimeoutError:
        raise
    except OSError as error:
        raise StoreError(f"the head {path} cannot be moved: {error.strerror or error}") from error


def accept(journal: Path, connection: SqlTransaction, signer: Signer) -> Head:
    """Have the head say that the log goes as far as it does now; return that.

    Raises:
        StoreError: It cannot be written.
    """
    last = last_entry(connection)
    try:
        replace_file(head_path(journal), _text(last, signer))
    except OSError as error:
        raise StoreError(f"the head {head_path(journal)} cannot be written: {error}") from error
    return last


def last_entry(connection: SqlTransaction) -> Head:
    """Return where the log ends."""
    row = connection.execute("SELECT seq, link FROM audit ORDER BY seq DESC LIMIT 1").fetchone()
    return Head(row[0], ChainLink.of(row[1]).chain) if row else NOWHERE


def is_in(connection: SqlTransaction, head: Head) -> bool:
    """Whether the log holds the entry, or pruning has deleted it."""
    row = connection.execute("SELECT link FROM audit WHERE seq = ?", (head.seq,)).fetchone()
    if row is not None:
        return ChainLink.of(row[0]).chain == head.chain
    anchored = connection.execute("SELECT seq, chain FROM anchor").fetchone()
    return anchored is not None and (head.seq < anchored[0] or head == Head(*anchored))


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
                raise TimeoutError("another process has locked it")
            time.sleep(_TRY_S)
        yield descriptor
    finally:
        os.close(descriptor)
