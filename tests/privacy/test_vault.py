import json
import re
from collections.abc import Iterator
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from toolfold.errors import BadInput, StoreError
from toolfold.jsontypes import Json
from toolfold.privacy import placeholder_table, reveal
from toolfold.privacy.detect import Detectors
from toolfold.privacy.detectors.custom import CustomDetector
from toolfold.privacy.fields import FieldRule, FieldRules
from toolfold.privacy.placeholder_table import can_be_known
from toolfold.privacy.vault import Vault

PERSONAL = [
    *("ada@example.org", "Ada@Example.org", "+44 7700 900123", "4111 1111 1111 1111", "467 3395"),
    *("GB82WEST12345698765432", "078-05-1120", "203.0.113.7", "https://u:p4ss@example.org/x"),
    *("Ada King", "ADA  KING", "Ada", "ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2"),
]
ALIKE = ["[EMAIL_1]", "[email_1]", "[NAME_2]", "[PHONE_1.2]", "[LITERAL_1]", "[EMAIL_", "_1]", "[["]
GLUE = ["", " ", ", ", "\n", "x", "1", "]", "[", "call ", "phone: ", "."]
KEYS = ["name", "email", "phone", "first_name", "id", "note", "user", "address", "street", "ssn"]

texts = st.lists(
    st.one_of(st.sampled_from(PERSONAL + ALIKE + GLUE), st.text(max_size=8)), max_size=6
).map("".join)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([4111111111111111, 447700900123, 447700900123.0, 10**300]),
    st.floats(allow_nan=False),
    texts,
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(KEYS), texts), inner, max_size=5),
    ),
    max_leaves=20,
)


@examples(400)
@given(st.lists(values, min_size=1, max_size=3))
def test_what_was_concealed_is_revealed_exactly(answers: list[Json]) -> None:
    vault = Vault()
    concealed = [vault.conceal(answer) for answer in answers]
    revealed = [vault.reveal(each) for each in concealed]

    assert [json.dumps(each.value) for each in revealed] == [json.dumps(each) for each in answers]
    assert all(each.unknown == each.refused == () for each in revealed)


@examples(400)
@given(values)
def test_no_concealed_value_is_left_anywhere(answer: Json) -> None:
    vault = Vault()
    concealed = vault.conceal(answer)

    left = [re.sub(r"\[[A-Z_]+_[0-9.]+\]", "\0", text) for text in strings(concealed)]
    for hidden in concealed_values(vault):
        if can_be_known(hidden):
            whole = re.compile(rf"(?<!\w){re.escape(hidden)}(?!\w)")
            assert not any(whole.search(text) for text in left), (hidden, concealed)


@examples(200)
@given(values)
def test_concealing_again_changes_nothing_that_guest_code_compares(answer: Json) -> None:
    vault = Vault()

    assert vault.conceal(answer) == vault.conceal(answer)


@given(st.text(), st.text())
def test_a_text_without_anything_personal_is_left_as_it_is(before: str, after: str) -> None:
    text = re.sub(r"[0-9@:=\[]|BEGIN", "", f"{before} and {after}")

    assert Vault().conceal_text(text) == text


def strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from strings(each)


def concealed_values(vault: Vault) -> list[str]:
    values = vault._table._values
    return [v for p, v in values.items() if isinstance(v, str) and p.kind != "LITERAL"]


ROWS: Json = [
    {"name": "Ada King", "email": "ada@example.org", "phone": 442079460958},
    {"name": "Bob Stone", "email": "bob@example.org", "phone": 442079460959},
    {"name": "Ada King", "email": "ADA@example.org", "phone": 442079460958},
]


def test_equal_values_get_equal_placeholders_and_other_spellings_are_told_apart() -> None:
    assert Vault().conceal(ROWS) == [
        {"name": "[NAME_1]", "email": "[EMAIL_1]", "phone": "[PHONE_1]"},
        {"name": "[NAME_2]", "email": "[EMAIL_2]", "phone": "[PHONE_2]"},
        {"name": "[NAME_1]", "email": "[EMAIL_1.2]", "phone": "[PHONE_1]"},
    ]


def test_placeholders_survive_what_programs_do_with_texts() -> None:
    vault = Vault()
    text = vault.conceal_text("From: ada@example.org, to: bob@example.org; done")
    first, second = re.findall(r"\[.*?\]", text)
    made: Json = {
        "sliced": text[6:15],
        "joined": ";".join([second, first]),
        "lowered": first.lower(),
        "formatted": f"<{first}>",
        first: [second],
    }

    assert vault.reveal(made).value == {
        "sliced": "ada@example.org",
        "joined": "bob@example.org;ada@example.org",
        "lowered": "ada@example.org",
        "formatted": "<ada@example.org>",
        "ada@example.org": ["bob@example.org"],
    }


def test_a_number_comes_back_a_number_where_it_stands_alone() -> None:
    vault = Vault()
    vault.conceal(ROWS)

    assert vault.reveal(["[PHONE_1]", "tel [PHONE_1]", {"[PHONE_1]": 1}]).value == [
        442079460958,
        "tel 442079460958",
        {"442079460958": 1},
    ]


def test_a_name_that_came_by_a_field_is_found_in_texts_from_then_on() -> None:
    vault = Vault()
    vault.conceal(ROWS)

    assert vault.conceal_text("Dear Ada King, BOB STONE and Ada Kingston") == (
        "Dear [NAME_1], [NAME_2.2] and Ada Kingston"
    )


@pytest.mark.parametrize(
    "text",
    [
        r"Dear\nAda King",
        "?q=Ada%20King&x=1",
        "Ada_King.pdf",
        "report_Ada King_2",
        r"C:\Users\ninaking77",
    ],
)
def test_a_known_value_is_found_behind_escapes_and_beside_underscores(text: str) -> None:
    vault = Vault()
    vault.conceal({"first_name": "ninaking77", "full_name": "Ada King"})

    concealed = vault.conceal(text)

    assert "king" not in str(concealed).lower()
    assert vault.reveal(concealed).value == text


@pytest.mark.parametrize("short", ["Voß", "İz", "\u0131b"])
@pytest.mark.parametrize("around", ["for {}!", r"\n{}", "_{}_"])
def test_a_short_value_that_was_sent_is_found_in_the_answer_whatever_its_letters(
    short: str, around: str
) -> None:
    vault = Vault()
    sent = vault.reveal(vault.conceal({"first_name": short}))

    answer = vault.conceal(around.format(short), again=sent.unfindable)

    assert answer == around.format("[NAME_1]")


def test_a_number_is_found_where_it_is_a_text_and_the_other_way_round() -> None:
    vault = Vault()

    row: Json = {"phone": 4930123456, "a": "4930123456", "tel": "4930654321", "b": 4930654321}

    concealed = vault.conceal(row)

    assert "4930" not in json.dumps(concealed)
    assert vault.reveal(concealed).value == row


def test_a_value_is_found_before_the_place_that_gave_it_away_too() -> None:
    assert Vault().conceal(
        ["467 3395", "phone 467 3395", 442079460958, {"phone": 442079460958}]
    ) == [
        "[PHONE_1]",
        "phone [PHONE_1]",
        "[PHONE_2]",
        {"phone": "[PHONE_2]"},
    ]


def test_what_may_not_go_there_is_refused_and_what_is_not_known_is_reported() -> None:
    vault = Vault()
    vault.conceal(ROWS)
    revealed = vault.reveal(
        {"to": "[EMAIL_1]", "body": "[NAME_1] [PHONE_9] [NOTE_1]"}, allowed_kinds={"EMAIL"}
    )

    assert revealed.value == {"to": "ada@example.org", "body": "[NAME_1] [PHONE_9] [NOTE_1]"}
    assert revealed.revealed == {"EMAIL": 1}
    assert revealed.refused == ("[NAME_1]",)
    assert revealed.unknown == ("[PHONE_9]",)


def test_text_that_looks_like_a_placeholder_goes_to_everybody_as_it_was() -> None:
    vault = Vault()
    concealed = vault.conceal(["ada@example.org", "see [EMAIL_1] and [email_1.2]"])

    assert concealed == ["[EMAIL_1]", "see [LITERAL_1] and [LITERAL_2]"]
    assert vault.reveal(concealed, allowed_kinds=()).value == [
        "[EMAIL_1]",
        "see [EMAIL_1] and [email_1.2]",
    ]


def test_personal_data_inside_a_look_alike_is_not_revealed_to_everybody() -> None:
    vault = Vault(detectors=Detectors([CustomDetector("STAFF", r"EMAIL_\d")]))
    concealed = vault.conceal("[EMAIL_1]")

    assert concealed == "[[STAFF_1]]"
    assert vault.reveal(concealed, allowed_kinds=()).refused == ("[STAFF_1]",)
    assert vault.reveal(concealed).value == "[EMAIL_1]"


def test_a_revealed_value_is_not_searched_for_placeholders_again() -> None:
    vault = Vault()
    vault.conceal("ada@example.org")
    concealed = vault.conceal({"first_name": "[EMAIL_1]"})

    assert vault.reveal(concealed, allowed_kinds={"NAME"}).value == {"first_name": "[EMAIL_1]"}


def test_two_keys_that_become_one_are_refused() -> None:
    vault = Vault()
    vault.conceal("ada@example.org")

    with pytest.raises(BadInput, match="Two keys"):
        vault.reveal({"[EMAIL_1]": 1, "ada@example.org": 2})


def test_a_few_placeholders_cannot_become_gigabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reveal, "MAX_REVEALED_CHARS", 10_000)
    mine = Vault()
    mine.conceal({"street": "1 Main Street" * 100})

    with pytest.raises(BadInput, match="characters"):
        mine.reveal("[ADDRESS_1] " * 8)


def test_a_value_that_is_nested_too_deeply_is_refused() -> None:
    deep: Json = "ada@example.org"
    for _ in range(300):
        deep = [deep]

    with pytest.raises(BadInput, match="nested"):
        Vault().conceal(deep)
    with pytest.raises(BadInput, match="nested"):
        Vault().reveal(deep)


def test_a_full_vault_gives_up_the_older_half_and_never_gives_a_placeholder_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(placeholder_table, "MAX_VALUES", 4)
    mine = Vault()
    given: dict[str, str] = {}
    for number in range(40):
        address = f"ada{number % 13}@example.org"
        placeholder = str(mine.conceal(address))
        assert given.setdefault(placeholder, address) == address
        assert mine.reveal(placeholder).value == address

    assert len(mine) <= 4
    assert mine.reveal("[EMAIL_1]").unknown == ("[EMAIL_1]",)
    assert mine.conceal("ada0@example.org") == mine.conceal("ada0@example.org")


def test_more_values_at_once_than_a_vault_holds_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(placeholder_table, "MAX_VALUES", 4)
    mine = Vault()
    mine.conceal(["ada@example.org", "bob@example.org"])

    with pytest.raises(StoreError, match="more than a vault conceals"):
        mine.conceal([f"cyd{number}@example.org" for number in range(5)])


@pytest.mark.parametrize(
    ("most", "before", "at_once"),
    [(200, 190, 150), pytest.param(None, 190_000, 120_000, marks=pytest.mark.soak)],
)
def test_an_answer_of_many_addresses_comes_back_however_full_the_vault_is(
    most: int | None, before: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if most is not None:
        monkeypatch.setattr(placeholder_table, "MAX_VALUES", most)
    mine = Vault()
    mine.conceal([f"ada{number}@example.org" for number in range(before)])
    answer: Json = [{"id": number, "email": f"bob{number}@b.org"} for number in range(at_once)]

    concealed = mine.conceal(answer)

    assert "bob" not in str(concealed)
    assert mine.reveal(concealed).value == answer
    assert mine.reveal("[EMAIL_1]").unknown == ("[EMAIL_1]",)
    assert mine.reveal(f"[EMAIL_{before}]").unknown == ()


@pytest.mark.parametrize("value", ["x " * 600_000, 10**5_000], ids=["text", "number"])
def test_a_value_too_large_to_keep_is_refused_not_shown(value: Json) -> None:
    with pytest.raises(BadInput, match="too large"):
        Vault().conceal({"password": value})


def test_a_kind_of_the_users_own_works_like_any_other() -> None:
    vault = Vault(detectors=Detectors([CustomDetector("STAFF", r"\bE-\d{6}\b")]))
    rules = FieldRules([FieldRule("$.ref", "TICKET")])
    value: Json = {"ref": "T-1", "note": "E-123456 [STAFF_1] [TICKET_1]"}
    concealed = vault.conceal(value, fields=rules)

    assert concealed == {"ref": "[TICKET_1]", "note": "[STAFF_1] [LITERAL_1] [LITERAL_2]"}
    assert vault.reveal(concealed).value == value


def test_threads_that_conceal_at_once_agree_on_placeholders() -> None:
    vault = Vault()
    answers: dict[int, Json] = {}

    def conceal(number: int) -> None:
        answers[number] = [vault.conceal(f"user{each}@example.org") for each in range(50)]

    threads = [Thread(target=conceal, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({json.dumps(answer) for answer in answers.values()}) == 1
    assert len(concealed_values(vault)) == 50


def test_numbers_that_are_equal_are_not_the_same() -> None:
    vault = Vault()

    assert vault.conceal({"phone": 1234}) == {"phone": 1234}
    assert vault.conceal({"phone": 1234.0}) == {"phone": "[PHONE_1]"}
