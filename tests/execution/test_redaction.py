"""Conceal large texts piece by piece: as the whole would be, and never a half."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from toolfold.errors import BadInput
from toolfold.execution.trust.redaction import MAX_STREAM_BYTES, redact_stream
from toolfold.privacy.fields import FieldRule, FieldRules
from toolfold.privacy.vault import Vault

ROWS = [
    {"id": n, "name": f"Person{n} Of{n}", "email": f"p{n}@example.org", "note": "né [EMAIL_1] é"}
    for n in range(1_000)
]
KEY = (
    "-----BEGIN PRIVATE KEY-----\n"
    + "MIIEvQIBADANBgkqhkiG9w0BAQ\n" * 20
    + "-----END PRIVATE KEY-----"
)


def concealed(text: str, *, piece: int = 1_000, rules: FieldRules | None = None) -> str:
    content = text.encode()
    chunks = [content[n : n + piece] for n in range(0, len(content), piece)]
    return b"".join(redact_stream(lambda: chunks, partial(Vault().conceal, fields=rules))).decode()


@pytest.mark.parametrize("piece", [7, 1_000, 10_000_000])
@pytest.mark.parametrize("value", [ROWS, {"data": {"rows": ROWS, "empty": [], "none": {}}}, [], {}])
def test_json_in_pieces_is_what_the_whole_would_be(value: Any, piece: int) -> None:
    assert json.loads(concealed(json.dumps(value), piece=piece)) == Vault().conceal(value)


def test_rules_by_path_fit_within_a_large_object() -> None:
    rules = FieldRules([FieldRule("$.data.rows[].id", "ROW")])
    value = {"data": {"rows": [{"id": "a-1"}], "others": [{"id": "a-2"}]}}

    found = json.loads(concealed(json.dumps(value), rules=rules))

    assert found == {"data": {"rows": [{"id": "[ROW_1]"}], "others": [{"id": "a-2"}]}}


def test_a_name_beside_nothing_else_that_is_known_counts_as_a_persons() -> None:
    assert json.loads(concealed('{"name": "Ada King", "rows": []}'))["name"] == "[NAME_1]"


def test_lines_of_json_among_others_are_concealed_by_their_fields() -> None:
    text = 'found:\n{"customer": {"name": "Ada King"}}\r\n[1, 2]\n{broken\nAda King again'

    assert concealed(text) == (
        'found:\n{"customer": {"name": "[NAME_1]"}}\n[1, 2]\n{broken\n[NAME_1] again'
    )


def test_a_log_that_begins_with_a_bracket_is_a_text() -> None:
    text = "[2026-01-02 10:00] mail to ada@example.org\n" * 3

    assert concealed(text) == "[2026-01-02 10:00] mail to [EMAIL_1]\n" * 3


def test_json_that_breaks_off_is_refused_because_fields_are_lost() -> None:
    with pytest.raises(BadInput, match="begins as JSON"):
        concealed(json.dumps(ROWS)[:-20])


def test_a_line_that_would_have_to_be_cut_is_refused() -> None:
    with pytest.raises(BadInput, match="a line of more than"):
        concealed("x" * 2_000_000)


@pytest.mark.parametrize("before", [0, 524_000, 524_288, 524_500])
def test_a_key_of_many_lines_is_never_cut_in_two(before: int) -> None:
    filler = ("a" * 99 + "\n") * (before // 100) + "b" * (before % 100) + "\n"

    text = concealed(filler + KEY + "\n" + filler)

    assert "MIIE" not in text
    assert text.count("[PRIVATE_KEY_1]") == 1


@pytest.mark.parametrize(
    ("form", "size_bytes"),
    [
        ("list", 1_500_000),
        pytest.param("list", 100_000_000, marks=pytest.mark.soak),
        pytest.param("lines", 100_000_000, marks=pytest.mark.soak),
    ],
)
def test_what_is_concealed_is_never_held_whole(form: str, size_bytes: int) -> None:
    assert size_bytes <= MAX_STREAM_BYTES
    begin, between, end = {"list": ("[", ", ", "]"), "lines": ("", "\n", "")}[form]
    note = "a line of a report that says nothing of anybody, and so stays as it is"
    read = 0

    def chunks() -> Iterator[bytes]:
        nonlocal read
        read = 0
        yield begin.encode()
        while read < size_bytes:
            row = json.dumps({"id": read, "email": f"p{read % 997}@example.org", "note": note})
            chunk = ((between if read else "") + row).encode()
            read += len(chunk)
            yield chunk
        yield end.encode()

    written = held = 0
    for piece in redact_stream(chunks, Vault().conceal):
        held = max(held, read - written)
        written += len(piece)

    assert written > size_bytes * 0.8
    # What placeholders save of the length is not held.
    assert held - (read - written) < 1_200_000
