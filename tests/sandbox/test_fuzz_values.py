"""The walk over values, fed with whatever an interpreter could hand us."""

import json
import math
from contextlib import suppress
from datetime import date, timedelta
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolfold.errors import ValueRejected
from toolfold.sandbox.values import ValueBudget, admit, admit_for_display

SOAK = settings(max_examples=20_000, deadline=None)


class Pair(NamedTuple):
    left: Any
    right: Any


class Counted(list[Any]):
    """A list that counts how often somebody looks into it."""

    looks = 0

    def __iter__(self) -> Any:
        Counted.looks += 1
        return super().__iter__()


class GuestObject:
    """What a client makes of an object of a guest's class."""

    def __init__(self, name: object, attributes: object) -> None:
        self.name = name
        self.attributes = attributes


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(2**5000), max_value=2**5000),
    st.floats(),
    st.text(),
    st.text(st.characters(categories=["Cs", "Cc", "L"]), max_size=5),
    st.binary(max_size=10),
    st.just(b"x" * 10_000),
    st.dates(),
    st.just(timedelta(days=10**6)),
    st.decimals(),
    st.just(Decimal("1e999999")),
    st.just(PurePosixPath("/a")),
    st.just(ValueError("x" * 300)),
    st.sampled_from([len, int, object(), ..., NotImplemented, range(10**12), 3j]),
    st.frozensets(st.integers() | st.text(), max_size=5),
)


@st.composite
def graphs(draw: st.DrawFn) -> object:
    """Values that share their parts, hold themselves, and nest deeply."""
    made: list[Any] = [draw(leaves) for _ in range(draw(st.integers(1, 4)))]
    for _ in range(draw(st.integers(0, 25))):
        parts = [draw(st.sampled_from(made)) for _ in range(draw(st.integers(0, 3)))]
        made.append(draw(st.sampled_from([of_list, of_dict, of_tuple, of_object, of_pair]))(parts))
        if isinstance(made[-1], list) and draw(st.booleans()):
            made[-1].append(draw(st.sampled_from(made)))  # perhaps itself
    return made[-1]


def of_list(parts: list[Any]) -> Any:
    return Counted(parts)


def of_tuple(parts: list[Any]) -> Any:
    return tuple(parts)


def of_dict(parts: list[Any]) -> Any:
    keys = ("a", 1, None, True, 1.5, math.nan, (1, "x"), date(2026, 1, 1), "ü" * 20)
    return {keys[place * 4 % len(keys)]: part for place, part in enumerate(parts)}


def of_object(parts: list[Any]) -> Any:
    return GuestObject("N" * 100, {f"n{place}": part for place, part in enumerate(parts)})


def of_pair(parts: list[Any]) -> Any:
    return Pair(parts, parts)


budgets = st.builds(
    ValueBudget,
    nodes=st.integers(1, 200),
    depth=st.integers(1, 20),
    size_bytes=st.integers(0, 2_000),
)


def check(value: object, budget: ValueBudget) -> None:
    for walk in (admit, admit_for_display):
        Counted.looks = 0
        with suppress(ValueRejected):
            assert_fits(walk(value, budget), budget)
        assert Counted.looks <= budget.nodes


def assert_fits(plain: Any, budget: ValueBudget) -> None:
    nodes, depth, size = weight(plain)
    assert nodes <= 2 * budget.nodes  # an object is shown as its name and its attributes
    assert depth <= 2 * budget.depth
    assert size <= budget.size_bytes + 40 * nodes  # numbers as keys become short texts
    assert len(json.dumps(plain, ensure_ascii=False)) <= 2 * budget.size_bytes + 60 * nodes
    json.loads(json.dumps(plain))


def weight(plain: Any) -> tuple[int, int, int]:
    """Return nodes, depth and the bytes of texts; and see that it is nothing but JSON."""
    assert type(plain) in {dict, list, str, int, float, bool, type(None)}
    if isinstance(plain, dict | list):
        inner = plain.values() if isinstance(plain, dict) else plain
        weights = [weight(each) for each in inner]
        keys = sum(size_of(key) for key in plain) if isinstance(plain, dict) else 0
        nodes, depths, sizes = zip(*weights, strict=True) if weights else ((), (), ())
        return 1 + sum(nodes), 1 + max(depths, default=0), keys + sum(sizes)
    assert not isinstance(plain, float) or math.isfinite(plain)
    return 1, 0, size_of(plain) if isinstance(plain, str) else 0


def size_of(text: object) -> int:
    assert type(text) is str
    return len(text.encode("utf-8", "surrogatepass"))


@given(graphs(), budgets)
def test_whatever_comes_is_refused_or_becomes_json_within_its_budget(
    value: object, budget: ValueBudget
) -> None:
    check(value, budget)


@pytest.mark.soak
@SOAK
@given(graphs(), budgets)
def test_whatever_comes_is_refused_or_becomes_json_within_its_budget_for_long(
    value: object, budget: ValueBudget
) -> None:
    check(value, budget)
