import json

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
    rules = FieldRules([FieldRule(pattern, "CUSTOM")], has_builtin=False)

    assert rules.decide(path, path[-1:]) == ((True, "CUSTOM") if fits else (False, None))


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


@pytest.mark.parametrize(
    "value",
    [
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
