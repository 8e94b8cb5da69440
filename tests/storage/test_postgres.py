"""PostgreSQL as a store: what is shown of it, how it is brought up to date, who writes when."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from postgres_server import database_url

from toolfold.errors import StoreError
from toolfold.storage.migrations import DatabaseSchema

pytest.importorskip("psycopg_pool", reason="toolfold[postgres] is not installed")

from toolfold.storage.postgres import PostgresDatabase, PostgresTransaction, describe_url

FIRST = DatabaseSchema("things", 1, (("CREATE TABLE things (name TEXT)",),))
SECOND = FIRST._replace(steps=(*FIRST.steps, ("ALTER TABLE things ADD COLUMN size INTEGER",)))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return database_url(tmp_path)


@pytest.fixture
def database(url: str) -> Iterator[PostgresDatabase]:
    database = PostgresDatabase(url, FIRST)
    database.open()
    yield database
    database.close()


def names(database: PostgresDatabase) -> list[str]:
    return database.read(
        lambda transaction: [
            name for (name,) in transaction.execute("SELECT name FROM things ORDER BY 1")
        ]
    )


def add(database: PostgresDatabase, name: str, scope: str | None = "one") -> None:
    database.write(
        lambda transaction: transaction.execute("INSERT INTO things (name) VALUES (?)", (name,)),
        scope,
    )


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:hunter2@127.0.0.1:1/notes",
        "postgresql://ada:hunter2@127.0.0.1:1/notes?connect_timeout=abc",
        "postgresql://ada:hunter2@127.0.0.1:notaport/notes",
        "postgresql://ada:hunter2@[::1/notes",
        "mysql://ada:hunter2@127.0.0.1/notes",
    ],
)
def test_no_error_shows_a_password(url: str) -> None:
    with pytest.raises(StoreError) as caught:
        PostgresDatabase(url, FIRST).open()
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in str(caught.value.__cause__)


def test_a_database_is_shown_by_its_name_and_place() -> None:
    assert describe_url("postgresql://ada:pw@db.example:6543/notes") == (
        "Database notes at db.example:6543"
    )


def test_what_fails_leaves_nothing_and_what_is_read_is_of_one_moment(
    database: PostgresDatabase,
) -> None:
    def fail(transaction: PostgresTransaction) -> None:
        transaction.execute("INSERT INTO things (name) VALUES ('half')")
        raise KeyError("no")

    with pytest.raises(KeyError):
        database.write(fail, "one")
    assert names(database) == []

    def look_twice(transaction: PostgresTransaction) -> list[int]:
        counts = []
        for _ in range(2):
            [(count,)] = transaction.execute("SELECT count(*) FROM things").fetchall()
            counts.append(count)
            add(database, f"meanwhile {len(counts)}")
        return counts

    assert database.read(look_twice) == [0, 0]
    assert names(database) == ["meanwhile 1", "meanwhile 2"]


def test_many_who_open_it_at_once_bring_it_up_to_date_once(url: str) -> None:
    databases = [PostgresDatabase(url, SECOND) for _ in range(6)]
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda each: each.open(), databases))
    add(databases[0], "a")
    assert [names(each) for each in databases] == [["a"]] * 6
    for each in databases:
        each.close()


def test_a_process_goes_on_while_a_newer_one_has_brought_the_tables_further(
    database: PostgresDatabase, url: str
) -> None:
    add(database, "old")
    newer = PostgresDatabase(url, SECOND)
    newer.open()
    add(database, "old again")
    newer.write(lambda t: t.execute("INSERT INTO things VALUES ('new', 3)"), "one")
    assert names(database) == names(newer) == ["new", "old", "old again"]
    newer.close()


def test_tables_of_a_newer_version_are_refused(url: str) -> None:
    newer = PostgresDatabase(url, SECOND)
    newer.open()
    newer.close()
    with pytest.raises(StoreError, match=r"a newer toolfold wrote it. Update this one"):
        PostgresDatabase(url, FIRST).open()


def test_in_one_scope_one_writes_at_a_time_and_in_others_nobody_waits(
    database: PostgresDatabase,
) -> None:
    is_in, may_go = Event(), Event()

    def slow(transaction: PostgresTransaction) -> None:
        transaction.execute("INSERT INTO things (name) VALUES ('first')")
        is_in.set()
        may_go.wait(30)

    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(database.write, slow, "one")
        is_in.wait(30)
        second = threads.submit(add, database, "second", "one")
        threads.submit(add, database, "elsewhere", "two").result(30)
        assert names(database) == ["elsewhere"]
        assert not second.done()
        every = threads.submit(add, database, "third", None)
        may_go.set()
        for each in (first, second, every):
            each.result(30)
    assert names(database) == ["elsewhere", "first", "second", "third"]


def test_a_lost_connection_is_replaced(database: PostgresDatabase, url: str) -> None:
    add(database, "a")
    other = PostgresDatabase(url, FIRST)
    other.open()
    other.read(
        lambda t: t.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND backend_type = 'client backend' AND query NOT LIKE '%pg_stat_activity%'"
        ).fetchall()
    )
    assert names(database) == ["a"]
    add(database, "b")
    assert names(database) == ["a", "b"]
    other.close()


def test_a_write_whose_end_was_lost_says_that_it_is_not_known(database: PostgresDatabase) -> None:
    def lose(transaction: PostgresTransaction) -> None:
        transaction.execute("INSERT INTO things (name) VALUES ('a')")
        transaction.connection.close()

    with pytest.raises(StoreError, match="its outcome is unknown"):
        database.write(lose, "one")
    assert names(database) == []
