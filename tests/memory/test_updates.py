"""Memory follows what changes: by what is said, by what is found, and back."""

import sys

import pytest
from fakes import FakeEmbedder
from support import ROOT

from toolfold.memory.service import Memory
from toolfold.memory.statements import asks_about_then, read_statement, supersedes

sys.path.append(str(ROOT / "bench"))

from supersession import measure

JANUARY, MARCH, MAY = (f"2026-{month}-10" for month in ("01", "03", "05"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The API listens on port 8080.", "The API now listens on port 9090"),
        ("Ada lives in Oslo.", "Ada moved to Bergen."),
        ("The deadline of the launch is May 3.", "The launch deadline was pushed to June 1"),
        ("The team lead is Ada Byron.", "Ben replaced Ada Byron as team lead."),
        ("deploy port: 80", "deploy port: 443"),
        ("user: My rent is 900 euros.", "user: my rent went up to 950 euros."),
        ("Ivo's usual drink is tea.", "Ivo switched from tea to coffee."),
    ],
)
def test_a_later_statement_of_the_same_supersedes(old: str, new: str) -> None:
    older, newer = read_statement(old), read_statement(new)

    assert older is not None
    assert newer is not None
    assert supersedes(newer, older)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The API listens on port 8080.", "The API also listens on port 9090."),
        ("The API listens on port 8080.", "The mailer listens on port 9090."),
        ("The API listens on port 8080.", "We should have the API listen on port 9090."),
        ("The deadline is May 3.", "I think the deadline is June 1."),
        ("The deadline is May 3.", "Is the deadline now June 1?"),
        ("Ada's brother is Tom.", "Ada's brother is Max."),
        ("Ada's sister's city is Oslo.", "Ada switched from Oslo to Bergen."),
        ("The launch date is May 3.", "The launch date is May 3 at noon."),
        ("The build is slow.", "The build is green."),
        ("The standup is at 9:30.", "The standup is at the harbour."),
        ("Ben: my city is Oslo.", "Ada: my city is Bergen."),
        ("- number of outcomes: 3", "- number of outcomes: 4"),
        ("The API moved from Azure to Render.", "The API moved from Fly to Heroku."),
    ],
)
def test_what_only_looks_like_an_update_supersedes_nothing(old: str, new: str) -> None:
    older, newer = read_statement(old), read_statement(new)

    assert older is None or newer is None or not supersedes(newer, older)


def test_questions_about_then_are_told_from_those_about_now() -> None:
    assert asks_about_then("Where did Ada live before the move?")
    assert asks_about_then("what was the original port")
    assert not asks_about_then("How old is Ada?")
    assert not asks_about_then("Where does Ada live?")


async def test_what_holds_comes_first_and_what_held_is_found(memory: Memory) -> None:
    old = await memory.store("Ada lives in Oslo.", created=JANUARY)
    new = await memory.store("Ada moved to Bergen.", created=MAY)

    now = await memory.search("Where does Ada live?")
    assert [(each.hash, each.superseded) for each in now.memories] == [
        (new, ""),
        (old, f"by {new} on {MAY}"),
    ]
    for question in ("Where did Ada live before?", "Where did Ada live in March 2026?"):
        assert (await memory.search(question)).memories[0].hash == old
        assert (await memory.recall(question)).memories[0].hash == old
    explained = await memory.search("Where does Ada live?", explain=True)
    assert "validity" in repr(explained)


async def test_a_filter_that_leaves_the_present_out_shows_what_held(memory: Memory) -> None:
    await memory.store("Ada lives in Oslo.", created=JANUARY)
    await memory.store("Ada moved to Bergen.", created=MAY)
    await memory.store("Ada likes the harbour.", created=JANUARY)

    found = await memory.search("Where does Ada live?", before=MARCH)

    assert found.memories[0].preview == "Ada lives in Oslo."


async def test_the_later_supersedes_whichever_was_stored_first(memory: Memory) -> None:
    new = await memory.store("Ada moved to Bergen.", created=MAY)
    old = await memory.store("Ada lives in Oslo.", created=JANUARY)

    assert (await memory.get(old)).superseded_by == (await memory.get(new)).hash


async def test_reinstated_notes_are_not_found_to_be_superseded_again(memory: Memory) -> None:
    old = await memory.store("Ada lives in Oslo.", created=JANUARY)
    new = await memory.store("Ada moved to Bergen.", created=MAY)

    assert await memory.reinstate(old)
    await memory.store("Ada moved to Bergen.", "again", created=MAY)
    assert (await memory.get(old)).until is None
    assert await memory.supersede(old, new)
    assert (await memory.get(old)).until is not None


async def test_what_is_told_again_holds_again(memory: Memory) -> None:
    old = await memory.store("Ada lives in Oslo.", created=JANUARY)
    new = await memory.store("Ada lives in Bergen.", created=MARCH)

    assert await memory.store("Ada lives in Oslo.", created=MAY) == old

    assert (await memory.get(old)).until is None
    assert (await memory.get(new)).superseded_by == (await memory.get(old)).hash


async def test_the_labelled_set_in_small(embedder: FakeEmbedder) -> None:
    result = await measure(40, 40, embedder)

    assert result.false < 0.01
    assert result.updates_found >= 0.85
    assert result.past_found >= 0.85
