"""What is said of a file that nobody may have read."""

from config_home import unhurried
from hypothesis import given
from hypothesis import strategies as st

from toolfold.errors import shown


@unhurried
@given(st.text(st.characters()))
def test_shown_text_is_printable_and_short(text: str) -> None:
    assert shown(text, max_chars=20).isprintable()
    assert len(shown(text, max_chars=20)) <= 21


@unhurried
@given(st.text(st.characters().filter(str.isprintable), max_size=200))
def test_short_printable_text_is_shown_as_it_is(text: str) -> None:
    assert shown(text) == text


def test_text_that_was_cut_says_so() -> None:
    assert shown("abcdef", max_chars=5) == "abcde…"
    assert shown("abcde", max_chars=5) == "abcde"
    assert shown("\x1b\ud800", max_chars=10) == "\\x1b\\ud800"
