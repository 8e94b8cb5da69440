"""What every store of graphs must do; written against the protocol."""

from pathlib import Path

import pytest
from graphs import OpenGraphStore, entity, relation

from toolfold.errors import NotFound
from toolfold.memory.graph.encoding import GraphStore, Merged, Observed, WordHit, decode
from toolfold.memory.graph.models import Subgraph

NS = "project"
ODD = ["", "\0", "a\0b", "\ud83d", "x\ude00", "😀", "İ", "ß", '"', "%", "\uffff", "line\nbreak"]


async def test_a_graph_that_nothing_was_kept_in_is_empty(graphs: GraphStore) -> None:
    assert decode(await graphs.read(NS)) == Subgraph()
    assert decode(await graphs.open(NS, ["Ada"])) == Subgraph()
    assert decode(await graphs.containing(NS, "Ada")) == Subgraph()
    assert await graphs.word_hits(NS, ["ada", "bob"]) == [[], []]
    assert await graphs.load(NS, [1]) == {}
    assert await graphs.count(NS) == 0
    assert await graphs.relations_of(NS, ["Ada"]) == []
    assert await graphs.types_of(NS, ["Ada"]) == {}
    assert await graphs.spoken(NS, ["ada"]) == {}
    await graphs.delete_entities(NS, ["Ada"])
    await graphs.delete_observations(NS, [Observed("Ada", ("x",))])
    await graphs.delete_relations(NS, [relation("Ada", "knows", "Bob")])
    assert decode(await graphs.read(NS)) == Subgraph()


async def test_what_was_added_is_read_in_the_order_of_adding(graphs: GraphStore) -> None:
    entities = [entity("Zoe", "person", "b", "a"), entity("Ada", "person"), entity("Acme", "firm")]
    relations = [relation("Zoe", "works at", "Acme"), relation("Ada", "knows", "Zoe")]

    assert await graphs.add_entities(NS, entities) == entities
    assert await graphs.add_relations(NS, relations) == relations

    assert decode(await graphs.read(NS)) == Subgraph(tuple(entities), tuple(relations))
    assert await graphs.count(NS) == 3


async def test_graphs_are_there_when_the_store_is_opened_again(
    open_graphs: OpenGraphStore, tmp_path: Path
) -> None:
    async with open_graphs(tmp_path) as graphs:
        await graphs.add_entities(NS, [entity("Ada", "person", "likes tea")])
    async with open_graphs(tmp_path) as graphs:
        assert decode(await graphs.containing(NS, "TEA")).entities == (
            entity("Ada", "person", "likes tea"),
        )


async def test_names_that_are_there_are_skipped_and_doubles_of_one_call_are_not(
    graphs: GraphStore,
) -> None:
    await graphs.add_entities(NS, [entity("Ada", "person", "first")])

    added = await graphs.add_entities(
        NS, [entity("Ada", "robot"), entity("Bob", "one"), entity("Bob", "two")]
    )

    assert added == [entity("Bob", "one"), entity("Bob", "two")]
    assert decode(await graphs.read(NS)).entities == (entity("Ada", "person", "first"), *added)


async def test_relations_that_are_there_are_skipped_and_doubles_of_one_call_are_not(
    graphs: GraphStore,
) -> None:
    knows, likes = relation("Ada", "knows", "Bob"), relation("Ada", "likes", "Bob")
    await graphs.add_relations(NS, [knows])

    assert await graphs.add_relations(NS, [knows, likes, likes]) == [likes, likes]
    assert decode(await graphs.read(NS)).relations == (knows, likes, likes)


async def test_observations_go_to_the_first_of_a_name_and_only_those_it_lacks(
    graphs: GraphStore,
) -> None:
    await graphs.add_entities(NS, [entity("Ada", "one", "old"), entity("Ada", "two")])

    added = await graphs.add_observations(
        NS, [Observed("Ada", ("old", "new", "new")), Observed("Ada", ("new", "newer"))]
    )

    assert added == [("new", "new"), ("newer",)]
    assert decode(await graphs.read(NS)).entities == (
        entity("Ada", "one", "old", "new", "new", "newer"),
        entity("Ada", "two"),
    )


@pytest.mark.parametrize("count", [1, 5, 30])
async def test_observations_are_told_apart_however_many_are_added_or_deleted_at_once(
    graphs: GraphStore, count: int
) -> None:
    odd = ["", '"', '",', '","', "\\", '\\"', "a", "a\n", "\ud83d", *map(str, range(30))]
    await graphs.add_entities(NS, [entity("Ada", "t", *odd[:9])])
    for start in range(9, len(odd), count):
        await graphs.add_observations(NS, [Observed("Ada", tuple(odd[start : start + count]))])

    for start in range(0, len(odd), count):
        some = tuple(odd[start : start + count])
        assert await graphs.add_observations(NS, [Observed("Ada", some)]) == [()]
    [ada] = decode(await graphs.read(NS)).entities
    assert list(ada.observations) == odd
    for start in range(0, len(odd), count):
        some = tuple(odd[start : start + count])
        await graphs.delete_observations(NS, [Observed("Ada", some)])
        [ada] = decode(await graphs.read(NS)).entities
        assert list(ada.observations) == odd[start + count :]


async def test_a_name_or_type_is_no_observation(graphs: GraphStore) -> None:
    await graphs.add_entities(NS, [entity("Ada", "person")])

    assert await graphs.add_observations(NS, [Observed("Ada", ("Ada", "person"))]) == [
        ("Ada", "person")
    ]
    await graphs.delete_observations(NS, [Observed("Ada", ("Ada", "person"))])

    assert decode(await graphs.read(NS)).entities == (entity("Ada", "person"),)


async def test_observing_what_is_not_there_leaves_everything_as_it_was(graphs: GraphStore) -> None:
    await graphs.add_entities(NS, [entity("Ada")])

    with pytest.raises(NotFound, match=r"^Entity with name Bob not found$"):
        await graphs.add_observations(NS, [Observed("Ada", ("new",)), Observed("Bob", ("new",))])

    assert decode(await graphs.read(NS)).entities == (entity("Ada"),)
    assert decode(await graphs.containing(NS, "new")) == Subgraph()


async def test_an_entity_is_deleted_with_all_its_relations(graphs: GraphStore) -> None:
    await graphs.add_entities(NS, [entity("Ada", "a", "tea"), entity("Ada", "b"), entity("Bob")])
    kept = relation("Bob", "knows", "Eve")
    await graphs.add_relations(
        NS, [relation("Ada", "knows", "Bob"), kept, relation("Bob", "knows", "Ada")]
    )

    await graphs.delete_entities(NS, ["Ada", "nobody"])

    assert decode(await graphs.read(NS)) == Subgraph((entity("Bob"),), (kept,))
    assert decode(await graphs.containing(NS, "tea")) == Subgraph()
    assert await graphs.word_hits(NS, ["tea"]) == [[]]
    assert await graphs.spoken(NS, ["ada"]) == {}


async def test_relations_of_a_name_go_though_no_entity_had_it(graphs: GraphStore) -> None:
    await graphs.add_relations(NS, [relation("Ada", "knows", "Bob")])

    await graphs.delete_entities(NS, ["Bob"])

    assert decode(await graphs.read(NS)) == Subgraph()


async def test_observations_are_deleted_from_the_first_of_a_name_however_often_they_are_there(
    graphs: GraphStore,
) -> None:
    await graphs.add_entities(NS, [entity("Ada", "a", "x", "y", "x"), entity("Ada", "b", "x")])

    await graphs.delete_observations(NS, [Observed("Ada", ("x", "z")), Observed("Eve", ("x",))])

    assert decode(await graphs.read(NS)).entities == (
        entity("Ada", "a", "y"),
        entity("Ada", "b", "x"),
    )


async def test_relations_are_deleted_however_often_they_are_there(graphs: GraphStore) -> None:
    knows, likes = relation("Ada", "knows", "Bob"), relation("Ada", "likes", "Bob")
    await graphs.add_relations(NS, [knows, likes, knows])

    await graphs.delete_relations(NS, [knows, relation("Bob", "knows", "Ada")])

    assert decode(await graphs.read(NS)).relations == (likes,)


async def test_a_new_name_comes_last_though_an_old_one_was_deleted(graphs: GraphStore) -> None:
    await graphs.add_entities(NS, [entity("Ada"), entity("Bob")])
    await graphs.delete_entities(NS, ["Bob"])
    await graphs.add_entities(NS, [entity("Eve")])
    await graphs.delete_entities(NS, ["Ada"])
    await graphs.add_entities(NS, [entity("Ada")])
    await graphs.add_observations(NS, [Observed("Eve", ("late",))])

    names = [each.name for each in decode(await graphs.read(NS)).entities]
    assert names == ["Eve", "Ada"]


async def test_opening_gives_all_of_a_name_and_every_relation_that_touches_one(
    graphs: GraphStore,
) -> None:
    await graphs.add_entities(NS, [entity("Bob"), entity("Ada", "a"), entity("Ada", "b")])
    touching = [relation("Ada", "knows", "Eve"), relation("Bob", "knows", "Ada")]
    await graphs.add_relations(
        NS, [touching[0], relation("Eve", "knows", "Bob"), touching[1], touching[0]]
    )

    found = decode(await graphs.open(NS, ["Ada", "Ada", "ada", "Eve"]))

    assert found.entities == (entity("Ada", "a"), entity("Ada", "b"))
    # The last is a double of the first, added in the same call.
    assert found.relations == (touching[0], touching[1], touching[0])


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("coffee", ["Ada", "Café"]),
        ("COFFEE at", ["Ada"]),
        ("at nine coffee", []),
        ("person", ["Ada", "Bob"]),
        ("ada", ["Ada"]),
        ("é", ["Café"]),
        ("n", ["Ada", "Bob", "Café"]),
        ("ni", ["Ada"]),
        ("", ["Ada", "Bob", "Café"]),
        ("tea coffee", []),
        ('"nine"', []),
        ("%", ["Bob"]),
        ("100% of", ["Bob"]),
        ("adaperson", []),
    ],
)
async def test_a_search_finds_parts_of_single_texts_in_any_case(
    graphs: GraphStore, query: str, names: list[str]
) -> None:
    await graphs.add_entities(
        NS,
        [
            entity("Ada", "person", "likes tea", "Coffee at nine"),
            entity("Bob", "Person", "100% of it"),
            entity("Café", "no place", "sells COFFEE"),
        ],
    )

    found = decode(await graphs.containing(NS, query))

    assert [each.name for each in found.entities] == names


async def test_a_long_query_finds_only_what_has_all_of_it(graphs: GraphStore) -> None:
    text = " ".join(str(number) for number in range(2_000))
    await graphs.add_entities(NS, [entity("long", "t", text), entity("cut", "t", text[:-1])])

    assert [e.name for e in decode(await graphs.containing(NS, text)).entities] == ["long"]
    assert [e.name for e in decode(await graphs.containing(NS, text[:-1])).entities] == [
        "long",
        "cut",
    ]


async def test_what_is_found_brings_the_relations_that_touch_it(graphs: GraphStore) -> None:
    await graphs.add_entities(NS, [entity("Ada"), entity("Bob")])
    out, into = relation("Ada", "knows", "nobody"), relation("Bob", "knows", "Ada")
    await graphs.add_relations(NS, [out, relation("Bob", "knows", "Eve"), into])

    assert decode(await graphs.containing(NS, "ADA")) == Subgraph((entity("Ada"),), (out, into))


async def test_searching_for_nothing_finds_all_but_relations_between_what_is_no_entity(
    graphs: GraphStore,
) -> None:
    await graphs.add_entities(NS, [entity("Ada")])
    touching = relation("Ada", "knows", "nobody")
    await graphs.add_relations(NS, [relation("nobody", "knows", "nothing"), touching])

    assert decode(await graphs.containing(NS, "")) == Subgraph((entity("Ada"),), (touching,))


async def test_thousands_are_found_at_once_with_their_relations(graphs: GraphStore) -> None:
    entities = [entity(f"node {number}", "t", f"fact {number}") for number in range(2_500)]
    relations = [relation(f"node {n}", "before", f"node {n + 1}") for n in range(2_499)]
    relations += [relation("x", "is not", "y")]
    await graphs.merge(NS, Subgraph(tuple(entities), tuple(relations)))

    found = decode(await graphs.containing(NS, "fact"))

    assert found == Subgraph(tuple(entities), tuple(relations[:-1]))
    assert decode(await graphs.open(NS, [each.name for each in entities])) == found


@pytest.mark.parametrize("text", ODD)
async def test_any_text_comes_back_as_it_was_and_is_found(graphs: GraphStore, text: str) -> None:
    odd = entity(text, text, text)
    await graphs.add_entities(NS, [entity("other"), odd])
    await graphs.add_relations(NS, [relation(text, text, text)])

    assert decode(await graphs.read(NS)).entities == (entity("other"), odd)
    assert decode(await graphs.open(NS, [text])) == Subgraph((odd,), (relation(text, text, text),))
    assert odd in decode(await graphs.containing(NS, text)).entities
    assert await graphs.add_entities(NS, [odd]) == []
    assert await graphs.add_observations(NS, [Observed(text, (text,))]) == [()]
    await graphs.delete_observations(NS, [Observed(text, (text,))])
    await graphs.delete_relations(NS, [relation(text, text, text)])
    assert decode(await graphs.read(NS)) == Subgraph((entity("other"), entity(text, text)))


async def test_half_of_a_surrogate_pair_is_found_in_a_whole_one(graphs: GraphStore) -> None:
    await graphs.add_entities(NS, [entity("smile 😀"), entity("no smile")])

    found = decode(await graphs.containing(NS, "\ud83d"))

    assert [each.name for each in found.entities] == ["smile 😀"]


async def test_words_are_found_in_other_forms_and_in_every_place(graphs: GraphStore) -> None:
    await graphs.add_entities(
        NS, [entity("Running Club", "club", "they run"), entity("Ada_Lovelace", "runner", "walks")]
    )

    run, walking, club, none = await graphs.word_hits(NS, ["run", "walking", "club", "nothing"])

    club_key, ada_key = sorted({hit.key for hit in [*run, *walking]})
    assert set(run) == {
        WordHit(club_key, "name", "Running Club"),
        WordHit(club_key, "observation", ""),
    }
    assert walking == [WordHit(ada_key, "observation", "")]
    assert {hit.place for hit in club} == {"name", "type"}
    assert none == []
    assert await graphs.load(NS, [ada_key, club_key, 999]) == {
        club_key: entity("Running Club", "club", "they run"),
        ada_key: entity("Ada_Lovelace", "runner", "walks"),
    }


async def test_types_are_those_of_the_first_of_each_name(graphs: GraphStore) -> None:
    await graphs.add_entities(NS, [entity("Ada", "one"), entity("Ada", "two"), entity("Bob", "b")])

    assert await graphs.types_of(NS, ["Bob", "Ada", "Eve"]) == {"Ada": "one", "Bob": "b"}


async def test_names_are_found_as_they_are_spoken(graphs: GraphStore) -> None:
    both = [entity("Ada_Lovelace", "a"), entity("ada  lovelace", "b")]
    await graphs.add_entities(NS, [*both, entity("Ada"), entity("--")])

    found = await graphs.spoken(NS, ["ada lovelace", "lovelace", "ada", ""])

    assert found == {"ada lovelace": both, "ada": [entity("Ada")]}


async def test_merging_adds_what_none_of_a_name_has(graphs: GraphStore) -> None:
    await graphs.add_entities(NS, [entity("Ada", "a", "x"), entity("Ada", "b", "y")])
    await graphs.add_relations(NS, [relation("Ada", "knows", "Bob")])
    graph = Subgraph(
        (entity("Ada", "c", "x", "y", "z", "z"), entity("Bob", "d"), entity("Bob", "e")),
        (relation("Ada", "knows", "Bob"), relation("Bob", "knows", "Ada")),
    )

    assert await graphs.merge(NS, graph) == Merged(entities=2, observations=1, relations=1)
    assert await graphs.merge(NS, graph) == Merged(0, 0, 0)

    assert decode(await graphs.read(NS)).entities == (
        entity("Ada", "a", "x", "z"),
        entity("Ada", "b", "y"),
        entity("Bob", "d"),
        entity("Bob", "e"),
    )


async def test_namespaces_see_nothing_of_each_other(graphs: GraphStore) -> None:
    await graphs.add_entities("one", [entity("Ada", "person", "likes tea")])
    await graphs.add_relations("one", [relation("Ada", "knows", "Bob")])
    [[hit]] = await graphs.word_hits("one", ["tea"])
    await graphs.add_entities("two", [entity("Eve")])

    assert decode(await graphs.read("two")) == Subgraph((entity("Eve"),))
    assert decode(await graphs.open("two", ["Ada"])) == Subgraph()
    assert decode(await graphs.containing("two", "tea")) == Subgraph()
    assert decode(await graphs.containing("two", "te")) == Subgraph()
    assert await graphs.word_hits("two", ["tea"]) == [[]]
    assert await graphs.load("two", [hit.key]) == {}
    assert await graphs.relations_of("two", ["Ada"]) == []
    assert await graphs.types_of("two", ["Ada"]) == {}
    assert await graphs.spoken("two", ["ada"]) == {}
    assert await graphs.count("two") == 1
    with pytest.raises(NotFound):
        await graphs.add_observations("two", [Observed("Ada", ("x",))])
    await graphs.delete_entities("two", ["Ada"])
    await graphs.delete_relations("two", [relation("Ada", "knows", "Bob")])
    assert await graphs.add_entities("two", [entity("Ada")]) == [entity("Ada")]
    assert decode(await graphs.read("one")).relations == (relation("Ada", "knows", "Bob"),)
    assert decode(await graphs.read("one")).entities == (entity("Ada", "person", "likes tea"),)
