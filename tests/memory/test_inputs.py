"""Odd and hostile values: each is stored, or refused with a clear message and nothing changed."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from toolfold.errors import BadInput
from toolfold.memory.inputs import MAX_CONTENT_BYTES, MAX_TAGS
from toolfold.memory.service import Memory

REFUSED: list[tuple[str, Callable[[Memory], Awaitable[object]], str]] = [
    ("no content", lambda m: m.store(""), "empty"),
    ("white space", lambda m: m.store(" \n\t"), "empty"),
    ("10 MB", lambda m: m.store("x" * 10_000_000), "10,000,000 bytes"),
    ("a byte too much", lambda m: m.store("x" * (MAX_CONTENT_BYTES + 1)), "1,048,577 bytes"),
    ("bytes", lambda m: m.store(b"\x89PNG"), "text, not bytes. Decode"),
    ("binary", lambda m: m.store("\x89PNG\x00\x01"), "binary"),
    ("a number", lambda m: m.store(5), "text, not int"),
    ("nothing", lambda m: m.store(None), "text, not NoneType"),
    ("10,000 tags", lambda m: m.store("x", [f"t{n}" for n in range(10_000)]), "10,000 tags"),
    ("a long tag", lambda m: m.store("x", "t" * 101), "101 characters"),
    ("a tag that is none", lambda m: m.store("x", [1]), "A tag is text"),
    ("tags in a mapping", lambda m: m.store("x", {"a": 1}), "list of texts, not dict"),
    ("an empty type", lambda m: m.store("x", memory_type=" "), "type is empty"),
    ("a long source", lambda m: m.store("x", source="s" * 1001), "1,001 characters"),
    ("metadata as a list", lambda m: m.store("x", metadata=[1]), "not list"),
    ("metadata with a set", lambda m: m.store("x", metadata={"a": {1}}), "must be JSON"),
    ("metadata not a number", lambda m: m.store("x", metadata={"a": float("nan")}), "JSON"),
    ("large metadata", lambda m: m.store("x", metadata={"a": "b" * 70_000}), "70,009 bytes"),
    ("half a place", lambda m: m.store("x", thread="t"), "go together"),
    ("a place between", lambda m: m.store("x", thread="t", position=1.5), "whole number"),
    ("a place too far", lambda m: m.store("x", thread="t", position=2**64), "whole number"),
    ("quality above 1", lambda m: m.store("x", quality=1.1), "from 0 to 1"),
    ("quality not a number", lambda m: m.store("x", quality=float("nan")), "from 0 to 1"),
    ("no time", lambda m: m.store("x", created="soon"), "'soon'"),
    ("endless time", lambda m: m.store("x", created=float("inf")), "inf"),
    ("a link to nothing", lambda m: m.store("x", supersedes="zz"), "not the hash"),
    ("a batch that is a text", lambda m: m.store_batch("abc"), "list of notes"),
    ("a large batch", lambda m: m.store_batch(["x"] * 10_001), "10,001 notes"),
    ("a long query", lambda m: m.search("x" * 10_001), "10,001 characters"),
    ("a query of bytes", lambda m: m.search(b"x"), "text, not bytes"),
    ("a negative limit", lambda m: m.search("x", limit=-1), "from 0 to 1,000, not -1"),
    ("a negative k", lambda m: m.recall("x", k=-5), "`k`"),
    ("a large limit", lambda m: m.search("x", limit=10**9), "from 0 to 1,000"),
    ("a limit in words", lambda m: m.search("x", limit="5"), "whole number"),
    ("a limit that is true", lambda m: m.search("x", limit=True), "not True"),
    ("a negative offset", lambda m: m.list(offset=-1), "offset"),
    ("pages of nothing", lambda m: anext(m.search_iter("x", page_size=0)), "at least 1"),
    ("a score of 2", lambda m: m.search("x", min_score=2), "min_score"),
    ("a strange match", lambda m: m.search_by_tag("x", match="most"), "'any' or by 'all'"),
    ("no tag to search", lambda m: m.search_by_tag(""), "No tag"),
    ("a text of queries", lambda m: m.search_batch("abc"), "list of texts"),
    ("a short hash", lambda m: m.get("abc"), "at least its first 4"),
    ("an empty hash", lambda m: m.delete(""), "too short"),
    ("a hash that is none", lambda m: m.get("hello world"), "hexadecimal"),
    ("a hash as a number", lambda m: m.delete(12345678), "text, not int"),
    ("a wildcard", lambda m: m.delete_batch(["%%%%"]), "hexadecimal"),
    ("a long hash", lambda m: m.purge("a" * 65), "not the hash"),
]


@pytest.mark.parametrize(
    ("call", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
async def test_what_cannot_be_used_is_refused_and_changes_nothing(
    memory: Memory, call: Callable[[Memory], Awaitable[object]], words: str
) -> None:
    await memory.store("what was there")

    with pytest.raises(BadInput) as refused:
        await call(memory)

    assert words in str(refused.value)
    assert len(str(refused.value)) < 400
    assert (await memory.health()).count == 1


STORED: list[tuple[str, str, str]] = [
    ("one letter", "x", "x"),
    ("as much as fits", "y" * MAX_CONTENT_BYTES, "y" * MAX_CONTENT_BYTES),
    ("half a surrogate pair", "a\ud800b", "a\ufffdb"),
    ("both halves", "a\ud83d\ude42b", "a🙂b"),
    ("right to left", "שלום \u202etest\u202c", "שלום \u202etest\u202c"),
    ("combining", "e\u0301 ﷽ \u200b", "e\u0301 ﷽ \u200b"),
    ("control characters", "\x01\x1b[31m\x7f", "\x01\x1b[31m\x7f"),
    ("SQL", "'); DROP TABLE notes; --", "'); DROP TABLE notes; --"),
    ("FTS syntax", 'NEAR("a" OR) AND * ^ :', 'NEAR("a" OR) AND * ^ :'),
    ("spaces around", "  kept as it is \n", "  kept as it is \n"),
    ("special tokens", "[CLS] [SEP] <|endoftext|>", "[CLS] [SEP] <|endoftext|>"),
]


@pytest.mark.parametrize(
    ("given", "kept"), [row[1:] for row in STORED], ids=[row[0] for row in STORED]
)
async def test_what_can_be_stored_comes_back(memory: Memory, given: str, kept: str) -> None:
    name = await memory.store(given)
    await memory.until_ready()

    assert (await memory.get(name)).content == kept
    assert await memory.store(kept) == name
    assert (await memory.search(kept[:1000])).total <= 1
    assert await memory.delete(name)


async def test_odd_tags_and_metadata_come_back(memory: Memory) -> None:
    tags = ("🙂", "a\ufffd", "with space", "UPPER", "%", *(f"t{n}" for n in range(MAX_TAGS - 5)))
    metadata: dict[str, Any] = {"deep": [[["é"]]], "null": None, "half": "\ud800", "nul": "\0"}
    name = await memory.store(
        "x", ["🙂", "a\ud800", " with space ", "", *tags[3:]], metadata=metadata
    )

    note = await memory.get(name)
    assert note.tags == tags
    assert note.metadata == metadata | {"half": "\ufffd"}
    for tag in tags:
        assert (await memory.search_by_tag(tag)).total == 1
    assert (await memory.search_by_tag("upper")).total == 0


@pytest.mark.parametrize("query", ["\0", "\ud800", "' OR 1=1 --", '"', "*", "🙂" * 5000, " "])
async def test_any_query_is_answered(memory: Memory, query: str) -> None:
    await memory.store("something")
    await memory.until_ready()

    assert (await memory.search(query)).total in (0, 1)
    assert (await memory.recall(query)).total in (0, 1)
