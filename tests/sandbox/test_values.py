"""Every value from guest code passes one budgeted walk."""

import json
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold.errors import ValueRejected
from toolfold.sandbox.values import ValueBudget, admit, admit_for_display

AMPLE = ValueBudget(nodes=10_000, depth=64, size_bytes=1_000_000)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**4000), max_value=2**4000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=50,
)


class Point(NamedTuple):
    x: int
    y: int


class Spy(list[object]):
    """A list that counts how often someone looks into it."""

    looks = 0

    def __iter__(self) -> Any:
        Spy.looks += 1
        return super().__iter__()


def doubled(levels: int, make: Callable[[object], object] = lambda inner: [inner, inner]) -> object:
    """A value of few objects and 2 to the power of `levels` visits."""
    value: object = "x"
    for _ in range(levels):
        value = make(value)
    return value


def nested(levels: int) -> object:
    value: object = []
    for _ in range(levels - 1):
        value = [value]
    return value


@given(json_values)
def test_any_json_value_within_budget_comes_back_equal(value: object) -> None:
    assert admit(value, AMPLE) == value
    assert admit_for_display(value, AMPLE) == value


@given(json_values)
def test_what_comes_back_can_be_encoded(value: object) -> None:
    assert json.loads(json.dumps(admit(value, AMPLE))) == value


@given(json_values, st.integers(min_value=1, max_value=30))
def test_a_value_is_taken_exactly_when_its_parts_fit(value: object, nodes: int) -> None:
    budget = ValueBudget(nodes=nodes, depth=64, size_bytes=1_000_000)

    if parts(value) <= nodes:
        assert admit(value, budget) == value
    else:
        with pytest.raises(ValueRejected, match="parts"):
            admit(value, budget)


def parts(value: object) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(parts, value.values()))
    return 1 + sum(map(parts, value)) if isinstance(value, list) else 1


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda inner: [inner, inner], id="lists"),
        pytest.param(lambda inner: {"a": inner, "b": inner}, id="dicts"),
        pytest.param(lambda inner: (inner, [inner]), id="tuples"),
        pytest.param(lambda inner: [{"a": inner}, inner], id="mixed"),
    ],
)
def test_an_alias_bomb_is_refused_after_as_many_visits_as_the_budget_has(
    make: Callable[[object], object],
) -> None:
    bomb = doubled(30, make)

    for walk in (admit, admit_for_display):
        with pytest.raises(ValueRejected, match="10,000 parts"):
            walk(bomb, AMPLE)


def test_the_walk_looks_at_no_more_than_the_budget_allows() -> None:
    Spy.looks = 0
    bomb: object = Spy()
    for _ in range(40):
        bomb = (bomb, bomb)

    with pytest.raises(ValueRejected):
        admit_for_display(bomb, AMPLE)

    assert Spy.looks <= AMPLE.nodes


def test_shared_parts_within_the_budget_are_written_out() -> None:
    assert admit(doubled(2), AMPLE) == [["x", "x"], ["x", "x"]]


def test_a_value_may_be_as_deep_as_the_budget_says_and_no_deeper() -> None:
    assert admit(nested(64), AMPLE) == nested(64)
    with pytest.raises(ValueRejected, match="64 levels"):
        admit(nested(65), AMPLE)


def test_dict_keys_count_towards_the_depth() -> None:
    key: object = ()
    for _ in range(70):
        key = (key,)

    with pytest.raises(ValueRejected, match="levels"):
        admit({key: 1}, AMPLE)


def test_a_value_deeper_than_the_hosts_stack_is_refused() -> None:
    with pytest.raises(ValueRejected, match="levels"):
        admit(nested(100_000), AMPLE)


def test_cycles_are_refused() -> None:
    circle: list[object] = []
    circle.append(circle)
    ring: dict[str, object] = {}
    ring["next"] = {"next": ring}

    for value in (circle, ring):
        with pytest.raises(ValueRejected):
            admit(value, AMPLE)


@pytest.mark.parametrize(
    "value",
    ["x" * 101, ["x" * 60, "x" * 60], {"x" * 101: 1}, "ü" * 51, [10**9] * 13, {"k" * 60: "v" * 60}],
    ids=["text", "texts", "key", "text of two-byte letters", "numbers", "key and value"],
)
def test_text_and_numbers_together_may_not_pass_the_size(value: object) -> None:
    with pytest.raises(ValueRejected, match="100 bytes"):
        admit(value, ValueBudget(nodes=1_000, depth=64, size_bytes=100))


def test_size_is_counted_in_bytes() -> None:
    budget = ValueBudget(nodes=10, depth=2, size_bytes=100)

    assert admit("ü" * 50, budget) == "ü" * 50
    assert admit("x" * 100, budget) == "x" * 100


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ((1, (2, 3)), [1, [2, 3]]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        (datetime(2026, 3, 1, 10, 30, tzinfo=UTC), "2026-03-01T10:30:00+00:00"),
        (date(2026, 3, 1), "2026-03-01"),
        (time(10, 30), "10:30:00"),
        (timedelta(hours=26), "1 day, 2:00:00"),
        (Decimal("10.50"), "10.50"),
        (PurePosixPath("/a/b"), "/a/b"),
        ({2: "a", None: "b", True: "c"}, {"2": "a", "null": "b", "true": "c"}),
        ({(1, 2): "a"}, {"[1, 2]": "a"}),
        ({date(2026, 3, 1): 1}, {"2026-03-01": 1}),
    ],
)
def test_what_json_lacks_becomes_its_nearest_form(value: object, plain: object) -> None:
    assert admit(value, AMPLE) == plain
    assert admit_for_display(value, AMPLE) == plain


def test_a_named_tuple_is_sent_as_a_list_and_shown_with_its_names() -> None:
    assert admit(Point(1, 2), AMPLE) == [1, 2]
    assert admit_for_display(Point(1, 2), AMPLE) == {"x": 1, "y": 2}


def test_a_set_that_cannot_be_sorted_still_becomes_a_list() -> None:
    plain = admit({1, "a", None}, AMPLE)

    assert isinstance(plain, list)
    assert {*map(repr, plain)} == {"1", "'a'", "None"}


@pytest.mark.parametrize(
    ("value", "shown", "words"),
    [
        (b"abc", "<3 bytes>", "decode or base64"),
        (math.nan, "nan", "nan"),
        (math.inf, "inf", "inf"),
        (2**5000, "<huge integer>", "thousand digits"),
        (ValueError("no"), "ValueError: no", "str"),
        (len, "<len>", "not data"),
        (int, "<int>", "not data"),
        (object(), "<object>", "not data"),
    ],
)
def test_what_no_tool_can_take_is_shown_but_never_sent(
    value: object, shown: str, words: str
) -> None:
    assert admit_for_display([value], AMPLE) == [shown]
    with pytest.raises(ValueRejected, match=words):
        admit([value], AMPLE)


def test_a_description_counts_towards_the_size() -> None:
    with pytest.raises(ValueRejected, match="100 bytes"):
        admit_for_display(ValueError("x" * 200), ValueBudget(nodes=10, depth=2, size_bytes=100))


def test_the_largest_integer_that_is_taken_can_be_printed() -> None:
    assert json.loads(json.dumps(admit(2**4096 - 1, AMPLE))) == 2**4096 - 1
