"""JSON with comments."""

import json

import pytest
from config_home import unhurried
from hypothesis import given
from hypothesis import strategies as st
from support import computing_at_most

from toolfold.config.jsonc import JsonDocument, parse_jsonc, strip_comments
from toolfold.errors import ConfigError
from toolfold.jsontypes import Json

TRICKY_TEXT = st.text(alphabet='/*,"\\]} \na', max_size=12) | st.text(max_size=8)
VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | TRICKY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TRICKY_TEXT, inner, max_size=4),
    max_leaves=12,
)
COMMENTS = st.sampled_from(["", " ", '// , ] } "\n', '/* , ] } " */', "/**/", "/*/ */", "\n\t"])


@unhurried
@given(VALUES)
def test_plain_json_is_never_changed(value: Json) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=2, ensure_ascii=False)):
        assert strip_comments(text) == text


def commented(value: Json, draw: st.DrawFn) -> str:
    """Write a value with comments between all tokens, and a trailing comma where one may be."""
    gap = draw(COMMENTS)
    if isinstance(value, list):
        items = [commented(inner, draw) for inner in value]
        opening, closing = "[", "]"
    elif isinstance(value, dict):
        items = [f"{gap}{json.dumps(k)}{gap}:{commented(v, draw)}" for k, v in value.items()]
        opening, closing = "{", "}"
    else:
        return f"{gap}{json.dumps(value)}{draw(COMMENTS)}"
    last = draw(st.sampled_from(["", ","])) if items else ""
    return f"{gap}{opening}{','.join(items)}{last}{gap}{closing}{gap}"


@unhurried
@given(st.data(), VALUES)
def test_comments_and_trailing_commas_change_no_value(data: st.DataObject, value: Json) -> None:
    text = data.draw(st.composite(lambda draw: commented(value, draw))())

    assert parse_jsonc(text.encode()) == JsonDocument(value=value, duplicates=())


@unhurried
@given(st.text(alphabet='/*",\\[]{}: \n1', max_size=60))
def test_stripping_keeps_every_position(text: str) -> None:
    stripped = strip_comments(text)

    assert len(stripped) == len(text)
    assert all(new in (old, " ") for old, new in zip(text, stripped, strict=True))
    assert stripped.count("\n") == text.count("\n")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_text_is_read_in_every_encoding_that_editors_write(encoding: str) -> None:
    assert parse_jsonc('{"é": 1}'.encode(encoding)).value == {"é": 1}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ('{\n  "a": tru\n}', "line 2, column 8"),
        ('{ // why\n  /* two\n lines */ "a": }', "line 3, column 16"),
        ('{"a": 1 /* never closed }', "line 1, column 9"),
        ('{"a": "never closed }', "line 1, column 7"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ("[1,,]", "line 1, column "),
        ("9" * 5000, "is not valid JSON"),
        ("[" * 200_000, "nested too deeply"),
    ],
)
def test_what_cannot_be_read_says_why_and_where(text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_jsonc(text.encode())

    assert reason in str(caught.value)


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(ConfigError, match="byte 2"):
        parse_jsonc(b'{"\xff": 1}')


def test_a_key_written_twice_is_named_with_its_path_and_the_last_one_counts() -> None:
    document = parse_jsonc(b'{"a": {"x": 1, "y": 2, "x": 3}, "b": [{"c": 1, "c": 2}], "d": 1}')

    assert document.value == {"a": {"x": 3, "y": 2}, "b": [{"c": 2}], "d": 1}
    assert sorted(document.duplicates) == ["a.x", "b.c"]


@pytest.mark.parametrize(
    "text",
    [
        "/* " * 300_000,
        '"' + '\\"' * 400_000,
        "," * 800_000,
        '{"a":0' + ',"a":0' * 100_000 + "}",
        '{"' + "k" * 500_000 + '":{' + ",".join(f'"{n}":{{}}' for n in range(40_000)) + "}}",
        "{" + ",".join(f'"{n % 50_000}":0' for n in range(80_000)) + "}",
    ],
    ids=["comments", "quotes", "commas", "one key", "long path", "many duplicates"],
)
def test_a_hostile_file_cannot_keep_us_busy(text: str) -> None:
    try:
        with computing_at_most(10):
            document = parse_jsonc(text.encode())
    except ConfigError:
        return
    assert len(document.duplicates) <= 20
