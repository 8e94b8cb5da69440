"""What happened: any store of events, and the verbs."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from memories import Clock
from stores import OpenBackend, open_sqlite

from toolfold.errors import BadInput, NotFound
from toolfold.memory.events.service import Events
from toolfold.memory.models import Event
from toolfold.memory.sql.events import SqlEvents
from toolfold.memory.store import EventFilter, EventStore

DAY_S = 86_400.0
OpenEvents = Callable[[Path], AbstractAsyncContextManager[EventStore]]


@pytest.fixture
def open_events(open_backend: OpenBackend) -> OpenEvents:
    @asynccontextmanager
    async def open_events(directory: Path) -> AsyncIterator[EventStore]:
        async with open_backend(directory) as backend:
            yield SqlEvents(backend.database)

    return open_events


@pytest.fixture
async def store(open_events: OpenEvents, tmp_path: Path) -> AsyncIterator[EventStore]:
    async with open_events(tmp_path) as store:
        yield store


@pytest.fixture
def events(store: EventStore, clock: Clock) -> Events:
    return Events(store, namespace="project", clock=clock, zone=UTC)


def event(name: str, **values: Any) -> Event:
    return Event(**({"id": name, "type": "build", "at": 1000.0} | values))


async def ids(store: EventStore, namespace: str = "one", **wanted: Any) -> list[str]:
    found = await store.latest(namespace, EventFilter(**wanted), limit=100)
    assert found.total == len(found.events)
    return [each.id for each in found.events]


async def test_events_come_newest_first_and_of_one_moment_the_last_recorded_first(
    store: EventStore,
) -> None:
    await store.record("one", [event("a", at=5.0), event("b", at=9.0), event("c", at=5.0)])

    assert await ids(store) == ["b", "c", "a"]
    page = await store.latest("one", EventFilter(), limit=1, offset=1)
    assert ([each.id for each in page.events], page.total) == (["c"], 3)


async def test_filters_of_events_are_exact(store: EventStore) -> None:
    await store.record(
        "one",
        [
            event("a", at=1.0, session_id="s1"),
            event("b", at=2.0, session_id="s2", type="deploy"),
            event("c", at=3.0, type="deploy"),
        ],
    )

    assert await ids(store, session_id="s1") == ["a"]
    assert await ids(store, type="deploy") == ["c", "b"]
    assert await ids(store, type="dep") == []
    assert await ids(store, since=2.0) == ["c", "b"]
    assert await ids(store, until=2.0) == ["a"]
    assert await ids(store, type="deploy", session_id="s2", since=1.0, until=3.0) == ["b"]


async def test_namespaces_do_not_see_each_others_events(store: EventStore) -> None:
    await store.record("one", [event("a")])
    await store.record("two", [event("a", content="of two")])

    assert (await store.get_event("two", "a")).content == "of two"
    assert await ids(store, "three") == []
    with pytest.raises(NotFound):
        await store.get_event("three", "a")


async def test_an_event_whose_id_is_known_stays_as_it_was(store: EventStore) -> None:
    assert await store.record("one", [event("a", content="first")]) == 1

    assert await store.record("one", [event("a", content="second"), event("b")]) == 1

    assert (await store.get_event("one", "a")).content == "first"


async def test_events_are_whole_after_the_store_was_opened_again(
    open_events: OpenEvents, tmp_path: Path
) -> None:
    whole = event(
        "a",
        content="Grüße\n" * 1000,
        outcome="failure",
        duration_ms=12.5,
        session_id="s",
        metadata={"host": ["a", None, {"b": 1.5}]},
    )
    async with open_events(tmp_path) as store:
        await store.record("one", [whole])
    async with open_events(tmp_path) as store:
        assert await store.get_event("one", "a") == whole


async def test_no_program_can_change_or_delete_an_event(tmp_path: Path) -> None:
    async with open_sqlite(tmp_path) as backend:
        await SqlEvents(backend.database).record("one", [event("a")])

    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        for statement in ("UPDATE events SET content = 'other'", "DELETE FROM events"):
            with pytest.raises(sqlite3.IntegrityError, match="never"):
                connection.execute(statement)
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (1,)


async def test_what_was_recorded_is_recalled_as_it_was(events: Events, clock: Clock) -> None:
    first = await events.record_event("deploy", "version 4 to staging", "success", 5230, "s1")
    clock.now += 60
    second = await events.record_event("test run", metadata={"failed": 3})

    found = await events.recall_events()

    assert [each.id for each in found.events] == [second, first]
    assert found.total == 2
    deploy = found.events[1]
    assert (deploy.event_type, deploy.preview, deploy.outcome) == (
        "deploy",
        "version 4 to staging",
        "success",
    )
    assert (deploy.duration_ms, deploy.session_id, deploy.at) == (5230, "s1", clock.now - 60)
    assert (await events.get_event(second)).metadata == {"failed": 3}
    assert (await events.recall_events(session_id="s1")).total == 1
    assert (await events.recall_events(event_type="test run")).events[0].id == second
    assert len((await events.recall_events(limit=1)).events) == 1


async def test_two_equal_events_of_one_moment_are_two(events: Events) -> None:
    assert await events.record_event("ping") != await events.record_event("ping")
    assert (await events.recall_events()).total == 2


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        ("yesterday", None, "today yesterday"),
        (None, "yesterday", "yesterday last-week"),
        ("last week", "last week", "last-week"),
        ("yesterday", "yesterday", "yesterday"),
        ("3 days ago", None, "today yesterday"),
        ("2026-11-14", "2026-11-15", "yesterday"),
        ("2026-11-15T00:00+00:00", None, "today"),
        (1_794_744_000.0 - 3600, None, "today"),
    ],
)
async def test_times_are_given_as_dates_seconds_or_words(
    events: Events, clock: Clock, since: Any, until: Any, expected: str
) -> None:
    now = clock.now
    for name, days in (("last-week", 9), ("yesterday", 1), ("today", 0)):
        clock.now = now - days * DAY_S
        await events.record_event(name)

    found = await events.recall_events(since=since, until=until)

    assert [each.event_type for each in found.events] == expected.split()


@pytest.mark.parametrize(
    ("verb", "values"),
    [
        ("record_event", {"event_type": ""}),
        ("record_event", {"event_type": 5}),
        ("record_event", {"event_type": "a", "content": None}),
        ("record_event", {"event_type": "a", "content": "x" * 1_048_577}),
        ("record_event", {"event_type": "a", "content": "nul\0"}),
        ("record_event", {"event_type": "a", "outcome": ""}),
        ("record_event", {"event_type": "a", "duration_ms": -1}),
        ("record_event", {"event_type": "a", "duration_ms": float("nan")}),
        ("record_event", {"event_type": "a", "duration_ms": True}),
        ("record_event", {"event_type": "a", "duration_ms": "5"}),
        ("record_event", {"event_type": "a", "session_id": "s" * 1001}),
        ("record_event", {"event_type": "a", "metadata": {"a": {1, 2}}}),
        ("recall_events", {"limit": -1}),
        ("recall_events", {"limit": 1001}),
        ("recall_events", {"since": "gibberish"}),
        ("recall_events", {"since": "gibberish of yesterday"}),
        ("recall_events", {"until": "tomorrow"}),
        ("recall_events", {"until": True}),
        ("get_event", {"id": ""}),
    ],
)
async def test_what_cannot_be_used_is_refused_and_nothing_is_recorded(
    events: Events, verb: str, values: dict[str, Any]
) -> None:
    with pytest.raises(BadInput):
        await getattr(events, verb)(**values)

    assert (await events.recall_events()).total == 0


async def test_events_are_shown_one_in_a_line(events: Events) -> None:
    assert repr(await events.recall_events()) == "No events."
    name = await events.record_event("deploy", "to\nstaging", "failure", 1234.4, "s1")

    heading, line = repr(await events.recall_events()).splitlines()

    assert heading == "1 of 1 event:"
    assert line.startswith(f"{name} 2026-11-15 ")
    assert line.endswith("deploy -> failure in 1,234 ms [s1]: to staging")
