"""Vectors of tools are kept by what was embedded, so only what changed is embedded again."""

import numpy as np
from inline_snapshot import snapshot

from toolfold.catalog.search.vectors import ToolVectors, VectorTable, embedding_texts
from toolfold.catalog.tool import ListedTool, Tool


def tool(server: str, name: str, description: str = "", **properties: object) -> Tool:
    listed = ListedTool(
        name=name,
        description=description,
        input_schema={"type": "object", "properties": properties},  # type: ignore[dict-item]
    )
    return Tool(server=server, module=server, function=name, listed=listed)


ISSUE = tool(
    "git-hub",
    "createIssue",
    "Open an issue.\n\nIn a repo.",
    repo={"description": "Where"},
    state={"enum": ["open", 3, "closed"]},
)


def filled(*tools: Tool) -> VectorTable:
    texts = VectorTable().missing(tools)
    return VectorTable().extended(texts, np.ones((len(texts), 4), np.float32))


def test_a_tool_is_embedded_as_a_whole_by_its_name_and_by_its_inputs() -> None:
    assert [text.text for text in embedding_texts(ISSUE)] == snapshot(
        [
            "create issue: Open an issue. In a repo. (server: git hub) Parameters: repo, state",
            "git hub create issue",
            "create issue: repo: Where. state: open closed",
        ]
    )


def test_a_server_that_says_nothing_more_than_the_tool_is_left_out() -> None:
    texts = [text.text for text in embedding_texts(tool("weather", "get_weather", "Tell."))]

    assert texts == snapshot(["get weather: Tell.", "get weather", "get weather:"])


def test_keys_depend_on_the_text_alone() -> None:
    key = embedding_texts(ISSUE)[1].key

    assert key == snapshot("071265c90a7fdb52841ef4c68b3765c3")
    assert key == embedding_texts(tool("git_hub", "create_issue", "Other"))[1].key


def test_only_what_is_new_is_to_be_embedded_each_text_once() -> None:
    table = filled(ISSUE)
    changed = tool("git-hub", "createIssue", "Open an issue, quickly.")

    missing = table.missing([ISSUE, changed, changed])

    assert [text.text.split(":")[0] for text in missing] == ["create issue", "create issue"]
    assert missing[0].text.startswith("create issue: Open an issue, quickly.")


def test_a_table_is_reduced_to_what_tools_need() -> None:
    table = filled(ISSUE, tool("mail", "send"))

    reduced = table.reduced([ISSUE])

    assert len(reduced) == 3
    assert dict(reduced.items()).keys() == {text.key for text in embedding_texts(ISSUE)}
    assert reduced.missing([ISSUE]) == []


def test_vectors_are_complete_when_every_text_has_one() -> None:
    tools = [ISSUE, tool("mail", "send")]

    assert ToolVectors(tools, filled(*tools)).is_complete
    assert not ToolVectors(tools, filled(ISSUE)).is_complete
