"""JSON that stands in strings: a file that a tool returned as a text."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold.jsontypes import Json
from toolfold.privacy.fields import FieldRule, FieldRules
from toolfold.privacy.vault import Vault

HOPPER = '{"first_name": "Grace", "last_name": "Hopper"}'


@pytest.mark.parametrize(
    "text",
    [
        HOPPER,
        f"[{HOPPER}]",
        json.dumps(json.loads(HOPPER), indent=2),
        f"The file is:\n{json.dumps(json.loads(HOPPER), indent=2)}\nThat was it.",
        f'{{"id": 1}}\n{HOPPER}\n{{"id": 2}}',
        json.dumps({"answer": HOPPER}),
        json.dumps({"answer": json.dumps({"inner": HOPPER})}),
        r'{"first_name": "Gr\u0061ce", "last_name": "Hopper"}',
        '{"first_name": "Grace", "first_name": "G", "last_name": "Hopper"}',
        f"[1,\n[2,\n{HOPPER}\nnever closed",
    ],
    ids=[
        "object",
        "list",
        "indented",
        "amid text",
        "lines",
        "twice",
        "thrice",
        "escaped",
        "doubled",
        "broken",
    ],
)
def test_names_are_found_in_json_that_is_a_string(text: str) -> None:
    vault = Vault()

    concealed = vault.conceal({"content": text, "more": [text]})

    assert "Hopper" not in json.dumps(concealed)
    assert "Grace" not in json.dumps(concealed)
    assert "Gr\\" not in str(concealed)
    assert vault.reveal(concealed).value == {"content": text, "more": [text]}


def test_what_is_not_personal_stays_to_the_byte() -> None:
    text = '{ "id":7,\t"first_name" : "Grace",\n "size": 1e3, "title": "a.txt" }'

    concealed = Vault().conceal({"content": text})

    assert concealed == {"content": text.replace("Grace", "[NAME_1]")}


def test_numbers_become_strings_so_that_the_text_stays_json() -> None:
    text = '{"customer": {"zip": 8173, "size": 8173}, "phone": 493055501771}'

    concealed = Vault().conceal([text])

    assert isinstance(concealed, list)
    found = json.loads(str(concealed[0]))
    assert found["customer"] == {"zip": "[POSTAL_CODE_1]", "size": 8173}
    assert found["phone"].startswith("[PHONE_")


def test_rules_of_the_user_hold_in_embedded_json() -> None:
    rules = FieldRules([FieldRule("order.reference", "ORDER"), FieldRule("first_name", None)])
    text = '{"order": {"reference": "A-1"}, "first_name": "Grace"}'

    concealed = Vault().conceal({"content": text}, fields=rules)

    assert concealed == {"content": '{"order": {"reference": "[ORDER_1]"}, "first_name": "Grace"}'}


def test_text_that_only_begins_like_json_costs_no_square_of_time() -> None:
    text = "[1,\n" * 150 + "[2,\n1, " * 60_000

    began = time.process_time()
    Vault().conceal({"content": text})

    assert time.process_time() - began < 10


keys = st.sampled_from(["first_name", "zip", "note", "phone", "x"])
scalars = st.one_of(st.none(), st.booleans(), st.text(max_size=8), st.just("Grace"))
values = st.recursive(
    scalars, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner))
)


@given(values, st.booleans())
def test_what_was_concealed_in_json_comes_back_as_it_was(value: Json, is_ascii: bool) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii)
    vault = Vault()

    assert vault.reveal(vault.conceal({"content": text})).value == {"content": text}
