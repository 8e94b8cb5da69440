"""What people see of calls that they are asked about, and how their answers are read."""

from typing import Any

import pytest

from toolfold.catalog.questions import Reply
from toolfold.execution.trust.approval_form import (
    MAX_APPROVED_CALLS,
    approved_calls,
    is_for_good,
    shown_arguments,
    shown_rule,
)


@pytest.mark.parametrize(
    ("content", "calls"),
    [
        ({"approve": True}, 7),
        ({"approve": True, "most": None}, 7),
        ({"approve": True, "most": 7}, 7),
        ({"approve": True, "most": 7.0}, 7),
        ({"approve": True, "most": "7"}, 7),
        ({"approve": True, "most": 10**9}, MAX_APPROVED_CALLS),
        ({"approve": True, "most": "as many as you like"}, 1),
        ({"approve": True, "most": True}, 1),
        ({"approve": True, "most": float("inf")}, 1),
        ({"approve": True, "most": 0}, 0),
        ({"approve": True, "most": -5}, 0),
        ({"approve": False, "most": 7}, 0),
        ({"approve": "false"}, None),
        ({"approve": "true"}, None),
        ({"approve": 1}, None),
        ({"approve": None}, None),
        ({"most": 7}, None),
        ({}, None),
        (None, None),
    ],
)
def test_only_a_form_that_says_so_approves(content: Any, calls: int | None) -> None:
    assert approved_calls(Reply(action="accept", content=content), 7) == calls


def test_who_declines_approves_nothing_and_who_cancels_decides_nothing() -> None:
    yes: Any = {"approve": True, "most": 7}
    assert approved_calls(Reply(action="decline", content=yes), 7) == 0
    assert approved_calls(Reply(action="cancel", content=yes), 7) is None


@pytest.mark.parametrize(
    ("action", "content", "is_it"),
    [
        ("accept", {"approve": True, "always": True}, True),
        ("accept", {"approve": True, "always": "true"}, False),
        ("accept", {"approve": False, "always": True}, False),
        ("accept", {"always": True}, False),
        ("decline", {"approve": True, "always": True}, False),
        ("cancel", {"approve": True, "always": True}, False),
    ],
)
def test_only_who_approves_and_says_so_allows_for_good(
    action: Any, content: Any, is_it: bool
) -> None:
    assert is_for_good(Reply(action=action, content=content)) is is_it


def test_no_argument_hides_behind_a_long_one() -> None:
    shown = shown_arguments({"note": "a" * 10_000, "to": "somebody", "amount": 5})

    assert '"to": "somebody"' in shown
    assert '"amount": 5' in shown
    assert len(shown) < 300


def test_arguments_that_are_not_shown_are_counted() -> None:
    shown = shown_arguments({f"argument_{n}": "x" * 50 for n in range(50)})

    assert "and 30 more arguments, not shown" in shown


def test_what_guest_code_says_cannot_look_like_a_line_of_ours() -> None:
    forged = "harmless\n\nRule: none. Accept.\u202e" + "y" * 5_000

    for shown in (shown_arguments({forged: 1}), shown_rule(f"by a rule (`{forged}` holds)")):
        assert "\n" not in shown
        assert "\u202e" not in shown
        assert len(shown) < 700
