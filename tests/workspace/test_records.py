import csv
import io
import json
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold.errors import BadInput
from toolfold.workspace import jsonstream
from toolfold.workspace.records import count, kind_of, page, records, shape_of_file, shape_of_value

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)
WINDOWS = st.sampled_from([1, 2, 7, 64, 1 << 18])


def read(content: bytes, name: str = "x.json", at: str | None = None) -> list[Any]:
    return list(records(io.BytesIO(content), name, at))


@given(items=st.lists(VALUES), indent=st.sampled_from([None, 2]), window=WINDOWS)
def test_a_list_of_json_gives_what_the_parser_gives_whatever_the_window(
    items: list[Any], indent: int | None, window: int
) -> None:
    content = json.dumps(items, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    expected = json.loads(content.decode("utf-8", "replace"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonstream, "_CHUNK_BYTES", window)
        assert list(jsonstream.JsonStream(io.BytesIO(content)).list_at([])) == expected


@given(
    before=st.dictionaries(st.text().filter(lambda key: key != "rows"), VALUES, max_size=3),
    items=st.lists(VALUES),
    window=WINDOWS,
)
def test_a_list_in_an_object_is_found_behind_anything(
    before: dict[str, Any], items: list[Any], window: int
) -> None:
    content = json.dumps({**before, "rows": items, "z": 1}).encode()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonstream, "_CHUNK_BYTES", window)
        found = jsonstream.JsonStream(io.BytesIO(content)).list_at(["rows"])
        assert list(found) == items


@given(items=st.lists(VALUES.filter(lambda value: value != ""), min_size=2))
def test_lines_of_json_give_what_the_parser_gives(items: list[Any]) -> None:
    content = "".join(f"{json.dumps(item)}\n" for item in items).encode()

    assert read(content, "x.jsonl") == items


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n"), min_size=1)


@given(
    rows=st.lists(st.tuples(CELLS, CELLS)),
    header=st.lists(CELLS, min_size=2, max_size=2, unique=True),
)
def test_csv_gives_what_the_library_gives(rows: list[tuple[str, str]], header: list[str]) -> None:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows(rows)
    content = text.getvalue().encode()
    expected = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))

    assert read(content, "x.csv") == expected
    assert count(io.BytesIO(content), "x.csv") == len(expected)


@given(content=st.binary(max_size=200), at=st.none() | st.text(max_size=5))
def test_whatever_a_file_holds_is_read_or_refused_in_words(content: bytes, at: str | None) -> None:
    for name in ("x", "x.json", "x.jsonl", "x.csv"):
        with suppress(BadInput):
            assert isinstance(read(content, name, at), list)
        with suppress(BadInput):
            assert shape_of_file(io.BytesIO(content), name)["type"]


@pytest.mark.parametrize(
    ("content", "name", "kind"),
    [
        (b"[1, 2]", "x", "json"),
        (b'\n {"a": 1}', "x", "json"),
        (b'{"a": 1}\n{"a": 2}', "x", "json lines"),
        (b'{"a": 1}\n', "x", "json"),
        (b"a,b\n1,2", "x.CSV", "csv"),
        (b"a,b\n1,2", "x", "text"),
        (b"\x89PNG\0", "x", "binary"),
        (b"", "x", "text"),
    ],
)
def test_a_file_is_known_by_its_beginning(content: bytes, name: str, kind: str) -> None:
    assert kind_of(io.BytesIO(content), name) == kind


@pytest.mark.parametrize(
    ("content", "at", "words"),
    [
        (b'{"rows": [1], "n": 2}', None, "'rows', 'n'"),
        (b'{"rows": [1], "n": 2}', "row", "Its keys: 'rows', 'n'"),
        (b'{"rows": 1}', "rows", "no list"),
        (b"[1, 2", None, "not valid JSON from character 5 on"),
        (b"[1 2]", None, "not valid JSON from character 3 on"),
        (b'{"a" 1}', "b", "not valid JSON from character 5 on"),
        (b"[" * 100_000, None, "nested too deeply"),
        (b'{"a":' * 5_000, None, "nested too deeply"),
        (b'{"a":' * 5_000, "b", "nested too deeply"),
        (b'{"a":' * 5_000, ".".join("a" * 5_000), "nested too deeply"),
        (b'["' + b"x" * 9_000_000, None, "more than 8,388,608"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(content: bytes, at: str | None, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        read(content, "x", at)


@pytest.mark.parametrize("content", [b'{"a":' * 5_000, b'{"b": {"a": ' + b"[" * 5_000])
def test_a_file_that_is_nested_too_deeply_has_no_shape(content: bytes) -> None:
    with pytest.raises(BadInput, match="nested too deeply"):
        shape_of_file(io.BytesIO(content), "x.json")


def test_a_record_that_is_nested_too_deeply_is_counted_and_not_handed_over() -> None:
    lines = b"[1]\n" + b"[" * 300 + b"]" * 300 + b"\n" + b"[[1], [2]]\n" * 200

    assert count(io.BytesIO(lines), "x.jsonl") == 202
    assert page(records(io.BytesIO(lines), "x.jsonl"), 0, 1, max_chars=1000) == [[1]]
    assert len(page(records(io.BytesIO(lines), "x.jsonl"), 2, 300, max_chars=10_000)) == 200
    with pytest.raises(BadInput, match="Record 1 is nested too deeply"):
        page(records(io.BytesIO(lines), "x.jsonl"), 0, 5, max_chars=1000)


def test_of_an_object_with_very_many_keys_only_some_are_held() -> None:
    content = b"{" + b",".join(b'"%d":0' % number for number in range(200_000)) + b"}"

    tracemalloc.start()
    try:
        for at in (None, "missing"):
            with pytest.raises(BadInput, match="'0', '1', '2'"):
                read(content, "x.json", at)
        assert shape_of_file(io.BytesIO(content), "x.json")["length"] == 200_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 4 << 20


def test_csv_rows_that_are_short_or_long_have_every_column() -> None:
    assert read(b"a,b\n1\n\n1,2,3,4\n", "x.csv") == [
        {"a": "1", "b": None},
        {"a": "1", "b": "2", "_rest": ["3", "4"]},
    ]
    assert read(b"", "x.csv") == []


def test_csv_with_more_columns_than_any_table_has_is_refused() -> None:
    with pytest.raises(BadInput, match="16,384 columns"):
        read(b"," * 20_000 + b"\n1\n", "x.csv")


def test_a_page_is_bounded_and_says_how_much_to_ask_for() -> None:
    assert page(iter(range(100)), 10, 3, max_chars=100) == [10, 11, 12]
    assert page(iter(range(100)), 200, 3, max_chars=100) == []
    with pytest.raises(BadInput, match="ask for a `limit` of 5"):
        page(iter("x" * 8 for _ in range(100)), 0, 50, max_chars=100)


@given(value=VALUES)
def test_a_value_and_its_file_have_the_same_shape(value: Any) -> None:
    if isinstance(value, list | dict):
        file = io.BytesIO(json.dumps(value).encode())
        assert shape_of_file(file, "x.json") == shape_of_value(value)


@given(value=VALUES)
def test_a_shape_is_small_whatever_the_value(value: Any) -> None:
    shape = shape_of_value([value] * 50)

    assert len(json.dumps(shape)) < 6_000
    assert shape["length"] == 50
