"""The tools of a server are listed in few words, and nothing that code needs is left out."""

from typing import Any

import mcp_types as types
import pytest

from toolfold.catalog.offers import about_server
from toolfold.catalog.overview import OverviewLine, overview
from toolfold.catalog.tool import ListedTool, Tool

GRAPH = {
    "create_entities": "Create multiple new entities in the knowledge graph",
    "delete_entities": "Delete multiple entities and their associated relations from the "
    "knowledge graph",
    "read_graph": "Read the entire knowledge graph",
    "add_notes": "Add notes to existing entities in the knowledge graph.",
    "export": "Write everything to a file of your choice, for programs that read no graphs, as XML",
}


def line(name: str, said: str, returns: str | None = None, **schema: Any) -> OverviewLine:
    listed = ListedTool(name=name, description=said, input_schema=schema)
    return OverviewLine(Tool(server="box", module="box", function=name, listed=listed), returns)


def test_what_descriptions_share_is_said_once_and_what_signatures_say_is_not_repeated() -> None:
    lines = [line(name, said) for name, said in GRAPH.items()]

    assert overview("box", lines, about="", notes=["started with /g"]).splitlines() == [
        "# box: the knowledge graph; started with /g",
        "create_entities()",
        "delete_entities(): Delete multiple entities and their associated relations",
        "read_graph()",
        "add_notes()",
        "export(): Write everything to a file of your choice",
    ]


def test_a_type_that_most_tools_return_is_said_once() -> None:
    lines = [line(f"t{number}", "", "str") for number in range(5)]
    lines += [line("rows", "", "list[dict]"), line("odd", "", None)]

    assert overview("box", lines, about="A box", notes=()).splitlines() == [
        "# box: A box; returns str unless shown",
        *(f"t{number}()" for number in range(5)),
        "rows() -> list[dict]",
        "odd() -> Any",
    ]


@pytest.mark.parametrize("said", ["", "word " * 100, "x" * 300, "in the the the", "a\nb"])
def test_a_line_is_short_and_one_whatever_a_server_says(said: str) -> None:
    text = overview("box", [line("tool", said)] * 4, about="", notes=())

    assert len(text.splitlines()) == 5
    assert all(len(each) < 100 for each in text.splitlines()[1:])


@pytest.mark.parametrize(
    ("info", "instructions", "about"),
    [
        ({"description": "Star charts. And more."}, "Ask first.", "Star charts"),
        ({"title": "Reference Server"}, "Ask first.", "Reference Server"),
        ({"title": "Sky MCP Server"}, "# Sky\n\nQuery the star charts. Ask first.",
         "Query the star charts"),
        ({"title": "Sky MCP Server"}, None, "sky"),
        ({}, None, "sky"),
        ({"description": "\x1b[31mRed\x1b[0m charts " + "of stars " * 40}, None,
         "Red charts of stars"),
    ],
)  # fmt: skip
def test_a_server_is_said_to_be_what_it_says(
    info: dict[str, str], instructions: str | None, about: str
) -> None:
    told = types.Implementation.model_validate({"name": "sky", "version": "1", **info})
    found = about_server(told, instructions)

    assert found.startswith(about)
    assert len(found) <= 80
    assert "\x1b" not in found
    assert about_server(None, None) == ""
