"""Our word pieces are, number for number, those of the library that the model was published for."""

import json
import random
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import ROOT, SHARED_DATA

from toolfold.embedding import MAX_TOKENS, TOKENIZER
from toolfold.wordpiece import WordPieces

pytestmark = pytest.mark.skipif(
    not TOKENIZER.is_file(), reason="the embedding model is not built; run `make setup`"
)
Encode: TypeAlias = Callable[[str], list[int]]

WHOLE = sys.maxsize
# All planes that have characters or may get some, and of private ones a part.
CODES = [
    *range(0xD800),
    *range(0xE000, 0x32000),
    *range(0xE0000, 0xE0200),
    *range(0x10FF00, 0x110000),
]
# These became marks, or ceased to be marks or signs, since the library's tables were made.
MOVED = {0x166D, 0x1734, 0x1885, 0x1886}
HOSTILE = [
    "",
    " \t\r\n\u00a0\u2028\u3000",
    "\0\x01\x0b\x0c\x1c\x85\u200b\u200d\ufeff\ufffd\ue000",
    "[CLS] [SEP] [UNK] [PAD] [MASK] [unused7] ##ing # ## ###",
    "ÀÉÎÕÜ àéîõü Å å ﬁ ß ẞ İ \u0131 Σίσυφος ΑΣ Ǆ ǆ ŉ",
    "≠ ≮ ≯ a≠b \u1fef \u037e \u0387",
    "e\u0301\u0323\u0302 \u0301 a\u20dd\u302e\U00016ff0 Z\u0300\u0301\u0302a\u0303l\u0304g\u0305o",
    "한국어 각 ᄀ ᄀᆨ ㄱ 가나다",
    "お誕生日おめでとう ガギグ ｶﾞ 東京 豈 㐀 𠀀 𪜀 丽",
    "👩‍🚀 👍🏽 🇵🇹 ☃️ 1️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "हिन्दी தமிழ் ไทย עברית العربية ქართული ᲥᲐᲠ \u13a0 ꭰ",
    "x" * 100 + " " + "x" * 101 + " " + "é" * 100 + " " + "각" * 34 + " " + "x" * 100_000,
    "supercalifragilisticexpialidocious antidisestablishmentarianism aquaq" + "\u4e00",
    "a.b,c-d_e/f\\g|h~i`j^k$l+m=n<o>p€q£r§s¶t·u\u2013v—w…x“y”z",
]


@pytest.fixture(scope="module")
def pieces() -> WordPieces:
    return WordPieces.read(TOKENIZER)


@pytest.fixture(scope="module")
def theirs() -> Encode:
    tokenizers = pytest.importorskip("tokenizers", reason="there is nothing to compare with")
    tokenizer = tokenizers.Tokenizer.from_file(str(TOKENIZER))
    tokenizer.encode_special_tokens = True
    tokenizer.no_truncation()
    return lambda text: tokenizer.encode(text).ids


@pytest.fixture(scope="module")
def newer(pieces: WordPieces, theirs: Encode) -> set[int]:
    """Return the characters that the two read differently, alone or within a word."""

    def differing(codes: list[int]) -> Iterator[int]:
        text = " ".join(f"{chr(code)} a{chr(code)}b" for code in codes)
        if theirs(text) == pieces.encode(text, WHOLE):
            return
        if len(codes) == 1:
            yield codes[0]
            return
        middle = len(codes) // 2
        yield from differing(codes[:middle])
        yield from differing(codes[middle:])

    batches = (CODES[start : start + 500] for start in range(0, len(CODES), 500))
    return {code for batch in batches for code in differing(batch)}


def without(text: str, codes: set[int]) -> str:
    return text.translate(dict.fromkeys(codes))


def texts_in_the_repository(every: int) -> Iterable[str]:
    yield (ROOT / "README.md").read_text(encoding="utf-8")
    for folder, suffix in [("docs", "md"), ("src", "py"), ("tests", "py")]:
        for path in sorted((ROOT / folder).rglob(f"*.{suffix}"))[::every]:
            yield path.read_text(encoding="utf-8")[:50_000]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_have_the_same_pieces(pieces: WordPieces, theirs: Encode, text: str) -> None:
    assert pieces.encode(text, WHOLE) == theirs(text)
    assert pieces.count(text) == len(theirs(text)) - 2


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.soak)])
def test_files_of_the_repository_have_the_same_pieces(
    pieces: WordPieces, theirs: Encode, newer: set[int], every: int
) -> None:
    words = 0
    for text in (without(text, newer) for text in texts_in_the_repository(every)):
        found = pieces.encode(text, WHOLE)
        assert found == theirs(text)
        words += len(found)

    assert words > 500_000 / every


@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="the data of benchmarks is not here")
@pytest.mark.parametrize("most", [200_000, pytest.param(WHOLE, marks=pytest.mark.soak)])
def test_texts_of_the_benchmarks_have_the_same_pieces(
    pieces: WordPieces, theirs: Encode, newer: set[int], most: int
) -> None:
    for path in sorted(SHARED_DATA.glob("*.json")):
        text = json.dumps(json.loads(path.read_bytes()), ensure_ascii=False)[:most]
        text = without(text, newer)
        assert pieces.encode(text, WHOLE) == theirs(text), path.name


@pytest.mark.parametrize("times", [500, pytest.param(20_000, marks=pytest.mark.soak)])
def test_random_characters_have_the_same_pieces(
    pieces: WordPieces, theirs: Encode, newer: set[int], times: int
) -> None:
    chance = random.Random(26)
    marks = [code for code in CODES if unicodedata.combining(chr(code))]
    common = [*range(0x20, 0x7F), *range(0xC0, 0x250), *range(0x1100, 0x1200), 0x20, 0x20]
    for _ in range(times):
        pools = chance.choices([CODES, marks, common, range(0xAC00, 0xD7A4)], [2, 1, 4, 1], k=80)
        text = without("".join(chr(chance.choice(pool)) for pool in pools), newer)
        assert pieces.encode(text, WHOLE) == theirs(text), ascii(text)


@given(st.data())
def test_any_text_has_the_same_pieces(
    pieces: WordPieces, theirs: Encode, newer: set[int], data: st.DataObject
) -> None:
    text = without(data.draw(st.text(st.characters(exclude_categories=["Cs"]))), newer)

    assert pieces.encode(text, WHOLE) == theirs(text)


def test_only_marks_and_signs_newer_than_the_librarys_tables_are_read_differently(
    pieces: WordPieces, newer: set[int]
) -> None:
    # The library does not know these as marks or signs: a word with one is unknown to it. To us,
    # whose tables are Python's, the mark falls away, or the sign stands alone. No piece has one.
    chars = {chr(code) for code in newer}
    vocabulary = json.loads(TOKENIZER.read_bytes())["model"]["vocab"]

    assert not chars & set("".join(vocabulary))
    assert {unicodedata.category(char) for char in chars - set(map(chr, MOVED))} <= {
        *("Mn", "Cf", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps")
    }
    older = {code for code in newer if unicodedata.ucd_3_2_0.category(chr(code)) != "Cn"}
    assert older <= MOVED


def test_a_long_text_is_cut_between_its_marks(pieces: WordPieces) -> None:
    whole = pieces.encode("unbelievable " * 300, WHOLE)
    cut = pieces.encode("unbelievable " * 300, MAX_TOKENS)

    assert len(cut) == MAX_TOKENS
    assert cut == [*whole[: MAX_TOKENS - 1], whole[-1]]


def test_lone_surrogates_are_no_part_of_a_word(pieces: WordPieces) -> None:
    assert pieces.encode("wo\ud800rd\udfff", WHOLE) == pieces.encode("word", WHOLE)


def test_characters_that_were_seen_are_not_kept_without_end(pieces: WordPieces) -> None:
    mine = WordPieces(pieces._vocabulary)
    text = "".join(map(chr, CODES))

    assert mine.count(text) == mine.count(text) == pieces.count(text)
    assert len(mine._spelling) <= 65_536
