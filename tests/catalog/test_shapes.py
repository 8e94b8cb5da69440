import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold.catalog.observed_shapes import (
    Shape,
    from_json,
    merge,
    merged,
    render,
    shape_of,
    to_json,
)

values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("results", "line"),
    [
        ([[{"id": 1, "title": "a"}]], "list[{id: int, title: str}]"),
        ([{"id": 1, "body": None}, {"id": 2, "body": "x"}], "{id: int, body: str | None}"),
        ([{"id": 1}, {"id": 2, "extra": 1.5}], "{id: int, extra?: float}"),
        ([["a"], []], "list[str]"),
        ([[]], "list[Any]"),
        ([{"ada@example.org": 1, "b@example.org": 2}], "dict[str, int]"),
        ([{f"k{i}": i for i in range(100)}], "dict[str, int]"),
        ([{"a": 1}, {"a b": 2}], "dict[str, int]"),
        (["text", 1], "int | str"),
    ],
)
def test_a_shape_is_what_the_results_have_in_common(results: list[Any], line: str) -> None:
    shape = merged([shape_of(result) for result in results])

    assert shape is not None
    assert render(shape) == line


def test_keys_that_are_data_are_never_kept() -> None:
    shape = shape_of({"user@example.org": {"balance": 5}})

    assert "example.org" not in json.dumps(to_json(shape))


@given(st.lists(values, min_size=1, max_size=4))
def test_merging_is_stable_and_survives_the_disk(results: list[Any]) -> None:
    shape = merged([shape_of(result) for result in results])

    assert shape is not None
    for result in results:
        assert merge(shape, shape_of(result)).kinds == shape.kinds
    assert from_json(json.loads(json.dumps(to_json(shape)))) == shape


@given(values, values)
def test_the_order_of_two_results_does_not_matter(first: Any, second: Any) -> None:
    a, b = shape_of(first), shape_of(second)

    assert merge(a, b) == merge(b, a)


def test_a_huge_result_has_a_small_shape() -> None:
    nested: Any = 0
    for _ in range(50):
        nested = {"next": nested, "list": list(range(1000))}

    assert len(json.dumps(to_json(shape_of(nested)))) < 2_000
    assert shape_of(nested) != Shape()
