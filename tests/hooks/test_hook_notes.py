"""Which notes are shown, and when a conversation has turned to something else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold.embedding import BuiltinEmbedder
from toolfold.entrypoints.hooks.notes import SESSION_TAG, NoteCandidates, choose, fitted
from toolfold.entrypoints.hooks.topics import Conversations, Subject
from toolfold.memory.models import CompactMemory
from toolfold.memory.ranking.rank import telling_words


def note(name: str, *tags: str) -> CompactMemory:
    return CompactMemory(name, f"says {name}", tags, 0.0, 1.0)


def names(notes: Any) -> str:
    return " ".join(each.hash for each in notes)


def test_each_source_has_its_share_and_what_one_leaves_the_others_get() -> None:
    git = NoteCandidates([note("g1")], share=3)
    important = NoteCandidates([note(f"i{n}") for n in range(5)], share=3)
    recent = NoteCandidates([note("g1"), note("i1"), note("r1"), note("r2"), note("r3")], share=2)

    assert names(choose([git, important, recent], most=8)) == "g1 i0 i1 i2 i3 i4 r1 r2"


def test_records_of_conversations_do_not_crowd_out_the_rest() -> None:
    records = [note(f"s{n}", SESSION_TAG) for n in range(5)]

    assert names(choose([NoteCandidates([*records, note("r")], share=9)], most=8)) == "s0 s1 r"


def test_what_no_longer_holds_is_not_shown() -> None:
    past = note("a1")._replace(superseded="by b2 on 2026-05-01")

    assert names(choose([NoteCandidates([past, note("b2")], share=2)], most=5)) == "b2"


def test_the_same_words_are_not_shown_twice() -> None:
    twin = note("a")._replace(hash="b")

    assert names(choose([NoteCandidates([note("a"), twin], share=2)], most=8)) == "a"


@given(st.lists(st.text(max_size=30), max_size=12), st.integers(0, 200))
def test_what_is_shown_is_within_the_budget_and_as_much_as_fits(
    lines: list[str], budget: int
) -> None:
    text, count = fitted(lines, "\n".join, budget, len)

    assert len(text) <= budget
    assert count == 0 or text == "\n".join(lines[:count])
    assert count == len(lines) or len("\n".join(lines[: count + 1])) > budget


@pytest.fixture(scope="module")
def embedder() -> BuiltinEmbedder:
    return BuiltinEmbedder()


def subject(embedder: BuiltinEmbedder, prompt: str) -> Subject:
    [row] = embedder.embed([prompt])
    return Subject(words=frozenset(telling_words(prompt)), vector=tuple(map(float, row)))


BEGINNING = [
    "The login page redirects in a loop after the session cookie expires. Find out why.",
    "Look at how the session middleware sets the cookie attributes.",
]


@pytest.mark.parametrize(
    ("prompt", "has_turned"),
    [
        ("now run the tests", False),
        ("yes", False),
        ("Does the session cookie also break the login on mobile browsers?", False),
        ("Write a test for the middleware that checks the cookie attributes after login", False),
        ("Write release notes for the new billing export and update the price table", True),
        ("Set up a nightly PostgreSQL backup with a retention of thirty days", True),
    ],
)
def test_a_topic_turns_when_a_prompt_of_some_length_is_about_something_else(
    embedder: BuiltinEmbedder, prompt: str, has_turned: bool
) -> None:
    conversation = Conversations().find("one")

    begun = [conversation.turns(subject(embedder, each)) for each in BEGINNING]

    assert begun == [True, False]
    assert conversation.turns(subject(embedder, prompt)) is has_turned


def test_conversations_are_told_apart_and_the_oldest_are_forgotten() -> None:
    conversations = Conversations()
    conversations.find("first").shown.add("a")
    for n in range(199):
        conversations.find(f"{n}")

    assert conversations.find("first").shown == {"a"}
    for n in range(1_000, 1_200):
        conversations.find(f"{n}")
    assert conversations.find("first").shown == set()


def test_two_hooks_for_one_beginning_are_one_and_a_cleared_one_begins_anew() -> None:
    conversations = Conversations()
    first = conversations.begin("one", "startup", now=100.0)
    assert first is not None
    first.shown.add("a")

    assert conversations.begin("one", "startup", now=101.0) is None
    assert conversations.find("one").shown == {"a"}
    cleared = conversations.begin("one", "clear", now=102.0)
    assert cleared is not None
    assert cleared.shown == set()
