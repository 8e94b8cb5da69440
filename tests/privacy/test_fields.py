import json
import re

import pytest
from support import SHARED_DATA

from toolfold.errors import ConfigError
from toolfold.jsontypes import Json
from toolfold.privacy.fields import ITEM, FieldRule, FieldRules
from toolfold.privacy.vault import Vault

CATALOGUE = SHARED_DATA / "catalogue"

# The keys of the catalogues' schemas that hold what names a person, or where one lives or is
# reached, or what lets one in: read by hand among all that their words make likely. Left out are
# keys whose values are handles (`login`), lists of addresses that detectors find (`to`, `cc`), and
# `name` and `address`, which what stands beside them decides.
PERSONAL_KEYS = {
    "BIRTH_DATE": ["birthday"],
    "EMAIL": [
        *("email", "emails", "from_email", "user_google_email", "new_owner_email", "adminEmail"),
    ],
    "NAME": [
        *("family_name", "given_name", "nicknames", "from_name", "expertReviewerName"),
        *("assignee", "assignees", "author", "attendees", "recipients"),
    ],
    "PHONE": ["phone", "phones"],
    "SECRET": ["password", "passwordValue", "conference_passcode"],
}


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("customer.name", ("rows", ITEM, "customer", "name"), True),
        ("customer.name", ("name",), False),
        ("customer.name", ("customer", "names"), False),
        ("*.email", ("a", "email"), True),
        ("*.email", ("email",), False),
        ("rows[].phone", ("rows", ITEM, "phone"), True),
        ("rows[].phone", ("rows", "phone"), False),
        ("rows.phone", ("rows", ITEM, "phone"), True),
        ("$.title", ("title",), True),
        ("$.title", ("a", "title"), False),
        ("last-name", ("a", "lastName"), True),
        ("tags[]", ("tags", ITEM), True),
    ],
)
def test_a_path_is_matched_from_its_end(pattern: str, path: tuple[str, ...], fits: bool) -> None:
    field = FieldRules([FieldRule(pattern, "CUSTOM")], has_builtin=False).root
    for key in path:
        field = field.items if key == ITEM else field.below(key, [key])

    assert (field.is_decided, field.kind) == ((True, "CUSTOM") if fits else (False, None))


@pytest.mark.parametrize(
    ("pattern", "answer"),
    [
        ("tags[]", {"tags": ["abc", "def"], "other": ["ghi"]}),
        ("$[]", ["abc", "def"]),
        ("$[][]", [["abc"], ["def"]]),
    ],
)
def test_a_rule_can_be_about_the_items_of_a_list(pattern: str, answer: Json) -> None:
    concealed = Vault().conceal(answer, fields=FieldRules([FieldRule(pattern, "CUSTOM")]))

    written = json.dumps(concealed)
    assert "abc" not in written
    assert "def" not in written
    assert ("ghi" in written) == ("ghi" in json.dumps(answer))


@pytest.mark.parametrize("path", ["", ".", "a..b", "$", "a.$", "a.$.b"])
def test_a_path_that_cannot_be_read_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="such as"):
        FieldRules([FieldRule(path, "CUSTOM")])


def test_a_kind_that_placeholders_cannot_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="CUSTOMER_ID"):
        FieldRules([FieldRule("a", "customer id")])


@pytest.mark.parametrize(
    ("value", "is_concealed"),
    [
        ({"name": "Ada King", "email": "ada@example.org"}, True),
        ({"name": "Ada King", "phoneNumber": "1"}, True),
        ({"assignee": {"name": "Ada King"}}, True),
        ({"customers": [{"name": "Ada King"}]}, True),
        ({"name": {"first": "Ada King"}, "email": "x"}, True),
        ({"name": "Ada King", "size": 3, "path": "/x"}, False),
        ({"tools": [{"name": "Ada King", "description": "x"}]}, False),
        ({"branch": {"name": "Ada King"}}, False),
        ("Ada King", False),
    ],
)
def test_a_name_is_a_persons_by_what_stands_around_it(value: Json, is_concealed: bool) -> None:
    concealed = json.dumps(Vault().conceal(value))

    assert ("Ada King" not in concealed) == is_concealed


def test_the_users_rules_come_first_and_may_exempt_a_field() -> None:
    rules = FieldRules([FieldRule("vendor.street", None), FieldRule("ticket", "TICKET")])
    value: Json = {"vendor": {"street": "1 Main St"}, "street": "2 Main St", "ticket": "T-1"}

    assert Vault().conceal(value, fields=rules) == {
        "vendor": {"street": "1 Main St"},
        "street": "[ADDRESS_1]",
        "ticket": "[TICKET_1]",
    }


def test_values_that_cannot_be_what_their_field_says_stay() -> None:
    value: Json = {"email": "n/a", "mobile": True, "phone": None, "dob": "", "first_name": 7}

    assert Vault().conceal(value) == value


def test_a_rule_holds_for_all_that_is_below_its_field() -> None:
    value: Json = {"home_address": {"lines": ["1 Main St", "Flat B"], "n": 12, "is_main": True}}

    assert Vault().conceal(value) == {
        "home_address": {"lines": ["[ADDRESS_1]", "[ADDRESS_2]"], "n": 12, "is_main": True}
    }


def test_personal_keys_of_real_servers_are_known() -> None:
    if not CATALOGUE.is_dir():
        pytest.skip("The recorded catalogues are not beside the repository.")
    samples = {"EMAIL": "ada@example.org", "PHONE": "020 7946 0958", "BIRTH_DATE": "1815-12-10"}
    wanted = [(kind, key) for kind, keys in PERSONAL_KEYS.items() for key in keys]
    missed = []
    for kind, key in wanted:
        concealed = Vault().conceal({"found": {key: samples.get(kind, "Ada King")}})
        if concealed != {"found": {key: f"[{kind}_1]"}}:
            missed.append(key)

    assert {key for _, key in wanted} <= catalogue_keys()
    assert len(missed) <= len(wanted) // 10, missed


ANSWERS: list[tuple[Json, int]] = [
    (
        {
            "FirstName": "Ada",
            "LastName": "King",
            "MailingStreet": "12 Acacia Ave",
            "MailingPostalCode": "SW1 1AA",
        },
        4,
    ),
    (
        {
            "properties": {
                "firstname": "Ada",
                "lastname": "King",
                "phone": "12345678",
                "zip": "10115",
            }
        },
        4,
    ),
    (
        {
            "billing_details": {
                "name": "Ada King",
                "address": {"line1": "12 Acacia", "postal_code": "10115", "city": "Berlin"},
                "email": None,
            }
        },
        3,
    ),
    ({"shipping": {"name": "Ada King", "address": {"line1": "12 Acacia"}}}, 2),
    ({"default_address": {"address1": "12 Acacia", "name": "Ada King", "zip": "10115"}}, 3),
    ({"names": [{"displayName": "Ada King", "givenName": "Ada", "familyName": "King"}]}, 3),
    (
        {
            "profile": {
                "real_name": "Ada King",
                "display_name": "Ada",
                "real_name_normalized": "Ada King",
            }
        },
        3,
    ),
    (
        {
            "fields": {
                "assignee": {"displayName": "Ada King", "accountId": "5b10"},
                "reporter": {"displayName": "Bob Stone"},
            }
        },
        2,
    ),
    ({"requester": {"name": "Ada King", "id": 1}}, 1),
    ({"Full Name": "Ada King", "Contact Name": "Bob Stone"}, 2),
    (
        {
            "attendees": [{"displayName": "Ada King", "responseStatus": "ok"}],
            "organizer": {"displayName": "Bob Stone"},
        },
        2,
    ),
    (
        {
            "vorname": "Ada",
            "nachname": "König",
            "strasse": "Lange Str. 3",
            "plz": "10115",
            "telefon": "030 123456",
            "geburtsdatum": "1990-01-02",
        },
        6,
    ),
    (
        {
            "nom": "Roi",
            "prenom": "Ada",
            "adresse": "3 rue Longue",
            "code_postal": "75001",
            "telephone": "0123456789",
        },
        5,
    ),
    (
        {
            "nombre": "Ada",
            "apellidos": "Rey",
            "direccion": "Calle Larga 3",
            "codigo_postal": "28001",
            "telefono": "912345678",
        },
        5,
    ),
    (
        {
            "nome": "Ada",
            "cognome": "Re",
            "indirizzo": "Via Lunga 3",
            "cap": "00100",
            "telefono": "061234567",
        },
        5,
    ),
    ({"voornaam": "Ada", "achternaam": "Koning", "straat": "Lange 3", "postcode": "1011AB"}, 4),
    ({"user": {"name": "Ada King", "login": "ada"}}, 1),
    ({"author": "Ada King", "title": "x"}, 1),
    ({"author": {"name": "Ada King", "email": "ada@x.org"}}, 2),
    ({"commit": {"committer": {"name": "Ada King", "date": "2020"}}}, 1),
    ({"owner": "Ada King"}, 1),
    ({"contact": {"name": "Ada", "company": "X"}}, 1),
    ({"doctor_name": "Ada King", "patient": "Bob Stone"}, 2),
    ({"signer": {"name": "Ada King"}, "witness": {"name": "Bob Stone"}}, 2),
    (
        {
            "from": {"name": "Ada King", "address": "ada@x.org"},
            "to": [{"name": "Bob Stone", "address": "bob@x.org"}],
        },
        4,
    ),
    ({"customerName": "Ada King", "customerAddress": "12 Acacia Ave"}, 2),
    ({"address": "12 Acacia Ave, London", "name": "Ada King"}, 2),
    ({"addr": "12 Acacia Ave", "street": "Acacia"}, 2),
    ({"emp_first": "Ada", "emp_last": "King"}, 2),
    ({"first": "Ada", "last": "King", "title": "Ms"}, 2),
    ({"fname": "Ada", "lname": "King"}, 2),
    ({"name": {"first": "Ada", "last": "King"}}, 2),
    ({"name": {"given": ["Ada"], "family": "King"}, "birthDate": "1990-01-02"}, 3),
    ({"dob": "1990-01-02", "name": "Ada"}, 2),
    ({"passengers": [{"name": "KING/ADA MS", "seat": "1A"}]}, 1),
    ({"contactPerson": "Ada King", "contact_person": "Bob Stone"}, 2),
    ({"host": {"name": "Ada King", "id": 4}}, 1),
    ({"reviewer_name": "Ada King"}, 1),
    ({"employee": {"manager": "Bob Stone", "name": "Ada"}}, 2),
    ({"姓名": "王伟", "电话": "13812345678", "地址": "北京"}, 3),
    ({"фио": "Иван Иванов", "телефон": "+7 912 345-67-89"}, 2),
    (
        {
            "billing_address_1": "12 Acacia",
            "billing_address_line_1": "x 12",
            "home_phone": "1234567",
        },
        3,
    ),
    ({"emergency_contact_name": "Ada King", "emergency_contact_phone": "1234567"}, 2),
    ({"mother_maiden_name": "King", "place_of_birth": "Berlin"}, 1),
    ({"primary_contact": "Ada King"}, 1),
    ({"sender": "Ada King", "recipient": "Bob Stone"}, 2),
    ({"speaker": "Ada King", "host_name": "srv-1.local"}, 1),
    ({"created_by": "Ada King", "assignees": ["Ada King", "Bob Stone"]}, 3),
    ({"displayName": "Ada King", "mail": "ada@x.org"}, 2),
]
"""As services of several countries answer, and how many values of each are a person's."""


def test_persons_are_known_by_the_keys_of_many_services() -> None:
    missed: list[Json] = []
    for answer, count in ANSWERS:
        found = re.findall(r"\[[A-Z_]+_[0-9.]+\]", json.dumps(Vault().conceal(answer)))
        missed += [answer] * max(0, count - len(found))

    assert len(missed) <= sum(count for _, count in ANSWERS) // 20, missed


def test_a_rule_may_name_a_key_in_any_script() -> None:
    rules = FieldRules([FieldRule("客户.编号", "CUSTOMER"), FieldRule("kunde.größe", "SIZE")])

    assert Vault().conceal({"客户": {"编号": "a-1"}, "Kunde": {"Größe": 3}}, fields=rules) == {
        "客户": {"编号": "[CUSTOMER_1]"},
        "Kunde": {"Größe": "[SIZE_1]"},
    }


@pytest.mark.parametrize(
    "value",
    [
        {"first": "2020-01-01", "last": "page-9", "from": "New York", "to": "Los Angeles"},
        {
            "host": {"name": "web-1"},
            "http_client": "Mozilla Firefox",
            "address": "0x7f",
            "city": "x",
        },
        {"cell": "A1", "pin": 4, "pan": "left", "mail": "on", "state": "open", "owner": "octocat"},
        {"user": {"title": "Senior Engineer", "id": 7}, "assignee": "u-77"},
        {"emails_mode": "merge", "file_name": "Ada King.txt", "page_token": "abc"},
    ],
)
def test_keys_that_only_resemble_personal_ones_are_left(value: Json) -> None:
    assert Vault().conceal(value) == value


def catalogue_keys() -> set[str]:
    found: set[str] = set()
    for file in CATALOGUE.glob("*.json"):
        for tool in json.loads(file.read_text(encoding="utf-8"))["tools"]:
            for name in ("inputSchema", "outputSchema"):
                found |= property_names(tool.get(name))
    return found


def property_names(schema: object) -> set[str]:
    if isinstance(schema, list):
        return {name for each in schema for name in property_names(each)}
    if not isinstance(schema, dict):
        return set()
    properties = schema.get("properties")
    names = set(properties) if isinstance(properties, dict) else set()
    return names | {name for each in schema.values() for name in property_names(each)}
