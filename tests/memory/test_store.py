"""What every store must do; written against the protocol."""

from pathlib import Path

import pytest
from fakes import FakeEmbedder
from stores import OpenStore, draft, embed_all, found

from toolfold.errors import BadInput, NotFound, StoreError
from toolfold.memory.models import Link
from toolfold.memory.store import Embedded, Filter, NoteChange, Query, Store

NS = "project"


async def add(store: Store, *contents: str, **values: object) -> list[int]:
    return await store.add(NS, [draft(content, **values) for content in contents], now=1000.0)


async def test_a_note_comes_back_as_it_was_added(store: Store) -> None:
    written = draft(
        "Café 🙂 uses OAuth",
        type="decision",
        tags=("auth", "API"),
        metadata={"nested": [1, {"a": None}]},
        source="notes.md",
        thread="talk",
        position=3,
        quality=0.9,
        created=5.5,
    )
    await store.add(NS, [written], now=7.5)

    note = await store.get(NS, written.hash[:8])

    for name in written.__slots__:
        assert getattr(note, name) == getattr(written, name), name
    assert (note.namespace, note.updated, note.version, note.deleted) == (NS, 7.5, 1, None)


async def test_notes_are_there_when_the_store_is_opened_again(
    open_store: OpenStore, tmp_path: Path
) -> None:
    async with open_store(tmp_path) as store:
        await add(store, "the harbour opens at nine")
    async with open_store(tmp_path) as store:
        assert await found(store, NS, "harbour") == ["the harbour opens at nine"]


async def test_the_same_note_again_is_the_same_note_with_more_tags(store: Store) -> None:
    [first] = await add(store, "use tabs", tags=("style",), type="rule")
    [second] = await add(store, "use tabs", tags=("style", "python"), type="note")

    note = await store.get(NS, draft("use tabs").hash)
    assert first == second
    assert (note.tags, note.type) == (("style", "python"), "rule")
    assert (await store.newest(NS, Filter(), limit=10)).total == 1
    assert (await store.newest(NS, Filter(tags=("python",)), limit=10)).total == 1


@pytest.mark.parametrize("tags", [("common",), ("common", "rare")])
async def test_a_tag_that_many_notes_have_lists_the_newest_of_them(
    store: Store, tags: tuple[str, ...]
) -> None:
    many = [draft(f"note {n}", tags=("common",), created=float(n)) for n in range(2_100)]
    await store.add(NS, [*many, draft("rare", tags=("common", "rare"), created=-1.0)], now=1.0)
    await store.delete(NS, [many[-1].hash], now=2.0)

    found = await store.newest(NS, Filter(tags=tags), limit=3, offset=1)
    both = await store.newest(NS, Filter(tags=("common", "rare"), tag_match="all"), limit=3)

    assert [note.content for note in found.notes] == ["note 2097", "note 2096", "note 2095"]
    assert found.total == 2_100
    assert ([note.content for note in both.notes], both.total) == (["rare"], 1)


async def test_notes_that_are_nearly_the_same_are_all_kept(store: Store) -> None:
    await add(store, "use tabs", "use tabs.", "Use tabs")

    assert (await store.counts(NS)).notes == 3


async def test_the_same_words_at_two_places_of_a_conversation_are_two_notes(store: Store) -> None:
    await store.add(
        NS,
        [draft("Thanks!", thread="talk", position=at) for at in (1, 5, 5)],
        now=1.0,
    )

    assert (await store.counts(NS)).notes == 2


async def test_of_a_batch_all_notes_are_kept_or_none(store: Store) -> None:
    lost = Link(kind="associated", hash="abcd1234")
    with pytest.raises(NotFound, match="abcd1234"):
        await store.add(NS, [draft("one"), draft("two", links=(lost,))], now=1.0)

    assert (await store.counts(NS)).notes == 0
    assert await found(store, NS, "one") == []


async def test_namespaces_do_not_see_each_other(store: Store, embedder: FakeEmbedder) -> None:
    await store.add("a", [draft("red fox", tags=("x",))], now=1.0)
    await store.add("b", [draft("red wolf", tags=("x",))], now=1.0)
    await embed_all(store, embedder)
    wolf = draft("red wolf").hash

    assert await found(store, "a", "red") == ["red fox"]
    assert await found(store, "a", "red", embedder=embedder) == ["red fox"]
    assert await found(store, "c", "red", embedder=embedder) == []
    assert [n.content for n in (await store.newest("a", Filter(tags=("x",)), limit=9))[0]] == [
        "red fox"
    ]
    with pytest.raises(NotFound):
        await store.get("a", wolf)
    assert await store.delete("a", [wolf], now=2.0) == 0
    assert await store.purge("a", [wolf], now=2.0) == 0
    assert await store.delete_matching("a", Filter(tags=("x",)), now=2.0) == 1
    assert await store.load("a", await store.keys("b", Filter())) == {}
    assert await found(store, "b", "red", embedder=embedder) == ["red wolf"]


async def test_scores_do_not_depend_on_other_namespaces(
    store: Store, embedder: FakeEmbedder
) -> None:
    await store.add("a", [draft("red fox"), draft("grey wolf"), draft("red red rose")], now=1.0)
    await embed_all(store, embedder)
    await store.warm("a")
    query = Query(text="red wolf", vector=lambda: embedder.embed(["red wolf"])[0].tolist())
    before = await store.search("a", query, depth=10)

    await store.add("b", [draft(f"wolf {n} red") for n in range(50)], now=1.0)

    assert (await store.search("a", query, depth=10)).lists == before.lists


async def test_a_note_is_found_by_its_words_in_other_forms(store: Store) -> None:
    await add(store, "We were deploying the services", "Nothing of interest")

    assert await found(store, NS, "deploy a service") == ["We were deploying the services"]


async def test_a_note_is_found_by_its_meaning_as_soon_as_its_vector_is_there(
    store: Store, embedder: FakeEmbedder
) -> None:
    await add(store, "alpha beta gamma", "delta epsilon zeta")
    await embed_all(store, embedder)
    await store.warm(NS)
    near = embedder.embed(["alpha beta gamma"])[0].tolist()

    matches = await store.search(NS, Query(text="unknown", vector=lambda: near), depth=5)

    [(best, _), *_] = matches.lists["meaning_nearby"]
    assert (await store.load(NS, [best]))[best].content == "alpha beta gamma"
    assert matches.lists["words"] == []


async def test_what_stands_beside_a_match_is_found_too(
    store: Store, embedder: FakeEmbedder
) -> None:
    turns = ["Where do you work now?", "At the harbour.", "Nice!", "So far away", "Yes, far"]
    await store.add(
        NS,
        [draft(text, thread="talk", position=at * 10) for at, text in enumerate(turns)],
        now=1.0,
    )
    await embed_all(store, embedder)

    assert "At the harbour." in (await found(store, NS, "work", embedder=embedder))[:2]

    await store.delete(NS, [draft(turns[0], thread="talk", position=0).hash], now=2.0)
    matches = await store.search(
        NS, Query(text="work", vector=lambda: [0.0] * embedder.dimensions), depth=5
    )
    assert matches.total == 0


async def test_filters_are_exact_and_total_counts_all_that_match(
    store: Store, embedder: FakeEmbedder
) -> None:
    await store.add(
        NS,
        [
            draft(
                f"fact number {n}",
                tags=("even",) if n % 2 == 0 else ("odd", "even-ish"),
                type="low" if n < 10 else "high",
                created=float(n),
            )
            for n in range(20)
        ],
        now=30.0,
    )
    await embed_all(store, embedder)
    cases = {
        Filter(tags=("even",)): {n for n in range(20) if n % 2 == 0},
        Filter(tags=("even", "odd")): set(range(20)),
        Filter(tags=("odd", "even-ish"), tag_match="all"): set(range(1, 20, 2)),
        Filter(tags=("even", "odd"), tag_match="all"): set(),
        Filter(tags=("Even",)): set(),
        Filter(type="low"): set(range(10)),
        Filter(after=5.0): set(range(5, 20)),
        Filter(before=5.0): set(range(5)),
        Filter(after=3.0, before=15.0, type="high", tags=("even",)): {10, 12, 14},
    }
    for wanted, numbers in cases.items():
        expected = {f"fact number {n}" for n in numbers}
        assert set(await found(store, NS, "fact", wanted)) == expected, wanted
        assert set(await found(store, NS, "fact", wanted, embedder=embedder)) == expected, wanted
        listing = await store.newest(NS, wanted, limit=3)
        assert listing.total == len(expected)
        newest = sorted(numbers, reverse=True)
        assert [note.content for note in listing.notes] == [f"fact number {n}" for n in newest[:3]]
        loaded = await store.load(NS, keys := await store.keys(NS, wanted))
        assert [loaded[key].created for key in keys] == newest
        for vector in (None, embedder.embed(["fact"])[0].tolist):
            asked = Query(text="fact", vector=vector, wanted=wanted)
            assert (await store.search(NS, asked, depth=2)).total == len(expected)


async def test_an_update_is_a_version_and_old_names_still_lead_to_the_note(store: Store) -> None:
    await add(store, "port 80", tags=("net",))
    old = draft("port 80").hash

    key, note = await store.update(NS, old[:8], NoteChange(content="port 443"), now=2000.0)

    assert (note.content, note.version, note.tags) == ("port 443", 2, ("net",))
    assert (note.hash, note.created, note.updated) == (draft("port 443").hash, 1000.0, 2000.0)
    assert await store.get(NS, old) == note
    assert (await store.load(NS, [key]))[key] == note
    assert [(each.version, each.content) for each in await store.history(NS, note.hash)] == [
        (1, "port 80"),
        (2, "port 443"),
    ]
    assert await found(store, NS, "80") == []
    assert await found(store, NS, "443") == ["port 443"]


async def test_an_update_that_changes_nothing_makes_no_version(store: Store) -> None:
    await add(store, "x y", tags=("a",))

    _, note = await store.update(NS, draft("x y").hash, NoteChange(tags=("a",)), now=9.0)

    assert (note.version, note.updated) == (1, 1000.0)


async def test_an_update_cannot_make_two_notes_the_same(store: Store) -> None:
    await add(store, "one", "two", "three")
    await store.delete(NS, [draft("three").hash], now=2.0)

    with pytest.raises(BadInput, match="Another note"):
        await store.update(NS, draft("one").hash, NoteChange(content="two"), now=2.0)
    with pytest.raises(BadInput, match="A deleted note"):
        await store.update(NS, draft("one").hash, NoteChange(content="three"), now=2.0)

    assert (await store.get(NS, draft("one").hash)).version == 1


async def test_updated_content_loses_its_vector_and_gets_another(
    store: Store, embedder: FakeEmbedder
) -> None:
    [key] = await add(store, "old text")
    await embed_all(store, embedder)
    late = Embedded(key, draft("old text").hash, b"\0" * (4 + embedder.dimensions))

    await store.update(NS, draft("old text").hash, NoteChange(content="new words"), now=2.0)
    assert await store.unembedded() == [key]
    await store.embed(embedder.name, [late])
    assert await store.unembedded() == [key], "a vector of what it no longer says"

    await embed_all(store, embedder)
    assert await store.unembedded() == []
    assert (await found(store, NS, "words", embedder=embedder)) == ["new words"]


async def test_a_deleted_note_is_found_by_nobody_until_it_is_restored(
    store: Store, embedder: FakeEmbedder
) -> None:
    await add(store, "secret plan", "open plan", tags=("t",))
    await embed_all(store, embedder)
    await store.warm(NS)
    name = draft("secret plan").hash

    assert await store.delete(NS, [name[:6], name, "0000"], now=3.0) == 1
    assert await store.delete(NS, [name], now=3.0) == 0
    assert await found(store, NS, "plan") == ["open plan"]
    assert await found(store, NS, "plan", embedder=embedder) == ["open plan"]
    assert (await store.newest(NS, Filter(tags=("t",)), limit=5)).total == 1
    with pytest.raises(NotFound, match="restore"):
        await store.get(NS, name)
    assert (await store.history(NS, name))[-1].deleted == 3.0

    assert await store.restore(NS, [name], now=4.0) == 1
    assert await store.restore(NS, [name], now=4.0) == 0
    assert sorted(await found(store, NS, "plan", embedder=embedder)) == ["open plan", "secret plan"]
    assert (await store.newest(NS, Filter(tags=("t",)), limit=5)).total == 2
    assert (await store.get(NS, name)).deleted is None


async def test_adding_a_deleted_note_brings_it_back_as_it_is_added(store: Store) -> None:
    await add(store, "again", tags=("old",))
    await store.delete(NS, [draft("again").hash], now=2.0)

    await store.add(NS, [draft("again", tags=("new",), created=50.0)], now=60.0)

    note = await store.get(NS, draft("again").hash)
    assert (note.tags, note.created, note.version) == (("new",), 50.0, 2)
    assert await found(store, NS, "again") == ["again"]
    assert (await store.newest(NS, Filter(tags=("old",)), limit=5)).total == 0


async def test_a_purged_note_is_gone_with_its_versions_and_its_links(
    store: Store, embedder: FakeEmbedder
) -> None:
    await add(store, "first draft", "other")
    await store.update(NS, draft("first draft").hash, NoteChange(content="second draft"), now=2.0)
    name = draft("second draft").hash
    link = Link(kind="associated", hash=name)
    await store.add(NS, [draft("linked", links=(link,))], now=3.0)
    assert (await store.get(NS, draft("linked").hash)).links == (link,)
    await embed_all(store, embedder)
    await store.warm(NS)

    assert await store.purge(NS, [name], now=4.0) == 1

    assert await store.purge(NS, [name], now=4.0) == 0
    for gone in (name, draft("first draft").hash):
        with pytest.raises(NotFound):
            await store.history(NS, gone)
    assert await found(store, NS, "draft", embedder=embedder) == []
    assert (await store.get(NS, draft("linked").hash)).links == ()
    assert (await store.counts(NS)).notes == 2


async def test_a_note_that_supersedes_others_keeps_them_and_says_so(store: Store) -> None:
    await add(store, "the key is A")
    old = draft("the key is A").hash

    link = Link(kind="supersedes", hash=old[:8])
    new = draft("the key is B", links=(link,), created=9_000.0)
    [key] = await store.add(NS, [new], now=2.0)

    assert sorted(await found(store, NS, "key")) == ["the key is A", "the key is B"]
    [kept] = (await store.get(NS, new.hash)).links
    assert (kept.kind, kept.hash) == ("supersedes", old)
    superseded = await store.get(NS, old)
    assert (superseded.until, superseded.superseded_by) == (9_000.0, new.hash)
    matches = await store.search(NS, Query(text="key", vector=None), depth=9)
    assert [(each.by, each.until) for each in matches.superseded.values()] == [(key, 9_000.0)]


async def test_a_superseded_note_holds_again_when_its_successor_goes(store: Store) -> None:
    for place, content in enumerate("ABC"):
        await store.add(NS, [draft(content, created=float(place + 1))], now=1.0)
    a, b, c = (draft(content).hash for content in "ABC")
    assert await store.supersede(NS, a, b, is_found=True)
    assert await store.supersede(NS, b, c, is_found=True)
    assert not await store.supersede(NS, a, c, is_found=True)
    for older, newer in ((c, a), (a, a)):
        with pytest.raises(BadInput, match="own place"):
            await store.supersede(NS, older, newer, is_found=False)

    await store.delete(NS, [b], now=5.0)
    assert (await store.get(NS, a)).superseded_by == c
    await store.delete(NS, [c], now=5.0)
    assert (await store.get(NS, a)).until is None
    await store.restore(NS, [b], now=6.0)
    assert (await store.get(NS, a)).superseded_by == b

    assert await store.reinstate(NS, a)
    assert not await store.reinstate(NS, a)
    assert not await store.supersede(NS, a, b, is_found=True)
    assert await store.supersede(NS, a, b, is_found=False)


async def test_whoever_says_that_a_note_supersedes_another_says_that_it_holds(store: Store) -> None:
    await add(store, "A", "B")
    a, b = draft("A").hash, draft("B").hash
    await store.supersede(NS, a, b, is_found=False)

    await store.add(NS, [draft("A", links=(Link(kind="supersedes", hash=b),))], now=9.0)

    assert (await store.get(NS, a)).until is None
    assert (await store.get(NS, b)).superseded_by == a


async def test_a_superseded_note_stays_so_when_it_is_corrected(store: Store) -> None:
    await add(store, "the key is A", "the key is B")
    a, b = draft("the key is A").hash, draft("the key is B").hash
    await store.supersede(NS, a, b, is_found=False)

    updated = await store.update(NS, a, NoteChange(content="the key was A"), now=7.0)

    assert updated.note.superseded_by == b
    await store.purge(NS, [b], now=8.0)
    assert (await store.get(NS, updated.note.hash)).until is None


async def test_an_ambiguous_prefix_is_refused_with_the_candidates(store: Store) -> None:
    by_prefix: dict[str, list[str]] = {}
    for number in range(2000):
        by_prefix.setdefault(draft(f"note {number}").hash[:4], []).append(f"note {number}")
    prefix, contents = next((p, c) for p, c in by_prefix.items() if len(c) == 2)
    await add(store, *contents)

    with pytest.raises(NotFound) as refused:
        await store.get(NS, prefix)
    for content in contents:
        assert draft(content).hash[:8] in str(refused.value)
        assert content in str(refused.value)
    with pytest.raises(NotFound):
        await store.delete(NS, [draft(contents[0]).hash, prefix], now=1.0)
    assert (await store.counts(NS)).notes == 2

    await store.delete(NS, [draft(contents[0]).hash], now=1.0)
    assert (await store.get(NS, prefix)).content == contents[1]


async def test_a_store_drops_the_vectors_of_another_embedder_and_keeps_its_own(
    open_store: OpenStore, tmp_path: Path
) -> None:
    first, second = FakeEmbedder("first", 8), FakeEmbedder("second", 16)
    async with open_store(tmp_path) as store:
        keys = await add(store, "alpha", "beta")
        await embed_all(store, first)
    async with open_store(tmp_path) as store:
        await store.adopt(first.name, first.dimensions)
        assert await store.unembedded() == []

        await store.adopt(second.name, second.dimensions)
        assert await store.unembedded() == keys
        with pytest.raises(StoreError, match="second"):
            await store.embed(first.name, [])
        await embed_all(store, second)
        await store.adopt(second.name, second.dimensions)
        assert await store.unembedded() == []
        assert (await found(store, NS, "alpha", embedder=second))[0] == "alpha"


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "'; DROP TABLE notes; --",
        "NEAR(a b)",
        "a AND OR NOT *",
        "content:x ^y",
        "(((",
        "-",
        "\x00",
        "🙂",
        "a" * 5000,
        "%_",
        "日本語",
    ],
)
async def test_no_query_is_a_syntax_error(store: Store, embedder: FakeEmbedder, query: str) -> None:
    await add(store, "a b x y")
    await embed_all(store, embedder)

    for asked in (None, embedder):
        assert isinstance(await found(store, NS, query, embedder=asked), list)
    assert (await store.counts(NS)).notes == 1
