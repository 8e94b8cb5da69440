"""Any text becomes a query that FTS5 understands, for the words that tell what it is about."""

import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolfold.memory.ranking.rank import STOP_WORDS, is_question, match_expression, telling_words


@pytest.fixture(scope="module")
def notes() -> Iterator[sqlite3.Connection]:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE notes USING fts5(text, tokenize = 'porter unicode61')")
    yield database
    database.close()


def found(notes: sqlite3.Connection, text: str, query: str) -> bool:
    expression = match_expression(query)
    notes.execute("DELETE FROM notes")
    notes.execute("INSERT INTO notes (text) VALUES (?)", (text,))
    rows = notes.execute("SELECT rowid FROM notes WHERE notes MATCH ?", (expression,))
    return expression is not None and bool(rows.fetchall())


def test_stop_words_are_left_out_and_each_word_is_asked_for_once() -> None:
    assert telling_words("When did the Kyoto trip to KYOTO begin?") == ["kyoto", "trip", "begin"]


def test_a_query_of_stop_words_alone_keeps_them() -> None:
    assert telling_words("Who are you?") == ["who", "are", "you"]


def test_short_forms_leave_no_letters_behind() -> None:
    assert telling_words("Ada's brother said we\u2019ll see") == ["ada", "brother", "said", "see"]
    assert telling_words("vitamin D and plan B") == ["vitamin", "d", "plan", "b"]


@pytest.mark.parametrize("query", ["", " ", "?!", '"', "---", "*", "🙂", "\x00", "\ud800"])
def test_a_query_without_words_asks_for_nothing(query: str) -> None:
    assert match_expression(query) is None


@given(st.text() | st.text(st.characters(), min_size=1).map(lambda text: f'NEAR("{text}", 2)'))
@example('"unbalanced')
@example("a AND OR NOT (b")
@example("text: x")
@example("^start * end*")
@example("x NEAR(y z, 5)")
@example("{a b} : c - d + e")
@example("nul\x00byte")
@example("\ud800 lone \udfff surrogates")
@example("___")
@example("\u0301\u0301")
@example("𞤀𞤁 ⅷ ²")
@example("'; DROP TABLE notes; --")
@example("word " * 20_000)
@example(" ".join(f"w{number}" for number in range(20_000)))
def test_no_text_is_a_syntax_error(notes: sqlite3.Connection, query: str) -> None:
    expression = match_expression(query)

    if expression is not None:
        notes.execute("SELECT rowid FROM notes WHERE notes MATCH ?", (expression,)).fetchall()


@given(st.from_regex(r"[a-z]{4,12}", fullmatch=True), st.text(max_size=20), st.text(max_size=20))
def test_a_word_is_found_whatever_stands_around_it(
    notes: sqlite3.Connection, word: str, before: str, after: str
) -> None:
    assert found(notes, f"They spoke of {word} again.", f"{before} {word} {after}"[:60])


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("She painted the harbour", "painting"),
        ("Der Größe nach", "größe"),
        ("Une ÉTÉ à Paris", "e\u0301te\u0301"),
        ("मुझे हिन्दी पसंद है", "हिन्दी"),
        ("Дождь идёт", "дождь".upper()),
        ("the variable max_retry_count", "max_retry_count"),
        ("see user@example.org", "user@example.org"),
    ],
)
def test_words_are_found_in_other_forms_scripts_and_spellings(
    notes: sqlite3.Connection, text: str, query: str
) -> None:
    assert found(notes, text, query)


def test_vowel_signs_do_not_part_a_word_into_letters(notes: sqlite3.Connection) -> None:
    assert telling_words("हिन्दी?") == ["हिन्दी"]
    assert not found(notes, "नदी", "हिन्दी")


def test_a_long_query_is_asked_for_by_its_beginning() -> None:
    words = telling_words(" ".join(f"word{number}" for number in range(1_000)))

    assert words == [f"word{number}" for number in range(64)]


def test_stop_words_are_in_the_form_that_words_have() -> None:
    assert {word for word in STOP_WORDS if telling_words(f"{word} kyoto") != ["kyoto"]} == set()


@pytest.mark.parametrize(
    "text", ["Why?", 'She asked: "Where to?"', "And you? ", "真的吗\uff1f", "*Ok?*"]
)
def test_a_text_that_ends_by_asking_is_a_question(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize("text", ["", "Yes.", "Why? Because.", "?x", "Really?!"])
def test_a_text_that_ends_by_telling_is_none(text: str) -> None:
    assert not is_question(text)
