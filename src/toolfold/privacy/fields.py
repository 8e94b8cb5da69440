"""Which fields of an answer hold personal data, by their keys and where they stand. Pure.

A rule conceals the whole value of a field, and all values below it. Keys are compared without case
and signs: `lastName`, `last_name` and `LAST-NAME` are one key. A path is matched from its end, so
`customer.name` is the name of every customer wherever customers stand; `$` at its beginning
stands for the whole answer, `*` for any one key, and `[]` for the items of a list, which may
also be left out.

`name` says little by itself: files, tools and branches have one. It counts as a person's where its
object is called after a person (`assignee`) or says more of one (an e-mail address, a phone).
Directly below such a word stands sometimes a name and sometimes a number or a handle: there it
counts if it is written like a full name.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from toolfold.errors import ConfigError
from toolfold.jsontypes import Json
from toolfold.privacy.placeholders import KIND

Path = tuple[str, ...]
ITEM: Final = "[]"
_ROOT: Final = "$"
_MOST_KEY_CHARS: Final = 80
_MOST_DECISIONS: Final = 10_000
_MOST_SIBLINGS: Final = 200
_FEWEST_PHONE_DIGITS: Final = 5
_FULL_NAME: Final = re.compile(
    r"[^\W\d_a-z][\w'\u2019.-]{0,40}(?: [^\W\d_][\w'\u2019.-]{0,40}){1,4}"
)

# By the key as a whole, or by how it ends: `billing_street`, `owner_email`.
_BUILTIN: Final[Mapping[str, str]] = {
    "NAME": """
        first_name firstname given_name givenname forename middle_name last_name lastname surname
        family_name familyname full_name fullname real_name maiden_name nickname nicknames
        legal_name person_name customer_name client_name contact_name patient_name employee_name
        member_name guest_name student_name passenger_name driver_name recipient_name sender_name
        author_name owner_name reporter_name assignee_name creator_name attendee_name
        organizer_name manager_name reviewer_name from_name account_holder holder_name
        cardholder_name name_on_card billing_name shipping_name
    """,
    "EMAIL": "email emails e_mail mail email_address email_addresses mail_address reply_to",
    "PHONE": """
        phone phones phone_number phone_numbers phone_no telephone telephone_number tel mobile
        mobile_number cell_phone cellphone fax fax_number contact_number whatsapp
    """,
    "ADDRESS": """
        street street_address street_name street1 street2 street_line1 street_line2 address_line
        address_line1 address_line2 address_line_1 address_line_2 address1 address2 line1 line2
        mailing_address billing_address shipping_address delivery_address home_address
        work_address postal_address residential_address formatted_address full_address
        house_number
    """,
    "POSTAL_CODE": "postal_code postcode post_code zip zip_code zipcode postalcode",
    "BIRTH_DATE": "birth_date birthdate date_of_birth dob birthday birth_day born_on",
    "NATIONAL_ID": """
        ssn social_security_number social_security national_id national_id_number
        identity_number id_card_number passport passport_number passport_no driver_license
        drivers_license driver_license_number drivers_license_number license_plate tax_id
        tax_number taxpayer_id tin itin nino nhs_number cpf dni nie nif bsn aadhaar pesel curp
        codice_fiscale fiscal_code steuer_id personnummer
    """,
    "CARD": "card_number credit_card credit_card_number cc_number cvv cvc security_code",
    "ACCOUNT": "iban account_number bank_account bank_account_number routing_number sort_code",
    "SECRET": """
        password passwd passphrase passcode password_value pwd secret client_secret api_key apikey
        access_token refresh_token auth_token id_token session_token bearer_token private_key
        secret_key access_key secret_access_key credentials pin_code otp
    """,
    "IP": "ip_address ip_addr client_ip remote_ip remote_addr source_ip",
    "MAC": "mac_address mac_addr",
}
_PERSONAL: Final = {key: kind for kind, keys in _BUILTIN.items() for key in keys.split()}
LIKELY_NAME: Final = "NAME?"
"""The kind below `assignee` and the like: a name where the value is written like one."""

_NAME_KEYS: Final = frozenset(
    ("name", "display_name", "displayname", "names", "person", "fullname")
)
_ADDRESS_KEYS: Final = frozenset(("address", "addresses", "location_address"))
_PERSON_WORDS: Final = """
    person people user users customer customers client clients contact contacts patient patients
    employee employees member members guest guests student students teacher teachers passenger
    passengers driver drivers recipient recipients sender senders author authors committer
    committers assignee assignees reporter reporters creator creators attendee attendees organizer
    organizers manager managers subscriber subscribers participant participants candidate
    candidates applicant applicants tenant_contact lead leads owner owners beneficiary spouse
    father mother parent_contact emergency_contact doctor physician buyer seller payer payee
    invitee invitees reviewer reviewers approver approvers created_by updated_by assigned_to
    modified_by requested_by approved_by reported_by
"""
_PERSONS: Final = frozenset(_PERSON_WORDS.split())
# Beside these keys, a name is a person's and an address is where they live.
_TELLING: Final = frozenset(
    key for key, kind in _PERSONAL.items() if kind in {"EMAIL", "PHONE", "NAME", "BIRTH_DATE"}
) | {"gender", "sex", "age", "nationality", "marital_status", "job_title"}
_POSTAL: Final = frozenset(
    key for key, kind in _PERSONAL.items() if kind in {"ADDRESS", "POSTAL_CODE"}
) | {"city", "country", "state", "town", "province"}
_BESIDE_ADDRESSES: Final = _TELLING | _NAME_KEYS | _POSTAL


class FieldRule(NamedTuple):
    """Fields at `path` are personal data of this kind; of none, whatever other rules say."""

    path: str
    kind: str | None


class FieldRules:
    """The user's rules and, after them, the built-in ones. The first that fits decides."""

    def __init__(self, rules: Sequence[FieldRule] = (), *, has_builtin: bool = True) -> None:
        """Read the rules.

        Raises:
            ConfigError: A path or a kind is not written as it must be.
        """
        self._rules = [(_parsed(rule), rule.kind) for rule in rules]
        self._has_builtin = has_builtin
        self._decided: dict[tuple[Path, bool, bool], tuple[bool, str | None]] = {}
        self.kinds = frozenset(kind for _, kind in self._rules if kind) | frozenset(
            _BUILTIN if has_builtin else ()
        )

    def decide(self, path: Path, siblings: Collection[str]) -> tuple[bool, str | None]:
        """Return whether a rule fits the field at `path`, and the kind that it gives.

        The last of `path` is the field's key, and `siblings` are the keys of its object.
        """
        is_person, is_postal = _told_by(path, siblings)
        question = (path, is_person, is_postal)
        answer = self._decided.get(question)
        if answer is None:
            answer = self._decide(path, is_person=is_person, is_postal=is_postal)
            if len(self._decided) < _MOST_DECISIONS:
                self._decided[question] = answer
        return answer

    def _decide(self, path: Path, *, is_person: bool, is_postal: bool) -> tuple[bool, str | None]:
        written = tuple(each if each == ITEM else key_form(each) for each in path)
        for pattern, kind in self._rules:
            if _fits(pattern, written):
                return True, kind
        kind = _builtin_kind(written[-1], is_person, is_postal) if self._has_builtin else None
        return kind is not None, kind


def _builtin_kind(key: str, is_person: bool, is_postal: bool) -> str | None:
    if is_person or is_postal:
        return "NAME" if is_person else "ADDRESS"
    words = key.split("_")
    endings = ("_".join(words[place:]) for place in range(len(words)))
    kind = next((_PERSONAL[ending] for ending in endings if ending in _PERSONAL), None)
    return LIKELY_NAME if kind is None and key in _PERSONS else kind


def is_plausible(kind: str | None, value: Json) -> bool:
    """Whether a value may be of the kind that its field's name says.

    Answers are full of `"email": "n/a"`, `"mobile": true` and `"zip": "application/zip"`.
    """
    if kind is None or isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    written = str(value) if not isinstance(value, int) else "0" * min(value.bit_length() // 3, 20)
    if kind == LIKELY_NAME:
        return _FULL_NAME.fullmatch(written) is not None
    if kind == "EMAIL":
        return "@" in written or "%40" in written
    if kind == "PHONE":
        return sum(map(str.isdigit, written)) >= _FEWEST_PHONE_DIGITS
    if kind in {"CARD", "ACCOUNT", "NATIONAL_ID", "BIRTH_DATE", "POSTAL_CODE", "IP"}:
        return any(map(str.isdigit, written)) and (kind != "POSTAL_CODE" or len(written) <= 16)
    if kind in {"NAME", "ADDRESS"}:
        return any(map(str.isalpha, written))
    return bool(written.strip())


@lru_cache(maxsize=4096)
def key_form(key: str) -> str:
    """Return a key without case and signs: `lastName` is `last_name`."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key[:_MOST_KEY_CHARS])
    return re.sub(r"[^a-z0-9*$]+", "_", split.casefold()).strip("_")


def _told_by(path: Path, siblings: Collection[str]) -> tuple[bool, bool]:
    """Return whether the field is a person's name, and whether it is a place to live."""
    key = key_form(path[-1])
    if key in _NAME_KEYS:
        return _is_persons(path) or _has(siblings, _TELLING), False
    if key in _ADDRESS_KEYS:
        return False, _is_persons(path) or _has(siblings, _BESIDE_ADDRESSES)
    return False, False


def _is_persons(path: Path) -> bool:
    above = [key_form(each) for each in path[:-1] if each != ITEM]
    return bool(above) and above[-1] in _PERSONS


def _has(siblings: Collection[str], keys: Collection[str]) -> bool:
    return any(key_form(each) in keys for each in islice(siblings, _MOST_SIBLINGS))


def _parsed(rule: FieldRule) -> Path:
    if rule.kind is not None and not KIND.fullmatch(rule.kind):
        raise ConfigError(
            f"The kind {rule.kind!r} of the field rule {rule.path!r} cannot be used: write "
            "capitals, digits and _, such as CUSTOMER_ID."
        )
    parts: list[str] = []
    for each in rule.path.split("."):
        bare = each.replace(ITEM, "")
        items = (len(each) - len(bare)) // len(ITEM)
        parts += [key_form(bare)] if bare or not items else []
        parts += [ITEM] * items
    if not parts or "" in parts or parts[-1] == _ROOT or _ROOT in parts[1:]:
        raise ConfigError(
            f"The field rule {rule.path!r} cannot be read: write keys with dots between them, such "
            "as customer.name, rows[].phone or *.email."
        )
    return tuple(parts)


def _fits(pattern: Path, path: Path) -> bool:
    if ITEM not in pattern:
        path = tuple(each for each in path if each != ITEM)
    if pattern[0] == _ROOT:
        pattern = pattern[1:]
        if len(pattern) != len(path):
            return False
    return len(pattern) <= len(path) and all(
        one in ("*", other) for one, other in zip(reversed(pattern), reversed(path), strict=False)
    )
