"""Counts are those of the published o200k_base vocabulary."""

import gzip
from pathlib import Path

import pytest

from toolfold.errors import StoreError
from toolfold.tokens import VOCABULARY, count_tokens, load_encoding


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("hello world", 2),
        ("antidisestablishmentarianism", 6),
        ("2 + 2 = 4", 7),
        ("お誕生日おめでとう", 8),
        ('{"name":"execute_code","arguments":{"code":"print(1)"}}', 15),
    ],
)
def test_counts_are_those_of_o200k_base(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


def test_special_tokens_in_a_text_count_as_plain_text() -> None:
    assert count_tokens("<|endoftext|>") == 7


def test_a_million_spaces_are_counted_rather_than_crash_the_tokenizer() -> None:
    assert 7_800 < count_tokens(" " * 1_000_000) < 7_900


def test_a_lone_surrogate_is_counted() -> None:
    assert count_tokens("\ud800") > 0


def test_a_missing_vocabulary_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"missing.*fetch_vocabulary\.py"):
        load_encoding(tmp_path / "absent.gz")


def test_a_vocabulary_that_differs_in_one_token_is_refused(tmp_path: Path) -> None:
    published = gzip.decompress(VOCABULARY.read_bytes())
    tampered = tmp_path / "o200k_base.tiktoken.gz"
    tampered.write_bytes(gzip.compress(published.replace(b" 7\n", b" 8\n", 1)))

    with pytest.raises(StoreError, match="not the published one"):
        load_encoding(tampered)


def test_a_damaged_vocabulary_is_refused(tmp_path: Path) -> None:
    torn = tmp_path / "o200k_base.tiktoken.gz"
    torn.write_bytes(VOCABULARY.read_bytes()[:1000])

    with pytest.raises(StoreError, match="Cannot read"):
        load_encoding(torn)
