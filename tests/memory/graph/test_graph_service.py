"""The verbs of the graph, beyond those of server-memory."""

import json
from pathlib import Path
from typing import Any

import pytest
from graphs import entity, related, relation, running_graph, told
from stores import draft

from toolfold.errors import BadInput, NotFound
from toolfold.memory.graph import inputs
from toolfold.memory.graph.models import Fault, GraphPath, ImportReport, Neighbor
from toolfold.memory.graph.service import Graph
from toolfold.memory.graph.tools import GraphAnswer, call

FAMILY = [
    related("Ada", "knows", "Bob"),
    related("Carl", "knows", "Bob"),
    related("Carl", "likes", "Dora"),
    related("Dora", "knows", "Erik"),
    related("Ada", "likes", "tea"),
]


async def people(graph: Graph) -> None:
    names = ("Ada", "Bob", "Carl", "Dora", "Erik", "Hermit")
    await graph.create_entities([told(name, "person") for name in names])
    await graph.create_relations(FAMILY)


async def test_an_entity_is_made_and_later_gets_what_it_lacks(graph: Graph) -> None:
    assert await graph.create_entity("Ada", "person") == entity("Ada", "person")
    assert await graph.create_entity("Ada", "robot", "codes") == entity("Ada", "person", "codes")

    found = await graph.create_entity("Ada", "person", ["codes", "likes tea"])

    assert found == entity("Ada", "person", "codes", "likes tea")
    assert repr(found) == "Ada (person): codes; likes tea"
    assert await graph.read_graph() == {
        "entities": [told("Ada", "person", "codes", "likes tea")],
        "relations": [],
    }


async def test_ranked_search_puts_names_above_types_above_observations(graph: Graph) -> None:
    await graph.create_entities(
        [
            told("Zoe", "person", "went to the harbour once"),
            told("Pier 7", "harbour", "wooden"),
            told("Old Harbour Café", "place", "sells tea"),
            told("Harbour", "place"),
            told("Elsewhere", "place"),
        ]
    )

    found = await graph.search_graph("where are the harbours?")

    names = [each.name for each in found.entities]
    assert names == ["Harbour", "Old Harbour Café", "Pier 7", "Zoe"]
    scores = [each.score for each in found.entities]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert found.total == 4
    assert scores[0] == 1.0


async def test_ranked_search_counts_rare_words_more_and_all_words_together(graph: Graph) -> None:
    await graph.create_entities(
        [told(f"Person {number}", "person", "drinks tea") for number in range(20)]
        + [told("Quentin", "person", "plays the zither"), told("Zora", "person", "zither and tea")]
    )

    found = await graph.search_graph("tea zither", limit=3)

    assert [each.name for each in found.entities] == ["Zora", "Quentin", "Person 0"]
    assert found.total == 22


async def test_ranked_search_reads_names_with_underscores(graph: Graph) -> None:
    await graph.create_entities([told("Ada_Lovelace", "person"), told("Bob", "person", "ada?")])

    for query in ("Ada_Lovelace", "ada lovelace", "LOVELACE"):
        found = await graph.search_graph(query)
        assert found.entities[0].name == "Ada_Lovelace"


@pytest.mark.parametrize("query", ["", "   ", "?!", '"', "NEAR(a b)", "a* OR", "\0", "\ud83d"])
async def test_ranked_search_takes_any_query(graph: Graph, query: str) -> None:
    await graph.create_entities([told("Ada", "person")])

    found = await graph.search_graph(query)

    assert found.total == 0
    assert repr(found) == f"No entities for {query!r}."


async def test_results_of_ranked_search_read_well(graph: Graph) -> None:
    await graph.create_entities([told("Ada", "person", "likes tea"), told("Bob", "person")])

    assert repr(await graph.search_graph("ada")) == (
        "1 of 1 entity for 'ada':\n1.00 Ada (person): likes tea"
    )


async def test_neighbours_come_nearest_first_with_the_relation_that_leads_there(
    graph: Graph,
) -> None:
    await people(graph)

    near = await graph.neighbors("Ada")
    far = await graph.neighbors("Ada", depth=3)

    assert near.neighbors == (
        Neighbor("Bob", "person", 1, relation("Ada", "knows", "Bob")),
        Neighbor("tea", None, 1, relation("Ada", "likes", "tea")),
    )
    assert [(each.name, each.distance) for each in far.neighbors] == [
        *(("Bob", 1), ("tea", 1)),
        *(("Carl", 2), ("Dora", 3)),
    ]
    assert repr(near) == (
        "2 of 2 around 'Ada':\n"
        "1 Bob (person): Ada -knows-> Bob\n"
        "1 tea (no entity): Ada -likes-> tea"
    )


async def test_neighbours_are_limited_and_all_are_counted(graph: Graph) -> None:
    await people(graph)

    found = await graph.neighbors("Ada", depth=10, limit=2)

    assert [each.name for each in found.neighbors] == ["Bob", "tea"]
    assert found.total == 5


async def test_one_that_nothing_relates_to_has_no_neighbours(graph: Graph) -> None:
    await people(graph)

    assert repr(await graph.neighbors("Hermit")) == "Nothing is related to 'Hermit'."


async def test_a_name_that_is_not_there_is_said_with_those_that_are_near(graph: Graph) -> None:
    await people(graph)

    with pytest.raises(NotFound, match=r"No entity is named 'bob'. Did you mean 'Bob'\?"):
        await graph.neighbors("bob")
    with pytest.raises(NotFound, match="search_graph"):
        await graph.shortest_path("Ada", "nobody")
    with pytest.raises(NotFound):
        await graph.shortest_path("nobody", "nobody")


async def test_the_shortest_path_goes_along_relations_in_both_directions(graph: Graph) -> None:
    await people(graph)

    found = await graph.shortest_path("Ada", "Erik")

    assert found.names == ("Ada", "Bob", "Carl", "Dora", "Erik")
    assert found.relations == (
        relation("Ada", "knows", "Bob"),
        relation("Carl", "knows", "Bob"),
        relation("Carl", "likes", "Dora"),
        relation("Dora", "knows", "Erik"),
    )
    assert repr(found).startswith("Ada … Bob … Carl … Dora … Erik\nAda -knows-> Bob\n")
    assert (await graph.shortest_path("Erik", "Ada")).names == found.names[::-1]
    assert (await graph.shortest_path("tea", "Bob")).names == ("tea", "Ada", "Bob")


async def test_a_path_to_itself_is_short_and_one_to_nowhere_empty(graph: Graph) -> None:
    await people(graph)

    assert await graph.shortest_path("Ada", "Ada") == GraphPath("Ada", "Ada", ("Ada",), ())
    nowhere = await graph.shortest_path("Ada", "Hermit")
    assert nowhere == GraphPath("Ada", "Hermit", (), ())
    assert repr(nowhere) == "No path leads from 'Ada' to 'Hermit'."


async def test_notes_that_mention_an_entity_are_found(graph: Graph) -> None:
    await graph.create_entities([told("Ada_Lovelace", "person")])
    contents = [
        "Met Ada Lovelace at noon.",
        "Lovelace, Ada: see the list",
        "ADA_LOVELACE owns the build",
        "Adamant lovelaces",
    ]
    await graph._notes.add("project", [draft(each) for each in contents], now=1000.0)
    await graph._notes.add("other", [draft("Ada Lovelace elsewhere")], now=1000.0)

    found = await graph.mentions("Ada_Lovelace")

    assert sorted(each.preview for each in found.memories) == [contents[2], contents[0]]
    assert found.total == 2
    assert len((await graph.mentions("Ada_Lovelace", limit=1)).memories) == 1
    assert (await graph.mentions("++")).total == 0
    assert (await graph.mentions("Nobody")).total == 0


async def test_the_entities_that_a_note_mentions_come_in_its_order(graph: Graph) -> None:
    await graph.create_entities(
        [told("Acme", "firm"), told("Ada Lovelace", "person"), told("Love", "idea"), told("", "x")]
    )
    note = draft("With ada_lovelace of ACME: lovely. Acme pays.")
    await graph._notes.add("project", [note], now=1000.0)

    found = await graph.entities_of(note.hash[:8])

    assert found == (entity("Ada Lovelace", "person"), entity("Acme", "firm"))
    with pytest.raises(NotFound):
        await graph.entities_of("00000000")


async def test_a_bad_line_is_named_and_the_others_are_imported(graph: Graph) -> None:
    await graph.create_entities([told("Ada", "person", "codes")])
    lines = [
        json.dumps({"type": "entity", **told("Ada", "person", "codes", "sings")}),
        "",
        "{not json",
        json.dumps({"type": "entity", "name": "Bob", "entityType": "person"}),
        json.dumps({"type": "relation", **related("Ada", "knows", "Bob")}),
        "[1]",
        json.dumps({"type": "note", "name": "x"}),
        json.dumps({"type": "entity", **told("Bob", "person")}),
    ]

    report = await graph.import_jsonl("\ufeff" + "\r\n".join(lines))

    assert report[:3] == (1, 1, 1)
    assert [fault.line for fault in report.faults] == [3, 4, 6, 7]
    assert report.faults[1].reason == (
        "Invalid input: expected array, received undefined at observations"
    )
    assert "4 lines left out:\nline 3: It is not JSON" in repr(report)
    assert await graph.import_jsonl(lines) == report._replace(
        entities=0, observations=0, relations=0
    )
    assert await graph.read_graph() == {
        "entities": [told("Ada", "person", "codes", "sings"), told("Bob", "person")],
        "relations": [related("Ada", "knows", "Bob")],
    }


async def test_a_text_in_a_file_that_is_too_long_is_named_too(graph: Graph) -> None:
    long = json.dumps({"type": "entity", **told("x" * (inputs.MAX_CONTENT_BYTES + 1))})
    large = json.dumps({"type": "entity", **told("y", "t", *["z" * 600_000] * 3)})

    report = await graph.import_jsonl([long, large])

    assert (report.entities, [fault.line for fault in report.faults]) == (1, [1])
    assert "too long" in report.faults[0].reason


def test_many_faults_are_shown_in_part() -> None:
    report = ImportReport(0, 0, 0, tuple(Fault(number, "bad") for number in range(1, 15)))

    assert repr(report).endswith("line 10: bad\nand 4 more lines")


@pytest.mark.parametrize(
    ("verb", "arguments", "said"),
    [
        ("create_entities", {"entities": "Ada"}, "expected array, received string at entities"),
        (
            "create_entities",
            {"entities": [{"name": "A"}]},
            r"undefined at entities\[0\].entityType",
        ),
        ("create_entity", {"name": 1, "entity_type": "t"}, "received number at name"),
        ("create_entity", {"name": "a", "entity_type": "t", "observations": [1]}, r"vations\[0\]"),
        ("open_nodes", {"names": b"Ada"}, "at names"),
        ("search_nodes", {"query": None}, "received null at query"),
        ("search_graph", {"query": 5}, "text, not int"),
        ("search_graph", {"query": "a", "limit": -1}, "limit"),
        ("search_graph", {"query": "a" * 10_001}, "10,000 is the limit"),
        ("neighbors", {"name": "Ada", "depth": 0}, "depth"),
        ("neighbors", {"name": "Ada", "depth": True}, "depth"),
        ("neighbors", {"name": ["Ada"]}, "received array at name"),
        ("shortest_path", {"source": "Ada", "target": 3}, "received number"),
        ("mentions", {"name": None}, "received null"),
        ("entities_of", {"hash": "xyz"}, "not the hash"),
        ("import_jsonl", {"lines": [5]}, r"received number at lines\[0\]"),
        ("import_jsonl", {"lines": {"a": 1}}, "received object at lines"),
        ("import_jsonl", {"lines": [""] * (inputs.MAX_LINES + 1)}, "import them in parts"),
        ("create_entities", {"entities": [told("x" * 2**20 + "x")]}, "too long"),
        ("delete_entities", {"entityNames": [""] * (inputs.MAX_TEXTS + 1)}, "several calls"),
    ],
)
async def test_what_cannot_be_used_is_said_and_changes_nothing(
    graph: Graph, verb: str, arguments: dict[str, Any], said: str
) -> None:
    await people(graph)
    before = await graph.read_graph()

    with pytest.raises(BadInput, match=said):
        await getattr(graph, verb)(**arguments)

    assert await graph.read_graph() == before


async def test_a_list_of_faults_is_no_longer_than_needed(graph: Graph) -> None:
    with pytest.raises(BadInput) as caught:
        await graph.create_entities([{}] * 10_000)

    assert len(str(caught.value).splitlines()) == inputs.MAX_FAULTS


async def test_what_is_too_much_fails_as_a_tool_too(graph: Graph) -> None:
    answer = await call(graph, "open_nodes", {"names": ["x" * 2**20 + "x"]})

    assert answer.is_error
    assert answer.structured is None
    assert "too long for the graph" in answer.text


async def test_halves_of_one_character_are_one_character(graph: Graph) -> None:
    await graph.create_entities([told("\ud83d\ude00")])

    assert await graph.open_nodes(["😀"]) == {"entities": [told("😀")], "relations": []}
    assert await call(graph, "open_nodes", {"names": ["\ud83d"]}) == GraphAnswer(
        '{\n  "entities": [],\n  "relations": []\n}', {"entities": [], "relations": []}
    )


async def test_graphs_of_two_namespaces_in_one_file_are_two(tmp_path: Path) -> None:
    async with running_graph(tmp_path, "one") as one, running_graph(tmp_path, "two") as two:
        await one.create_entity("Ada", "person", "codes")
        await two.create_entity("Ada", "robot")

        assert await one.export_jsonl() != await two.export_jsonl()
        assert (await two.search_graph("codes")).total == 0
        assert (await one.search_graph("Ada")).entities[0].entity_type == "person"
