import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold.catalog import jsonspans, large
from toolfold.catalog.large import TOO_LONG, LargeParts, MessageSizes, Spool
from toolfold.errors import ToolFailed

SIZES = MessageSizes(result_bytes=1_000, large_result_bytes=1_000_000)
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


BLOCK = b'{"type":"text","text":"' + b"x" * 70_000 + b'"}'


@pytest.mark.parametrize(
    "result",
    [
        b'{"content":[' + b"1," * 200_000 + b"1]}",
        b'{"content":[' + b"{}," * 200_000 + b"{}]}",
        b'{"content":[{' + b'"a":1,' * 200_000 + b'"a":1}]}',
        b'{"structuredContent":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"structuredContent":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
    ],
    ids=["items", "blocks", "fields", "lists", "objects"],
)
def test_a_message_of_more_parts_than_anybody_means_is_refused_where_it_is_found(
    result: bytes,
) -> None:
    folded = LargeParts(SIZES).fold(spooled(b'{"jsonrpc":"2.0","id":5,"result":' + result + b"}"))

    assert json.loads(folded)["id"] == 5
    assert json.loads(folded)["error"]["message"] == TOO_LONG


def test_a_value_that_takes_too_many_steps_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonspans, "_MAX_STEPS", 1_000)
    nested = b"[[[[[[]]]]]]"
    few, many = (b"[" + b",".join([nested] * count) + b"]" for count in (10, 1_000))

    for rows, is_refused in ((few, False), (many, True)):
        message = b'{"id":5,"result":{"structuredContent":' + rows + b"}}"
        assert ("error" in json.loads(LargeParts(SIZES).fold(spooled(message)))) is is_refused


def test_the_parts_of_one_message_are_kept_together_however_many() -> None:
    parts = LargeParts(SIZES)
    message = b'{"id":1,"result":{"content":[' + b",".join([BLOCK] * 200) + b"]}}"
    content = json.loads(parts.fold(spooled(message)))["result"]["content"]

    for _ in range(15):
        parts.fold(spooled(message))
    assert all(parts.take(block["text"]) is not None for block in content[:100])
    parts.fold(spooled(message))
    with pytest.raises(ToolFailed):
        parts.take(content[100]["text"])


def test_spaces_of_any_length_stand_between_parts() -> None:
    gap = b" " * ((1 << 20) * 2 + 5)
    message = b'{"id":1,' + gap + b'"result":{"content":[' + gap + BLOCK + gap + b"]" + gap + b"}}"
    parts = LargeParts(SIZES)

    text = parts.fold(spooled(message))

    assert json.loads(text)["error"]["message"] == TOO_LONG
    roomy = LargeParts(MessageSizes(result_bytes=5_000_000, large_result_bytes=1))
    block = json.loads(roomy.fold(spooled(message)))["result"]["content"][0]
    assert roomy.take(block["text"]) is not None
