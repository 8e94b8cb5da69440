"""Cutting documents: nothing is lost, order is kept, every chunk is read whole by the embedder."""

from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from toolfold.embedding import TOKENIZER
from toolfold.memory.documents.child import load_measure
from toolfold.memory.documents.chunks import MAX_CHARS, MAX_PIECES, Chunk, Measure, cut
from toolfold.memory.documents.kinds import Block, Blocks
from toolfold.memory.documents.models import Placed
from toolfold.memory.documents.service import STEP, place

ARROW = " › "  # noqa: RUF001


@cache
def measure() -> Measure:
    return load_measure(TOKENIZER)


texts = st.one_of(
    st.text(max_size=300),
    st.lists(st.sampled_from(["word", "Über", "a.b", "Done.", "漢字", "x" * 90, "(so)"])).map(
        " ".join
    ),
    st.text("ab .\n", min_size=500, max_size=6000),
    st.sampled_from(["x" * 9000, "漢" * 900, "." * 5000, "a. " * 900, "ÅΩ" * 800, "a-" * 2000]),
)
blocks = st.lists(
    st.builds(
        lambda text, level, page: (text, level, page),
        texts,
        st.sampled_from([0, 0, 0, 1, 2, 3]),
        st.integers(1, 9),
    ),
    max_size=8,
)


def gathered(given: list[tuple[str, int, int]]) -> list[Block]:
    found = Blocks()
    for text, level, page in given:
        found.add(text, level=level, page=page)
    return found.found


def body(chunk: Chunk) -> str:
    """Return what a chunk says without the line of its headings."""
    return chunk.content.partition("\n")[2] if chunk.headings else chunk.content


@examples(200)
@given(blocks)
def test_no_text_is_lost_and_the_order_is_kept(given: list[tuple[str, int, int]]) -> None:
    made = gathered(given)
    chunks = list(cut(made, measure()))

    said = "".join("".join(body(chunk).split()) for chunk in chunks)
    assert said == "".join("".join(block.text.split()) for block in made if not block.level)


@examples(200)
@given(blocks)
def test_every_chunk_is_within_what_the_embedder_reads(given: list[tuple[str, int, int]]) -> None:
    for chunk in cut(gathered(given), measure()):
        assert 0 < len(chunk.content) <= MAX_CHARS
        assert measure()(chunk.content) <= MAX_PIECES


@examples(200)
@given(blocks)
def test_every_heading_is_said_by_some_chunk(given: list[tuple[str, int, int]]) -> None:
    made = gathered(given)
    said = [heading for chunk in cut(made, measure()) for heading in chunk.headings]

    assert {block.text for block in made if block.level} <= set(said)


def test_a_chunk_never_goes_beyond_the_next_heading() -> None:
    made = [Block("One", 1), Block("First."), Block("Two", 1), Block("Second."), Block("Third.")]

    assert [chunk.content for chunk in cut(made, measure())] == [
        "One\nFirst.",
        "Two\nSecond.\n\nThird.",
    ]


def test_a_chunk_stands_under_all_its_headings() -> None:
    made = [Block("Guide", 1), Block("Setup", 2), Block("Run it.", page=3), Block("End", 1)]

    assert list(cut(made, measure())) == [
        Chunk(f"Guide{ARROW}Setup\nRun it.", ("Guide", "Setup"), 3),
        Chunk("End", ("End",)),
    ]


def test_long_text_is_cut_at_the_ends_of_sentences() -> None:
    sentence = "The committee considered the proposal at length and came to no conclusion at all. "
    chunks = list(cut([Block(sentence * 60)], measure()))

    assert len(chunks) > 2
    assert all(chunk.content.endswith("at all.") for chunk in chunks)
    assert all(measure()(chunk.content) > 0.7 * MAX_PIECES for chunk in chunks[:-1])


def test_a_paragraph_is_not_cut_where_it_can_begin_the_next_chunk() -> None:
    paragraph = "Sentence number one of it stands here. " * 20
    chunks = list(cut([Block(paragraph), Block(paragraph)], measure()))

    assert [chunk.content for chunk in chunks] == [paragraph.strip()] * 2


contents = st.lists(st.sampled_from("abcdefgh"), max_size=12)


@given(contents, contents, contents)
def test_places_ascend_and_what_stays_keeps_its_own(
    first: list[str], second: list[str], third: list[str]
) -> None:
    kept: list[Placed] = []
    for said in (first, second, third):
        positions = place(kept, said)
        assert all(before < after for before, after in pairwise(positions))
        now = [Placed(position, content) for position, content in zip(positions, said, strict=True)]
        if [each.content for each in kept] == said:
            assert now == kept
        kept = now


@pytest.mark.parametrize("times", [10, 60])
def test_there_is_always_a_place_even_where_it_is_crowded(times: int) -> None:
    kept = [Placed(STEP, "first"), Placed(2 * STEP, "last")]
    for number in range(times):
        said = ["first", f"{number}", *(each.content for each in kept[1:])]
        positions = place(kept, said)
        assert positions == sorted(set(positions))
        kept = [Placed(position, text) for position, text in zip(positions, said, strict=True)]


def test_most_chunks_keep_their_places_when_one_is_moved() -> None:
    kept = [Placed(STEP * (number + 1), f"chunk {number}") for number in range(100)]
    said = [each.content for each in kept]
    said.insert(90, said.pop(10))

    placed = [Placed(*each) for each in zip(place(kept, said), said, strict=True)]

    assert len(set(placed) & set(kept)) == 99
