"""Whatever is changed in the audit log, or in what it speaks of, is found."""

import hashlib
import hmac
import random
import shutil
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from audited import DAY_S, Clock, check, fault, make_journal, one_run, opened, tampering

from toolfold.errors import ToolFailed
from toolfold.journal.audit.chain import (
    AUDITED,
    Signer,
    accept,
    digest,
    head_path,
    key_path,
    read_signer,
    trigger,
)
from toolfold.journal.runs import Origin


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of three runs, and the copies of its files that a test may change."""
    path = tmp_path_factory.mktemp("made") / "data" / "runs.db"
    with opened(path) as journal:
        for _ in range(3):
            one_run(journal)
        with journal.begin(Origin(), "2") as run:
            with pytest.raises(ToolFailed), run.call("crm.find", {}):
                raise ToolFailed("no rights")
            run.end(failure="error", reply="no rights")
    assert check(path).fault is None
    return path


@pytest.fixture
def log(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made.parent, tmp_path / "data")
    return tmp_path / "data" / "runs.db"


def changed(value: Any) -> Any:
    """Return the value that differs in one bit, or that is there instead of none."""
    match value:
        case None:
            return 0
        case int():
            return value ^ 1
        case float():
            bits = struct.unpack(">q", struct.pack(">d", value))[0] ^ 1
            return struct.unpack(">d", struct.pack(">q", bits))[0]
        case str():
            return chr(ord(value[0]) ^ 1) + value[1:] if value else "x"
        case _:
            return bytes([value[0] ^ 1]) + value[1:]


COLUMNS = [
    (each.table, each.columns[0], column) for each in AUDITED.values() for column in each.columns
]


@pytest.mark.parametrize(("table", "key", "column"), COLUMNS, ids=lambda each: each)
def test_a_changed_column_of_a_row_is_found(log: Path, table: str, key: str, column: str) -> None:
    with tampering(log) as connection:
        number, value = connection.execute(
            f"SELECT {key}, {column} FROM {table} ORDER BY {key} DESC LIMIT 1"
        ).fetchone()
        new = value + (1 << 40) if column == key else changed(value)
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (new, number))

    found = check(log).fault
    assert found is not None
    assert table in found.what
    assert found.run


@pytest.mark.parametrize("column", ["seq", "at", "kind", "ref", "link"])
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_a_changed_column_of_an_entry_is_found(log: Path, column: str, place: str) -> None:
    with tampering(log) as connection:
        last = connection.execute("SELECT max(seq) FROM audit").fetchone()[0]
        seq = {"first": 1, "middle": last // 2, "last": last}[place]
        value = connection.execute(f"SELECT {column} FROM audit WHERE seq = ?", (seq,)).fetchone()[
            0
        ]
        new = value + 1000 if column == "seq" else changed(value)
        connection.execute(f"UPDATE audit SET {column} = ? WHERE seq = ?", (new, seq))

    found = check(log).fault
    assert found is not None
    assert found.seq == seq


@pytest.mark.parametrize("byte", [0, 31, 32, 63])
def test_a_changed_byte_of_a_hash_is_found(log: Path, byte: int) -> None:
    with tampering(log) as connection:
        link = bytearray(connection.execute("SELECT link FROM audit WHERE seq = 5").fetchone()[0])
        link[byte] ^= 1
        connection.execute("UPDATE audit SET link = ? WHERE seq = 5", (bytes(link),))

    assert fault(log).startswith("entry 5 was changed")


@pytest.mark.parametrize("column", ["seq", "chain", "since", "below", "seal"])
def test_a_changed_anchor_is_found_and_never_signed_again(log: Path, column: str) -> None:
    with tampering(log) as connection:
        value = connection.execute(f"SELECT {column} FROM anchor").fetchone()[0]
        connection.execute(f"UPDATE anchor SET {column} = ?", (changed(value),))
    assert "anchor was changed" in fault(log)

    clock = Clock()
    clock.now += 365 * DAY_S
    make_journal(log, clock=clock).prune()

    assert "anchor was changed" in fault(log)


def test_every_changed_byte_of_the_head_is_found(log: Path) -> None:
    text = head_path(log).read_bytes()
    for place in range(len(text)):
        head_path(log).write_bytes(text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :])
        assert fault(log), place
    head_path(log).write_bytes(text)
    assert not fault(log)


def test_another_key_verifies_nothing(log: Path) -> None:
    key = key_path(log).read_bytes()
    key_path(log).write_bytes(changed(key))

    assert "the key is another" in fault(log)


ONE = 1 << 32
_END = "SELECT ended_at, failure, reply, reply_bytes, reply_sha256 FROM ends LIMIT 1"
_ADD_END = _END.replace("SELECT", "INSERT INTO ends SELECT {number},")
_LAST = "FROM audit ORDER BY seq DESC LIMIT 1"
_WITHOUT_FIRST = (
    "DELETE FROM beginnings WHERE number = 1",
    "DELETE FROM ends WHERE number = 1",
    *(f"DELETE FROM {table} WHERE id < {2 * ONE}" for table in ("calls", "decisions", "reveals")),
)
_WITHOUT_LAST = (
    "DELETE FROM beginnings WHERE number = 4",
    "DELETE FROM ends WHERE number = 4",
    f"DELETE FROM calls WHERE id > {4 * ONE}",
    "DELETE FROM audit WHERE seq > 18",
)
_STATEMENTS: dict[str, tuple[str, ...]] = {
    "an entry is taken out": ("DELETE FROM audit WHERE seq = 5",),
    "the first entry is taken out": ("DELETE FROM audit WHERE seq = 1",),
    "the last entry is taken out": ("DELETE FROM audit WHERE seq = 21",),
    "the log is emptied": ("DELETE FROM audit",),
    "everything is deleted": (
        "DELETE FROM audit",
        *(f"DELETE FROM {each.table}" for each in AUDITED.values()),
    ),
    "an entry is taken out and the others move up": (
        "DELETE FROM audit WHERE seq = 5",
        "UPDATE audit SET seq = -seq WHERE seq > 5",
        "UPDATE audit SET seq = -seq - 1 WHERE seq < 0",
    ),
    "two entries change places": (
        "UPDATE audit SET seq = -4 WHERE seq = 4",
        "UPDATE audit SET seq = 4 WHERE seq = 5",
        "UPDATE audit SET seq = 5 WHERE seq = -4",
    ),
    "two rows change places": (
        f"UPDATE calls SET id = -1 WHERE id = {ONE + 1}",
        f"UPDATE calls SET id = {ONE + 1} WHERE id = {2 * ONE + 1}",
        f"UPDATE calls SET id = {2 * ONE + 1} WHERE id = -1",
    ),
    "a row is deleted": (f"DELETE FROM calls WHERE id = {2 * ONE + 1}",),
    "a row is deleted with its entry": (
        f"DELETE FROM calls WHERE id = {2 * ONE + 1}",
        f"DELETE FROM audit WHERE kind = 'call' AND ref = {2 * ONE + 1}",
    ),
    "the last run is deleted with its entries": _WITHOUT_LAST,
    "the first run is deleted": _WITHOUT_FIRST,
    "the first run is deleted with its entries": (
        *_WITHOUT_FIRST,
        "UPDATE anchor SET below = 2, seq = 6,"
        " chain = (SELECT substr(link, 33) FROM audit WHERE seq = 6)",
        "DELETE FROM audit WHERE seq <= 6",
    ),
    "a row is added": (
        f"INSERT INTO reveals SELECT {3 * ONE + 7}, position, upstream, kind, count, at"
        " FROM reveals LIMIT 1",
    ),
    "a row is added to a run that is none": (_ADD_END.format(number=9),),
    "a row is added before all": (_ADD_END.format(number=-9),),
    "a row is added with an entry": (
        _ADD_END.format(number=9),
        f"INSERT INTO audit SELECT seq + 1, at, 'end', 9, link {_LAST}",
    ),
    "an entry is added": (f"INSERT INTO audit SELECT seq + 1, at, kind, ref, link {_LAST}",),
    "an entry of no kind is added": (
        f"INSERT INTO audit SELECT seq + 1, at, 'x', ref, link {_LAST}",
    ),
    "a text becomes a blob": ("UPDATE ends SET reply = CAST(reply AS BLOB) WHERE number = 2",),
    "a text is no UTF-8": ("UPDATE ends SET reply = CAST(x'64ff6e' AS TEXT) WHERE number = 2",),
    "a number becomes a text": ("UPDATE anchor SET below = 'x'",),
    "a link becomes a text": ("UPDATE audit SET link = 'x' WHERE seq = 3",),
    "a time becomes a text": ("UPDATE audit SET at = 'x' WHERE seq = 3",),
    "a number becomes a fraction": ("UPDATE audit SET ref = 1.5 WHERE seq = 3",),
    "there are two anchors": ("INSERT INTO anchor SELECT * FROM anchor",),
    "there is no anchor": ("DELETE FROM anchor",),
}


def run_all(connection: sqlite3.Connection, statements: tuple[str, ...]) -> None:
    for statement in statements:
        connection.execute(statement)


@pytest.mark.parametrize("statements", _STATEMENTS.values(), ids=_STATEMENTS.keys())
def test_tampering_is_found(log: Path, statements: tuple[str, ...]) -> None:
    with tampering(log) as connection:
        run_all(connection, statements)

    assert fault(log)


def test_a_row_that_is_changed_with_its_digest_is_found(log: Path) -> None:
    with tampering(log) as connection:
        connection.execute("UPDATE ends SET reply = 'another', reply_bytes = 7 WHERE number = 1")
        row = connection.execute("SELECT * FROM ends WHERE number = 1").fetchone()
        connection.execute(
            "UPDATE audit SET link = CAST(? || substr(link, 33) AS BLOB) WHERE seq = 6",
            (digest(row),),
        )

    assert fault(log).startswith("entry 6 was changed")


def test_the_run_of_the_first_fault_is_named(log: Path) -> None:
    with tampering(log) as connection:
        connection.execute("UPDATE ends SET failure = 'error' WHERE number >= 2")
        run_id = connection.execute("SELECT id FROM beginnings WHERE number = 2").fetchone()[0]

    found = check(log).fault
    assert found is not None
    assert (found.seq, found.run) == (12, run_id)


def contents(path: Path) -> object:
    """Return all that is audited, or that it cannot be read."""
    tables = [each.table for each in AUDITED.values()]
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.text_factory = bytes
            return [
                [[(type(value), value) for value in row] for row in rows]
                for rows in (
                    connection.execute(f"SELECT rowid, * FROM {table} ORDER BY rowid").fetchall()
                    for table in (*tables, "audit", "anchor")
                )
            ]
    except (sqlite3.DatabaseError, UnicodeError) as error:
        return str(error)


def flip_bytes(log: Path, places: Iterator[int]) -> int:
    """Change one byte after the other; return how many changed what is audited."""
    with closing(sqlite3.connect(log)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    original, before = log.read_bytes(), contents(log)
    told = 0
    for place in places:
        place %= len(original)
        flipped = bytearray(original)
        flipped[place] ^= 1 << (place % 8)
        for name in ("-wal", "-shm"):
            log.with_name(log.name + name).unlink(missing_ok=True)
        log.write_bytes(flipped)
        after = contents(log)
        if after != before:
            told += 1
            assert fault(log), place
    return told


def test_a_changed_byte_of_the_file_is_found(log: Path) -> None:
    places = random.Random(1)
    assert flip_bytes(log, (places.randrange(1 << 30) for _ in range(250))) > 50


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_no_byte_of_the_file_can_be_changed(log: Path) -> None:
    size = log.stat().st_size
    assert flip_bytes(log, iter(range(0, size, 3))) > 1000


def test_what_was_cut_off_stays_found_though_more_is_written(
    log: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with tampering(log) as connection:
        run_all(connection, (*_WITHOUT_LAST, *map(trigger, AUDITED)))
    assert "entries 19 to" in fault(log)

    with opened(log) as journal:
        for _ in range(3):
            one_run(journal)

    assert "See `toolfold runs verify`" in caplog.text
    assert len([text for text in caplog.messages if "See `toolfold" in text]) == 1
    assert "cut off and written on" in fault(log)


def test_the_end_can_be_accepted_as_it_is(log: Path) -> None:
    with tampering(log) as connection:
        run_all(connection, _WITHOUT_LAST)
        signer = read_signer(log)
        assert signer is not None
        accept(log, connection, signer)

    assert not fault(log)


def test_an_older_head_with_a_forged_signature_is_found(log: Path) -> None:
    with closing(sqlite3.connect(log)) as connection:
        link = connection.execute("SELECT link FROM audit WHERE seq = 6").fetchone()[0]
    chain = link[32:]
    signed = Signer(b"guessed").head(6, chain)
    head_path(log).write_text(f"{6:020d} {chain.hex()} {signed.hex()}\n")

    assert "was changed, or the key is another" in fault(log)


def test_a_head_that_was_removed_is_missed_and_not_made_again(log: Path) -> None:
    head_path(log).unlink()
    assert "head is missing" in fault(log)

    with opened(log) as journal:
        one_run(journal)

    assert "head is missing" in fault(log)


def test_nobody_else_can_read_the_key_and_the_head(log: Path) -> None:
    for each in (key_path(log), head_path(log)):
        assert each.stat().st_mode & 0o777 == 0o600
    assert key_path(log).read_bytes() not in log.read_bytes()


ROWS = [
    (1, 2), (1.0, 2), ("1", 2), (1, "2"), (None, 2), (2, None), ("", 2), (12, None), (1, 2, None),
    ("ab", "c"), ("a", "bc"), ("", "abc"), ("abc", None), ("a\x00b", "c"), (-1, 2), (1 << 62, 2),
    (0.0, 2), (-0.0, 2), (0, 2), ("n", 2), (float("inf"), 2), (5e-324, 2),
]  # fmt: skip


def test_rows_that_differ_have_digests_that_differ() -> None:
    assert len({digest(row) for row in ROWS}) == len(ROWS)


def test_the_digest_is_what_the_documents_say() -> None:
    row = (7, 0.5, None, "é", "")
    packed = struct.pack(">qdqq", 7, 0.5, 1, 0)

    assert digest(row) == hashlib.sha256(b"qdnss" + packed + "é".encode()).digest()


@pytest.mark.parametrize("size", [0, 3, 64, 1000])
def test_signatures_are_those_of_hmac(size: int) -> None:
    key, message = b"k" * 32, b"m" * size

    assert Signer(key).sign(message) == hmac.digest(key, message, "sha256")
