"""The verbs of memory."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fakes import FakeEmbedder
from memories import Clock, running_memory

from toolfold.errors import BadInput, NotFound, StoreError
from toolfold.memory.models import CompactMemory, ExplainedMemory
from toolfold.memory.service import Memory

DAY_S = 86_400.0


def previews(result: object) -> list[str]:
    return [memory.preview for memory in result.memories]  # type: ignore[attr-defined]


async def test_store_returns_eight_characters_that_name_the_note_everywhere(
    memory: Memory,
) -> None:
    name = await memory.store("We use OAuth for the API", tags="auth, api", memory_type="decision")

    assert len(name) == 8
    note = await memory.get(name)
    assert note.hash.startswith(name)
    assert (note.content, note.tags, note.type) == (
        "We use OAuth for the API",
        ("auth", "api"),
        "decision",
    )
    assert (await memory.search("OAuth")).memories[0].hash == name
    assert await memory.store("We use OAuth for the API") == name
    assert await memory.delete(name) is True


async def test_a_single_text_is_one_tag_and_not_its_letters(memory: Memory) -> None:
    await memory.store("one", tags="work")
    await memory.store("two", tags=["work", " home , garden"])

    assert previews(await memory.search_by_tag("work")) == ["two", "one"]
    assert previews(await memory.search_by_tag(["garden", "nothing"])) == ["two"]
    assert previews(await memory.search_by_tag("work,home", match="all")) == ["two"]
    assert (await memory.search_by_tag("w")).total == 0
    assert (await memory.search_by_tag("work", limit=1)).total == 2


async def test_search_is_by_words_at_once_and_by_meaning_when_it_is_ready(
    memory: Memory,
) -> None:
    await memory.store("alpha beta gamma")
    await memory.store("delta")
    assert previews(await memory.search("beta")) == ["alpha beta gamma"]

    await memory.until_ready()
    result = await memory.search("beta")

    assert previews(result) == ["alpha beta gamma"]
    assert (await memory.health()).ready
    [best] = (await memory.search("beta", explain=True)).memories
    assert isinstance(best, ExplainedMemory)
    assert "meaning" in best.why
    assert isinstance(result.memories[0], CompactMemory)


async def test_min_score_and_filters_hold_in_every_search(memory: Memory, clock: Clock) -> None:
    for number in range(6):
        clock.now += DAY_S
        kind = "low" if number < 3 else "high"
        tag = "even" if number % 2 == 0 else "odd"
        await memory.store("fact " + "pad " * number + str(number), tag, kind)
    await memory.until_ready()
    everything = await memory.search("fact", limit=10)
    assert everything.total == 6
    cut = everything.memories[2].score
    best = await memory.search("fact", limit=10, min_score=cut)
    assert (best.total, len(best.memories)) == (3, 3)
    assert (await memory.search("fact", limit=1)).total == 6
    assert len((await memory.search("fact", limit=0)).memories) == 0

    assert (await memory.search("fact", tags="even")).total == 3
    assert (await memory.search("fact", memory_type="low")).total == 3
    after = datetime.fromtimestamp(clock.now - DAY_S, UTC)
    for moment in (after, after.timestamp(), after.isoformat()):
        assert (await memory.search("fact", after=moment)).total == 2
        assert (await memory.search("fact", before=moment)).total == 4
    [one, two] = await memory.search_batch(["fact", "pad"], tags=["even", "odd"], after=after)
    assert (one.query, one.total, two.query, two.total) == ("fact", 2, "pad", 2)
    listed = await memory.list(limit=2, offset=1, memory_type="high")
    assert [m.preview[-1] for m in listed.memories] == ["4", "3"]
    assert listed.total == 3
    empty = await memory.search("", tags="odd")
    assert [m.preview[-1] for m in empty.memories] == ["5", "3", "1"]


async def test_recall_honours_time_in_words(memory: Memory, clock: Clock) -> None:
    now = clock.now
    for days, content in ((1, "auth uses OAuth"), (8, "auth uses passwords"), (40, "auth: none")):
        clock.now = now - days * DAY_S
        await memory.store(content)
    clock.now = now

    assert (await memory.recall("auth")).total == 3
    yesterday = await memory.recall("what did we decide yesterday about auth")
    assert previews(yesterday) == ["auth uses OAuth"]
    assert "Saturday 14 November 2026" in yesterday.query
    assert previews(await memory.recall("auth last week")) == ["auth uses passwords"]
    assert previews(await memory.recall("last 10 days", k=1)) == ["auth uses OAuth"]
    assert (await memory.recall("last 10 days", k=1)).total == 2
    assert (await memory.recall("auth on 1999-01-01")).total == 0


async def test_pages_are_stable_while_others_write(memory: Memory) -> None:
    await memory.store_batch([f"fact number {n}" for n in range(25)])
    await memory.until_ready()
    expected = previews(await memory.search("fact", limit=100))
    victim = (await memory.search("fact", limit=100)).memories[20]

    seen: list[str] = []
    async for page in memory.search_iter("fact", page_size=10):
        assert page.total == 25
        seen += previews(page)
        await memory.store_batch([f"fact {len(seen)} {n} late" for n in range(5)])
        await memory.delete(victim.hash)

    assert seen == [text for text in expected if text != victim.preview]
    pages = [page async for page in memory.search_iter("", page_size=7)]
    assert [len(page.memories) for page in pages] == [7, 7, 7, 7, 7, 4]
    assert [page.total async for page in memory.search_iter("nothing at all")] == [0]


async def test_remember_recall_and_forget_are_the_same_verbs(memory: Memory) -> None:
    name = await memory.remember("the sky is blue", "fact", ["sky"], 0.9)

    note = await memory.get(name)
    assert (note.type, note.tags, note.quality) == ("fact", ("sky",), 0.9)
    assert previews(await memory.recall("sky", k=3, memory_type="fact")) == ["the sky is blue"]
    assert await memory.forget(memory_id=name) is True
    assert await memory.forget(name) is False
    assert (await memory.recall("sky")).total == 0


async def test_an_update_changes_what_is_given_and_keeps_the_rest(memory: Memory) -> None:
    name = await memory.store("port 80", tags="net", metadata={"a": 1, "b": 2}, source="wiki")

    renamed = await memory.update(name, "port 443", metadata={"a": None, "c": 3}, quality=1)

    note = await memory.get(renamed)
    assert name != renamed
    assert (note.content, note.tags, note.metadata) == ("port 443", ("net",), {"b": 2, "c": 3})
    assert (note.source, note.quality, note.version) == ("wiki", 1.0, 2)
    assert await memory.update(name, tags=()) == renamed
    assert (await memory.get(renamed)).tags == ()
    versions = await memory.history(name)
    assert [(v.content, v.tags) for v in versions] == [
        ("port 80", ("net",)),
        ("port 443", ("net",)),
        ("port 443", ()),
    ]


async def test_what_is_deleted_can_be_restored_and_what_is_purged_cannot(memory: Memory) -> None:
    names = await memory.store_batch(["one", "two", "three"])

    assert await memory.delete_batch(names[:2]) == 2
    with pytest.raises(NotFound, match=f"restore\\('{names[0]}"):
        await memory.get(names[0])
    assert await memory.restore(names[0]) is True
    assert await memory.restore(names[0]) is False
    assert await memory.purge(names[:2]) == 2
    assert await memory.restore(names[1]) is False
    assert previews(await memory.list()) == ["three"]


async def test_delete_by_tag_takes_any_or_all_and_never_everything(memory: Memory) -> None:
    await memory.store("a", tags=["x"])
    await memory.store("b", tags=["x", "y"])
    await memory.store("c")

    with pytest.raises(BadInput, match="nothing is deleted"):
        await memory.delete_by_tag([])
    assert await memory.delete_by_tag(["x", "y"], match="all") == 1
    assert await memory.delete_by_tag("x") == 1
    assert previews(await memory.list()) == ["c"]


async def test_a_note_that_supersedes_another_takes_its_place(memory: Memory) -> None:
    old = await memory.store("the key is A")
    new = await memory.store("the key is B", supersedes=old, associated=[])

    assert previews(await memory.search("key")) == ["the key is B", "the key is A"]
    [link] = (await memory.get(new)).links
    assert (link.kind, link.hash[:8]) == ("supersedes", old)
    with pytest.raises(NotFound):
        await memory.store("the key is C", supersedes="00000000")


async def test_a_batch_is_stored_whole_or_not_at_all(memory: Memory) -> None:
    names = await memory.store_batch(
        ["plain", {"content": "placed", "thread": "t", "position": 1, "tags": "x"}, "plain"]
    )
    assert names[0] == names[2]
    assert (await memory.get(names[1])).thread == "t"

    with pytest.raises(BadInput, match=r"Note 1 of the batch: .*empty.* Nothing was stored"):
        await memory.store_batch(["good", "  "])
    with pytest.raises(BadInput, match="'colour' is nothing that a note has"):
        await memory.store_batch([{"content": "x", "colour": "red"}])
    assert (await memory.health()).count == 2


async def test_memories_of_two_namespaces_share_a_store_and_nothing_else(
    tmp_path: Path, embedder: FakeEmbedder
) -> None:
    async with running_memory(tmp_path, embedder, namespace="a") as a:
        b = Memory(a._store, a._meaning, namespace="b")
        name = await a.store("same words")
        assert await b.store("same words") == name
        await a.purge(name)

        assert (await b.get(name)).namespace == "b"
        assert (await a.search("words")).total == 0
        assert (await b.search("words")).total == 1


async def test_an_embedder_that_cannot_load_is_said_and_not_hidden(
    tmp_path: Path, embedder: FakeEmbedder
) -> None:
    embedder.failure = StoreError("The model is gone.")
    async with running_memory(tmp_path, embedder) as memory:
        await memory.store("kept all the same")
        with pytest.raises(StoreError, match="The model is gone"):
            await memory.until_ready()
        with pytest.raises(StoreError, match="The model is gone"):
            await memory.search("kept")
        health = await memory.health()
        assert (health.status, health.count, health.ready) == ("The model is gone.", 1, False)
        assert previews(await memory.list()) == ["kept all the same"]
    embedder.failure = None
    async with running_memory(tmp_path, embedder) as memory:
        await memory.until_ready()
        assert (await memory.health()).ready


async def test_times_are_taken_with_and_without_a_zone(memory: Memory, clock: Clock) -> None:
    there = datetime(2026, 1, 2, 3, tzinfo=UTC)
    for created in (there, there.isoformat(), there.timestamp()):
        name = await memory.store(f"at {created!r}", created=created)
        assert (await memory.get(name)).created == there.timestamp()
    local = datetime(2026, 1, 2)  # noqa: DTZ001
    name = await memory.store("local", created=local + timedelta(days=0))
    assert (await memory.get(name)).created == local.timestamp()


async def test_history_shows_what_held_before_and_until_when(memory: Memory) -> None:
    first = await memory.store("The API listens on port 8080", created=1_000)
    second = await memory.store("The API listens on port 8081", created=2_000, supersedes=first)
    third = await memory.store("The API listens on port 9000", created=3_000, supersedes=second)

    told = await memory.history(third)

    assert [note.content[-4:] for note in told] == ["8080", "8081", "9000"]
    assert [note.until for note in told] == [2_000, 3_000, None]
    assert [note.content[-4:] for note in await memory.history(third, limit=2)] == ["8081", "9000"]
    found = await memory.search("Which port does the API listen on?")
    assert [note.hash for note in found.memories] == [third, second, first]
    await memory.purge(first)
    assert [note.content[-4:] for note in await memory.history(third)] == ["8081", "9000"]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("what if the red lamp blinks twice?", "…Red is serious. If it blinks twice, call Hermann"),
        ("is the calibration of the lamp due", "…A calibration by Ida is due"),
        ("colours of the lamp", "The lamp of the workshop has three colours."),
    ],
)
async def test_a_hit_shows_the_passage_that_was_asked_for(
    memory: Memory, query: str, shown: str
) -> None:
    await memory.store(
        "The lamp of the workshop has three colours.\nGreen means that all is well, and nobody "
        "has to do anything at all. Yellow means that somebody should look within a day or two. "
        "Red is serious. If it blinks twice, call Hermann at 4711 and leave the building.\n"
        "A calibration by Ida is due every spring, before the first guests of the season arrive."
    )

    [hit] = (await memory.search(query)).memories

    assert hit.preview.startswith(shown)
    assert len(hit.preview) <= 200
