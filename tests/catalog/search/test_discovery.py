"""A search finds the tool that a model has in mind, and says which words led nowhere."""

import json
import math
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import SHARED_DATA

from toolfold.catalog.names import function_names, module_names
from toolfold.catalog.search.discovery import SearchResult, ToolIndex
from toolfold.catalog.search.vectors import ToolVectors, VectorTable
from toolfold.catalog.tool import ListedTool, Tool
from toolfold.errors import StoreError

CATALOGUES = sorted((SHARED_DATA / "catalogue").glob("*.json"))


def tool(server: str, name: str, description: str = "", **properties: object) -> Tool:
    listed = ListedTool(
        name=name,
        description=description,
        input_schema={"type": "object", "properties": properties},  # type: ignore[dict-item]
    )
    module, function = module_names([server])[server], function_names([name])[name]
    return Tool(server=server, module=module, function=function, listed=listed)


TOOLS = [
    tool("github", "create_issue", "Open a new issue in a repository."),
    tool("github", "createIssueComment", "Comment on an issue: create issue comments."),
    tool("github", "list_issues", "List the issues of a repository", state={"enum": ["stale"]}),
    tool("gitlab", "create_issue", "Create an issue in a project."),
    tool("mail", "send", "Send a message", recipient={"description": "An address of a person"}),
    tool("time", "get_current_time", "Tell what time it is somewhere"),
]


def paths(query: str, *, limit: int = 10, server: str | None = None) -> list[str]:
    return [hit.path for hit in ToolIndex(TOOLS).search(query, limit=limit, server=server).hits]


@pytest.mark.parametrize(
    "query", ["github.create_issue", "mcp__github__create_issue", "github create issue"]
)
def test_a_tool_that_is_named_with_its_server_comes_first(query: str) -> None:
    assert paths(query)[0] == "github.create_issue"


@pytest.mark.parametrize("query", ["create_issue", "createIssue", "Create Issue"])
def test_all_tools_of_that_name_come_first(query: str) -> None:
    assert set(paths(query)[:2]) == {"github.create_issue", "gitlab.create_issue"}


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("listing issue", "github.list_issues"),
        ("stale ones", "github.list_issues"),
        ("recipients", "mail.send"),
        ("addresses", "mail.send"),
        ("comments", "github.create_issue_comment"),
        ("what time is it", "time.get_current_time"),
    ],
)
def test_words_are_found_in_names_descriptions_parameters_and_values(query: str, path: str) -> None:
    assert paths(query)[0] == path


def test_words_that_no_tool_contains_are_named() -> None:
    result = ToolIndex(TOOLS).search("create a quokka issue for the Wombat", limit=3)

    assert result.unmatched == ("quokka", "wombat")
    assert len(result.hits) == 3


def test_a_query_that_matches_nothing_has_no_hits() -> None:
    result = ToolIndex(TOOLS).search("quokka", limit=3)

    assert (result.hits, result.unmatched) == ((), ("quokka",))


def test_a_query_in_another_script_is_unmatched_as_a_whole() -> None:
    assert ToolIndex(TOOLS).search("搜索 ", limit=3).unmatched == ("搜索",)


@pytest.mark.parametrize("server", ["time"])
def test_a_server_is_searched_alone_under_either_name(server: str) -> None:
    assert paths("create issue", server=server) == []
    assert paths("time", server=server) == ["time.get_current_time"]


def test_a_blank_query_lists_the_tools_in_order() -> None:
    assert paths(" ", limit=2) == ["github.create_issue", "github.create_issue_comment"]


def test_an_empty_index_finds_nothing() -> None:
    assert ToolIndex([]).search("issue", limit=5).hits == ()


@given(st.permutations(TOOLS), st.sampled_from(["issue", "create", "a message in time", ""]))
def test_the_order_of_the_tools_does_not_matter(tools: list[Tool], query: str) -> None:
    assert ToolIndex(tools).search(query, limit=9) == ToolIndex(TOOLS).search(query, limit=9)


@given(st.text(), st.integers(min_value=0, max_value=4))
def test_any_query_gives_at_most_the_limit(query: str, limit: int) -> None:
    hits = ToolIndex(TOOLS).search(query, limit=limit).hits

    assert len(hits) == len({hit.path for hit in hits}) <= limit


FILES = [
    tool("word", "create_document", "Create a Word document."),
    tool("slides", "add_slide", "Add a slide to a PowerPoint presentation."),
    tool("disk", "list_directory", "List what is in a folder."),
    tool("video", "get_transcript", "Get the transcript of a YouTube video."),
    tool("hub", "get_repository", "Tell about a repository."),
    tool("必应", "bing_search", "使用必应搜索网页"),
    tool("почта", "send_letter", "Отправить письмо адресату"),
]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("put it into /home/word/list/create.pptx", "add_slide"),
        ("put it into create.docx", "create_document"),
        ("what is in /srv/slides/word/", "list_directory"),
        ("summarise https://www.youtube.com/watch?v=list", "get_transcript"),
        ("fetch the repo", "get_repository"),
        ("必应", "bing_search"),
        ("письмо", "send_letter"),
    ],
)
def test_files_addresses_synonyms_and_other_scripts_are_understood(query: str, name: str) -> None:
    hits = ToolIndex(FILES).search(query, limit=1).hits

    assert [hit.listed.name for hit in hits] == [name]


def test_what_a_file_is_called_is_not_a_word_that_no_tool_contains() -> None:
    result = ToolIndex(TOOLS).search("quokka in /home/wombat/kiwi.pptx", limit=3)

    assert result.unmatched == ("quokka",)


def test_a_synonym_is_no_unmatched_word() -> None:
    assert ToolIndex(FILES).search("fetch the repo", limit=1).unmatched == ()


QUERIES = ["issue", "github.create_issue", "creating stale issues", "quokka", "", "mail an address"]


@pytest.mark.parametrize("server", [None, "github"])
@pytest.mark.parametrize("query", QUERIES)
def test_a_stored_index_finds_the_same(query: str, server: str | None) -> None:
    index = ToolIndex(TOOLS)
    stored = ToolIndex.from_json(json.loads(json.dumps(index.to_json())))

    found = stored.search(query, limit=4, server=server)

    assert found == index.search(query, limit=4, server=server)
    assert list(stored.tools) == list(index.tools)


@pytest.mark.parametrize("stored", [{}, [], {"format": 0, "tools": []}])
def test_an_index_of_another_version_is_refused(stored: object) -> None:
    with pytest.raises(StoreError):
        ToolIndex.from_json(stored)  # type: ignore[arg-type]


def test_a_search_by_words_imports_neither_numpy_nor_the_sdk() -> None:
    script = """
import sys
from toolfold.catalog.search.discovery import ToolIndex
from toolfold.catalog.tool import ListedTool, Tool
listed = ListedTool(name="f", description="Find things", input_schema={})
index = ToolIndex([Tool(server="s", module="s", function="f", listed=listed)])
assert ToolIndex.from_json(index.to_json()).search("things", limit=1).hits
print([name for name in ("numpy", "mcp", "pydantic", "anyio") if name in sys.modules])
"""
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)

    assert shown.stdout == b"[]\n"


MEANINGS = [
    {"picture", "photo", "image", "snapshot", "camera"},
    {"message", "notify", "letter", "send", "tell"},
    {"weather", "forecast", "rain", "umbrella"},
    {"money", "invoice", "pay", "euros"},
]


class FakeEmbedder:
    """Knows four things that words may mean; all other words mean a fifth."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.calls.append(list(texts))
        rows = np.full((len(texts), len(MEANINGS) + 1), 0.01, np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().replace(",", " ").replace(":", " ").split():
                row[[*(word in meaning for meaning in MEANINGS), True].index(True)] += 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


MEANT = [
    tool("cam", "photo", "camera snapshot"),
    tool("post", "letter", "message"),
    tool("sky", "forecast", "weather"),
    tool("bank", "pay", "money"),
    *(tool("other", f"other_{number}", "something else") for number in range(8)),
]


def with_meaning(tools: list[Tool], *, of: Sequence[Tool] | None = None) -> ToolIndex:
    """Return an index with vectors, of all its tools or only some."""
    index = ToolIndex(tools)
    texts = VectorTable().missing(index.tools if of is None else of)
    rows = FakeEmbedder().embed([text.text for text in texts])
    return index.with_vectors(ToolVectors(index.tools, VectorTable().extended(texts, rows)))


def meant(
    query: str, *, limit: int = 1, index: ToolIndex | None = None, **options: str
) -> list[str]:
    index = index or with_meaning(MEANT)
    found = index.search(query, limit=limit, embed=FakeEmbedder().embed, **options)  # type: ignore[arg-type]
    return [hit.path for hit in found.hits]


@pytest.mark.parametrize(
    ("query", "path"),
    [("umbrella", "sky.forecast"), ("notify", "post.letter"), ("euros", "bank.pay")],
)
def test_a_tool_is_found_by_meaning_where_no_word_is_shared(query: str, path: str) -> None:
    result = with_meaning(MEANT).search(query, limit=1, embed=FakeEmbedder().embed)

    assert [hit.path for hit in result.hits] == [path]
    assert result.unmatched == (query,)


def test_a_task_finds_the_tool_of_each_of_its_steps() -> None:
    tools = [*MEANT, tool("sky", "clouds", "something weather weather")]
    task = "rain rain rain rain rain umbrella, then notify tell notify, and euros euros invoice"

    found = meant(task, limit=3, index=with_meaning(tools))

    assert set(found) == {"sky.forecast", "post.letter", "bank.pay"}


def test_the_query_and_its_steps_are_embedded_in_one_call() -> None:
    embedder = FakeEmbedder()
    with_meaning(MEANT).search(
        "see what rain does, then notify them all", limit=1, embed=embedder.embed
    )

    assert embedder.calls == [
        ["see what rain does, then notify them all", "see what rain does", "notify them all"]
    ]


def test_a_tool_that_is_named_comes_first_whatever_it_means() -> None:
    tools = [*MEANT, tool("odd", "umbrella_rain", "money")]

    assert meant("umbrella_rain", index=with_meaning(tools)) == ["odd.umbrella_rain"]


def test_words_count_beside_meaning() -> None:
    tools = [*MEANT, tool("cam", "photo_of_a_wombat", "camera snapshot")]

    assert meant("camera wombat", index=with_meaning(tools)) == ["cam.photo_of_a_wombat"]


def test_meaning_is_searched_in_one_server_alone() -> None:
    assert meant("umbrella", limit=9, server="bank") == ["bank.pay"]


def test_a_tool_without_vector_is_found_by_its_words() -> None:
    tools = [*MEANT, tool("late", "quokka", "a quokka")]
    index = with_meaning(tools, of=MEANT)

    assert meant("quokka", index=index) == ["late.quokka"]
    assert "late.quokka" not in meant("umbrella", limit=99, index=index)


def test_without_any_vector_words_decide_and_nothing_is_embedded() -> None:
    embedder = FakeEmbedder()
    result = with_meaning(TOOLS, of=[]).search("stale issues", limit=9, embed=embedder.embed)

    assert result == ToolIndex(TOOLS).search("stale issues", limit=9)
    assert embedder.calls == []


def test_equals_in_meaning_are_ordered_by_path() -> None:
    assert meant("zebra", limit=3) == ["other.other_0", "other.other_1", "other.other_2"]


def test_vectors_of_other_tools_are_refused() -> None:
    with pytest.raises(ValueError, match="other tools"):
        ToolIndex(TOOLS).with_vectors(ToolVectors(ToolIndex(MEANT).tools, VectorTable()))


@pytest.mark.skipif(not CATALOGUES, reason="The recorded catalogues are not on this machine.")
def test_every_real_tool_is_found_by_its_name_and_by_its_description() -> None:
    recorded = [json.loads(path.read_text()) for path in CATALOGUES]
    tools = [
        tool(catalogue["server"], each["name"], each.get("description") or "")
        for catalogue in recorded
        for each in catalogue["tools"]
    ]
    index = ToolIndex(tools)

    for each in tools:
        assert index.search(each.path, limit=1).hits == (each,)
    described = [each for each in tools if each.listed.description]
    found = [each in index.search(each.listed.description, limit=5).hits for each in described]
    assert sum(found) > 0.95 * len(found)


def judged(*judged_tools: tuple[str, float]) -> list[str]:
    """Return which of these hits are clear; those of `graph` and `notes` are our own."""
    hits = [(tool(*path.split(".")), worth) for path, worth in judged_tools]
    result = SearchResult(
        hits=tuple(hit for hit, _ in hits), worths=tuple(worth for _, worth in hits), unmatched=()
    )
    return [hit.path for hit in result.clear(lambda hit: hit.server in {"graph", "notes"}).hits]


def test_weak_hits_behind_a_clear_one_are_left_out() -> None:
    assert judged(("a.a", 10), ("a.b", 5), ("a.c", 4.9)) == ["a.a", "a.b"]
    assert judged(("a.named", math.inf), ("a.b", 10), ("a.c", 1)) == ["a.named", "a.b"]
    assert judged(("a.a", 0), ("a.b", 0), ("a.c", -1)) == ["a.a", "a.b", "a.c"]
    assert judged() == []


def test_what_is_built_in_comes_behind_a_servers_tool_that_is_worth_as_much() -> None:
    assert judged(("graph.add", 10), ("memory.add", 10)) == ["memory.add", "graph.add"]
    assert judged(("graph.add", 10), ("memory.add", 9)) == ["memory.add", "graph.add"]
    assert judged(("graph.add", 10), ("memory.add", 8)) == ["graph.add", "memory.add"]
    assert judged(("graph.add", math.inf), ("memory.add", 8)) == ["graph.add", "memory.add"]


def test_a_hit_is_worth_what_its_words_are() -> None:
    result = ToolIndex(TOOLS).search("comment on an issue", limit=3)

    assert len(result.worths) == len(result.hits)
    assert list(result.worths) == sorted(result.worths, reverse=True)
    left = result.without(lambda hit: hit == result.hits[0])
    assert (left.hits, left.worths) == (result.hits[1:], result.worths[1:])
