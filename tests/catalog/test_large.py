import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold.catalog import large
from toolfold.catalog.large import TOO_LONG, LargeParts, Sizes, Spool
from toolfold.errors import ToolFailed

SIZES = Sizes(result_bytes=1_000, large_result_bytes=1_000_000)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def spooled(message: bytes) -> Spool:
    spool = Spool(None)
    spool.add(message)
    return spool


@given(
    text=st.text(min_size=3),
    structured=VALUES,
    before=VALUES,
    is_ascii=st.booleans(),
    window=st.sampled_from([16, 17, 64, 1 << 20]),
)
def test_what_was_cut_out_of_a_message_is_what_stood_there(
    text: str, structured: Any, before: Any, is_ascii: bool, window: int
) -> None:
    result = {"_meta": before, "content": [{"type": "text", "text": text}]}
    result |= {"structuredContent": {"rows": structured}, "isError": False}
    message = {"jsonrpc": "2.0", "id": 7, "result": result}
    sent = json.dumps(message, ensure_ascii=is_ascii).encode("utf-8", "replace")
    expected = json.loads(sent)["result"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "_PART_BYTES", 1)
        patch.setattr(large, "_WINDOW", window)
        parts = LargeParts(SIZES)
        folded = json.loads(parts.fold(spooled(sent)))["result"]
        spelt = parts.take(folded["content"][0]["text"])
        rows = parts.take(folded["structuredContent"])
        assert spelt is not None
        assert rows is not None
        assert b"".join(spelt.chunks()) == expected["content"][0]["text"].encode("utf-8", "replace")
        assert json.loads(b"".join(rows.chunks())) == expected["structuredContent"]

    assert folded["_meta"] == expected["_meta"]
    assert folded["isError"] is False


@given(content=st.binary(max_size=300))
def test_whatever_a_program_says_something_short_comes_of_it(content: bytes) -> None:
    if content:
        assert len(LargeParts(SIZES).fold(spooled(content))) <= SIZES.message_bytes


def test_a_message_that_stays_too_long_answers_its_request_with_an_error() -> None:
    message = {"jsonrpc": "2.0", "id": "abc", "result": {"tools": ["x" * 100] * 2_000}}

    folded = json.loads(LargeParts(SIZES).fold(spooled(json.dumps(message).encode())))

    assert folded["id"] == "abc"
    assert folded["error"]["message"] == TOO_LONG


def test_a_part_is_handed_out_once_and_to_nobody_who_guesses() -> None:
    text = "x" * 100_000
    message = {"id": 1, "result": {"content": [{"type": "text", "text": text}]}}
    parts = LargeParts(SIZES)
    mark = json.loads(parts.fold(spooled(json.dumps(message).encode())))["result"]["content"][0]

    assert parts.take("0" * 32 + ":0") is None
    assert LargeParts(SIZES).take(mark["text"]) is None
    assert parts.take(mark["text"]) is not None
    with pytest.raises(ToolFailed):
        parts.take(mark["text"])


def test_answers_that_nobody_fetches_do_not_pile_up() -> None:
    message = {"id": 1, "result": {"content": [{"type": "text", "text": "x" * 100_000}]}}
    parts = LargeParts(SIZES)
    for _ in range(50):
        parts.fold(spooled(json.dumps(message).encode()))

    assert len(parts._parts) == 16
